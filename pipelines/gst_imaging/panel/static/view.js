// SPDX-License-Identifier: LGPL-2.1-or-later
// One view: the newest picture of a pad, with zoom, pan, window and level, and true samples.
import { colour, digitsWithin, h, number, options, prepare, real } from "./dom.js";
import { Gestures } from "./gestures.js";
import { Levels } from "./levels.js";
import { marks } from "./marks.js";
import { draw as picture } from "./pixels.js";
import { Plane } from "./plane.js";
import { placeOn, quantity, sampleAt } from "./samples.js";
import { colourBar, rulers } from "./scales.js";

const SAMPLES = 4096; // as many true samples are asked for with each picture
const LIVE = { nick: "live", label: "Live", blurb: "The newest frame, whichever slice it is", axes: "xy" }; // beside the sections of the library
const ASPECTS = [
  ["fill", "fill", "Pixels are stretched, so that the picture fills the view"],
  ["pixels", "pixels", "Pixels are squares"],
  ["true", "true", "As long and as high as the steps of the axes say"],
];

const NOTHING = { profile: null, histogram: 0, region: null };

export class View extends Plane {
  #sent = [];
  #timer = 0;
  hover = null;
  divider = 0.5;
  overlays = [];
  line = null; // that was drawn: x0, y0, x1, y1 in samples
  region = null; // x, y, width, height
  cursor = null; // whose row and column are measured
  hasCrosshair = false; // the inspected sample is not under the mouse
  isPinned = false; // the cursor stays
  measured = NOTHING;

  // shared: of two pads that are compared, the samples mean the same, and have one window and level
  // @host: link, numbers (free ones), pads (), shown (), elementOf (pad), volume (), frames (), settings (), tool (), changed (view), hovered (view),
  // pictured (view), chosen (view), drawn (view, tool), close (view)
  constructor(host, pad, { section = "live", place = 0, compare = null, shared = false, colours: map = "grey", closable = true } = {}) {
    super();
    this.host = host;
    this.layers = (compare ?? [pad]).map((p) => ({ number: host.numbers.shift(), pad: p, header: null, bitmap: null, arrived: 0, decoded: 0 }));
    this.settings = { colours: map, section, place };
    this.shared = shared;
    this.#build(closable);
    this.#resize = new ResizeObserver(() => {
      if (this.fitted) this.fit();
      this.draw();
      this.update();
    });
    this.#resize.observe(this.canvas);
    this.open();
  }

  #resize;
  #gestures;

  get header() {
    return this.layers[0].header;
  }

  // Auto chooses from the first picture, and the second one follows.
  get isShared() {
    const [first, second] = this.layers.map((l) => l.header);
    return this.shared && Boolean(first) && (!second || (first.type === second.type && first.channels === second.channels));
  }

  get pad() {
    return this.layers[0].pad;
  }

  get description() {
    return this.host.pads().find((v) => v.pad === this.pad);
  }

  get source() {
    const d = this.description;
    return this.header?.source ?? (d?.width ? [d.width, d.height] : [640, 480]);
  }

  #build(closable) {
    this.levels = new Levels(() => this.header, () => this.update());
    const compared = this.layers.length > 1;
    this.padMenu = h("select", { class: "pad", "aria-label": "Pad", title: "The pad that is shown",
      onchange: () => this.choose(this.padMenu.value) });
    this.mapMenu = h("select", {
      class: "map",
      "aria-label": "Colour map",
      title: "Colour map, of pictures with one channel",
      onchange: () => this.change({ colours: this.mapMenu.value }),
    });
    options(this.mapMenu, this.host.settings().colours.values.map(({ nick }) => [nick, nick]), this.settings.colours);
    this.sectionMenu = h("select", { class: "section", "aria-label": "Section of the volume", onchange: () => this.#chooseSection() });
    options(this.sectionMenu, this.#sections.map((s) => [s.nick, s.label, s.blurb]), this.settings.section);
    this.place = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Place of the section",
      oninput: () => this.change({ place: Number(this.place.value) }) });
    this.volumeTools = h("span", { class: "tools", hidden: true }, this.sectionMenu, this.place);
    const button = (text, label, key, action) => h("button",
      { type: "button", "aria-label": label, title: `${label} (${key})`, onclick: action }, text);
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": compared ? "Pictures before and after, with a divider" : "Picture of the pad",
      "aria-describedby": "canvas-help",
    });
    this.dividerInput = h("input", {
      type: "range", class: "divider", min: 0, max: 1000, value: 500, hidden: !compared, "aria-label": "Divider between before and after",
      oninput: () => {
        this.divider = this.dividerInput.value / 1000;
        this.draw();
      },
    });
    this.note = h("p", {
      class: "view-note", hidden: true, title: "The wavelengths are missing. Start the panel with --lambda FIRST LAST, in nm, or set calibration to a file.",
    }, "Depth in pixels: set calibration, or start with --lambda");
    this.old = h("p", { class: "view-note old", role: "status", hidden: true });
    this.message = h("p", { class: "view-message", role: "status" }, "Waiting for the first picture");
    this.readout = h("output", { class: "readout", "aria-live": "off" }, " ");
    this.zoomText = h("output", { class: "zoom" }, "");
    this.aspectMenu = h("select", { class: "aspect", "aria-label": "Aspect of the pixels", onchange: () => {
      this.chosenAspect = this.aspectMenu.value;
      this.fit(true);
    } });
    options(this.aspectMenu, ASPECTS, this.aspect);
    this.root = h("section", { class: "view", "aria-label": "View" },
      h("div", { class: "bar" },
        compared ? h("span", { class: "pads" }, "Before ┃ after") : this.padMenu, this.volumeTools, this.mapMenu,
        this.levels.root,
        h("span", { class: "tools zooms" },
          button("−", "Zoom out", "-", () => this.zoom(1 / 1.5)), button("+", "Zoom in", "+", () => this.zoom(1.5)),
          button("1:1", "One pixel for each sample", "1", () => this.zoom(1 / this.scale)), button("Fit", "Fit", "0", () => this.fit(true)),
          closable ? button("✕", "Close this view", "x", () => this.host.close(this)) : null)),
      h("div", { class: "stage" }, this.canvas, this.dividerInput, this.note, this.old, this.message),
      this.foot = h("div", { class: "foot" }, this.readout, h("span", { class: "tools" }, this.zoomText, this.levels.rangeMenu, this.aspectMenu)));
    this.#gestures = new Gestures(this);
    this.refresh();
  }

  // The menus follow the pads of the pipeline.
  refresh() {
    options(this.padMenu, this.host.pads().map((v) => [v.pad, v.pad, v.caps]), this.pad);
    const volume = this.volume;
    this.volumeTools.hidden = !volume;
    this.#places();
  }

  get volume() {
    const volume = this.host.volume();
    return volume && volume.pad === this.pad ? volume.frames : 0;
  }

  // What of a volume is shown, as the server is asked for it: no volume where the newest frame is.
  get cut() {
    const { section, place } = this.settings;
    return section === "live" ? { section: "frame", place, volume: 0 } : { section, place, volume: this.volume };
  }

  get #sections() {
    return [LIVE, ...this.host.settings().section.values];
  }

  // The section that is shown: its axes, and that of its place, are x, y, and z of the slices
  get section() {
    return this.#sections.find((s) => s.nick === this.settings.section);
  }

  #places() {
    const d = this.description;
    const n = { z: this.volume, y: d?.height, x: d?.width }[this.section.place];
    this.place.hidden = !n;
    this.place.max = Math.max((n ?? 1) - 1, 0);
    this.place.value = this.settings.place;
  }

  open() {
    this.#sent = [];
    for (const layer of this.layers) layer.header = null;
    this.update(true);
  }

  close() {
    this.#resize.disconnect();
    clearTimeout(this.#timer);
    for (const layer of this.layers) {
      this.host.link.ask("view-close", { view: layer.number }).catch(() => {});
      this.host.numbers.unshift(layer.number);
    }
    this.root.remove();
  }

  choose(pad) {
    this.layers[0].pad = pad;
    this.layers[0].bitmap = null;
    this.#forget();
    this.fitted = true;
    this.levels.automatic();
    this.refresh();
    this.open();
    this.fit();
    this.host.changed(this);
  }

  // Of another pad or section nothing is marked.
  #forget() {
    this.hover = this.cursor = this.line = this.region = null;
    this.#gestures.forget();
    this.isPinned = false;
  }

  change(settings) {
    Object.assign(this.settings, settings);
    this.moved();
  }

  #chooseSection() {
    this.fitted = true;
    this.settings.section = this.sectionMenu.value;
    this.#forget();
    this.#places();
    const max = Number(this.place.max);
    this.place.value = Math.round(max / 2);
    this.change({ place: Number(this.place.value) });
    this.host.changed(this);
  }

  fit(update) {
    this.fitAll();
    options(this.aspectMenu, ASPECTS, this.aspect);
    this.aspectMenu.options[2].disabled = !this.steps;
    this.#read();
    this.draw();
    if (update) this.update();
  }

  moved() {
    this.draw();
    this.update();
  }

  // Tells the server what is wanted, twelve times a second at most.
  update(now = false) {
    if (now) this.#ask();
    else if (!this.#timer) this.#timer = setTimeout(() => this.#ask(), 80);
  }

  #ask() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const ratio = window.devicePixelRatio || 1;
    const limits = this.host.settings();
    const known = this.header !== null && !this.fitted;
    const crop = known ? this.crop() : null;
    const [, , width, height] = crop ?? [0, 0, ...this.source];
    const near = width * height <= SAMPLES && this.header !== null;
    // as many pixels as the screen has along the axis that is shown larger: the server keeps the shape
    const size = Math.min(1, Math.max(this.scale, this.scaleY) * ratio);
    const values = near ? (crop ?? [0, 0, ...this.source]) : this.hover ? [...this.hover, 1, 1] : null;
    this.layers.forEach((layer, i) => {
      const first = i > 0 && this.isShared ? this.header : null;
      const wanted = {
        pad: layer.pad, colours: this.settings.colours, ...this.cut, crop, values, ...this.levels.wanted(first), ...this.measured,
        width: Math.max(16, Math.min(limits.width.maximum, Math.ceil(width * size))),
        height: Math.max(16, Math.min(limits.height.maximum, Math.ceil(height * size))),
      };
      const text = JSON.stringify(wanted);
      if (text === this.#sent[i] || !this.host.link.isOpen) return;
      this.#sent[i] = text;
      this.host.link.ask("view", { view: layer.number, ...wanted }).catch((error) => this.error(error.message));
    });
  }

  // profile, histogram and region of the protocol; nothing: none
  measure(wanted = NOTHING) {
    this.measured = wanted;
    this.update();
  }

  error(text) {
    this.message.textContent = text;
    this.message.hidden = false;
    this.message.classList.add("bad");
  }

  async picture(header, jpeg) {
    const layer = this.layers.find((l) => l.number === header.view);
    if (!layer) return;
    const turn = ++layer.arrived;
    try {
      const bitmap = await createImageBitmap(jpeg);
      if (turn < layer.decoded) return bitmap.close(); // a newer picture was decoded first
      layer.decoded = turn;
      layer.bitmap?.close?.();
      const other = String(layer.header?.source) !== String(header.source);
      header.bits = this.host.pads().find((v) => v.pad === layer.pad)?.["bit-depth"] ?? 0;
      [layer.bitmap, layer.header] = [bitmap, header];
      if (other && this.fitted) this.fit(true);
      this.message.hidden = true;
      this.message.classList.remove("bad");
      this.mapMenu.hidden = this.layers.every((l) => !l.header || l.header.channels >= 3);
      this.root.dataset.frame = header.frame ?? "";
      this.root.dataset.serial = header.serial;
      if (this.isShared) this.update();
      this.levels.show();
      this.draw();
      this.#read();
      this.host.pictured(this);
    } finally {
      this.host.link.send("seen", { view: header.view });
    }
  }

  // byKey: no mouse shows where it is
  inspect(sample, byKey = false) {
    const [width, height] = this.source;
    const [x, y] = sample?.map(Math.floor) ?? [-1, -1];
    const inside = x >= 0 && y >= 0 && x < width && y < height;
    this.link(inside ? [x, y] : null, byKey);
    this.host.hovered(this);
  }

  // Inspects a sample, also that of another view. Its row and column are measured until others are, or until they are pinned.
  link(sample, hasCrosshair = true) {
    this.hover = sample;
    this.hasCrosshair = hasCrosshair;
    if (sample && !this.isPinned) this.cursor = sample;
    this.#read();
    if (sample) this.update();
    this.draw();
  }

  // The number of the frame. Of a file without frames of its own the offset is that of a byte.
  #frame(header) {
    const { counts, framerate, passes } = this.description ?? {};
    const n = passes && header.frame !== null ? this.host.frames() : 0;
    if (n > 1) return `frame ${header.frame % n} of ${n}`;
    if (counts !== false) return `frame ${header.frame ?? header.serial}`;
    return framerate && header.pts !== null ? `frame ${Math.round((header.pts / 1e9) * framerate)}` : `picture ${header.serial}`;
  }

  // Why there is no picture; where one is shown already, nothing
  wait(text) {
    if (this.header || this.message.classList.contains("bad")) return;
    this.message.textContent = text;
    this.message.hidden = false;
  }

  // Why the picture that is shown is not of now; null where it is
  age(text) {
    this.old.hidden = !text || !this.header;
    if (text && this.old.textContent !== text) this.old.textContent = text;
  }

  // The smallest sample and the largest one, as the quantity of the bar
  #limits({ minimum, maximum, quantity: q }) {
    const ends = [minimum, maximum].map((v) => real(q, v)).sort((a, b) => a - b);
    return `${ends.map((v) => number(v, digitsWithin(v, ends[1] - ends[0]))).join(" to ")} ${q?.unit ?? ""}`.trim();
  }

  #read() {
    const header = this.header;
    this.note.hidden = this.host.shown()[0] !== this || !header?.axes?.some((a) => a?.name === "depth" && a.unit === "pixel");
    this.zoomText.textContent = header ? `${number(this.scale * 100, 3)} %  ${header.source.join(" × ")}  ${header.type}` : "";
    if (header?.filled !== null && header?.filled !== undefined) this.zoomText.textContent += `  ${header.filled} slices`;
    this.foot.classList.toggle("inspects", Boolean(this.hover && header));
    if (!this.hover || !header) {
      this.readout.textContent = header ? `${this.#limits(header)}, ${this.#frame(header)}` : " ";
      this.readout.title = this.readout.textContent;
      this.readout.dataset.sample = "";
      return;
    }
    const [x, y] = this.hover;
    const samples = this.layers.map((l) => sampleAt(l.header, x, y));
    const each = (text) => samples.map((s, i) => (s === undefined ? "…" : text(s, this.layers[i].header))).join(" ┃ ");
    const places = (digits) => (header.axes?.some(Boolean) ? `  ${placeOn(header, 0, x, digits)}, ${placeOn(header, 1, y, digits)}` : "");
    this.readout.textContent = `(${x}, ${y})  ${each((s, from) => quantity(from, s, 4))}${places(4)}`;
    this.readout.title = `(${x}, ${y})  ${each((s, from) => quantity(from, s, 7))}${places(7)}`
      + `; sample ${each((s) => [s].flat().map((v) => number(v, 17)).join(", "))}`;
    this.readout.dataset.sample = samples[0] === undefined ? "" : JSON.stringify(samples[0],
      (_key, v) => (Number.isFinite(v) || typeof v !== "number" ? v : number(v)));
    this.readout.dataset.frame = header.frame ?? "";
  }

  // --- drawing

  draw() {
    const c = prepare(this.canvas);
    const inner = this.inner;
    c.save();
    c.beginPath();
    c.rect(inner.x, inner.y, inner.width, inner.height);
    c.fillStyle = colour("--stage");
    c.fill();
    c.clip();
    this.layers.forEach((layer, i) => {
      if (!layer.bitmap || !layer.header) return;
      c.save();
      if (i > 0) {
        c.beginPath();
        c.rect(inner.x + inner.width * this.divider, inner.y, inner.width, inner.height);
        c.clip();
      }
      picture(c, this, layer);
      c.restore();
    });
    if (this.layers.length > 1) {
      c.fillStyle = colour("--accent");
      c.fillRect(inner.x + inner.width * this.divider - 1, inner.y, 2, inner.height);
    }
    for (const overlay of this.overlays) overlay(c, this);
    marks(c, this);
    c.restore();
    rulers(c, this);
    colourBar(c, this);
  }
}
