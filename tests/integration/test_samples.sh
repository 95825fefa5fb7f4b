#!/bin/sh
# The sample programs under occtrace on a simulated GPU: the history has exactly the launches that the program
# says it made, each of them analysed, and for the zoo what the model says is what stands written in zoo.c.
#
#   test_samples.sh BUILD t4|a100|h200
#
# Every sample runs on its own database, so that one's surplus cannot hide another's loss.
set -u
build=$1 gpu=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ ! -x "$build/samples/zoo" ] || [ ! -e "$build/simgpu/libcuda.so.1" ]; then
  echo "SKIP: no samples or no simulated device (CUDA toolkit missing when this was configured)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/history.db
failed=0

fail() {
  echo "FAILED ($gpu): $*"
  failed=1
}

query() {
  "$build/bin/occq" sql -d "$db" --csv "$1" | tr -d '"' | sed 1d
}

# The program under occtrace; its output is in $work/out.
trace() {
  rm -f "$db" "$db-wal" "$db-shm"
  "$root/scripts/simgpu" --gpu "$gpu" --build "$build" \
    "$build/bin/occtrace" -q -d "$db" "$build/samples/$1" $2 >"$work/out" 2>"$work/err" ||
    fail "$1 $2: exit code $?: $(head -3 "$work/err")"
}

check_launches() {
  said=$(sed -n '$s/^launches: //p' "$work/out")
  stored=$(query 'SELECT count(*) FROM launch')
  [ -n "$said" ] && [ "$said" = "$stored" ] ||
    fail "$*: the program says $said launches, the history has $stored"
  unknown=$(query 'SELECT count(*) FROM launch WHERE theoretical IS NULL OR limiters IS NULL
                   OR full_waves IS NULL OR partial_blocks IS NULL')
  [ "$unknown" = 0 ] || fail "$*: $unknown launches without theoretical occupancy, limiter or waves"
  [ "$(query 'SELECT count(*) FROM launch WHERE NOT simulated')" = 0 ] || fail "$*: not marked simulated"
}

check_same_output() {
  "$root/scripts/simgpu" --gpu "$gpu" --build "$build" "$build/samples/$1" $2 >"$work/alone" 2>&1
  cmp -s "$work/alone" "$work/out" || fail "$1 $2: its output is not what it is without occtrace"
}

# Missing threads are no missing warps, so the model gives them beside the parts of the lost occupancy; they are
# the answer where no warp is lost.
check_answers() {
  "$build/samples/zoo" --answers --gpu "$gpu" | sed 1d | sort >"$work/expected"
  query "SELECT kernel, block_x, limiters, warps_per_sm, full_waves, partial_blocks,
                coalesce(nullif(main_cause, ''), iif(cause_partial_warp > 0, 'partial_warp', 'none'))
         FROM launch_config" | sort >"$work/got"
  [ -s "$work/expected" ] || fail "zoo: no answers"
  diff "$work/expected" "$work/got" >"$work/diff" ||
    fail "zoo: the answers (<) and the history (>) differ
$(cat "$work/diff")"
  each=$(query 'SELECT DISTINCT n FROM (SELECT count(*) AS n FROM launch GROUP BY kernel)')
  [ "$each" = 3 ] || fail "zoo: each kernel was launched 3 times, the history says $each"
}

while read -r sample options; do
  trace "$sample" "$options"
  check_launches "$sample" "$options"
  check_same_output "$sample" "$options"
done <<'RUNS'
hello --launches 1
hello --launches 500 --threads 4
hello --launches 100 --fork
hello --launches 100 --exec
transformer --steps 5
transformer --steps 3 --streams 3 --no-graph
RUNS
trace zoo ""
check_launches zoo
check_answers
exit $failed
