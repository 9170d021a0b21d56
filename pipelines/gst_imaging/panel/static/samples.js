// SPDX-License-Identifier: LGPL-2.1-or-later
// True samples of a picture as texts, with the quantity and the axes that its header tells.
import { digitsWithin, number, real } from "./dom.js";

// The sample at (x, y), undefined while it is not known.
export function sampleAt(header, x, y) {
  const v = header?.values;
  if (!v) return undefined;
  const [x0, y0, width, height] = v.crop;
  if (x < x0 || y < y0 || x >= x0 + width || y >= y0 + height) return undefined;
  return v.samples[y - y0]?.[x - x0];
}

// A sample as its quantity, with the unit.
export function quantity(header, sample, digits = 5) {
  if (sample === null) return "not seen yet";
  return `${channels(header, sample, digits).join(", ")} ${header.quantity?.unit ?? ""}`.trim();
}

// A text for each channel, with the name of the component.
export function channels(header, sample, digits) {
  const name = (k) => (header.components ? `${header.components[k]} ` : "");
  return [sample].flat().map((s, k) => name(k) + scaled(header, s, digits));
}

// A sample as the number of its quantity, in digits that tell samples of the window apart. One at an end of its range was perhaps cut off there.
export function scaled(header, sample, digits = 5) {
  const q = header.quantity;
  if (sample === null) return "–";
  const value = real(q, sample), text = number(value, digitsWithin(value, (q?.scale ?? 1) * header.window, digits));
  // of the camera, where somebody knows its bits
  const top = header.type === "u16" && header.bits ? 2 ** header.bits - 1 : NaN;
  if (!q || q.scale === undefined) return (sample >= top ? "≥ " : "") + text;
  const end = { u8: 255, u16: 65535 }[header.type];
  const mark = end === undefined || (sample !== 0 && sample !== end) ? "" : (sample === 0) === q.scale > 0 ? "≤ " : "≥ ";
  return mark + text;
}

// Where a sample is along an axis.
export function placeOn(header, axis, sample, digits) {
  const a = header.axes?.[axis];
  return a ? `${a.name} ${number(a.origin + a.step * sample, digits)} ${a.unit}` : `${"xy"[axis]} ${sample}`;
}
