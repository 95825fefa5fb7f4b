#!/usr/bin/env bash
# A history whose device limits are as large as the file can say: each command ends by itself, with little memory and in time, and
# says numbers or an error.   hostile_limits.sh BUILD CLI_HISTORY
set -euo pipefail
build=$1 history=$2
occq=$build/bin/occq
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work NO_COLOR=1 OCCTRACE_SOCKET=$work/none
command -v sqlite3 >/dev/null || { echo "SKIP: sqlite3 is not installed"; exit 77; }
failed=0

MEMORY_KIB=1000000 PATIENCE_S=60
try() { # label, command...: exit codes of a signal, of no end and of wrong usage are faults
  local code=0
  (ulimit -v "$MEMORY_KIB"; exec timeout "$PATIENCE_S" "${@:2}") </dev/null >"$work/out" 2>"$work/err" || code=$?
  if [ "$code" -ge 124 ] || [ "$code" -eq 2 ] || grep -qiE 'out of memory|cannot allocate' "$work/err"; then
    echo "FAILED: $1: ${*:2}: exit code $code"; head -5 "$work/err"; failed=1
  fi
  [ "$(stat -c %s "$work/out")" -lt 50000000 ] || { echo "FAILED: $1: ${*:2}: writes $(stat -c %s "$work/out") bytes"; failed=1; }
}

limits="cc sm_count warp_size max_threads_per_block max_threads_per_sm max_blocks_per_sm registers_per_block registers_per_sm
  shared_per_block_bytes shared_per_block_optin_bytes shared_per_sm_bytes shared_reserved_per_block_bytes max_registers_per_thread
  register_unit warp_unit sub_partitions shared_unit_bytes max_barriers_per_sm max_cluster_size clock_khz memory_bytes driver_version"
set_limits() { # column number...: of the devices in hostile.db; the last number of a column counts
  local sql=
  declare -A set=()
  while [ $# -gt 0 ]; do set[$1]=$2; shift 2; done
  for column in "${!set[@]}"; do sql="$sql${sql:+, }$column = ${set[$column]}"; done
  cp "$work/sound.db" "$work/hostile.db"
  sqlite3 "$work/hostile.db" "UPDATE stored_device SET $sql"
}
all() { for column in $limits; do echo "$column $1"; done; }

commands() { # label
  local h=$work/hostile.db kernel
  kernel=$("$occq" sql -d "$work/sound.db" --csv 'SELECT kernel_id FROM stored_kernel LIMIT 1' | tail -1)
  try "$1" "$occq" top -d "$h"
  try "$1" "$occq" top -d "$h" --json
  try "$1" "$occq" show "$kernel" -d "$h"
  try "$1" "$occq" show "$kernel" -d "$h" --json
  try "$1" "$occq" diff "$h" "$work/sound.db"
  try "$1" "$occq" runs -d "$h"
  try "$1" "$occq" runs -d "$h" --run last
  try "$1" "$occq" gaps -d "$h" --run 1
  try "$1" "$occq" info -d "$h"
  try "$1" "$occq" live -d "$h" --batch -n 1 -w 1h
  try "$1" "$occq" history -d "$h"
  try "$1" "$occq" report -d "$h" -o "$work/report.html"
  try "$1" "$occq" launches -d "$h"
  try "$1" "$occq" export -d "$h" --csv
  try "$1" "$occq" export -d "$h" -o "$work/trace.json"
  try "$1" "$occq" sql -d "$h" 'SELECT * FROM launch'
  try "$1" "$occq" what-if -d "$h" --gpu h200
  try "$1" "$occq" check -d "$h" --rules "$work/rules.yaml"
  try "$1" "$occq" prune -d "$h" --before 1d
}

"$history" "$work/sound.db" measured
printf 'config:\n  - {rule: occupancy, theoretical: ">= 25%%"}\nmeasured:\n  - {rule: time, metric: time, floor: 5%%}\n' >"$work/rules.yaml"
cp "$work/sound.db" "$work/hostile.db"
commands "no limit changed"
for number in 2147483648 9223372036854775807 0 -2147483648; do
  set_limits $(all "$number")
  commands "all limits $number"
done
for number in 2147483648 9223372036854775807; do # many warps, many blocks, many points of a curve
  set_limits $(all "$number") cc 90 warp_size 32 register_unit 256 warp_unit 4 sub_partitions 4 shared_unit_bytes 128
  commands "all limits but units $number"
done
set_limits max_threads_per_block 2147483648
commands "max_threads_per_block 2147483648"
exit "$failed"
