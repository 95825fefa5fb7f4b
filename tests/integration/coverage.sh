#!/usr/bin/env bash
# Coverage of a node: programs of each kind hold simulated GPUs, and a real daemon tells which are recorded and why the others are
# not, by `occq doctor --coverage` and on /metrics. With `time`, also GPU time, which needs a second scan 10 s later.
#
#   coverage.sh BUILD SOURCE [time]
set -uo pipefail
build=$(realpath "$1") source=$2 mode=${3:-}
hello=$build/samples/hello guest=$build/lib/libocctrace.so
[ -x "$hello" ] && [ -e "$build/simgpu/libnvidia-ml.so.1" ] || { echo "skipped: no sample or no simulated device"; exit 77; }
[ -e "$guest" ] || guest=$(find "$build" -name libocctrace.so | head -1)
work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid"; wait "$pid"; done 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$work/daemon.log" "$work/said" 2>/dev/null; exit 1; }
until_true() { # command: tries again until it succeeds
  for _ in $(seq 1200); do "$@" && return 0; sleep 0.05; done
  fail "never: $*"
}

declare -A pid_of
start() { # reason variables... -- command...: a program for which the daemon is to give this reason
  local reason=$1 variables=()
  shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  env -u OCCTRACE_SOCKET "${variables[@]}" "$@" >"$work/$reason.out" 2>"$work/$reason.err" &
  pid_of[$reason]=$!
  pids+=($!)
}
export LD_LIBRARY_PATH=$build/simgpu OCCSIM_GPU=h200,a100 OCCSIM_PROCESSES=$work/processes NO_COLOR=1
socket=OCCTRACE_SOCKET=$work/socket cupti=OCCTRACE_CUPTI=$build/simgpu/libcupti.so.13 driver=$build/simgpu/libcuda.so.1
unset CUDA_INJECTION64_PATH OCCTRACE_DISABLE OCCTRACE_CUPTI LD_PRELOAD
cc=${CC:-cc}
"$cc" -o "$work/holder" "$source/tests/integration/gpu_holder.c" || fail "no holder"
start started_before -- "$work/holder" "$driver"
until_true grep -q ready "$work/started_before.out"
sleep 0.02 # a start is known to 10 ms: a daemon of the same 10 ms would not be later

printf 'http: {socket: "%s"}\n' "$work/metrics.sock" >"$work/config"
"$build/bin/occtraced" -c "$work/config" --db "$work/h.db" --socket "$work/socket" 2>"$work/daemon.log" &
pids+=($!)
until_true test -S "$work/socket"
start recorded CUDA_INJECTION64_PATH="$guest" "$socket" "$cupti" -- "$hello" --spin
start no_libcupti CUDA_INJECTION64_PATH="$guest" "$socket" OCCTRACE_CUPTI=/nowhere/libcupti.so.13 -- "$hello" --spin
start environment -- "$work/holder" "$driver"
start opted_out CUDA_INJECTION64_PATH="$guest" "$socket" OCCTRACE_DISABLE=1 -- "$hello" --spin
start other_profiler CUDA_INJECTION64_PATH="$work/libother.so" -- "$hello" --spin
start not_loaded CUDA_INJECTION64_PATH=/nowhere/libocctrace.so "$socket" -- "$work/holder" "$driver"
if "$cc" -static -o "$work/holder-static" "$source/tests/integration/gpu_holder.c" 2>/dev/null; then
  start static CUDA_INJECTION64_PATH="$guest" -- "$work/holder-static" "$driver"
else
  echo "left out: a static program cannot be linked"
fi
if command -v musl-gcc >/dev/null && musl-gcc -o "$work/holder-musl" "$source/tests/integration/gpu_holder.c"; then
  start musl CUDA_INJECTION64_PATH="$guest" -- env -u LD_LIBRARY_PATH "$work/holder-musl" "$driver"
else
  echo "left out: musl-gcc is not installed"
fi
# The daemon's user, root, does not exist in the user namespace of a user.
rootless=(setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user --map-root-user)
if [ "$(id -u)" = 0 ] && [ ! -e /run/occtrace/occtraced.sock ] && "${rootless[@]}" test -x "$hello" -a -r "$guest" 2>/dev/null; then
  start rootless CUDA_INJECTION64_PATH="$guest" "$cupti" -- "${rootless[@]}" "$hello" --spin
else
  echo "left out: a rootless container (no user namespaces for users here, or not root)"
fi
two_report() { "$build/bin/occtraced" --status --socket "$work/socket" --json 2>/dev/null | grep -Eq '"programs": ?2\b'; }
until_true two_report
# its user's own daemon records it
start not_reporting CUDA_INJECTION64_PATH="$guest" XDG_RUNTIME_DIR="$work/own" "$cupti" -- "$hello" --spin
XDG_RUNTIME_DIR=$work/own "$build/bin/occtraced" --db "$work/own.db" --counters none 2>"$work/own.log" &
pids+=($!)
own_reports() { "$build/bin/occtraced" --status --socket "$work/own/occtrace/occtraced.sock" --json 2>/dev/null | grep -Eq '"programs": ?1\b'; }
until_true own_reports
for reason in "${!pid_of[@]}"; do
  until_true grep -q libcuda "/proc/${pid_of[$reason]}/maps"
done
coverage() { "$build/bin/occq" doctor --coverage --socket "$work/socket" "$@"; }
touch "$work/processes"
# a scan that began before the first launch does not know the program
listed() { coverage --csv -o pid,reason,held,gpu >"$work/said" 2>"$work/note" && grep -qx "${pid_of[recorded]},recorded,," "$work/said"; }
until_true listed
grep -q 'the GPU time is unknown: NVML does not list 1 program that launches kernels' "$work/note" || fail "no time, and no reason"
device=0
for reason in "${!pid_of[@]}"; do
  echo "$((device++ % 2)) ${pid_of[$reason]}"
done >"$work/processes"

until_scanned() { coverage --csv -o pid >"$work/said" 2>&1 && [ "$(grep -c '^[0-9]' "$work/said")" = "${#pid_of[@]}" ]; }
until_true until_scanned
coverage --csv -o pid,reason >"$work/said" 2>&1 || fail "occq doctor --coverage"
for reason in "${!pid_of[@]}"; do
  grep -qx "${pid_of[$reason]},$reason" "$work/said" || fail "process ${pid_of[$reason]} is not '$reason'"
done
[ "$(grep -c '^[0-9]' "$work/said")" = "${#pid_of[@]}" ] || fail "another number of processes"
coverage >"$work/said" 2>&1 || fail "the page"
grep -q '^environment: .* -> start it with occtrace' "$work/said" || fail "no remedy"
[ -z "${pid_of[rootless]:-}" ] || grep -q '^rootless: .*OCCTRACE_SOCKET=/run/occtrace/occtraced.sock' "$work/said" || fail "no remedy of a rootless container"
page() { curl -sf --unix-socket "$work/metrics.sock" http://node/metrics >"$work/said"; }
if command -v curl >/dev/null; then
  page || fail "no page"
  for reason in "${!pid_of[@]}"; do
    grep -q "^occtrace_coverage_processes{.*reason=\"$reason\"} 1$" "$work/said" || fail "no series of $reason"
  done
  grep '^occtrace_coverage' "$work/said" | grep -q pid= && fail "a series has a pid"
  grep -q '^occtrace_coverage_last_scan_timestamp_seconds{' "$work/said" || fail "no time of the scan"
fi
echo "coverage.sh: ${#pid_of[@]} kinds of programs"
[ "$mode" = time ] || exit 0

sleep 10
coverage --json >"$work/json" 2>"$work/said" || fail "the second scan"
python3 - "$work/json" "$SECONDS" <<'PY' || fail "GPU time"
import json, sys
rows = json.load(open(sys.argv[1]))["coverage"]
held = {gpu: sum(r["held_ns"] for r in rows if r["gpu"] == gpu) / 1e9 for gpu in {r["gpu"] for r in rows}}
assert len(held) == 2 and all(10 < s < float(sys.argv[2]) + 1 for s in held.values()), held
assert abs(sum(r["share_ratio"] for r in rows) - 1) < 1e-6, rows
PY
grep -Eq '[0-9.]+% of the GPU time is recorded: ' "$work/said" || fail "no share"
coverage
