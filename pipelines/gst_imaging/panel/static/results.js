// SPDX-License-Identifier: LGPL-2.1-or-later
// The tab of the results: chooses an element and a plot, and has the tools beside it.
import { ARROWS } from "./arrows.js";
import { download } from "./csv.js";
import { h, number, options } from "./dom.js";
import { draw as plot } from "./plot.js";
import { PLOTS } from "./plots.js";
import { Result } from "./result.js";

const SPANS = [["10", "10 s"], ["60", "1 min"], ["300", "5 min"], ["", "all"]];

// The line along the depth at a sample of a view. Where the slices are along y, it is one of the slice there.
export function lineAt(view, [x, y], most) {
  const isRow = view.section.axes[1] === "z";
  const height = isRow ? (view.description?.height ?? 1) : view.source[1];
  return { x, height: Math.min(height, most), cut: isRow ? { ...view.cut, section: "frame", place: y } : view.cut };
}

export class Results {
  #all = new Map();
  #chosen = new Map();
  #dirty = false;
  #line = null;

  // @host: link, numbers (free ones), shown (), elementOf (pad), settings ()
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
    const measures = (e) => e.results || first.includes(e.name);
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

  get #arrows() {
    return ARROWS[this.current?.element.display.arrows];
  }

  #choose() {
    const names = this.current?.element.display.plots ?? ["Plot"];
    options(this.modeMenu, names.map((n) => [n, n]), names.includes(this.modeMenu.value) ? this.modeMenu.value : names[0]);
    this.columns.replaceChildren();
    this.arrowTools.hidden = !this.#arrows;
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
    this.#all.get(element)?.tell(name, fields);
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
    if (!this.#hasLines(view) || this.#plot.uses !== "line" || !view.hover || !view.header) return;
    this.#askLine(view, view.hover);
  }

  // Of en face pictures no axis is the depth.
  #hasLines(view) {
    return this.host.elementOf(view.pad)?.display?.plots.some((name) => PLOTS[name].uses === "line") && !view.pad.endsWith(".enface");
  }

  // Until somebody points at a line it is the middle one of the first view, also where another one has its picture earlier.
  #middleLine() {
    const view = this.host.shown().find((v) => this.#hasLines(v));
    if (view?.header) this.#askLine(view, view.source.map((n) => n >> 1));
  }

  #askLine(view, at) {
    const { x, height, cut } = lineAt(view, at, this.host.settings().values.maximum);
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
    const arrows = this.#arrows;
    for (const view of this.host.shown()) {
      view.overlays = one && arrows && this.arrowBox.checked ? [(c, v) => arrows.over(c, v, one, this.gain.value)] : [];
      view.draw();
    }
    this.draw();
  }

  // What the arrows mean, and their scale.
  #explain(one) {
    this.arrowTools.title = one?.newest ? (this.#arrows?.title ?? "") : "";
    this.scaleText.textContent = one?.newest ? (this.#arrows?.text(one, this.gain.value) ?? "") : "";
  }

  get #plot() {
    return PLOTS[this.modeMenu.value || "Plot"];
  }

  get #tools() {
    return { chosen: [...(this.#chosen.get(this.current.element.name) ?? [])], span: Number(this.spanMenu.value), isLog: this.logBox.checked,
      slider: this.gain.value, line: this.#line?.header };
  }

  #save() {
    const found = this.current && this.#plot.table(this.current, this.#tools);
    if (found) download(`${this.elementMenu.value}-${this.modeMenu.value}.csv`, found.names, found.rows);
  }

  draw() {
    const one = this.current;
    this.#explain(one);
    const { draw, uses } = this.#plot;
    const target = uses === "box" ? this.tableBox : this.canvas;
    for (const part of [this.tableBox, this.canvas]) part.hidden = part !== target;
    this.progress.hidden = one?.progress?.at === undefined || one?.progress?.at === null;
    if (one?.progress?.at) this.progress.value = one.progress.at;
    this.progressText.textContent = one?.progress?.text ?? "";
    for (const part of [this.elementMenu, this.modeMenu, this.csv, this.plotTools]) part.hidden = !one;
    if (!one) {
      this.summary.textContent = "";
      plot(this.canvas, [], { none: "No element of this pipeline measures" });
      return;
    }
    this.#columns(one, uses === "time");
    this.canvas.dataset.points = one.history.length;
    if (uses === "line" && !this.#line) this.#middleLine();
    this.summary.textContent = draw(target, one, this.#tools) ?? this.#firstColumns(one);
  }

  #firstColumns({ newest }) {
    return Object.entries(newest?.summary ?? {}).slice(0, 4).map(([name, value]) => `${name} ${number(value, 4)}`).join("   ");
  }

  #columns(one, areUsed) {
    const name = one.element.name;
    const known = Object.keys(one.newest?.summary ?? {});
    if (!this.#chosen.has(name) && known.length) {
      const first = one.element.display.first.filter((k) => known.includes(k));
      this.#chosen.set(name, new Set(first.length ? first : known.slice(0, 1)));
    }
    this.columns.hidden = this.plotTools.hidden = !areUsed;
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
  }
}
