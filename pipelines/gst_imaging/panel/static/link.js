// SPDX-License-Identifier: LGPL-2.1-or-later
// The WebSocket of the panel: commands with replies, messages by type, and a new connection after a lost one.
import { numbers } from "./dom.js";

export class Link extends EventTarget {
  #socket = null;
  #next = 1;
  #waiting = new Map();
  #delay = 500;

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws`);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.#delay = 500;
      this.#tell("open");
    };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") this.#receive(JSON.parse(event.data));
      else this.#picture(event.data);
    };
    socket.onclose = () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("The connection was lost before the answer."));
      this.#waiting.clear();
      this.#tell("lost", { seconds: this.#delay / 1000 });
      setTimeout(() => this.connect(), this.#delay);
      this.#delay = Math.min(this.#delay * 2, 5000);
    };
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  // Resolves with the result. Rejects with the sentence of the server.
  ask(command, values = {}) {
    if (!this.isOpen) return Promise.reject(new Error("There is no connection to the panel."));
    const id = this.#next++;
    this.#socket.send(JSON.stringify({ id, do: command, ...values }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  // Without an answer.
  send(command, values = {}) {
    if (this.isOpen) this.#socket.send(JSON.stringify({ do: command, ...values }));
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #receive(message) {
    if (message.type === "results") for (const name of ["values", "field"]) message[name] = numbers(message[name]);
    if (message.type !== "reply") return this.#tell(message.type, message);
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.ok) waiting?.resolve(message.result);
    else waiting?.reject(Object.assign(new Error(message.error), { status: message.status, exists: message.exists }));
  }

  #picture(data) {
    const n = new DataView(data).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, n)));
    for (const part of [header.values, header.profile]) if (part) part.samples = numbers(part.samples);
    this.#tell("picture", { header, jpeg: new Blob([new Uint8Array(data, 4 + n)], { type: "image/jpeg" }) });
  }
}
