# SPDX-License-Identifier: LGPL-2.1-or-later
# Sphinx makes the site of the pages in docs/; tools/site calls it. The pages
# stay as they are read in the repository: what Sphinx needs more is added here.
import os
import re
import sys

import furo

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # for codestyle
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(SOURCES, "meson.build"), encoding="utf-8") as meson:
    release = version = re.search(r"version: '([^']*)'", meson.read()).group(1)

project = "gst-imaging"
author = "The gst-imaging authors"
copyright = f"2026 {author}"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["site"]
html_theme = "furo"
pygments_style = "codestyle.CodeStyle"
pygments_dark_style = "github-dark"
html_title = f"gst-imaging {version}"
html_copy_source = False
# a page must not read others from file://, so each result would be an error
html_show_search_summary = False
templates_path = []
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

KINDS = (("Tutorials", "tutorials"), ("How to", "how-to"), ("Reference", "reference"), ("Explanation", "explanation"))
# Files of the repository that pages name, but that are no pages.
REPOSITORY = os.environ.get("GST_IMAGING_REPOSITORY", "")


def dark_colours():
    """The compiler of Debian's furo drops the dark colours for browsers that prefer them: code was dark on a light page then.
    furo puts colours from the options into each page, for these browsers, too."""
    path = os.path.join(os.path.dirname(furo.__file__), "theme", "furo", "static", "styles", "furo.css")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        css = file.read()
    dark = re.search(r'body\[data-theme="dark"\] {([^}]*)}', css)
    return dict(re.findall(r"--([\w-]+):\s*([^;]+);", dark[1])) if dark and "prefers-color-scheme" not in css else {}


html_theme_options = {"dark_css_variables": dark_colours()}


def contents():
    trees = (f"```{{toctree}}\n:hidden:\n:caption: {title}\n:glob:\n\n{folder}/*\n```\n" for title, folder in KINDS)
    return "\n" + "\n".join(trees)


def with_registry(page, text):
    """Puts properties and signals of the elements of a page, as tools/site wrote them, where the page has a place for them. Its pads
    stand in the page."""
    path = os.path.join(os.environ.get("GST_IMAGING_REGISTRY", ""), page + ".md")
    if not os.path.exists(path):
        return text
    with open(path, encoding="utf-8") as file:
        table = file.read()
    place = re.compile("<!-- registry -->\n.*?<!-- end of registry -->\n", re.S)
    if not place.search(text):
        return f"{text}\n## Properties and signals\n\n{table}"
    # a page with several places has all of it at the first
    return place.sub("", place.sub(lambda _match: table, text, count=1))


def apis():
    """What tools/site makes beside these pages"""
    found = os.environ.get("GST_IMAGING_APIS", "").split()
    texts = {"imk": "C API of the kernels, `imk/*.h`", "gstimaging": "GObject API, for C, Python and other languages"}
    links = (f'- <a href="api/{name}/index.html">{html_text(texts[name])}</a>' for name in found)
    return "\n## APIs\n\n" + "\n".join(links) + "\n" if found else ""


def html_text(text):
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def outside(match):
    """A link to a file of the repository: its text alone, or its address there"""
    text, path = match.groups()
    if REPOSITORY:
        return f"[{text}]({REPOSITORY}/{path})"
    return f"`{path}`" if path.lower().startswith(text.lower()) or text.endswith(path) else f"{text}: `{path}`"


def on_source(_app, name, source):
    source[0] = re.sub(r"\[([^\]]*)\]\(\.\./(?:\.\./)?((?:pipelines|README|CONTRIBUTING|CHANGELOG)[^)#]*)\)", outside, source[0])
    if name == root_doc:
        source[0] += apis() + contents()
    elif name.startswith("reference/"):
        source[0] = with_registry(os.path.basename(name), source[0])


def setup(app):
    app.connect("source-read", on_source)
