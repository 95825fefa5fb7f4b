#!/usr/bin/env bash
# E19: another user of CUPTI's buffers in the middle of a run, as PyTorch's profiler (Kineto) is.
. "${OCC_KIT:?}/report.sh"
expect "launches before it are recorded, it gets its own, the run's row says from when to when it was blind, and recording comes back"
n=1000
behave=$OCC_KIT/behave
[ -x "$behave" ] || skip "behave was not built"
timeout 60 "$occtrace" --counters=none -q -d "$work/x.db" "$behave" takeover $n >"$work/out" 2>"$work/err"
code=$?
after=$(sed -n 's/^after: //p' "$work/out")
[ -n "$after" ] || skip "the second user is refused: $(tail -1 "$work/err")"
got=$(ask "$work/x.db" 'SELECT count(*) FROM launch')
lost=$(ask "$work/x.db" 'SELECT coalesce(sum(launches), 0) FROM loss')
reason=$(ask "$work/x.db" "SELECT coalesce(recording_periods, '') FROM run")
value exit_code "$code" "(expected 0)"
value recorded "${got:--}" "of $((2 * n + after)): $n before, $n of the other's, $after after"
value lost "${lost:--}" "launches that are counted as lost"
saw periods "${reason:-none}"
saw session "$(sed -n 's/^session: //p' "$work/out")"
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  timeout 90 "$occtrace" --counters=none -q -d "$work/torch.db" python3 - >"$work/torch" 2>&1 <<'PY'
import time, torch
from torch.profiler import profile, ProfilerActivity
a = torch.rand(512, 512, device="cuda")
def work(seconds):
    global a
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(50): a = (a @ a).relu()
        torch.cuda.synchronize()
work(2)
with profile(activities=[ProfilerActivity.CUDA]) as p: work(1)
print("kineto events", sum(1 for e in p.events() if e.device_type.name == "CUDA"), flush=True)
print("profiler ended", int(time.time() * 1e9), flush=True)
work(10)
PY
  saw torch "$(grep kineto "$work/torch" || tail -1 "$work/torch")"
  ended=$(sed -n 's/^profiler ended //p' "$work/torch")
  value torch_after "$(ask "$work/torch.db" "SELECT count(*) FROM launch WHERE start_ns > ${ended:-0}")" "launches recorded after torch.profiler"
  saw torch_level "$(ask "$work/torch.db" "SELECT level || coalesce(': ' || recording_periods, '') FROM run")"
else
  saw torch "not here, or without a GPU"
fi
count_surplus "$got" $((2 * n + after))
refute_surplus
[ $code -eq 0 ] || decide refuted "the program ends with $code (docs/decisions/0013)"
[ "${got:-0}" -ge $n ] || decide refuted "launches from before it are missing (docs/decisions/0013)"
[ -n "$reason" ] || decide refuted "the run does not say that it was blind: the signs of docs/decisions/0013 do not show on this libcupti"
[ "${got:-0}" -gt $((2 * n)) ] && decide confirmed "the signs of docs/decisions/0013 show, and registering again brings recording back"
decide refuted "recording does not come back: registering again does not help, so the silence is all that is reported (docs/decisions/0013)"
