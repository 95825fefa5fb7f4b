#!/usr/bin/env bash
# E2: wall time of many short launches with and without us, interleaved.
. "${OCC_KIT:?}/report.sh"
expect "below 2 us a launch in the launching thread; a training step below 1 %"
n=200000
rounds=5
if quick; then n=50000 rounds=3; fi

measure() { # name launches-in-all arguments of hello...
  local name=$1 all=$2 plain= observed= took i
  shift 2
  for ((i = 0; i < rounds; i++)); do
    took=$(best_of 1 "$OCC_SAMPLES/hello" "$@")
    if [ -z "$plain" ] || holds "$took < $plain"; then plain=$took; fi
    took=$(best_of 1 "$occtrace" --counters=none -q -d "$work/$name.db" "$OCC_SAMPLES/hello" "$@")
    if [ -z "$observed" ] || holds "$took < $observed"; then observed=$took; fi
  done
  # what occtrace itself takes to start and end is no cost of a launch
  local idle_plain idle_observed
  idle_plain=$(best_of 3 "$OCC_SAMPLES/hello" --launches 1)
  idle_observed=$(best_of 3 "$occtrace" --counters=none -q -d "$work/idle.db" "$OCC_SAMPLES/hello" --launches 1)
  value "${name}_plain" "$(calc "($plain - $idle_plain) / $all * 1e9")" "ns a launch"
  value "${name}_observed" "$(calc "($observed - $idle_observed) / $all * 1e9")" "ns a launch"
  cost=$(calc "(($observed - $idle_observed) - ($plain - $idle_plain)) / $all * 1e9")
  value "${name}_cost" "$cost" "ns a launch"
}
measure batches $n --launches $n --batch 1000
first=$cost
measure one_by_one $((n / 10)) --launches $((n / 10)) --batch 1
measure threads_32 $n --launches $((n / 32)) --threads 32 --batch 1000
# the same of a null kernel, by who is there: nobody, CUPTI alone, CUPTI after it was switched off, us
cost=$OCC_KIT/launch_cost
if [ -x "$cost" ]; then
  for kind in "null 1 1" "many_blocks 20000 1" "threads_32 1 32"; do
    read -r name blocks threads <<<"$kind"
    k=$((n / 4))
    [ "$name" != many_blocks ] || k=$((n / 40))
    for who in none activity disabled occtrace; do
      least=
      for ((i = 0; i < 3; i++)); do
        if [ $who = occtrace ]; then
          ns=$("$occtrace" --counters=none -q -d "$work/cost.db" "$cost" none $k "$blocks" "$threads" 2>/dev/null)
        else
          ns=$("$cost" $who $k "$blocks" "$threads" 2>/dev/null)
        fi
        if [ -n "$ns" ] && { [ -z "$least" ] || holds "$ns < $least"; }; then least=$ns; fi
      done
      value "${name}_$who" "${least:--}" "ns a launch"
    done
  done
fi
value helper_cpu "$(calc "$(ask "$work/batches.db" "SELECT max(total) FROM overhead WHERE quantity = 'helper_cpu_ns'") / $n")" "ns a launch, our thread"
value lost "$(ask "$work/batches.db" 'SELECT coalesce(sum(launches), 0) FROM loss')" "launches"
if holds "$first <= 2000"; then decide confirmed "tracing stays on by default; the governor's constant is the cost above"; fi
decide refuted "a launch costs more than 2 us: the governor must step down for programs with many short launches"
