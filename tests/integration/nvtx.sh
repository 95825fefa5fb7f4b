#!/bin/bash
# occtrace --nvtx on the simulated device: every launch has the NVTX ranges that its thread had open; where that cannot be, the
# launches are recorded all the same, and the program is what it is without.   nvtx.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
"$hello" --help | grep -q -- --ranges || { echo "SKIP: the sample has no NVTX"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
occtrace=$build/bin/occtrace

fail() { echo "FAILED: $title: $*"; failed=1; }
query() { "$build/bin/occq" sql -d h.db --csv "$1" | sed '1d; s/"//g'; }

# A program waits 2 s at its end for its records, in which a full machine may give the helper no processor. The run says so.
was_cut_off() { [ "$(query "SELECT count(*) FROM run WHERE level_reason GLOB 'lost: unknown*'")" != 0 ]; }

# Faults ("" for none), options of occtrace, options of hello. Again, if the program was cut off.
trace() {
  title="$1 $2 $3"
  for _ in $(seq 30); do
    rm -f h.db*
    # shellcheck disable=SC2086 # options are words
    OCCSIM_FAULT=$1 "$here/scripts/simgpu" --build "$build" "$occtrace" $2 -d h.db "$hello" $3 >out 2>err
    local code=$?
    [ $code -eq 0 ] || fail "exit code $code: $(head -3 err)"
    was_cut_off || break
  done
  # shellcheck disable=SC2086
  "$here/scripts/simgpu" --build "$build" "$hello" $3 >alone 2>&1
  cmp -s alone out || fail "the program's output is not what it is without occtrace"
  [ "$(query 'SELECT count(*) FROM launch')" = "$(sed -n '$s/^launches: //p' out)" ] || fail "not all launches are in the history"
}
ranges() { query 'SELECT coalesce(range, 0), count(*) FROM launch LEFT JOIN range USING (run_id, range_id) GROUP BY 1 ORDER BY 1'; }
expect() { [ "$(ranges)" = "$1" ] || fail "ranges are: $(ranges)"; }
both() { printf 'worker/hello:batch #,%s\nworker/hello:batch #/second|half,%s' "$1" "$1"; }

trace "" --nvtx "--ranges --launches 640"
expect "$(both 320)"
trace "" --nvtx "--ranges --launches 6400 --threads 8"
expect "$(both 25600)"
trace small:800 --nvtx "--ranges --launches 64 --threads 3" # a buffer holds three records
expect "$(both 96)"
OCCTRACE_CUPTI=$build/simgpu/old/libcupti.so.12 trace "" --nvtx "--ranges --launches 640" # older than 12.5
expect "0,640"
query 'SELECT level_reason FROM run' | grep -q 'no ranges: libcupti lacks cuptiActivityEnableDriverApi' || fail "no reason"
trace "" --nvtx "--ranges --launches 640 --fork" # the child is a run of its own
expect "$(both 640)"
trace "" "" "--ranges --launches 640"
expect "0,640"
trace "" --nvtx "--launches 640"
expect "0,640"
# records of many calls are lost: launches of these have no range, none has a wrong one
trace late:300 --nvtx "--ranges --launches 640 --threads 2"
[ -z "$(ranges | grep -v '^0,\|^worker/hello:batch #')" ] || fail "ranges are: $(ranges)"
# NVTX is another tool's
NVTX_INJECTION64_PATH=/nonexistent trace "" --nvtx "--ranges --launches 64"
expect "0,64"
grep -q 'NVTX_INJECTION64_PATH' err || fail "nothing is said of the other tool"
# an installation without the library
mkdir -p apart/bin apart/lib && cp "$build"/bin/occ* apart/bin && cp -r "$build/lib/occtrace" apart/lib
rm apart/lib/occtrace/libocctrace-nvtx.so
occtrace=$work/apart/bin/occtrace
OCCTRACE_NVTX=1 trace "" "" "--ranges --launches 64"
query 'SELECT level_reason FROM run' | grep -q 'no ranges: cannot open .*libocctrace-nvtx.so' || fail "no reason: $(query 'SELECT level_reason FROM run')"

# What --nvtx or --exact cannot do takes nothing else away: a shared daemon measures the launches all the same.
title="a shared daemon"
rm -rf h.db* counters
mkdir counters
export OCCSIM_COUNTERS=$work/counters OCCSIM_GPU=h200
occtrace=$build/bin/occtrace
"$here/scripts/simgpu" --build "$build" "$build/bin/occtraced" --db h.db --socket "$work/socket" --counters auto >daemon.log 2>&1 &
daemon=$!
until [ -S socket ]; do kill -0 $daemon || { fail "no daemon: $(cat daemon.log)"; break; }; sleep 0.05; done
for option in "" --nvtx --exact; do
  # shellcheck disable=SC2086 # one option or none
  OCCTRACE_CUPTI=$build/simgpu/old/libcupti.so.12 OCCSIM_BLOCK_NS=400000 "$here/scripts/simgpu" --build "$build" "$occtrace" -q \
    $option --label "run$option" --socket "$work/socket" "$hello" --launches 2000 >out 2>err || fail "exit code $?: $(head -3 err)"
done
measured() { query "SELECT count(*) FROM launch JOIN run USING (run_id) WHERE label = 'run$1' AND measured_source IS NOT NULL"; }
for _ in $(seq 600); do # the last second is measured after the program's end
  [ "$(measured "")" = 2000 ] && [ "$(measured --nvtx)" = 2000 ] && [ "$(measured --exact)" = 2000 ] && break
  sleep 0.1
done
for option in "" --nvtx --exact; do
  [ "$(measured "$option")" = 2000 ] || fail "$(measured "$option") of 2000 launches of run$option are measured"
done
[ "$(query "SELECT group_concat(DISTINCT level) FROM run")" = full ] || fail "levels are $(query 'SELECT level FROM run')"
query "SELECT level_reason FROM run WHERE label = 'run--nvtx'" | grep -q 'no ranges: libcupti lacks' || fail "no reason of --nvtx"
query "SELECT level_reason FROM run WHERE label = 'run--exact'" | grep -q 'no exact values: libcupti' || fail "no reason of --exact"
kill $daemon
wait $daemon
exit $failed
