// SPDX-License-Identifier: LGPL-2.1-or-later
// Lines over time or over a place, on a canvas.
import { colour, number, prepare, ticks } from "./dom.js";

// A number that fits beside an axis.
export function short(y, digits = 4) {
  const size = Math.abs(y);
  if (size === 0 || (size < 1e5 && size >= 1e-3)) return number(y, digits);
  let power = Math.floor(Math.log10(size));
  let part = Number((y / 10 ** power).toPrecision(digits));
  if (Math.abs(part) === 10) [part, power] = [part / 10, power + 1];
  return `${part}e${power}`;
}

// Ticks of an axis of logarithms: powers of ten, and where these are few the steps between them.
function powers(low, high, count) {
  const all = [];
  const every = Math.max(1, Math.ceil((high - low) / count));
  const parts = high - low > 2 ? [1] : high - low > 1 ? [1, 3] : [1, 2, 3, 5, 7];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++)
    for (const part of power % every ? [] : parts) all.push(power + Math.log10(part));
  return all.filter((y) => y >= low && y <= high);
}

const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5"];

// series: [{name, points: [[x, y], ...]}]; y of null is a gap. [x, y, low, high] has a bar behind its line. lasts: the last y of each is told beside its name.
// isLog: of y, which is then a gap where it is not positive. none: what is said without a point
export function draw(canvas, series, { xLabel = "", yLabel = "", lasts = true, isLog = false, none = "No results yet" } = {}) {
  const c = prepare(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [left, right, top, bottom] = [56, 10, 18, 30];
  const told = series;
  if (isLog) series = series.map((s) => ({ ...s, points: s.points.map(([x, ...ys]) => [x, ...ys.map((y) => (y > 0 ? Math.log10(y) : null))]) }));
  const all = series.flatMap((s) => s.points).filter((p) => p[1] !== null && Number.isFinite(p[1]));
  c.font = "11px system-ui, sans-serif";
  c.fillStyle = colour("--muted");
  if (!all.length) {
    c.textAlign = "center";
    const isNegative = isLog && told.some((s) => s.points.some(([, y]) => Number.isFinite(y) && y !== null));
    c.fillText(isNegative ? "No value is positive: take the linear axis" : none, width / 2, height / 2);
    return;
  }
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y, low, high] of all)
    [x0, x1, y0, y1] = [Math.min(x0, x), Math.max(x1, x), Math.min(y0, low ?? y), Math.max(y1, high ?? y)];
  if (x1 === x0) x1 = x0 + 1;
  // a line that is all but constant is not blown up beyond the digits of its axis
  const margin = Math.max((y1 - y0) * 0.06, y1 === y0 ? Math.abs(y1) * 0.05 : Math.abs(y1) * 0.002) || 1;
  [y0, y1] = [y0 - margin, y1 + margin];
  const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - right);
  const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom);
  c.strokeStyle = colour("--border");
  c.lineWidth = 1;
  c.textAlign = "right";
  const n = Math.max(2, (height - top - bottom) / 32);
  const places = isLog ? powers(y0, y1, n) : ticks(y0, y1, n);
  for (const y of isLog && places.length < 2 ? ticks(y0, y1, n) : places) {
    c.beginPath();
    c.moveTo(left, Math.round(py(y)) + 0.5);
    c.lineTo(width - right, Math.round(py(y)) + 0.5);
    c.stroke();
    c.fillText(short(isLog ? 10 ** y : y), left - 6, py(y) + 4);
  }
  c.textAlign = "center";
  for (const x of ticks(x0, x1, Math.max(2, width / 110))) c.fillText(Math.abs(x) >= 1e7 ? short(x) : number(x, 6), px(x), height - bottom + 14);
  c.fillText(xLabel, (left + width) / 2, height - 3);
  c.textAlign = "left";
  c.fillText(yLabel, 4, 11);
  c.lineWidth = 1.5;
  c.lineJoin = "round";
  let end = width - right; // of the next name
  series.forEach((one, i) => {
    c.strokeStyle = colour(LINES[i % LINES.length]);
    c.globalAlpha = 0.35;
    c.beginPath();
    for (const [x, y, low, high] of one.points.filter((p) => p[1] !== null && p[3] > (p[2] ?? p[1]))) {
      c.moveTo(px(x), py(low ?? y));
      c.lineTo(px(x), py(high));
    }
    c.stroke();
    c.globalAlpha = 1;
    c.beginPath();
    let open = false;
    const isThere = (p) => p && p[1] !== null && Number.isFinite(p[1]);
    one.points.forEach((p, k) => {
      const [x, y] = p;
      if (!isThere(p)) open = false;
      else if (open) c.lineTo(px(x), py(y));
      else {
        c.moveTo(px(x), py(y));
        if (!isThere(one.points[k + 1])) c.lineTo(px(x) + 1.5, py(y)); // a point alone is seen as well
        open = true;
      }
    });
    c.stroke();
    const last = lasts ? told[i].points.findLast((p) => p[1] !== null) : null;
    const text = lasts ? `${one.name} ${number(last?.[1])}` : one.name;
    c.fillStyle = c.strokeStyle;
    c.textAlign = "right";
    c.fillText(text, end, 11);
    end -= lasts ? 150 : c.measureText(text).width + 14;
  });
}
