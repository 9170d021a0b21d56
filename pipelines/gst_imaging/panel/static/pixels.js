// SPDX-License-Identifier: LGPL-2.1-or-later
// The picture of a view, and the true samples in its pixels.
import { channels } from "./samples.js";

const paint = document.createElement("canvas");

// The edges of pixels: numbers of two of them are not read as one
function edges(c, view, [x, y, width, height]) {
  c.strokeStyle = "#8888";
  c.lineWidth = 1;
  c.beginPath();
  const [left, top] = view.point([x, y]);
  const [right, bottom] = view.point([x + width, y + height]);
  for (let i = 0; i <= width; i++) {
    c.moveTo(left + i * view.scale, top);
    c.lineTo(left + i * view.scale, bottom);
  }
  for (let j = 0; j <= height; j++) {
    c.moveTo(left, top + j * view.scaleY);
    c.lineTo(right, top + j * view.scaleY);
  }
  c.stroke();
}

// True samples in their pixels, where there is room; the channels of a pixel below each other. data: R, G, B, A of the pixels
function numbers(c, view, header, data) {
  const n = header.channels;
  if (!view.hasNumbers) return;
  const [x, y, width] = header.crop;
  const texts = header.values.samples.map((row) => row.map((sample) => channels(header, sample, 4)));
  const longest = Math.max(1, ...texts.flat(2).map((text) => text.length));
  edges(c, view, header.crop);
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.font = `${Math.min(13, view.scale / 4, (view.scale * 1.5) / longest, (view.scaleY / n) * 0.64)}px ui-monospace, monospace`;
  const cut = view.layers.length > 1 ? view.inner.x + view.inner.width * view.divider : -1;
  texts.forEach((row, j) =>
    row.forEach((pixel, i) => {
      const [px, py] = view.point([x + i + 0.5, y + j + 0.5]);
      if (Math.abs(px - cut) < view.scale / 2) return; // half of a number of each picture would be read as one
      const [r, g, b] = data.subarray(4 * (j * width + i));
      c.fillStyle = 0.3 * r + 0.6 * g + 0.1 * b > 120 ? "#000" : "#fff";
      // nearer to each other than to other pixels
      pixel.forEach((text, k) => c.fillText(text, px, py + ((k + 0.5) / n - 0.5) * view.scaleY * (n > 1 ? 0.84 : 1)));
    }));
  c.textBaseline = "alphabetic";
}

// Of grey or R, G, B in Base64.
function imageOf(text, width, height) {
  const image = new ImageData(width, height);
  const bytes = atob(text);
  const n = bytes.length / (width * height);
  for (let i = 0; i < width * height; i++) {
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = bytes.charCodeAt(n * i + (k % n));
    image.data[4 * i + 3] = 255;
  }
  return image;
}

export function draw(c, view, { bitmap, header }) {
  const [x, y, width, height] = header.crop;
  const [left, top] = view.point([x, y]);
  // a JPEG smears the colours of single samples
  const image = header.pixels ? (header.image ??= imageOf(header.pixels, width, height)) : null;
  if (image) {
    [paint.width, paint.height] = [width, height];
    paint.getContext("2d").putImageData(image, 0, 0);
  }
  c.imageSmoothingEnabled = Math.min(view.scale, view.scaleY) < 1;
  c.drawImage(image ? paint : bitmap, left, top, width * view.scale, height * view.scaleY);
  if (image) numbers(c, view, header, image.data);
}
