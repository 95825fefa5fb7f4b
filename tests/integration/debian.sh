#!/usr/bin/env bash
# Debian's package in a new Debian of its architecture: installed, used, upgraded with changed settings, removed, purged. Another
# architecture than that of this machine needs qemu-user-static, registered with the kernel (scripts/setup --arm64).
#
#   debian.sh PACKAGE
set -euo pipefail
package=${1:?}
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroot needs root"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed (scripts/setup --release)"; exit 77; }
[ -e "$package" ] || { echo "skipped: no package at $package (scripts/package --deb makes it)"; exit 77; }
root=$(mktemp -d)
finish() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root" "$root.apt" "$root.log"
}
trap finish EXIT
fail() { echo "FAILED: $1"; exit 1; }
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

depends=$(dpkg-deb -f "$package" Depends | sed 's/ ([^)]*)//g; s/, */,/g')
apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|Check-)' >"$root.apt" || true
. /etc/os-release
architecture=$(dpkg-deb -f "$package" Architecture)
mmdebstrap --quiet --architectures="$architecture" --variant=minbase --include="$depends" --aptopt="$root.apt" "$VERSION_CODENAME" "$root" >"$root.log" 2>&1 ||
  { tail -3 "$root.log"; echo "skipped: mmdebstrap failed (no mirror?)"; exit 77; }
mount -t proc proc "$root/proc" 2>/dev/null || echo "no /proc in the root: goes on without"
cp "$package" "$root/occtrace.deb"

inside dpkg -i /occtrace.deb >/dev/null
inside occtrace --version | grep '^history: schema' >/dev/null || fail "occtrace --version"
inside occtrace -q /bin/true || fail "occtrace /bin/true"
inside occq calc --gpu t4 --threads 128 --regs 71 --smem 0 | grep register >/dev/null || fail "occq calc"
inside occtraced --check-config || fail "the installed settings"
inside getent group occtrace >/dev/null || fail "no group occtrace"
inside getent group occtrace-ship >/dev/null || fail "no group occtrace-ship"
inside occtrace-ship --init --print --dialect 26 | grep occtrace.minute >/dev/null || fail "occtrace-ship"
grep -qx 'ExecStart=/usr/bin/occtrace-ship' "$root/usr/lib/systemd/system/occtrace-ship.service" || fail "the shipper's unit"
grep -qx 'ExecStart=/usr/bin/occtraced' "$root/usr/lib/systemd/system/occtraced.service" || fail "the unit"
grep -qx 'ExecStart=/usr/bin/occtrace-ship -c /etc/occtrace/admin.yaml --maintain' "$root/usr/lib/systemd/system/occtrace-maintain.service" ||
  fail "the maintenance's unit"
[ -e "$root/usr/lib/systemd/system/occtrace-maintain.timer" ] || fail "no timer"
while read -r kind name _; do # sysusers.d has the accounts that the package made
  case $kind in
    g) inside getent group "$name" >/dev/null || fail "no group $name" ;;
    u) [ "$(inside getent passwd "$name" | cut -d: -f6-)" = "/nonexistent:/usr/sbin/nologin" ] || fail "the user $name" ;;
  esac
done <"$root/usr/lib/sysusers.d/occtrace.conf"
for page in occtrace.1 occq.1 occtraced.8; do
  gzip -t "$root/usr/share/man/man${page##*.}/$page.gz" || fail "the page $page is not compressed"
done
inside sh -c '. /usr/share/occtrace/opt-in/profile.sh && /usr/share/occtrace/opt-in/slurm-task-prolog' || fail "the opt-in"
grep -q /usr/lib/occtrace/libocctrace.so "$root/etc/cdi/occtrace-cdi.yaml" || fail "the CDI device"
[ -e "$root/root/.local/state/occtrace/history.db" ] || fail "no history"

# the upgrade: a newer version with other settings; those of the administrator stay
echo '# by the administrator' >>"$root/etc/occtrace/occtrace.yaml"
mkdir -p "$root/var/lib/occtrace/u1000"
touch "$root/var/lib/occtrace/u1000/history.db"
dpkg-deb -R "$package" "$root/newer"
sed -i 's/^Version: .*/Version: 999/' "$root/newer/DEBIAN/control"
echo '# by the maintainer' >>"$root/newer/etc/occtrace/occtrace.yaml"
dpkg-deb -b "$root/newer" "$root/newer.deb" >/dev/null
# a service that does not come up (a full disk) does not leave the package half configured
mkdir -p "$root/run/systemd/system" "$root/usr/local/sbin"
printf '#!/bin/sh\nexit 1\n' >"$root/usr/local/sbin/systemctl"
chmod +x "$root/usr/local/sbin/systemctl"
inside env PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin dpkg -i --force-confold /newer.deb >/dev/null 2>&1 || fail "an upgrade whose service does not start"
[ "$(inside dpkg-query -W -f '${db:Status-Status}' occtrace)" = installed ] || fail "half configured by a service that does not start"
rm -r "$root/run/systemd" "$root/usr/local/sbin/systemctl"
[ "$(inside dpkg-query -W -f '${Version}' occtrace)" = 999 ] || fail "not upgraded"
tail -1 "$root/etc/occtrace/occtrace.yaml" | grep administrator >/dev/null || fail "the upgrade took the administrator's settings"
inside occtraced --check-config || fail "the settings after the upgrade"

inside dpkg -r occtrace >/dev/null
[ ! -e "$root/usr/bin/occtrace" ] && [ -z "$(ls -A "$root/usr/lib/occtrace")" ] || fail "programs are left after removing"
# a container that names the device starts until the purge: the device resolves, and the directories that it mounts exist
[ -e "$root/etc/cdi/occtrace-cdi.yaml" ] && [ -e "$root/etc/tmpfiles.d/occtrace.conf" ] || fail "removing took the container device"
for directory in $(sed -n 's/.*hostPath: \([^,]*\),.*/\1/p' "$root/etc/cdi/occtrace-cdi.yaml"); do
  [ -d "$root$directory" ] || fail "removing took $directory, which containers mount"
  grep -q "^d $directory " "$root/etc/tmpfiles.d/occtrace.conf" || fail "no boot makes $directory"
done
[ -e "$root/etc/occtrace/occtrace.yaml" ] && [ -e "$root/var/lib/occtrace/u1000/history.db" ] || fail "removing took settings or histories"
inside dpkg -P occtrace >/dev/null
left=$(find "$root" -xdev -path "$root/proc" -prune -o -name '*occtrace*' -print | grep -vE "/(occtrace.deb|newer.*|root/.*|var/log.*|dpkg.*)$" || true)
[ -z "$left" ] || fail "left after the purge: $left"
! inside getent group occtrace >/dev/null || fail "the group is left"
! inside getent passwd occtrace-ship >/dev/null || fail "the shipper's user is left"
echo "ok: installed, upgraded, removed, purged"
