#!/usr/bin/env bash
# E18: the leak of device memory with graphs, by the version of libcupti: each one that is here.
. "${OCC_KIT:?}/report.sh"
expect "before 13.3 device memory grows by 3 MB for each 100 000 nodes, and times are lost after 3.6 million; from 13.3 on it does not"
steps=60000
if quick; then steps=6000; fi
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -1; }
"$OCC_BIN/occtraced" --probe / 2>/dev/null | sed -n 's/^cupti\t\(.*\) (version \([0-9]*\).*/\2 \1/p' >"$work/libraries"
[ -s "$work/libraries" ] || skip "no libcupti that can be used"
worse=0 leaks='' sound=''
while read -r version library; do
  db=$work/$version.db
  rm -f "$db" "$db"-* # two libraries may be of one version
  OCCTRACE_CUPTI=$library "$occtrace" --counters=none -q -d "$db" "$OCC_SAMPLES/transformer" --steps $steps >"$work/out" 2>"$work/err" &
  pid=$!
  sleep 2
  early=$(used) peak=$early
  while kill -0 $pid 2>/dev/null; do
    now=$(used)
    [ -z "$now" ] || [ "$now" -le "${peak:-0}" ] || peak=$now
    sleep 0.5
  done
  wait $pid || { saw "error_$version" "$(tail -1 "$work/err")"; continue; }
  growth=$([ -n "$early" ] && calc "$peak - $early" || echo -)
  bad=$(ask "$db" 'SELECT coalesce(sum(launches), 0) FROM loss')
  made=$(sed -n '$s/^launches: //p' "$work/out") got=$(ask "$db" 'SELECT count(*) FROM launch')
  value "launches_$version" "${got:--}" "of ${made:-?}"
  count_surplus "$got" "$made"
  value "lost_$version" "${bad:--}" "launches, all causes"
  value "growth_$version" "$growth" "MiB of device memory while it ran"
  saw "level_$version" "$library: $(ask "$db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
  if [ "${bad:-0}" -gt 0 ] || { [ "$growth" != - ] && holds "$growth > 50"; }; then
    leaks="$leaks $version"
    [ "$version" -lt 130300 ] || worse=$((worse + 1))
  else
    sound="$sound $version"
  fi
done <"$work/libraries"
[ -n "$leaks$sound" ] || decide unclear "no run succeeded"
refute_surplus
[ $worse -eq 0 ] || decide refuted "it leaks with$leaks, so also from 13.3 on: graphs whole by default (docs/decisions/0011)"
[ -z "$leaks" ] && decide confirmed "no leak with$sound as graphs are recorded here: the work-around of docs/decisions/0011 stays"
decide refuted "it leaks with$leaks (sound:${sound:- none}): those versions need the work-around of docs/decisions/0011, or graphs whole"
