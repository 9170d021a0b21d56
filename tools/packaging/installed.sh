# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced after root.sh: installs the packages of $root/var/tmp in $root, tries
# them as debian/tests does, and purges them.

debian_tests=(elements commands develop documentation)

# run_debian_test NAME [VARIABLE=VALUE]...: debian/tests/NAME, in $root
run_debian_test() {
  local test=$1
  shift

  rm -rf "$root/var/tmp/test"
  mkdir -p "$root/var/tmp/test/scratch"
  cp --parents "debian/tests/$test" docs/site/check-links "$root/var/tmp/test"
  quietly inside env -C /var/tmp/test AUTOPKGTEST_TMP=/var/tmp/test/scratch "$@" "debian/tests/$test"
}

# try_packages NAME [package to install with them]...
try_packages() {
  local suite=$1 debs names files left
  shift

  mapfile -t debs < <(cd "$root" && ls var/tmp/*.deb | sed 's,^,/,')
  mapfile -t names < <(for deb in "${debs[@]}"; do basename "${deb%%_*}"; done)
  install_packages "${debs[@]}" gcc libc6-dev pkg-config gstreamer1.0-tools gstreamer1.0-plugins-base \
    gstreamer1.0-plugins-good python3-aiohttp "$@"
  echo "ok: installed on $suite: ${names[*]}"

  files=$root.files
  inside dpkg -L "${names[@]}" | sort -u | while read -r path; do
    [[ -d $root$path ]] || echo "$path"
  done > "$files"
  for test in "${debian_tests[@]}"; do
    run_debian_test "$test"
    echo "ok: debian/tests/$test"
  done
  if declare -F while_installed > /dev/null; then
    while_installed
  fi

  quietly inside apt-get purge -y -qq "${names[@]}"
  left=$(while read -r path; do
    if [[ -e $root$path ]]; then echo "$path"; fi
  done < "$files"
  find "$root/etc" "$root/usr" "$root/var/lib" -name '*gst*imaging*' -o -name 'libimk*')
  if [[ -n $left ]]; then
    echo "Left after purge: $left"
    return 1
  fi
  echo "ok: purged without a trace, $(wc -l < "$files") files before"
}
