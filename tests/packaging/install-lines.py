#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What README.md and docs/how-to/install.md tell people to install is what
tools/setup and debian/control have, and docs/how-to/release.md names what there
is. Usage: install-lines.py SOURCES"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
failures = 0
count = 0


def check(sentence, missing):
    global count, failures
    count += 1
    failures += bool(missing)
    print("%s %d - %s" % ("not ok" if missing else "ok", count, sentence))
    if missing:
        print("# missing: " + " ".join(sorted(missing)))


def installed_by(page, heading):
    """The packages of the first apt-get line below a heading."""
    text = (ROOT / page).read_text().split("\n" + heading + "\n")[1].replace("\\\n", " ")
    return set(re.search(r"apt-get install ([a-z][^\n]*)", text)[1].split())


def array(name):
    """A list of tools/setup."""
    text = (ROOT / "tools/setup").read_text()
    return set(re.search(r"^%s=\(([^)]*)\)" % name, text, re.M)[1].split())


def fields(name):
    control = (ROOT / "debian/control").read_text()
    for value in re.findall(r"^%s:((?:.*\n)(?: .*\n)*)" % name, control, re.M):
        yield from (re.split(r"[ (<]", part.strip())[0] for part in value.split(",") if part.strip())


libraries = {n for n in fields("Build-Depends") if n.startswith("lib") and n.endswith("-dev")}
# of GstCuda, which tools/setup installs beside nvcc, and of JPEG by its virtual name
libraries -= {"libgstreamer-plugins-bad1.0-dev"}
names = {n for n in fields("Package")}

check("the line of install.md is that of tools/setup demo",
      (array("build") | array("run") | {"libgdal-dev"}) ^
      installed_by("docs/how-to/install.md", "## From source"))
check("tools/setup has every library of debian/control",
      libraries - array("build") - array("packages"))
check("the line of README.md has every library of debian/control",
      libraries - installed_by("README.md", "## Installing"))
page = (ROOT / "docs/how-to/install.md").read_text()
lines = {page: set(re.findall(r"apt-get install (\./\S+)", (ROOT / page).read_text())) for page in ("README.md", "docs/how-to/install.md")}
check("README.md and install.md install the same of build-packages/", lines["README.md"] ^ lines["docs/how-to/install.md"])
check("install.md names every package", {n for n in names if "`%s`" % n not in page})
page = (ROOT / "docs/how-to/release.md").read_text()
check("release.md names programs that exist",
      {n for n in re.findall(r"(?:tools|tests)/[\w-]+", page) if not (ROOT / n).exists()})
numbers = set(re.findall(r"check_version (\S+) ", (ROOT / "tools/packages").read_text())) | {"meson.build"}
check("release.md names every file whose number tools/packages compares", {n for n in numbers if "`%s`" % n not in page})
print("1..%d" % count)
sys.exit(failures != 0)
