# SPDX-License-Identifier: LGPL-2.1-or-later
"""A page on which visitors move the light over a result of photostereo. It opens by double click, without a server.

    web.write(np, folder, "A coin", Maps(normals, albedo, height), mm_per_pixel=0.05, diffuse=1.2)

A page from file:// may read no file beside it except scripts and styles. So the maps lie in scripts, in tiles of several sizes,
as text of pictures without loss.
"""
import json
import os
import shutil

from . import tiles
from .tiles import Maps

FILES = "index.html", "page.css", "maps.js", "light.js", "view.js", "profile.js", "page.js"


def write(np, folder, title, maps, pixel, unit, diffuse):
    """Makes the folder of a page. pixel: its width in unit; diffuse: strength of the light, as relight has it"""
    os.makedirs(os.path.join(folder, "tiles"))
    for name in FILES:
        shutil.copyfile(os.path.join(os.path.dirname(__file__), "static", name), os.path.join(folder, name))
    low, high = maps.range(np)
    about = {"title": title, "pixel": pixel, "unit": unit, "diffuse": diffuse, "tile": tiles.SIZE, "grey": maps.albedo.ndim == 2,
             "lowest": low, "highest": high, "levels": []}
    for level, scaled in enumerate(tiles.pyramid(np, maps)):
        about["levels"].append(list(scaled.size[::-1]))
        for row, column, told in tiles.cut(np, scaled, low, high):
            key = f"{level}-{column}-{row}"
            with open(os.path.join(folder, "tiles", f"{key}.js"), "w", encoding="ascii") as file:
                file.write(f'relief.tile("{key}", {json.dumps(told)});\n')
    with open(os.path.join(folder, "about.js"), "w", encoding="ascii") as file:
        file.write(f"relief.about = {json.dumps(about, indent=1)};\n")
