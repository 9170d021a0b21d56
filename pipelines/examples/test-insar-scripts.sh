#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# How the commands for SAR images behave among others: --help, any file names, a
# folder that cannot be written, a reader that goes away, a full disk, Ctrl-C, a
# language with decimal commas; and what they leave when they fail.
# Usage: test-insar-scripts.sh FOLDER-OF-DATA
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=$1/insarxcorr/affine
. "$scripts/examples/insar-common.sh"

# says STATUS WORDS COMMAND...: it exits with that, writes a sentence with these
# words to standard error, and no traceback
says() {
  local status=$1 words=$2 said
  shift 2

  said=$("$@" 2>&1 > "$work/stdout")
  local found=$?
  ((found == status)) || fail "$* exits with $found, not $status: $said"
  [[ $said == *"$words"* ]] || fail "$* says: $said"
  [[ $said != *Traceback* ]] || fail "$* has a traceback"
}

PATH=$scripts/gmtsar:$scripts:$PATH
grid=(-nx 3 -ny 4 -xsearch 32 -ysearch 32)

for name in xcorr fitoffset offsets coregister; do
  says 0 '' gst-imaging "$name" --help
  grep -q "gst-imaging $name" stdout || fail "$name --help says nothing of itself"
done
[[ $(xcorr 2>&1 > stdout) == *SECONDARY.PRM* && ! -s stdout ]] || fail "xcorr without arguments"
# as GMTSAR's: what is no option, and no number
says 2 'Unrecognized arguments: -input' xcorr a.PRM b.PRM -input
says 2 'a whole number is needed, and this is "1e3"' xcorr a.PRM b.PRM -nx 1e3

# names that a shell or GStreamer may take for something else
odd='a "b\c '\''d ! e=f.'
mkdir "$odd"
cp "$data"/{ref,sec}.{PRM,SLC} "$odd"
chmod -R u+w "$odd"
mv "$odd/ref.SLC" "$odd/a b.SLC"
sed -i 's/ref.SLC/a b.SLC/' "$odd/ref.PRM"
says 0 '' xcorr "$odd/ref.PRM" "$odd/sec.PRM" "${grid[@]}"
cp freq_xcorr.dat "$odd/offsets \\.dat"
says 0 '' fitoffset.csh 3 3 "$odd/offsets \\.dat" 18
cp stdout fit.txt
[[ $(fitoffset.csh 3 3 freq_xcorr.dat 18 2>&1 > fit.txt) =~ \ 11\ offsets,\ rms\ 0\..*\ in\ columns\ [0-9]+\ to\  ]] ||
  fail "fitoffset tells nothing of the fit"
cmp stdout fit.txt || fail "the fit is another at the second time"
grep -q '^rshift =  3 $' fit.txt || fail "the fit is $(cat fit.txt)"
says 0 '' fitoffset.csh 3 3 freq_xcorr.dat 18 --picture "$odd/field.svg" --report "$odd/fit & <b>.html"
[[ $(head -c 4 "$odd/field.svg") == '<svg' && $(head -c 9 "$odd/fit & <b>.html") == '<!DOCTYPE' ]] || fail "no picture, no page"
grep -q 'offsets in the fit' "$odd/fit & <b>.html" || fail "the page has no figures"
grep -q '<b>' "$odd/fit & <b>.html" && fail "the page does not escape names"
says 0 '' xcorr "$odd/ref.PRM" "$odd/sec.PRM" "${grid[@]}" -report xcorr.html
grep -q 'patches that correlate' xcorr.html || fail "the page of xcorr has no figures"
rm xcorr.html
says 0 '' gst-imaging offsets "$odd/ref.PRM" "$odd/sec.PRM" -o "$odd/out" mode=compat nx=3 ny=4 xsearch=32 ysearch=32
[[ -s $odd/out/offsets.csv && -s $odd/out/offsets.npy && -s $odd/out/fit.txt && -s $odd/out/report.html ]] || fail "$(ls "$odd/out")"
cp "$odd/out/fit.txt" before.txt
LC_ALL=de_DE.UTF-8 says 0 '' fitoffset.csh 3 3 freq_xcorr.dat 18.0
cmp stdout fit.txt || fail "another language makes another fit"

# what fails leaves what was there, and nothing else
find . ! -name before > before
cp freq_xcorr.dat freq
says 3 'There is no file "none.PRM"' xcorr none.PRM "$odd/sec.PRM"
says 3 'There is no file "none.PRM"' gst-imaging offsets none.PRM "$odd/sec.PRM" -o "$odd/out"
cmp freq_xcorr.dat freq || fail "a failure has changed freq_xcorr.dat"
cmp "$odd/out/fit.txt" before.txt || fail "a failure has changed fit.txt"

find . ! -name before ! -name freq | cmp - before || fail "a failure leaves files"
# but a fit of another run is not left beside new offsets
says 4 'has another result' gst-imaging offsets "$odd/ref.PRM" "$odd/sec.PRM" -o "$odd/out" nx=3 ny=4 fit-snr=100
says 0 'not enough points' gst-imaging offsets "$odd/ref.PRM" "$odd/sec.PRM" -o "$odd/out" --overwrite nx=3 ny=4 xsearch=32 ysearch=32 fit-snr=100
[[ -s $odd/out/offsets.csv && ! -e $odd/out/fit.txt ]] || fail "$(ls -l "$odd/out")"

# results do not take the place of what is read
mkdir own
cp "$odd"/{ref.PRM,sec.SLC,"a b.SLC"} own
sed 's/sec.SLC/secondary.SLC/' "$odd/sec.PRM" > own/sec.prm
mv own/sec.SLC own/secondary.SLC
cp fit.txt own
cksum own/* > before-own
for command in coregister offsets; do
  says 4 'has files that are no part of a result' gst-imaging "$command" own/ref.PRM own/sec.prm -o own
done
says 2 'fit.txt" would be replaced, and it is no picture' fitoffset.csh 3 3 freq_xcorr.dat --picture own/fit.txt
says 2 'would be replaced' xcorr own/ref.PRM own/sec.prm "${grid[@]}" -report own/ref.PRM
cksum own/* | cmp - before-own || fail "what is read was replaced"
rm -r own before-own

# words with a = are properties only when they begin as one
says 3 'There is no file "./a=b"' gst-imaging coregister ./a=b "$odd/sec.PRM" -o new
says 2 'REFERENCE and SECONDARY are two images, and there are 3' gst-imaging coregister a b c -o new
[[ ! -e new ]] || fail "a failure leaves a folder"

# nowhere to write to
cd /proc || exit 1
says 4 '"freq_xcorr.dat" cannot be written' xcorr "$work/$odd/ref.PRM" "$work/$odd/sec.PRM"
cd "$work" || exit 1
says 4 '/proc/out cannot be written' gst-imaging offsets "$odd/ref.PRM" "$odd/sec.PRM" -o /proc/out
says 4 'stdout is no folder' gst-imaging coregister "$odd/ref.PRM" "$odd/sec.PRM" -o stdout
says 4 '"/nowhere/x.svg" cannot be written' fitoffset.csh 3 3 freq_xcorr.dat 18 --picture /nowhere/x.svg
says 2 '"4" is not one of 1, 3, ..., 63' gst-imaging coregister a.PRM b.PRM -o new --window 4 5

# what is no freq_xcorr.dat
says 1 'Line 1 of the offsets has a zero byte' fitoffset.csh 3 3 "$odd/sec.SLC"
says 1 'not enough points' fitoffset.csh 3 3 /dev/null
says 3 'is a directory' fitoffset.csh 3 3 "$odd"

# nobody reads; a full disk
{ fitoffset.csh 3 3 freq_xcorr.dat 18 2> said; echo $? > status; } | :
[[ $(cat status) =~ ^(0|141)$ && -z $(grep -v ' offsets, rms \| has errors of about ' said) ]] || fail "without a reader: $(cat status said)"
says 4 'No space left on device.' bash -c 'exec fitoffset.csh 3 3 freq_xcorr.dat 18 > /dev/full'

# shellcheck disable=SC2016 # of the inner shell
says 4 'File too large' bash -c 'ulimit -f 4; exec xcorr "$0/ref.PRM" "$0/sec.PRM" -nx 50 -ny 50 -xsearch 32 -ysearch 32' "$odd"

# Ctrl-C in the middle
/usr/bin/python3 - << 'PYTHON' || fail "Ctrl-C"
import os, signal, subprocess, sys, time

def take_default():  # a shell's background jobs would not see it
    signal.signal(signal.SIGINT, signal.default_int_handler)

folder = next(name for name in os.listdir() if os.path.isdir(name))
before = sorted(os.listdir())
for number in signal.SIGINT, signal.SIGTERM:
    run = subprocess.Popen(["xcorr", folder + "/ref.PRM", folder + "/sec.PRM", "-nx", "200", "-ny", "900", "-ysearch", "32"],
                           stderr=subprocess.PIPE, preexec_fn=take_default)
    for _ in range(100):
        time.sleep(0.1)
        if any(name.startswith(".freq_xcorr") and os.path.getsize(name) for name in os.listdir()):
            break
    run.send_signal(number)
    said = run.communicate(timeout=20)[1].decode()
    if run.returncode != -number or said != f"gst-imaging xcorr: Stopped by {number.name}.\n" or sorted(os.listdir()) != before:
        sys.exit(f"{number}: exit status {run.returncode}, it says {said!r}, and leaves {os.listdir()}")
PYTHON
exit $failed
