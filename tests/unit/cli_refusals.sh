#!/usr/bin/env bash
# cli_refusals.sh CLI_HISTORY OCCQ FAKE_DAEMON: occq runs shows what the daemon that writes the history refused, and nothing of what
# another daemon says. Prints what differs; 0 if nothing does.
set -u
history=$1 occq=$2 fake=$3
work=$(mktemp -d)
daemon=
failed=0
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null; wait; rm -rf "$work"' EXIT
export NO_COLOR=1 LC_ALL=C
cd "$work" || exit 1

"$history" h.db && cp h.db other.db && mkdir answers || exit 1
"$fake" "$work/socket" answers &
daemon=$!
until [ -S socket ]; do kill -0 "$daemon" || exit 1; sleep 0.01; done

# Lines of the daemon's answer; options of occq runs; what is said of refusals, on stdout and on stderr.
says() {
    printf 'ok\n%b' "$1" >answers/status
    # shellcheck disable=SC2086 # options are words
    "$occq" runs --socket "$work/socket" $2 >out 2>err
    grep 'refused since' out >said
    [ "$(cat said)" = "$3" ] || { echo "FAIL: $1, runs $2: stdout has '$(cat said)'"; failed=1; }
    grep 'refused since' err >said
    [ "$(cat said)" = "$4" ] || { echo "FAIL: $1, runs $2: stderr has '$(cat said)'"; failed=1; }
}
ended="refused since the daemon began, without a row: 3 that ended before the daemon knew their owner"
full="refused since the daemon began, without a row: 12 that were beyond the user's share of connections, programs or ring memory"
says "database $work/h.db\nrefused 20\nrefused_ended 3\nrefused_full 12\n" "-d h.db" "$ended
$full" ""
says "database $work/h.db\nrefused_ended 3\n" "-d h.db --json" "" "occq runs: $ended"
says "database $work/h.db\nrefused_ended 0\nrefused_full -1\nrefused_history x\n" "-d h.db" "" ""
says "database $work/h.db\nrefused 20\n" "-d h.db" "" ""
says "database $work/other.db\nrefused_ended 3\n" "-d h.db" "" ""
says "database $work/missing.db\nrefused_ended 3\n" "-d h.db" "" ""
says "refused_ended 3\n" "-d h.db" "" ""

# ---- all owners: the daemon that writes the histories below DIR is asked once, and each owner has his own numbers
mkdir -p all/u0 all/u1000 && cp h.db all/u0/history.db && cp h.db all/u1000/history.db
printf 'ok\nowner u1000\nrefused_full 7\n' >answers/refusals_0
printf 'ok\nowner pod\033[2J7\nrefused_ended 2\nrefused_full 1\n' >answers/refusals_1 # of which there is no history
printf 'ok\n' >answers/refusals_2
prefix="refused since the daemon began, without a row:"
says "database $work/all/u0/history.db\nrefused_ended 3\nrefused_full 12\n" "--all-users=$work/all" "u1000: $prefix 7 ${full#*: 12 }
pod?[2J7: $prefix 2 ${ended#*: 3 }
pod?[2J7: $prefix 1 ${full#*: 12 }
others: $prefix 1 ${ended#*: 3 }
others: $prefix 4 ${full#*: 12 }" ""
says "database $work/all/u0/history.db\nrefused_ended 2\nrefused_full 8\n" "--all-users=$work/all --csv" "" "occq runs: u1000: $prefix 7 ${full#*: 12 }
occq runs: pod?[2J7: $prefix 2 ${ended#*: 3 }
occq runs: pod?[2J7: $prefix 1 ${full#*: 12 }"
says "database $work/h.db\nrefused_ended 3\n" "--all-users=$work/all" "" "" # another daemon's
says "refused_ended 3\n" "--all-users=$work/all" "" ""
rm answers/status
"$occq" runs --socket "$work/socket" -d h.db >out 2>err || { echo "FAIL: a daemon that does not answer is an error"; failed=1; }
exit $failed
