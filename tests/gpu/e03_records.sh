#!/usr/bin/env bash
# E3: records of kernels whose resources are known (the zoo says its own answers) against what the history has.
. "${OCC_KIT:?}/report.sh"
expect "static shared memory as the driver reports it, without the system's 1024 bytes; names right after the module is gone"
"$occtrace" -q -d "$work/zoo.db" "$OCC_SAMPLES/zoo" >"$work/out" 2>&1 || skip "the zoo does not run: $(tail -1 "$work/out")"
cc=$(ask "$work/zoo.db" 'SELECT cc FROM device')
value compute_capability "$cc" ""
value with_1024_too_much "$(ask "$work/zoo.db" 'SELECT count(*) FROM shape WHERE static_smem_bytes % 1024 = 0 AND static_smem_bytes > 0')" \
  "shapes whose static shared memory is a multiple of 1024"
value carveouts_known "$(ask "$work/zoo.db" 'SELECT count(*) FROM shape WHERE smem_config_bytes > 0')" "shapes"
value shapes "$(ask "$work/zoo.db" 'SELECT count(*) FROM shape')" ""
value clusters "$(ask "$work/zoo.db" 'SELECT count(*) FROM shape WHERE cluster_x * cluster_y * cluster_z > 1')" "shapes"
value nameless "$(ask "$work/zoo.db" "SELECT count(*) FROM kernel WHERE short IN ('', '?')")" "kernels"
value bad_times "$(ask "$work/zoo.db" "SELECT coalesce(sum(count), 0) FROM loss")" "launches"
saw carve_outs "$(ask "$work/zoo.db" "SELECT group_concat(DISTINCT smem_config_bytes) FROM shape")"
"$OCC_SAMPLES/zoo" --answers >"$work/answers" 2>/dev/null
# name, ..., theoretical of each answer against ours
wrong=$(python3 - "$work/answers" "$work/zoo.db" 2>/dev/null <<'PY' || echo -
import csv, sqlite3, sys
answers = {row["kernel"]: row for row in csv.DictReader(open(sys.argv[1]))}
history = sqlite3.connect(sys.argv[2])
wrong = 0
for name, theoretical in history.execute(
        "SELECT k.short, s.theoretical FROM shape s JOIN kernel k ON k.id = s.kernel"):
    if name in answers and abs(float(answers[name]["theoretical"]) - theoretical) > 1e-6:
        wrong += 1
print(wrong)
PY
)
value wrong_theoretical "$wrong" "shapes whose theoretical occupancy is not the zoo's answer"
case $wrong in
  0) decide confirmed "records are taken as they are" ;;
  -) decide unclear "no Python to compare with the zoo's answers" ;;
  *) decide refuted "$wrong shapes: compare 'occq show' with 'zoo --answers' (static shared memory + 1024?)" ;;
esac
