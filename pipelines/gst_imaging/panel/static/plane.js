// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the samples of a picture are on its canvas: zoom, pan and aspect.

const LEFT = 52; // of the rulers and of the bar, in CSS pixels
const BOTTOM = 30;
const RIGHT = 66;
const TOP = 8;

// A class that extends it has canvas, header, section, source, hover and moved ().
export class Plane {
  scale = 1; // CSS pixels of a sample along x
  x = 0; // sample at the left and upper edge, with fraction
  y = 0;
  fitted = true;
  chosenAspect = null; // null: as the axes are

  // Whether a sample is longer than it is high, or the other way round, or nobody knows.
  get oblong() {
    const [a, b] = this.header?.axes ?? [null, null];
    if (a && b && a.unit === "pixel" && b.unit === "pixel" && a.name !== b.name) return true; // pixels of two kinds
    return a && b ? a.unit !== b.unit || Math.abs(a.step) !== Math.abs(b.step) : Boolean(a || b) || this.section.axes !== "xy";
  }

  // The axes have one unit.
  get steps() {
    const [a, b] = this.header?.axes ?? [null, null];
    return a && b && a.unit === b.unit && a.unit !== "pixel" && a.step && b.step ? [Math.abs(a.step), Math.abs(b.step)] : null;
  }

  get aspect() {
    const chosen = this.chosenAspect ?? (this.oblong ? "fill" : "pixels");
    return chosen === "true" && !this.steps ? "pixels" : chosen;
  }

  // CSS pixels of a sample along y; `scale` are those along x.
  get scaleY() {
    const [width, height] = this.source;
    if (this.aspect === "fill") return (this.scale * (this.inner.height / height)) / (this.inner.width / width);
    return this.aspect === "true" ? (this.scale * this.steps[1]) / this.steps[0] : this.scale;
  }

  get inner() {
    return { x: LEFT, y: TOP, width: Math.max(this.canvas.clientWidth - LEFT - RIGHT, 16),
      height: Math.max(this.canvas.clientHeight - TOP - BOTTOM, 16) };
  }

  // All of the picture is shown.
  fitAll() {
    const [width, height] = this.source;
    const inner = this.inner;
    this.fitted = true;
    const ratio = this.scaleY / this.scale;
    this.scale = Math.min(inner.width / width, inner.height / height / ratio);
    this.x = (width - inner.width / this.scale) / 2;
    this.y = (height - inner.height / this.scaleY) / 2;
  }

  // Around a point of the canvas, by default the inspected sample, else the middle.
  zoom(factor, at = null) {
    const inner = this.inner;
    const point = at ?? (this.hover ? this.point(this.hover.map((v) => v + 0.5)) : [inner.x + inner.width / 2, inner.y + inner.height / 2]);
    const [sx, sy] = this.sample(point);
    this.fitted = false;
    this.scale = Math.max(0.02, Math.min(160, this.scale * factor));
    this.x = sx - (point[0] - inner.x) / this.scale;
    this.y = sy - (point[1] - inner.y) / this.scaleY;
    this.#keep();
  }

  pan(dx, dy) {
    this.fitted = false;
    this.x -= dx / this.scale;
    this.y -= dy / this.scaleY;
    this.#keep();
  }

  // The middle of the view stays on the picture.
  #keep() {
    const [width, height] = this.source;
    const inner = this.inner;
    const half = [inner.width / this.scale / 2, inner.height / this.scaleY / 2];
    this.x = Math.max(-half[0], Math.min(width - half[0], this.x));
    this.y = Math.max(-half[1], Math.min(height - half[1], this.y));
    this.moved();
  }

  // Sample (with fraction, 0 the left edge) at a point of the canvas, and back.
  sample([px, py]) {
    const inner = this.inner;
    return [(px - inner.x) / this.scale + this.x, (py - inner.y) / this.scaleY + this.y];
  }

  point([sx, sy]) {
    const inner = this.inner;
    return [(sx - this.x) * this.scale + inner.x, (sy - this.y) * this.scaleY + inner.y];
  }

  crop() {
    const [width, height] = this.source;
    const inner = this.inner;
    const x0 = Math.max(0, Math.min(width - 1, Math.floor(this.x)));
    const y0 = Math.max(0, Math.min(height - 1, Math.floor(this.y)));
    const x1 = Math.max(x0 + 1, Math.min(width, Math.ceil(this.x + inner.width / this.scale)));
    const y1 = Math.max(y0 + 1, Math.min(height, Math.ceil(this.y + inner.height / this.scaleY)));
    return [x0, y0, x1 - x0, y1 - y0];
  }

  // Whether pixels are large enough for their samples.
  get hasNumbers() {
    return this.scale >= 40 && this.scaleY >= 16 * (this.header?.channels ?? 1);
  }
}
