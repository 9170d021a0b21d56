// SPDX-License-Identifier: LGPL-2.1-or-later
// Elements of the page, and numbers as text.

// h("button", {class: "x", onclick: f, "aria-label": "Y"}, child, ...)
export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function options(select, names, chosen) {
  select.replaceChildren(...names.map(([value, text, title]) => h("option", { value, title, selected: value === chosen }, text)));
  select.value = chosen;
}

export function number(value, digits = 5) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(Math.max(digits - 3, 1));
  return String(Number(value.toPrecision(digits)));
}

// The digits in which two values differ that are a hundredth of the span apart: least of them, where these do.
export function digitsWithin(value, span, least = 5) {
  const needed = Math.ceil(Math.log10((100 * Math.abs(value)) / Math.abs(span)));
  return Number.isFinite(needed) ? Math.min(Math.max(needed, least), 15) : least;
}

// Lists of numbers of JSON, which has no NaN and no infinities. null stays: there is no sample.
const NAMES = { nan: NaN, inf: Infinity, "-inf": -Infinity };
export function numbers(value) {
  return Array.isArray(value) ? value.map(numbers) : typeof value === "string" ? (NAMES[value] ?? value) : value;
}

// The number of a quantity (of the header of a picture) that a sample stands for.
export function real(quantity, sample) {
  return quantity?.scale === undefined ? sample : quantity.offset + quantity.scale * sample;
}

export function bytes(value) {
  if (!value) return "0";
  const power = Math.min(Math.floor(Math.log2(value) / 10), 4);
  return `${number(value / 2 ** (10 * power), 3)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–:––";
  return `${Math.floor(value / 60)}:${String(Math.floor(value % 60)).padStart(2, "0")}.${Math.floor((value * 10) % 10)}`;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A canvas with the pixels of the screen; returns its context, in CSS pixels.
export function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return context;
}

// Round steps of 1, 2 or 5 for an axis: more than count where only one would be on it.
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((n) => n * unit >= raw * 0.999);
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) all.push(Number((i * step).toPrecision(12)));
  return all.length < 2 ? ticks(low, high, 2 * Math.max(count, 1)) : all;
}
