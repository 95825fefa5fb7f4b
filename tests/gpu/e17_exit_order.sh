#!/usr/bin/env bash
# E17: the last round at exit, in programs that end with work in flight: driver API, static CUDA runtime, PyTorch, many threads.
. "${OCC_KIT:?}/report.sh"
expect "the exit code is the program's, and every launch is recorded or counted as lost, in each of the runs"
rounds=10
if quick; then rounds=4; fi
wrong=0 short=0
again() { # name wanted-launches (or -) command...
  local name=$1 want=$2 i code got lost missing=0 bad=0
  shift 2
  for ((i = 0; i < rounds; i++)); do
    rm -f "$work/x.db"*
    timeout 60 "$occtrace" --counters=none -q -d "$work/x.db" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 0 ] || { bad=$((bad + 1)); saw "${name}_error" "exit code $code: $(tail -1 "$work/err")"; }
    got=$(ask "$work/x.db" 'SELECT count(*) FROM launch')
    lost=$(ask "$work/x.db" 'SELECT coalesce(sum(launches), 0) FROM loss')
    [ "$want" != - ] || continue
    count_surplus $((${got:-0} + ${lost:-0})) "$want"
    [ $((${got:-0} + ${lost:-0})) -ge "$want" ] || missing=$((missing + want - ${got:-0} - ${lost:-0}))
  done
  value "${name}_bad_ends" "$bad" "of $rounds"
  value "${name}_uncounted" "$([ "$want" = - ] && echo - || echo $missing)" "launches in $rounds runs"
  value "${name}_recorded" "${got:--}" "launches in the last run"
  wrong=$((wrong + bad))
  [ "$missing" -eq 0 ] || short=$((short + 1))
}
again driver_api 500 "$OCC_SAMPLES/hello" --launches 500 --batch 500
[ ! -x "$OCC_KIT/behave" ] || again exit_while_launching - "$OCC_KIT/behave" threads_exit 16
case $(ask "$work/x.db" 'SELECT device FROM device') in
  *simulated*) saw runtime "not tried on a simulated device" ;;
  *) if [ -x "$OCC_KIT/runtime" ]; then again runtime 500 "$OCC_KIT/runtime" 500; else saw runtime "not built"; fi ;;
esac
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  rounds=3
  again torch - python3 -c '
import torch
a = torch.rand(256, 256, device="cuda")
for _ in range(200): a = (a @ a).relu()
torch.cuda.synchronize()'
  again torch_in_flight - python3 -c '
import torch
a = torch.rand(256, 256, device="cuda")
for _ in range(200): a = (a @ a).relu()'
else
  saw torch "not here, or without a GPU"
fi
[ $wrong -eq 0 ] || decide refuted "$wrong runs do not end as without us: the exit handlers' order is wrong for that program (injector/exit.c, docs/decisions/0003)"
refute_surplus
[ $short -eq 0 ] && decide confirmed "our exit handler runs before CUPTI's and the runtime's: the last round stays in it (injector/exit.c, docs/decisions/0003)"
decide refuted "$short kinds of programs lose launches at their end that nobody counts (injector/exit.c, docs/decisions/0003)"
