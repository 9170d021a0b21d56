# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTML of the parts of a report."""
import html
import os

STYLE = """
:root { color-scheme: light dark; --ink: #1d2327; --soft: #5b666e; --paper: #fff; --line: #d5dade; --pale: #f3f5f6;
  --good: #1a6b3c; --bad: #a8271a; --warn: #8a5a00; --c0: #0b62a4; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --c4: #525c63 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaed; --soft: #a2adb5; --paper: #15191c; --line: #3a4349;
  --pale: #1f2529; --good: #6fce95; --bad: #ff9384; --warn: #e8b55a; --c0: #6cb6f5; --c1: #fb9a63; --c2: #6fd08f; --c3: #cf9bff;
  --c4: #b3bdc4 } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --pale: #f3f5f6; --good: #1a6b3c;
  --bad: #a8271a; --warn: #8a5a00; --c0: #0b62a4; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --c4: #525c63 }
  body { font-size: 10pt } figure, tr, .warning { break-inside: avoid } h2 { break-after: avoid }
  details::details-content { content-visibility: visible; block-size: auto } }
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 70rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line) }
p { margin: .3rem 0 } .soft, figcaption small, td small { color: var(--soft) }
table { border-collapse: collapse; width: 100%; font-size: .92rem } .wide { overflow-x: auto }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td code, .path { overflow-wrap: anywhere }
th { font-weight: 600; color: var(--soft) } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.met { color: var(--good) } .missed { color: var(--bad) } .met, .missed { font-weight: 600; white-space: nowrap }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .85em }
pre { background: var(--pale); padding: .8rem; border-radius: .4rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 }
.warning { border-left: .3rem solid var(--warn); background: var(--pale); padding: .5rem .8rem; margin: .5rem 0; overflow-wrap: anywhere }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1.5rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, var(--width)), 1fr)); gap: .8rem }
.title { margin-top: 1.2rem } .tiles img { display: block; width: 100%; max-width: var(--width) } .tiles small { color: var(--soft) }
figure { margin: 0; min-width: 0 } figcaption { font-weight: 600; margin-bottom: .3rem; overflow-wrap: anywhere }
figcaption small { font-weight: 400; display: block }
.frame { position: relative } .frame img { display: block; width: 100%; background: var(--pale); image-rendering: auto }
.tall { padding-left: 1.8rem } .rule { position: absolute; left: -.5rem; bottom: 0; border-left: 3px solid }
.rule span { position: absolute; right: .4rem; bottom: 0; writing-mode: vertical-rl; transform: rotate(180deg); font-size: .8rem;
  line-height: 1.1; white-space: nowrap }
.scale { border-bottom: 3px solid; height: .5rem; border-left: 3px solid; border-right: 3px solid; min-width: 7px }
.ends { display: flex; justify-content: space-between; font-size: .8rem; font-variant-numeric: tabular-nums; gap: .5rem }
.bar { height: .7rem; margin-top: .5rem; border: 1px solid var(--line) }
svg { display: block; width: 100%; max-width: 40rem; height: auto; color: var(--ink) }
@media screen and (max-width: 34rem) { /* a row of a table is a paragraph, which begins with its first cell */
  .stack thead { display: none } .stack tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .35rem 0;
  border-bottom: 1px solid var(--line) } .stack td { border: 0; padding: 0; white-space: normal; overflow-wrap: anywhere }
  .stack td:first-child, .stack td:has(.path, code) { flex: 1 0 100% } .settings td:first-child { color: var(--soft) }
  .settings td:last-child:not(:empty)::before { content: "default " } .settings td:last-child { color: var(--soft) } }
details summary { cursor: pointer; color: var(--soft) } footer { margin-top: 3rem; color: var(--soft); font-size: .85rem }
"""


def escape(text):
    return html.escape(str(text))


def number(value):
    """With four digits that count; text as it is."""
    if value is None:
        return "none"
    if isinstance(value, (bool, str)):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e7:
        return str(int(value))
    return f"{float(value):.4g}"


def words(value):
    """A setting as it is written in a command: lists with blanks, what is in them and tuples with commas."""
    if isinstance(value, (list, tuple)):
        return ("," if isinstance(value, tuple) else " ").join(words(tuple(part) if isinstance(part, list) else part) for part in value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def size(n_bytes):
    for unit, step in ("GB", 10 ** 9), ("MB", 10 ** 6), ("kB", 1000):
        if n_bytes >= step:
            return f"{n_bytes / step:.3g} {unit}"
    return f"{n_bytes} bytes"


def rows(columns, entries, numeric=(), kind=""):
    """columns: headings; entries: rows of HTML; numeric: columns of numbers; kind: a class of the style"""
    def mark(i):
        return ' class="n"' if i in numeric else ""

    head = "".join(f"<th{mark(i)}>{escape(c)}</th>" for i, c in enumerate(columns))
    body = "".join("<tr>" + "".join(f"<td{mark(i)}>{cell}</td>" for i, cell in enumerate(entry)) + "</tr>\n" for entry in entries)
    return f'<div class="wide {kind}"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n'


def is_unchecked(entry):
    """entry: a figure. Returns: whether it has a limit that the command could not judge"""
    return bool(entry["limit"]) and entry["met"] is None


def figures(entries):
    """The figures of quality, with their limits."""
    marks = {True: '<span class="met">✓ met</span>', False: '<span class="missed">✗ not met</span>', None: ""}

    def limit_of(entry):
        return f'{entry["limit"]} {entry["unit"]}' if is_unchecked(entry) else entry["limit"]

    def judged(entry):
        return '<b>not checked</b>' if is_unchecked(entry) else marks[entry["met"]]

    return rows(("figure", "value", "limit", ""), [
        (escape(e["name"]) + (f'<br><small>{escape(e["about"])}</small>' if e["about"] else ""),
         "" if is_unchecked(e) else escape(f'{number(e["value"])} {e["unit"]}'.strip()), escape(limit_of(e)), judged(e)) for e in entries], (1,), "stack")


def settings(entries):
    return rows(("of", "setting", "value", "default"), [
        (escape(e["owner"]), escape(e["name"]) + (f'<br><small>{escape(e["about"])}</small>' if e["about"] else ""),
         escape(f'{e["value"]} {e["unit"]}'.strip()), escape(e["default"])) for e in entries], kind="stack settings")


def inputs(entries):
    table = rows(("input", "file", "size", "SHA-256"), [
        (escape(e["role"]), f'<span class="path">{escape(e["path"])}</span>', size(e["size"]), f'<code>{e["sha256"]}</code>') for e in entries], (2,), "stack")
    if len(entries) <= 12:
        return table
    total = size(sum(e["size"] for e in entries))
    return f"<details><summary>{len(entries)} files, {total}</summary>\n{table}</details>\n"


def table(title, columns, entries, caption=""):
    numeric = {i for entry in entries for i, cell in enumerate(entry) if isinstance(cell, (int, float))}
    cells = [[escape(number(cell)) for cell in entry] for entry in entries]
    return f'<h2>{escape(title)}</h2>\n' + (f'<p class="soft">{escape(caption)}</p>\n' if caption else "") \
        + rows(columns, cells, numeric)


def plot(title, svg, caption=""):
    small = f"<small>{escape(caption)}</small>" if caption else ""
    return f"<figure><figcaption>{escape(title)}{small}</figcaption>{svg}</figure>\n"


def gallery(sections):
    """Pictures and plots side by side where there is room; tables below each other."""
    parts, shown = [], []
    for section in [*sections, ""]:
        if section.startswith("<figure"):
            shown.append(section)
            continue
        if shown:
            parts.append(f'<div class="gallery">\n{"".join(shown)}</div>\n')
            shown = []
        parts.append(section)
    return "".join(parts)


def document(result, command_line, sections, made):
    """The page."""
    missed = sum(entry["met"] is False for entry in result["figures"])
    limits = sum(entry["met"] is not None for entry in result["figures"])
    unchecked = sum(map(is_unchecked, result["figures"]))
    told = [f"{limits - missed} of {limits} limits met"] if limits else []
    told += [f"{unchecked} not checked"] if unchecked else []
    told += [f'{len(result["warnings"])} warning{"s"[:len(result["warnings"]) != 1]}'] if result["warnings"] else ["no warnings" if told else "No warnings"]
    parts = [f'<h1>{escape(result["title"])}</h1>\n<p class="soft">{", ".join(told)}. Made on {made}.</p>\n']
    parts += [f'<p class="warning">{escape(sentence)}</p>\n' for sentence in result["warnings"]]
    if result["figures"]:
        parts += ["<h2>Quality</h2>\n", figures(result["figures"])]
    if sections:
        parts += ["<h2>Results</h2>\n", gallery(sections)]
    parts += ["<h2>Settings</h2>\n", settings(result["settings"]) if result["settings"]
              else "<p>All settings have their default values.</p>\n"]
    if result["inputs"]:
        parts += ["<h2>Inputs</h2>\n", inputs(result["inputs"])]
    parts += [f'<h2>Repeat it</h2>\n<p>In <code>{escape(result["folder"])}</code>:</p>\n<pre>{escape(command_line)}</pre>\n']
    facts = ". ".join(f"{escape(name)}: {escape(value)}" for name, value in result["facts"])
    title = escape(os.path.basename(result["title"]) or result["title"])
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{''.join(parts)}"
            f"<footer>{facts}</footer>\n</body>\n</html>\n")
