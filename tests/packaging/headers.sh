#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every installed header compiles alone, in C and in C++, with warnings on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
stage headers

# alone COMPILER LANGUAGE HEADER PACKAGE
alone() {
  local cflags

  cflags=$(pkg-config --cflags "$4") || return
  # -isystem: warnings of GStreamer's headers are not ours, but ours are
  cflags=$(sed "s|-I\(/usr/\)|-isystem \1|g" <<< "$cflags")
  # shellcheck disable=SC2086 # several flags
  "$1" -x "$2" -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only \
    $cflags -include "$3" /dev/null
}

headers_of() {
  find "$stage_root$includedir" -path "*/$1/*" -name '*.h' | sort
}

declare -A folders=([gst-imaging-kernels]=imk [gst-imaging-1.0]=gst-imaging-1.0)
for package in "${!folders[@]}"; do
  mapfile -t headers < <(headers_of "${folders[$package]}")
  check "$package installs headers" test "${#headers[@]}" -gt 0
  for header in "${headers[@]}"; do
    name=${header#"$stage_root$includedir"/}
    check "$name compiles alone in C" alone cc c "$header" "$package"
    if command -v c++ > /dev/null; then
      check "$name compiles alone in C++" alone c++ c++ "$header" "$package"
    else
      skip "$name compiles alone in C++" "there is no C++ compiler"
    fi
  done
done
finish
