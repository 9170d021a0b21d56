// SPDX-License-Identifier: LGPL-2.1-or-later
// Tables as files of the browser.

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// Numbers have all their digits; null is NaN.
export function text(names, rows) {
  return [names.map(quoted).join(), ...rows.map((row) => row.map((v) => (v === null ? "NaN" : quoted(String(v)))).join())].join("\n") + "\n";
}

export function named(name, unit) {
  return unit ? `${name} (${unit})` : name;
}

export function download(name, names, rows) {
  const url = URL.createObjectURL(new Blob([text(names, rows)], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
