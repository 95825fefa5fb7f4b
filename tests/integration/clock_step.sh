#!/usr/bin/env bash
# The machine's clock is set while a program launches kernels: the daemon of all users keeps every launch, and the run says by how much
# its times may be off.   clock_step.sh BUILD CLOCK_STEP
set -euo pipefail
build=$1 library=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "SKIP: only root's daemon has programs of all users"; exit 77; }
[ -x "$build/samples/hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
daemon='' program=''
finish() {
  for pid in $program $daemon; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $1"; cat "$work/log" "$work/out" 2>/dev/null; exit 1; }
until_true() { # what, command...
  for _ in $(seq 1200); do "${@:2}" && return 0; sleep 0.1; done
  fail "never: $1"
}
query() { "$build/bin/occq" sql -d "$work/h.db" --csv "$1" | sed 1d; }
set_off() { python3 -c 'import struct, sys; open(sys.argv[1], "r+b").write(struct.pack("q", int(sys.argv[2])))' "$work/step" "$1"; }
has_more_than() { local n; n=$(query "SELECT count(*) FROM launch WHERE run_id = $run" 2>/dev/null) && [ "${n:-0}" -gt "$1" ]; }

has_ended() { [ "$(query "SELECT count(*) FROM run WHERE run_id = $run AND end_ns IS NOT NULL")" = 1 ]; }

head -c 8 /dev/zero >"$work/step"
export OCC_CLOCK_STEP=$work/step
printf 'socket: {path: %s/socket, mode: 0666}\ncounters: {mode: none}\n' "$work" >"$work/settings.yaml"
chmod 755 "$work"
LD_PRELOAD=$library "$build/bin/occtraced" -c "$work/settings.yaml" -d "$work/h.db" 2>"$work/log" &
daemon=$!
until_true "the daemon listens" test -S "$work/socket"

off=0 run=0
for step in -120 -3600 86400; do
  run=$((run + 1))
  OCCSIM_CLOCK=ahead "$here/scripts/simgpu" --build "$build" env LD_PRELOAD="$library" \
    "$build/bin/occtrace" --socket "$work/socket" "$build/samples/hello" --spin --batch 10 --sleep-ms 5 >"$work/out" 2>&1 &
  program=$!
  until_true "launches before the clock is set by $step s" has_more_than 100
  off=$((off + step))
  set_off $off
  before=$(query "SELECT count(*) FROM launch WHERE run_id = $run")
  until_true "launches after the clock was set by $step s" has_more_than $((before + 500))
  kill "$program" && wait "$program" || true
  program=
  until_true "run $run has ended" has_ended
  [ -z "$(query "SELECT launches FROM loss WHERE run_id = $run AND cause = 'bad_times'")" ] || fail "launches were dropped: step $step"
  reason=$(query "SELECT level_reason FROM run WHERE run_id = $run")
  [[ $reason == *"clock set: "*" ${step#-} s"* ]] || fail "the run does not say that the clock was set by $step s: '$reason'"
done
kill "$daemon" && wait "$daemon" || fail "the daemon ended with $?"
daemon=
exit 0
