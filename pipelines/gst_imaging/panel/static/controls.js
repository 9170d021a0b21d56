// SPDX-License-Identifier: LGPL-2.1-or-later
// Controls of the elements, generated from the description of their properties.
import { h, number, options } from "./dom.js";
import { FilePicker, confirm } from "./files.js";

const NUMBERS = ["int", "uint64", "double"];

// Whether a slider has to be logarithmic: both ends positive, three decades or more.
function isLog(p) {
  return p.minimum > 0 && p.maximum / p.minimum >= 1000;
}

// A slider needs a range that a hand can resolve. Ranges that are no more than the type's have none.
function hasSlider(p) {
  if (!NUMBERS.includes(p.type) || typeof p.minimum !== "number" || typeof p.maximum !== "number") return false;
  return isLog(p) ? p.maximum <= 1e7 : p.maximum - p.minimum <= 1e5 && p.maximum > p.minimum;
}

// What was typed, as JSON of the property's type. Throws a sentence.
function parse(p, text) {
  const one = (t) => {
    const trimmed = t.trim();
    if (/^(inf|-inf|nan)$/i.test(trimmed)) return trimmed.toLowerCase();
    const value = Number(trimmed);
    if (/^[-+]?\d*,\d+$/.test(trimmed))
      throw new Error(`"${trimmed}" is not a number. Write ${trimmed.replace(",", ".")} with a point.`);
    if (trimmed === "" || Number.isNaN(value)) throw new Error(`"${trimmed}" is not a number.`);
    // a number would lose its last digits
    return p.type !== "double" && /^-?\d+$/.test(trimmed) && !Number.isSafeInteger(value) ? trimmed : value;
  };
  if (NUMBERS.includes(p.type)) return one(text);
  if (p.type === "array") return text.trim() === "" ? [] : text.split(/[\s,;]+/).filter(Boolean).map(one);
  return text;
}

function shown(value) {
  return Array.isArray(value) ? value.map((v) => shown(v)).join(", ") : value === null || value === undefined ? "" : String(value);
}

// Asks before a file is replaced. Resolves with the result.
export async function askToReplace(host, command, values) {
  try {
    return await host.link.ask(command, values);
  } catch (error) {
    if (!error.exists || !(await confirm(error.message, "Replace"))) throw error;
    return host.link.ask(command, { ...values, replace: true });
  }
}

class Control {
  constructor(host, element, p) {
    this.host = host;
    this.element = element;
    this.p = p;
    const id = `c-${element}-${p.name}`;
    this.label = h("label", { for: id }, p.name.replaceAll("-", " "));
    this.error = h("p", { class: "rejected", id: `${id}-error`, role: "alert", hidden: true });
    this.fields = this.#fields(id);
    this.help = h("details", { class: "help" }, h("summary", { "aria-label": `Help for ${p.name}` }, "?"),
      h("p", {}, p.blurb || "No description."));
    this.reset = h("button", { type: "button", class: "reset", title: `Default: ${shown(p.default) || "none"}`,
      "aria-label": `Set ${p.name} to its default`, onclick: () => this.set(this.p.default) }, "↺");
    this.root = h("div", { class: "control", "data-property": p.name, "data-element": element },
      h("div", { class: "name" }, this.label, h("span", { class: "unit" }, p.unit ?? ""), this.reset, this.help),
        h("div", { class: "fields" }, ...this.fields), this.error);
    this.follow(p);
  }

  #fields(id) {
    const p = this.p;
    const described = { "aria-describedby": `${id}-error` };
    if (p.type === "boolean") {
      this.input = h("input", { id, type: "checkbox", role: "switch", ...described, onchange: () => this.set(this.input.checked) });
      return [this.input];
    }
    if (p.type === "enum") {
      this.input = h("select", { id, ...described, onchange: () => this.set(this.input.value) });
      return [this.input];
    }
    if (p.type === "flags") {
      const group = h("fieldset", { id, ...described }, h("legend", { class: "visually-hidden" }, p.name));
      for (const v of p.values ?? [])
        group.append(h("label", { title: v.blurb },
          h("input", { type: "checkbox", value: v.nick,
          onchange: () => this.set([...group.querySelectorAll(":checked")].map((c) => c.value).join("+")) }), v.nick));
      this.input = group;
      return [group];
    }
    this.input = h("input", { id, type: "text", ...described, inputmode: NUMBERS.includes(p.type) ? "decimal" : "text", autocomplete: "off",
      spellcheck: "false",
      onchange: () => this.#typed(),
      onblur: () => this.follow(this.p), // what was told meanwhile
      onkeydown: (event) => {
        if (event.key === "Escape") this.follow(this.p, true);
      } });
    const fields = [this.input];
    if (hasSlider(p)) {
      this.slider = h("input", { type: "range", min: 0, max: 1000, "aria-label": p.name, oninput: () => this.#slide(),
        onchange: () => {
          this.#slide();
          this.#drag = null;
        } });
      if (p.type !== "double" && !isLog(p)) [this.slider.min, this.slider.max, this.slider.step] = [p.minimum, p.maximum, 1];
      fields.unshift(this.slider);
    }
    if (p.type === "path") {
      this.browse = h("button", { type: "button", "aria-label": `Choose a file for ${p.name}`, onclick: async () => {
        const path = await new FilePicker(this.host).choose(`File for ${p.name}`);
        if (path !== null) this.set(path);
      } }, "…");
      fields.push(this.browse);
    }
    return fields;
  }

  #typed() {
    try {
      this.set(parse(this.p, this.input.value));
    } catch (error) {
      this.reject(error.message);
    }
  }

  #slide() {
    const p = this.p;
    let value = Number(this.slider.value);
    if (isLog(p)) value = p.minimum * (p.maximum / p.minimum) ** (value / 1000);
    else if (p.type === "double") value = p.minimum + ((p.maximum - p.minimum) * value) / 1000;
    value = p.type === "double" ? Number(value.toPrecision(4)) : Math.round(value);
    this.input.value = shown(value);
    this.slider.setAttribute("aria-valuetext", `${number(value)} ${p.unit ?? ""}`);
    this.#drag ??= String(Math.random());
    this.#next = { value, drag: this.#drag };
    if (!this.#sending) this.#drain();
  }

  // One change is on its way, and the newest one waits: a hand is faster than 50 commands a second.
  #next;
  #drag = null; // all changes of one drag are one step of undo
  #sending = false;

  async #drain() {
    this.#sending = true;
    while (this.#next !== undefined) {
      const { value, drag } = this.#next;
      this.#next = undefined;
      await this.set(value, drag);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    this.#sending = false;
    this.follow(this.p);
  }

  async set(value, drag) {
    this.#asked += 1;
    try {
      const result = await askToReplace(this.host, "set", { element: this.element, values: { [this.p.name]: value }, ...(drag && { drag }) });
      this.#asked -= 1;
      this.#failed = null;
      this.follow({ ...this.p, value: result.values?.[this.p.name] ?? value });
      this.host.saved();
    } catch (error) {
      this.#asked -= 1;
      this.#failed = { value, text: error.message };
      this.follow(this.p);
    }
  }

  #failed = null;
  #asked = 0; // values that are on their way

  reject(text) {
    this.error.textContent = text;
    this.error.hidden = !text;
    this.root.classList.toggle("bad", Boolean(text));
    this.input.setAttribute?.("aria-invalid", String(Boolean(text)));
  }

  // Shows the state that the server told.
  follow(p, force = false) {
    this.p = p;
    const value = p.rejected?.value ?? this.#failed?.value ?? p.value;
    const typing = !force && (document.activeElement === this.input || this.#asked > 0);
    const sliding = this.#drag !== null || this.#sending;
    if (p.type === "boolean") this.input.checked = value === true;
    else if (p.type === "enum") options(this.input, (p.values ?? []).map((v) => [v.nick, v.nick, v.blurb]), value);
    else if (p.type === "flags") for (const box of this.input.querySelectorAll("input")) box.checked = String(value).split("+").includes(box.value);
    else if (!typing) this.input.value = typeof value === "number" && p.type === "double" ? number(value, 8) : shown(value);
    if (this.slider && !sliding && typeof value === "number") {
      if (isLog(p)) this.slider.value = (1000 * Math.log(value / p.minimum)) / Math.log(p.maximum / p.minimum);
      else if (p.type === "double") this.slider.value = (1000 * (value - p.minimum)) / (p.maximum - p.minimum);
      else this.slider.value = value;
      this.slider.setAttribute("aria-valuetext", `${number(value)} ${p.unit ?? ""}`);
    }
    const off = !p["can-set"];
    for (const field of [this.input, this.slider, this.browse, this.reset]) if (field) field.disabled = off;
    this.root.classList.toggle("off", off);
    this.root.title = off ? (p.reason ?? "") : "";
    // A disabled field gets no focus, so the reason is also in the description of the row.
    if (off) this.root.setAttribute("aria-label", `${p.name}: ${p.reason ?? "cannot be set"}`);
    else this.root.removeAttribute("aria-label");
    this.reset.hidden = off || shown(p.value) === shown(p.default);
    this.root.classList.toggle("changed", shown(p.value) !== shown(p.default));
    this.reject(p.rejected?.text ?? this.#failed?.text ?? "");
  }

  // A value from elsewhere takes the place of one that was refused here.
  tell(state) {
    if (shown(state.value) !== shown(this.p.value)) this.#failed = null;
    this.follow({ ...this.p, ...state });
  }

  matches(text) {
    const p = this.p;
    return !text || `${p.name} ${p.name.replaceAll("-", " ")} ${p.blurb ?? ""} ${this.element}`.toLowerCase().includes(text);
  }
}

// What an element message says of the action that it answers: why it was refused, or its numbers, a line for each structure.
export function answer({ accepted, text, warning, ...fields }) {
  if (!accepted) return text;
  const line = (values) => Object.entries(values).filter(([, value]) => typeof value === "number")
    .map(([name, value]) => `${name.replaceAll("-", " ")} ${number(value, 4)}`).join(", ");
  const parts = Object.entries(fields).filter(([, value]) => value !== null && typeof value === "object")
    .map(([name, values]) => `${name.replaceAll("-", " ")}: ${line(values)}`);
  return [line(fields), ...parts, warning].filter(Boolean).join("\n");
}

// A button of an action signal, with fields for its arguments.
function action(host, element, a) {
  const inputs = (a.arguments ?? []).map((argument) => {
    const input = h("input", { type: argument.type === "boolean" ? "checkbox" : "text", "aria-label": `${a.name}: ${argument.name}`,
      placeholder: argument.name,
      value: argument.default ?? (argument.name === "n-frames" ? "16" : null), autocomplete: "off" });
    const text = () => (argument.type === "double" ? input.value.trim() || "0" : input.value); // 0 is what nobody knows
    return { argument, input, read: () => (argument.type === "boolean" ? input.checked : parse(argument, text())) };
  });
  const said = h("p", { class: "said", role: "status" });
  const button = h("button", { type: "button", title: a.blurb ?? "", onclick: async () => {
    said.classList.remove("bad");
    said.textContent = "…";
    try {
      const { result } = await askToReplace(host, "call", { element, action: a.name, arguments: inputs.map((i) => i.read()) });
      if (said.textContent === "…") { // the element may have told its result already
        said.textContent = result === false ? "The element refused." : result === true || result === null ? "Done." : JSON.stringify(result);
        said.classList.toggle("bad", result === false);
      }
      host.saved();
    } catch (error) {
      said.textContent = error.message;
      said.classList.add("bad");
    }
  } }, a.name.replaceAll("-", " "));
  const browse = inputs.filter((i) => i.argument.type === "path").map((i) => h("button",
    { type: "button", "aria-label": `Choose a file for ${i.argument.name}`, onclick: async () => {
    i.input.value = (await new FilePicker(host).choose(`File for ${i.argument.name}`)) ?? i.input.value;
  } }, "…"));
  return h("div", { class: "action", "data-action": a.name }, button,
    ...inputs.map((i) => (i.argument.type === "boolean" ? h("label", {}, i.input, i.argument.name) : i.input)), ...browse, said);
}

export class Controls {
  #controls = new Map();
  #groups = [];

  // @host: link, saved (), files ()
  constructor(host, root) {
    this.host = host;
    this.search = h("input", { type: "search", id: "search", placeholder: "Search settings", "aria-label": "Search settings",
      title: "Search settings (/)", oninput: () => this.#filter() });
    this.list = h("div", { class: "groups" });
    this.none = h("p", { class: "empty", hidden: true }, "No setting matches.");
    root.replaceChildren(h("div", { class: "search" }, this.search), this.list, this.none);
  }

  // The elements of the state: first those that the pipeline is about, then ours, then sources and others, closed.
  show(elements, layout) {
    this.sliders = layout?.sliders ?? {};
    const open = new Map(this.#groups.map((g) => [g.name, g.root.open]));
    this.#controls.clear();
    const isSource = (e) => /src$|sink$/.test(e.element);
    const rank = (e) => (this.sliders[e.name] ? -1 : layout?.results?.includes(e.name) ? 0 : !e.ours ? (e.properties.some((p) => p["can-set"]) ? 1 : 3) : isSource(e) ? 2 : 1);
    this.#groups = [...elements].sort((a, b) => rank(a) - rank(b)).map((e) => this.#group(e, open.get(e.name) ?? rank(e) < 2));
    this.list.replaceChildren(...this.#groups.map((g) => g.root));
    this.#filter();
  }

  #group(e, isOpen) {
    const sliders = this.sliders[e.name] ?? {};
    const controls = e.properties.map((p) => {
      const control = new Control(this.host, e.name, { ...p, ...sliders[p.name] });
      this.#controls.set(`${e.name}\n${p.name}`, control);
      return control;
    });
    const settable = controls.filter((c) => c.p.when !== "read" && (e.ours || c.p["can-set"]));
    const rest = controls.filter((c) => !settable.includes(c));
    const fixed = h("details", { class: "fixed" }, h("summary", {}, `Read only (${rest.length})`), ...rest.map((c) => c.root));
    const first = ["frame", "set", null, "start"];
    settable.sort((a, b) => (b.p.name in sliders) - (a.p.name in sliders) || first.indexOf(a.p.when) - first.indexOf(b.p.when));
    const root = h("details", { class: "group", "data-element": e.name, open: isOpen },
      h("summary", {}, h("strong", {}, e.name), h("span", { class: "title" }, e.title ?? e.element)),
      ...(e.actions ?? []).map((a) => action(this.host, e.name, a)), ...settable.map((c) => c.root), rest.length ? fixed : null);
    return { name: e.name, root, controls, fixed, answers: e.display?.answers ?? {} };
  }

  // An element message that answers an action stands below its button.
  event({ element, name, fields }) {
    const group = this.#groups.find((g) => g.name === element);
    const said = group?.answers[name] && group.root.querySelector(`[data-action="${group.answers[name]}"] .said`);
    if (!said) return;
    said.textContent = answer(fields);
    said.classList.toggle("bad", !fields.accepted);
  }

  property(message) {
    const control = this.#controls.get(`${message.element}\n${message.name}`);
    control?.tell(message);
  }

  #filter() {
    const text = this.search.value.trim().toLowerCase();
    let any = false;
    for (const group of this.#groups) {
      let some = false;
      for (const control of group.controls) {
        const match = control.matches(text);
        control.root.hidden = !match;
        some ||= match;
      }
      group.root.hidden = !some;
      if (text && some) group.root.open = group.fixed.open = true;
      any ||= some;
    }
    this.none.hidden = any;
  }
}
