#!/bin/bash
# SIGKILLs of the program, of the daemon, and of both, at random moments while launches flow.
#
#   kill_loop.sh BUILD ROUNDS
#
# After every round: the history opens, integrity_check is ok, no launch is there twice, and what is missing of the
# device's own list of launches (the simulated device writes it) was made less than LIMIT_MS before the kill: a flush
# interval (1 s), plus a commit interval (1 s) if the daemon dies as well, plus 2 s for files. On top comes the time for
# which threads of the program and its daemon were ready and had no processor (/proc/PID/schedstat). A killed daemon
# alone loses nothing. Prints the age of the oldest launch that was lost.
set -u
build=$1 rounds=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
LIMIT_MS=4000
[ -x "$build/samples/hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 2>"$work/noise" # the shell's own lines about killed jobs
RANDOM=${SEED:-4711}
lost_total=0 launches_total=0 oldest_ms=0

die() { echo "round $round ($victim): $*"; exit 1; }
query() { "$build/bin/occq" sql -d "$work/h.db" --csv "$1" | sed 1d; }

# The private daemon of the occtrace with this pid.
daemon_of() { pgrep -P "$1" -x occtraced | head -1; }
program_of() { pgrep -P "$1" -x hello | head -1; }

# How long all threads of the program and its daemons have been kept waiting for a processor.
waited_ms() {
  local pid
  for pid in $program $(pgrep -f "$work/h.db"); do cat /proc/"$pid"/task/*/schedstat; done |
    awk '{ ns += $2 } END { printf "%d", ns / 1000000 }'
}

wait_gone() { # until no process has our session's database open: the private daemon ends by itself
  while pgrep -f "occtraced.*$work/h.db" >/dev/null; do sleep 0.1; done
}

for round in $(seq "$rounds"); do
  rm -f "$work"/h.db* "$work/truth"
  case $((round % 4)) in
    0) victim=program ;; 1) victim=daemon ;; 2) victim=occtrace ;; 3) victim=both ;;
  esac
  OCCSIM_TRUTH=$work/truth "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -q -d "$work/h.db" \
    "$build/samples/hello" --launches 100000000 --batch 16 --sleep-ms 1 >"$work/out" 2>"$work/err" &
  top=$!
  until [ -n "$(program_of $top)" ] && [ -s "$work/truth" ] || ! kill -0 $top; do sleep 0.02; done
  sleep "$((RANDOM % 3)).$((RANDOM % 90 + 10))"
  program=$(program_of $top) daemon=$(daemon_of $top)
  [ -n "$program" ] && [ -n "$daemon" ] || die "the program or its daemon is not there"
  case $victim in
    daemon) kill -9 "$daemon"; sleep "$((RANDOM % 2 + 2)).$((RANDOM % 90 + 10))" ;;
    occtrace) kill -9 $top; sleep "0.$((RANDOM % 90 + 10))" ;;
  esac
  waited=$(waited_ms)
  case $victim in
    both) kill -9 "$daemon" "$program" ;;
    *) kill -9 "$program" ;;
  esac
  killed_ns=$(date +%s%N)
  wait $top
  wait_gone
  [ -e "$work/h.db" ] || { [ "$victim" = both ] && continue; die "no history"; }
  [ "$(query 'PRAGMA integrity_check')" = ok ] || die "integrity_check: $(query 'PRAGMA integrity_check')"
  stored=$(query 'SELECT count(*) FROM launch')
  distinct=$(query 'SELECT count(DISTINCT start_ns) FROM launch')
  [ "$stored" = "$distinct" ] || die "$stored launches, $distinct different"
  query 'SELECT start_ns FROM launch ORDER BY start_ns' >"$work/stored"
  sed 1d "$work/truth" | cut -d, -f15 | grep . | sort >"$work/made" # start_ns (tests/simgpu/README.md)
  missing=$(sort "$work/stored" | comm -13 - "$work/made" | sort -n | sed '/^$/d')
  lost=$(printf '%s' "$missing" | grep -c .)
  made=$(wc -l <"$work/made")
  if [ "$lost" -gt 0 ]; then
    oldest=$(printf '%s\n' "$missing" | head -1)
    age_ms=$(((killed_ns - oldest) / 1000000))
    [ $age_ms -gt $oldest_ms ] && oldest_ms=$age_ms
    [ $age_ms -le $((LIMIT_MS + waited)) ] ||
      die "$lost of $made lost, the oldest $age_ms ms before the kill; threads waited $waited ms for a processor"
  fi
  lost_total=$((lost_total + lost)) launches_total=$((launches_total + made))
done
echo "$rounds rounds, $launches_total launches, $lost_total lost, the oldest $oldest_ms ms before its kill, every history sound"
