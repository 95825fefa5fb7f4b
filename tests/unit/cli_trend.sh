#!/usr/bin/env bash
# cli_trend.sh OCCQ: occq history on twenty days of hours that are made here: against SQL over single launches, a change at a new label, a
# spike that is none, and the newest hour.
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
    [ $status = "$wanted" ] || { fail "status $status instead of $wanted: $*"; cat stderr; }
}
has() { tr -s '\n ' ' ' <stdout | grep -qF -- "$1" || { fail "lacks: $1"; tail -n 20 stdout; }; }

# trace LABEL FIRST END US: five launches an hour of two kernels, durations with 2 % of noise; hour 100 is slow, hours 479 and on are.
# Times are not at the beginning of hours, and a hundred hours have none.
trace() {
    awk -v seed="$2" -v first="$2" -v end="$3" -v us="$4" 'BEGIN {
        srand(seed)
        printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}],\n\"traceEvents\": ["
        for (h = first; h < end; h++)
            for (i = 0; i < 10 && (h < 150 || h > 250); i++) {
                t = h == 100 ? 3 * us : h >= 479 ? 2 * us : us
                if (i % 2)
                    t = 40
                t *= 1 + 0.04 * (rand() - 0.5)
                printf "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": %.3f, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": 64, \"shared memory\": 0, \"grid\": [%d, 1, 1], \"block\": [256, 1, 1]}}\n", n++ ? ", " : "", i % 2 ? "other" : "gemm", 1767225600000000 + h * 3600000000 + i * 300000000 + 17, t, n, i % 2 ? 50 : 1080
            }
        print "]}" }' >"$1.json"
}
record() { # like trace; imports LABEL.json
    trace "$@"
    expect 0 "$occq" import -d h.db --label "$1" "$1.json"
}
record main 0 300 100
record pr 300 480 115

for unit in minute:60 hour:3600 day:86400; do
    expect 0 "$occq" history -d h.db --by ${unit%:*} --csv -o start,launches,time,waste
    cut -d, -f1-3 stdout | tail -n +2 >found
    "$occq" sql -d h.db --csv "SELECT start_ns / 1000000000 / ${unit#*:} * ${unit#*:} * 1000000000, count(*), sum(duration_ns) FROM launch GROUP BY 1 ORDER BY 1" |
        tail -n +2 | cmp - found || fail "${unit%:*}s differ from SQL's"
    [ "$(awk -F, 'NR > 1 { s += $4 } END { printf "%.3f", s }' stdout)" = "$("$occq" sql -d h.db --csv 'SELECT round(sum(waste_warp_seconds), 3) AS w FROM launch' |
        tail -n 1 | awk '{ printf "%.3f", $1 }')" ] || fail "waste by ${unit%:*} differs from SQL's"
done
expect 0 "$occq" history -d h.db gemm
has '2026-01-13 12:00:00 UTC: mean time of a launch 99.97 us -> 114.8 us'
has '(+14.8%: configurations +14.8%, mix of configurations +0.0%); run 2 began: pr pr.json'
has '2026-01-20 23:00:00 UTC (only possible yet): mean time of a launch'
eval "$(sed -n 's/^  why: occq/expect 0 "$occq"/p' stdout)" # the question that it names
has 'worse: gemm'
expect 0 "$occq" history -d h.db gemm
has 'labels, the newest 2026-01-01 00:00:00 UTC: main 2026-01-13 12:00:00 UTC: pr'
[ "$(grep -c 'mean time of a launch .*->' stdout)" = 2 ] || { fail "a spike, a gap or noise is a change"; cat stdout; }
[ "$(awk 'length > 80' stdout | wc -l)" = 0 ] || fail "wider than 80 columns"
grep -q ' $' stdout && grep -vE '\|' stdout | grep -q ' $' && fail "trailing blanks"
expect 0 "$occq" history -d h.db gemm --json
has '"unit_ns": 3600000000000'
has '"change_ratio": 0.148'
has '"possible": true'
expect 0 "$occq" history -d h.db gemm --min-change 20 --until '2026-01-20 20:00'
has 'changes: none was found'
expect 0 "$occq" history -d h.db other
has 'changes: none was found'
expect 0 "$occq" history -d h.db --label pr --by hour
# a page about the newest two runs names one of these for a change, whatever else began at the time
trace noise 301 303 100
for label in noise main pr; do expect 0 "$occq" import -d newest.db --label $label $label.json; done
expect 0 "$occq" report -d newest.db --diff run:1 last:2 -o newest.html
grep -q '; run 3 began: pr pr.json</li>' newest.html || { fail 'the run that began before a change'; grep 'began:' newest.html; }
expect 2 "$occq" history -d h.db ''
# a KERNEL that matches several: their number, and mixes are of kernels
expect 0 "$occq" history -d h.db 'gemm|oth' --svg both.svg
has '2 kernels match; all of them count'
has 'mix of kernels'
grep -q '>gemm|oth (2 kernels), by hours<' both.svg || fail 'number of kernels in the picture'
expect 0 "$occq" history -d h.db 'gemm|oth' --json
has '"kernels": 2,'
grep -q '2 kernels match' stderr || fail 'number of kernels beside JSON'
expect 0 "$occq" history -d h.db gemm --json
has '"kernels": 1,'
grep -q 'kernels match' stderr && fail 'one kernel is not several'
expect 0 "$occq" history -d h.db --json
has '"kernels": null,'
# gemm has 66.7 % of the time of hour 478 and 85.2 % of 479, and 41.7 % elapsed occupancy; the other kernel 5.8 %
expect 0 "$occq" history -d h.db --svg h.svg
has 'elapsed occupancy 31.9% -> 36.4% (+14.0%: kernels +0.0%, mix of kernels +13.8%)'
[ "$(head -c 4 h.svg)" = '<svg' ] && [ "$(grep -c 'class="mark"' h.svg)" = 3 ] && [ "$(grep -c 'class="label"' h.svg)" = 6 ] || fail "the picture"
grep -q '>pr</text>' h.svg && grep -q 'class="value end">2?</text>' h.svg || fail "labels and possible changes in the picture"
grep -q '>1  2026-01-13 12:00:00 UTC: mean time of a launch 70 us -&gt; 77.36 us' h.svg || fail "the changes below the picture"
expect 0 "$occq" history -d h.db 'gem|<&>' --svg none.svg
grep -q '>gem|&lt;&amp;&gt;, by hours<' none.svg || fail "markup in a picture"
# pictures are whole or not there, and no history is replaced
expect 1 "$occq" history -d h.db --svg h.db
expect 1 "$occq" history -d h.db --svg /dev/full
(ulimit -f 1; trap '' XFSZ; exec "$occq" history -d h.db gemm --svg limited.svg) >stdout 2>stderr && fail "a full disk is no success"
[ ! -e limited.svg ] || fail "half a picture"
expect 3 "$occq" history -d h.db nothing --svg nothing.svg
[ ! -e nothing.svg ] || fail "a picture of nothing"
# a clock that goes back by a year, and one that is decades ahead
awk 'BEGIN { srand(1); printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}], \"traceEvents\": ["
    for (h = 0; h < 30; h++)
        printf "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": 8, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": 1, \"registers per thread\": 64, \"shared memory\": 0, \"grid\": [9, 1, 1], \"block\": [256, 1, 1]}}", h ? ", " : "", (h == 29 ? 3767225600 : h > 20 ? 1735689600 : 1767225600) * 1000000 + h * 3600000000
    print "]}" }' >clock.json
expect 0 "$occq" import -d clock.db clock.json
expect 0 "$occq" history -d clock.db --svg clock.svg
has '2025-01-01 00:00:00 UTC 2089-05-19 00:00:00 UTC'
[ "$(grep -c '<line' clock.svg)" -le 40 ] && python3 -c 'import sys, xml.dom.minidom as d; [d.parse(f) for f in sys.argv[1:]]' clock.svg h.svg none.svg || fail "the picture of a clock that steps"
# labels and beginnings are those of the chosen runs: another run that overlaps has no part in the answer
trace slower 30 60 130
expect 0 "$occq" import -d two.db --label first main.json
expect 0 "$occq" import -d two.db --label slower slower.json
expect 0 "$occq" history -d two.db gemm
has ': slower'
expect 0 "$occq" history -d two.db gemm --label first
has 'labels, the newest 2026-01-01 00:00:00 UTC: first'
grep -q 'slower' stdout && { fail 'a label of a run that was not chosen'; cat stdout; }
# a recording whose times count from anywhere has no place beside the others
cat >anywhere.json <<'JSON'
{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000, "dur": 5, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "registers per thread": 64, "shared memory": 0, "grid": [1, 1, 1], "block": [32, 1, 1]}}],
 "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}]}
JSON
expect 0 "$occq" history -d h.db gemm --csv
cp stdout before
expect 0 "$occq" import -d h.db anywhere.json
expect 0 "$occq" history -d h.db gemm --csv
cmp -s stdout before || fail 'times that count from anywhere are in the history'
grep -q '1 imported run without absolute times is left out' stderr || { fail 'nobody says what is left out'; cat stderr; }
expect 0 "$occq" history -d h.db --run 3 --csv
[ "$(wc -l <stdout)" = 2 ] || fail '--run of such a recording'
expect 3 "$occq" history -d h.db nothing
expect 2 "$occq" history -d h.db --by week
expect 2 "$occq" history -d h.db '('
exit $failed
