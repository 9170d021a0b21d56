// SPDX-License-Identifier: LGPL-2.1-or-later
"use strict";

// Tiles, each a script of its own that calls relief.tile (). They are loaded when they are seen, and the oldest are given up.
const relief = {};

relief.NEAR = 64; // tiles that are kept

// One tile, whose pictures are decoded.
relief.Tile = class {
  constructor(key, pictures) {
    [this.level, this.column, this.row] = key.split("-").map(Number);
    this.pictures = pictures;
    this.width = pictures.normals[0].width;
    this.height = pictures.normals[0].height;
  }

  // Returns: the bytes of a picture, four for each pixel
  static #bytes(picture) {
    const canvas = document.createElement("canvas");
    canvas.width = picture.width;
    canvas.height = picture.height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0);
    return context.getImageData(0, 0, picture.width, picture.height).data;
  }

  // Returns: samples of 16 bits, `channels` for each pixel
  words(name, channels) {
    const [high, low] = this.pictures[name].map(relief.Tile.#bytes);
    const words = new Uint16Array(this.width * this.height * channels);
    for (let i = 0, at = 0; at < words.length; i += 4)
      for (let c = 0; c < channels; c++) words[at++] = low ? 256 * high[i + c] + low[i + c] : 256 * high[i] + high[i + 1];
    return words;
  }

  // Of the profile, 0 where there is none.
  get heights() {
    return (this.heightWords ??= this.words("height", 1));
  }
};

relief.Maps = class {
  #tiles = new Map(); // key -> Tile, null while it loads; in the order of use
  #asked = new Map(); // key -> [resolve, reject, script]

  constructor(about, changed, dropped) {
    this.about = about;
    this.changed = changed;
    this.dropped = dropped;
    relief.tile = (key, urls) => this.#arrived(key, urls);
  }

  // Returns: a tile; null until it is there, and then changed () is called
  find(level, column, row) {
    const key = `${level}-${column}-${row}`;
    const tile = this.#tiles.get(key);
    if (tile) {
      this.#tiles.delete(key);
      this.#tiles.set(key, tile);
    } else if (tile === undefined) {
      this.load(level, column, row).then(this.changed, (error) => relief.tell(error.message));
    }
    return tile ?? null;
  }

  // Returns: a tile that is there already
  peek(level, column, row) {
    return this.#tiles.get(`${level}-${column}-${row}`) ?? null;
  }

  // Returns: a promise of the tile
  async load(level, column, row) {
    const key = `${level}-${column}-${row}`;
    if (this.#tiles.get(key)) return this.#tiles.get(key);
    if (!this.#asked.has(key)) {
      const asked = {};
      asked.promise = new Promise((resolve, reject) => Object.assign(asked, { resolve, reject }));
      this.#asked.set(key, asked);
      this.#tiles.set(key, null);
      asked.script = document.createElement("script");
      asked.script.src = `tiles/${key}.js`;
      asked.script.onerror = () => asked.reject(new Error(`tiles/${key}.js is missing: copy the whole folder.`));
      document.head.append(asked.script);
    }
    return this.#asked.get(key).promise;
  }

  async #arrived(key, urls) {
    const asked = this.#asked.get(key);
    try {
      const names = Object.keys(urls);
      const pictures = await Promise.all(names.map((name) => Promise.all(urls[name].map(async (url) => {
        const picture = new Image();
        picture.src = url;
        await picture.decode();
        return picture;
      }))));
      const tile = new relief.Tile(key, Object.fromEntries(names.map((name, i) => [name, pictures[i]])));
      this.#tiles.set(key, tile);
      this.#giveUp();
      asked.resolve(tile);
    } catch (error) {
      asked.reject(new Error(`tiles/${key}.js is damaged: ${error.message}`));
    }
    asked.script.remove();
    this.#asked.delete(key);
  }

  // The coarsest level stays.
  #giveUp() {
    const old = [...this.#tiles].filter(([, tile]) => tile && tile.level < this.about.levels.length - 1);
    for (const [key, tile] of old.slice(0, Math.max(0, old.length - relief.NEAR))) {
      this.#tiles.delete(key);
      this.dropped(tile);
    }
  }
};
