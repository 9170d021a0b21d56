// SPDX-License-Identifier: LGPL-2.1-or-later
// Dialogs: a file below the folders of --files, a name, and a list.
import { bytes, h } from "./dom.js";

// Shows a dialog until it is closed. Resolves with its returnValue, null if it was dismissed.
export function ask(dialog) {
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
  });
}

export function frame(title, ...content) {
  const dialog = h("dialog", { "aria-label": title });
  dialog.append(h("form", { method: "dialog" }, h("h2", {}, title), ...content));
  return dialog;
}

export class FilePicker {
  constructor(host) {
    this.host = host;
  }

  // With @suggested a new file may be named. Resolves with a path, null for none.
  async choose(title, suggested = null) {
    const list = h("ul", { class: "files" });
    const name = h("input", { type: "text", "aria-label": "Path", value: suggested ?? "", autocomplete: "off", required: true });
    const note = h("p", { class: "note", role: "status" });
    const dialog = frame(title, list, h("label", { class: "row" }, "Path", name), note,
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, "Choose")));
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close(name.value);
    });
    const show = async (folder) => {
      try {
        const { entries, folder: here, "left-out": n } = await this.host.link.ask("files", folder === null ? {} : { folder });
        const up = folder === null ? [] : [h("li", {}, h("button", { type: "button", onclick: () => show(null) }, "↑ all folders"))];
        note.textContent = n ? `${n} more names are not shown: type the path.` : entries.length ? "" : "This folder is empty.";
        list.replaceChildren(...up, ...entries.map((e) => h("li", {}, h("button", { type: "button", onclick: () => {
          if (e.folder) return show(e.path);
          name.value = e.path;
        } }, `${e.folder ? "📁 " : ""}${e.name}`), h("span", {}, e.folder ? "" : bytes(e.size)))));
        if (suggested !== null && here) name.value = `${here}/${suggested}`.replace("//", "/");
      } catch (error) {
        note.textContent = error.message;
      }
    };
    if (!this.host.files().length) note.textContent = "No folder was opened for the panel: start it with --files DIR.";
    else show(this.host.files()[0]);
    return ask(dialog);
  }
}

// Resolves with whether the button @yes was pressed.
export async function confirm(question, yes) {
  const dialog = frame(question, h("div", { class: "buttons" },
    h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
      h("button", { type: "submit", class: "primary", value: "yes" }, yes)));
  return (await ask(dialog)) === "yes";
}

export function askName(title, value = "") {
  const name = h("input", { type: "text", "aria-label": "Name", value, pattern: "[A-Za-z0-9 _\\-]{1,64}", required: true,
    title: "1 to 64 letters, digits, blanks, _ and -" });
  const dialog = frame(title, h("label", { class: "row" }, "Name", name),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Save")));
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close(name.value.trim());
  });
  return ask(dialog);
}
