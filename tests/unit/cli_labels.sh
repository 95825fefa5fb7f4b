#!/usr/bin/env bash
# cli_labels.sh OCCQ: only * and ? are wildcards in a label, in every command that takes one; % and _ are plain in the name of a GPU.
set -u
occq=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
fail() { echo "FAIL: $*"; failed=1; }
expect() { # status, command...
    local wanted=$1 status
    shift
    "$@" >stdout 2>stderr
    status=$?
    [ $status = "$wanted" ] || { fail "status $status instead of $wanted: $*"; cat stdout stderr; }
}

# record NAME LABEL: a run of one launch of the kernel NAME
record() {
    printf '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}],
"traceEvents": [{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": 1767225600000000, "dur": 10, "args": {"device": 0,
"context": 1, "stream": 7, "correlation": 1, "registers per thread": 32, "shared memory": 0, "grid": [108, 1, 1], "block": [256, 1, 1]}}]}' "$1" >"$1.json"
    expect 0 "$occq" import -d h.db --label "$2" "$1.json"
}
record bracket 'exp[1]'
record one lr1
record two lr2
record list 'lr[12]'
record open 'a[b'
record close 'c]d'
record star 'x*y'
record escape 'a\x5cb'

# chosen LABEL KERNEL...: the kernels of the runs that LABEL chooses
chosen() {
    local label=$1 wanted
    shift
    wanted=$(printf '%s\n' "$@" | sort | paste -sd' ')
    expect 0 "$occq" top -d h.db --label "$label" --csv -o kernel
    [ "$(tail -n +2 stdout | sort | paste -sd' ')" = "$wanted" ] || fail "top --label '$label': $(paste -sd' ' stdout)"
    expect 0 "$occq" runs -d h.db --label "$label" --csv -o run
    [ "$(tail -n +2 stdout | wc -l)" = $# ] || fail "runs --label '$label': $(paste -sd' ' stdout)"
    expect 0 "$occq" launches -d h.db --label "$label" --csv -o kernel
    [ "$(tail -n +2 stdout | sort | paste -sd' ')" = "$wanted" ] || fail "launches --label '$label': $(paste -sd' ' stdout)"
    expect 0 "$occq" diff -d h.db "label:$label" "label:$label" --json
    [ "$(grep -c '"verdict_waste"' stdout)" = $# ] || fail "diff label:$label: $(cat stdout)"
    expect 0 "$occq" history -d h.db --label "$label" --csv -o launches
    [ "$(tail -n +2 stdout)" = $# ] || fail "history --label '$label': $(paste -sd' ' stdout)"
    expect 0 "$occq" report -d h.db --label "$label" -o report.html
    for kernel in "$@"; do
        grep -q "$kernel" report.html || fail "report --label '$label' lacks $kernel"
    done
}
chosen 'exp[1]' bracket
chosen 'lr[12]' list
chosen 'a[b' open
chosen 'c]d' close
chosen 'exp[?]' bracket
chosen '?r[*' list
chosen 'lr?' one two
chosen 'lr*' one two list
for command in 'top --by label -o label' 'runs -o label'; do # a label as it was printed
    expect 0 "$occq" $command -d h.db
    printed=$(grep -F 'a\x' stdout | sed 's/ *$//')
    [ "$printed" = 'a\x5cb' ] || fail "$command prints '$printed'"
    chosen "$printed" escape
done
expect 3 "$occq" top -d h.db --label 'exp1'
expect 3 "$occq" top -d h.db --label 'lr[1'
expect 3 "$occq" top -d h.db --label 'x[*]y'
expect 3 "$occq" top -d h.db --label '[a-z]*'
expect 3 "$occq" live -d h.db --label 'lr[12]' --window 1h --json -n 1 # the launch is older: the question is answered, with no rows

expect 0 "$occq" top --gaps -d h.db --label 'lr?' # a row for each run
[ "$(grep -c '^ *[23] ' stdout)" = 2 ] && grep -q '^RUN GPU' stdout || fail "top --gaps --label: $(cat stdout)"
expect 0 "$occq" top --gaps -d h.db --label 'lr?' -n 1
grep -qF -- '-n shows more' stdout stderr || fail "top --gaps -n 1: $(cat stdout stderr)"
expect 0 "$occq" top --gaps -d h.db --by run
[ "$(grep -c '^ *[1-8]  *1 ' stdout)" = 8 ] || fail "top --gaps --by run: $(cat stdout)"
expect 3 "$occq" top --gaps -d h.db --label 'lr?' --user "nobody'; --"

# a side without a key is a label, also a pattern; other words are refused with the labels and runs that exist
expect 0 "$occq" diff -d h.db lr1 lr2
expect 0 "$occq" diff -d h.db 'lr?' 'exp[1]' --force
expect 2 "$occq" diff -d h.db lr1 lr3
grep -qF "lr3: no run, label or file; did you mean 'lr1'?; labels: " stderr || grep -qF "did you mean 'lr2'?; labels: " stderr || fail "lr3: $(cat stderr)"
grep -qF 'runs: 1 to 8' stderr || fail "lr3: $(cat stderr)"
expect 3 "$occq" diff -d h.db label:none lr2
grep -qF 'label:none: no launches; labels: ' stderr || fail "label:none: $(cat stderr)"
expect 3 "$occq" diff -d h.db 99 lr2
grep -qF 'runs: 1 to 8' stderr || fail "run 99: $(cat stderr)"
expect 2 "$occq" diff -d h.db lr1,lr2 lr2 # two labels in a side never hold
expect 2 "$occq" diff -d h.db "$(printf 'x\033[31m%0600d' 7)" lr2
grep -qF "$(printf '\033')" stderr && fail "a control character in: $(cat stderr)"
expect 1 "$occq" diff -d none.db lr1 lr2

printf 'config:\n  - {rule: waves, waves: ">= 0.01"}\n' >rules.yaml
expect 0 "$occq" check -d h.db --rules rules.yaml --baseline 'label:exp[1]' 'label:lr[12]'

expect 0 "$occq" top -d h.db --gpu a100
for gpu in 'A_00' 'NVIDIA%SXM4' '%' '_'; do
    expect 3 "$occq" top -d h.db --gpu "$gpu"
    expect 3 "$occq" launches -d h.db --gpu "$gpu"
done
exit $failed
