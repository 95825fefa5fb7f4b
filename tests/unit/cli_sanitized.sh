#!/usr/bin/env bash
# cli_sanitized.sh CLI_HISTORY OCCQ SOURCE: one run of each output that cli_expected has not, on a known history and on hostile names,
# for the sanitizers: they end a program with another status, and say why. Tests of the outputs themselves: cli_export, cli_report, cli_check.
set -u
history=$1 occq=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
# status, arguments of occq
expect() {
    local wanted=$1 status
    shift
    "$occq" "$@" >stdout 2>stderr
    status=$?
    [ $status = "$wanted" ] && ! grep -qE 'Sanitizer|runtime error' stderr || { echo "FAIL: status $status instead of $wanted: $*"; cat stderr; failed=1; }
}

"$history" known.db measured || exit 1
cat >hostile.json <<'JSON'
{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}], "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "</script><!-- | \"q\" \\ \u0001 \u202e \u2028 'x'\n::error::`]]>%s", "pid": 0, "tid": 7, "ts": 1767225600000000, "dur": 10.5, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "_Z999999999999\u00e9", "pid": 0, "tid": 7, "ts": 1767225600000004, "dur": 30, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 3, "registers per thread": 32, "shared memory": 0, "grid": [2147483647, 65535, 65535], "block": [1024, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "none", "pid": 0, "tid": 7, "ts": 1767225600000034, "dur": 0, "args": {"device": 0, "context": 2, "stream": 7, "correlation": 4, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}}
]}
JSON
expect 0 import -d hostile.db hostile.json
expect 0 import -d hostile.db --label again "$source/tests/data/import/kineto_ranges.json"
rules=$source/docs/occq-rules.yaml
printf 'config:\n  - rule: "a,b: ]]><x>\\n::set-output"\n    waves: ">= 1000"\n' >impossible.yaml
printf 'histroy: /x\n' >occq.yaml

for db in known.db hostile.db; do
    for name in x.json x.pftrace.zst x.csv.gz x.jsonl; do expect 0 export -d $db -o $name; done
    expect 1 export -d $db -o /dev/full
    expect 0 report -d $db -o page.html
    expect 0 report -d $db --diff run:2 run:2
    expect 1 report -d $db -o /dev/full
    expect 4 check -d $db --rules impossible.yaml --github --junit junit.xml --gitlab gitlab.json
    expect 4 check -d $db --rules impossible.yaml --json
    expect 0 diff -d $db run:1 run:2 --force --markdown --rows
    expect 0 diff -d $db run:1 run:2 --force --by layer
    expect 0 history -d $db --by minute --svg x.svg
    expect 3 live -d $db -b -n 1 # no launch of the last seconds
    expect 0 runs -d $db --info
done
expect 0 top -d hostile.db --by layer --operators
"$occq" check -d known.db --rules "$rules" --baseline run:1 run:2 --force >stdout 2>stderr
[ $? -le 4 ] && ! grep -qE 'Sanitizer|runtime error' stderr || { echo "FAIL: check with a baseline"; cat stderr; failed=1; }
mkdir -p config/occtrace
mv occq.yaml config/occtrace
XDG_CONFIG_HOME=$work/config expect 2 top -d known.db
XDG_CONFIG_HOME=$work/config expect 2 top -d known.db --format yaml
exit $failed
