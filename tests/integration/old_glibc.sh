#!/usr/bin/env bash
# The guest in a program of an old system: a root of Debian 11 (glibc 2.31, before dlopen() and pthread_create() moved into
# libc), in which the simulated device and a sample are linked anew from the build's objects. The daemon runs outside, as for
# a container. Launches are recorded with and without --exact and NVTX, and with the preloaded stub alone.
#
#   old_glibc.sh BUILD [SUITE]
set -uo pipefail
build=$(realpath "${1:?}") suite=${2:-bullseye}
[ "$(id -u)" -eq 0 ] || { echo "skipped: chroot needs root"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed (scripts/setup --fresh)"; exit 77; }
[ -e "$build/samples/hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "skipped: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
root=$work/root daemon=
finish() {
  [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon"; }
  rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() { echo "FAILED: $1"; cat "$work/log"; exit 1; }
apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|Check-)' >"$work/apt"
timeout 900 mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,libzstd-dev --aptopt="$work/apt" \
  --aptopt='APT::Install-Recommends "false"' "$suite" "$root" http://deb.debian.org/debian >"$work/log" 2>&1 ||
  { tail -n 3 "$work/log"; echo "skipped: no root of $suite could be made (no mirror?)"; exit 77; }
mkdir "$root/link" "$root/sim" "$root/occtrace" "$root/run/occtrace"

# linked there
objects() { # NAME TARGET DIRECTORY: the target's objects as one archive
  find "$build/$3/CMakeFiles/$2.dir" -name '*.o' -exec cp --parents -t "$root/link" {} +
  (cd "$root/link" && find . -path "*/$2.dir/*" -name '*.o' >"$1.objects")
}
objects cuda sim_cuda tests/simgpu
objects twins sim_driver_twins tests/simgpu
objects cupti sim_cupti_objects tests/simgpu
objects version sim_cupti tests/simgpu
objects hello sample_hello tests/samples
cp "$(find "$build" -name libsim_model.a)" "$root/link/model.a"
find "$build" -name libocc_image.a -exec cp {} "$root/link/image.a" \;
cat >"$root/link/all" <<'LINK'
set -e
cd /link
libraries='model.a image.a -lzstd -ldl -lpthread -lm'
gcc -shared -Wl,-z,defs -o /sim/libcuda.so.1 $(cat cuda.objects twins.objects) $libraries
gcc -shared -Wl,-z,defs -o /sim/libcupti.so.13 $(cat cupti.objects version.objects) $libraries
gcc -o /sim/hello $(cat hello.objects) $libraries
LINK
chroot "$root" sh /link/all >"$work/log" 2>&1 || fail "the simulated device does not link in $suite"
cp "$build"/lib/occtrace/*.so "$root/occtrace/"

"$build/bin/occtraced" --db "$work/h.db" --socket "$root/run/occtrace/socket" --counters none >"$work/daemon.log" 2>&1 &
daemon=$!
for _ in $(seq 100); do [ ! -S "$root/run/occtrace/socket" ] || break; sleep 0.1; done
program() { # LABEL LAUNCHES VARIABLE=VALUE...
  local label=$1 launches=$2
  shift 2
  chroot "$root" env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=/sim OCCTRACE_CUPTI=/sim/libcupti.so.13 OCCTRACE_LABEL="$label" \
    OCCTRACE_SOCKET=/run/occtrace/socket "$@" /sim/hello --launches "$launches" >"$work/log" 2>&1 || fail "$label ended with $?"
}
injected=CUDA_INJECTION64_PATH=/occtrace/libocctrace.so
program injected 301 $injected
program preloaded 302 LD_PRELOAD=/occtrace/libocctrace-preload.so
program exact 20 $injected OCCTRACE_EXACT=1
program nvtx 304 $injected OCCTRACE_NVTX=1 NVTX_INJECTION64_PATH=/occtrace/libocctrace-nvtx.so
kill -TERM "$daemon" && wait "$daemon"
daemon=
"$build/bin/occq" sql -d "$work/h.db" --csv \
  'SELECT r.label, count(*) FROM launch JOIN run AS r USING (run_id) GROUP BY r.label ORDER BY r.label' >"$work/log" 2>&1
recorded=$(sed 1d "$work/log" | tr -d '\r' | xargs)
[ "$recorded" = "exact,20 injected,301 nvtx,304 preloaded,302" ] || fail "recorded: $recorded"
echo "ok: glibc $(chroot "$root" ldd --version | sed -n '1s/.* //p'), $recorded"
