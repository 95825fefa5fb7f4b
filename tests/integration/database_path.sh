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

printf 'http: {listen: "127.0.0.1:0", client_ca: %s/ca.pem}\n' "$work" >"$work/tls.yaml"
timeout 60 "$build/bin/occtraced" -c "$work/tls.yaml" --check-config >"$work/out" 2>&1 && fail "client_ca alone is accepted"
grep -q "set together" "$work/out" || fail "client_ca alone: no reason"

if [ -x "$build/bin/occtrace-ship" ]; then
  mkdir -m 777 "$work/state"
  printf 'database: {path: %s/closed/history.db}\nship: {url: "http://127.0.0.1:9", node: n, state: %s/state/ship.db}\n' \
    "$work" "$work" >"$work/ship.yaml"
  as_user timeout 60 "$build/bin/occtrace-ship" -c "$work/ship.yaml" --once >"$work/out" 2>&1
  grep -qF "cannot list the directory of $work/closed/history.db" "$work/out" || fail "the shipper does not name a closed directory"
fi

# The first start without systemd: the daemon makes /var/lib/occtrace, and the group occtrace-ship may list it.
first_start() {
  mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /run || exit 77
  cp /etc/group "$work/group" && echo "occtrace-ship:x:47112:" >>"$work/group" && mount --bind "$work/group" /etc/group || exit 77
  printf 'database: {path: /var/lib/occtrace/history.db}\ncounters: {mode: none}\n' >"$work/first.yaml"
  env -u XDG_RUNTIME_DIR "$build/bin/occtraced" -c "$work/first.yaml" 2>"$work/log" &
  for _ in $(seq 1200); do [ -S /run/occtrace/occtraced.sock ] && break; sleep 0.05; done
  kill $! && wait $!
  setpriv --reuid 47112 --regid 47112 --clear-groups ls /var/lib/occtrace
}
export -f first_start
export work build
if unshare --mount true 2>/dev/null; then
  code=0
  unshare --mount bash -c first_start >"$work/out" 2>&1 || code=$?
  [ $code = 0 ] || [ $code = 77 ] || fail "the group occtrace-ship may not list the directory of the first start"
  [ $code = 0 ] || echo "NOT TESTED: the first start without systemd (no mounts here)"
fi

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
