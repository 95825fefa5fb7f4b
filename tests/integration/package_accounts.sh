#!/usr/bin/env bash
# The accounts that a package makes as it is installed, in an /etc that ends with the test: nothing is there, a group of the shipper with members
# outlived a purge, everything is there.
#
#   package_accounts.sh SOURCES
set -euo pipefail
sources=$(realpath "${1:?}")
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
if [ -z "${OCC_ACCOUNTS_WORK:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "accounts need root"
  for tool in useradd groupadd groupdel userdel getent; do PATH=$PATH:/usr/sbin command -v $tool >/dev/null || skip "no $tool"; done
  OCC_ACCOUNTS_WORK=$(mktemp -d)
  export OCC_ACCOUNTS_WORK
  trap 'rm -rf --one-file-system "$OCC_ACCOUNTS_WORK"' EXIT
  unshare --mount true 2>/dev/null || skip "no mount namespaces here"
  unshare --mount bash "$0" "$sources"
  exit
fi

export PATH=$OCC_ACCOUNTS_WORK/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount --make-rprivate /
mkdir "$OCC_ACCOUNTS_WORK"/{etc,bin}
for file in passwd group shadow gshadow login.defs nsswitch.conf default pam.d security; do
  [ ! -e "/etc/$file" ] || cp -a "/etc/$file" "$OCC_ACCOUNTS_WORK/etc/"
done
printf '#!/bin/sh\n' >"$OCC_ACCOUNTS_WORK/bin/mkdir" # directories are not the test's
chmod 755 "$OCC_ACCOUNTS_WORK/bin/mkdir"
mount --bind "$OCC_ACCOUNTS_WORK/etc" /etc
mount -t tmpfs tmpfs /run # no systemd

has_accounts() { # TITLE
  [ "$(id -gn occtrace-ship)" = occtrace-ship ] || fail "$1: group '$(id -gn occtrace-ship)'"
  getent group occtrace >/dev/null || fail "$1: no group occtrace"
}
purge() {
  userdel occtrace-ship 2>/dev/null || true
  groupdel occtrace-ship 2>/dev/null || true
  groupdel occtrace 2>/dev/null || true
}
for script in "debian/postinst configure" rpm/post; do
  purge
  for title in "nothing" "a group with members" "everything"; do
    if [ "$title" = "a group with members" ]; then
      purge
      groupadd --system occtrace-ship
      usermod -aG occtrace-ship nobody
    fi
    # shellcheck disable=SC2086 # a path and its argument
    sh -e $sources/packaging/$script || fail "$script with $title there: exit code $?"
    has_accounts "$script with $title there"
  done
done
echo ok
