#!/usr/bin/env bash
# cli_all_users.sh CLI_HISTORY OCCQ: root's questions to the histories of all owners.
set -u
history=$1 occq=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # what, condition...
    local what=$1
    shift
    "$@" || { echo "FAILED: $what"; failed=1; }
}

mkdir -p "$work/u1000" "$work/pod-7" "$work/empty"
"$history" "$work/u1000/history.db" && "$history" "$work/pod-7/history.db" || exit 1
"$occq" runs --all-users="$work" >"$work/out" 2>/dev/null
check "status" test $? -eq 0
check "each owner has a heading" test "$(grep -cxE 'u1000|pod-7' "$work/out")" -eq 2
check "each has its runs" test "$(grep -c ' train ' "$work/out")" -eq 2
"$occq" top --all-users="$work" --run 99 >/dev/null 2>&1
check "nothing found" test $? -eq 3
sqlite3 "$work/u1000/history.db" "UPDATE stored_run SET session_id = 'that of u1000'"
"$occq" runs --all-users="$work" --session "that of u1000" >/dev/null 2>&1
check "something found in one of them" test $? -eq 0
"$occq" top --all-users="$work/empty" >/dev/null 2>&1
check "no history" test $? -eq 1
"$occq" top --all-users="$work" --json >/dev/null 2>&1
check "no JSON" test $? -eq 2
"$occq" top --all-users="$work" -d "$work/u1000/history.db" >/dev/null 2>&1
check "not with --db" test $? -eq 2
exit "$failed"
