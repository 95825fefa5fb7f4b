#!/usr/bin/env bash
# The machinery of E23 on the simulated device: every program, every observer, the floor; the table is marked, and nothing
# is decided.
#
#   cost.sh SOURCE BUILD
set -uo pipefail
source=${1:?} build=${2:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/err" "$work/out/report.md"; echo "FAILED: $1"; exit 1; }
[ -e "$build/simgpu/libcuda.so.1" ] && [ -x "$build/gpu/launch_cost" ] || { echo "skipped: no simulated device"; exit 77; }
mkdir "$work/counters"
OCCSIM_COUNTERS=$work/counters OCC_GPU_COST_SECONDS=1 OCC_GPU_TIME_FACTOR=30 "$source/scripts/simgpu" --build "$build" \
  "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E23 --out "$work/out" 2>"$work/err" || fail "E23"
grep -q '"verdict": "unclear"' "$work/out/report.json" && grep -q 'a simulated device: nothing follows' "$work/out/report.json" ||
  fail "something is decided on a simulated device"
grep -q '^SIMULATED DEVICE' "$work/out/report.md" || fail "the table is not marked"
for program in training serving storm; do
  for observer in 'none, again' 'occtrace, launches' 'occtrace, GPM' 'occtrace, PM'; do
    grep -q "^$program  *$observer " "$work/out/report.md" || fail "no row for $program, $observer"
  done
  for level in trace:trace gpm:gpm full:full; do
    grep -q "^ *value ${program}_${level%:*}_blocks [1-9]" "$work/out/report.md" || fail "no block of $program at ${level%:*}"
  done
done
awk '/^(training|serving|storm) .*occtrace/ { if ($(NF - 2) < 1 || $NF == "-") bad = 1 } END { exit bad }' "$work/out/report.md" ||
  fail "an observed program was not recorded"
! grep '_\(cost\|low\|high\) ' "$work/out/report.md" | grep -v simulated || fail "a figure is not marked as simulated"
echo ok
