#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What all scripts promise: --help, a sentence where there is no display, old
# results that stay when a run fails, and outputs that appear together or not at
# all, also after SIGTERM in a later stage.
# Usage: test-outputs.sh FOLDER-OF-DATA
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=$1
. "$scripts/examples/insar-common.sh"
unset DISPLAY WAYLAND_DISPLAY

for script in "$scripts"/* "$scripts"/examples/{octbscan,photostereo,shcentroid}-*; do
  [[ -f $script && -x $script ]] || continue
  timeout 60 "$script" --help > help 2>&1 < /dev/null || fail "$script --help exits with $?"
  [[ -s help ]] || fail "$script --help says nothing"
done
rm help

# npy NAME FRAMES VALUE: 60 x 60 pixels
npy() {
  /usr/bin/python3 - "$@" << 'END'
import struct, sys
header = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 60, 60), }" % int(sys.argv[2])
header += " " * (63 - (10 + len(header)) % 64) + "\n"
frame = bytearray(3600)
for y in range(10, 60, 20):
    for x in range(10, 60, 20):
        for v in range(-2, 3):
            for u in range(-2, 3):
                frame[(y + v) * 60 + x + u] = int(sys.argv[3]) // (1 + u * u + v * v)
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(frame * int(sys.argv[2]))
END
}

# --- a display

npy dark.npy 3 0
npy spots.npy 3 250
for run in "gst-imaging centroids spots.npy --view -o out" "examples/octbscan-live"; do
  # shellcheck disable=SC2086 # words
  said=$(timeout 60 "$scripts"/$run 2>&1)
  status=$?
  ((status == 1 || status == 2)) || fail "$run exits with $status"
  [[ $said == *"display"* && $said != *Traceback* ]] || fail "$run says: $said"
done

# --- SIGTERM in a later stage: when $1 holds something, COMMAND gets it

interrupt() {
  local pattern=$1 pid
  shift

  find . | sort > ../before
  "$@" > /dev/null 2>&1 &
  pid=$!
  for ((i = 0; i < 600; i++)); do
    # shellcheck disable=SC2086 # a pattern
    [[ -n $(find . -path "$pattern" -size +0 2> /dev/null) ]] && break
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.02
  done
  kill -0 "$pid" 2> /dev/null || fail "$1 has ended before"
  kill -TERM "$pid"
  wait "$pid"
  status=$?
  ((status == 143)) || fail "$1 exits with $status after SIGTERM"
  find . | sort | cmp - ../before || fail "$1 leaves $(find .)"
}

mkdir results
cd results || exit 1
if command -v "$scripts/env" > /dev/null && [[ -e $data/insarxcorr/affine/ref.PRM ]] &&
  "$scripts/env" gst-inspect-1.0 insarxcorr > /dev/null 2>&1; then
  interrupt './.gst-imaging-work/fit.txt' "$scripts/gst-imaging" coregister \
    "$data"/insarxcorr/affine/{ref,sec}.PRM -o . xsearch=32 ysearch=32 --slc --taps 32
fi
interrupt '*work/*.npy' "$scripts/examples/photostereo-bands" .
exit $failed
