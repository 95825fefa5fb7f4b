#!/bin/bash
# Programs that are nicer than all others on a full machine end: what the program launched is in the history or counted as
# lost, or the run says that losses are unknown. RUNS programs at nice 10 beside 16 busy loops at nice 0, eight at a time, one daemon.   exit_runs.sh BUILD RUNS
set -u
build=$1 runs=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
helpers=()
trap 'kill "${helpers[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1

"$build/bin/occtraced" -d h.db --socket "$work/socket" --counters none >daemon.log 2>&1 &
helpers+=($!)
until [ -S socket ]; do kill -0 "${helpers[0]}" || { cat daemon.log; exit 1; }; sleep 0.1; done
for _ in $(seq 16); do
  (while :; do :; done) &
  helpers+=($!)
done

one_run() { # its number: "launches of the program" in N.out
  nice -n 10 "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" --socket "$work/socket" -q --label "run $1" "$hello" \
    --launches $((50 + $1)) --batch 10 --sleep-ms 5 >"$1.out" 2>"$1.err" || echo "run $1: exit status $?" >>bad
}
running=()
for run in $(seq "$runs"); do
  one_run "$run" &
  running+=($!)
  [ ${#running[@]} -lt 8 ] && [ "$run" -lt "$runs" ] || { wait "${running[@]}"; running=(); }
done


"$build/bin/occq" sql -d h.db --csv "SELECT label, launches, lost, level, coalesce(level_reason, '') FROM run" | sed '1d; s/"//g; s/^run //' |
  sort -n >rows
for run in $(seq "$runs"); do
  echo "$run,$(sed -n 's/^launches: //p' "$run.out")"
done | awk -F, '
  NR == FNR { row[$1] = $0; kept[$1] = $2; lost[$1] = $3; next }
  { made += $2; kept_all += kept[$1]; lost_all += lost[$1] }
  row[$1] ~ /,lost: unknown/ { unknown++; next }
  kept[$1] + lost[$1] != $2 { bad++; print "run " $1 ": made " $2 ", the history says: " row[$1] }
  END { printf "%d runs: %d launches, %d in the history, %d counted as lost; %d runs say that they do not know, %d have uncounted losses\n",
               FNR, made, kept_all, lost_all, unknown, bad
        exit bad > 0 }' rows -
status=$?
[ ! -e bad ] || { cat bad; status=1; }
exit $status
