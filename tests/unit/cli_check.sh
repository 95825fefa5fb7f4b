#!/usr/bin/env bash
# cli_check.sh OCCQ SOURCE: occq diff and occq check as a pipeline uses them, on recordings that are made here: a gate that passes,
# one that fails, reports for CI systems, names that attack them, and exit statuses.
set -u
occq=$1 source=$2
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
has() { # file, text, wherever lines of the file are broken
    tr -s '\n ' ' ' <"$1" | grep -qF -- "$2" || { fail "$1 lacks: $2"; cat "$1"; }
}

# record FILE SEED GEMM_BLOCK GEMM_US SOFTMAX_US NAME: 400 launches of each of four kernels, durations with 1 % of noise.
# The second has a compiler's hash in its name, which differs between before and after; the third is called NAME.
record() {
    NAME=$6 awk -v seed="$2" -v block="$3" -v gemm="$4" -v softmax="$5" 'BEGIN {
        srand(seed)
        printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}],\n\"traceEvents\": ["
        kernel[0] = "void gemm<64, 64>(float*)"; kernel[1] = "fused_" (seed < 10 ? "0a1b2c3d" : "9e8f7a6b"); kernel[2] = ENVIRON["NAME"]; kernel[3] = "softmax(float*)"
        us[0] = gemm; us[1] = 40; us[2] = 30; us[3] = softmax
        at = 1767225600000000 + seed * 1000000
        for (i = 0; i < 1600; i++) {
            k = i % 4
            printf "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": %.3f, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": %d, \"shared memory\": 0, \"grid\": [%d, 1, 1], \"block\": [%d, 1, 1]}}\n", i ? ", " : "", kernel[k], at, us[k] * (1 + 0.01 * (rand() - 0.5)), i, k ? 32 : block == 256 ? 64 : 160, k ? 1080 : 276480 / block, k ? 128 : block
            at += 200
        }
        print "]}" }' >"$1"
}
import() { # history, label, recording...
    local db=$1 label=$2
    shift 2
    "$occq" import -d "$db" --label "$label" "$@" >/dev/null 2>stderr || { fail "import"; cat stderr; }
}

for i in 1 2 3; do record before$i.json $i 256 100 50 'old_name(float*)'; done
for i in 11 12 13; do record after$i.json $i 128 125 40 'new_name(float*)'; done
for i in 21 22 23; do record again$i.json $i 256 100 50 'old_name(float*)'; done
import ci.db main before1.json before2.json before3.json
import ci.db pr after11.json after12.json after13.json
import ci.db same again21.json again22.json again23.json
import before.db before before1.json
import after.db after after11.json

# ---- check without a file of rules ----
expect 4 "$occq" check -d ci.db --baseline label:main label:pr
has stdout 'no slower kernel: 4 judged, 1 fail'
expect 4 "$occq" check -d ci.db --baseline label:main label:pr --github --gitlab gitlab.json # a rule without a file has no place
has stdout '::error title=no slower kernel::fails%0A4 judged, 1 fail'
has gitlab.json '"path": "built-in rules"'
expect 0 "$occq" check -d ci.db --baseline label:main label:same
expect 2 "$occq" check -d ci.db label:pr

# ---- diff: two imports, and three runs a side ----
for sides in 'before.db after.db' 'label:main label:pr -d ci.db'; do
    expect 0 "$occq" diff $sides
    has stdout '1 worse, 1 better, 2 same'
    has stdout 'worse: gemm'
    has stdout 'registers 64 -> 160, block 256 -> 128, grid 1080 -> 2160, theoretical 50.0% -> 18.8%'
    has stdout 'better: softmax'
    has stdout 'same: old_name -> new_name'
    has stdout 'matched: another name with the same neighbours in the order of launches'
    has stdout 'matched: same name but for hashes, counters and ABI tags'
done
expect 0 "$occq" diff before.db after.db
has stdout 'One run each: the spread between runs is unknown'
expect 0 "$occq" diff -d ci.db label:main label:pr
has stdout 'Verdicts are by the spread between runs.'
grep -q advised stdout && fail 'diff: no advice for A was followed'
expect 0 "$occq" diff -d ci.db label:pr label:main # back: fewer registers
has stdout 'as advised for A, fewer registers per thread: 160 -> 128 (and more changed); theoretical 25.0%, predicted time x0.93 (80% interval x0.63 to x1.22); reached: theoretical 50.0%, time -20.0% (better)'
[ "$(grep -c advised stdout)" = 1 ] || fail 'diff: one kernel follows advice'
expect 0 "$occq" diff -d ci.db label:main label:same
has stdout 'SAME in all kernels'
grep -qE '^rows|worse|better' stdout && fail 'diff: nothing changed'
grep -q 'both sides' stderr && fail 'diff: no run is on both sides'
expect 0 "$occq" diff -d ci.db run:1 'label:*'
has stderr 'occq diff: 1 run is on both sides'
expect 0 "$occq" diff -d ci.db run:1,until:@1767225602 run:1,since:@1767225600
grep -q 'both sides' stderr && fail 'diff: other launches of a run are on both sides'
expect 0 "$occq" diff -d ci.db run:1 run:last
has stdout 'SAME in all kernels'
expect 0 "$occq" diff -d ci.db run:1,since:@1767225601,until:@1767225602 run:2,gpu:1 --json
has stdout '"verdict": "same"'
expect 3 "$occq" diff -d ci.db run:1,since:2027-01-01 run:2
expect 3 "$occq" diff -d ci.db rank:7 run:2
expect 0 "$occq" diff -d ci.db 'label:ma*,gpu:A100' label:same --exclude 'gemm|softmax'
has stdout '1 of 2 rows'
grep -qE '^rows|worse|better' stdout && fail 'diff: two kernels are the same'
expect 0 "$occq" diff -d ci.db label:main label:pr --csv
[ "$(head -n 1 stdout | cut -d, -f1,5)" = verdict,kernel ] && [ "$(wc -l <stdout)" = 5 ] || fail '--csv'
expect 0 "$occq" diff -d ci.db label:main label:pr -o kernel,verdict -n 1
has stdout 'KERNEL VERDICT gemm worse'
expect 2 "$occq" diff -d ci.db run:x run:2
expect 2 "$occq" diff -d ci.db label:main,label:pr run:2
cp before.db 'be,fore.db'
expect 0 "$occq" diff 'run:1,be,fore.db' 'be,fore.db' -d ci.db
[ "$(awk 'length > 80' stdout | wc -l)" = 0 ] || fail 'diff is wider than 80 columns'

# one kernel in two ranges, of which one gets slower; and what has no durations
layers() { # FILE DECODER_US RANGE
    awk -v us="$2" -v range="$3" 'BEGIN {
        printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}],\n\"traceEvents\": ["
        for (i = 1; i <= 800; i++) {
            at = 1767225600000000 + i * 200
            where = "\"ph\": \"X\", \"pid\": 9, \"tid\": 9, \"ts\":"
            printf "%s{\"cat\": \"user_annotation\", \"name\": \"%s\", %s %.0f, \"dur\": 90}", i == 1 ? "" : ", ", i % 2 ? "encoder" : range, where, at
            printf ", {\"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", %s %.0f, \"dur\": 5, \"args\": {\"correlation\": %d}}", where, at + 10, i
            printf ", {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": %.3f, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": 32, \"shared memory\": 0, \"grid\": [108, 1, 1], \"block\": [128, 1, 1]}}\n", at + 30, (i % 2 ? 50 : us) + i % 7 / 10, i
        }
        print "]}" }' >"$1"
}
layers fast.json 60 decoder
layers slow.json 75 decoder
layers moved.json 75 head
import layers.db - fast.json slow.json moved.json
expect 0 "$occq" diff -d layers.db run:1 run:2
has stdout 'rows 1 worse, 1 same'
has stdout 'worse: gemm in decoder 60.3'
expect 4 "$occq" check -d layers.db --baseline run:1 run:2
grep -qE 'gemm: time of a launch .*, configuration [0-9]+$' stdout || fail "no configuration in $(cat stdout)"
expect 0 "$occq" diff -d layers.db run:1 run:3 # the range has another name: matched all the same
has stdout 'worse: gemm in decoder -> head 60.3'
expect 0 "$occq" diff -d layers.db run:1 run:2 --csv
grep -q '^worse,.*,range,gemm,.*,decoder,' stdout || fail "--csv has no range: $(cat stdout)"
sed 's/"dur": [0-9.]*/"dur": 0/g' fast.json >nothing.json
import nothing.db - nothing.json
expect 0 "$occq" diff nothing.db nothing.db
has stdout 'elapsed - -> - waste'

# ---- other numbers of launches: a kernel with a larger grid, and steps of three other kernels ----
steps() { # FILE GRID KERNEL_US KERNEL_LAUNCHES STEPS...: numbers of launches of the other kernels
    local file=$1
    shift
    awk -v grid="$1" -v us="$2" -v n="$3" -v steps="$4 $5 $6" 'BEGIN {
        split(steps, count, " ")
        printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}],\n\"traceEvents\": ["
        for (i = 0; i < 400; i++)
            for (k = 0; k < 4; k++)
                if (i < (k ? count[k] : n))
                    printf "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": %.3f, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": 32, \"shared memory\": 0, \"grid\": [%d, 1, 1], \"block\": [128, 1, 1]}}\n", at++ ? ", " : "", k ? "other" k : "batch", 1767225600000000 + at * 300, (k ? 20 * k : us) + i % 5 / 10, at, k ? 108 : grid
        print "]}" }' >"$file"
}
steps base.json 108 100 300 300 300 300
steps fused.json 216 160 150 300 300 300  # half of the launches, each with twice the work: 20 % less time
steps faster.json 216 160 190 380 380 380 # the same program for a fixed time: more steps
steps split.json 54 100 390 300 300 300   # a third more launches, each with half of the work: 30 % more time
steps mixed.json 216 160 150 200 300 390  # no unit of work
import steps.db - base.json fused.json faster.json split.json mixed.json
printf 'measured:\n  - rule: no slower kernel\n    floor: 5%%\n' >steps.yaml
for run in 2 3; do
    expect 0 "$occq" check -d steps.db --rules steps.yaml --baseline run:1 run:$run
    expect 0 "$occq" diff -d steps.db 1 $run
    has stdout 'rows 1 better, 3 same'
    has stdout '160.2 us a launch, -2'
    has stdout ' for the same work ('
done
has stdout 'work B did 1.27 times the work of A, by the launches of equal kernels: time for the same work -'
expect 4 "$occq" check -d steps.db --rules steps.yaml --baseline run:1 run:4
has stdout 'batch: time for the same work +3'
expect 3 "$occq" check -d steps.db --rules steps.yaml --baseline run:1 run:5
has stdout 'undecided no slower kernel: 3 judged, 1 undecided; another number of launches, each with other work'
expect 0 "$occq" diff -d steps.db 1 5
has stdout 'undecided: batch'
has stdout 'not comparable: another number of launches, each with other work'
has stdout 'work unknown: numbers of launches changed, and too few equal kernels agree on one ratio; the total times do not compare'
expect 0 "$occq" diff -d steps.db 1 5 --json
has stdout '"work_ratio": null'
has stdout '"basis": null, "reason": "not comparable: another number of launches, each with other work"'
python3 - <<'END' || fail "diff --json: $(cat stdout)"
import json
(row,) = [row for row in json.load(open("stdout"))["kernels"] if row["basis"] is None]
assert row["mean_duration_change_ratio"] is None and row["change_low_ci95_ratio"] is None, row
END
expect 0 "$occq" diff -d steps.db 1 5 --markdown
has stdout '| - | - to - | not comparable: another number of launches, each with other work; '
expect 0 "$occq" diff -d steps.db 1 2 --markdown
has stdout '% for the same work | -'
# an occupancy does not depend on the work: no launch is measured here
printf 'measured:\n  - {rule: occupancy, kernel: batch, metric: achieved, floor: 5%%}\n' >achieved.yaml
expect 3 "$occq" check -d steps.db --rules achieved.yaml --baseline run:1 run:5
has stdout 'undecided occupancy: 0 judged, 1 undecided; too few launches, or too much spread'
expect 2 env OCCTRACE_CLUSTER=http://127.0.0.1:1/ "$occq" diff job:1 job:2 --by layer
has stderr "--by layer: the cluster's minutes have no ranges; only the nodes know (--db FILE)"
OCCTRACE_CLUSTER=http://127.0.0.1:1/ expect 0 "$occq" diff -d steps.db 1 2 --by layer
# ---- replaced kernels: in the layer mlp one kernel for two, and two for one ----
program() { # FILE STEPS KERNEL:US...: the kernels of mlp; three kernels are around them
    local file=$1 steps=$2
    shift 2
    awk -v steps="$steps" -v mlp="$*" 'BEGIN {
        n = split("first:50 " mlp " second:60 third:70", kernel, " ")
        printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}],\n\"traceEvents\": ["
        for (i = 0; i < steps * n; i++) {
            split(kernel[i % n + 1], part, ":")
            range = index(mlp, part[1] ":") ? "mlp" : "rest"
            ts = 1767225600000000 + i * 400
            where = "\"ph\": \"X\", \"pid\": 9, \"tid\": 9, \"ts\":"
            printf "%s{\"cat\": \"user_annotation\", \"name\": \"%s\", %s %.0f, \"dur\": 90}", i ? ", " : "", range, where, ts
            printf ", {\"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", %s %.0f, \"dur\": 5, \"args\": {\"correlation\": %d}}", where, ts + 10, i + 1
            printf ", {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": %.3f, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": 32, \"shared memory\": 0, \"grid\": [108, 1, 1], \"block\": [128, 1, 1]}}\n", part[1], ts + 30, part[2] + int(i / n) % 5 / 10, i + 1
        }
        print "]}" }' >"$file"
}
program two.json 200 mul:80 sum:120
program one.json 200 fused:150
program steps_one.json 300 fused:150 # the faster program for a fixed time
import replaced.db - two.json one.json steps_one.json
for run in 2 3; do
    expect 0 "$occq" diff -d replaced.db 1 $run
    has stdout 'FASTER in layer mlp: -2'
    has stdout '% for the same work (95 %: -2'
    has stdout 'undecided: mul + sum -> fused in mlp'
    has stdout 'replaced: 2 kernels by 1; the verdicts on its groups decide'
    has stdout 'kernels 2 -> 1'
done
expect 0 "$occq" diff -d replaced.db 2 1
has stdout 'SLOWER in layer mlp: +3'
has stdout 'undecided: fused -> mul + sum in mlp'
has stdout 'replaced: 1 kernel by 2; the verdicts on its groups decide'
expect 0 "$occq" diff -d replaced.db 1 2 --by layer --csv -o verdict,layer,basis
has stdout 'better,mlp,work'
has stdout 'same,rest,launch'
expect 0 "$occq" diff -d replaced.db 1 2 --json
python3 - <<'END' || fail "diff --json: $(cat stdout)"
import json
groups = {(g["level"], g["name"]): g for g in json.load(open("stdout"))["verdicts"]}
mlp = groups[("layer", "mlp")]
assert mlp["basis"] == "work" and abs(mlp["mean_duration_change_ratio"] + 0.25) < 0.01, mlp
assert groups[("layer", "rest")]["basis"] == "launch" and groups[("total", None)]["basis"] == "work", groups.keys()
END
expect 0 "$occq" diff -d replaced.db 1 2 --color always
grep -q "$(printf '\033')\[1;32mFASTER$(printf '\033')\[0m in layer mlp" stdout || fail "colours: $(cat stdout)"

# the number of launches in a run tells whether the work of a launch may have changed: sides have other numbers of runs
for i in 1 2 3; do steps one$i.json 108 100.0$i 400 0 0 0; done
for i in 1 2; do steps half$i.json 216 200.0$i 200 0 0 0; done
steps wide.json 216 200 400 0 0 0
import runs.db one one1.json
import runs.db halves half1.json half2.json
import runs.db wide wide.json
expect 0 "$occq" diff -d runs.db label:one label:halves
has stdout 'not comparable: another number of launches, each with other work'
import runs.db one one2.json one3.json
expect 0 "$occq" diff -d runs.db label:one label:wide
has stdout 'A: label:one, 3 runs; 1200 launches, 120.3 ms (40.09 ms a run); '
has stdout 'time 40.09 ms -> 80.08 ms a run'
has stdout 'rows 1 worse'

# ---- check: the sample's pipeline, which passes on what is unchanged and fails on the change ----
rules=$source/docs/occq-rules.yaml
check() { "$occq" check -d ci.db --rules "$rules" "$@"; }
expect 0 check --baseline label:main label:same
has stdout 'holds no slower kernel: 4 judged'
has stdout 'skipped no spills in our kernels: 0 judged; no kernel matches'
expect 4 check --baseline label:main label:pr --github --junit junit.xml --gitlab gitlab.json
has stdout 'fails occupancy of what matters: 4 judged, 1 fail'
has stdout 'gemm: theoretical 18.75% is not >= 25% (grid 2160, block 128)'
has stdout 'gemm: registers 160 is not <= baseline (baseline 64, grid 2160, block 128)'
has stdout 'fails no slower kernel: 4 judged, 1 fail'
has stdout "::error file=${rules//:/%3A},line=8,title=occupancy of what matters::fails%0A4 judged, 1 fail%0Agemm: theoretical"
has junit.xml '<testsuite name="occq check" tests="5" failures="3" skipped="1">'
has junit.xml '<testcase classname="occq check" name="no slower kernel"><failure message="4 judged, 1 fail&#10;gemm: time of a launch +25'
has gitlab.json '"check_name": "no more registers than before"'
[ "$(grep -c '"fingerprint"' gitlab.json)" = 3 ] || fail "gitlab.json has not one entry for each finding"
grep '"fingerprint"' gitlab.json >first
# the verdict: where the GPU time of a failed run goes, and the part that grew; the JSON has both
expect 4 check --baseline label:main label:pr
has stdout "| GPU time of "
has stdout "grew most: kernels, limited by registers "
has stdout "| gemm: "
expect 4 check --baseline label:main label:pr --json
python3 - <<'END' || fail "check --json: $(cat stdout)"
import json
answer = json.load(open("stdout"))
assert answer["verdict"] == "fails" and any(rule["broken"] for rule in answer["rules"] if rule["state"] == "fails")
assert 0 < answer["gpu_time"]["busy_ratio"] <= 1 and answer["findings"][0]["gpu_time_ratio"] > 0
END
expect 0 check --baseline label:main label:same
grep -q "GPU time of" stdout && fail "a verdict although no rule fails"
expect 0 check --baseline label:main label:same --json
expect 2 check label:same --json --github
expect 4 check --baseline run:1 run:4 --gitlab gitlab.json # one run a side: the sample's rule has a floor
grep '"fingerprint"' gitlab.json | cmp -s first - || fail "fingerprints are not stable"
command -v python3 >/dev/null && { python3 -c 'import json, sys; json.load(open("gitlab.json"))' || fail "gitlab.json is no JSON"; }
command -v python3 >/dev/null && { python3 -c 'import xml.dom.minidom as x; x.parse("junit.xml")' || fail "junit.xml is no XML"; }

# ---- statuses ----
rules=$work/rules.yaml
cat >rules.yaml <<'YAML'
config:
  - {rule: minor, kernel: softmax, registers_per_thread: "<= 8"}
  - {rule: major, kernel: gemm, registers_per_thread: "<= 8"}
YAML
expect 4 check --github # GitHub shows ten of them: those with most time go first
[ "$(grep -o 'title=[a-z]*' stdout | tr '\n' ' ')" = 'title=major title=minor ' ] || { fail '--github: order'; cat stdout; }
cat >rules.yaml <<'YAML'
config:
  - rule: waves
    waves: ">= 0.1"
YAML
expect 0 check
expect 0 check run:1
printf 'measured:\n  - rule: time\n' >>rules.yaml
expect 3 check
has stdout 'not judged time: 0 judged; there is no --baseline'
expect 0 check --baseline run:1 run:2
has stdout 'undecided time: 0 judged, 4 undecided; fewer than three runs on a side: the rule needs a floor'
expect 0 check --baseline run:1 run:4 # a change that is there: nobody knows what runs differ by
has stdout 'undecided time: 0 judged, 4 undecided'
expect 3 check --baseline run:1 run:2 --strict
expect 4 check --baseline last:3 label:same # the last three runs that are not checked: those of pr
expect 0 check --baseline label:main,last:2 label:same
printf 'config:\n  - rule: none\n    kernel: nothing\n    waves: ">= 0"\n' >rules.yaml
expect 4 check
has stdout 'fails none: 0 judged; no kernel matches'
printf '    optional: true\n' >>rules.yaml
expect 3 check # nothing was judged
expect 3 check label:none
expect 1 "$occq" check -d none.db --rules rules.yaml
expect 1 check --junit none/junit.xml
expect 2 "$occq" check -d ci.db
cp rules.yaml kept.yaml
for over in ci.db rules.yaml; do # nothing is written over a history or the rules
    expect 1 check --junit $over
    expect 1 check --gitlab $over
done
cmp rules.yaml kept.yaml || fail 'the rules are gone'
expect 0 "$occq" info -d ci.db
record commands.json 41 256 100 50 '::stop-commands::(t'
expect 0 "$occq" import -d commands.db commands.json
printf 'config:\n  - {rule: all, registers_per_thread: "<= 8"}\n' >commands.yaml
expect 4 "$occq" check -d commands.db --rules commands.yaml --github
grep -q 'stop-commands' stdout || fail 'the name is not there'
grep -vE '^::error ' stdout | grep -qE '^[[:space:]]*::' && { fail 'a name is a command for GitHub'; cat stdout; }
for wrong in 'rule: x' 'config: {rule: x}' 'config: [{waves: ">= 1"}]' 'config: [{rule: x}]' 'config: [{rule: x, waves: many}]' \
    'config: [{rule: x, waves: ">= "}]' 'config: [{rule: x, wave: ">= 1"}]' 'measured: [{rule: x, metric: speed}]' \
    'allow: [{rule: x, reason: y}]' 'allow: [{rule: gone, reason: y, until: 2100-01-01}]' 'config: [{rule: x, rule: y}]' 'config: [{rule: x, kernel: "("}]' '&a [*a]' '- x' 'measured: [{rule: x, floor: -1}]' \
    'config: [{rule: x, theoretical: "<= 25"}]'; do
    echo "$wrong" >rules.yaml
    expect 2 check
    grep -qE '^occq check: .*rules.yaml:[0-9]+:[0-9]+: ' stderr || { fail "no place in: $wrong"; cat stderr; }
done

# ---- kernels that the baseline lacks ----
import new.db - before1.json
grep -v '"name": "old_name' again21.json >less.json
import new.db - less.json
import new.db - again22.json
cat >rules.yaml <<'YAML'
config:
  - {rule: registers, registers_per_thread: "<= baseline"}
YAML
"$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3 --github --junit junit.xml >stdout 2>stderr
[ $? = 0 ] || fail "a new kernel: status"
has stdout 'holds registers: 3 judged, 1 new; new kernels have no baseline'
grep -q '^::notice file=.*,title=registers::holds%0A3 judged, 1 new' stdout || { fail '--github: a new kernel'; cat stdout; }
has junit.xml '<testcase classname="occq check" name="registers"><system-out>3 judged, 1 new; new kernels have no baseline</system-out></testcase>'
has junit.xml 'tests="1" failures="0" skipped="0"'
expect 3 "$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3 --strict
expect 0 "$occq" check -d new.db --rules rules.yaml --baseline run:3 run:2 --strict # one that is gone is no new one
grep -q new stdout && fail 'a kernel that is gone is counted as new'
printf 'config:\n  - {rule: waves, waves: ">= 0.001"}\n  - {rule: registers, kernel: old_name, registers_per_thread: "<= baseline"}\n' >rules.yaml
expect 3 "$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3
has stdout 'not judged registers: 0 judged, 1 new; new kernels have no baseline'
printf 'measured:\n  - {rule: time, floor: 5%%}\n' >rules.yaml
expect 0 "$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3
has stdout 'holds time: 3 judged, 1 new; new kernels have no baseline'
expect 3 "$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3 --strict
printf 'measured:\n  - {rule: time, kernel: old_name, floor: 5%%}\n' >rules.yaml
expect 3 "$occq" check -d new.db --rules rules.yaml --baseline run:2 run:3
has stdout 'not judged time: 0 judged, 1 new'

# ---- exceptions ----
printf 'config:\n  - rule: r\n    registers_per_thread: "< 64"\nallow:\n  - {rule: r, kernel: gemm, reason: x, until: %s}\n' 2100-01-01 >rules.yaml
expect 0 check run:1
has stdout 'holds r: 4 judged, 1 allowed'
sed -i s/2100/2020/ rules.yaml
expect 4 check run:1
has stdout 'gemm: registers 64 is not < 64'

# ---- hostile names ----
record hostile.json 31 256 100 50 'x|`]]>\n##[error]owned\r&\"@all\u001b[31m%0A'
import hostile.db h hostile.json
printf 'config:\n  - rule: "a,b: ]]><x>\\n::set-output"\n    kernel: owned\n    waves: ">= 1000"\n' >rules.yaml
expect 4 "$occq" check -d hostile.db --rules rules.yaml --github --junit junit.xml --gitlab gitlab.json
[ "$(grep -c '^::' stdout)" = 1 ] || { fail "a name is a workflow command"; cat stdout; }
has stdout 'title=a%2Cb%3A ]]><x>%0A%3A%3Aset-output::fails%0A1 judged, 1 fail%0Ax|`]]>?##(error]owned?&"@all?[31m%250A: waves'
command -v python3 >/dev/null && { python3 -c 'import json, sys; json.load(open("gitlab.json"))' || fail "gitlab.json is no JSON"; }
command -v python3 >/dev/null && { python3 -c 'import xml.dom.minidom as x; x.parse("junit.xml")' || fail "junit.xml is no XML"; }
expect 0 "$occq" diff hostile.db hostile.db --markdown --rows
has stdout '| `` x\|`]]>?##[error]owned?&"@all?[31m%0A `` configuration '
grep -q "$(printf '\033')" stdout && fail "an escape character is printed"
exit $failed
