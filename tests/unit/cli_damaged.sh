#!/usr/bin/env bash
# Commands over a history whose numbers of devices and launch configurations are impossible: an error or an answer, never a signal.
#   cli_damaged.sh CLI_HISTORY OCCQ
set -euo pipefail
history=${1:?} occq=${2:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $1"; cat stderr; exit 1; }
"$history" whole.db
sqlite3 whole.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
columns() { # table: its columns with numbers
  sqlite3 whole.db "SELECT name FROM pragma_table_info('$1') WHERE type IN ('INTEGER', 'REAL') AND pk = 0 AND name NOT LIKE '%\\_id' ESCAPE '\\'"
}
try() { # table column value
  cp whole.db h.db
  sqlite3 h.db "UPDATE $1 SET $2 = $3" 2>/dev/null || return 0 # the table has a constraint against it
  for command in 'show -n 9' 'show 1 --explain' 'top --advice' 'report -o r.html' 'diff 1 2' 'export -o x.pftrace'; do
    local code=0
    # shellcheck disable=SC2086 # words
    "$occq" $command -d h.db >/dev/null 2>stderr || code=$?
    [ "$code" -lt 128 ] || fail "$1.$2 = $3: occq $command: signal $((code - 128))"
  done
}
for column in $(columns stored_device) ; do try stored_device "$column" 0; done
for column in warp_size sm_count max_threads_per_sm; do
  for value in -1 4294967296 9223372036854775807; do try stored_device $column $value; done
done
for column in $(columns stored_launch_config); do try stored_launch_config "$column" 0; done
for column in wave_blocks warps_per_block blocks_per_sm grid_blocks max_warps_per_sm; do
  for value in -1 4294967296 9223372036854775807; do try stored_launch_config $column $value; done
done
echo ok
