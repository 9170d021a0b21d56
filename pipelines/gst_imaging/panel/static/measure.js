// SPDX-License-Identifier: LGPL-2.1-or-later
// The tab with the profile and the histogram of one view, from the true samples that the server measures.
import { download, named } from "./csv.js";
import { h, number, options, real } from "./dom.js";
import { draw as plot } from "./plot.js";

const BINS = 256;
const PROFILES = [["row", "Row", "The row of the cursor"], ["column", "Column", "The column of the cursor"], ["line", "Line", "A line that you draw"]];
const REGIONS = [["frame", "Frame", "All of the frame"], ["region", "Region", "A part that you draw"]];

// The names of the channels of a picture: components, or the quantity, with the unit
export function channels(header) {
  const unit = header.quantity?.unit ?? "";
  const name = header.quantity?.name ?? "sample";
  if (header.channels === 1) return [named(name, unit)];
  return Array.from({ length: header.channels }, (_, i) => named(header.components?.[i] ?? `${name} ${i}`, unit));
}

// Rows of x, y in samples, their places on the axes, where there are any, and the values.
export function profileTable(header) {
  const [x0, y0, x1, y1] = header.profile.line;
  const { samples } = header.profile;
  const axes = header.axes?.every(Boolean) ? header.axes : null;
  const names = ["x", "y", ...(axes?.map((a) => named(a.name, a.unit)) ?? []), ...channels(header)];
  const rows = samples.map((sample, i) => {
    const part = samples.length > 1 ? i / (samples.length - 1) : 0;
    const place = [Math.round(x0 + part * (x1 - x0)), Math.round(y0 + part * (y1 - y0))];
    const values = [sample].flat().map((s) => (s === null ? null : real(header.quantity, s)));
    return [...place, ...(axes?.map((a, k) => a.origin + a.step * place[k]) ?? []), ...values];
  });
  return { names, rows };
}

// Rows of the ends of a bin and the counts of the channels in it
export function histogramTable(header) {
  const { low, step, channels: all } = header.statistics;
  const unit = header.quantity?.unit ?? "";
  const names = [named("from", unit), named("to", unit), ...channels(header).map((n) => `count of ${n}`)];
  const at = (i) => real(header.quantity, low + i * step);
  const rows = (all[0]?.counts ?? []).map((_, i) => [at(i), at(i + 1), ...all.map((c) => c.counts[i])]);
  return { names, rows };
}

// The place of a row of a profile, for the plot: along the axis that it follows, else pixels from its beginning.
function along(header, row) {
  const [x0, y0, x1, y1] = header.profile.line;
  const axis = y0 === y1 ? 0 : x0 === x1 ? 1 : -1;
  const known = header.axes?.every(Boolean);
  if (axis >= 0) return known ? row[2 + axis] : row[axis];
  return Math.hypot(row[0] - x0, row[1] - y0);
}

function alongLabel(header) {
  const [x0, y0, x1, y1] = header.profile.line;
  const axis = y0 === y1 ? 0 : x0 === x1 ? 1 : -1;
  if (axis < 0) return "pixel from the first point";
  const a = header.axes?.every(Boolean) ? header.axes[axis] : null;
  return a ? named(a.name, a.unit) : ["x (pixel)", "y (pixel)"][axis];
}

export class Measure {
  tool = null; // what a drag in a picture draws: "line", "region"
  #view = null;
  #dirty = false;

  // @host: shown ()
  constructor(host, root) {
    this.host = host;
    this.root = root;
    this.viewMenu = h("select", { "aria-label": "View that is measured", onchange: () => this.choose(host.shown()[this.viewMenu.value]) });
    this.profileMenu = h("select", { "aria-label": "Profile", onchange: () => this.#arm("line", this.profileMenu) });
    options(this.profileMenu, PROFILES, "row");
    this.regionMenu = h("select", { "aria-label": "Region of the histogram", onchange: () => this.#arm("region", this.regionMenu) });
    options(this.regionMenu, REGIONS, "frame");
    this.drawLine = this.#button("Draw line", "Drag in the picture (p at both ends)", () => this.#toggle("line"));
    this.drawRegion = this.#button("Draw region", "Drag in the picture (b at two corners)", () => this.#toggle("region"));
    this.profileCanvas = h("canvas", { role: "img", "aria-label": "Plot of the profile" });
    this.histogramCanvas = h("canvas", { role: "img", "aria-label": "Plot of the histogram" });
    this.statistics = h("output", { class: "statistics", "aria-live": "off" });
    root.replaceChildren(
      h("div", { class: "half" }, h("div", { class: "bar" }, this.viewMenu, this.profileMenu, this.drawLine,
        this.#button("CSV", "Save the profile as CSV", () => this.#save("profile", profileTable))), this.profileCanvas),
      h("div", { class: "half" }, h("div", { class: "bar" }, this.regionMenu, this.drawRegion,
        this.#button("CSV", "Save the histogram as CSV", () => this.#save("statistics", histogramTable)), this.statistics), this.histogramCanvas));
    new ResizeObserver(() => this.draw()).observe(this.profileCanvas);
  }

  #button(text, title, action) {
    return h("button", { type: "button", title, onclick: action }, text);
  }

  get view() {
    return this.host.shown().includes(this.#view) ? this.#view : this.host.shown()[0];
  }

  choose(view) {
    this.#view = view;
    this.update();
  }

  #toggle(tool) {
    this.tool = this.tool === tool ? null : tool;
    this.update();
  }

  // A line or a region that is not there yet is drawn next.
  #arm(tool, menu) {
    if (menu.value !== tool) this.tool = this.tool === tool ? null : this.tool;
    else if (this.view && !this.view[tool]) this.tool = tool;
    this.update();
  }

  // A line or a region was drawn, by keys where no tool is on.
  drawn(view, tool = this.tool) {
    this.tool = null;
    if (tool === "line" && view.line) this.profileMenu.value = "line";
    if (tool === "region" && view.region) this.regionMenu.value = "region";
    this.choose(view);
  }

  // What the view has to ask the server for; nothing while the tab is closed.
  #wanted(view) {
    const [width, height] = view.source;
    const [x, y] = view.cursor ?? [width >> 1, height >> 1];
    const profile = { row: [0, y, width - 1, y], column: [x, 0, x, height - 1], line: view.line }[this.profileMenu.value];
    return { profile, histogram: BINS, region: this.regionMenu.value === "region" ? view.region : null };
  }

  update() {
    const shown = this.host.shown();
    options(this.viewMenu, shown.map((v, i) => [String(i), `${i + 1}: ${v.pad}`]), String(shown.indexOf(this.view)));
    for (const [button, tool] of [[this.drawLine, "line"], [this.drawRegion, "region"]]) button.setAttribute("aria-pressed", this.tool === tool);
    for (const view of shown) {
      view.measure(view === this.view && !this.root.hidden ? this.#wanted(view) : undefined);
      view.draw();
    }
    this.#later();
  }

  hovered() {
    if (!this.root.hidden) this.update();
  }

  pictured(view) {
    if (view === this.view && !this.root.hidden) this.#later();
  }

  #later() {
    if (this.#dirty) return;
    this.#dirty = true;
    setTimeout(() => {
      this.#dirty = false;
      this.draw();
    }, 100);
  }

  // The headers of the view's pictures that have a measure, with a name for each where there are two
  #headers(member) {
    const layers = this.view?.layers.filter((l) => l.header?.[member]) ?? [];
    return layers.map((l, i) => [l.header, layers.length > 1 ? ["before", "after"][i] : ""]);
  }

  draw() {
    if (this.root.hidden || !this.view) return;
    const profiles = this.#headers("profile").map(([header, name]) => ({ header, name, ...profileTable(header) }));
    const first = profiles[0]?.header;
    plot(this.profileCanvas, profiles.flatMap(({ header, name, names, rows }) => channels(header).map((channel, i) => ({
      name: name && header.channels === 1 ? name : `${name} ${channel}`.trim(),
      points: rows.map((row) => [along(header, row), row[names.length - header.channels + i]]),
    }))), { xLabel: first ? alongLabel(first) : "", yLabel: first?.quantity?.unit ?? "", lasts: false });
    this.profileCanvas.dataset.line = first ? JSON.stringify(first.profile.line) : "";
    const histograms = this.#headers("statistics").map(([header, name]) => ({ header, name, ...histogramTable(header) }));
    plot(this.histogramCanvas, histograms.flatMap(({ header, name, rows }) => channels(header).map((channel, i) => ({
      name: name && header.channels === 1 ? name : `${name} ${channel}`.trim(),
      points: rows.flatMap((row) => [[row[0], row[2 + i]], [row[1], row[2 + i]]]),
    }))), { xLabel: histograms[0]?.header.quantity?.unit ?? "", yLabel: "count", lasts: false });
    this.statistics.textContent = histograms.map(({ header, name }) => statisticsText(header, name)).join("\n");
  }

  #save(member, table) {
    this.#headers(member).forEach(([header, name]) => {
      const { names, rows } = table(header);
      download(`${this.view.pad}-${member === "profile" ? "profile" : "histogram"}${name && `-${name}`}.csv`, names, rows);
    });
  }
}

// Mean, standard deviation and ends of each channel, as the quantity
export function statisticsText(header, name = "") {
  const { quantity } = header;
  const unit = quantity?.unit ?? "";
  const text = header.statistics.channels.map((c, i) => {
    const [a, b] = [real(quantity, c.minimum), real(quantity, c.maximum)];
    const what = header.channels > 1 ? `${header.components?.[i] ?? i} ` : "";
    const gone = [[c.nan, "NaN"], [c.infinite, "inf"], [c.below, "below the bins"], [c.above, "above the bins"]];
    const out = gone.filter(([n]) => n).map(([n, name]) => `${n} ${name}`);
    if (!c.n) return `${what}no finite sample${out.length ? `: ${out.join(", ")}` : ""}`;
    return `${what}mean ${number(real(quantity, c.mean))}, SD ${number(c.deviation * Math.abs(quantity?.scale ?? 1))}, `
      + `min ${number(Math.min(a, b))}, max ${number(Math.max(a, b))}${unit && ` ${unit}`}, n ${c.n}${out.length ? `, ${out.join(", ")}` : ""}`;
  });
  return `${name && `${name}: `}${text.join("; ")}`;
}
