#!/bin/bash
# occtrace --exact on the simulated device: every launch has its own value, and it is the simulation's; where that cannot be, the
# launches are recorded all the same, the run says why, and the program is what it is without.   exact.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
occtrace=$build/bin/occtrace

fail() { echo "FAILED: $title: $*"; failed=1; }
query() { "$build/bin/occq" sql -d h.db --csv "$1" | sed '1d; s/"//g'; }

# GPU, faults ("" for none), options of occtrace, the program and its arguments.
trace() {
  local gpu=$1 faults=$2 options=$3
  shift 3
  title="$gpu $faults $options ${*##*/}"
  rm -f h.db* truth
  # shellcheck disable=SC2086 # options are words
  OCCSIM_TRUTH=$work/truth OCCSIM_FAULT=$faults "$here/scripts/simgpu" --gpu "$gpu" --build "$build" \
    "$occtrace" $options -d h.db "$@" >out 2>err
  local code=$?
  [ $code -eq 0 ] || fail "exit code $code: $(head -3 err)"
  "$here/scripts/simgpu" --gpu "$gpu" --build "$build" "$@" >alone 2>&1
  cmp -s alone out || fail "the program's output is not what it is without occtrace"
  launches=$(sed -n '$s/^launches: //p' out)
  recorded=$(query 'SELECT count(*) FROM launch')
  [ "$((recorded + $(query 'SELECT coalesce(sum(lost), 0) FROM run')))" = "$launches" ] ||
    fail "$recorded launches are in the history, and $(query "SELECT group_concat(lost_causes) FROM run") of $launches are lost"
  [ "$recorded" = "$launches" ] || [ "$losses" = may ] || fail "not all launches are in the history"
  [ "$(query 'SELECT count(*) FROM launch WHERE duration_ns < 1')" = 0 ] || fail "launches without a duration"
}
losses=none
measured() {
  [ "$(query 'SELECT coalesce(sum(exact), 0) FROM measured_config')" = "$1" ] ||
    fail "not $1 launches with exact values, but $(query 'SELECT sum(exact) FROM measured_config')"
  [ "$(query 'SELECT coalesce(sum(direct + regression + grouped), 0) FROM measured_config')" = 0 ] || fail "values from samples"
}
reason() { query 'SELECT level_reason FROM run' | grep -qF -- "$1" || fail "the run does not say \"$1\""; }

# SMs and tolerance; the simulation's truth, by kernel: the mean by duration of achieved, elapsed, active share and blocks on an active SM.
matches_truth() {
  sed '1d; s/"//g' truth | awk -F, -v sms="$1" '
    { ns = substr($16, 6) - substr($15, 6) # awk counts no more than 53 bits
      t[$1] += ns; a[$1] += $24 * ns; e[$1] += $25 * ns; s[$1] += $25 / $24 * ns; b[$1] += $23 / ($25 / $24 * sms) }
    END { for (k in t) printf "%s %.9f %.9f %.9f %.9f\n", k, a[k] / t[k], e[k] / t[k], s[k] / t[k], b[k] / t[k] }' | sort >expected
  query "SELECT format('%s %.9f %.9f %.9f %.9f', kernel, achieved, elapsed, sm_active, resident_blocks) AS line FROM measured_config" | sort >got
  [ -s expected ] || fail "no truth"
  awk -v tolerance="${2:-1e-5}" 'NR == FNR { for (i = 2; i <= 5; i++) want[$1, i] = $i; n++; next }
       { for (i = 2; i <= 5; i++) { d = $i - want[$1, i]; if (!(($1, i) in want) || d > tolerance || d < -tolerance) wrong++ } m++ }
       END { exit wrong > 0 || n != m }' expected got || fail "truth (<) and history (>) differ
$(diff expected got)"
}

for gpu in "t4 40" "a100 108" "h200 132"; do
  read -r name sms <<<"$gpu"
  trace "$name" "" --exact "$build/samples/zoo"
  measured "$launches"
  matches_truth "$sms"
  reason "$launches of $launches launches measured"
done
"$build/bin/occq" show -d h.db tail --json | grep -q '"source": "exact"' || fail "occq show does not name the source"
# Warps of a block that end early (the truth's times are whole nanoseconds).
export OCCSIM_WARP_IMBALANCE=50
trace h200 "" --exact "$build/samples/zoo"
matches_truth 132 1e-3
unset OCCSIM_WARP_IMBALANCE
# More launches than a session holds; streams that would overlap; a process that forks and one that execs.
for run in "hello --launches 400" "hello --launches 1500" "hello --launches 100 --fork" \
           "hello --launches 100 --exec" "transformer --steps 3 --streams 3 --no-graph"; do
  read -r -a words <<<"$run"
  trace h200 "" --exact "$build/samples/${words[0]}" "${words[@]:1}"
  measured "$launches"
done
# Threads take turns. A session in which one did not get its turn has no values, and so no times; no launch has two values.
losses=may
for threads in 2 4; do
  trace h200 "" --exact "$hello" --launches 1000 --threads $threads
  [ "$recorded" -gt 0 ] || fail "nothing is recorded"
  measured "$recorded"
done
losses=none
# Graphs are launched between sessions: the kernels outside have values, those inside have their times and no value.
trace h200 "" --counters=exact "$build/samples/transformer" --steps 5
[ "$(query 'SELECT count(*) FROM launch WHERE graph_node_id IS NOT NULL')" -gt 0 ] || fail "no launch is a graph's"
measured "$(query 'SELECT count(*) FROM launch WHERE graph_node_id IS NULL')"

# Refusals and losses.
while read -r faults expected text; do
  losses=none
  [ "$faults" != rangeloss:1 ] || losses=may # without a value there are no times
  trace h200 "$faults" --exact "$hello" --launches 600
  measured "$expected"
  reason "$text"
  level=trace
  [ "$expected" = 0 ] || level=full
  [ "$(query 'SELECT level FROM run')" = $level ] || fail "level $(query 'SELECT level FROM run'), not $level"
done <<'FAULTS'
range:35 0 no exact values: the range profiler: error 35, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
range:26 0 no exact values: the range profiler: error 26, CUPTI_ERROR_HARDWARE_BUSY
range:27 0 no exact values: the range profiler: error 27, CUPTI_ERROR_NOT_SUPPORTED
passes:2 0 no exact values: the counters need 2 passes
subscribe:39 0 no exact values: callbacks: error 39
rangeloss:1 0 0 of 600 launches measured
rangeloss:1,rangetimes:1 0 0 of 600 launches measured
shuffle:5 600 600 of 600 launches measured; they start when they were called
rangetimes:1 600 600 of 600 launches measured
rangewait:1 600 600 of 600 launches measured
FAULTS
# A session that lacks ranges has no values, and the run counts the ranges that are there.
losses=may
trace h200 rangeloss:7 --exact "$hello" --launches 600
measured "$recorded"
reason "; dropped: "
losses=none
# A library without the range profiler that we know.
OCCSIM_CUPTI_VERSION=28 trace h200 "" --exact "$hello" --launches 3
measured 0
reason "is older than CUDA 13.0"

# An installation without the library of --exact, and one with another version's.
for case in "cannot open" "another version of occtrace has"; do
  rm -rf apart
  mkdir -p apart/bin apart/lib
  cp "$build"/bin/occtrace "$build"/bin/occtraced apart/bin/
  cp -r "$build/lib/occtrace" apart/lib/
  rm apart/lib/occtrace/libocctrace-exact.so
  [ "$case" = "cannot open" ] ||
    echo 'const unsigned occ_exact_library = 0;' | ${CC:-cc} -x c -shared -o apart/lib/occtrace/libocctrace-exact.so -
  occtrace=$work/apart/bin/occtrace
  trace h200 "" --exact "$hello" --launches 3
  occtrace=$build/bin/occtrace
  measured 0
  reason "no exact values: $case $work/apart/lib/occtrace/libocctrace-exact.so"
done

# What is said, and what is not.
trace h200 "" --exact "$hello" --launches 3
grep -q "occtrace: --exact: kernels run one after the other" err || fail "stderr lacks the warning"
trace h200 "" "--exact -q" "$hello" --launches 3
[ ! -s err ] || fail "-q, but stderr has: $(cat err)"
measured 3
trace h200 "" "" "$hello" --launches 3
measured 0
grep -q "one after the other" err && fail "speaks of --exact without it"

# A daemon that samples the same GPU for everybody has no say in such a run.
title="beside a daemon that samples"
rm -rf h.db* counters
mkdir counters
export OCCSIM_COUNTERS=$work/counters
"$here/scripts/simgpu" --build "$build" "$build/bin/occtraced" --db h.db --socket "$work/socket" --counters pm >daemon.log 2>&1 &
daemon=$!
for exact in "" --exact; do
  # shellcheck disable=SC2086 # options are words
  OCCSIM_BLOCK_NS=400000 "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -q $exact --socket "$work/socket" \
    "$hello" --launches 1000 >/dev/null 2>err || fail "exit code $?: $(head -3 err)"
done
# Exact values that fail give the launches back to the daemon's samples, a second after the first launch.
OCCSIM_FAULT=range:35 OCCSIM_BLOCK_NS=400000 "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -q --exact --label failed \
  --socket "$work/socket" "$hello" --launches 4000 --batch 4 --sleep-ms 4 >/dev/null 2>err || fail "exit code $?: $(head -3 err)"
failed_exact() { query "SELECT sum(direct + regression + grouped) > 0 AND sum(exact) = 0 FROM measured_config JOIN run USING (run_id) WHERE label = 'failed'"; }
for _ in $(seq 600); do
  [ "$(failed_exact)" = 1 ] && break
  sleep 0.1
done
[ "$(failed_exact)" = 1 ] || fail "exact values failed, and no launch is measured by samples"
unset OCCSIM_COUNTERS
kill $daemon
wait $daemon
n=$(query 'SELECT count(*) FROM run')
[ "$n" = 3 ] || fail "$n runs, not 3: $(tail -3 daemon.log)"
[ "$(query 'SELECT sum(exact) FROM measured_config WHERE run_id = 2')" = 1000 ] || fail "not all launches are measured"
[ "$(query 'SELECT sum(direct + regression + grouped) FROM measured_config WHERE run_id = 2')" = 0 ] || fail "samples are mixed in"

title="--exact with another source"
"$build/bin/occtrace" --exact --counters=pm true >out 2>err
[ $? -eq 2 ] && grep -q "exclude each other" err || fail "not refused: $(cat err)"
exit $failed
