// SPDX-License-Identifier: LGPL-2.1-or-later
// The colour maps of the panel, with the knots of common/view: for the bar and for pixels drawn from true samples.

const KNOTS = {
  grey: [0x000000, 0xffffff],
  viridis: [0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725],
  inferno: [0x000004, 0x1b0c41, 0x4a0c6b, 0x781c6d, 0xa52c60, 0xcf4446, 0xed6925, 0xfb9b06, 0xf7d13d, 0xfcffa4],
  turbo: [
    0x30123b, 0x4145ab, 0x4675ed, 0x39a2fc, 0x1bcfd4, 0x24eca6, 0x61fc6c, 0xa4fc3b, 0xd1e834, 0xf3c63a, 0xfe9b2d, 0xf36315, 0xd93806,
    0xb11901, 0x7a0402,
  ],
  phase: [0xff0000, 0xffff00, 0x00ff00, 0x00ffff, 0x0000ff, 0xff00ff, 0xff0000],
  "blue-red": [0x053061, 0x4393c3, 0xf7f7f7, 0xd6604d, 0x67001f],
};

export const NAMES = Object.keys(KNOTS);

// Of a NaN, colours that no map has: violet with grey, grey with the others. The same as in common/view.
const NAN = [0x60, 0x40, 0x80];
const NAN_OF_COLOURS = [0x80, 0x80, 0x80];

const tables = new Map();

// 256 lists of red, green and blue.
export function table(name) {
  if (!tables.has(name)) {
    const knots = KNOTS[name] ?? KNOTS.grey;
    tables.set(
      name,
      Array.from({ length: 256 }, (_, i) => {
        const at = (i * (knots.length - 1)) / 255;
        const k = Math.min(Math.floor(at), knots.length - 2);
        return [16, 8, 0].map((s) => Math.round(((knots[k] >> s) & 255) * (1 - at + k) + ((knots[k + 1] >> s) & 255) * (at - k)));
      }),
    );
  }
  return tables.get(name);
}

export function css([r, g, b]) {
  return `rgb(${r},${g},${b})`;
}

// The colour of a sample between the ends of the window; null: there is none yet.
export function lookup(colours, value, low, high) {
  if (value === null) return [0, 0, 0];
  if (Number.isNaN(value)) return colours === table("grey") ? NAN : NAN_OF_COLOURS;
  const at = high > low ? (value - low) / (high - low) : value >= high ? 1 : 0;
  return colours[Math.max(0, Math.min(255, Math.round(at * 255)))];
}
