#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Follows docs/tutorials/new-element.md to the letter, in a copy of the sources:
# the commands of all sections, or with "cuda" those for the device.
# Usage: tests/packaging/new-element.sh SOURCES BUILD cpu|cuda
set -uo pipefail

copy=$2/new-element-$3
page=$1/docs/tutorials/new-element.md
n=0 failed=0

# check SENTENCE COMMAND...: one test; the end of what the command prints is shown
# when it fails.
check() {
  local sentence=$1 output
  shift

  n=$((n + 1))
  if output=$("$@" 2>&1); then
    echo "ok $n - $sentence"
  else
    failed=$((failed + 1))
    echo "not ok $n - $sentence"
    tail -n 60 <<< "$output" | sed 's/^/# /'
  fi
}

# commands SECTION: what is between the fences of a section of the page
commands() {
  awk -v section="## $1." 'index ($0, "## ") == 1 { here = index ($0, section) == 1 }
    /^```$/ { inside = 0 }
    here && inside
    /^```sh$/ { inside = 1 }' "$page"
}

# follow SECTION...: in one shell, as a reader does
follow() {
  local script="set -ex" section

  # as tests/run builds, so that ccache has nearly all objects
  script+=$'\nmeson () { if [[ $1 == setup ]]; then command meson "$@" --werror; else command meson "$@"; fi; }'
  for section; do
    script+=$'\n'$(commands "$section")
  done
  (cd "$copy" && bash -c "$script")
}

# The frame is 320x240 bytes, one and a half times as bright as without the element.
is_brighter() {
  cd "$copy" || return
  python3 -c 'import sys
plain, bright = (open (name, "rb").read () for name in sys.argv[1:])
assert len (plain) == 320 * 240 and bright == bytes (min ((3 * v + 1) // 2, 255) for v in plain)
' build/plain.raw build/mygain.raw
}

# What the sources do not say is not to be found, as in a copy of somebody else.
unset "${!GST_@}" "${!IMK_@}" MESON_DEVENV DESTDIR
# where ccache is: the folder of the copy is no reason to compile again
export CCACHE_BASEDIR=$copy
rm -rf "$copy"
mkdir -p "$copy"
tar -C "$1" --exclude='./build*' --exclude=./.git --exclude=./demo-output -c . | tar -C "$copy" -x

if [[ $3 == cpu ]]; then
  check "the commands work" follow 1 2 3 4 5 6 7
  check "the new element brightens" is_brighter
  check "it is in the lists of elements" grep -q '\[mygain\](reference/mygain.md)' "$copy/docs/index.md"
  check "nothing of the template's name is left" \
    bash -c "! grep -ri invert $copy/{gst,kernels}/mygain $copy/tests/*/*mygain*"
else
  check "the commands work" follow 1 2 8
  check "the CUDA module has the new kernel" \
    grep -q imk_mygain_cuda "$copy/build-cuda/kernels/module-plain.c"
fi
echo "1..$n"
exit $((failed != 0))
