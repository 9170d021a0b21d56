// SPDX-License-Identifier: LGPL-2.1-or-later
// Arrows of results over the pictures. Which of them an element has is said in panel/kinds.py.
import { colour, number } from "./dom.js";

// Draws each arrow from (x, y) by (dx, dy) * gain, in samples of the view.
export function draw(c, view, list, gain) {
  c.strokeStyle = c.fillStyle = colour("--arrow");
  c.lineWidth = 1.5;
  c.beginPath();
  for (const [x, y, dx, dy] of list) {
    const [x0, y0] = view.point([x + 0.5, y + 0.5]);
    const [x1, y1] = view.point([x + 0.5 + dx * gain, y + 0.5 + dy * gain]);
    const [length, angle] = [Math.hypot(x1 - x0, y1 - y0), Math.atan2(y1 - y0, x1 - x0)];
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    if (length < 4) continue;
    for (const turn of [2.6, -2.6]) {
      c.moveTo(x1, y1);
      c.lineTo(x1 + 5 * Math.cos(angle + turn), y1 + 5 * Math.sin(angle + turn));
    }
  }
  c.stroke();
}

// Pixels of the picture for each pixel of slope. At the middle of the slider the longest arrow of the last seconds is half the pitch.
function stretch(one, slider) {
  const { pitchX, pitchY } = one.grid();
  return (10 ** ((slider - 50) / 50) * 0.5 * Math.min(pitchX ?? 20, pitchY ?? pitchX ?? 20)) / one.longest;
}

// At the middle of the slider a gap is as long as the longest arrow.
export function gainOf(slider) {
  return 10 ** ((slider - 10) / 33);
}

// The offsets of a field without their mean
export function offsets({ field, means }) {
  return field.map(([x, dx, y, dy]) => [x, y, dx - means[0], dy - means[1]]);
}

// @title: what they mean. @text (one, slider): their scale. @over (c, view, one, slider): draws them over a picture
export const ARROWS = {
  offsets: {
    title: "Arrows are offsets without their mean",
    text: () => "",
    over: (c, view, one, slider) => {
      const found = one.offsets();
      const [width, height] = view.source;
      // they are of the reference
      if (found.field.length && found.field.every(([x, , y]) => x < width && y < height)) draw(c, view, offsets(found),
        (gainOf(slider) * 2) / found.longest);
    },
  },
  slopes: {
    title: "Slopes count from the reference: until one is set, the places of the spots in the first frame."
      + " The action capture-reference makes the places of now the zero.",
    text: (one, slider) => {
      const { columns, rows, pitchX, pitchY } = one.grid();
      return `1 px of slope is ${number(stretch(one, slider), 2)} px; ${columns} × ${rows} cells, pitch ${number(pitchX, 4)} × ${number(pitchY, 4)} px`;
    },
    over: (c, view, one, slider) => {
      const width = one.newest?.["ref-width"];
      if (width && view.source[0] === width) draw(c, view, one.cells().filter((s) => s.valid).map((s) => [s.x, s.y, s.dx, s.dy]),
        stretch(one, slider));
    },
  },
};
