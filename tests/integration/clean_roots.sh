#!/usr/bin/env bash
# The portable bundle on machines without packages: minimal roots of Debian 12 and 13, in which nothing is installed. There
# it unpacks, records a program on the simulated GPU, answers, and its experiments run, below a directory that only root
# enters.
#
#   clean_roots.sh BUNDLE SIMGPU [SUITE...]     SIMGPU: a build's simgpu directory; SUITE: bookworm trixie unless told
set -uo pipefail
bundle=${1:?} simgpu=${2:?}
shift 2
[ $# -gt 0 ] || set -- bookworm trixie
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroot needs root"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed (scripts/setup --fresh)"; exit 77; }
[ -e "$bundle" ] || { echo "skipped: no bundle at $bundle (scripts/package makes it)"; exit 77; }
[ -e "$simgpu/libcuda.so.1" ] || { echo "skipped: no simulated device at $simgpu"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/sim"
cp -L "$simgpu"/*.so* "$work/sim/"
apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|Check-)' >"$work/apt"

# What is done in a root, by its own shell: nothing else is there.
cat >"$work/try" <<'TRY'
set -eu
umask 077
work=$(mktemp -d)
cd "$work" # of mode 0700: experiments that start programs as another user copy them
tar xzf /bundle.tar.gz
bundle=$(echo "$work"/occtrace-*)
export LD_LIBRARY_PATH=/sim OCCTRACE_CUPTI=/sim/libcupti.so.13 OCCSIM_COUNTERS=/counters XDG_STATE_HOME=$work/state
mkdir /counters
chmod 777 /counters
chmod -R a+rX /sim
"$bundle/bin/occtrace" -q -d h.db "$bundle/libexec/occtrace/samples/hello" --launches 300
recorded=$("$bundle/bin/occq" sql -d h.db --csv 'SELECT count(*) FROM launch' | tail -n 1)
echo "recorded: $recorded launches"
[ "$recorded" = 300 ]
"$bundle/bin/occq" top -d h.db | grep simulated
"$bundle/bin/occq" doctor -d h.db || [ $? -eq 1 ]
OCC_GPU_TIME_FACTOR=20 bash "$bundle/bin/occtrace-gpu-report" --quick --only E1,E3,E11,E20 --out report
for verdict in 'E1 Injection: confirmed' 'E3 Fields of a record: confirmed' "E11 NVML's GPM: " 'E20 Main thread that ends: '; do
  grep "^## $verdict" report/report.md || { cat report/report.md; exit 1; }
done
! grep 'Permission denied\|nobody cannot start\|skipped' report/report.md
TRY
inside() { # root command...: with /proc and devices of its own, which end with it
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1; shift
    mount --make-rprivate / && mount -t proc proc "$root/proc" && mount -t tmpfs dev "$root/dev" || exit 1
    for device in null zero full random urandom; do
      touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device" || exit 1
    done
    mkdir "$root/dev/shm" && mount -t tmpfs -o mode=1777 shm "$root/dev/shm" || exit 1
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"' clean "$@"
}

failed=0 tried=0
for suite in "$@"; do
  root=$work/$suite
  if ! timeout 900 mmdebstrap --quiet --variant=essential --aptopt="$work/apt" "$suite" "$root" >"$work/log" 2>&1; then
    tail -n 3 "$work/log"
    echo "$suite: skipped, no root could be made (no mirror?)"
    continue
  fi
  tried=$((tried + 1))
  cp "$bundle" "$root/bundle.tar.gz"
  cp -r "$work/sim" "$root/sim"
  cp "$work/try" "$root/try"
  if inside "$root" bash /try >"$work/log" 2>&1; then
    echo "ok: $suite, glibc $(inside "$root" ldd --version 2>/dev/null | sed -n '1s/.* //p'), $(grep '^recorded' "$work/log")"
  else
    cat "$work/log"
    echo "FAILED: $suite"
    failed=1
  fi
  rm -rf --one-file-system "$root"
done
[ "$tried" -gt 0 ] || exit 77
exit $failed
