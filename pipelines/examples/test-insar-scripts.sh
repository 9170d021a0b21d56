#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# How the scripts for SAR images behave among others: --help, any file names, a
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

PATH=$scripts:$PATH
grid=(-nx 3 -ny 4 -xsearch 32 -ysearch 32)

for script in xcorr fitoffset insarxcorr-{offsets,coregister,field}; do
  says 0 '' "$script" --help
  grep -q "${script#insarxcorr-}" stdout || fail "$script --help says nothing of itself"
done
[[ $(xcorr 2>&1 > stdout) == *SECONDARY.PRM* && ! -s stdout ]] || fail "xcorr without arguments"

# names that a shell or GStreamer may take for something else
odd='a "b\c '\''d ! e=f.'
mkdir "$odd"
cp "$data"/{ref,sec}.{PRM,SLC} "$odd"
chmod -R u+w "$odd"
mv "$odd/ref.SLC" "$odd/a b.SLC"
sed -i 's/ref.SLC/a b.SLC/' "$odd/ref.PRM"
says 0 '' xcorr "$odd/ref.PRM" "$odd/sec.PRM" "${grid[@]}"
cp freq_xcorr.dat "$odd/offsets \\.dat"
says 0 '' fitoffset 3 3 "$odd/offsets \\.dat" 18
cp stdout fit.txt
[[ $(fitoffset 3 3 freq_xcorr.dat 18 2>&1 > fit.txt) =~ \ 11\ offsets,\ rms\ 0\..*\ in\ columns\ [0-9]+\ to\  ]] ||
  fail "fitoffset tells nothing of the fit"
cmp stdout fit.txt || fail "the fit is another at the second time"
grep -q '^rshift =  3 $' fit.txt || fail "the fit is $(cat fit.txt)"
says 0 '' insarxcorr-field freq_xcorr.dat fit.txt "$odd/field.svg"
says 0 '' insarxcorr-offsets "$odd/ref.PRM" "$odd/sec.PRM" "$odd/out" nx=3 ny=4 xsearch=32 ysearch=32
[[ -s $odd/out.csv && -s $odd/out.npy && -s $odd/out.prm ]] || fail "$(ls "$odd")"
cp "$odd/out.prm" before.prm
LC_ALL=de_DE.UTF-8 says 0 '' fitoffset 3 3 freq_xcorr.dat 18.0
cmp stdout fit.txt || fail "another language makes another fit"

# what fails leaves what was there, and nothing else
find . ! -name before > before
cp freq_xcorr.dat freq
says 1 'There is no file "none.PRM"' xcorr none.PRM "$odd/sec.PRM"
says 1 'There is no file "none.PRM"' insarxcorr-offsets none.PRM "$odd/sec.PRM" "$odd/out"
cmp freq_xcorr.dat freq || fail "a failure has changed freq_xcorr.dat"
cmp "$odd/out.prm" before.prm || fail "a failure has changed out.prm"

find . ! -name before ! -name freq | cmp - before || fail "a failure leaves files"
# but a fit of another run is not left beside new offsets
says 0 'not enough points' insarxcorr-offsets "$odd/ref.PRM" "$odd/sec.PRM" "$odd/out" nx=3 ny=4 xsearch=32 ysearch=32 fit-snr=100
[[ -s $odd/out.csv && ! -e $odd/out.prm ]] || fail "$(ls -l "$odd")"

# results do not take the place of what is read
mkdir own
cp "$odd"/{ref.PRM,sec.SLC,"a b.SLC"} own
sed 's/sec.SLC/secondary.SLC/' "$odd/sec.PRM" > own/sec.prm
mv own/sec.SLC own/secondary.SLC
cp fit.txt own
cksum own/* > before-own
says 1 'secondary.SLC" would be replaced' insarxcorr-coregister own/ref.PRM own/sec.prm own --slc
for n in 2 8; do
  says 1 'sec.prm" would be replaced' insarxcorr-offsets own/ref.PRM own/sec.prm own/sec nx=$n ny=$n xsearch=16 ysearch=16
done
says 1 'fit.txt" would be replaced, and it is no picture' insarxcorr-field freq_xcorr.dat own/fit.txt
says 1 'No correlation is above 99, the highest is' insarxcorr-field freq_xcorr.dat own/fit.txt x.svg 99
cksum own/* | cmp - before-own || fail "what is read was replaced"
rm -r own before-own

# words with a = are properties only when they begin as one
says 1 'There is no file "none.PRM"' insarxcorr-coregister none.PRM "$odd/sec.PRM" ./a=b
rmdir a=b || fail "./a=b is not taken as a folder"

# nowhere to write to
cd /proc || exit 1
says 1 '"freq_xcorr.dat" cannot be written' xcorr "$work/$odd/ref.PRM" "$work/$odd/sec.PRM"
cd "$work" || exit 1
says 1 '"/nowhere/out.csv" cannot be written' insarxcorr-offsets "$odd/ref.PRM" "$odd/sec.PRM" /nowhere/out
says 1 '"stdout": File exists' insarxcorr-coregister "$odd/ref.PRM" "$odd/sec.PRM" stdout
says 1 '"/nowhere/x.svg" cannot be written' insarxcorr-field freq_xcorr.dat /nowhere/x.svg
says 2 '"4" is not one of 1, 3, ..., 63' insarxcorr-coregister a.PRM b.PRM --window 4 5

# what is no freq_xcorr.dat
says 1 'rows of five numbers' insarxcorr-field "$odd/sec.SLC" x.svg
says 1 'Line 1 of the offsets has a zero byte' fitoffset 3 3 "$odd/sec.SLC"
says 1 'not enough points' fitoffset 3 3 /dev/null
says 1 'is a directory' fitoffset 3 3 "$odd"

# nobody reads; a full disk
{ fitoffset 3 3 freq_xcorr.dat 18 2> said; echo $? > status; } | :
[[ $(cat status) =~ ^(0|141)$ && -z $(grep -v ' offsets, rms \| has errors of about ' said) ]] || fail "without a reader: $(cat status said)"
says 1 'No space left on device.' bash -c 'exec fitoffset 3 3 freq_xcorr.dat 18 > /dev/full'

# shellcheck disable=SC2016 # of the inner shell
says 1 'File too large' bash -c 'ulimit -f 4; exec xcorr "$0/ref.PRM" "$0/sec.PRM" -nx 50 -ny 50 -xsearch 32 -ysearch 32' "$odd"

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
    if run.returncode != -number or said or sorted(os.listdir()) != before:
        sys.exit(f"{number}: exit status {run.returncode}, it says {said!r}, and leaves {os.listdir()}")
PYTHON
exit $failed
