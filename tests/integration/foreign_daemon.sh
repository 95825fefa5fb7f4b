#!/bin/bash
# Another user has made /tmp/occtrace-UID and listens there like the user's own daemon. occtrace, occq and occtraced --status
# send it nothing and believe nothing of it, unless the user names the socket.   foreign_daemon.sh BUILD FAKE_DAEMON CLI_HISTORY
set -u
build=$1 fake=$2 history=$3 victim=$((40000 + $$ % 10000)) attacker=61003
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "SKIP: may not become another user"; exit 77; }
work=$(mktemp -d) place=/tmp/occtrace-$victim
chmod 711 "$work"
daemon=
finish() { [ -z "$daemon" ] || kill "$daemon" 2>/dev/null; rm -rf "$work" "$place" "$place.own"; }
trap finish EXIT
fail() { echo "FAILED: $1"; cat "$work/out" 2>/dev/null; exit 1; }
by() { local uid=$1; shift; setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }
victim() { by $victim env -u XDG_RUNTIME_DIR -u XDG_STATE_HOME -u OCCTRACE_DB -u OCCTRACE_SOCKET HOME="$work/home" NO_COLOR=1 "$@" >"$work/out" 2>&1; }
victim "$build/bin/occq" --version || { echo "SKIP: another user may not run occq here"; exit 77; }
[ ! -S /run/occtrace/occtraced.sock ] || { echo "SKIP: a service runs on this machine"; exit 77; }
install -d -o $victim "$work/home"
install -d -o $attacker "$work/answers" "$work/forged" || exit 1
"$history" "$work/forged/history.db" && chmod -R a+rwX "$work/forged"
echo 'ok 0.1.0' >"$work/answers/ping"
printf 'ok\nversion 0.1.0\ndatabase %s\nprograms 0\n' "$work/forged/history.db" >"$work/answers/status"
by $attacker mkdir -m 755 "$place" || exit 1
# the umask lets everybody connect
(umask 000; exec setpriv --reuid $attacker --regid $attacker --clear-groups "$fake" "$place/occtraced.sock" "$work/answers") &
daemon=$!
for _ in $(seq 1200); do [ -S "$place/occtraced.sock" ] && break; sleep 0.05; done

victim env OCCTRACE_SOCKET="$place/occtraced.sock" "$build/bin/occtraced" --status
grep -qF "$work/forged" "$work/out" || fail "the other user's daemon does not answer"
victim "$build/bin/occtrace" --label mine true || fail "occtrace"
grep -qF "$place belongs to another user" "$work/out" || fail "occtrace does not say whose daemon it passes over"
[ -e "$work/home/.local/state/occtrace/history.db" ] || fail "occtrace has used the other user's daemon"
victim "$build/bin/occq" runs --csv -o label,program || fail "occq runs"
grep -q mine "$work/out" && ! grep -q train "$work/out" || fail "occq reads the other user's history"
touch "$work/forged/history.db"
rm -rf "$work/home/.local"
victim "$build/bin/occq" runs
grep -q train "$work/out" && fail "occq reads the other user's history"
victim "$build/bin/occtraced" --status
grep -qF "$work/forged" "$work/out" && fail "--status reports another user's daemon"
grep -qF "$place belongs to another user" "$work/out" || fail "--status does not say whose daemon it passes over"
victim "$build/bin/occq" sampler status && fail "occq asks another user's daemon"
victim "$build/bin/occq" doctor
grep -A1 '^problem  daemon' "$work/out" | grep -qF "$place" || fail "occq doctor reports no problem"

# The attacker's link to a place that the victim trusts, which he may change between two connections.
kill "$daemon" && wait "$daemon" 2>/dev/null
daemon=
rm -rf "$place"
by $victim mkdir -m 755 "$place.own" && by $attacker ln -s "$place.own" "$place" || exit 1
(exec setpriv --reuid $victim --regid $victim --clear-groups "$fake" "$place.own/occtraced.sock" "$work/answers") &
daemon=$!
for _ in $(seq 1200); do [ -S "$place.own/occtraced.sock" ] && break; sleep 0.05; done
victim "$build/bin/occtraced" --status
grep -qF "$work/forged" "$work/out" && fail "a link of another user is followed"
rm "$place" && by $victim ln -s "$place.own" "$place"
victim "$build/bin/occtraced" --status
grep -qF "$work/forged" "$work/out" || fail "the user's own link is not followed"
exit 0
