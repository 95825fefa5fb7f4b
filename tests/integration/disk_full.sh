#!/bin/bash
# A daemon on a file system without room: it starts, says so, keeps what a program records, and writes it when there is room.
# Histories on a full and on a read-only file system are read.   disk_full.sh BUILD CLI_HISTORY
set -u
build=$1 history=$2
[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "SKIP: may not mount"; exit 77; }
[ "${OCC_DISK_FULL_INSIDE:-}" ] || OCC_DISK_FULL_INSIDE=1 exec unshare -m bash "$0" "$@"
work=$(mktemp -d)
disk=$work/disk
daemon=
finish() { [ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null; umount "$disk" 2>/dev/null; rm -rf "$work"; }
trap finish EXIT
mkdir "$disk" && mount -t tmpfs -o size=4m tmpfs "$disk" || { echo "SKIP: no tmpfs"; exit 77; }
fail() { echo "FAILED: $1"; cat "$work/log" "$work/out" 2>/dev/null; exit 1; }
fill() { dd if=/dev/zero of="$disk/fill" bs=4k status=none 2>/dev/null; true; }
status() { "$build/bin/occtraced" --socket "$work/socket" --status -v; }
await() { # what, condition...
  for _ in $(seq 1200); do "${@:2}" && return 0; kill -0 "$daemon" 2>/dev/null || fail "$1: the daemon has ended"; sleep 0.05; done
  fail "$1"
}
start() { "$build/bin/occtraced" -c "$work/settings.yaml" 2>>"$work/log" & daemon=$!; await "the daemon listens" test -S "$work/socket"; }
stop() { kill "$daemon"; wait "$daemon" || fail "$1: exit code $?"; daemon=; }
has_state() { status >"$work/out" 2>&1 && grep -qE "^ +state +$1\$" "$work/out"; }
printf 'database: {path: %s/h/history.db, max_size: 16M}\nsocket: {path: %s/socket}\ncounters: {mode: none}\n' "$disk" "$work" \
  >"$work/settings.yaml"

fill
start
await "a daemon without a history says that the disk is full" has_state full
grep -qE '^ +any stalled +yes$' "$work/out" || fail "the sum of the histories is not stalled"
stop "a daemon that waits for room is stopped"
start
await "again" has_state full
rm "$disk/fill"
await "a history is made when there is room" has_state ok
stop "a daemon whose history was made late is stopped"

# ---- reading ----
rm -rf "$disk/h"
"$history" "$disk/r.db" || fail "cannot make a history"
fill
"$build/bin/occq" runs -d "$disk/r.db" >"$work/out" 2>&1 || fail "a history on a full disk is not read"
rm -f "$disk/fill" "$disk"/r.db-*
mount -o remount,ro "$disk" || fail "cannot make it read-only"
"$build/bin/occq" runs -d "$disk/r.db" >"$work/out" 2>&1 || fail "a history on a read-only disk is not read"
mount -o remount,rw "$disk"

# ---- shrinking to a lower quota ----
cp "$disk/r.db" "$work/before.db"
mkdir "$disk/h" && mv "$disk/r.db" "$disk/h/history.db"
fill
start
await "a daemon that cannot open its history says so" has_state full
rm "$disk/fill"
await "it opens the history when there is room" has_state ok
stop "it is stopped"
[ "$(sqlite3 "$disk/h/history.db" 'PRAGMA integrity_check')" = ok ] || fail "the history is damaged"
[ "$(sqlite3 "$disk/h/history.db" 'SELECT count(*) FROM stored_run')" -ge "$(sqlite3 "$work/before.db" 'SELECT count(*) FROM stored_run')" ] ||
  fail "runs are missing"

# ---- ageing ----
settings() { # age of hours; 0: they are kept
  printf 'database: {path: %s/h/history.db, max_size: 16M}\nsocket: {path: %s/socket}\ncounters: {mode: none}\n' "$disk" "$work"
  printf 'retention: {raw: 0, seconds: 0, minutes: 0, hours: %s}\n' "$1"
}
has_hours() { [ "$(sqlite3 "file:$disk/h/history.db?mode=ro" 'SELECT count(*) > 0 FROM stored_hour')" = "$1" ]; }
rm -rf "$disk/h" && mkdir "$disk/h" && cp "$work/before.db" "$disk/h/history.db"
settings 0 >"$work/settings.yaml"
start
await "it writes the history" has_state ok
has_hours 1 || fail "the history has no hours"
fill
settings 30d >"$work/settings.yaml"
kill -HUP "$daemon"
await "a daemon that cannot delete says so" grep -q 'nothing is deleted by age and size: .*full' "$work/log"
has_hours 1 || fail "hours are gone"
rm "$disk/fill"
kill -HUP "$daemon"
await "it deletes when there is room" has_hours 0
stop "it is stopped"
[ "$(sqlite3 "$disk/h/history.db" 'PRAGMA integrity_check')" = ok ] || fail "the history is damaged"
exit 0
