// SPDX-License-Identifier: LGPL-2.1-or-later
"use strict";

// The page: mouse, touch and keys, and what they change.
relief.page = (() => {
  const WHITE = 0.9; // of the screen, where the light meets a surface without albedo head-on
  const about = relief.about;
  const get = (id) => document.getElementById(id);
  const [picture, overlay, lamp] = ["picture", "overlay", "lamp"].map(get);
  const scene = {
    x: -0.6, y: 0.45, ambient: 0, diffuse: about.diffuse, specular: 0, shininess: 30, gamma: 2.2, painted: true, plain: WHITE / about.diffuse,
    relief: 1, show: "surface", serial: 1,
  };
  const view = new relief.View(picture, about, scene);
  const pointers = new Map(); // id -> where it is, in device pixels
  let tool = "light";
  let line = null; // of the profile, two places
  let samples = [];
  let rest = 0;

  relief.tell = (text) => {
    get("note").textContent = text;
    get("note").hidden = !text;
  };

  const choose = (without) => {
    try {
      if (without) throw new Error("WebGL was lost");
      view.lighter = new relief.Gpu(about);
      view.lighter.lost = () => choose(true);
    } catch (error) {
      view.lighter = new relief.Cpu(about);
      relief.tell(`${error.message}: the picture is computed without it, and is coarser while the light moves.`);
    }
    view.draw();
  };

  // --- what is shown

  const changed = () => {
    scene.serial++;
    for (const button of document.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", button.dataset.tool === tool);
    for (const button of document.querySelectorAll("[data-show]")) button.setAttribute("aria-pressed", button.dataset.show === scene.show);
    get("albedo").checked = scene.painted;
    get("relief").value = scene.relief;
    get("gloss").value = scene.specular;
    get("heights").hidden = scene.show !== "height";
    get("relief-value").textContent = `${scene.relief.toFixed(1)}×`;
    picture.style.cursor = { light: "crosshair", move: "grab", measure: "cell" }[tool];
    drawLamp();
    if (view.lighter.slow) {
      view.moving = true;
      clearTimeout(rest);
      rest = setTimeout(() => {
        view.moving = false;
        view.draw();
      }, 200);
    }
    view.draw();
  };

  const set = (values) => {
    Object.assign(scene, values);
    const length = Math.hypot(scene.x, scene.y);
    if (length > 1) {
      scene.x /= length;
      scene.y /= length;
    }
    changed();
  };

  const setTool = (name) => {
    tool = name;
    changed();
  };

  const drawLamp = () => {
    const ratio = window.devicePixelRatio || 1;
    const size = lamp.clientWidth;
    const context = lamp.getContext("2d");
    const radius = size / 2 - 5;
    lamp.width = lamp.height = size * ratio;
    context.scale(ratio, ratio);
    context.translate(size / 2, size / 2);
    const shade = context.createRadialGradient(radius * scene.x, -radius * scene.y, 0, 0, 0, 2 * radius);
    shade.addColorStop(0, "#8a96a2");
    shade.addColorStop(1, "#1b2128");
    for (const [x, y, r, fill] of [[0, 0, radius, shade], [radius * scene.x, -radius * scene.y, 4.5, "#ffd166"]]) {
      context.beginPath();
      context.arc(x, y, r, 0, 2 * Math.PI);
      context.fillStyle = fill;
      context.fill();
    }
    const elevation = (Math.acos(Math.min(1, Math.hypot(scene.x, scene.y))) * 180) / Math.PI;
    const azimuth = ((Math.atan2(scene.y, scene.x) * 180) / Math.PI + 360) % 360;
    lamp.setAttribute("aria-valuetext", `azimuth ${azimuth.toFixed(0)} degrees, elevation ${elevation.toFixed(0)} degrees`);
  };

  const drawRule = () => {
    const ratio = window.devicePixelRatio || 1;
    const round = relief.roundLength((180 * ratio / view.scale) * about.pixel);
    get("rule").style.width = `${(round / about.pixel) * view.scale / ratio}px`;
    get("rule").firstElementChild.textContent = `${Number(round.toPrecision(2))} ${about.unit}`;
  };

  const drawLine = () => {
    const context = overlay.getContext("2d");
    overlay.width = picture.width;
    overlay.height = picture.height;
    if (!line) return;
    const points = line.map(([x, y]) => [(x - view.x) * view.scale, (y - view.y) * view.scale]);
    const ratio = window.devicePixelRatio || 1;
    for (const [width, colour] of [[4, "#000"], [2, "#6cc4f5"]]) {
      context.lineWidth = width * ratio;
      context.strokeStyle = colour;
      context.beginPath();
      points.forEach(([x, y]) => context.lineTo(x, y));
      context.stroke();
      for (const [x, y] of points) {
        context.beginPath();
        context.arc(x, y, 5 * ratio, 0, 2 * Math.PI);
        context.stroke();
      }
    }
  };

  view.painted = () => {
    drawRule();
    drawLine();
  };

  const tellHeights = () => {
    const [low, high] = get("heights").querySelectorAll("span");
    const digits = Math.max(0, 2 - Math.floor(Math.log10(about.highest - about.lowest || 1)));
    low.textContent = about.lowest.toFixed(Math.min(digits, 9));
    high.textContent = `${about.highest.toFixed(Math.min(digits, 9))} ${about.unit}`;
    get("heights").querySelector("i").style.background = `linear-gradient(90deg, ${relief.COLOURS.map((c) => `rgb(${c})`).join()})`;
  };

  // --- the profile

  const measure = async (from, to) => {
    line = [from, to];
    drawLine();
    const asked = line;
    const found = await relief.profile(view.maps, about, from, to).catch((error) => (relief.tell(error.message), null));
    if (!found || asked !== line) return; // another line has been drawn meanwhile
    samples = found;
    const known = samples.map((sample) => sample[1]).filter(Number.isFinite);
    const long = samples.at(-1)[0];
    get("chart").hidden = false;
    drawChart();
    get("chart").querySelector("output").textContent = `Length ${long.toPrecision(4)} ${about.unit}` + (known.length
      ? `, height from ${Math.min(...known).toPrecision(4)} to ${Math.max(...known).toPrecision(4)} ${about.unit}` : "");
  };

  const drawChart = () => get("chart").hidden || relief.chart(get("chart").querySelector("canvas"), samples, about.unit);

  const closeProfile = () => {
    line = null;
    get("chart").hidden = true;
    drawLine();
  };

  const csv = () => `distance (${about.unit}),height (${about.unit})\n` + samples.map(([distance, height]) =>
    `${distance.toPrecision(7)},${Number.isFinite(height) ? height.toPrecision(7) : ""}\n`).join("");

  const saveProfile = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "profile.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // --- mouse and touch

  const where = (event) => {
    const box = picture.getBoundingClientRect();
    const ratio = picture.width / box.width;
    return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  };

  // As relight has it: the middle is above, and a circle that touches the nearer edges is along the surface.
  const lightFrom = (x, y, width, height) => {
    const radius = Math.min(width, height) / 2;
    set({ x: (x - width / 2) / radius, y: (height / 2 - y) / radius });
  };

  const act = (event, begins) => {
    const at = where(event);
    const before = pointers.get(event.pointerId) ?? at;
    pointers.set(event.pointerId, at);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const spread = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      if (spread(before) > 0) view.zoom(spread(at) / spread(before), other[0], other[1]);
      view.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
    } else if (tool === "move" || event.buttons & 6) {
      view.pan(at[0] - before[0], at[1] - before[1]);
    } else if (tool === "light") {
      lightFrom(...at, picture.width, picture.height);
    } else {
      const place = view.place(...at);
      measure(begins || !line ? place : line[0], place);
    }
  };

  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    act(event, true);
  });
  picture.addEventListener("pointermove", (event) => pointers.has(event.pointerId) && act(event, false));
  for (const name of ["pointerup", "pointercancel"]) picture.addEventListener(name, (event) => pointers.delete(event.pointerId));
  picture.addEventListener("contextmenu", (event) => event.preventDefault());
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(2 ** (-event.deltaY / (event.deltaMode ? 6 : 300)), ...where(event));
  }, { passive: false });
  for (const name of ["pointerdown", "pointermove"])
    lamp.addEventListener(name, (event) => {
      if (name === "pointerdown") lamp.setPointerCapture(event.pointerId);
      const box = lamp.getBoundingClientRect();
      if (event.buttons) lightFrom(event.clientX - box.left, event.clientY - box.top, box.width, box.height);
    });

  // --- keys and buttons

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const actual = () => view.zoom(1 / view.scale);
  const KEYS = {
    "+": () => view.zoom(1.5), "=": () => view.zoom(1.5), "-": () => view.zoom(1 / 1.5), 0: () => view.fit(), 1: actual,
    a: () => set({ painted: !scene.painted }), s: () => set({ show: "surface" }), n: () => set({ show: "normals" }),
    h: () => set({ show: "height" }), r: () => set({ relief: scene.relief >= 8 ? 1 : Math.min(8, scene.relief + 1) }),
    g: () => set({ specular: scene.specular >= 1 ? 0 : Math.min(1, scene.specular + 0.25) }),
    l: () => setTool("light"), m: () => setTool("move"), p: () => setTool("measure"), Escape: closeProfile,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const arrow = ARROWS[event.key];
    if (arrow && event.target.type !== "range") {
      if (event.shiftKey) view.pan(-60 * arrow[0], 60 * arrow[1]);
      else set({ x: scene.x + 0.05 * arrow[0], y: scene.y + 0.05 * arrow[1] });
    } else if (KEYS[event.key] ?? KEYS[event.key.toLowerCase()]) {
      (KEYS[event.key] ?? KEYS[event.key.toLowerCase()])();
    } else return;
    event.preventDefault();
  });

  for (const button of document.querySelectorAll("[data-tool]")) button.onclick = () => setTool(button.dataset.tool);
  for (const button of document.querySelectorAll("[data-show]")) button.onclick = () => set({ show: button.dataset.show });
  get("albedo").onchange = (event) => set({ painted: event.target.checked });
  get("relief").oninput = (event) => set({ relief: Number(event.target.value) });
  get("gloss").oninput = (event) => set({ specular: Number(event.target.value) });
  get("in").onclick = KEYS["+"];
  get("out").onclick = KEYS["-"];
  get("fit").onclick = KEYS[0];
  get("full").onclick = actual;
  get("save").onclick = saveProfile;
  get("close").onclick = closeProfile;

  // --- start

  document.title = get("title").textContent = about.title;
  picture.setAttribute("aria-label", `${about.title}, under a light that moves`);
  tellHeights();
  view.maps = new relief.Maps(about, () => view.draw(), (tile) => view.lighter.forget(tile));
  choose(false);
  new ResizeObserver(() => {
    view.resize();
    drawChart();
  }).observe(picture);
  changed();
  return { scene, view, set, setTool, measure, samples: () => samples, csv };
})();
