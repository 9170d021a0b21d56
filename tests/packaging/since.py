#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of GStreamer that our libraries call is as old as 1.20, the
oldest that meson.build accepts, by what GStreamer's own descriptions (.gir)
say. GstCuda and GstTensorMeta are used where they are found and asked for by
version; they do not count. Usage: since.py BUILD ..."""
import glob
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

OLDEST = (1, 20)
C = "{http://www.gtk.org/introspection/c/1.0}"
FOLDERS = ["/usr/share/gir-1.0", *glob.glob("/usr/lib/*/gir-1.0")]
OPTIONAL = ("gst_cuda_", "gst_tensor_", "gst_buffer_add_tensor_meta", "gst_is_cuda_memory",
            "gst_context_new_cuda")


def versions():
    """{function: (major, minor) it came with}, (0, 0) for what has none."""
    found = {}
    for name in "Gst", "GstBase", "GstVideo":
        for folder in FOLDERS:
            path = os.path.join(folder, f"{name}-1.0.gir")
            if not os.path.exists(path):
                continue
            for element in ElementTree.parse(path).iter():
                function = element.get(C + "identifier")
                if function:
                    since = element.get("version", "0.0").split(".")
                    found[function] = (int(since[0]), int(since[1]))
    return found


def called(path):
    lines = subprocess.run(["nm", "-D", "--undefined-only", path], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    return {word.split("@")[0] for word in lines if word.startswith("gst_")}


def main():
    build = sys.argv[1]
    known = versions()
    if not known:
        print("1..0 # SKIP there are no .gir files of GStreamer")
        return 77
    libraries = sorted(glob.glob(f"{build}/common/libgstimaging-*.so")
                       + glob.glob(f"{build}/gst/*/libgst*.so"))
    bad, n_known = [], 0
    for path in libraries:
        for function in sorted(called(path)):
            if function.startswith(OPTIONAL) or function.startswith("gst_imaging_"):
                continue
            n_known += function in known
            if known.get(function, (0, 0)) > OLDEST:
                bad.append(f"{os.path.basename(path)} calls {function}, "
                           f"which came with {'.'.join(map(str, known[function]))}")
    print("1..1")
    for line in bad:
        print("#", line)
    print(f"# {n_known} calls in {len(libraries)} libraries")
    print("ok 1" if libraries and n_known > 100 and not bad else "not ok 1",
          "- nothing newer than GStreamer 1.20 is called")
    return bool(bad)


sys.exit(main())
