#!/usr/bin/env bash
# E13: theoretical occupancy and waves of every sample's launches against ncu, launch by launch of each shape.
. "${OCC_KIT:?}/report.sh"
expect "theoretical occupancy and waves per multiprocessor equal ncu's for every shape"
# what the driver's own occupancy function says of the zoo, kernel by kernel
"$occtrace" --counters=none -q -d "$work/driver.db" "$OCC_SAMPLES/zoo" --repeat 1 >"$work/said" 2>&1
sed -n 's/^\([a-z0-9_]*\) .*, \([0-9]*\) blocks per SM$/\1,\2/p' "$work/said" | grep -v without | sort >"$work/theirs"
"$occq" sql -d "$work/driver.db" --csv "SELECT kernel || ',' || blocks_per_sm FROM launch_config" |
  sed 1d | tr -d '"' | sort >"$work/ours"
differ=$(comm -23 "$work/theirs" "$work/ours" | wc -l)
value driver_kernels "$(wc -l <"$work/theirs")" "kernels of the zoo"
value driver_different "$differ" "kernels whose blocks per SM differ from the driver's"
[ "$differ" -eq 0 ] || saw driver_examples "$(comm -3 "$work/theirs" "$work/ours" | head -4 | tr '\t\n' ' ;')"
if ! command -v ncu >/dev/null; then
  [ "$differ" -eq 0 ] || decide refuted "$differ kernels differ from the driver's occupancy function"
  decide unclear "equal to the driver's occupancy function; ncu is not installed (or not in the PATH)"
fi
python3 -c 'import csv, sqlite3' 2>/dev/null || skip "no Python to compare the tables"
metrics=sm__maximum_warps_per_active_cycle_pct,launch__waves_per_multiprocessor,launch__occupancy_limit_registers,launch__occupancy_limit_shared_mem,launch__occupancy_limit_blocks,launch__occupancy_limit_warps
wrong=$differ
for sample in hello zoo transformer; do
  arguments=()
  case $sample in
    hello) arguments=(--launches 2) ;;
    zoo) arguments=(--repeat 1) ;;
    transformer) arguments=(--steps 1 --no-graph) ;;
  esac
  "$occtrace" --counters=none -q -d "$work/$sample.db" "$OCC_SAMPLES/$sample" "${arguments[@]}" >/dev/null 2>&1
  timeout 60 ncu --clock-control none --csv --print-units base --metrics "$metrics" "$OCC_SAMPLES/$sample" "${arguments[@]}" >"$work/$sample.csv" 2>"$work/err" ||
    { saw "$sample" "ncu fails: $(tail -1 "$work/err") $(grep -m1 ERR "$work/$sample.csv")"; continue; }
  python3 - "$work/$sample.csv" "$work/$sample.db" >"$work/compared" <<'PY'
import csv, re, sqlite3, sys
lines = [l for l in open(sys.argv[1]) if l.startswith('"')]
theirs = {}
for row in csv.DictReader(lines):
    size = tuple(re.sub(r"[^0-9,]", "", row[c]) for c in ("Grid Size", "Block Size"))
    key = (re.sub(r"[<(].*", "", row["Kernel Name"]).split("::")[-1].split()[-1],) + size
    theirs.setdefault(key, {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
ours = sqlite3.connect(sys.argv[2]).execute(
    "SELECT kernel, grid_x || ',' || grid_y || ',' || grid_z, block_x || ',' || block_y || ',' || block_z, theoretical, waves "
    "FROM launch_config WHERE refused IS NULL").fetchall()
compared = different = 0
examples = []
for name, grid, block, theoretical, waves in ours:
    other = theirs.get((name, grid, block))
    if not other: continue
    compared += 1
    pct = other.get("sm__maximum_warps_per_active_cycle_pct")
    w = other.get("launch__waves_per_multiprocessor")
    if (pct is not None and abs(pct / 100 - theoretical) > 0.001) or (w is not None and abs(w - waves) > 0.01 * max(1, waves)):
        different += 1
        examples.append(f"{name} {grid}/{block}: ours {theoretical:.4f} {waves:.3f}, ncu {pct} {w}")
print(compared, different, len(ours))
print("; ".join(examples[:4]))
PY
  read -r compared different all <"$work/compared"
  value "${sample}_configurations" "${all:--}" ""
  value "${sample}_compared" "${compared:--}" "configurations that ncu has too"
  value "${sample}_different" "${different:--}" "configurations"
  [ "${different:-1}" = 0 ] || { wrong=$((wrong + ${different:-1})); saw "${sample}_examples" "$(sed -n 2p "$work/compared")"; }
done
[ $wrong -eq 0 ] && decide confirmed "the model is what ncu computes on this chip"
decide refuted "$wrong configurations differ: see the examples, and docs/decisions/0005 on the carve-out"
