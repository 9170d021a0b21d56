#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Replays the runs of GMTSAR in expected/commands.txt with the commands of
# pipelines/gmtsar, found in PATH as GMTSAR's scripts find them, and compares
# their files row by row, and the fits by the byte.
# Usage: test-gmtsar.sh FOLDER-OF-DATA
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$1/insarxcorr
PATH=$(cd "$here/../gmtsar" && pwd):$PATH
. "$here/insar-common.sh"

# compare FOUND EXPECTED EDGE_ROWS: all rows but those of the edge; 99.5 % must
# be the same, the others one step away, and column 5 within 0.02
compare() {
  awk -v edges="$3" '
    function far(a, b, limit) { return a - b > limit || b - a > limit }
    BEGIN { while ((getline row < edges) > 0) skip[row] = 1 }
    FNR == NR { expected[FNR] = $0; n_expected = FNR; next }
    {
      n = FNR
      split(expected[FNR], e, " ")
      # a surface of zeros has no peak: GMTSAR prints an older one
      if (FNR in skip || e[5] == 0) next
      n_rows++
      if ($1 != e[1] || $3 != e[3] || far($2, e[2], 0.13) || far($4, e[4], 0.13) || far($5, e[5], 0.0201)) {
        if (!bad) print "row " FNR ": " $0 ", expected " expected[FNR]
        bad = 1
      }
      if ($2 != e[2] || $4 != e[4]) n_other++
    }
    END {
      if (n != n_expected) { print n " rows, expected " n_expected; bad = 1 }
      if (n_other > 0.005 * n_rows) { print n_other " of " n_rows " rows differ"; bad = 1 }
      exit bad
    }' "$2" "$1"
}

# edit KEY=VALUE...: as the column "PRM edits" says it, into sec.PRM
edit() {
  local change

  for change; do
    echo "${change%%=*} = ${change#*=}" >> sec.PRM
  done
}

# The secondary and the reference as amplitudes, for -real.
make_real() {
  /usr/bin/python3 - << 'PYTHON' || return
import math, struct
for name in "ref", "sec":
    samples = open(name + ".SLC", "rb").read()
    values = struct.iter_unpack("<hh", samples)
    out = b"".join(struct.pack("<f", math.hypot(i, q)) for i, q in values)
    open(name + ".real", "wb").write(out)
    open(name + ".PRM", "a").write("SLC_file = %s.real\n" % name)
PYTHON
}

# replay PAIR NAME EDITS ARGUMENTS...
replay() {
  local pair=$1 name=$2 edits=$3 expected=$data/$1/expected file
  shift 3

  rm -f ./*
  cp "$data/$pair"/{ref,sec}.{PRM,SLC} .
  chmod u+w ./*
  # shellcheck disable=SC2086 # several edits
  edit $edits
  if [[ " $* " == *" -real "* ]]; then
    make_real || { fail "$pair $name: no amplitudes"; return; }
  fi
  if ! xcorr ref.PRM sec.PRM "$@" > log 2>&1; then
    cat log
    fail "xcorr $pair $name"
    return
  fi
  grep -q '^ elapsed time: ' log || fail "$pair $name does not say its time"
  file=$(ls ./*_xcorr*.dat)
  compare "$file" "$expected/$name.${file#./}" "$expected/$name.edge_rows.txt" ||
    fail "$pair $name"
  # where rows of GMTSAR are undefined, so is its fit
  if [[ -e $expected/$name.fit.txt && ! -e $expected/$name.edge_rows.txt ]]; then
    fitoffset.csh 3 3 "$file" 18 > fit.txt || fail "fitoffset.csh of $pair $name"
    cmp fit.txt "$expected/$name.fit.txt" || fail "fit of $pair $name"
  fi
  n_runs=$((n_runs + 1))
}

n_runs=0
for pair in affine envisat ampcor_wn; do
  while read -r name rest; do
    [[ $name == '#' || -z $name ]] && continue
    # "(rshift = 4, ashift = -6)  -nx ..."
    edits=$(sed -n 's/^(\([^)]*=[^)]*\)).*/\1/p' <<< "$rest" | tr -d ' ' | tr ',' ' ')
    [[ $name == real ]] && edits=
    [[ $rest == '('* ]] && rest=${rest##*)}
    arguments=()
    for word in $rest; do # up to the remark behind the options
      [[ $word =~ ^(-[a-z_]+4?|[0-9]+)$ ]] || break
      arguments+=("$word")
    done
    [[ $name == real ]] && arguments+=(-real)
    replay "$pair" "$name" "$edits" ${arguments[@]+"${arguments[@]}"} < /dev/null
  done < <(grep -v '^#' "$data/$pair/expected/commands.txt")
done
echo "$n_runs runs replayed"
((n_runs == 25)) || fail "there are 25 runs"

# the other fits, from GMTSAR's own offsets
for terms in '1 1' '2 2' '3 2'; do
  # shellcheck disable=SC2086 # two numbers
  fitoffset.csh $terms "$data/affine/expected/base.freq_xcorr.dat" > fit.txt
  cmp fit.txt "$data/affine/expected/base.fit_${terms/ /_}.txt" || fail "fit $terms"
done
head -n 7 "$data/affine/expected/base.freq_xcorr.dat" > few.dat
if fitoffset.csh 3 3 few.dat > fit.txt 2> log; then
  fail "seven offsets were fitted"
fi
[[ ! -s fit.txt ]] && grep -q 'FAILED - not enough points' log ||
  fail "seven offsets: $(cat fit.txt log)"
# a failure leaves nothing behind
cp "$data/affine/ref.PRM" .
rm -f ./*.dat ref.SLC
if xcorr ref.PRM ref.PRM > log 2>&1 || [[ -n $(find . -name '*xcorr*') ]]; then
  fail "an image that is not there was correlated"
fi
grep -q 'There is no file "ref.SLC"' log || fail "$(cat log)"
# nor is a number that cannot be meant replaced by another one
if xcorr ref.PRM ref.PRM -xsearch 5000 > log 2>&1 || ! grep -q 'xsearch is 5000, and goes from 4 to 1024' log; then
  fail "xsearch 5000: $(cat log)"
fi
if fitoffset.csh 3 3 none.dat > log 2>&1 || ! grep -q 'There is no file "none.dat"' log; then
  fail "offsets that are not there: $(cat log)"
fi
exit $failed
