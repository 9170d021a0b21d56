// SPDX-License-Identifier: LGPL-2.1-or-later
// What is drawn beside the picture of a view: rulers, and the bar of colours with the window.
import * as colours from "./colours.js";
import { colour, digitsWithin, number, real, ticks } from "./dom.js";
import { short } from "./plot.js";

// The numbers along the picture, in samples or in the units of its axes.
export function rulers(c, view) {
  const inner = view.inner;
  const axes = view.header?.axes ?? [null, null];
  c.fillStyle = c.strokeStyle = colour("--muted");
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  [0, 1].forEach((k) => {
    const axis = axes?.[k];
    const [step, origin] = axis ? [axis.step || 1, axis.origin] : [1, 0];
    const length = k ? inner.height : inner.width;
    const scale = k ? view.scaleY : view.scale;
    const start = k ? view.y : view.x;
    const place = (s) => origin + step * (s - 0.5); // sample i has its middle at i + 0.5
    const ends = [place(start), place(start + length / scale)].sort((a, b) => a - b);
    c.beginPath();
    for (const t of ticks(...ends, length / (k ? 45 : 80))) {
      const at = ((t - origin) / step + 0.5 - start) * scale;
      const p = Math.round((k ? inner.y : inner.x) + at) + 0.5;
      if (k) {
        c.moveTo(inner.x - 5, p);
        c.lineTo(inner.x, p);
        c.textAlign = "right";
        c.fillText(number(t, 6), inner.x - 7, p + 4);
      } else {
        c.moveTo(p, inner.y + inner.height);
        c.lineTo(p, inner.y + inner.height + 5);
        c.textAlign = "center";
        c.fillText(number(t, 6), p, inner.y + inner.height + 15);
      }
    }
    c.stroke();
    const label = axis ? `${axis.name}${axis.unit ? ` (${axis.unit})` : ""}` : "pixel";
    c.textAlign = "center";
    if (k === 0) c.fillText(label, inner.x + inner.width / 2, inner.y + inner.height + 27);
    else {
      c.save();
      c.translate(10, inner.y + inner.height / 2);
      c.rotate(-Math.PI / 2);
      c.fillText(label, 0, 0);
      c.restore();
    }
  });
}

// The window: its ends are the numbers at the top and the bottom.
export function colourBar(c, view) {
  const { header, inner } = view;
  if (!header) return;
  const [x, width] = [inner.x + inner.width + 8, 10];
  const isColour = header.channels >= 3; // its window is that of R, G, B
  const map = colours.table(isColour ? "grey" : header.colours);
  for (let i = 0; i < 128; i++) {
    c.fillStyle = map[255 - 2 * i];
    c.fillRect(x, inner.y + (i * inner.height) / 128, width, inner.height / 128 + 1);
  }
  c.strokeStyle = colour("--border");
  c.strokeRect(x - 0.5, inner.y - 0.5, width + 1, inner.height + 1);
  const ends = windowOf(header);
  c.textAlign = "left";
  const text = (t) => { // it has 44 pixels
    const digits = Math.min(digitsWithin(t, ends[1] - ends[0], 4), 6);
    return [digits, 5, 4].map((n) => short(t, Math.min(n, digits))).find((fits) => fits.length <= 6) ?? short(t, 3);
  };
  const label = (t, at) => c.fillText(text(t), x + width + 4, inner.y + inner.height * (1 - at) + 4);
  c.fillStyle = colour("--text");
  label(ends[0], 0);
  label(ends[1], 1);
  c.fillStyle = colour("--muted");
  for (const t of ticks(Math.min(...ends), Math.max(...ends), inner.height / 40)) {
    const at = (t - ends[0]) / (ends[1] - ends[0] || 1);
    if (Math.min(at, 1 - at) * inner.height > 14) label(t, at);
  }
  c.textAlign = "right";
  const unit = isColour ? "R, G, B" : header.quantity?.unit || "";
  c.fillText(view.layers?.length > 1 && !view.isShared ? `before ${unit}` : unit, view.canvas.clientWidth - 4, inner.y + inner.height + 15);
}

// The ends of the window that a picture was made with, as its quantity.
export function windowOf(header) {
  return [-0.5, 0.5].map((part) => real(header.quantity, header.level + part * header.window));
}
