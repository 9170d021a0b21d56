// SPDX-License-Identifier: LGPL-2.1-or-later
// What is plotted of the results of an element, as a table.
import { named } from "./csv.js";
import { real } from "./dom.js";

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

// What one mode of the results shows; null where nothing is there yet
export function tableOf(one, mode, { chosen, line }) {
  if (mode === "A-scan") return line?.values ? lineOf(line) : null;
  if (mode === "Table") return one.newest ? rowsOf(one.newest) : null;
  if (mode === "Plot") return { names: ["time (s)", ...chosen],
    rows: one.history.map((p) => [p.time, ...chosen.map((n) => p.summary[n] ?? null)]) };
  if (mode === "Field of offsets") return { names: ["x", "dx", "y", "dy", "snr"], rows: one.offsets().field };
  return { names: ["row", "column", "x", "y", "dx", "dy"],
    rows: one.cells().map((s) => [s.row, s.column, s.x, s.y, s.valid ? s.dx : null, s.valid ? s.dy : null]) };
}
