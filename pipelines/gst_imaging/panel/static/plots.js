// SPDX-License-Identifier: LGPL-2.1-or-later
// The plots of results. Which of them an element has is said in panel/kinds.py.
import { draw as arrows, gainOf, offsets } from "./arrows.js";
import * as colours from "./colours.js";
import { named } from "./csv.js";
import { colour, h, number, prepare, real } from "./dom.js";
import { draw as plot } from "./plot.js";
import { valuesOf } from "./result.js";

// Names and rows of a message of results
export function rowsOf(message) {
  const names = message.fields.map((f, i) => named(f, message.unit?.[i]));
  const rows = message["by-field"] ? (message.values[0] ?? []).map((_, i) => message.values.map((v) => v[i])) : message.values;
  return { names, rows };
}

// The samples of a line of a view, over their axis
export function lineOf(header) {
  const [q, axis] = [header.quantity, header.axes?.[1]];
  return {
    names: [axis ? named(axis.name, axis.unit) : "row", named(q?.name ?? "sample", q?.unit)],
    rows: header.values.samples.map(([s], i) => [axis ? axis.origin + axis.step * i : i, s === null ? null : real(q, s)]),
  };
}

function overTime(canvas, one, { chosen, span, isLog }) {
  plot(canvas, chosen.map((name) => ({ name, points: one.points(name, span) })),
    { xLabel: "s", isLog, none: one.history.length ? "" : one.element.display.none });
  return "";
}

// Where several frames were measured between two points, each column has its mean, minimum and maximum.
function timeTable(one, { chosen }) {
  const several = one.history.some((p) => p.between);
  return { names: ["time (s)", ...chosen.flatMap((n) => (several ? [`${n} mean`, `${n} minimum`, `${n} maximum`] : [n]))],
    rows: one.history.map((p) => [p.time, ...chosen.flatMap((n) => {
      const [value, low = value, high = value] = valuesOf(p, n);
      return several ? [value, low, high] : [value];
    })]) };
}

function table(box, { newest: m }) {
  if (!m) return box.replaceChildren("No results yet");
  const units = m.unit ?? [];
  const { rows } = rowsOf(m);
  box.replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"),
    ...m.fields.map((f, i) => h("th", { scope: "col" }, f, h("small", {}, units[i] ? ` ${units[i]}` : ""))))),
    h("tbody", {}, ...rows.slice(0, 200).map((row, i) => h("tr", {}, h("th", { scope: "row" }, String(i)),
      ...row.map((v) => h("td", {}, number(v))))))));
  if (rows.length > 200) box.append(h("p", {}, `The first 200 of ${m.rows} rows`));
}

function ascan(canvas, _one, { line }) {
  if (!line?.values) {
    plot(canvas, [], { none: "" });
    return "Point at a line of the B-scan, or focus it and press Alt and an arrow key";
  }
  const { names, rows: points } = lineOf(line);
  canvas.dataset.line = line.crop[0];
  plot(canvas, [{ name: line.quantity?.name ?? "sample", points }], { xLabel: names[0], yLabel: line.quantity?.unit ?? "" });
  return `Line ${line.crop[0]}`;
}

function map(canvas, one, value, isSigned) {
  const c = prepare(canvas);
  const cells = one.cells();
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!cells.length) return plot(canvas, []);
  const good = cells.filter((s) => s.valid);
  const top = Math.max(1e-12, ...good.map((s) => Math.abs(value(s))));
  const [rows, columns] = [1 + Math.max(...cells.map((s) => s.row)), 1 + Math.max(...cells.map((s) => s.column))];
  const size = Math.min((width - 120) / columns, (height - 8) / rows);
  const left = (width - 80 - size * columns) / 2;
  const knots = colours.table(isSigned ? "blue-red" : "viridis");
  for (const s of cells) {
    const part = isSigned ? (value(s) / top + 1) / 2 : value(s) / top;
    c.fillStyle = s.valid ? knots[Math.round(255 * part)] : colour("--border");
    c.fillRect(left + s.column * size, 4 + s.row * size, size - 0.5, size - 0.5);
  }
  for (let i = 0; i < 100; i++) {
    c.fillStyle = knots[Math.round(255 - i * 2.55)];
    c.fillRect(width - 70, 8 + (i * (height - 16)) / 100, 10, (height - 16) / 100 + 1);
  }
  c.fillStyle = colour("--muted");
  c.font = "11px system-ui, sans-serif";
  c.textAlign = "left";
  c.fillText(number(top, 3), width - 55, 16);
  c.fillText(number(isSigned ? -top : 0, 3), width - 55, height - 8);
  const unit = one.newest.unit?.[one.newest.fields.indexOf("dx")] ?? "px";
  c.fillText(unit, width - 55, height / 2);
}

function field(canvas, one, { slider }) {
  const c = prepare(canvas);
  const found = one.offsets();
  const { field: rows, means, longest } = found;
  if (!rows.length) return plot(canvas, []);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [xs, ys] = [rows.map((r) => r[0]), rows.map((r) => r[2])];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((width - 160) / (x1 - x0 || 1), (height - 30) / (y1 - y0 || 1));
  const gain = (gainOf(slider) * 3) / (scale * longest);
  const at = { point: ([x, y]) => [20 + (x - x0) * scale, 15 + (y - y0) * scale] };
  arrows(c, at, offsets(found), gain);
  c.fillStyle = colour("--muted");
  c.font = "11px system-ui, sans-serif";
  c.textAlign = "right";
  const { missed } = one.newest.summary ?? {};
  c.fillText(`${rows.length} patches, without the mean${missed ? `, ${missed} rows missed` : ""}`, width - 8, 14);
  c.fillText(`(${number(means[0], 4)}, ${number(means[1], 4)}) pixels`, width - 8, 30);
  c.fillText(`longest ${number(longest, 3)} pixels`, width - 8, 46);
}

function mapOf(value, isSigned) {
  return {
    draw: (canvas, one) => map(canvas, one, value, isSigned),
    table: (one) => ({ names: ["row", "column", "x", "y", "dx", "dy"],
      rows: one.cells().map((s) => [s.row, s.column, s.x, s.y, s.valid ? s.dx : null, s.valid ? s.dy : null]) }),
  };
}

// @draw (canvas, one, tools): a Result as it is now; returns the text beside it, nothing for the first columns.
// @table (one, tools): what is drawn as names and rows; null where nothing is there yet.
// tools: what is chosen beside it: chosen (columns), span (seconds), isLog, slider (of the arrows), line (header of the A-scan).
// @uses: "time" (chosen, span, isLog), "line", "box" (it is drawn into an element instead of a canvas)
export const PLOTS = {
  Plot: { draw: overTime, uses: "time", table: timeTable },
  Table: { draw: table, uses: "box", table: (one) => (one.newest ? rowsOf(one.newest) : null) },
  "A-scan": { draw: ascan, uses: "line", table: (_one, { line }) => (line?.values ? lineOf(line) : null) },
  "Map of |slope|": mapOf((s) => Math.hypot(s.dx, s.dy), false),
  "Map of dx": mapOf((s) => s.dx, true),
  "Map of dy": mapOf((s) => s.dy, true),
  "Field of offsets": { draw: field, table: (one) => ({ names: ["x", "dx", "y", "dy", "snr"], rows: one.offsets().field }) },
};
