# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by what needs the root of a distribution of its own. $root is its
# folder, $root_log a file for what is not shown unless it fails.
shopt -s inherit_errexit

# Exit status 77 where no root can be made.
need_roots() {
  if ((EUID != 0)) || ! command -v mmdebstrap > /dev/null; then
    echo "${0##*/} needs root and mmdebstrap (Debian package mmdebstrap)."
    exit 77
  fi
}

# quietly COMMAND...: shows the end of the output if the command fails
quietly() {
  "$@" > "$root_log" 2>&1 || { tail -n 40 "$root_log"; return 1; }
}

inside() {
  chroot "$root" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${PIP_CERT:+PIP_CERT=/etc/pip-cert.crt} "$@"
}

# make_root SUITE [option of mmdebstrap]...: makes $root unless it is complete, and
# mounts /proc there. Debian's sources are those of this machine, for that suite.
make_root() {
  local suite=$1 here sources
  shift

  here=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mkdir -p "$(dirname "$root")"
  if [[ $suite == jammy ]]; then # Debian does not have Ubuntu's keys
    sources=("$suite" "$root" --include=apt --components=main,universe --aptopt='Acquire::AllowInsecureRepositories "true"'
      --aptopt='APT::Get::AllowUnauthenticated "true"')
  else
    sed "s/\b$here\b/$suite/g" /etc/apt/sources.list.d/debian.sources > "$root.sources"
    sources=("$suite" "$root" "$root.sources")
  fi
  if [[ ! -e $root/complete ]]; then
    rm -rf "$root"
    mmdebstrap --quiet --variant=minbase "$@" "${sources[@]}" 2> "$root_log" ||
      { echo "A root of $suite cannot be made here: $(tail -n 1 "$root_log")"; exit 77; }
    touch "$root/complete"
  fi
  mount -t proc proc "$root/proc" || exit 77
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  if [[ -n ${PIP_CERT-} && -e $PIP_CERT ]]; then # whom pip trusts here
    cp -L "$PIP_CERT" "$root/etc/pip-cert.crt" # the package ca-certificates writes its own
  fi
  inside apt-get update -qq
}

install_packages() {
  quietly inside apt-get install -y -qq --no-install-recommends "$@"
}

# Unmounts what lies below $root.
leave_root() {
  local m

  while read -r m; do
    umount -l "$m" || true
  done < <(awk -v root="$root/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort -r)
}
