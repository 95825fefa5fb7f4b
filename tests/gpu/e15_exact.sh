#!/usr/bin/env bash
# E15: exact mode: do activity records and the range profiler work side by side, and are the values ncu's?
. "${OCC_KIT:?}/report.sh"
expect "every launch is recorded and measured, but those of graphs, and achieved occupancy is within a point of ncu's"
total=0 measured=0 lost=0
trace() { # name sample argument...: says what became of it; leaves said, recorded and exact
  local sample=$1 code
  timeout 60 "$occtrace" --exact -q -d "$work/$sample.db" "$OCC_SAMPLES/$2" "${@:3}" >"$work/out" 2>"$work/err"
  code=$?
  said=$(sed -n '$s/^launches: //p' "$work/out")
  recorded=$(ask "$work/$sample.db" 'SELECT count(*) FROM launch')
  exact=$(ask "$work/$sample.db" 'SELECT coalesce(sum(exact), 0) FROM measured_config')
  value "${sample}_launches" "${said:--}" "that the program says"
  value "${sample}_recorded" "${recorded:--}" ""
  value "${sample}_measured" "${exact:--}" ""
  saw "${sample}_kernels" "$(ask "$work/$sample.db" 'SELECT group_concat(DISTINCT kernel) FROM launch' | cut -c1-300)"
  count_surplus "$recorded" "$said"
  saw "${sample}_reason" "exit code $code; $(ask "$work/$sample.db" "SELECT level || ': ' || coalesce(level_reason, '') FROM run")"
}
while read -r sample arguments; do
  read -ra words <<<"$arguments"
  trace "$sample" "$sample" "${words[@]}"
  total=$((total + ${said:-0})) measured=$((measured + ${exact:-0}))
  lost=$((lost + ${said:-0} - ${recorded:-0}))
done <<'RUNS'
hello --launches 1000 --threads 2
zoo
transformer --steps 3 --no-graph
RUNS
trace graphs transformer --steps 3 # graphs are launched between sessions, so their kernels have times
lost=$((lost + ${said:-0} - ${recorded:-0}))
[ "$total" -gt 0 ] || skip "no sample runs: $(tail -1 "$work/err")"
refute_surplus
[ "$lost" -eq 0 ] || decide refuted "$lost of $total launches are lost in exact mode: their ranges are not as many as their calls, or correlations differ (docs/decisions/0015)"
if [ "$measured" -eq 0 ]; then
  decide refuted "nothing is measured, see the reasons (docs/decisions/0015)"
fi
command -v ncu >/dev/null || decide unclear "$measured of $total launches are measured; ncu is not there to compare with"
python3 -c 'import csv, sqlite3' 2>/dev/null || skip "no Python to compare the tables"
timeout 60 ncu --clock-control none --csv --print-units base --metrics sm__warps_active.avg.pct_of_peak_sustained_active "$OCC_SAMPLES/zoo" --repeat 1 \
  >"$work/zoo.csv" 2>"$work/err" || decide unclear "$measured of $total launches are measured; ncu fails: $(tail -1 "$work/err")"
python3 - "$work/zoo.csv" "$work/zoo.db" >"$work/compared" <<'PY'
import csv, re, sqlite3, sys
theirs = {}
for row in csv.DictReader(l for l in open(sys.argv[1]) if l.startswith('"')):
    name = re.sub(r"[<(].*", "", row["Kernel Name"]).split("::")[-1].split()[-1]
    theirs.setdefault(name, []).append(float(row["Metric Value"].replace(",", "")))
ours = sqlite3.connect(sys.argv[2]).execute(
    "SELECT kernel, 100 * sum(achieved_sum) / sum(achieved_ns) FROM stored_measured_minute "
    "JOIN launch_config USING(config_id) GROUP BY kernel").fetchall()
off = sorted(((abs(v - sum(theirs[n]) / len(theirs[n])), n, v, sum(theirs[n]) / len(theirs[n])) for n, v in ours if n in theirs),
             reverse=True)
print(len(off), "%.3f" % off[0][0] if off else "-")
print("; ".join(f"{n}: exact {v:.2f}%, ncu {t:.2f}%" for _, n, v, t in off[:4]))
PY
read -r kernels worst <"$work/compared"
value compared "${kernels:--}" "kernels that ncu has too"
value worst "${worst:--}" "percentage points"
saw examples "$(sed -n 2p "$work/compared")"
[ "${worst:--}" != - ] || decide unclear "ncu has none of the kernels"
[ "$measured" -eq "$total" ] || decide unclear "$measured of $total launches are measured; worst difference to ncu: $worst points"
holds "$worst < 1" && decide confirmed "exact mode is a yardstick on this chip"
decide refuted "up to $worst points from ncu: see the examples"
