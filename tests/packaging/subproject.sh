#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Another project builds with this one as its subproject, as the example does.
# Usage: tests/packaging/subproject.sh SOURCES BUILD
set -euo pipefail
work=$2/packaging/subproject
rm -rf "$work"
mkdir -p "$work"
cp -r "$1/pipelines/examples/subproject" "$work/project"
ln -s "$1" "$work/project/subprojects/gst-imaging"
{
  meson setup "$work/build" "$work/project" -Doptimization=0 \
    --force-fallback-for=gst-imaging-1.0,gst-imaging-kernels
  ninja -C "$work/build" sharpen
} > "$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
"$work/build/sharpen" | tee "$work/output"
[[ $(tail -n 1 "$work/output") == "10 0 30 20" ]]
