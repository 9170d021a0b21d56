# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the tests of the scripts for SAR images share. To be sourced, with the
# folder of the images in $data: without it nothing is tested. Goes to a folder
# of its own, which goes when the test ends, and says what failed.
set -uo pipefail
export LC_ALL=C GST_IMAGING_ENV=1 # the test brings the plug-ins

if [[ ! -d $data ]]; then
  echo "There is no $data to measure."
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}
