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

for script in "$scripts"/*; do
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
for run in "shcentroid-file spots.npy --view" "octbscan-live"; do
  # shellcheck disable=SC2086 # words
  said=$(timeout 60 "$scripts"/$run 2>&1)
  status=$?
  ((status == 1)) || fail "$run exits with $status"
  [[ $said == *"display"* && $said != *Traceback* ]] || fail "$run says: $said"
done

# --- failures

for name in out.csv map.npy; do
  echo old > "$name"
done
echo old > target.csv
ln -s target.csv link.csv
ls -A > before
"$scripts/shcentroid-file" dark.npy --csv out.csv --map map.npy 2> said && fail "there is a grid in the dark"
grep -q grid said || fail "it says: $(cat said)"
rm said
for name in out.csv map.npy; do
  [[ $(cat "$name") == old ]] || fail "a failure has changed $name"
done
ls -A | cmp - before || fail "a failure leaves $(ls -A)"

"$scripts/shcentroid-file" spots.npy --csv link.csv --map map.npy > /dev/null ||
  fail "shcentroid-file exits with $?"
[[ -L link.csv && $(wc -l < target.csv) == 28 ]] || fail "$(ls -l link.csv target.csv)"
[[ $(head -c 6 map.npy | tail -c 5) == NUMPY ]] || fail "there is no map"
[[ $("$scripts/shcentroid-file" spots.npy --csv /dev/stdout --map map.npy | grep -c '^2,') == 9 ]] ||
  fail "/dev/stdout is no --csv"

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
  interrupt './.fit.txt*' "$scripts/insarxcorr-coregister" \
    "$data"/insarxcorr/affine/{ref,sec}.PRM . xsearch=32 ysearch=32 --slc --taps 32
fi
interrupt '*work/*.npy' "$scripts/photostereo-demo" .
exit $failed
