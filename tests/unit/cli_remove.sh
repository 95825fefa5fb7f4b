#!/usr/bin/env bash
# Which runs occq rm and occq prune remove: a process number that another process has by now, a run that has just ended, a run that
# a daemon takes up again meanwhile.   cli_remove.sh CLI_HISTORY OCCQ
set -euo pipefail
history=${1:?} occq=${2:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
db=$work/h.db
fail() { echo "FAILED: $1"; cat stdout stderr 2>/dev/null; exit 1; }
expect() { # exit code, command
  local code=0
  "${@:2}" >stdout 2>stderr || code=$?
  [ "$code" -eq "$1" ] || fail "$*: exit code $code"
}
sql() { sqlite3 -cmd '.timeout 10000' "$db" "$1"; }
fresh() { # SQL that changes run 2, which has no end
  rm -f "$db" "$db"-*
  "$history" "$db"
  sql "INSERT OR IGNORE INTO stored_node(hostname) VALUES('$(hostname)');
       UPDATE stored_run SET node_id = (SELECT node_id FROM stored_node WHERE hostname = '$(hostname)') WHERE run_id = 2;
       UPDATE stored_run SET $1 WHERE run_id = 2;"
}
is_there() { [ "$(sql 'SELECT count(*) FROM stored_run WHERE run_id = 2')" = 1 ]; }
now() { echo "$(date +%s)000000000"; }

# ---- whose process number it is ----
fresh "pid = $$"  # observed in 2023, before this shell began
expect 0 "$occq" rm -d "$db" 2
is_there && fail "the number of its process is another one's: it is removed"
fresh "pid = $$"
expect 0 "$occq" prune -d "$db" --keep 1
is_there && fail "prune removes it, too"
fresh "pid = $$"
expect 0 "$occq" prune -d "$db" --keep 1 --dry-run
is_there || fail "--dry-run removes nothing"
"$occq" prune -d "$db" --keep 1 --dry-run --csv -o run >wanted 2>/dev/null
"$occq" prune -d "$db" --keep 1 --csv -o run 2>/dev/null | cmp -s - wanted || fail "--dry-run prints other runs than a removal"
fresh "pid = $$, start_ns = $(now)"
expect 1 "$occq" rm -d "$db" 2
is_there || fail "its process lives"
grep -q 'a run is in progress' stderr || fail "the reason"
sleep 0 & dead=$!
wait
fresh "pid = $dead, start_ns = $(now)"
expect 0 "$occq" rm -d "$db" 2
is_there && fail "its process ended"
fresh "pid = $dead, last_start_ns = $(now)"
expect 1 "$occq" rm -d "$db" 2
is_there || fail "it has just launched: the daemon may have its last launches"
fresh "pid = NULL"
expect 1 "$occq" rm -d "$db" 2
fresh "pid = $dead, node_id = NULL"
expect 1 "$occq" rm -d "$db" 2
is_there || fail "its process is on another machine, maybe"

# ---- whose it is ----
fresh "user = NULL, uid = 4711, pid = $dead"
expect 0 "$occq" prune -d "$db" --user 4711
is_there && fail "a user without a name has a number"
for where in container k8s_pod_uid; do
  fresh "user = NULL, uid = 4711, pid = $dead, $where = 'x'"
  "$occq" prune -d "$db" --user 4711 >stdout 2>stderr || true
  is_there || fail "the number of a user in a container ($where) is no user's here"
done

# ---- the minute after its end ----
fresh "end_ns = $(now) - 1000000000"
expect 1 "$occq" rm -d "$db" 2
expect 0 "$occq" prune -d "$db" --keep 1
is_there || fail "it ended a second ago: the daemon may have its last launches"
grep -q '1 run that is in progress or ended less than a minute ago stays' stderr || fail "prune's note"
fresh "end_ns = $(now) - 61000000000"
expect 0 "$occq" rm -d "$db" 2
is_there && fail "it ended a minute ago"

# ---- a daemon takes it up again between the look and the removal ----
fresh "end_ns = start_ns + 1"
mkfifo go
(echo "BEGIN IMMEDIATE; UPDATE stored_run SET end_ns = NULL, pid = $$, start_ns = $(now) WHERE run_id = 2; SELECT 'locked';"
 cat go
 echo 'COMMIT;') | sqlite3 "$db" >locked &
until grep -q locked locked 2>/dev/null; do sleep 0.05; done
"$occq" rm -d "$db" 2 >stdout 2>stderr & remover=$!
sleep 1 # whoever looks before the lock sees an ended run
echo >go
code=0
wait $remover || code=$?
[ $code -eq 1 ] || fail "a run that goes on again: exit code $code"
wait
is_there || fail "a run that goes on again is removed"
