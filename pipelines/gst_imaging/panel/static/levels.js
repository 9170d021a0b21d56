// SPDX-License-Identifier: LGPL-2.1-or-later
// Window and level of a view: chosen from each picture, or by two sliders.
import { h, number, options } from "./dom.js";

const RANGES = [
  ["0", "min–max", "From the smallest to the largest sample that is shown"],
  ["0.1", "99.8 %", "Without 0.1 % of the samples at each end"],
  ["0.5", "99 %", "Without 0.5 % of the samples at each end"],
  ["2", "96 %", "Without 2 % of the samples at each end"],
  ["5", "90 %", "Without 5 % of the samples at each end"],
];

export class Levels {
  #floatRange = null;
  window = null; // null: chosen from each picture
  level = null;

  // header (): of the newest picture; changed (): others are wanted
  constructor(header, changed) {
    this.header = header;
    this.changed = changed;
    this.auto = h("button", { type: "button", class: "auto", "aria-pressed": "true", title: "Choose window and level from each picture (a)",
      onclick: () => this.automatic() }, "Auto");
    this.windowSlider = h("input", { type: "range", min: 0, max: 1000, "aria-label": "Window",
      title: "Window: the range from black to white. Shift and drag the picture sideways", oninput: () => this.#slide() });
    this.levelSlider = h("input", { type: "range", min: 0, max: 1000, "aria-label": "Level",
      title: "Level: the middle of the window. Shift and drag the picture up and down", oninput: () => this.#slide() });
    this.rangeMenu = h("select", { class: "range", "aria-label": "Range of the automatic window", title: "Range of Auto",
      onchange: () => this.automatic() });
    options(this.rangeMenu, RANGES, "0.5");
    this.root = h("span", { class: "tools levels" }, this.auto, h("label", {}, "W", this.windowSlider), h("label", {}, "L", this.levelSlider));
  }

  // As the server is asked for it; of a window that is chosen that of another picture.
  wanted(header) {
    return { window: this.window ?? header?.window ?? null, level: this.level ?? header?.level ?? null, clip: Number(this.rangeMenu.value) };
  }

  automatic() {
    this.window = this.level = this.#floatRange = null;
    this.auto.setAttribute("aria-pressed", "true");
    this.changed();
  }

  set(window, level) {
    const [low, high] = (this.#floatRange = this.#range());
    this.window = Math.max((high - low) / 65536, Math.min(high - low, window));
    this.level = Math.max(low, Math.min(high, level));
    this.auto.setAttribute("aria-pressed", "false");
    this.show();
    this.changed();
  }

  // By a step of a mouse or a key.
  drag(dx, dy) {
    const window = this.window ?? this.header()?.window ?? 255;
    const level = this.level ?? this.header()?.level ?? 128;
    this.set(window * Math.exp(dx * 0.008), level + (window * dy) / 300);
  }

  #range() {
    const { type, minimum, maximum } = this.header() ?? {};
    if (type === "u8") return [0, 255];
    if (type === "u16") return [0, 65535];
    const span = (maximum ?? 1) - (minimum ?? 0) || 1;
    return this.#floatRange ?? [(minimum ?? 0) - span / 2, (maximum ?? 1) + span / 2];
  }

  // The window's slider is logarithmic: it spans 16 bits.
  #slide() {
    const [low, high] = this.#range();
    this.set((high - low) * 2 ** (16 * (this.windowSlider.value / 1000 - 1)), low + ((high - low) * this.levelSlider.value) / 1000);
  }

  show() {
    const header = this.header();
    const [low, high] = this.#range();
    const window = this.window ?? header?.window ?? high - low;
    const level = this.level ?? header?.level ?? (low + high) / 2;
    if (document.activeElement !== this.windowSlider) this.windowSlider.value = 1000 * (1 + Math.log2(Math.max(window / (high - low),
      2 ** -16)) / 16);
    if (document.activeElement !== this.levelSlider) this.levelSlider.value = (1000 * (level - low)) / (high - low);
    this.windowSlider.setAttribute("aria-valuetext", number(window));
    this.levelSlider.setAttribute("aria-valuetext", number(level));
  }
}
