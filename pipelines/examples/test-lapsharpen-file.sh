#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sharpens one PNG of each kind with pipelines/lapsharpen-file.
# Usage: test-lapsharpen-file.sh PYTHON LAPSHARPEN-FILE
set -euo pipefail

python=$1 script=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$python" -c 'import gi; gi.require_version("Gst", "1.0"); from gi.repository import Gst' ||
  exit 77
for element in pngenc pngdec; do
  gst-inspect-1.0 --exists "$element" || { echo "there is no $element" >&2; exit 77; }
done

for format in GRAY8 GRAY16_BE RGB RGBA; do
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! \
    video/x-raw,format=$format,width=61,height=3 ! pngenc ! filesink location="a $format.png"
  "$python" "$script" "a $format.png" "b $format.png" amount=1.5 backend=cpu |
    grep -E '^Sharpened in [0-9]+\.[0-9]{3} ms \(cpu\)$'
  # bytes 24 and 25 of a PNG are its bits and its kind
  cmp <(od -j 24 -N 2 -t u1 "a $format.png") <(od -j 24 -N 2 -t u1 "b $format.png")
done

# colours of 16 bits, in another format: without amount the samples stay
printf 'P6\n1 1\n65535\n123456' > colour.ppm
"$python" "$script" colour.ppm out.pam amount=0 > /dev/null
cmp <(tail -c 8 out.pam) <(printf '123456\377\377')

# refused, each in a sentence, and what is there stays
echo keep > c.png
refused() {
  if "$python" "$script" "$@" 2> message; then
    echo "not refused: $*" >&2
    exit 1
  fi
  grep -q '[a-z]' message && ! grep -q Traceback message
  [[ $(< c.png) == keep && -z $(find . -name '.?*') ]]
}
head -c 60 "a RGB.png" > "cut off.png"
refused "a RGB.png" c.png amount=11
refused "a RGB.png" c.png amont=1
refused "a RGB.png" "a RGB.png"
refused absent.png c.png
refused message c.png
printf 'Pf\n1 1\n-1.0\n1234' > float.pfm
refused float.pfm c.png
grep -q 'does not take what this file holds: .*float32' message
refused "a RGB.png" absent/c.png
refused "cut off.png" c.png
refused "a RGB.png" c.png border-value=256 border=constant

# a link leads to the file that is replaced
ln -s c.png link.png
"$python" "$script" "a RGB.png" link.png backend=cpu > /dev/null
[[ -L link.png ]] && cmp -n 8 c.png "a RGB.png"
