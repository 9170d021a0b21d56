# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the packaging tests: TAP in bash, and an installation to look at.
# Their arguments: the build folder, then the prefix, libdir, includedir and
# folder of plug-ins as Meson knows them.
set -uo pipefail
export LC_ALL=C

build=$1
prefix=$2 libdir=$2/$3 includedir=$2/$4 plugindir=$2/$5
n_tests=0 n_failed=0

# check SENTENCE COMMAND...: one test; what the command prints is shown when it
# fails.
check() {
  local sentence=$1 output
  shift

  n_tests=$((n_tests + 1))
  if output=$("$@" 2>&1); then
    echo "ok $n_tests - $sentence"
  else
    n_failed=$((n_failed + 1))
    echo "not ok $n_tests - $sentence"
    sed 's/^/# /' <<< "$output"
  fi
}

skip() {
  n_tests=$((n_tests + 1))
  echo "ok $n_tests - $1 # SKIP $2"
}

# The last command of a test.
finish() {
  echo "1..$n_tests"
  exit $((n_failed != 0))
}

# stage NAME: installs into a folder of this test's own. Sets $stage and what
# makes the compiler, pkg-config and the loader look there and nowhere else of
# ours.
stage() {
  stage=$build/packaging/$1
  rm -rf "$stage"
  mkdir -p "$stage"
  if ! meson install -C "$build" --no-rebuild --quiet --destdir "$stage/root" \
    > "$stage/install.log" 2>&1; then
    echo "Bail out! meson install failed, see $stage/install.log"
    exit 1
  fi
  stage_root=$stage/root
  # PKG_CONFIG_SYSROOT_DIR would move GStreamer, too
  mkdir "$stage/pkgconfig"
  for pc in "$stage_root$libdir"/pkgconfig/*.pc; do
    sed "s|^prefix=.*|prefix=$stage_root$prefix|" "$pc" > "$stage/pkgconfig/${pc##*/}"
  done
  export PKG_CONFIG_PATH=$stage/pkgconfig
  export LD_LIBRARY_PATH=$stage_root$libdir
  unset GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0 GI_TYPELIB_PATH IMK_MODULE_PATH
}

# flags PACKAGE: for the compiler, with what is linked statically from us
flags() {
  pkg-config --cflags --libs "$1"
}
