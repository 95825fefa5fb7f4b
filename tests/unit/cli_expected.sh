#!/usr/bin/env bash
# cli_expected.sh CLI_HISTORY OCCQ DATA [update|some]: what occq says about known histories, beside DATA/*.out. A case file
# DATA/NAME.cmd holds one command line; its output, what stands on stderr, and the status are in NAME.out.
# "update" writes the expected files anew: look at the difference before you commit it. "some" takes every third case.
set -u
history=$1 occq=$2 data=$3 mode=${4:-compare}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
"$history" "$work/h.db" && "$history" "$work/m.db" measured && "$history" "$work/p.db" paused || exit 1 # m.db: with what counters said
cd "$work" || exit 1
occq() { "$occq" "$@"; }
cases=0
for case in "$data"/*.cmd; do
    cases=$((cases + 1))
    [ "$mode" != some ] || [ $((cases % 3)) = 1 ] || continue
    name=$(basename "$case" .cmd)
    line=$(cat "$case")
    eval "$line" >stdout 2>stderr
    status=$?
    { cat stdout; echo "--- stderr"; cat stderr; echo "--- status $status"; } >"$name.out"
    if [ "$mode" = update ]; then
        cp "$name.out" "$data/$name.out"
    elif ! diff -u "$data/$name.out" "$name.out"; then
        echo "FAIL: $name: $line"
        failed=1
    fi
done
[ $cases -gt 0 ] || { echo "no cases in $data"; exit 1; }
exit $failed
