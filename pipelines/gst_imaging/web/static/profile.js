// SPDX-License-Identifier: LGPL-2.1-or-later
"use strict";

// Heights along a line, from the level that has about as many samples as the chart has places.
relief.MOST_SAMPLES = 1500;

// @from, @to: [x, y] in pixels of the photographs. Returns: a promise of [[distance, height], ...] in units of the page; height NaN where
// there is none
relief.profile = async (maps, about, from, to) => {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  let level = 0;
  while (length / 2 ** level > relief.MOST_SAMPLES && level < about.levels.length - 1) level++;
  const n = Math.max(2, Math.ceil(length / 2 ** level) + 1);
  const [width, height] = about.levels[level];
  const samples = [];
  const word = async (x, y) => {
    const [column, row] = [Math.floor(x / about.tile), Math.floor(y / about.tile)];
    const tile = maps.peek(level, column, row) ?? (await maps.load(level, column, row));
    return tile.heights[x - column * about.tile + (y - row * about.tile) * tile.width];
  };
  const at = async (x, y) => {
    const [left, top] = [Math.min(Math.max(Math.floor(x), 0), width - 1), Math.min(Math.max(Math.floor(y), 0), height - 1)];
    const [right, bottom] = [Math.min(left + 1, width - 1), Math.min(top + 1, height - 1)];
    const [u, v] = [Math.min(Math.max(x - left, 0), 1), Math.min(Math.max(y - top, 0), 1)];
    const corners = [await word(left, top), await word(right, top), await word(left, bottom), await word(right, bottom)];
    if (corners.includes(0)) return NaN;
    const mixed = (1 - v) * ((1 - u) * corners[0] + u * corners[1]) + v * ((1 - u) * corners[2] + u * corners[3]);
    return about.lowest + ((mixed - 1) / 65534) * (about.highest - about.lowest);
  };
  for (let i = 0; i < n; i++) {
    const part = i / (n - 1);
    const [x, y] = [0, 1].map((axis) => (from[axis] + part * (to[axis] - from[axis])) / 2 ** level - 0.5);
    samples.push([part * length * about.pixel, await at(x, y)]);
  }
  return samples;
};

// 1, 2 or 5 times a power of ten, about `parts` of them in a span
relief.roundStep = (span, parts) => {
  const power = 10 ** Math.floor(Math.log10(span / parts));
  return power * [1, 2, 5, 10].find((step) => (step * power * parts) >= span);
};

// The longest of 1, 2 or 5 times a power of ten
relief.roundLength = (most) => {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [5, 2, 1].find((length) => length * power <= most * 1.0001);
};

relief.number = (value, step) => value.toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))));

relief.chart = (canvas, samples, unit) => {
  const ratio = window.devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [left, right, top, bottom] = [58, width - 12, 18, height - 34];
  const known = samples.map((sample) => sample[1]).filter(Number.isFinite);
  const span = samples.at(-1)[0] || 1;
  const least = Math.min(...known);
  const rise = Math.max(...known) - least || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = "#a3afba";
  context.strokeStyle = "#46525e";
  const x = (distance) => left + (distance / span) * (right - left);
  const y = (value) => bottom - ((value - least) / rise) * (bottom - top);
  const line = (...points) => {
    context.beginPath();
    points.forEach(([a, b]) => context.lineTo(a, b));
    context.stroke();
  };
  if (!known.length) {
    context.fillText("There is no height along this line.", left, (top + bottom) / 2);
    return;
  }
  const across = relief.roundStep(span, 6);
  const up = relief.roundStep(rise, 4);
  context.textAlign = "center";
  for (let at = 0; at <= span * 1.0001; at += across) {
    line([x(at), top], [x(at), bottom]);
    context.fillText(relief.number(at, across), x(at), bottom + 15);
  }
  context.fillText(`distance (${unit})`, (left + right) / 2, height - 4);
  context.textAlign = "left";
  context.fillText(`height (${unit})`, 2, 10);
  context.textAlign = "right";
  for (let at = Math.ceil(least / up) * up; at <= least + rise * 1.0001; at += up) {
    line([left, y(at)], [right, y(at)]);
    context.fillText(relief.number(at, up), left - 6, y(at) + 4);
  }
  context.strokeStyle = "#6cc4f5";
  context.lineWidth = 1.5;
  let part = [];
  for (const [distance, value] of [...samples, [0, NaN]]) {
    if (Number.isFinite(value)) part.push([x(distance), y(value)]);
    else {
      line(...part);
      part = [];
    }
  }
};
