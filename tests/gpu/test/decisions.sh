#!/usr/bin/env bash
# An experiment's decision follows from its verdict: the counter experiments with a load and a sampler that say what this
# test tells them to. Needs no GPU, not even a simulated one.
#
#   decisions.sh KIT      KIT: the experiments of a build tree
set -uo pipefail
kit=${1:?}
[ -x "$kit/e04_other_process" ] || { echo "skipped: the experiments with counters were not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
# nobody may not enter the kit's directory, as with one of mktemp -d
export TOLD=$work/told
mkdir -m 700 "$work/kit"
mkdir -m 777 "$TOLD"
chmod 755 "$work"
cp "$kit"/e04_other_process "$kit"/e05_clocks "$kit"/e11_gpm "$kit"/e22_switch "$work/kit/"

# The load: launches a second follow $TOLD/slow; what it samples itself is $TOLD/within.
cat >"$work/kit/gpu_load" <<'S'
#!/usr/bin/env bash
echo "ready sms=10 max_warps=64 achieved=0.5 simulated=0"
case " $* " in *" --sample-us "*) echo "sampled state=ok achieved=$(cat "$TOLD/within")"; exit 0 ;; esac
trap 'exit 0' TERM
launches=0
for ((i = 1; ; i++)); do
  [ -e "$TOLD/slow" ] && launches=$((launches + 80)) || launches=$((launches + 100))
  echo "rate t_ns=$((i * 20000000)) launches=$launches"
  sleep 0.02
done
S
# The sampler: the next line of $TOLD/seen, the last one again and again; `refused` in it: not opened.
cat >"$work/kit/gpu_sample" <<'S'
#!/usr/bin/env bash
seen=$(head -1 "$TOLD/seen")
[ "$(wc -l <"$TOLD/seen")" -le 1 ] || tail -n +2 "$TOLD/seen" >"$TOLD/rest" && cat "$TOLD/rest" >"$TOLD/seen"
case $seen in
  refused*) echo "opened state=no_permission needs root"; exit 77 ;;
  slows*) touch "$TOLD/slow" ;;
esac
echo "opened state=ok"
ms=100 reopen=0
while [ "${1:-}" ]; do
  case $1 in --ms) ms=$2 ;; --reopen-after-ms) reopen=$2 ;; esac
  shift
done
sleep "${fast:-$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))}"
rm -f "$TOLD/slow"
echo "sampled state=ok ${seen#slows }"
[ "${reopen:-0}" -eq 0 ] || exec "$0" --ms "$ms"
S
# The library's own manners of switching.
cat >"$work/kit/gpu_turns" <<'S'
#!/usr/bin/env bash
echo "opened state=ok"
echo "turns manner=$2 done=${4:-0} of=${4:-0} sets=3"
S
chmod 755 "$work"/kit/*

# name, program, verdict, part of the decision; on stdin what samplers see; $within: what the load itself sees
comes_to() {
  local name=$1 program=$2 verdict=$3 decision=$4
  cat >"$TOLD/seen"
  echo "${within:-0.5}" >"$TOLD/within"
  chmod a+rw "$TOLD"/seen
  : >"$work/facts"
  OCC_GPU_QUICK=1 OCC_GPU_REPORT=$work/facts timeout 60 "$work/kit/$program" >"$work/out" 2>&1 </dev/null
  if ! grep -qx "verdict	$verdict" "$work/facts" || ! grep -q "^decision	.*$decision" "$work/facts"; then
    echo "FAILED: $name: expected $verdict with '$decision'"
    cat "$work/out"
    failed=1
  fi
}
half='samples=1000 wall_s=0.5 covered_s=0.5 achieved=0.5 elapsed=0.5 sm_active=1 blocks=4 cpu_s=0.001'
idle='samples=1000 wall_s=0.5 covered_s=0.5 achieved=nan elapsed=0 sm_active=0'

# these take the sampler's word for how long it sampled
export fast=0.1
comes_to "E4, all as expected" e04_other_process confirmed 'one daemon may sample' <<<"$idle"$'\n'"$half"
within=0.97 comes_to "E4, one check fails" e04_other_process refuted 'is no base' <<<"$idle"$'\n'"$half"
comes_to "E4, the GPU is not ours" e04_other_process unclear 'repeat it alone' <<<"$half"$'\n'"$half"
comes_to "E11, both agree" e11_gpm confirmed 'a fallback' <<<"$half"
comes_to "E11, they differ" e11_gpm refuted 'kept apart' <<<"$half"$'\n'"${half/elapsed=0.5/elapsed=0.9}"$'\n'"$half"

shipped='samples=6900 wall_s=7 achieved=0.5 rotations=3 silent_s=0.05'
short='samples=680 wall_s=0.7 achieved=0.5 rotations=0 silent_s=0.05'
comes_to "E22, as expected" e22_switch confirmed 'take turns' <<<"$shipped"$'\n'"$short"
comes_to "E22, silent after a switch" e22_switch refuted 'first counter set only' <<<"${shipped/silent_s=0.05/silent_s=1.9}"$'\n'"$short"
comes_to "E22, few samples" e22_switch refuted 'first counter set only' <<<"${shipped/6900/4998}"$'\n'"$short"
comes_to "E22, does not open again" e22_switch refuted 'stay open' <<<"$shipped"$'\n'"$short"$'\n'refused
comes_to "E22, no switch" e22_switch unclear 'too few switches' <<<"${shipped/rotations=3/rotations=0}"$'\n'"$short"

# E5 looks at the load meanwhile
unset fast
comes_to "E5, as fast as without" e05_clocks confirmed 'may be on by default' <<<"$half"
comes_to "E5, slower" e05_clocks refuted 'in bursts' <<<"slows $half"

[ $failed -eq 0 ] && echo ok
exit $failed
