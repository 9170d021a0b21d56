#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What our libraries ask the loader for. One binary package must work with and
# without driver, toolkit and GPU: only the CUDA modules may name a CUDA
# library, and not even they the driver or the runtime (which is static).
# Plug-ins name no large library.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

is_gpl() {
  local plugin=${1##*/libgst}

  grep -q "^[^ ]* ${plugin%.so} GPL " "$build/gst/plugins/elements.txt"
}

# allowed FILE: fails and prints what the file should not need
allowed() {
  local needed bad='^lib(cuda|cudart|nvcuvid|nvidia-[a-z]+|fftw3|fftw3_threads)\.so'

  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  case ${1##*/} in
    libimk-cuda*.so*) ;;
    *) bad+='|^lib(cufft|cufftw|cublas|cublasLt|cusolver|nvrtc|nvJitLink)\.so' ;;
  esac
  # of tests, libimk-fft, or a plug-in that says that it is under the GPL
  if [[ $1 != */tests/mock/* && $1 != */libimk-fft.so* ]] && ! is_gpl "$1"; then
    bad+='|^lib(fftw3f|fftw3f_threads)\.so'
  fi
  # a scan of the registry opens no large library: they are in modules
  case $1 in
    */gst/plugins/*) bad+='|^lib(cairo|png|tiff|cfitsio|OpenEXR|jpeg|raw|gdal)[-_.0-9]' ;;
  esac
  ! grep -E "$bad" <<< "$needed"
}

# resolved FILE: a plug-in with an undefined symbol of CUDA would not load
resolved() {
  ! nm -D --undefined-only "$1" | grep -E ' (cuda[A-Z]|cu[A-Z][a-z]+[A-Z]|cufft|cublas)'
}

mapfile -t libraries < <(find "$build" -path "$build/packaging" -prune -o \
  -type f -name '*.so*' -print | grep -E '\.so(\.[0-9.]+)?$' | sort)
check "there are libraries to look at" test "${#libraries[@]}" -gt 0
for library in "${libraries[@]}"; do
  check "${library#"$build"/} needs no library it should not" \
    allowed "$library"
  case ${library##*/} in
    libimk-cuda*) ;;
    *) check "${library#"$build"/} calls no CUDA function" resolved "$library" ;;
  esac
done
finish
