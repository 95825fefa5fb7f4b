#!/usr/bin/env bash
# E16: how old records are when the history has them, while the GPU is never idle.
. "${OCC_KIT:?}/report.sh"
expect "at 100, 1000 and 10 000 launches/s a launch is in the history 3 s after its end (buffers that fill in 1.5 s, a flush and a commit of 1 s)"
behave=$OCC_KIT/behave
[ -x "$behave" ] || skip "behave was not built"
seconds=12
if quick; then seconds=6; fi
late=0 lost=0
for rate in 100 1000 10000; do
  db=$work/$rate.db
  "$occtrace" --counters=none -q -d "$db" "$behave" paced $seconds $rate >"$work/out" 2>"$work/err" &
  pid=$!
  sleep 2 # the first buffers
  : >"$work/ages"
  for ((i = 0; i < (seconds - 3) * 4; i++)); do
    ask "$db" "SELECT (CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER)) - max(end_ns) / 1000000 FROM launch WHERE duration_ns < 10000000" >>"$work/ages"
    sleep 0.25
  done
  wait $pid || skip "behave fails: $(tail -1 "$work/err")"
  read -r median worst n < <(grep -E '^-?[0-9]+$' "$work/ages" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] + 0, a[NR] + 0, NR + 0 }')
  value "${rate}_age_median" "$([ "${n:-0}" -gt 0 ] && echo "$median" || echo -)" "ms since the end of the newest short launch in the history"
  value "${rate}_age_worst" "$([ "${n:-0}" -gt 0 ] && echo "$worst" || echo -)" "ms"
  made=$(sed -n '$s/^launches: //p' "$work/out")
  got=$(ask "$db" 'SELECT count(*) FROM launch')
  value "${rate}_recorded" "${got:--}" "of ${made:-?} launches"
  value "${rate}_lost" "$(ask "$db" "SELECT coalesce(sum(launches), 0) FROM loss")" "launches lost, all causes"
  [ "${n:-0}" -gt 0 ] || decide unclear "the history could not be asked while it grew: $(tail -1 "$work/err")"
  [ "$worst" -le 3000 ] || late=$((late + 1))
  count_surplus "$got" "$made"
  [ "${got:-0}" = "${made:-x}" ] || lost=$((lost + 1))
done
refute_surplus
[ $lost -eq 0 ] || decide refuted "$lost of 3 rates lose launches: see the causes (docs/decisions/0003)"
[ $late -eq 0 ] && decide confirmed "small buffers keep the promise of docs/decisions/0003: the watermark of the attribution (4 s) holds"
decide refuted "at $late of 3 rates records come later than 3 s: smaller buffers at that rate, or a longer watermark (docs/decisions/0003 and 0016)"
