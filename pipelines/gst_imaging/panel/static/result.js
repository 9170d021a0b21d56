// SPDX-License-Identifier: LGPL-2.1-or-later
// What an element has measured: its newest results, and a history to plot.
import { number } from "./dom.js";

const KEPT = 6000; // points of a plot: ten minutes
const HALF_LIFE = 1; // seconds: the longest arrow that was seen counts half after that

function column(message, name) {
  const i = message.fields.indexOf(name);
  if (i < 0) return null;
  return message["by-field"] ? message.values[i] : message.values.map((row) => row[i]);
}

// Of a point of the history: value, or mean, minimum and maximum
export function valuesOf({ summary, between }, name) {
  return between?.mean[name] === undefined ? [summary[name] ?? null] : [between.mean[name], between.minimum[name], between.maximum[name]];
}

export class Result {
  constructor(element, isCounted) {
    this.element = element;
    this.isCounted = isCounted;
    this.history = [];
    this.newest = null;
    this.progress = null;
    this.field = [];
  }

  // now: seconds of any clock
  add(message, now = performance.now() / 1000) {
    this.newest = message;
    if (message.field) this.field = message.field; // of this pass alone
    const time = message.pts === null ? (message.frame ?? this.history.length) : message.pts / 1e9;
    const last = this.history.at(-1);
    if (last && last.time === time) this.history.pop();
    if (last && time < last.time) this.history.length = 0; // a loop began anew, or a seek
    else if (last && this.#isGap) this.history.push({ time: (last.time + time) / 2, summary: {} });
    this.#isGap = message.age !== undefined; // from before anybody looked
    this.#stretch(now);
    const between = message.between?.frames > 1 ? message.between : null; // of one frame they are all the same
    this.history.push({ time, summary: message.summary ?? {}, between });
    if (this.history.length > KEPT) this.history.shift();
  }

  #isGap = false;
  #seen = 0;

  // An element message
  tell(name, fields) {
    const [message, text, at, of] = this.element.display.progress ?? [];
    if (name === message) this.progress = { at: fields[of] ? fields[at] / fields[of] : null,
      text: text.replaceAll(/{([\w-]+)}/g, (_, field) => number(fields[field], 3)) };
  }

  // Nobody has seen what is measured until the next message.
  miss() {
    this.#isGap = true;
  }

  // The longest arrow of a while: it does not jump with each frame, and does not stay when the slopes are short again.
  #stretch(now) {
    const top = Math.max(0.1, ...this.cells().filter((s) => s.valid).map((s) => Math.hypot(s.dx, s.dy)));
    this.longest = Math.max(top, (this.longest ?? 0) * 0.5 ** ((now - this.#seen) / HALF_LIFE));
    this.#seen = now;
  }

  // Points of a plot: time and value; where several frames were measured since the point before, their mean, minimum and maximum. span: seconds, or null for all
  points(name, span) {
    const begin = span && this.history.length ? this.history.at(-1).time - span : -Infinity;
    return this.history.filter((p) => p.time >= begin).map((p) => [p.time, ...valuesOf(p, name)]);
  }

  // Rows of x, dx, y, dy, snr of a field; their mean; and the longest one without it.
  offsets() {
    const field = this.field.filter((r) => r.every(Number.isFinite));
    const means = [1, 3].map((k) => field.reduce((sum, r) => sum + r[k], 0) / Math.max(field.length, 1));
    return { field, means, longest: Math.max(1e-12, ...field.map((r) => Math.hypot(r[1] - means[0], r[3] - means[1]))) };
  }

  // Cells with slopes: x, y of the reference, dx, dy, valid, row, column.
  cells() {
    const m = this.newest;
    const [dx, dy] = m ? [column(m, "dx"), column(m, "dy")] : [null, null];
    if (!dx || !m.cells) return [];
    return m.cells.map((cell, i) => {
      const [row, at] = m["row-column"]?.[i] ?? [0, i];
      const valid = Number.isFinite(dx[i]) && Number.isFinite(dy[i]) && !((m.flags?.[i] ?? 0) & this.element.display.invalid);
      return { x: cell[4], y: cell[5], dx: dx[i], dy: dy[i], valid, row, column: at };
    });
  }

  // Of these cells: columns, rows, and the pitch, the middle of the distances of neighbours.
  grid() {
    const cells = this.cells();
    const places = new Map(cells.map((s) => [`${s.row} ${s.column}`, s]));
    const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1] ?? null;
    const gaps = (dr, dc, axis) => cells.flatMap((s) => {
      const next = places.get(`${s.row + dr} ${s.column + dc}`);
      return next ? [next[axis] - s[axis]] : [];
    });
    const span = (name) => (cells.length ? 1 + Math.max(...cells.map((s) => s[name])) : 0);
    return { columns: span("column"), rows: span("row"), pitchX: middle(gaps(0, 1, "x")), pitchY: middle(gaps(1, 0, "y")) };
  }
}
