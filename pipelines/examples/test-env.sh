#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The plug-ins of the build come first, whatever paths the user has set.
# Usage: test-env.sh ENV BUILD-FOLDER
set -euo pipefail

script=$1
export GST_IMAGING_BUILD=$2
unset GST_IMAGING_ENV MESON_DEVENV GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0

# expect TAIL [NAME=VALUE]: TAIL comes after the folders of the build
expect() {
  local found tail=$1
  found=$(env "${@:2}" "$script" printenv GST_PLUGIN_PATH_1_0)
  if [[ $found != "$GST_IMAGING_BUILD"/gst/*"$tail" || $found == *: ]]; then
    echo "with ${2:-nothing set}: $found" >&2
    exit 1
  fi
}
expect ''
expect '' GST_PLUGIN_PATH_1_0=
expect :/mine GST_PLUGIN_PATH_1_0=/mine
expect :/mine GST_PLUGIN_PATH=/mine
expect :/mine GST_PLUGIN_PATH_1_0=/mine GST_PLUGIN_PATH=/other
