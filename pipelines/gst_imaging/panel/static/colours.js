// SPDX-License-Identifier: LGPL-2.1-or-later
// The colour maps of the library: for the bar and for pixels drawn from true samples.

const NAN = 256; // behind the colours of the samples
const tables = new Map();

// maps: by name, R, G, B of the colours 0 to 255 and of a NaN in Base64
export function learn(maps) {
  for (const [name, text] of Object.entries(maps)) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    tables.set(name, Array.from({ length: NAN + 1 }, (_, k) => [...bytes.subarray(3 * k, 3 * k + 3)]));
  }
}

export function names() {
  return [...tables.keys()];
}

// Lists of red, green and blue.
export function table(name) {
  return tables.get(name);
}

export function css([r, g, b]) {
  return `rgb(${r},${g},${b})`;
}

// The colour of a sample between the ends of the window; null: there is none yet.
export function lookup(colours, value, low, high) {
  if (value === null) return [0, 0, 0];
  if (Number.isNaN(value)) return colours[NAN];
  const at = high > low ? (value - low) / (high - low) : value >= high ? 1 : 0;
  return colours[Math.max(0, Math.min(255, Math.round(at * 255)))];
}
