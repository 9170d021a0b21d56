#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every link of a page to another file, or to a heading, leads somewhere.

links.py SOURCE prints TAP.
"""
import pathlib
import re
import sys


def anchor(heading):
    """As GitHub makes it of a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def broken_links(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, fragment = link.partition("#")
        if re.match("[a-z]+:", link):
            continue
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif fragment and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
            if fragment not in map(anchor, headings):
                yield f"{link}: no such heading"


def main():
    source = pathlib.Path(sys.argv[1])
    pages = sorted(source.glob("*.md")) + sorted(source.glob("docs/**/*.md"))
    failed = 0
    for number, page in enumerate(pages, 1):
        broken = list(broken_links(page))
        failed += bool(broken)
        print("not ok" if broken else "ok", number, "- links of", page.relative_to(source))
        for line in broken:
            print("#", line)
    print(f"1..{len(pages)}")
    sys.exit(failed > 0)


main()
