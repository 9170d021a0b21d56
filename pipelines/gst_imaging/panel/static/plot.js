// SPDX-License-Identifier: LGPL-2.1-or-later
// Lines over time or over a place, on a canvas.
import { colour, number, prepare, ticks } from "./dom.js";

// A number that fits beside an axis.
function short(y) {
  if (Math.abs(y) < 1e5) return number(y, 4);
  const power = Math.floor(Math.log10(Math.abs(y)));
  return `${Number((y / 10 ** power).toPrecision(4))}e${power}`;
}

const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5"];

// series: [{name, points: [[x, y], ...]}]; y of null is a gap. lasts: the last y of each is told beside its name
export function draw(canvas, series, { xLabel = "", yLabel = "", lasts = true } = {}) {
  const c = prepare(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [left, right, top, bottom] = [56, 10, 18, 30];
  const all = series.flatMap((s) => s.points).filter((p) => p[1] !== null && Number.isFinite(p[1]));
  c.font = "11px system-ui, sans-serif";
  c.fillStyle = colour("--muted");
  if (!all.length) {
    c.textAlign = "center";
    c.fillText("No results yet", width / 2, height / 2);
    return;
  }
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of all) [x0, x1, y0, y1] = [Math.min(x0, x), Math.max(x1, x), Math.min(y0, y), Math.max(y1, y)];
  if (x1 === x0) x1 = x0 + 1;
  // a line that is all but constant is not blown up beyond the digits of its axis
  const margin = Math.max((y1 - y0) * 0.06, y1 === y0 ? Math.abs(y1) * 0.05 : Math.abs(y1) * 0.002) || 1;
  [y0, y1] = [y0 - margin, y1 + margin];
  const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - right);
  const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom);
  c.strokeStyle = colour("--border");
  c.lineWidth = 1;
  c.textAlign = "right";
  for (const y of ticks(y0, y1, Math.max(2, (height - top - bottom) / 32))) {
    c.beginPath();
    c.moveTo(left, Math.round(py(y)) + 0.5);
    c.lineTo(width - right, Math.round(py(y)) + 0.5);
    c.stroke();
    c.fillText(short(y), left - 6, py(y) + 4);
  }
  c.textAlign = "center";
  for (const x of ticks(x0, x1, Math.max(2, width / 110))) c.fillText(number(x, 6), px(x), height - bottom + 14);
  c.fillText(xLabel, (left + width) / 2, height - 3);
  c.textAlign = "left";
  c.fillText(yLabel, 4, 11);
  c.lineWidth = 1.5;
  c.lineJoin = "round";
  let end = width - right; // of the next name
  series.forEach((one, i) => {
    c.strokeStyle = colour(LINES[i % LINES.length]);
    c.beginPath();
    let open = false;
    for (const [x, y] of one.points) {
      if (y === null || !Number.isFinite(y)) open = false;
      else if (open) c.lineTo(px(x), py(y));
      else {
        c.moveTo(px(x), py(y));
        open = true;
      }
    }
    c.stroke();
    const last = lasts ? one.points.findLast((p) => p[1] !== null) : null;
    const text = lasts ? `${one.name} ${number(last?.[1])}` : one.name;
    c.fillStyle = c.strokeStyle;
    c.textAlign = "right";
    c.fillText(text, end, 11);
    end -= lasts ? 150 : c.measureText(text).width + 14;
  });
}
