#!/bin/bash
# A program in which another profiler has two sessions, many times over: every launch outside the periods that the run reports
# is in the history, once.   sessions.sh BUILD [RUNS [PARALLEL]]
# In every other run cuptiActivityEnable takes 300 us after records have begun, so that threads launch inside it.
set -u
build=$1 runs=${2:-200} parallel=${3:-8}
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# One daemon for all runs: a full machine may not start one for each in time.
"$here/scripts/simgpu" --build "$build" "$build/bin/occtraced" --db h.db --socket "$work/socket" --counters none >daemon.log 2>&1 &
daemon=$!
until [ -S socket ]; do kill -0 $daemon || { cat daemon.log; exit 1; }; sleep 0.05; done
query() { "$build/bin/occq" sql -d h.db --csv "$1" | sed '1d; s/"//g'; }

# Prints "launches outside recorded missing twice periods", or what went wrong.
check() {
  local run
  run=$(query "SELECT run_id FROM run WHERE label = '${1##*/}'")
  query "SELECT from_ns, coalesce(until_ns, 9223372036854775807) FROM recording_period WHERE run_id = $run" >"$1/periods"
  query "SELECT start_ns, count(*) FROM launch WHERE run_id = $run GROUP BY start_ns" >"$1/history"
  python3 - "$1" <<'PYTHON'
import csv, sys
directory = sys.argv[1]
rows = lambda name: [tuple(map(int, line.split(","))) for line in open(f"{directory}/{name}")]
periods, history = rows("periods"), dict(rows("history"))
starts = {}
with open(f"{directory}/truth") as file:
    for row in csv.DictReader(file):
        start = int(row["start_ns"])
        starts[start] = starts.get(start, 0) + 1
outside = {s: n for s, n in starts.items() if not any(a <= s < b for a, b in periods)}
missing = sum(max(n - history.get(s, 0), 0) for s, n in outside.items())
extra = sum(max(n - starts.get(s, 0), 0) for s, n in history.items())
for s in sorted(s for s, n in outside.items() if n > history.get(s, 0))[:5]:
    print("  missing:", ", ".join(f"{(s - a) / 1e6:+.3f} ms from a period's begin" for a, _ in periods), file=sys.stderr)
ended = sum(b != 9223372036854775807 for _, b in periods)
print(sum(starts.values()), sum(outside.values()), sum(history.values()), missing, extra, len(periods), ended)
PYTHON
}

one() {
  local directory=$work/$1 faults=
  mkdir "$directory"
  [ $(($1 % 2)) = 0 ] || faults=slow_enable:300
  env OCCSIM_TRUTH="$directory/truth" OCCSIM_FAULT=$faults OCCSIM_CLIENT=kineto:4000:4300,kineto:17000:17300 "$here/scripts/simgpu" \
    --build "$build" "$build/bin/occtrace" -q --socket "$work/socket" --label "$1" \
    "$hello" --threads 6 --batch 1 --sleep-ms 2 --launches 7500 >"$directory/out" 2>&1 || echo "run $1: exit code $?" >>failed
  echo "$1 ${faults:-plain} $(check "$directory")" >>results
  rm -rf "$directory"
}

programs=()
for run in $(seq "$runs"); do
  while [ "$(jobs -rp | wc -l)" -gt "$parallel" ]; do wait -n; done # the daemon is one of the jobs
  one "$run" &
  programs+=($!)
done
wait "${programs[@]}"
kill $daemon
wait $daemon
awk '
  { n[$2]++; launches[$2] += $3; outside[$2] += $4; recorded[$2] += $5; missing[$2] += $6; extra[$2] += $7; back[$2] += $9 }
  NF != 9 || $6 > 0 || $7 > 0 || $8 != 2 || $9 != 2 || $4 < 2000 { print "FAILED: run " $0; bad++ }
  END {
    for (kind in n)
      printf "%s: %d runs, %d launches, %d outside the periods, %d recorded, %d missing, %d twice or unknown, %d returns after %d sessions\n",
        kind, n[kind], launches[kind], outside[kind], recorded[kind], missing[kind], extra[kind], back[kind], 2 * n[kind]
    exit bad > 0
  }' results
code=$?
[ ! -e failed ] || { cat failed; code=1; }
exit $code
