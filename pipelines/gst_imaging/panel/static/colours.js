// SPDX-License-Identifier: LGPL-2.1-or-later
// The colour maps of the library: for the bar of colours and for maps of results.

const tables = new Map();

export function learn(maps) {
  for (const { nick, table: text } of maps) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    tables.set(nick, Array.from({ length: 256 }, (_, k) => `rgb(${bytes.subarray(3 * k, 3 * k + 3).join()})`));
  }
}

// The 256 colours of a map, as CSS writes them.
export function table(name) {
  return tables.get(name);
}
