#!/bin/bash
# A service whose database.path is on another disk, in directories that are not there: users reach their histories, and occq
# finds them without -d. A directory that keeps users out is refused with the reason.   database_path.sh BUILD CLI_HISTORY
set -u
build=$1 history=$2 user=12345
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "SKIP: may not become another user"; exit 77; }
as_user() { setpriv --reuid $user --regid $user --clear-groups env -u XDG_RUNTIME_DIR OCCTRACE_SOCKET="$work/socket" HOME="$work" "$@"; }
work=$(mktemp -d)
daemon=
finish() { [ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null; rm -rf "$work"; }
trap finish EXIT
chmod 711 "$work"
as_user "$build/bin/occq" --version >/dev/null 2>&1 || { echo "SKIP: another user may not run occq here"; exit 77; }
fail() { echo "FAILED: $1"; cat "$work/log" "$work/out" 2>/dev/null; exit 1; }
settings() {
  printf 'database: {path: %s/history.db}\nsocket: {path: %s/socket, mode: "0666"}\ncounters: {mode: none}\n' "$1" "$work" \
    >"$work/settings.yaml"
}

mkdir -m 700 "$work/closed"
settings "$work/closed/h"
for option in --check-config --foreground; do
  timeout 60 "$build/bin/occtraced" -c "$work/settings.yaml" $option >"$work/out" 2>&1
  [ $? = 1 ] && grep -qF "$work/closed" "$work/out" && grep -q "users.split" "$work/out" || fail "a closed directory with $option"
done

settings "$work/big/disk"
"$build/bin/occtraced" -c "$work/settings.yaml" --check-config >"$work/out" 2>&1 || fail "directories that will be made are refused"
(umask 077; exec "$build/bin/occtraced" -c "$work/settings.yaml" 2>"$work/log") &
daemon=$!
for _ in $(seq 1200); do [ -S "$work/socket" ] && break; kill -0 $daemon 2>/dev/null || fail "the daemon has ended"; sleep 0.05; done
[ "$(stat -c %a "$work/big") $(stat -c %a "$work/big/disk")" = "711 711" ] || fail "the directories keep users out"
mkdir -m 755 "$work/big/disk/u$user" # as the daemon makes it, but for the access control list
"$history" "$work/big/disk/u$user/history.db" && chmod 644 "$work/big/disk/u$user/history.db" || fail "cannot make a history"
as_user "$build/bin/occq" runs >"$work/out" 2>&1 || fail "a user's occq does not find the history of the daemon"
grep -q train "$work/out" || fail "it is another history"
kill $daemon && wait $daemon || fail "the daemon fails"
daemon=
exit 0
