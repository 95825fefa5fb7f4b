#!/usr/bin/env bash
# E1: the driver loads us in cuInit, in every way that programs come to CUDA.
. "${OCC_KIT:?}/report.sh"
expect "every way of starting records exactly the launches that were made"

wrong=0
way() { # name command...
  local name=$1 db=$work/$1.db want got
  shift
  want=$("$occtrace" --counters=none -q -d "$db" "$@" 2>"$work/err" | sed -n 's/^launches: *//p' | awk '{ n += $1 } END { print n + 0 }')
  got=$(ask "$db" 'SELECT count(*) FROM launch')
  value "$name" "${got:--}" "of ${want:-?} launches"
  count_surplus "$got" "$want"
  [ "${got:-0}" = "${want:-x}" ] && [ "${want:-0}" -gt 0 ] || wrong=$((wrong + 1))
}
way driver_api "$OCC_SAMPLES/hello" --launches 1000
way threads "$OCC_SAMPLES/hello" --launches 200 --threads 8
way fork_before_init "$OCC_SAMPLES/hello" --launches 100 --fork
way exec "$OCC_SAMPLES/hello" --launches 100 --exec
way shell_child /bin/sh -c "'$OCC_SAMPLES/hello' --launches 50; '$OCC_SAMPLES/hello' --launches 50"
case $(ask "$work/driver_api.db" 'SELECT device FROM device') in
  *simulated*) saw static_runtime "not tried on a simulated device" ;;
  *) if [ -x "$OCC_KIT/runtime" ]; then way static_runtime "$OCC_KIT/runtime" 500; else saw static_runtime "not built"; fi ;;
esac
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  "$occtrace" --counters=none -q -d "$work/torch.db" python3 -c '
import torch
a = torch.rand(512, 512, device="cuda")
for _ in range(100): a = (a @ a).relu()
torch.cuda.synchronize()' >/dev/null 2>"$work/err"
  got=$(ask "$work/torch.db" 'SELECT count(*) FROM launch')
  value torch "${got:-0}" "launches (static cudart; at least 200 expected)"
  [ "${got:-0}" -ge 200 ] || wrong=$((wrong + 1))
else
  saw torch "not here, or without a GPU"
fi
saw levels "$(ask "$work/driver_api.db" "SELECT level || coalesce(': ' || level_reason, '') FROM run")"
refute_surplus
[ $wrong -eq 0 ] && decide confirmed "the injection path stays LD_PRELOAD with CUDA_INJECTION64_PATH"
decide refuted "$wrong ways lose launches: see injector/init.c and the levels above"
