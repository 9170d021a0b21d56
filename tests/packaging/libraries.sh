#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The libraries of algorithms as a C program, ctypes or another language gets
# them: what they need, what they export, and that they can be linked.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
stage libraries

examples=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/examples")

# needs_only LIBRARY ALLOWED: a regular expression beside the C library's parts
needs_only() {
  local needed

  needed=$(readelf -d "$stage_root$libdir/$1.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  [[ -n $needed ]] && ! grep -Ev "^(lib(c|m|dl|pthread)|ld-linux[a-z0-9-]*)\.so|$2" <<< "$needed"
}

exported() {
  nm -D --defined-only "$stage_root$libdir/$1.so" | awk '{ print $3 }' | sort
}

exports_only_imk() {
  ! exported "$1" | grep -v '^imk_'
}

# What the preprocessor leaves of IMK_API ImkStatus imk_name (...);
declared() {
  local header

  for header in "$stage_root$includedir"/imk/*.h; do
    cc -E -P -I "$stage_root$includedir" "$header"
  done | tr '\n' ' ' |
    grep -oE 'visibility *\("default"\) *\)\) [A-Za-z0-9_ *]*\bimk_[a-z0-9_]+ \(' |
    grep -oE 'imk_[a-z0-9_]+ \(' | tr -d ' (' | sort -u
}

exports_all_declared() {
  local missing

  missing=$(comm -23 <(declared) <(for l in "${libraries[@]}"; do exported "$l"; done | sort -u))
  [[ -z $missing && $(declared | wc -l) -gt 50 ]] || { echo "not exported: $missing"; return 1; }
}

# program NAME OPTION...: of pkg-config
program() {
  # shellcheck disable=SC2046 # several flags
  cc -Wall -Werror "${@:3}" -o "$stage/$1" "$examples/kernels-shcentroid.c" \
    $(pkg-config --cflags --libs $2 gst-imaging-kernels) -lm && "$stage/$1"
}

needs_no_library() {
  program static --static -static && ! readelf -d "$stage/static" | grep NEEDED
}

libraries=(libimk)
check "libimk needs the C library alone" needs_only libimk '^$'
if [[ -e $stage_root$libdir/libimk-fft.so ]]; then
  libraries+=(libimk-fft)
  check "libimk-fft needs libimk and one FFT" \
    needs_only libimk-fft '^lib(imk|fftw3f|fftw3f_threads|kissfft-float)\.so'
fi
for library in "${libraries[@]}"; do
  check "$library exports names that begin with imk_" exports_only_imk "$library"
  check "$library is there as an archive" test -e "$stage_root$libdir/$library.a"
done
if ((${#libraries[@]} > 1)); then
  check "all that the headers declare is exported" exports_all_declared
else
  skip "all that the headers declare is exported" "built without an FFT"
fi
check "a program links libimk" program shared ''
check "a program links libimk.a and needs no library" needs_no_library
if /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
  check "ctypes loads libimk" /usr/bin/python3 "$examples/kernels-shcentroid.py"
else
  skip "ctypes loads libimk" "NumPy is not installed"
fi
finish
