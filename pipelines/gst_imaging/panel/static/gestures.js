// SPDX-License-Identifier: LGPL-2.1-or-later
// What the mouse, fingers and keys do to a view.

export class Gestures {
  #pointers = new Map();
  #corner = null; // of what is marked by keys

  constructor(view) {
    this.view = view;
    this.#listen();
  }

  // Of another pad or section nothing is marked.
  forget() {
    this.#corner = null;
  }

  #listen() {
    const c = this.view.canvas;
    const at = (event) => {
      const box = c.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    c.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.view.zoom(Math.exp(-event.deltaY * 0.0015), at(event));
    }, { passive: false });
    c.addEventListener("contextmenu", (event) => event.preventDefault());
    let start = null; // of a click, or of what is drawn
    c.addEventListener("pointerdown", (event) => {
      c.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, at(event));
      start = this.#pointers.size === 1 ? at(event) : null;
    });
    for (const name of ["pointerup", "pointercancel"]) c.addEventListener(name, (event) => {
      this.#pointers.delete(event.pointerId);
      if (this.view.host.tool()) this.view.host.drawn(this.view);
      else if (name === "pointerup" && start && Math.hypot(at(event)[0] - start[0], at(event)[1] - start[1]) < 3) {
        const wasPinned = this.view.isPinned;
        this.view.isPinned = false;
        this.#point(at(event));
        this.view.isPinned = !wasPinned;
      }
      start = null;
    });
    this.view.root.addEventListener("focusin", () => this.view.host.chosen(this.view));
    c.addEventListener("pointerleave", () => this.#point(null));
    c.addEventListener("pointermove", (event) => {
      const here = at(event);
      const before = this.#pointers.get(event.pointerId);
      if (before && start && this.view.host.tool()) this.#mark(this.view.host.tool(), this.view.sample(start), this.view.sample(here));
      else if (before) {
        const [dx, dy] = [here[0] - before[0], here[1] - before[1]];
        const others = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
        if (others.length) {
          const far = (p) => Math.hypot(p[0] - others[0][0], p[1] - others[0][1]);
          this.view.zoom(far(here) / Math.max(far(before), 1), others[0]);
        } else if (event.shiftKey || event.buttons & 2) this.view.levels.drag(dx, dy);
        else this.view.pan(dx, dy);
        this.#pointers.set(event.pointerId, here);
      }
      this.#point(here);
    });
    c.addEventListener("dblclick", () => this.view.fit(true));
    c.addEventListener("keydown", (event) => this.#key(event));
    c.addEventListener("focus", () => {
      const { x, y, width, height } = this.view.inner;
      if (!this.view.hover) this.view.inspect(this.view.sample([x + width / 2, y + height / 2]), true);
    });
  }

  // A line or a region between two samples with fractions
  #mark(tool, from, to) {
    const [width, height] = this.view.source;
    const inside = ([x, y]) => [Math.max(0, Math.min(width - 1, Math.floor(x))), Math.max(0, Math.min(height - 1, Math.floor(y)))];
    const [[x0, y0], [x1, y1]] = [inside(from), inside(to)];
    if (tool === "line") this.view.line = [x0, y0, x1, y1];
    else this.view.region = [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0) + 1, Math.abs(y1 - y0) + 1];
    this.view.draw();
  }

  #markByKey(tool) {
    if (!this.view.hover) return;
    const from = this.#corner?.tool === tool ? this.#corner.at : this.view.hover;
    this.#corner = this.#corner?.tool === tool ? null : { tool, at: this.view.hover };
    this.#mark(tool, from, this.view.hover);
    if (!this.#corner) this.view.host.drawn(this.view, tool);
  }

  #key(event) {
    const step = event.shiftKey ? 160 : 40;
    const pans = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const arrow = pans[event.key];
    if (event.ctrlKey || event.metaKey) return;
    if (arrow && event.altKey) this.view.inspect(this.view.hover ? [this.view.hover[0] - Math.sign(arrow[0]), this.view.hover[1] - Math.sign(arrow[1])] : [0,
      0], true);
    else if (arrow) this.view.pan(...arrow);
    else if (event.key === "+" || event.key === "=") this.view.zoom(1.5);
    else if (event.key === "-") this.view.zoom(1 / 1.5);
    else if (event.key === "0") this.view.fit(true);
    else if (event.key === "1") this.view.zoom(1 / this.view.scale);
    else if (event.key === "a") this.view.levels.automatic();
    else if (event.key === "p") this.#markByKey("line");
    else if (event.key === "b") this.#markByKey("region");
    else if (event.key === "w" || event.key === "W") this.view.levels.drag(event.key === "w" ? -20 : 20, 0);
    else if (event.key === "l" || event.key === "L") this.view.levels.drag(0, event.key === "l" ? -20 : 20);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #point(here) {
    this.view.inspect(here && this.view.sample(here));
  }
}
