#!/bin/bash
# The matrix of docs/coexistence.md: a program beside other CUPTI clients and inside windows. Each row is a case of this
# script; rows run at the same time, and wait for what they assert, never for a time.   coexistence.sh BUILD [CASE...]
set -u
build=$1
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
occq=$build/bin/occq
name=
ranges= # option of hello
export OCCTRACE_BUDGET=100 # on a busy machine the governor would add periods

fail() { echo "FAILED: $name: $*"; cat "$name.err" "$name.log" 2>/dev/null | tail -20; touch failed; }
simulated() { "$here/scripts/simgpu" --build "$build" "$@"; }
query() { "$occq" sql -d "$name.db" --csv "$1" 2>/dev/null | sed 1d; }
is() { [ "$1" = "$2" ] || fail "$3: '$1', not '$2'"; }
saw() { tr -s " \n" "  " <"$name.err" | grep -qF -- "$1" || fail "the summary lacks \"$1\""; }
said() { grep -qF -- "$1" "$name.log" || fail "the other client's log lacks \"$1\""; }

# Waits until the SQL gives 1, while the program runs.
until_true() {
  for _ in $(seq 900); do
    [ "$(query "$1")" = 1 ] && return
    kill -0 "$program" 2>/dev/null || break
    sleep 0.1
  done
  fail "never true: $1"
}

# spin [VARIABLE=VALUE...] -- [OPTION...]: a program that launches until it is stopped, traced, in the background
spin() {
  local variables=()
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  env OCCSIM_LOG="$work/$name.log" "${variables[@]}" "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -d "$name.db" "$@" \
    "$hello" $ranges --spin --batch 5 --sleep-ms 20 >"$name.out" 2>"$name.err" &
  program=$!
}
stop() {
  pkill -TERM -P "$program" -x hello
  wait "$program" 2>/dev/null
  is $? 143 "exit status"
}

none_known_lost() { # of a program that was killed: what CUPTI still held, nobody counts
  is "$(query "SELECT lost IS NULL AND lost_causes = 'unknown' FROM run")" 1 "no losses that are known"
}

OTHER="reason LIKE 'another profiler%'"
BACK="SELECT count(*) = 1 FROM recording_period AS p JOIN run USING (run_id) WHERE p.$OTHER AND until_ns IS NOT NULL
      AND (SELECT max(l.start_ns) FROM launch AS l) > until_ns"

kineto_at_start() { # its session begins before the first launch: we have had no buffer yet (before 13.3 one for copies)
  spin OCCSIM_CUPTI_VERSION=130300 OCCSIM_CLIENT=kineto:1:60 --
  until_true "$BACK"
  stop
  said "ends at launch 60: 59 kernels, 0 unknown buffers"
  saw "less recorded: nothing"
}
kineto_in_the_middle() {
  spin OCCSIM_CLIENT=kineto:400:460 --
  until_true "$BACK"
  stop
  said "ends at launch 460:"
  is "$(query "SELECT count(*) > 50 FROM launch WHERE start_ns < (SELECT from_ns FROM recording_period)")" 1 "launches before"
  is "$(query 'SELECT level FROM run')" trace "level"
}
kineto_finalizes() { # TEARDOWN_CUPTI=1
  spin OCCSIM_CLIENT=finalizer:400:460 --
  until_true "$BACK"
  stop
  said "ends at launch 460:"
}
kineto_goes_on() { # no sign but the silence; the session outlives us
  spin OCCSIM_CLIENT=kineto:100:0 LD_PRELOAD="$work/libtorch_cuda.so" --
  until_true "SELECT count(*) = 1 FROM recording_period WHERE reason LIKE '%seems to use CUPTI%' AND until_ns IS NULL"
  stop
  saw "records have stopped arriving"
}
kineto_twice() {
  spin OCCSIM_CLIENT=kineto:100:160,kineto:3000:3060 --
  until_true "SELECT count(*) = 2 FROM recording_period WHERE $OTHER AND until_ns < (SELECT max(start_ns) FROM launch)"
  stop
  said "ends at launch 160:"
  said "ends at launch 3060:"
}
kineto_in_a_window() { # our window ends in its session: the kind that it enabled too is not disabled
  spin OCCSIM_CLIENT=kineto:1:2500 -- --duration 4s # its session begins before our window ends, also on a busy machine
  until_true "SELECT count(*) = 1 FROM recording_period WHERE $OTHER"
  stop
  local kernels
  kernels=$(sed -n 's/.*ends at launch 2500: \([0-9]*\) kernels.*/\1/p' "$name.log")
  [ "${kernels:-0}" -gt 1250 ] || fail "the session got ${kernels:-no} kernels: it was cut"
}
kineto_and_nvtx() { # calls are recorded for us alone: not beside its session, nor into its buffers after it
  "$hello" --help | grep -q -- --ranges || return 0
  local ranges=--ranges
  spin OCCSIM_CLIENT=kineto:400:460 -- --nvtx
  until_true "$BACK"
  until_true "SELECT count(*) > 20 FROM launch WHERE range_id IS NOT NULL AND start_ns > (SELECT until_ns FROM recording_period)"
  stop
  is "$(query "SELECT count(*) FROM recording_period")" 1 "periods"
}
subscriber() { # takes the callback API, which we do not need
  spin OCCSIM_CLIENT=subscriber:10:60 --
  until_true "SELECT launches > 300 FROM run"
  stop
  said "client subscriber: begins at launch 10: 0"
  is "$(query 'SELECT count(*) FROM recording_period')" 0 "periods"
  none_known_lost
}

# From the start nothing is recorded, and the program is left alone.
yields() { # reason, command...
  local reason=$1
  shift
  env OCCSIM_LOG="$work/$name.log" "$@" "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -d "$name.db" "$hello" --launches 30 \
    >"$name.out" 2>"$name.err"
  is $? 0 "exit status"
  is "$(cat "$name.out")" "launches: 30" "output"
  saw "$reason"
  is "$(query 'SELECT level FROM run')" nothing "level"
}
nsys() { yields "Nsight Systems is at work" NSYS_PROFILING_SESSION_ID=1; }
nsys_injection() { yields "another tool is injected" CUDA_INJECTION64_PATH=/opt/nvidia/nsight/libToolsInjection64.so; }
ncu() { yields "Nsight Compute is at work" NV_NSIGHT_INJECTION_PORT_BASE=1; }
refused() { yields "another profiler uses CUPTI" OCCSIM_FAULT=enable:39; }
dcgm() { # its profiling module holds the GPU's counters: launches are recorded, not measured
  mkdir -p "$name.counters"
  env OCCSIM_COUNTERS="$work/$name.counters" OCCSIM_FAULT=pm_enable:26 OCCSIM_GPU=a100 "$here/scripts/simgpu" --build "$build" \
    "$build/bin/occtrace" -d "$name.db" "$hello" --launches 200 >"$name.out" 2>"$name.err"
  is $? 0 "exit status"
  is "$(query 'SELECT launches FROM run')" 200 "launches"
  is "$(query "SELECT level = 'trace' AND level_reason LIKE '%another tool%' FROM run")" 1 "level and reason"
}
another_occtrace() { # the inner one wins, and each launch is recorded once
  simulated "$build/bin/occtrace" -d "$name.outer.db" "$build/bin/occtrace" -d "$name.db" "$hello" --launches 200 \
    >"$name.out" 2>"$name.err"
  is $? 0 "exit status"
  is "$(query 'SELECT sum(launches) FROM run')" 200 "launches"
}

# ---- windows and the owner's pause ----
delay() {
  spin -- --delay 1s
  until_true "SELECT count(*) = 1 FROM recording_period WHERE reason LIKE '%--delay%' AND until_ns - from_ns >= 1e9
              AND (SELECT launches FROM run) > 20"
  stop
  is "$(query 'SELECT count(*) FROM launch WHERE start_ns < (SELECT until_ns FROM recording_period)')" 0 "launches before"
}
duration() {
  spin -- --duration 4s
  until_true "SELECT count(*) = 1 FROM recording_period WHERE reason LIKE '%--duration%'"
  sleep 0.5
  stop
  is "$(query "SELECT launches > 0 AND (SELECT max(start_ns) FROM launch) - start_ns < 60e9 FROM run")" 1 "launches"
  is "$(query 'SELECT count(*) FROM launch WHERE start_ns >= (SELECT from_ns FROM recording_period)')" 0 "launches after"
  none_known_lost
}
launches() {
  spin -- --launches 123
  until_true "SELECT count(*) = 1 FROM recording_period WHERE reason LIKE '%--launches%'"
  stop
  is "$(query 'SELECT launches FROM run')" 123 "launches"
  none_known_lost
  is "$(query 'SELECT count(*) FROM launch WHERE start_ns >= (SELECT from_ns FROM recording_period)')" 0 "launches after"
  # a program that ends before the next round has a period too; the level's reason is not the period's
  simulated "$build/bin/occtrace" -d "$name.short.db" --launches 5 -- "$hello" --launches 40 >"$name.out" 2>"$name.err"
  is "$("$occq" sql -d "$name.short.db" --csv "SELECT launches, coalesce(level_reason, '') LIKE '%--launches%', recording_periods LIKE '%--launches%'
      FROM run" | tail -1 | tr -d '\r')" 5,0,1 "a short program: $(cat "$name.err")"
}
pause() {
  local pid='' socket=$work/$name.sock
  "$here/scripts/simgpu" --build "$build" "$build/bin/occtraced" --db "$name.db" --socket "$socket" --counters none 2>"$name.daemon" &
  local daemon=$!
  until [ -S "$socket" ]; do kill -0 $daemon || { fail "no daemon"; return; }; sleep 0.05; done
  "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" --socket "$socket" "$hello" --spin --batch 5 --sleep-ms 20 >"$name.out" 2>"$name.err" &
  program=$!
  until_true "SELECT launches > 20 FROM run"
  pid=$(pgrep -P $program -x hello)
  "$occq" runs pause "$pid" --socket "$socket" >"$name.said" 2>&1 || fail "pause: $(cat "$name.said")"
  until_true "SELECT count(*) = 1 FROM recording_period WHERE reason LIKE 'paused%' AND until_ns IS NULL"
  "$occq" runs -d "$name.db" 2>&1 | grep -q "nothing [0-9:]*-: paused" || fail "occq runs: $("$occq" runs -d "$name.db")"
  "$occq" runs resume "$pid" >"$name.said" 2>&1 || fail "resume: $(cat "$name.said")"
  until_true "SELECT count(*) = 1 FROM recording_period WHERE until_ns < (SELECT max(start_ns) FROM launch)"
  stop
  is "$(query 'SELECT count(*) FROM launch, recording_period WHERE start_ns >= from_ns AND start_ns < until_ns')" 0 "launches in the pause"
  "$occq" runs pause "$pid" --socket "$socket" >"$name.said" 2>&1
  is $? 1 "pause of a program that is gone"
  grep -q "no process $pid reports" "$name.said" || fail "$(cat "$name.said")"
  kill $daemon
  wait $daemon 2>/dev/null
}
budget() { # a budget that nothing meets: down the ladder, each step with its reason
  spin OCCTRACE_BUDGET=0.0001 --
  until_true "SELECT count(*) = 3 FROM recording_period WHERE reason LIKE '%the budget is 0.0001 %'"
  stop
  is "$(query "SELECT group_concat(level, ' ') FROM (SELECT level FROM recording_period ORDER BY from_ns)")" \
    "trace configs nothing" "steps"
  # two steps of ten seconds: all launches, and those of one second
  local during="FROM launch, recording_period AS p WHERE start_ns BETWEEN from_ns AND until_ns AND p.level"
  is "$(query "SELECT count(*) > 0 AND count(*) * 3 < (SELECT count(*) $during = 'trace') $during = 'configs'")" 1 "sampled launches"
  is "$(query "SELECT count(*) FROM launch, recording_period AS p
               WHERE p.level = 'nothing' AND start_ns >= from_ns")" 0 "launches at the end"
}

cases="kineto_at_start kineto_in_the_middle kineto_finalizes kineto_goes_on kineto_twice kineto_in_a_window kineto_and_nvtx subscriber nsys nsys_injection ncu
  refused dcgm another_occtrace delay duration launches pause budget"
printf 'int occ_unused;\n' | cc -shared -fPIC -x c - -o libtorch_cuda.so || exit 1
for name in ${*:-$cases}; do
  "$name" &
done
wait
[ ! -e failed ]
