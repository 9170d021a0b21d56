#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Does the repository keep its promise on a bare Debian 12? Makes a minimal
# root, copies the commit that is checked out into it, and runs pipelines/demo
# and tests/run there. As root; not part of tests/run: it downloads a lot.
# Usage: tests/packaging/root.sh FOLDER [MIRROR]
#   FOLDER  the new root; kept, and used again when it is there
#   MIRROR  of Debian, for debootstrap; by default where apt-get gets it here
set -euo pipefail

if (($# < 1 || EUID != 0)); then
  echo "Usage, as root: tests/packaging/root.sh FOLDER [MIRROR]" >&2
  exit 2
fi
mkdir -p "$1"
root=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mirror=${2:-$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 2> /dev/null |
  head -n 1)}
mounted=()

finish() {
  local m

  for m in ${mounted[@]+"${mounted[@]}"}; do
    umount -l "$m" || true
  done
}
trap finish EXIT
trap 'exit 130' INT TERM

if [[ ! -e $root/etc/debian_version ]]; then
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" \
    ${mirror:+"$mirror"}
fi

# How apt reaches its mirrors from here: sources, keys, proxies, certificates.
rm -rf "$root/etc/apt"
cp -a /etc/apt "$root/etc/apt"
for path in /usr/local/share/ca-certificates /etc/ssl/certs /usr/share/keyrings; do
  if [[ -d $path ]]; then
    mkdir -p "$root$path"
    cp -a "$path/." "$root$path/"
  fi
done
for path in /etc/resolv.conf /etc/hosts; do
  cp -L "$path" "$root$path"
done
environment=(HOME=/root TERM=dumb
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  if [[ -n ${!name:-} ]]; then
    environment+=("$name=${!name}")
  fi
done

for path in proc dev; do
  mkdir -p "$root/$path"
  mount --rbind "/$path" "$root/$path"
  mounted+=("$root/$path")
done
# what happens in there must not come back here
for path in "${mounted[@]}"; do
  mount --make-rslave "$path"
done

rm -rf "$root/src"
mkdir "$root/src"
git archive HEAD | tar x -C "$root/src"

status=0
for command in pipelines/demo tests/run; do
  echo "=== $command in $root"
  start=$SECONDS
  if chroot "$root" env -i "${environment[@]}" "/src/$command"; then
    echo "=== $command succeeded after $((SECONDS - start)) s"
  else
    echo "=== $command failed (exit status $?) after $((SECONDS - start)) s"
    status=1
  fi
done
exit $status
