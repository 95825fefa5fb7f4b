#!/usr/bin/env bash
# E20: a main thread that ends by pthread_exit().
. "${OCC_KIT:?}/report.sh"
expect "the process ends with us exactly when and how it does without us"
behave=$OCC_KIT/behave
[ -x "$behave" ] || skip "behave was not built"
one() { # name command...: its code (124: it did not end) and seconds
  local name=$1 began
  shift
  began=$(date +%s%N)
  timeout --foreground --kill-after=1 10 "$@" >"$work/$name.out" 2>"$work/err"
  code=$?
  value "${name}_code" "$code" "(124: had not ended after 10 s)"
  value "${name}_seconds" "$(calc "($(date +%s%N) - $began) / 1e9")" "s"
}
one plain "$behave" pthread_exit 100
plain=$code
one observed "$occtrace" --counters=none -q -d "$work/x.db" "$behave" pthread_exit 100
kill_program "$behave" # one that did not end outlives its occtrace
value recorded "$(ask "$work/x.db" 'SELECT count(*) FROM launch')" "of 100 launches"
saw level "$(ask "$work/x.db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
if [ $plain -eq 124 ]; then
  [ $code -eq 124 ] && decide confirmed "the driver's own threads keep such a program alive without us, too: nothing to do (injector/helper.c)"
  decide unclear "without us it does not end, with us it ends with $code: the watch for the last thread ends programs that live on (injector/helper.c)"
fi
[ "$code" -eq "$plain" ] && cmp -s "$work/plain.out" "$work/observed.out" &&
  decide confirmed "the helper thread lets such programs end (injector/helper.c)"
decide refuted "without us it ends with $plain, with us with $code: threads of CUPTI or of the driver keep it alive once it is traced (injector/helper.c)"
