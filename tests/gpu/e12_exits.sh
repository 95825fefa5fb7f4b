#!/usr/bin/env bash
# E12: what an abrupt end costs, and whether other profilers get along with us.
. "${OCC_KIT:?}/report.sh"
expect "at most a second of launches lost at any end; exit codes and signals untouched; other profilers win"
wrong=0
pause=100 spin=4
if quick; then pause=40 spin=2; fi
end() { # name wanted-code arguments...
  local name=$1 want=$2 code
  shift 2
  "$occtrace" -q -d "$work/$name.db" "$OCC_SAMPLES/hello" --launches 2000 --batch 100 --sleep-ms $pause "$@" >/dev/null 2>&1
  code=$?
  value "${name}_launches" "$(ask "$work/$name.db" 'SELECT count(*) FROM launch')" "of 2000"
  value "${name}_code" "$code" "(expected $want)"
  count_surplus "$(ask "$work/$name.db" 'SELECT count(*) FROM launch')" 2000
  [ "$code" = "$want" ] || wrong=$((wrong + 1))
}
end exit 3 --exit 3
end _exit 3 --exit 3 --_exit
end abort 134 --abort
end segv 139 --segv
"$occtrace" -q -d "$work/kill.db" "$OCC_SAMPLES/hello" --spin --log "$work/log" >/dev/null 2>&1 &
spinning=$!
sleep $spin
kill_program "$OCC_SAMPLES/hello"
( sleep 10; kill -KILL $spinning ) 2>/dev/null & # were it not found
watch=$!
wait $spinning 2>/dev/null
kill $watch 2>/dev/null
done_ns=$(tail -1 "$work/log" 2>/dev/null | cut -d' ' -f1)
last=$(ask "$work/kill.db" 'SELECT max(end_ns) FROM launch')
if [ -n "$done_ns" ] && [ -n "$last" ]; then
  lost_ms=$(calc "($done_ns - $last) / 1e6")
  value sigkill_lost "$lost_ms" "ms of launches before the kill"
  holds "$lost_ms < 2000" || wrong=$((wrong + 1))
fi
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  "$occtrace" -q -d "$work/kineto.db" python3 - >"$work/out" 2>&1 <<'PY'
import torch
from torch.profiler import profile, ProfilerActivity
a = torch.rand(512, 512, device="cuda")
def work():
    global a
    for _ in range(50): a = (a @ a).relu()
    torch.cuda.synchronize()
work()
with profile(activities=[ProfilerActivity.CUDA]) as p: work()
print("kineto events", sum(1 for e in p.events() if e.device_type.name == "CUDA"))
work()
PY
  saw kineto "$(tail -1 "$work/out")"
  value beside_kineto "$(ask "$work/kineto.db" 'SELECT count(*) FROM launch')" "launches recorded by us (300 made)"
  saw kineto_level "$(ask "$work/kineto.db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
fi
for tool in ncu nsys; do
  if command -v $tool >/dev/null; then
    case $tool in
      ncu) set -- ncu --clock-control none --metrics sm__cycles_active.avg --launch-count 2 ;;
      nsys) set -- nsys profile -o "$work/nsys" --force-overwrite true ;;
    esac
    timeout 30 "$occtrace" -q -d "$work/$tool.db" "$@" "$OCC_SAMPLES/hello" --launches 10 >"$work/out" 2>&1
    value "${tool}_code" "$?" "exit code with us around it"
    saw "${tool}_level" "$(ask "$work/$tool.db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
  else
    saw $tool "not installed"
  fi
done
refute_surplus
[ $wrong -eq 0 ] && decide confirmed "exits are as without us; the flush interval of 1 s stays"
decide refuted "$wrong ends are not as expected"
