// SPDX-License-Identifier: LGPL-2.1-or-later
// What is drawn over the picture of a view: the inspected sample, and what is measured.

// Bright with a dark border: seen on any picture
function stroke(c, width, path) {
  c.beginPath();
  path();
  c.lineWidth = width + 2;
  c.strokeStyle = "#0009";
  c.stroke();
  c.lineWidth = width;
  c.strokeStyle = "#ffd54a";
  c.stroke();
}

const middle = (view, [x, y]) => view.point([x + 0.5, y + 0.5]);

// Around pixels whose numbers are shown
function frame(c, view, x0, y0, x1, y1) {
  const [left, top] = view.point([Math.min(x0, x1), Math.min(y0, y1)]);
  const [right, bottom] = view.point([Math.max(x0, x1) + 1, Math.max(y0, y1) + 1]);
  stroke(c, 1.5, () => c.rect(left, top, right - left, bottom - top));
}

function line(c, view, [x0, y0, x1, y1]) {
  if (view.hasNumbers && (x0 === x1 || y0 === y1)) return frame(c, view, x0, y0, x1, y1);
  stroke(c, 1.5, () => {
    c.moveTo(...middle(view, [x0, y0]));
    c.lineTo(...middle(view, [x1, y1]));
  });
}

export function marks(c, view) {
  const { x, y, width, height } = view.inner;
  if (view.hover && view.hasCrosshair && view.hasNumbers) frame(c, view, ...view.hover, ...view.hover);
  else if (view.hover && view.hasCrosshair) {
    const [px, py] = middle(view, view.hover);
    stroke(c, 1, () => {
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        c.moveTo(px + 6 * dx, py + 6 * dy);
        c.lineTo(dx ? (dx > 0 ? x + width : x) : px, dy ? (dy > 0 ? y + height : y) : py);
      }
    });
  }
  const { profile, histogram } = view.measured;
  if (profile) line(c, view, profile);
  if (view.line && view.line !== profile && view.host.tool() === "line") line(c, view, view.line);
  if (view.region && (histogram || view.host.tool() === "region")) {
    const [left, top] = view.point(view.region);
    const [right, bottom] = view.point([view.region[0] + view.region[2], view.region[1] + view.region[3]]);
    stroke(c, 1.5, () => c.rect(left, top, right - left, bottom - top));
  }
}
