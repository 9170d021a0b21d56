#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# An installation as a user gets it: plug-ins that GStreamer accepts, packages
# that pkg-config finds and that a small program can use.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
stage install

mapfile -t elements < <(cut -d" " -f1 "$build/gst/plugins/elements.txt")

# A registry of our own: neither the user's nor what it remembers.
export GST_REGISTRY=$stage/registry.bin
export GST_PLUGIN_SYSTEM_PATH_1_0=$stage_root$plugindir

# the modules are sought in gst-imaging/ beside libimk, where the installation has them
unset IMK_MODULE_PATH

only_plugins() {
  local file n=0 bad=0

  for file in "$stage_root$plugindir"/*; do
    n=$((n + 1))
    if [[ $file != *.so ]] ||
      ! nm -D --defined-only "$file" | grep -Eq ' T gst_plugin_[a-z0-9]+_get_desc$'; then
      echo "${file##*/} is no plug-in"
      bad=1
    fi
  done
  ((n && !bad))
}

# The command ao reads matrices as shreconstruct does (gst_imaging/ao/matrices.py).
only_descriptions() {
  local file bad=0 more

  for file in "$stage_root$plugindir"/*.so; do
    more=$(nm -D --defined-only "$file" | awk '{ print $3 }' |
      grep -Ev '^(gst_plugin_[a-z0-9]+_(get_desc|register)|gst_sh_reconstruct_matrix_(load|free)|__bss_start|_edata|_end)$')
    if [[ -n $more ]]; then
      echo "${file##*/} exports" $more
      bad=1
    fi
  done
  ((!bad))
}

no_blacklist() {
  local output

  output=$(gst-inspect-1.0 -b) && grep -q 'Total count: 0 blacklisted files' <<< "$output" ||
    { echo "$output"; return 1; }
}

no_rpath() {
  local file bad=0

  while read -r file; do
    if readelf -d "$file" | grep -E 'RPATH|RUNPATH'; then
      echo "in ${file#"$stage_root"}"
      bad=1
    fi
  done < <(find "$stage_root" -type f -name '*.so*')
  ((!bad))
}

# program PACKAGE SOURCE
program() {
  # shellcheck disable=SC2046 # several flags
  cc -Wall -Werror -o "$stage/$1" -x c "$stage/$1.c" -x none $(flags "$1") &&
    "$stage/$1"
}

check "the folder of plug-ins holds only plug-ins" only_plugins
check "plug-ins export their description and nothing else" only_descriptions
check "no installed library remembers a build folder" no_rpath
for element in "${elements[@]}"; do
  check "gst-inspect-1.0 knows $element" gst-inspect-1.0 "$element"
done
check "no plug-in is blacklisted" no_blacklist

cat > "$stage/gst-imaging-1.0.c" << 'END'
#include <gst/gst.h>
#include <gst/imaging/gstimagingmemory.h>
#include <gst/imaging/gstimagingresults.h>

int
main (int argc, char **argv)
{
  GstBuffer *buffer;
  int status;

  gst_init (&argc, &argv);
  gst_imaging_results_register ();
  buffer = gst_buffer_new_allocate (NULL, 16, NULL);
  status = gst_is_imaging_memory (gst_buffer_peek_memory (buffer, 0));
  gst_buffer_unref (buffer);
  return status;
}
END
check "a program builds with gst-imaging-1.0 and runs" program gst-imaging-1.0

# Its folder is that of the stage, where the script does not look.
command_finds_all() {
  local package

  package=$(find "$stage_root" -type d -name gst_imaging -not -path '*/include/*')
  PYTHONPATH=${package%/*} /usr/bin/python3 -B "$stage_root$prefix/bin/gst-imaging" info --json |
    tee "$stage/info.json" &&
    /usr/bin/python3 -c 'import json, sys
info = json.load(open(sys.argv[1]))
assert sorted(info["elements"]) == sorted(sys.argv[2:]), info["elements"]
assert not set(info["missing"]) & set(sys.argv[2:]), info["missing"]' "$stage/info.json" "${elements[@]}"
}
if /usr/bin/python3 -c 'import gi' 2> /dev/null; then
  check "gst-imaging info finds every element" command_finds_all
else
  skip "gst-imaging info finds every element" "python3-gi is not installed"
fi

if [[ $6 == introspection ]]; then
  check "the typelib is installed" \
    test -n "$(find "$stage_root" -name 'GstImaging-1.0.typelib')"
  check "the GIR is installed" test -n "$(find "$stage_root" -name 'GstImaging-1.0.gir')"
else
  skip "the typelib and the GIR are installed" "built without introspection"
fi
finish
