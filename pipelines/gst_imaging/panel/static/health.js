// SPDX-License-Identifier: LGPL-2.1-or-later
// Health of the pipeline, and its warnings and errors in order.
import { bytes, h, number } from "./dom.js";

const COLUMNS = [
  ["name", "Element"], ["backend", "Device"], ["frames", "Frames"], ["lost-frames", "Lost"], ["frames-missing", "Missing"],
    ["time-p50", "p50 µs"], ["time-p99", "p99 µs"],
  ["time-max", "max µs"], ["bytes-copied", "Copied"], ["bytes-uploaded", "To GPU"], ["bytes-downloaded", "From GPU"],
];

export class Health {
  #before = null;

  constructor(root, short) {
    this.short = short;
    this.facts = h("dl", { class: "facts" });
    this.body = h("tbody");
    this.hint = h("p", { class: "hint", role: "status", hidden: true });
    root.replaceChildren(this.hint, this.facts, h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Health of the elements" },
      h("table", {}, h("thead", {}, h("tr", {}, ...COLUMNS.map(([, title]) => h("th", { scope: "col" }, title)))), this.body)));
  }

  show(health) {
    if (!health || health.time === undefined) return;
    const before = this.#before;
    const rate = before && health.time > before.time && health["frames-out"] >= before["frames-out"] ? (health["frames-out"] - before["frames-out"]) / (health.time - before.time) : null;
    this.#before = health;
    this.hint.textContent = health.hint ?? "";
    this.hint.hidden = !health.hint;
    const facts = { "Frames in": health["frames-in"], "Frames out": health["frames-out"], "Frames/s": rate === null ? "–" : number(rate, 3),
      Dropped: health.dropped, Missing: health.missing, Warnings: health.warnings, Errors: health.errors, Viewers: health.clients, Pictures: health.pictures };
    this.facts.replaceChildren(...Object.entries(facts).map(([name, value]) => h("div",
      { class: ["Dropped", "Missing", "Errors"].includes(name) && value ? "bad" : "" }, h("dt", {}, name), h("dd", {}, String(value)))));
    this.body.replaceChildren(...health.elements.map((e) => h("tr", {}, ...COLUMNS.map(([key]) => {
      const value = key.startsWith("bytes") ? bytes(e[key]) : number(e[key], 4);
      return key === "name" ? h("th", { scope: "row" }, value) : h("td", {}, value);
    }))));
    const slowest = health.elements.reduce((a, e) => (e["time-p99"] > (a?.["time-p99"] ?? -1) ? e : a), null);
    this.short.textContent = `${rate === null ? "–" : number(rate, 3)} fps · ${health.dropped} dropped${health.missing ? ` · ${health.missing} missing` : ""}${slowest ? ` · p99 ${number(slowest["time-p99"] / 1000, 3)} ms` : ""}`;
    this.short.classList.toggle("bad", health.dropped > 0 || health.missing > 0 || health.errors > 0 || Boolean(health.hint));
    this.short.title = health.hint ?? "";
  }
}

export class Messages {
  #seen = new Set();

  constructor(root, tab) {
    this.tab = tab;
    this.list = h("ol", { class: "messages", role: "log", "aria-label": "Warnings and errors", tabindex: 0 });
    this.none = h("p", { class: "empty" }, "No warnings.");
    root.replaceChildren(this.none, this.list);
  }

  show(messages) {
    this.#seen.clear();
    this.list.replaceChildren();
    messages.forEach((m) => this.add(m));
    this.#count();
  }

  add(m) {
    if (this.#seen.has(m.number)) return;
    this.#seen.add(m.number);
    this.list.querySelector(`[data-number="${m.replaces}"]`)?.remove();
    this.none.hidden = true;
    const times = m.count > 1 ? `${m.count} times since ${new Date(m.first).toLocaleTimeString()}` : "";
    const item = h("li", { class: m.severity, "data-number": m.number }, h("time", { datetime: m.time }, new Date(m.time).toLocaleTimeString()),
      h("b", {}, m.severity), h("span", {}, m.element ?? ""), h("p", { title: m.debug ?? "" }, m.text, times && h("small", {}, ` (${times})`)));
    this.#place(item, m.follows);
    while (this.list.children.length > 200) this.list.lastChild.remove();
    this.#count();
  }

  // The newest is on top; what follows from an error is below it, in order.
  #place(item, follows) {
    let before = follows ? this.list.querySelector(`[data-number="${follows}"]`) : null;
    if (!before) return this.list.prepend(item);
    item.classList.add("follows");
    item.title = "This follows from the error above.";
    while (before.nextSibling?.classList.contains("follows")) before = before.nextSibling;
    before.after(item);
  }

  #count() {
    const n = this.list.querySelectorAll(".error, .warning").length;
    this.tab.textContent = n ? `Messages (${n})` : "Messages";
    this.tab.className = this.list.querySelector(".error") ? "bad" : n ? "warned" : "";
  }
}
