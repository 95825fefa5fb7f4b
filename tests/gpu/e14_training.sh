#!/usr/bin/env bash
# E14: wall time of a training loop without and with observers, interleaved; PyTorch where it is, else the sample.
. "${OCC_KIT:?}/report.sh"
expect "below 1 % slower under occtrace"
rounds=5 steps=400
if quick; then rounds=3 steps=150; fi
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  cat >"$work/train.py" <<'PY'
import sys, time, torch
steps, profiler = int(sys.argv[1]), len(sys.argv) > 2
torch.manual_seed(0)
net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]).cuda()
opt = torch.optim.Adam(net.parameters(), fused=True)
x = torch.rand(256, 1024, device="cuda")
def step():
    opt.zero_grad(set_to_none=True)
    net(x).square().mean().backward()
    opt.step()
for _ in range(30): step()
torch.cuda.synchronize()
if profiler:
    p = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]); p.start()
t = time.perf_counter()
for _ in range(steps): step()
torch.cuda.synchronize()
print("seconds:", time.perf_counter() - t)
PY
  plain=(python3 "$work/train.py" "$steps")
  rounds=2 # a process takes seconds to start
  ! quick || rounds=1
  saw loop "PyTorch, 8 linear layers of 1024, fused Adam"
else
  plain=("$OCC_SAMPLES/transformer" --steps $((steps * 5)))
  saw loop "the sample transformer, whole process"
fi
# what the loop says of itself, else its wall time
took() {
  local out began=$(date +%s.%N)
  out=$("$@" 2>/dev/null | sed -n 's/^seconds: *//p' | tail -1)
  [ -n "$out" ] && echo "$out" || calc "$(date +%s.%N) - $began"
}
declare -A best
names=(plain occtrace)
[ "${plain[0]}" != python3 ] || names+=(kineto)
! command -v nsys >/dev/null || names+=(nsys)
for ((i = 0; i < rounds; i++)); do
  for name in "${names[@]}"; do
    case $name in
      plain) command=("${plain[@]}") ;;
      occtrace) command=("$occtrace" -q -d "$work/train.db" "${plain[@]}") ;;
      kineto) command=("${plain[@]}" profiler) ;;
      nsys) [ $i -eq 0 ] || continue; command=(nsys profile -t cuda -o "$work/nsys" --force-overwrite true "${plain[@]}") ;;
    esac
    s=$(took "${command[@]}")
    if [ -z "${best[$name]:-}" ] || holds "$s < ${best[$name]}"; then best[$name]=$s; fi
  done
done
for name in "${names[@]}"; do
  value "$name" "${best[$name]}" "s"
  [ "$name" = plain ] || value "${name}_slowdown" "$(calc "(${best[$name]} / ${best[plain]} - 1) * 100")" "%"
done
value launches "$(ask "$work/train.db" 'SELECT count(*) FROM launch')" "recorded over all rounds"
holds "${best[occtrace]} <= ${best[plain]} * 1.01" && decide confirmed "always-on stays the default"
decide refuted "slower than the budget of 1 %: see E2 for the cost of a launch; the governor has to act on such loops"
