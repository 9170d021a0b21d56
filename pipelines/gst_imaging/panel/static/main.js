// SPDX-License-Identifier: LGPL-2.1-or-later
// The page: what the server tells goes to the views, controls, results and health; buttons and keys go to the server.
import * as colours from "./colours.js";
import { Controls, askToReplace } from "./controls.js";
import { ask, askName, confirm, FilePicker, frame } from "./files.js";
import { h, number, options, seconds } from "./dom.js";
import { Health, Messages } from "./health.js";
import { Link } from "./link.js";
import { Measure } from "./measure.js";
import { Results } from "./results.js";
import { View } from "./view.js";

const $ = (id) => document.getElementById(id);
const KEYS = [
  ["Space", "Start or pause"],
  ["r", "Record, or end the recording"],
  ["s", "Snapshot"],
  ["z", "Undo"],
  ["v", "Add a view"],
  ["x", "Close the view that has the focus"],
  ["/", "Search settings"],
  ["g", "Go to the picture"],
  ["t", "Light or dark theme"],
  ["?", "This list"],
  ["← → ↑ ↓", "Picture: pan, with Shift farther"],
  ["+ − 0 1", "Picture: zoom in, out, fit, one to one"],
  ["Alt and ← → ↑ ↓", "Picture: move the inspected sample"],
  ["a", "Picture: window and level by themselves"],
  ["w W, l L", "Picture: window narrower and wider, level lower and higher"],
  ["p, b", "Picture: begin and end a line, or a region, at the inspected sample"],
  ["Click", "Picture: keep the row and column that are measured, or follow the mouse again"],
  ["Shift and drag", "Picture: window (sideways) and level (up and down)"],
  ["Esc", "Field: the value in use"],
];

const link = new Link();
let state = null;
let views = [];
let seeking = false;

const host = {
  link,
  numbers: [1, 2, 3, 4, 5, 6, 7, 8],
  pads: () => state?.pads ?? [],
  frames: () => {
    const { duration, rate } = state?.layout?.pass ?? {};
    return duration ? Math.round(duration * rate) : 0;
  },
  volume: () => state?.layout?.volume ?? null,
  settings: () => state.view,
  files: () => state?.files ?? [],
  shown: () => views,
  elementOf: (pad) => state?.elements.find((e) => e.name === state.pads.find((v) => v.pad === pad)?.element),
  changed: () => {
    results.show(state.elements, state.layout);
    measure.update();
  },
  tool: () => measure.tool,
  hovered: (view) => {
    for (const other of views) if (other !== view && String(other.source) === String(view.source)) other.link(view.hover);
    results.hovered(view);
    measure.hovered();
    relight(view);
  },
  pictured: (view) => measure.pictured(view),
  chosen: (view) => measure.choose(view),
  drawn: (view, tool) => measure.drawn(view, tool),
  saved: () => ($("undo").disabled = false),
  close: (view) => {
    if (views.length < 2) return;
    views = views.filter((v) => v !== view);
    view.close();
    arrange();
  },
};

const controls = new Controls(host, $("controls"));
const results = new Results(host, $("results"));
const measure = new Measure(host, $("measure"));
const health = new Health($("health"), $("short"));
const messages = new Messages($("messages"), $("tab-messages"));

let hide = 0;
function toast(text, bad = false) {
  $("toast").textContent = text;
  $("toast").classList.toggle("bad", bad);
  $("toast").classList.add("on");
  clearTimeout(hide);
  hide = setTimeout(() => $("toast").classList.remove("on"), 5000);
}

async function run(command, values, done) {
  try {
    const result = await askToReplace({ link }, command, values);
    done?.(result);
    return result;
  } catch (error) {
    toast(error.message, true);
    return null;
  }
}

// --- views

function arrange() {
  $("views").replaceChildren(...views.map((v) => v.root));
  $("views").dataset.n = views.length;
  $("add-view").disabled = host.numbers.length < 2;
  results.show(state.elements, state.layout);
  measure.update();
  explain();
}

function add(pad, settings) {
  if (!pad || host.numbers.length < (settings?.compare ? 3 : 2)) return;
  const view = new View(host, pad, settings);
  views.push(view);
  return view;
}

// The name of the file or folder that a description plays
function fileOf(elements) {
  const properties = elements[0]?.properties ?? [];
  const [path, paths] = ["location", "locations"].map((name) => properties.find((p) => p.name === name)?.value);
  return (path || paths?.[0] || "").split("/").filter(Boolean).at(-1) ?? null;
}

// What a pipeline shows first.
function first() {
  const { main, before, after, shared, volume, more } = state.layout ?? {};
  const known = (pad) => pad && state.pads.some((v) => v.pad === pad);
  // behind the last element of ours: what it does is seen
  const ours = state.pads.filter((v) => state.elements.find((e) => e.name === v.element)?.ours);
  const last = ours.filter((v) => v.element === ours.at(-1).element)[0];
  const pad = known(main) ? main : (last ?? state.pads[0])?.pad;
  if (known(before) && known(after)) add(before, { compare: [before, after], shared });
  else add(pad);
  for (const { pad: other, ...settings } of more ?? []) if (known(other)) add(other, settings);
  if (volume && known(volume.pad)) {
    const { width, height } = state.pads.find((v) => v.pad === volume.pad);
    const places = { row: volume.row ?? Math.floor((height ?? 0) / 2), column: volume.column ?? Math.floor((width ?? 0) / 2),
      "max-row": 0 };
    for (const [section, place] of Object.entries(places)) add(volume.pad, { section, place });
  }
  arrange();
}

$("add-view").onclick = () => {
  const free = state.pads.find((v) => !views.some((s) => s.pad === v.pad)) ?? state.pads[0];
  if (free && add(free.pad)) arrange();
};

// The mouse over a picture of relight is its lamp: the middle is 90 degrees up, the nearer edges 0.
let lamp = 0;
const lampDrag = String(Math.random());
function relight(view) {
  const element = view.layers.map((l) => host.elementOf(l.pad)).find((e) => e?.element === "relight");
  if (!element || !view.hover || !view.canvas.matches(":hover") || Date.now() - lamp < 60) return;
  lamp = Date.now();
  const [width, height] = view.source;
  const [dx, dy] = [view.hover[0] - width / 2, height / 2 - view.hover[1]];
  const azimuth = ((Math.atan2(dy, dx) * 180) / Math.PI + 360) % 360;
  const elevation = (Math.acos(Math.min(1, Math.hypot(dx, dy) / (Math.min(width, height) / 2))) * 180) / Math.PI;
  link.ask("set", { element: element.name, values: { azimuth, elevation }, drag: lampDrag }).catch(() => {});
}

// --- what the server tells

link.addEventListener("open", () => {
  $("lost").hidden = true;
  $("link").title = $("link").ariaLabel = "connected";
  $("link").classList.add("on");
});

link.addEventListener("lost", ({ detail }) => {
  $("lost").textContent = `The connection to the panel is lost. The pipeline may still run. Next try in ${number(detail.seconds, 2)} s.`;
  $("lost").hidden = false;
  $("link").title = $("link").ariaLabel = "not connected";
  $("link").classList.remove("on");
  results.reset();
});

link.addEventListener("state", ({ detail }) => {
  const again = state !== null;
  state = detail;
  colours.learn(state.view.colours.values);
  $("title").textContent = { oct: "Tomography", ao: "Wavefront sensor", sharpen: "Sharpening", photostereo: "Photometric stereo",
    insar: "SAR offsets", view: "Pictures" }[state.ready] ?? "Pipeline";
  $("title").title = state.description;
  $("version").textContent = state.version;
  const source = state.layout?.title ?? fileOf(state.elements);
  document.title = `${source ? `${source} – ` : ""}${$("title").textContent} – gst-imaging panel`;
  controls.show(state.elements, state.layout);
  showPipeline(state.pipeline);
  showPresets(state);
  showRecording(state.recording);
  messages.show(state.messages ?? []);
  health.show(state.health);
  if (again && views.length) {
    for (const view of views) {
      view.refresh();
      view.open();
    }
    results.show(state.elements, state.layout);
  } else first();
});

link.addEventListener("picture", ({ detail }) => {
  if (results.picture(detail.header)) return;
  for (const view of views) view.picture(detail.header, detail.jpeg);
});
link.addEventListener("view-error", ({ detail }) => views.find((v) => v.layers.some((l) => l.number === detail.view))?.error(detail.error));
link.addEventListener("property", ({ detail }) => {
  const { type: _, ...told } = detail; // that of the message, not of the property
  const p = state?.elements.find((e) => e.name === detail.element)?.properties.find((q) => q.name === detail.name);
  if (p) Object.assign(p, told);
  controls.property(told);
});
link.addEventListener("settings", ({ detail }) => {
  if (!detail.accepted) toast(`${detail.element}: ${detail.text}`, true);
});
link.addEventListener("message", ({ detail }) => {
  messages.add(detail);
  if (detail.severity === "error" && !detail.follows) toast(detail.text, true);
});
link.addEventListener("event", ({ detail }) => {
  results.event(detail);
  controls.event(detail);
});
link.addEventListener("results", ({ detail }) => results.results(detail));
link.addEventListener("health", ({ detail }) => {
  health.show(detail);
  results.health(detail);
  if (state) state.health = detail;
  explain();
});
link.addEventListener("pipeline", ({ detail }) => showPipeline(detail));
link.addEventListener("presets", ({ detail }) => showPresets(detail));
link.addEventListener("recording", ({ detail }) => showRecording(detail.recording));
link.addEventListener("pads", ({ detail }) => {
  if (!state) return;
  state.pads = detail.pads;
  if (!views.length) first();
  for (const view of views) view.refresh();
});

// --- the pipeline

// The position goes from frame to frame: through the file, or through one pass of files that are played again and again.
function extent() {
  const duration = state?.pipeline.duration ?? state?.layout?.pass?.duration ?? null;
  const rate = state?.layout?.pass?.rate ?? state?.pads.find((v) => v.framerate)?.framerate;
  return { duration, step: rate && duration ? 1 / rate : (duration ?? 0) / 1000 };
}

// Why a view has no picture.
function explain() {
  const { state: name, ended } = state?.pipeline ?? {};
  const text = ended ? state.pipeline.reason
    : { stopped: "The pipeline is stopped. Start plays it.", failed: "The pipeline has failed. The tab Messages says why.",
      paused: "The pipeline is paused, and no frame has passed here since. Start plays it." }[name]
      ?? state?.health?.hint ?? "Waiting for the first picture";
  const old = ended && state.pipeline.camera ? state.pipeline.reason : name === "playing" ? (state?.health?.hint ?? null) : null;
  for (const view of views) {
    view.wait(text);
    view.age(old);
  }
  // a picture that stands still does not look live
  const p = state?.pipeline ?? {};
  const isSilent = name === "playing" && Boolean(state?.health?.hint);
  $("pipeline-state").textContent = isSilent ? "no frames" : p.live && name === "playing" ? "live" : ended ? "ended" : (name ?? "…");
  $("pipeline-state").dataset.state = isSilent ? "silent" : (name ?? "");
  $("pipeline-state").title = old ?? "";
}

function showPipeline(p) {
  if (state) state.pipeline = p;
  explain();
  const playing = p.state === "playing";
  $("play").textContent = playing ? "Pause" : "Start";
  $("play").classList.toggle("primary", !playing);
  $("stop").disabled = p.state === "stopped";
  const { duration, step } = extent();
  const position = p.duration || !duration || p.position === null ? p.position : p.position % duration; // in this pass of a loop
  $("position").textContent = duration ? `${seconds(position)} / ${seconds(duration)}` : seconds(position);
  $("seek").disabled = !p.seekable || !duration;
  $("seek").title = $("seek").disabled ? "This pipeline cannot seek" : "Position; an arrow key moves one frame";
  if (!duration) return;
  $("seek").max = Math.max(1, Math.round(duration / step) - 1);
  if (!seeking) $("seek").value = Math.floor(position / step + 1e-3);
}

$("play").onclick = () => run("pipeline", { state: state?.pipeline.state === "playing" ? "paused" : "playing" });
$("stop").onclick = () => run("pipeline", { state: "stopped" });
$("seek").oninput = () => {
  seeking = true;
  $("position").textContent = seconds($("seek").value * extent().step);
};
$("seek").onchange = () => {
  seeking = false;
  run("seek", { seconds: $("seek").value * extent().step + 1e-6 }); // not the end of the frame before it
};

// --- recording

function current() {
  return (views.find((v) => v.root.contains(document.activeElement)) ?? views[0])?.layers.at(-1).pad;
}

function showRecording(r) {
  if (state) state.recording = r;
  $("record").textContent = r ? "End" : "Record";
  $("record").classList.toggle("recording", Boolean(r));
  $("recording").textContent = r ? `${r.frames} frames${r.ending ? `, ${r.waiting} to write` : ""}${r.lost ? `, ${r.lost} lost` : ""}` : "";
  $("record").disabled = Boolean(r?.ending);
  $("record").title = r ? "End the recording (r)" : "Record the frames of the view (r)";
  $("recording").title = r?.path ?? "";
}

async function save(command, title, name) {
  const pad = current();
  if (!pad) return;
  const path = await new FilePicker(host).choose(title, name);
  if (path === null) return;
  const values = { pad, path, ...(command === "record" && { frames: 0 }) };
  const done = (r) => toast(`${command === "record" ? "Recording into" : "Saved"} ${r.path}`);
  try {
    done(await link.ask(command, values));
  } catch (error) {
    if (!error.exists) toast(error.message, true);
    else if (await confirm(`${path} exists. Replace it?`, "Replace")) await run(command, { ...values, replace: true }, done);
  }
}

const stamp = () => new Date().toISOString().slice(0, 19).replace(/[:T]/g, "-");
$("record").onclick = () => {
  if (state?.recording) run("record-stop", {},
    (r) => toast(`${r.frames} frames in ${r.path}${r.lost ? `, ${r.lost} lost` : ""}`, r.lost > 0));
  else save("record", "Record the frames of the view", `run-${stamp()}.npy`);
};
$("snapshot").onclick = () => save("snapshot", "Save one frame of the view", `frame-${stamp()}.npy`);

// --- presets

function showPresets(p) {
  if (state) state.presets = p.presets;
  const chosen = p.presets.includes($("presets").value) ? $("presets").value : p.presets[0];
  options($("presets"), p.presets.length ? p.presets.map((n) => [n, n]) : [["", "no presets"]], chosen ?? "");
  for (const id of ["presets", "preset-load", "preset-compare", "preset-delete"]) $(id).disabled = !p.presets.length;
  $("undo").disabled = !p["can-undo"];
}

const presets = (result) => showPresets({ presets: result.presets, "can-undo": !$("undo").disabled });
$("preset-load").onclick = () => run("preset-load", { name: $("presets").value }, (r) => {
  presets(r);
  toast(`Loaded ${$("presets").value}`);
});
$("preset-save").onclick = async () => {
  const name = await askName("Save the settings as a preset");
  if (name !== null) run("preset-save", { name }, (r) => {
    presets(r);
    $("presets").value = name;
    toast(`Saved ${name}`);
  });
};
$("preset-delete").onclick = async () => {
  const name = $("presets").value;
  if (await confirm(`Delete the preset ${name}?`, "Delete")) run("preset-delete", { name }, presets);
};
$("preset-compare").onclick = () => {
  const now = ["", "the values of now"];
  const [a, b] = ["First", "Second"].map((label) => h("select", { "aria-label": label, onchange: () => show() }));
  options(a, [now, ...state.presets.map((n) => [n, n])], $("presets").value);
  options(b, [now, ...state.presets.map((n) => [n, n])], "");
  const table = h("div", { class: "table", tabindex: 0 });
  const show = () => run("preset-compare", { ...(a.value && { a: a.value }), ...(b.value && { b: b.value }) },
    ({ differences }) => table.replaceChildren(
    differences.length ? h("table", {}, h("thead", {},
      h("tr", {}, ...["Element", "Setting", a.value || "now", b.value || "now"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, ...differences.map((d) => h("tr", {},
        ...[d.element, d.property, String(d.a), String(d.b)].map((t) => h("td", {}, t)))))) : "No setting differs."));
  const dialog = frame("Compare two presets", h("div", { class: "row" }, a, b), table,
    h("div", { class: "buttons" }, h("button", { class: "primary" }, "Close")));
  dialog.id = "compare";
  show();
  ask(dialog);
};
$("undo").onclick = () => run("undo", {},
  ({ undone }) => toast(undone.map((u) => `${u.element} ${u.property}: ${u.value}`).join(", ") || "Undone"));

// --- tabs, theme, keys

const tabs = [...document.querySelectorAll("[role=tab]")];
function openTab(tab) {
  for (const t of tabs) {
    const on = t === tab;
    t.setAttribute("aria-selected", String(on));
    t.tabIndex = on ? 0 : -1;
    $(t.getAttribute("aria-controls")).hidden = !on;
  }
  measure.update();
}
for (const tab of tabs) {
  tab.onclick = () => openTab(tab);
  tab.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    openTab(next);
    next.focus();
  };
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // private windows have no storage
  }
  for (const view of views) view.draw();
  results.draw();
  measure.draw();
}
let remembered = null;
try {
  remembered = localStorage.getItem("theme");
} catch {
  // see above
}
setTheme(remembered ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark"));
$("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

$("help").onclick = () => {
  const dialog = frame("Keyboard shortcuts",
    h("dl", { class: "keys" }, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("div", { class: "buttons" }, h("button", { class: "primary" }, "Close")));
  dialog.id = "keys";
  ask(dialog);
};

const actions = {
  r: () => $("record").click(), s: () => $("snapshot").click(), z: () => $("undo").click(), v: () => $("add-view").click(),
    t: () => $("theme").click(), "?": () => $("help").click(),
  "/": () => $("search").focus(), g: () => views[0]?.canvas.focus(), " ": () => $("play").click(),
  x: () => {
    const view = views.find((v) => v.root.contains(document.activeElement));
    if (view) host.close(view);
  },
};
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input:not([type=range]):not([type=checkbox]), select, textarea, dialog");
  const presses = event.key === " " && event.target.closest?.("button, summary, input, [role=tab]");
  if (field || presses || event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});

window.panel = { views: host.shown }; // for a look with the tools of a developer
link.connect();
