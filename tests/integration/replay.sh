#!/bin/bash
# A recorded run, played to the daemon, arrives whole: works without a CUDA toolkit.   replay.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/occtrace" -d "$work/h.db" "$build/samples/replay" "$here/tests/data/transformer-h200.recording" \
  >"$work/out" 2>"$work/err" || { cat "$work/err"; exit 1; }
said=$(sed -n 's/^launches: //p' "$work/out")
query() { "$build/bin/occq" sql -d "$work/h.db" --csv "$1" | sed 1d; }
stored=$(query 'SELECT count(*) FROM launch')
[ "$said" = "$stored" ] || { echo "the program says $said launches, the history $stored"; exit 1; }
[ "$(query 'SELECT count(*) FROM launch WHERE theoretical IS NULL OR limiters IS NULL OR full_waves IS NULL')" = 0 ] ||
  { echo "launches without theoretical occupancy"; exit 1; }
[ "$(query 'SELECT count(*) FROM launch WHERE NOT simulated')" = 0 ] || { echo "not marked simulated"; exit 1; }
"$build/bin/occq" top --low-occupancy -d "$work/h.db" | grep -q simulated || { echo "occq top hides that it is simulated"; exit 1; }
