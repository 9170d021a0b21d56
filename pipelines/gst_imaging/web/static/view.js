// SPDX-License-Identifier: LGPL-2.1-or-later
"use strict";

// The picture: which tiles are seen, from which level, and where. Places are in pixels of the photographs, (0, 0) being the
// corner of the first one; the screen's are device pixels.
relief.View = class {
  x = 0; // place at the upper left corner of the screen
  y = 0;
  scale = 1; // device pixels for each pixel
  #due = 0;

  constructor(canvas, about, scene) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.about = about;
    this.scene = scene;
    [this.width, this.height] = about.levels[0];
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const fitted = this.fitted ?? true;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (fitted) this.fit();
    else this.#keep();
  }

  fit() {
    this.scale = Math.min(this.canvas.width / this.width, this.canvas.height / this.height);
    this.#keep();
    this.fitted = true;
  }

  // The place under the device pixel (x, y) stays there.
  zoom(factor, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    const least = Math.min(1, this.canvas.width / this.width, this.canvas.height / this.height);
    const scale = Math.min(16, Math.max(least, this.scale * factor));
    this.x += x / this.scale - x / scale;
    this.y += y / this.scale - y / scale;
    this.scale = scale;
    this.#keep();
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.#keep();
  }

  // The picture does not leave the screen; whole pixels where they are large, so that they are not smeared.
  #keep() {
    const clamp = (from, size, shown) => (size < shown ? (size - shown) / 2 : Math.min(Math.max(from, 0), size - shown));
    this.fitted = false;
    this.x = clamp(this.x, this.width, this.canvas.width / this.scale);
    this.y = clamp(this.y, this.height, this.canvas.height / this.scale);
    if (this.scale >= 1) {
      this.x = Math.round(this.x * this.scale) / this.scale;
      this.y = Math.round(this.y * this.scale) / this.scale;
    }
    this.draw();
  }

  // Returns: the place of a device pixel
  place(x, y) {
    return [this.x + x / this.scale, this.y + y / this.scale];
  }

  // Soon, and once.
  draw() {
    this.complete = false;
    this.#due ||= requestAnimationFrame(() => {
      this.#due = 0;
      this.paint();
    });
  }

  // Without WebGL a picture that moves is coarser.
  #level() {
    const level = Math.floor(Math.log2(1 / this.scale) + 1e-6) + (this.lighter.slow && this.moving ? 1 : 0);
    return Math.min(Math.max(level, 0), this.about.levels.length - 1);
  }

  // Returns: columns and rows of the tiles of a level that are seen, [first, last]
  #seen(level) {
    const size = this.about.tile * 2 ** level;
    const [width, height] = this.about.levels[level];
    const span = (from, shown, n) => [
      Math.max(0, Math.floor(from / size)),
      Math.min(Math.ceil(n / this.about.tile) - 1, Math.floor((from + shown) / size)),
    ];
    return [span(this.x, this.canvas.width / this.scale, width), span(this.y, this.canvas.height / this.scale, height)];
  }

  paint() {
    const level = this.#level();
    const [columns, rows] = this.#seen(level);
    this.context.fillStyle = "#000";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.imageSmoothingEnabled = this.scale < 2;
    this.context.imageSmoothingQuality = "high";
    this.complete = true;
    for (let row = rows[0]; row <= rows[1]; row++)
      for (let column = columns[0]; column <= columns[1]; column++) {
        const tile = this.maps.find(level, column, row);
        this.complete &&= Boolean(tile);
        if (tile) this.#put(tile, level, column, row);
        else this.#putCoarse(level, column, row);
      }
    this.painted?.();
  }

  // Returns: the device pixels of a tile, whose edges are those of its neighbours
  #edges(level, column, row, width, height) {
    const step = 2 ** level;
    const along = (tile, n, from) => [tile * this.about.tile * step, (tile * this.about.tile + n) * step].map((p) => Math.round((p - from) * this.scale));
    return [along(column, width, this.x), along(row, height, this.y)];
  }

  #put(tile, level, column, row) {
    const drawn = this.lighter.draw(tile, this.scene);
    const [[left, right], [top, bottom]] = this.#edges(level, column, row, tile.width, tile.height);
    this.context.drawImage(drawn, 0, 0, tile.width, tile.height, left, top, right - left, bottom - top);
  }

  // A part of a coarser tile, until the right one is there.
  #putCoarse(level, column, row) {
    for (let up = 1; level + up < this.about.levels.length; up++) {
      const tile = this.maps.peek(level + up, column >> up, row >> up);
      if (!tile) continue;
      const size = this.about.tile / 2 ** up;
      const x = (column % 2 ** up) * size;
      const y = (row % 2 ** up) * size;
      const width = Math.min(size, tile.width - x);
      const height = Math.min(size, tile.height - y);
      const [[left, right], [top, bottom]] = this.#edges(level, column, row, width * 2 ** up, height * 2 ** up);
      this.context.drawImage(this.lighter.draw(tile, this.scene), x, y, width, height, left, top, right - left, bottom - top);
      return;
    }
  }
};
