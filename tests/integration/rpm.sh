#!/usr/bin/env bash
# The RPM package: what it requires and provides; installed by rpm --root in a new Debian of its architecture (debian.sh), used,
# upgraded with changed settings, removed. No distribution of RPM is there: whether their packages meet its requirements is not tried.
#
#   rpm.sh PACKAGE NEWER
set -euo pipefail
package=${1:?} newer=${2:?}
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroot needs root"; exit 77; }
for tool in rpm mmdebstrap; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed (scripts/setup --release)"; exit 77; }
done
[ -e "$package" ] && [ -e "$newer" ] || { echo "skipped: no package at $package (scripts/package --rpm --test makes it)"; exit 77; }
root=$(mktemp -d)
finish() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root" "$root.apt" "$root.log"
}
trap finish EXIT
fail() { echo "FAILED: $1"; exit 1; }
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"; }
in_root() { rpm --force-debian --root "$root" "$@"; } # the root has no packages of RPM: without dependencies

# glibc of RHEL 9 (2.34), libcurl, and what rpm itself has
while read -r need; do
  case $need in
    rpmlib*|'config(occtrace)'*|/bin/sh|shadow-utils|'libcurl.so.4()(64bit)'|'rtld(GNU_HASH)') ;;
    *GLIBC_2.*) newest=${need##*GLIBC_2.} newest=${newest%%[.)]*}; [ "$newest" -le 34 ] || fail "requires $need" ;;
    libc.so.6*|libm.so.6*|libdl.so.2*|libpthread.so.0*|librt.so.1*|ld-linux-*) ;;
    *) fail "requires $need" ;;
  esac
done < <(rpm -qp --requires "$package")
! rpm -qp --provides "$package" | grep -E '^lib(smartcols|acl|nettle|occtrace)[.-]' | grep -v '^libocctrace-query' || fail "offers its own libraries to others"

apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|Check-)' >"$root.apt" || true
. /etc/os-release
architecture=$(rpm -qp --qf '%{ARCH}' "$package")
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)
mmdebstrap --quiet --architectures="${debian[$architecture]}" --variant=minbase --include=passwd --aptopt="$root.apt" "$VERSION_CODENAME" "$root" >"$root.log" 2>&1 ||
  { tail -3 "$root.log"; echo "skipped: mmdebstrap failed (no mirror?)"; exit 77; }
mount -t proc proc "$root/proc" 2>/dev/null || echo "no /proc in the root: goes on without"

in_root --nodeps --ignorearch -i "$package"
inside occtrace --version | grep '^history: schema' >/dev/null || fail "occtrace --version"
inside occtrace -q /bin/true || fail "occtrace /bin/true"
inside occq calc --gpu t4 --threads 128 --regs 71 --smem 0 | grep register >/dev/null || fail "occq calc"
inside occtraced --check-config || fail "the installed settings"
inside occtrace-ship --init --print --dialect 26 | grep occtrace.minute >/dev/null || fail "occtrace-ship"
inside ldd /usr/lib64/libocctrace-query.so.0 | grep '/usr/lib64/../lib/occtrace/libsmartcols.so.1' >/dev/null || fail "the library does not find its own"
inside getent group occtrace >/dev/null && inside getent passwd occtrace-ship >/dev/null || fail "no group occtrace, or no user occtrace-ship"
for unit in occtraced.service occtrace-ship.service occtrace-maintain.service; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$root/usr/lib/systemd/system/$unit")
  [ -x "$root$program" ] || fail "$unit starts $program"
done
[ -e "$root/usr/lib/tmpfiles.d/occtrace.conf" ] && [ -e "$root/usr/lib/sysusers.d/occtrace.conf" ] || fail "no tmpfiles.d or sysusers.d"

echo '# by the administrator' >>"$root/etc/occtrace/occtrace.yaml"
mkdir -p "$root/var/lib/occtrace/u1000"
touch "$root/var/lib/occtrace/u1000/history.db"
in_root --nodeps --ignorearch -U "$newer"
[ "$(in_root -q --qf '%{VERSION} ' occtrace)" = '999 ' ] || fail "not upgraded"
tail -1 "$root/etc/occtrace/occtrace.yaml" | grep administrator >/dev/null || fail "the upgrade took the administrator's settings"
inside occtraced --check-config || fail "the settings after the upgrade"

in_root -e occtrace 2>"$root.log" # says where changed settings are
left=$(find "$root" -xdev -path "$root/proc" -prune -o -name '*occ*' -type f -print | grep -E 'occ(trace|q)' | grep -vE "/root/|/etc/occtrace/occtrace.yaml.rpmsave$" || true)
[ -z "$left" ] || fail "left after removing: $left"
[ -e "$root/etc/occtrace/occtrace.yaml.rpmsave" ] && [ -e "$root/var/lib/occtrace/u1000/history.db" ] || fail "removing took settings or histories"
echo "ok: installed, upgraded, removed"
