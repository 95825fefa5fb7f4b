#!/bin/sh
# Makes an LTTng session, runs bench_ring_lttng in it, prints its one line; or one line that says what is missing.
# Uses a session daemon that runs, else starts one of its own and ends it.
program=$1
command -v lttng >/dev/null 2>&1 && command -v lttng-sessiond >/dev/null 2>&1 || { echo "lttng-tools is not installed"; exit 1; }
work=$(mktemp -d) || exit 1
session=occtrace-bench-$$
daemon=
finish() {
    lttng --no-sessiond destroy "$session" >/dev/null 2>&1
    [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
[ "$(id -u)" = 0 ] || export LTTNG_HOME="$work"
if ! lttng --no-sessiond list >/dev/null 2>&1; then
    lttng-sessiond --no-kernel >/dev/null 2>&1 &
    daemon=$!
    tries=0
    until lttng --no-sessiond list >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "the session daemon of LTTng did not start"; exit 1; }
        sleep 0.1
    done
fi
{
    lttng --no-sessiond create "$session" --output="$work/trace" &&
    lttng --no-sessiond enable-channel --session="$session" --userspace --discard --subbuf-size=4M --num-subbuf=8 launches &&
    lttng --no-sessiond enable-event --session="$session" --userspace --channel=launches 'occtrace_bench:*' &&
    lttng --no-sessiond start "$session"
} >/dev/null 2>&1 || { echo "the session could not be made"; exit 1; }
"$program"
