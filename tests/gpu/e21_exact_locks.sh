#!/usr/bin/env bash
# E21: exact mode's locks: many threads that launch at once.
. "${OCC_KIT:?}/report.sh"
expect "no deadlock, and no launch call that takes its thread longer than half a second"
behave=$OCC_KIT/behave
[ -x "$behave" ] || skip "behave was not built"
n=2000
if quick; then n=300; fi
longest() { sed -n 's/^call_max_ms: //p' "$1"; }
worst=0 stuck=0
for threads in 1 8 32; do
  timeout 30 "$behave" calls $n $threads >"$work/plain" 2>"$work/err" || skip "behave fails: $(tail -1 "$work/err")"
  timeout 30 "$occtrace" --counters=none -q -d "$work/t.db" "$behave" calls $n $threads >"$work/traced" 2>&1
  timeout 60 "$occtrace" --exact -q -d "$work/$threads.db" "$behave" calls $n $threads >"$work/exact" 2>"$work/err"
  code=$?
  [ $code -ne 124 ] || stuck=$((stuck + 1))
  value "${threads}_plain" "$(longest "$work/plain")" "ms, the longest launch call"
  value "${threads}_traced" "$(longest "$work/traced")" "ms"
  value "${threads}_exact" "$(longest "$work/exact" | grep . || echo -)" "ms"
  value "${threads}_exact_code" "$code" "(expected 0; 124: it hung)"
  value "${threads}_recorded" "$(ask "$work/$threads.db" 'SELECT count(*) FROM launch')" "of $((n * threads)) launches"
  value "${threads}_measured" "$(ask "$work/$threads.db" 'SELECT coalesce(sum(exact), 0) FROM measured_config')" "of $((n * threads)) launches"
  saw "${threads}_level" "$(ask "$work/$threads.db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
  now=$(longest "$work/exact")
  if [ -n "$now" ] && holds "$now > $worst"; then worst=$now; fi
done
[ $stuck -eq 0 ] || decide refuted "$stuck of 3 runs hang, though no lock of ours is held in a call of CUPTI (injector/exact/launches.c, docs/decisions/0015)"
holds "$worst <= 500" && decide confirmed "launches that take turns do not hang, nor wait long (docs/decisions/0015)"
decide refuted "a launch call takes up to $worst ms: profiler calls go to a thread of their own (docs/decisions/0015)"
