#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gst-imaging offsets on a pair whose offsets are known: its files
# agree with each other and with the truth, and a failure is a sentence.
# Usage: test-offsets.sh FOLDER-OF-DATA
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command=$here/../gst-imaging
data=$1/insarxcorr/affine
. "$here/insar-common.sh"

cd "$data" || exit 1
"$command" offsets ref.PRM sec.PRM -o "$work/out" mode=precise backend=cpu grid=step \
  step-x=80 step-y=96 xsearch=16 ysearch=16 window-width=64 window-height=128 ||
  fail "exit status $?"
cd "$work/out" || exit 1

# patches of 112 x 176 samples in 896 x 1024, 80 and 96 apart
rows=$(($(wc -l < offsets.csv) - 1))
((rows == 10 * 9)) || fail "$rows rows in the table"
size=$(stat -c %s offsets.npy)
((size == 128 + 8 * rows * 4)) || fail "offsets.npy has $size bytes"
head -c 80 offsets.npy | tr -d '\0' | grep -aq "'shape': (8, 9, 10)" || fail "offsets.npy has another shape"
# dr = 3.37 + 1.9e-3 x - 7e-4 y, da = -5.61 + 4e-4 x - 1.3e-3 y
awk -F, 'NR > 1 && $15 == 0 && $11 < 0.0025 && $12 < 0.0025 {
    n++
    x = $6 - (3.37 + 1.9e-3 * $4 - 7e-4 * $5)
    y = $7 - (-5.61 + 4e-4 * $4 - 1.3e-3 * $5)
    if (x * x > 0.04 || y * y > 0.04) { print "row " NR ": off by " x ", " y; bad = 1 }
  }
  END { exit bad || n < 80 }' offsets.csv || fail "the offsets are not the true ones"
[[ $(head -n 1 fit.txt) == "rshift =  3 " ]] || fail "the fit is $(cat fit.txt)"

if said=$("$command" offsets none.PRM none.PRM -o out 2>&1); then
  fail "there is no none.PRM, and that was no error"
fi
[[ $said == *'There is no file "none.PRM"'* ]] || fail "it said: $said"
exit $failed
