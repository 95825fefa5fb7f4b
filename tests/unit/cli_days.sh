#!/usr/bin/env bash
# cli_days.sh OCCQ: occq history in several time zones. Days are UTC's everywhere, minutes and hours are in local time, and the screen
# names the zone. A local time that occurs twice is refused.
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
has() { tr -s '\n ' ' ' <"$1" | grep -qF -- "$2" || { fail "TZ=$TZ: $1 lacks: $2"; cat "$1"; }; }

# a launch in each hour from 2026-10-23 00:00 UTC for ten days; clocks are put back in Berlin on 25 October, in New York on 1 November
first=1792713600 hours=240
awk -v first=$first -v hours=$hours 'BEGIN {
    printf "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108}], \"traceEvents\": ["
    for (h = 0; h < hours; h++)
        printf "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": %.0f, \"dur\": 8, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": 1, \"registers per thread\": 64, \"shared memory\": 0, \"grid\": [9, 1, 1], \"block\": [256, 1, 1]}}", h ? ", " : "", (first + h * 3600) * 1000000 + 17
    print "]}" }' >days.json
expect 0 "$occq" import -d h.db --label days days.json
for day in $(seq 0 9); do echo "$(((first + day * 86400)))000000000,24"; done >wanted
"$occq" sql -d h.db --csv 'SELECT start_ns / 86400000000000 * 86400000000000, count(*) FROM launch GROUP BY 1 ORDER BY 1' | tail -n +2 | cmp - wanted || fail "SQL"
for TZ in UTC CET-1CEST,M3.5.0,M10.5.0/3 EST5EDT,M3.2.0,M11.1.0 IST-5:30 NZST-12NZDT,M9.5.0,M4.1.0/3; do
    export TZ
    expect 0 "$occq" history -d h.db --by day --csv -o start,launches
    tail -n +2 stdout | cmp - wanted || fail "TZ=$TZ: days"
    expect 0 "$occq" history -d h.db --by day --json
    [ "$(grep -o '"start_ns": [0-9]*, "launches": 24' stdout | tr -dc '0-9, \n' | tr -d ' ' | sed 's/,24$/,24/')" = "$(cat wanted)" ] || fail "TZ=$TZ: days in JSON"
    expect 0 "$occq" history -d h.db --by day --svg days.svg
    has stdout '2026-10-23 00:00:00 UTC'
    has stdout '2026-11-01 00:00:00 UTC'
    has stdout '2026-10-23 00:00:00 UTC: days'
    has days.svg '2026-10-23 00:00:00 UTC to 2026-11-01 00:00:00 UTC'
    has days.svg 'time (UTC)'
    has days.svg '>2026-10-23<'
    expect 0 "$occq" history -d h.db --by day -o start,launches
    has stdout '2026-10-23 00:00:00 UTC 24'
done
export TZ=CET-1CEST,M3.5.0,M10.5.0/3
expect 0 "$occq" history -d h.db --by hour --svg hours.svg
has stdout '2026-10-23 02:00:00 CEST'
has stdout '2026-11-02 00:00:00 CET'
has hours.svg 'time (CEST/CET)'
expect 0 "$occq" history -d h.db --since '2026-10-25 03:00' --csv -o start,launches # the first hour after clocks were put back
[ "$(sed -n 2p stdout)" = 1792893600000000000,1 ] || fail "an hour after the change: $(sed -n 2p stdout)"
for option in --since --until; do
    expect 2 "$occq" history -d h.db $option '2026-10-25 02:30'
    has stderr "occurs twice, since clocks are put back: @1792888200 or @1792891800 names one of them"
done
expect 2 "$occq" diff -d h.db 'until:2026-10-25 02:30' 'since:2026-10-25 02:30'
has stderr 'occurs twice'
expect 0 "$occq" top -d h.db --since @1792888200
export TZ=EST5EDT,M3.2.0,M11.1.0
expect 2 "$occq" top -d h.db --since '2026-11-01 01:30'
has stderr 'occurs twice'
exit $failed
