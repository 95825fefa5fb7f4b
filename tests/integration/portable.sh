#!/usr/bin/env bash
# The portable bundle in an empty root: nothing in it but the bundle, glibc and a simulated GPU, from two directories; its
# shipper also with the machine's libcurl and a ClickHouse (scripts/setup --cluster).
#
#   portable.sh BUNDLE SIMGPU      BUNDLE: what scripts/package made; SIMGPU: a build's simgpu directory
set -euo pipefail
bundle=${1:?} simgpu=${2:?}
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroot needs root"; exit 77; }
[ -e "$bundle" ] || { echo "skipped: no bundle at $bundle (scripts/package makes it)"; exit 77; }
[ -e "$simgpu/libcuda.so.1" ] || { echo "skipped: no simulated device at $simgpu"; exit 77; }
root=$(mktemp -d)
finish() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root"
}
trap finish EXIT
fail() { echo "FAILED: $1"; exit 1; }

tar xzf "$bundle" -C "$root"
name=$(basename "$bundle" .tar.gz)
top=$root/$name
[ ! -e "$top/simgpu" ] || fail "the simulated device is in the bundle"
for library in libocctrace.so libocctrace-preload.so libocctrace-exact.so libocctrace-nvtx.so; do
  [ -e "$top/lib/occtrace/$library" ] || fail "$library is not in the bundle"
done
[ -e "$top/lib/libocctrace-query.so.0" ] && [ -e "$top/share/occtrace/python/occtrace/__init__.py" ] || fail "the bundle answers no other program"

# needs nothing but glibc and what it carries; built paths are not in it
while read -r file; do
  needed=$({ readelf -d "$file" 2>/dev/null || true; } | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  for library in $needed; do
    case $library in
      libc.so.6|libm.so.6|libdl.so.2|libpthread.so.0|librt.so.1|ld-linux-*.so.*) ;;
      *) [ -e "$top/lib/occtrace/$library" ] || fail "$file needs $library" ;;
    esac
  done
done < <(find "$top/bin" "$top/lib" "$top/libexec" -type f)
newest=$({ find "$top/bin" "$top/lib" "$top/libexec" -type f -exec objdump -T {} + 2>/dev/null || true; } |
  grep -o 'GLIBC_2\.[0-9]*' | sort -V | uniq | tail -1)
echo "needs glibc ${newest#GLIBC_} or newer"
[ "${newest#GLIBC_2.}" -le 34 ] || fail "glibc 2.34 is not enough"
here=$(cd "$(dirname "$0")/../.." && pwd)
if grep -rlF "$here/" "$top"; then
  fail "the build directory is in these files"
fi
for unit in "$top"/lib/systemd/system/*.service; do
  program=$(sed -n 's|^ExecStart=/opt/occtrace/\([^ ]*\).*|\1|p' "$unit")
  [ -n "$program" ] && [ -x "$top/$program" ] || fail "$unit starts what is not in the bundle"
done

for file in "$top"/share/occtrace/opt-in/*; do
  ! grep -q "$top\|/usr/" "$file" && grep -q /opt/occtrace/ "$file" || fail "$file does not name /opt/occtrace"
done

# the empty root
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  path=$(ldconfig -p | sed -n "s/.*$library (.*x86-64.*) => //p" | head -1)
  mkdir -p "$root/lib/x86_64-linux-gnu"
  cp -L "$path" "$root/lib/x86_64-linux-gnu/"
done
mkdir -p "$root/lib64" "$root/tmp" "$root/proc" "$root/sim" "$root/elsewhere/deep"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
cp -L "$simgpu"/*.so* "$root/sim/"
mkdir "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mount -t proc proc "$root/proc" 2>/dev/null || echo "no /proc in the root: goes on without"

try() { # directory of the bundle inside the root
  local inside=$1
  chroot "$root" /usr/bin/env true 2>/dev/null && fail "the root is not empty"
  env -i PATH=/nowhere HOME=/tmp LD_LIBRARY_PATH=/sim OCCTRACE_CUPTI=/sim/libcupti.so.13 OCCSIM_GPU=a100 \
    /usr/sbin/chroot "$root" "$inside/bin/occtrace" -d /tmp/h.db "$inside/libexec/occtrace/samples/hello" >"$root/out" 2>"$root/err" ||
    { cat "$root/out" "$root/err"; fail "occtrace in $inside"; }
  local said want
  want=$(sed -n 's/^launches: *//p' "$root/out")
  said=$(/usr/sbin/chroot "$root" "$inside/bin/occq" sql -d /tmp/h.db 'SELECT count(*) AS n FROM launch' --csv | tail -1)
  [ -n "$want" ] && [ "$said" = "$want" ] || { cat "$root/out" "$root/err"; fail "$inside: $said launches in the history, $want made"; }
  /usr/sbin/chroot "$root" "$inside/bin/occq" top -d /tmp/h.db -n 1 | grep -q simulated || fail "$inside: occq top"
  echo "ok: $inside: $said launches"
}
try "/$name"
rm -f "$root"/tmp/h.db*
mv "$top" "$root/elsewhere/deep/moved"
try /elsewhere/deep/moved
python3 "$here/tests/cluster/bundle.py" "$root" /elsewhere/deep/moved || fail "the shipper"
