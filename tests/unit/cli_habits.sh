#!/usr/bin/env bash
# cli_habits.sh CLI_HISTORY OCCQ: spellings that users know from other tools, names that older scripts use, OCCTRACE_DB, and the
# settings of occq.yaml.
set -u
history=$1 occq=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1 XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config HOME=$work XDG_RUNTIME_DIR=$work
unset OCCTRACE_DB OCCTRACE_CLUSTER
failed=0
fail() { echo "FAIL: $*"; failed=1; }
"$history" h.db && "$history" m.db measured || exit 1
mkdir -p config/occtrace

# same A... -- B...: both command lines print the same on stdout, with the same status
same() {
    local first=() one two
    while [ "$1" != -- ]; do first+=("$1"); shift; done
    shift
    "$occq" "${first[@]}" >one 2>one.err; one=$?
    "$occq" "$@" >two 2>two.err; two=$?
    { [ $one = $two ] && cmp -s one two && { [ -s one ] || [ -s one.err ]; }; } ||
        { fail "'${first[*]}' ($one) and '$*' ($two) differ"; diff one two | head -5; cat one.err two.err; }
}
expect() { # status, text on stdout or stderr, command...
    local wanted=$1 text=$2 status
    shift 2
    "$@" >stdout 2>stderr
    status=$?
    { [ $status = "$wanted" ] && grep -qF -- "$text" stdout stderr; } || { fail "status $status, without '$text': $*"; cat stdout stderr; }
}

same top -d h.db --limit 2 -- top -d h.db -n 2
same top -d h.db --limit=2 -- top -d h.db -n2
same top -d h.db --format json -- top -d h.db --json
same top -d h.db --format=csv -- top -d h.db --csv
same top -d h.db --format text -- top -d h.db
same top -d h.db -k gemm -- top -d h.db --kernel gemm
same top -d h.db -kgemm -- top -d h.db --kernel gemm
same -d h.db top -- top -d h.db
same -dh.db --color never --no-pager top -n 1 -- top -d h.db -n 1
same --db=h.db top -- top -d h.db
same version -- --version
same diff -d h.db 1 2 -- diff -d h.db run:1 run:2
same help top --gaps -- top --gaps --help
expect 2 "--format: 'yaml' is none of json, csv, text" "$occq" top -d h.db --format yaml
expect 2 "--format needs a value" "$occq" top -d h.db --format
expect 2 "unknown option '-k'" "$occq" runs -d h.db -k gemm
expect 2 "unknown command 'stats'; did you mean 'top'?" "$occq" stats
expect 2 "unknown command 'summary'; did you mean 'top'?" "$occq" summary
expect 2 "unknown command 'ps'; did you mean 'runs'?" "$occq" ps
expect 2 "unknown command 'nonsense'" "$occq" -d h.db nonsense
for moment in yesterday today; do expect 0 RUN "$occq" runs -d m.db --until "$moment"; done
expect 2 "'tomorrow' is neither" "$occq" top -d h.db --since tomorrow

# The last run is the newest run with launches; a newer run without launches is named.
same top -d h.db --run last --csv -- top -d h.db --run 2 --csv
same runs -d h.db --run last --json -- runs -d h.db --run 2 --json
same launches -d h.db --run last -n 3 --json -- launches -d h.db --run 2 -n 3 --json
same top --gaps -d h.db -- top --gaps -d h.db --run 2
same top --gaps -d h.db --by gpu -- top --gaps -d h.db
same top --gaps -d h.db --run 2 --gpu 2 -- top --gaps -d h.db --run 2
same top --gaps -d h.db --run 2 --until now -- top --gaps -d h.db --run 2
expect 3 "no launches" "$occq" top --gaps -d h.db --run 2 --gpu 99
same top --gaps -d h.db --label 'batch*' -- top --gaps -d h.db --run 1
expect 3 "no run has the label 'none'; labels: batch 64; runs: 1 to 3" "$occq" top --gaps -d h.db --label none
expect 3 "no launches" "$occq" top --gaps -d h.db --user "nobody'; --"
expect 2 "unknown option '--kernel'" "$occq" top --gaps -d h.db --kernel gemm # a gap is of no kernel
same top -d h.db --depth 2 -- top -d h.db --by layer --depth 2
same top -d h.db --operators -- top -d h.db --by layer --operators
same top -d h.db --unfold MLP -- top -d h.db --by layer --unfold MLP
expect 2 "--depth is for --by layer" "$occq" top -d h.db --by run --depth 2
expect 0 "0 equal" "$occq" top -d h.db --on b200 --low-occupancy=100
same show -d h.db tiny --run last --json -- show -d h.db tiny --run 2 --json
expect 0 "last is run 2; 1 newer run has no launches" "$occq" top -d h.db --run last

# Older names print what their replacements print; without a terminal nothing else.
same gpus --json -- calc --list --json
same info -d h.db -- runs --info -d h.db
same gaps -d h.db --run 1 --json -- top --gaps -d h.db --run 1 --json
same what-if --gpu b200 --device 1 -d h.db -- top --on b200 --gpu 1 -d h.db
same sampler status --socket "$work/none" -- doctor --counters --socket "$work/none"
same idle -- top --by allocation
same rm -d h.db 99 -- prune -d h.db 99
expect 2 "--cluster URL is missing" "$occq" stragglers
expect 0 RANK "$occq" top -d h.db --by rank
expect 2 "RUN, --before, --keep or --user is missing" "$occq" prune -d h.db
expect 2 "RUN is a number" "$occq" prune -d h.db 3x
expect 2 "give one or the other" "$occq" prune -d h.db 3 --keep 2
for name in gpus what-if info rm sampler gaps stragglers idle; do
    "$occq" --help | grep -q "^  $name " && fail "occq --help lists $name"
    "$occq" "$name" --help >/dev/null || fail "$name --help"
done
[ "$("$occq" --complete '' | grep -vc '^-')" -le 16 ] || fail "more than 16 commands"
script -qec "'$occq' gpus -n 2>&1" /dev/null >/dev/null 2>&1 # a terminal is not everywhere
if script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "'$occq' info -d h.db --no-pager" /dev/null | grep -qF "occq: 'info' is now 'occq runs --info'" || fail "no note on a terminal"
fi

# OCCTRACE_DB: an absolute path in a directory that exists; --db comes first.
same top -d h.db -- top -d h.db
OCCTRACE_DB=$work/h.db same top -- top -d h.db
OCCTRACE_DB=$work/nothing.db same top -d h.db -- top -d h.db
OCCTRACE_DB=h.db expect 1 "OCCTRACE_DB: 'h.db' is not an absolute path" "$occq" top
OCCTRACE_DB=$work/missing/h.db expect 1 "OCCTRACE_DB" "$occq" top
OCCTRACE_DB=$(printf '/%05000d' 0) expect 1 "OCCTRACE_DB" "$occq" top
[ ! -e missing ] || fail "OCCTRACE_DB made a directory"
# The machine may have a service with a history of this user: root hides it, others leave the check out.
alone=()
service=$(ls -d /var/lib/occtrace /run/occtrace 2>/dev/null)
[ -z "$service" ] || alone=(unshare --mount sh -c 'for d in $0; do mount -t tmpfs none "$d" || exit 77; done; exec "$@"' "$service")
if "${alone[@]}" true 2>/dev/null; then
    expect 1 "there is no history at $work/state/occtrace/history.db" "${alone[@]}" "$occq" top
    grep -q 'occtrace ./app' stderr && grep -q 'occq import FILE' stderr || { fail "no next step without a history"; cat stderr; }
else
    echo "NOT TESTED: occq without any history (this machine has a service, which only root can hide)"
fi

# occq.yaml
settings() { printf -- "$@" >config/occtrace/occq.yaml; }
settings 'history: %s\n' "$work/h.db"
same top -- top -d h.db
same top -d m.db -- top -d m.db --limit 20
same top -d m.db --order time -- top -d m.db --sort time
OCCTRACE_DB=$work/m.db same top -- top -d m.db
settings 'columns:\n  top: kernel,time\n  runs: run,program\n'
same top -d h.db -- top -d h.db -o kernel,time
same runs -d h.db -- runs -d h.db -o run,program
same top -d h.db --json -- -d h.db top --format json
[ "$("$occq" top -d h.db --csv | head -1 | tr ',' '\n' | wc -l)" -gt 5 ] || fail "settings choose the columns of CSV"
same top -d h.db -o id -- top -d h.db --columns=id
settings 'exclude: gemm\n'
"$occq" top -d h.db >one 2>one.err
grep -q gemm one && fail "exclude is ignored"
grep -qF "occq: without kernels that match 'gemm' (exclude in occq.yaml)" one.err || fail "no note about exclude"
for bad in 'histroy: /x\n' 'history: x.db\n' 'history: /x\nhistory: /y\n' 'columns: kernel\n' 'columns:\n  top: [kernel]\n' 'exclude: ""\n' '- a\n' \
    'history: /x\n---\nhistory: /y\n' '\t{' 'columns:\n  top: kernel\n  top: time\n'; do
    settings "$bad"
    expect 2 "config/occtrace/occq.yaml:" "$occq" top -d h.db
done
settings 'histroy: /x\n'
expect 2 "occq.yaml:1:1: unknown key 'histroy'; did you mean 'history'?" "$occq" top -d h.db
settings 'columns:\n  top: nonsense\n'
expect 2 nonsense "$occq" top -d h.db
head -c 70000 /dev/zero | tr '\0' '#' >config/occtrace/occq.yaml
expect 2 occq.yaml "$occq" top -d h.db
rm config/occtrace/occq.yaml; mkfifo config/occtrace/occq.yaml
timeout 10 "$occq" top -d h.db >stdout 2>stderr; [ $? = 2 ] || { fail "occq.yaml is a pipe"; cat stderr; }
exit $failed
