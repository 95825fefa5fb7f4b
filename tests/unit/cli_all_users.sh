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

# ask COMMAND ARGUMENT...: leaves out, err and its exit status in $status
ask() {
    local command=$1
    shift
    "$occq" "$command" --all-users="$work/all" "$@" >"$work/out" 2>"$work/err"
    status=$?
}

# answers CONDITION: of the JSON document `d` that was printed
answers() {
    python3 - "$work/out" "$1" <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PYTHON
}

mkdir -p "$work/all/u1000" "$work/all/pod-7" "$work/empty"
"$history" "$work/all/u1000/history.db" measured && "$history" "$work/all/pod-7/history.db" || exit 1
sqlite3 "$work/all/u1000/history.db" "UPDATE stored_run SET session_id = 'that of u1000'"

# ---- one table, with OWNER first and a sum last

for command in runs top launches gaps info; do
    filter=$([ "$command" = gaps ] && echo "--run 1")
    ask "$command" $filter
    check "$command: status" test $status -eq 0
    check "$command: one table" test "$(grep -c '^OWNER ' "$work/out")" -eq 1
    check "$command: rows of both owners" test "$(grep -oE '^(u1000|pod-7) ' "$work/out" | sort -u | wc -l)" -eq 2
    check "$command: a sum" grep -q '^sum ' "$work/out"
    ask "$command" --csv $filter
    check "$command: CSV has the owner first" test "$(head -n 1 "$work/out" | cut -d, -f1)" = owner
    check "$command: CSV has no sum" test "$(grep -c '^sum' "$work/out")" -eq 0
    rows=$(($(wc -l <"$work/out") - 1))
    ask "$command" --json $filter
    check "$command: as many rows in JSON" answers "len(d['$command' if '$command' != 'gaps' else 'gpus']) == $rows"
done

for command in top "top --by config" "top --by layer" runs; do # a screen that cuts names
    export COLUMNS=60
    ask $command
    unset COLUMNS
    check "$command: status at 60 columns" test $status -ne 139
done
export COLUMNS=50
ask top
unset COLUMNS
check "top at 50 columns: rows of both owners" test "$(grep -oE '^(u1000|pod-7) ' "$work/out" | sort -u | wc -l)" -eq 2

# names that a screen would cut are words
for owner in u1 u2; do
    mkdir -p "$work/words/$owner"
    printf '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}],
"traceEvents": [{"ph": "X", "cat": "kernel", "name": "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_tilesize128x64x8_stage3_warpsize2x2x1_kernel", "pid": 0,
"tid": 7, "ts": 1767225600000000, "dur": 10, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "registers per thread": 32,
"shared memory": 0, "grid": [108, 1, 1], "block": [256, 1, 1]}}]}' >"$work/words.json"
    "$occq" import -d "$work/words/$owner/history.db" "$work/words.json" >/dev/null || exit 1
done
for command in top launches; do
    COLUMNS=60 "$occq" $command --all-users="$work/words" -o kernel >"$work/out" 2>"$work/err"
    check "$command: words" test "$(grep -cE '^u[12] +convolution 128x64$' "$work/out")" -eq 2
done

# ---- diff: an answer for each owner who has both sides

ask diff run:1 run:2 --force
check "diff: status" test $status -eq 0
check "diff: a name above each answer" test "$(grep -cxE 'u1000|pod-7' "$work/out")" -eq 2
check "diff: two answers" test "$(grep -c '^A: run 1' "$work/out")" -eq 2
ask diff run:1 run:2 --force --markdown
check "diff: a heading above each answer" test "$(grep -cxE '## `(u1000|pod-7)`' "$work/out")" -eq 2
ask diff run:1 run:2 --force --by layer
check "diff: no heading above layers that nobody has" test "$(grep -c . "$work/out")" -eq 0
ask diff "user:nobody-$$" run:2
check "diff: no owner has both" test $status -eq 3
check "diff: no heading without an answer" test ! -s "$work/out"
check "diff: two owners as files" grep -q "occq diff $work/all/pod-7/history.db $work/all/u1000/history.db" "$work/err"
ask diff "no such label" run:2
check "diff: a label that nobody has" test $status -eq 3
ask diff "$work/all/u1000/history.db" run:2
check "diff: a file is no side of all owners" test $status -eq 2
ask diff run:1 run:2 --json
check "diff: no JSON of all owners" test $status -eq 2

# ---- the order of the command, over all owners

ask runs --json
check "runs: newest first" answers "[r['start_ns'] for r in d['runs']] == sorted((r['start_ns'] for r in d['runs']), reverse=True)"
check "runs: total" answers "d['total']['launches'] == sum(r['launches'] for r in d['runs'])"
check "runs: nothing but what adds up" answers "'overhead_ratio' not in d['total'] and 'pid' not in d['total']"
for order in waste:waste_warp_seconds time:total_duration_ns launches:launches; do
    ask top --order "${order%:*}" --json
    check "top: by ${order%:*}" answers "(lambda v: v == sorted(v, reverse=True))([r['${order#*:}'] for r in d['top'] if r['${order#*:}'] is not None])"
done
ask top --order occupancy --json
check "top: the lowest occupancy first" answers "(lambda v: v == sorted(v))([r['expected_achieved_low'] if r['achieved'] is None else r['achieved'] for r in d['top'] if r['theoretical'] is not None])"

# ---- shares are of all owners, also of rows that are not shown

ask top --json
check "top: shares add up to 1" answers "abs(sum(r['time_ratio'] for r in d['top']) - 1) < 1e-9"
check "top: the last row's sum of waste is all" answers "abs([r['running_waste_ratio'] for r in d['top']][-1] - 1) < 1e-9"
share=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["top"][0]["time_ratio"])' "$work/out")
ask top -n 1 --json
check "top: -n counts rows of all owners" answers "len(d['top']) == 1 and d['total']['launches'] == d['top'][0]['launches']"
check "top: a share is of what is not shown too" answers "d['top'][0]['time_ratio'] == $share"
ask top -n 1
check "top: there is more" grep -q 'the first 1 of [0-9]* rows of all owners; -n shows more' "$work/out"
ask runs -n 2
check "runs: -n counts rows of all owners" test "$(grep -cE '^(u1000|pod-7) ' "$work/out")" -eq 2
check "runs: there is more" grep -q 'the first 2 rows of all owners; -n shows more' "$work/out"
ask top -o share
check "top: a sum only of columns that add up" test "$(grep -c '^sum' "$work/out")" -eq 0
ask top -o launches,share
check "top: no sum of shares" grep -qE '^sum +[0-9]+ +-$' "$work/out"
ask top --advice
check "top: advice" test $status -eq 0 -a "$(grep -c '^OWNER ' "$work/out")" -eq 1
ask info --json
check "info: a sum of each kind" answers "[t['count'] for t in d['totals'] if t['what'] == 'runs'] == [6]"
ask info -o count
check "info: kinds are not mixed" test "$(grep -c '^sum ' "$work/out")" -eq 12
ask gaps --run 1
check "gaps: each owner's line" grep -q '^pod-7: ' "$work/out"

# ---- nothing, something, and what cannot be read

ask top --run 99
check "nothing found" test $status -eq 3
check "and why, once" test "$(wc -l <"$work/err")" -eq 1
ask runs --session "that of u1000"
check "something found in one of them" test $status -eq 0
check "only its rows" test "$(grep -c '^pod-7' "$work/out")" -eq 0
mkdir "$work/all/broken"
echo "no database" >"$work/all/broken/history.db"
for form in "" --json --csv; do
    ask runs $form
    check "a history that cannot be read: status" test $status -eq 1
    check "a history that cannot be read is named" grep -q '^occq runs: broken: ' "$work/err"
done
ask runs --json
check "the others answer" answers "len(d['runs']) == 6"
"$occq" runs --all-users="$work/all" >"$work/both" 2>&1
check "it is named at the end" sh -c "tail -n 1 '$work/both' | grep -q 'broken'"
rm -r "$work/all/broken"
"$occq" top --all-users="$work/empty" >/dev/null 2>&1
check "no history" test $? -eq 1

# ---- names of owners and of DIR are texts from outside

hostile=$work/'all[0-9]*'/$(printf 'tab\tlf\n\033[2Jx')
mkdir -p "$hostile" "$work/all0/decoy" && cp "$work/all/u1000/history.db" "$hostile" && cp "$work/all/u1000/history.db" "$work/all0/decoy"
shown='tab?lf??[2Jx'
for command in "show 1" runs top "gaps --run 1" info; do
    "$occq" $command --all-users="$work/all[0-9]*" >"$work/out" 2>"$work/err"
    check "$command: a hostile owner: status" test $? -eq 0
    check "$command: a hostile owner is shown" grep -qF "$shown" "$work/out"
    check "$command: only below DIR" test "$(grep -c decoy "$work/out")" -eq 0
    check "$command: no escape character" sh -c "! LC_ALL=C grep -q '$(printf '\033')' '$work/out' '$work/err'"
done
check "info: the path below the table" grep -qF "$shown/history.db, schema" "$work/out"
"$occq" info -d "$hostile/history.db" >"$work/out"
check "info: the path of one history" grep -qF "$shown/history.db, schema" "$work/out"
check "info: no escape character" sh -c "! LC_ALL=C grep -q '$(printf '\033')' '$work/out'"

# ---- one answer after the other

ask show 1
check "show: each owner has a heading" test "$(grep -cxE 'u1000|pod-7' "$work/out")" -eq 2
ask history --by hour
check "history: each owner has a heading" test "$(grep -cxE 'u1000|pod-7' "$work/out")" -eq 2
for command in "history --csv" "history --json" "show 1 --json" "runs pause 1" "top -d $work/all/u1000/history.db"; do
    ask $command
    check "$command: refused" test $status -eq 2
done
exit "$failed"
