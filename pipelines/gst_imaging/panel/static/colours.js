// SPDX-License-Identifier: LGPL-2.1-or-later
// The colour maps of the library: for the bar of colours and for maps of results.

const tables = new Map();

export function learn(maps) {
  for (const { nick, table: text } of maps) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    tables.set(nick, Array.from({ length: 256 }, (_, k) => [...bytes.subarray(3 * k, 3 * k + 3)]));
  }
}

// Lists of red, green and blue.
export function table(name) {
  return tables.get(name);
}

export function css([r, g, b]) {
  return `rgb(${r},${g},${b})`;
}
