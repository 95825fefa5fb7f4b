#!/usr/bin/env bash
# E3: records of kernels whose resources are known (the zoo says its own answers) against what the history has.
. "${OCC_KIT:?}/report.sh"
expect "static shared memory as the driver reports it, without the system's 1024 bytes; names right after the module is gone"
"$occtrace" --counters=none -q -d "$work/zoo.db" "$OCC_SAMPLES/zoo" >"$work/out" 2>&1 || skip "the zoo does not run: $(tail -1 "$work/out")"
cc=$(ask "$work/zoo.db" 'SELECT cc FROM stored_device')
value compute_capability "$cc" ""
value with_1024_too_much "$(ask "$work/zoo.db" 'SELECT count(*) FROM launch_config WHERE static_shared_bytes % 1024 = 0 AND static_shared_bytes > 0')" \
  "configurations whose static shared memory is a multiple of 1024"
value carveouts_known "$(ask "$work/zoo.db" 'SELECT count(*) FROM launch_config WHERE shared_config_bytes > 0')" "configurations"
value configurations "$(ask "$work/zoo.db" 'SELECT count(*) FROM launch_config')" ""
value clusters "$(ask "$work/zoo.db" 'SELECT count(*) FROM launch_config WHERE cluster_x * cluster_y * cluster_z > 1')" "configurations"
value nameless "$(ask "$work/zoo.db" "SELECT count(*) FROM kernel WHERE kernel IN ('', '?')")" "kernels"
value bad_times "$(ask "$work/zoo.db" "SELECT coalesce(sum(launches), 0) FROM loss")" "launches"
saw carve_outs "$(ask "$work/zoo.db" "SELECT group_concat(DISTINCT shared_config_bytes) FROM launch_config")"
# kernel,limiters,warps,full waves,partial blocks of each answer against ours
if ! "$OCC_SAMPLES/zoo" --answers >"$work/answers" 2>/dev/null; then
  decide unclear "the zoo has no answers for this GPU"
fi
sed 1d "$work/answers" | cut -d, -f1,3-6 | sort >"$work/theirs"
"$occq" sql -d "$work/zoo.db" --csv "SELECT kernel || ',' || limiters || ',' || warps_per_sm || ',' || full_waves || ',' || \
  partial_blocks FROM launch_config" | sed 1d | tr -d '"' | sort >"$work/ours"
wrong=$(comm -23 "$work/theirs" "$work/ours" | wc -l)
value answers "$(wc -l <"$work/theirs")" "kernels"
value wrong "$wrong" "kernels that are not as the zoo says"
saw examples "$(comm -3 "$work/theirs" "$work/ours" | head -6 | tr '\t\n' ' ;')"
[ "$wrong" -eq 0 ] && decide confirmed "records are taken as they are"
decide refuted "$wrong kernels: compare 'occq show' with 'zoo --answers' (static shared memory + 1024? the carve-out?)"
