#!/bin/bash
# Achieved occupancy from samples, end to end on the simulated device: what the history says of every kernel of the zoo is the
# simulation's truth, the largest measured cause is the one that was made, and without permission, counters or a daemon that
# may use them launches are recorded all the same and the run says why.   measured.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$build/samples/zoo" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir counters
failed=0
# On a busy machine the governor would end the measuring.
export OCCTRACE_BUDGET=100
export OCCSIM_COUNTERS=$work/counters OCCSIM_TRUTH=$work/truth OCCSIM_BLOCK_NS=2000000

fail() { echo "FAILED: $title: $*"; failed=1; }
query() { "$build/bin/occq" sql -d h.db --csv "$1" | sed '1d; s/"//g'; }

# GPU, options of occtrace.
trace() {
  title="$* ${OCCSIM_FAULT:-}"
  local gpu=$1
  shift
  rm -f h.db* truth counters/*
  "$here/scripts/simgpu" --gpu "$gpu" --build "$build" "$build/bin/occtrace" -q "$@" -d h.db "$build/samples/zoo" >out 2>err ||
    fail "exit code $?: $(head -3 err)"
  launches=$(sed -n '$s/^launches: //p' out)
  [ "$(query 'SELECT count(*) FROM launch')" = "$launches" ] || fail "not all of $launches launches are in the history"
}

# Exit status 1: the elapsed or achieved occupancy of a launch configuration is more than 1 pp beside the truth and its stated error.
# 2: fewer than a share of them ($share, 0.7) have a value.
compare_with_truth() {
  sed '1d; s/"//g' truth | awk -F, '{ k = $1 " " $8 " " $11; ns = substr($16, 6) - substr($15, 6); t[k] += ns; a[k] += $24 * ns; e[k] += $25 * ns }
    END { for (k in t) print k, a[k] / t[k], e[k] / t[k] }' >expected
  query "SELECT format('%s %d %d %f %f %f %f', kernel_mangled, grid_x, block_x, m.achieved, m.elapsed, achieved_ci95, elapsed_ci95) AS line
    FROM measured_config AS m JOIN launch_config USING (config_id) WHERE m.achieved IS NOT NULL" >got
  awk -v share="${share:-0.7}" 'function beside(a, b) { return a > b ? a - b : b - a }
       { k = $1 " " $2 " " $3 }
       NR == FNR { achieved[k] = $4; elapsed[k] = $5; configs++; next }
       { known++ }
       beside($4, achieved[k]) > 0.01 + $6 || beside($5, elapsed[k]) > 0.01 + $7 {
         print k, "is", $4, "+-", $6, $5, "+-", $7, "not", achieved[k], elapsed[k]; wrong = 1 }
       END { if (!wrong && known < share * configs) { print "only", known, "of", configs, "have a value"; wrong = 2 }; exit wrong }' \
    expected got >wrong
}
# The simulated device runs in real time: on a machine without a free processor samples are lost, and values withheld.
# That takes another try; a wrong value does not.
trace_matches_truth() {
  local status
  for _ in 1 2 3 4 5; do
    trace "$@"
    compare_with_truth
    status=$?
    [ $status = 2 ] || break
  done
  [ $status = 0 ] || fail "$(cat wrong)"
}
cause() { # kernel, cause: the largest of the measured ones
  local got
  got=$("$build/bin/occq" top -d h.db --csv --kernel "^$1\$" -o idle,imbalance_across_blocks,block_start,unequal_blocks,imbalance_within_block,unexplained 2>/dev/null |
    awk -F'[,\r]' 'NR == 1 { split($0, name) } NR == 2 { for (i = 1; i <= NF; i++) if ($i + 0 > most) { most = $i + 0; which = name[i] } }
      END { sub("cause_", "", which); print which }')
  [ "$got" = "$2" ] || fail "the cause of $1 is '$got', not $2"
}

for gpu in a100 h200; do
  trace_matches_truth "$gpu" --counters=pm
  [ "$(query 'SELECT level FROM run')" = full ] || fail "level $(query 'SELECT level, level_reason FROM run')"
done
OCCSIM_COUNTER_OFFSET_NS=16000 trace_matches_truth h200 --counters=pm
OCCSIM_RAMP_NS=150000 trace_matches_truth h200 --counters=pm
OCCSIM_WARP_IMBALANCE=60 trace_matches_truth h200 --counters=pm
cause full_waves imbalance_within_block
OCCSIM_IMBALANCE=60 trace_matches_truth h200 --counters=pm
cause dynamic_smem imbalance_across_blocks

# ---- how busy units are: the third counter set has its turn after five seconds, bursts do not put it off ----

# As compare_with_truth, for schedulers, DRAM, L2, L1 and tensor cores of configurations; 2: fewer than half have values.
compare_utilization() {
  sed '1d; s/"//g' truth | awk -F, '{ k = $1 " " $8 " " $11; ns = substr($16, 6) - substr($15, 6); t[k] += ns; a[k] += ns * $25 / $24
      i[k] += $26 * ns * $25 / $24; for (u = 27; u <= 30; u++) v[k, u] += $u * ns }
    END { for (k in t) print k, i[k] / a[k], v[k, 27] / t[k], v[k, 28] / t[k], v[k, 29] / t[k], v[k, 30] / t[k] }' >expected
  query "SELECT format('%s %d %d %f %f %f %f %f %f %f', kernel_mangled, grid_x, block_x, m.issue_active, dram_throughput, l2_throughput,
      l1_throughput, tensor_active, m.issue_active_ci95, throughput_ci95) AS line
    FROM measured_config AS m JOIN launch_config USING (config_id) WHERE m.issue_active IS NOT NULL" >got
  awk 'function beside(a, b) { return a > b ? a - b : b - a }
       NR == FNR { k = $1 " " $2 " " $3; for (u = 4; u <= 8; u++) truth[k, u] = $u; configs++; next }
       { k = $1 " " $2 " " $3; known++
         for (u = 4; u <= 8; u++)
           if (beside($u, truth[k, u]) > 0.01 + $(u == 4 ? 9 : 10)) { print k, u, "is", $u, "not", truth[k, u]; wrong = 1 } }
       END { if (!wrong && known < configs / 2) { print "only", known, "of", configs; wrong = 2 }; exit wrong }' expected got >wrong
}
# On a busy machine fewer launches have values, and the error of the verdict grows: the program runs again, and longer, since the
# first turn of this counter set begins a second before the end of the shortest run.
bound() { "$build/bin/occq" top --advice -d h.db --csv --kernel "$1" -o bound | sed -n 2p | tr -d '\r'; }
utilization_matches_truth() { # CUPTI version
  title="utilization, CUPTI $1"
  for try in 1 2 3 4 5; do
    rm -f h.db* truth counters/*
    OCCSIM_CUPTI_VERSION=$1 OCCSIM_BLOCK_NS=30000 "$here/scripts/simgpu" --gpu h200 --build "$build" "$build/bin/occtrace" -q --counters=pm -d h.db \
      "$build/samples/transformer" --steps $((4000 * try)) --streams 1 >out 2>err || fail "exit code $?: $(head -3 err)"
    compare_utilization
    status=$?
    [ $status = 1 ] && break
    [ $status = 0 ] && [ "$(bound gelu)" = throughput ] && break
  done
  [ $status = 0 ] || fail "$(cat wrong)"
  # gelu keeps the L2 cache busy all the time: 95 % is the most that the simulated device does
  [ "$(bound gelu)" = throughput ] || fail "gelu is bound by '$(bound gelu)'"
  [ "$(query 'SELECT count(*) FROM device_sample WHERE elapsed IS NULL AND sm_active IS NOT NULL')" -gt 0 ] || fail "no turn"
}
utilization_matches_truth 130300 # the program's fills have no records

# Before 13.3 the program's fills are recorded: the daemon gets them, and the history has launches of kernels only.
utilization_matches_truth 24
[ "$(query 'SELECT count(*) FROM launch')" = "$(sed 1d truth | wc -l)" ] || fail "$(query 'SELECT count(*) FROM launch') launches"
[ "$(query "SELECT count(*) FROM kernel WHERE kernel LIKE '%memory%'")" = 0 ] || fail "a fill is a kernel"
[ -z "$(query 'SELECT lost FROM run WHERE lost > 0')" ] || fail "lost: $(query 'SELECT lost FROM run')"
compare_with_truth
[ $? != 1 ] || fail "$(cat wrong)"

# a chip without DRAM counters: the other sets go on
OCCSIM_FAULT=lacks:14 trace h200 --counters=pm
[ "$(query 'SELECT level FROM run')" = full ] || fail "level $(query 'SELECT level, level_reason FROM run')"

# a library without a counter of launched blocks: the rest of the set goes on
OCCSIM_FAULT=lacks:19 trace_matches_truth h200 --counters=pm

# ---- steps down: launches are kept, no value is invented ----
nothing_measured() {
  [ "$(query 'SELECT count(*) FROM measured_config')" = 0 ] || fail "values out of nothing"
  query 'SELECT level_reason FROM run' | grep -qF -- "$1" || fail "the run says '$(query 'SELECT level_reason FROM run')', not '$1'"
}
OCCSIM_FAULT=pm_enable:35 trace h200 --counters=pm
nothing_measured "NVreg_RestrictProfilingToAdminUsers"
OCCSIM_FAULT=pm_enable:35 trace h200 --counters=auto
[ "$(query 'SELECT level FROM run')" = gpm ] || fail "level $(query 'SELECT level, level_reason FROM run')"
query 'SELECT level_reason FROM run' | grep -q NVreg_RestrictProfilingToAdminUsers || fail "why not pm? $(query 'SELECT level_reason FROM run')"
OCCSIM_FAULT=gpm:4 trace h200 --counters=gpm
nothing_measured "=0: a GPM sample: insufficient permissions"
OCCSIM_FAULT=pm_enable:999 trace h200 --counters=pm
if grep -q "^CapEff:.*[2367abef][0-9a-f]\{5\}$" /proc/self/status; then # CAP_SYS_ADMIN
  nothing_measured "the kernel or the hypervisor does not pass the counters (gVisor, vGPU)"
else
  nothing_measured "NVreg_RestrictProfilingToAdminUsers"
fi
OCCSIM_FAULT=pm_enable:35 trace a100 --counters=auto # has no GPM
nothing_measured "NVreg_RestrictProfilingToAdminUsers"
OCCSIM_FAULT=pm_enable:38 trace h200 --counters=pm
nothing_measured "achieved occupancy is not measured"
trace h200 --counters=none
nothing_measured "switched off"
# The source starts anew in the middle of half a second: the clocks are fitted again, and more values are withheld.
share=0.5 OCCSIM_FAULT=pm_backwards:3 trace_matches_truth h200 --counters=pm
OCCSIM_FAULT=pm_overflow:2 trace h200 --counters=pm
OCCSIM_FAULT=pm_decode:36 trace h200 --counters=pm
exit $failed
