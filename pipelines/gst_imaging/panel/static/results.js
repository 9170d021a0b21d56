// SPDX-License-Identifier: LGPL-2.1-or-later
// Results of the elements: plots over time, maps, fields of arrows, the A-scan of a line, tables.
import * as colours from "./colours.js";
import { download } from "./csv.js";
import { colour, h, number, options, prepare } from "./dom.js";
import { draw as plot } from "./plot.js";
import { lineOf, rowsOf, tableOf } from "./table.js";

const KEPT = 6000; // points of a plot: ten minutes
const SPANS = [["10", "10 s"], ["60", "1 min"], ["300", "5 min"], ["", "all"]];
const HALF_LIFE = 1; // seconds: the longest arrow that was seen counts half after that
const INVALID = 227; // flags of a cell without a centroid, docs/reference/metadata.md
const SATURATED = 4; // the flag of a cell with saturated pixels
const MODES = {
  octbscan: ["A-scan", "Plot", "Table"],
  shcentroid: ["Plot", "Map of |slope|", "Map of dx", "Map of dy", "Table"],
  insarxcorr: ["Field of offsets", "Plot", "Table"],
};
export const VALUES = { "Map of |slope|": (s) => Math.hypot(s.dx, s.dy), "Map of dx": (s) => s.dx,
  "Map of dy": (s) => s.dy }; // of the maps
const FIRST = { shcentroid: ["rms"], lapsharpen: ["variance"], photostereo: ["mean-residual", "change"],
  insarxcorr: ["mean-dx", "mean-dy"] };

function column(message, name) {
  const i = message.fields.indexOf(name);
  if (i < 0) return null;
  return message["by-field"] ? message.values[i] : message.values.map((row) => row[i]);
}

// Draws each arrow from (x, y) by (dx, dy) * gain, in samples of the view.
function arrows(c, view, list, gain) {
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
    // the flags of all cells, or no count
    if (this.element.element === "shcentroid" && message.summary && message.flags && !message.truncated)
      message.summary.saturated = message.flags.filter((f) => f & SATURATED).length;
    if (message.field) this.field = message.field; // of this pass alone
    const time = message.pts === null ? (message.frame ?? this.history.length) : message.pts / 1e9;
    const last = this.history.at(-1);
    if (last && last.time === time) this.history.pop();
    if (last && time < last.time) this.history.length = 0; // a loop began anew, or a seek
    else if (last && this.#isGap) this.history.push({ time: (last.time + time) / 2, summary: {} });
    this.#isGap = message.age !== undefined; // from before anybody looked
    this.#stretch(now);
    this.history.push({ time, summary: message.summary ?? {} });
    if (this.history.length > KEPT) this.history.shift();
  }

  #isGap = false;
  #seen = 0;

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

  // Points of a plot: seconds, or null for all
  points(name, span) {
    const begin = span && this.history.length ? this.history.at(-1).time - span : -Infinity;
    return this.history.filter((p) => p.time >= begin).map((p) => [p.time, p.summary[name] ?? null]);
  }

  // Offsets of insarxcorr: rows of x, dx, y, dy, snr; their mean; and the longest one without it.
  offsets() {
    const field = this.field.filter((r) => r.every(Number.isFinite));
    const means = [1, 3].map((k) => field.reduce((sum, r) => sum + r[k], 0) / Math.max(field.length, 1));
    return { field, means, longest: Math.max(1e-12, ...field.map((r) => Math.hypot(r[1] - means[0], r[3] - means[1]))) };
  }

  // Cells of shcentroid: x, y of the reference, dx, dy, valid, row, column.
  cells() {
    const m = this.newest;
    const [dx, dy] = m ? [column(m, "dx"), column(m, "dy")] : [null, null];
    if (!dx || !m.cells) return [];
    return m.cells.map((cell, i) => {
      const [row, at] = m["row-column"]?.[i] ?? [0, i];
      const valid = Number.isFinite(dx[i]) && Number.isFinite(dy[i]) && !((m.flags?.[i] ?? 0) & INVALID);
      return { x: cell[4], y: cell[5], dx: dx[i], dy: dy[i], valid, row, column: at };
    });
  }

  // Of cells of shcentroid: columns, rows, and the pitch, the middle of the distances of neighbours.
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

// The line of spectra at a sample of a view of octbscan. Where the slices are along y, it is one of the slice there.
export function lineAt(view, [x, y]) {
  const isRow = ["row", "max-row"].includes(view.settings.section);
  const height = isRow ? (view.description?.height ?? 1) : view.source[1];
  return { x, height: Math.min(height, 16384), cut: isRow ? { ...view.cut, section: "frame", place: y } : view.cut };
}

export class Results {
  #all = new Map();
  #chosen = new Map();
  #dirty = false;
  #line = null;

  // @host: link, views of the page (shown ()), newView (pad)
  constructor(host, root) {
    this.host = host;
    this.elementMenu = h("select", { "aria-label": "Element with results", onchange: () => this.#choose() });
    this.modeMenu = h("select", { "aria-label": "Kind of display", onchange: () => this.draw() });
    this.spanMenu = h("select", { "aria-label": "Span of time of the plot", onchange: () => this.draw() });
    options(this.spanMenu, SPANS, "60");
    this.logBox = h("input", { type: "checkbox", id: "log", onchange: () => this.draw() });
    this.plotTools = h("span", { class: "tools" }, this.spanMenu, h("label", { for: "log", title: "Logarithmic axis: of positive values" },
      this.logBox, "log"));
    this.columns = h("div", { class: "columns", role: "group", "aria-label": "Columns of the plot" });
    this.gain = h("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Length of the arrows",
      oninput: () => this.#views() });
    this.scaleText = h("output", { class: "summary" });
    this.arrowBox = h("input", { type: "checkbox", id: "arrows", checked: true, onchange: () => this.#views() });
    this.arrowTools = h("span", { class: "tools", hidden: true }, h("label", { for: "arrows" }, this.arrowBox, "Arrows"), this.gain,
      this.scaleText);
    this.progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress" });
    this.progressText = h("output", { class: "progress-text" });
    this.summary = h("output", { class: "summary", "aria-live": "off" });
    this.canvas = h("canvas", { role: "img", "aria-label": "Plot of the results" });
    this.tableBox = h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table of the results", hidden: true });
    this.csv = h("button", { type: "button", title: "Save what is plotted as CSV", onclick: () => this.#save() }, "CSV");
    root.replaceChildren(h("div", { class: "bar" }, this.elementMenu, this.modeMenu, this.csv, this.plotTools, this.columns, this.arrowTools, this.progress,
      this.progressText, this.summary), this.canvas, this.tableBox);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  show(elements, layout) {
    const first = layout?.results ?? [];
    const measures = (e) => e.results || e.element === "octbscan" || first.includes(e.name);
    const some = elements.filter((e) => e.ours && (measures(e) || e.properties.some((p) => p.name === "backend")));
    some.sort((a, b) => Boolean(measures(b)) - Boolean(measures(a)));
    some.sort((a, b) => first.includes(b.name) - first.includes(a.name));
    for (const e of some) if (this.#all.get(e.name)?.element.element !== e.element) this.#all.set(e.name, new Result(e, !measures(e)));
    options(this.elementMenu, some.map((e) => [e.name, e.name, e.title]),
      some.some((e) => e.name === this.elementMenu.value) ? this.elementMenu.value : some[0]?.name);
    for (const e of some.filter(measures)) this.host.link.ask("follow", { element: e.name, follow: true }).catch(() => {});
    this.#choose();
  }

  get current() {
    return this.#all.get(this.elementMenu.value);
  }

  #choose() {
    const kind = this.current?.element.element;
    const names = kind ? (MODES[kind] ?? ["Plot", "Table"]) : ["Plot"];
    options(this.modeMenu, names.map((n) => [n, n]), names.includes(this.modeMenu.value) ? this.modeMenu.value : names[0]);
    this.columns.replaceChildren();
    this.arrowTools.hidden = kind !== "shcentroid" && kind !== "insarxcorr";
    this.#views();
    this.draw();
  }

  results(message) {
    const one = this.#all.get(message.element);
    if (!one) return;
    one.add(message);
    this.#later();
  }

  // Elements that measure nothing else have their times and counts.
  health({ time, elements }) {
    for (const { name, element, backend, ...counts } of elements ?? []) {
      const one = this.#all.get(name);
      if (!one?.isCounted) continue;
      const fields = Object.keys(counts);
      one.add({ pts: time * 1e9, summary: counts, fields, values: [Object.values(counts)], rows: 1,
        unit: fields.map((f) => (f.startsWith("time") ? "us" : f.startsWith("bytes") ? "bytes" : "")) });
    }
    this.#later();
  }

  event({ element, name, fields }) {
    const one = this.#all.get(element);
    if (!one) return;
    if (name === "insarxcorr-progress" && fields.of) one.progress = { at: fields.rows / fields.of,
      text: `${fields.rows} of ${fields.of} rows` };
    else if (name === "photostereo-progress") one.progress = { at: null,
      text: `${number(fields.lights)} lights, residual ${number(fields["mean-residual"], 3)}` };
    this.#later();
  }

  // Results arrive faster than a screen is read.
  #later() {
    if (this.#dirty) return;
    this.#dirty = true;
    setTimeout(() => {
      this.#dirty = false;
      this.draw();
      for (const view of this.host.shown()) if (view.overlays.length) view.draw();
    }, 100);
  }

  // The A-scan under the mouse: the samples of the column, from a view of their own.
  hovered(view) {
    if (!this.#hasLines(view) || this.modeMenu.value !== "A-scan" || !view.hover || !view.header) return;
    this.#askLine(view, view.hover);
  }

  // Of en face pictures no axis is the depth.
  #hasLines(view) {
    return this.host.elementOf(view.pad)?.element === "octbscan" && !view.pad.endsWith(".enface");
  }

  // Until somebody points at a line it is the middle one of the first view, also where another one has its picture earlier.
  #middleLine() {
    const view = this.host.shown().find((v) => this.#hasLines(v));
    if (view?.header) this.#askLine(view, view.source.map((n) => n >> 1));
  }

  #askLine(view, at) {
    const { x, height, cut } = lineAt(view, at);
    this.#line ??= { number: this.host.numbers.pop() };
    const wanted = { view: this.#line.number, pad: view.pad, rate: 10, width: 16, height: 64, crop: [x, 0, 1, height], values: [x, 0, 1, height], ...cut };
    if (this.#line.wanted === JSON.stringify(wanted)) return;
    this.#line.wanted = JSON.stringify(wanted);
    this.host.link.ask("view", wanted).catch(() => {});
  }

  // A new connection knows none of the views.
  reset() {
    if (this.#line) this.host.numbers.push(this.#line.number);
    this.#line = null;
    for (const one of this.#all.values()) one.miss();
  }

  // Takes pictures of its own view.
  picture(header) {
    if (header.view !== this.#line?.number) return false;
    this.#line.header = header;
    this.host.link.send("seen", { view: header.view });
    this.#later();
    return true;
  }

  #views() {
    const one = this.current;
    const gain = 10 ** ((this.gain.value - 10) / 33);
    for (const view of this.host.shown()) {
      view.overlays = [];
      if (!one || !this.arrowBox.checked) continue;
      const kind = one.element.element;
      if (kind === "insarxcorr") view.overlays.push((c, v) => {
        const { field, means, longest } = one.offsets();
        const [width, height] = v.source;
        // they are of the reference; a gap as long as the longest arrow is the middle of the slider
        if (field.length && field.every(([x, , y]) => x < width && y < height)) arrows(c, v,
          field.map(([x, dx, y, dy]) => [x, y, dx - means[0], dy - means[1]]), (gain * 2) / longest);
      });
      if (kind === "shcentroid") view.overlays.push((c, v) => {
        const width = one.newest?.["ref-width"];
        if (width && v.source[0] === width) arrows(c, v, one.cells().filter((s) => s.valid).map((s) => [s.x, s.y, s.dx, s.dy]),
          this.#stretch(one));
      });
      view.draw();
    }
    this.draw();
  }

  // Pixels of the picture for each pixel of slope. At the middle of the slider the longest arrow of the last seconds is half the pitch.
  #stretch(one) {
    const { pitchX, pitchY } = one.grid();
    return (10 ** ((this.gain.value - 50) / 50) * 0.5 * Math.min(pitchX ?? 20, pitchY ?? pitchX ?? 20)) / one.longest;
  }

  // What the arrows mean, and the grid of the cells.
  #explain(one) {
    this.arrowTools.title = "";
    this.scaleText.textContent = "";
    const kind = one?.element.element;
    if (kind === "insarxcorr") this.arrowTools.title = "Arrows are offsets without their mean";
    if (kind !== "shcentroid" || !one.newest) return;
    const { columns, rows, pitchX, pitchY } = one.grid();
    this.scaleText.textContent = `1 px of slope is ${number(this.#stretch(one), 2)} px; ${columns} × ${rows} cells, pitch ${number(pitchX, 4)} × ${number(pitchY, 4)} px`;
    this.arrowTools.title = "Slopes count from the reference: until one is set, the places of the spots in the first frame."
      + " The action capture-reference makes the places of now the zero.";
  }

  #tabled() {
    const one = this.current;
    return one ? tableOf(one, this.modeMenu.value, { chosen: [...(this.#chosen.get(one.element.name) ?? [])], line: this.#line?.header }) : null;
  }

  #save() {
    const found = this.#tabled();
    if (found) download(`${this.elementMenu.value}-${this.modeMenu.value}.csv`, found.names, found.rows);
  }

  draw() {
    const one = this.current;
    this.#explain(one);
    const mode = this.modeMenu.value;
    this.tableBox.hidden = mode !== "Table";
    this.canvas.hidden = mode === "Table";
    this.progress.hidden = one?.progress?.at === undefined || one?.progress?.at === null;
    if (one?.progress?.at) this.progress.value = one.progress.at;
    this.progressText.textContent = one?.progress?.text ?? "";
    for (const part of [this.elementMenu, this.modeMenu, this.csv, this.plotTools]) part.hidden = !one;
    if (!one) {
      this.summary.textContent = "";
      plot(this.canvas, [], { none: "No element of this pipeline measures" });
      return;
    }
    this.#columns(one);
    this.canvas.dataset.points = one.history.length;
    this.#draws[mode](one, mode);
  }

  #draws = {
    Plot: (one) => {
      const names = [...(this.#chosen.get(one.element.name) ?? [])];
      plot(this.canvas, names.map((name) => ({ name, points: one.points(name, Number(this.spanMenu.value)) })),
        { xLabel: "s", isLog: this.logBox.checked, none: one.history.length ? "" : "This element has measured nothing yet" });
    },
    Table: (one) => this.#table(one),
    "A-scan": () => this.#ascan(),
    "Field of offsets": (one) => this.#field(one),
    ...Object.fromEntries(Object.keys(VALUES).map((mode) => [mode, (one) => this.#map(one, mode)])),
  };

  #columns(one) {
    const name = one.element.name;
    const known = Object.keys(one.newest?.summary ?? {});
    if (!this.#chosen.has(name) && known.length) this.#chosen.set(name,
      new Set((FIRST[one.element.element] ?? (one.isCounted ? ["time-p50", "time-p99"] : known.slice(0,
      1))).filter((k) => known.includes(k))));
    this.columns.hidden = this.plotTools.hidden = this.modeMenu.value !== "Plot";
    const chosen = this.#chosen.get(name);
    const text = known.join();
    if (this.columns.dataset.names !== name + text) {
      this.columns.dataset.names = name + text;
      this.columns.replaceChildren(...known.map((k) => h("label", {},
        h("input", { type: "checkbox", checked: chosen.has(k), onchange: (event) => {
        if (event.target.checked) chosen.add(k);
        else chosen.delete(k);
        this.draw();
      } }), k)));
    }
    const s = one.newest?.summary ?? {};
    this.summary.textContent = known.length && this.modeMenu.value !== "Plot" ? known.slice(0,
      4).map((k) => `${k} ${number(s[k], 4)}`).join("   ") : "";
  }

  #table(one) {
    const m = one.newest;
    if (!m) return this.tableBox.replaceChildren("No results yet");
    const units = m.unit ?? [];
    const { rows } = rowsOf(m);
    this.tableBox.replaceChildren(h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"),
      ...m.fields.map((f, i) => h("th", { scope: "col" }, f, h("small", {}, units[i] ? ` ${units[i]}` : ""))))),
      h("tbody", {}, ...rows.slice(0, 200).map((row, i) => h("tr", {}, h("th", { scope: "row" }, String(i)),
        ...row.map((v) => h("td", {}, number(v))))))));
    if (rows.length > 200) this.tableBox.append(h("p", {}, `The first 200 of ${m.rows} rows`));
  }

  #ascan() {
    const line = this.#line;
    const header = line?.header;
    if (!line) this.#middleLine();
    if (!header?.values) {
      plot(this.canvas, [], { none: "" });
      this.summary.textContent = "Point at a line of the B-scan, or focus it and press Alt and an arrow key";
      return;
    }
    const { names, rows: points } = lineOf(header);
    this.summary.textContent = `Line ${header.crop[0]}`;
    this.canvas.dataset.line = header.crop[0];
    plot(this.canvas, [{ name: header.quantity?.name ?? "sample", points }], { xLabel: names[0], yLabel: header.quantity?.unit ?? "" });
  }

  #map(one, mode) {
    const c = prepare(this.canvas);
    const cells = one.cells();
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!cells.length) return plot(this.canvas, []);
    const value = VALUES[mode];
    const signed = mode !== "Map of |slope|";
    const good = cells.filter((s) => s.valid);
    const top = Math.max(1e-12, ...good.map((s) => Math.abs(value(s))));
    const [rows, columns] = [1 + Math.max(...cells.map((s) => s.row)), 1 + Math.max(...cells.map((s) => s.column))];
    const size = Math.min((width - 120) / columns, (height - 8) / rows);
    const left = (width - 80 - size * columns) / 2;
    const map = colours.table(signed ? "blue-red" : "viridis");
    for (const s of cells) {
      c.fillStyle = s.valid ? colours.css(colours.lookup(map, value(s), signed ? -top : 0, top)) : colour("--border");
      c.fillRect(left + s.column * size, 4 + s.row * size, size - 0.5, size - 0.5);
    }
    for (let i = 0; i < 100; i++) {
      c.fillStyle = colours.css(map[Math.round(255 - i * 2.55)]);
      c.fillRect(width - 70, 8 + (i * (height - 16)) / 100, 10, (height - 16) / 100 + 1);
    }
    c.fillStyle = colour("--muted");
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "left";
    c.fillText(number(top, 3), width - 55, 16);
    c.fillText(number(signed ? -top : 0, 3), width - 55, height - 8);
    const unit = one.newest.unit?.[one.newest.fields.indexOf("dx")] ?? "px";
    c.fillText(unit, width - 55, height / 2);
  }

  #field(one) {
    const c = prepare(this.canvas);
    const { field, means, longest } = one.offsets();
    if (!field.length) return plot(this.canvas, []);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const [xs, ys] = [field.map((r) => r[0]), field.map((r) => r[2])];
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = Math.min((width - 160) / (x1 - x0 || 1), (height - 30) / (y1 - y0 || 1));
    const gain = (10 ** ((this.gain.value - 10) / 33) * 3) / (scale * longest);
    const at = { point: ([x, y]) => [20 + (x - x0) * scale, 15 + (y - y0) * scale] };
    arrows(c, at, field.map((r) => [r[0], r[2], r[1] - means[0], r[3] - means[1]]), gain);
    c.fillStyle = colour("--muted");
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "right";
    const { missed } = one.newest.summary ?? {};
    c.fillText(`${field.length} patches, without the mean${missed ? `, ${missed} rows missed` : ""}`, width - 8, 14);
    c.fillText(`(${number(means[0], 4)}, ${number(means[1], 4)}) pixels`, width - 8, 30);
    c.fillText(`longest ${number(longest, 3)} pixels`, width - 8, 46);
  }
}
