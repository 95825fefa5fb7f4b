#!/usr/bin/env bash
# cli_sampler.sh OCCTRACED OCCQ FAKE_DAEMON: occq sampler against a daemon without a GPU, and against answers that a file
# holds. Prints what differs; 0 if nothing does.
set -u
occtraced=$1 occq=$2 fake=$3
work=$(mktemp -d)
chmod 755 "$work" # for the other user below
daemon=
failed=0
finish() {
    [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon"; } 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
export NO_COLOR=1 LC_ALL=C

# serve COMMAND...: in the background, until its socket is there
serve() {
    [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon"; } 2>/dev/null
    rm -f "$work/socket"
    "$@" 2>"$work/log" &
    daemon=$!
    while kill -0 "$daemon" 2>/dev/null; do
        [ -S "$work/socket" ] && return
        sleep 0.01
    done
    echo "no socket: $*"; cat "$work/log"; exit 1
}

# expect STATUS TEXT COMMAND...: exit status, and a line of stdout or stderr that holds TEXT ("": nothing is said)
expect() {
    local status=$1 text=$2 said rc
    shift 2
    said=$("$@" 2>&1); rc=$?
    if [ $rc -ne "$status" ] || { [ -n "$text" ] && ! grep -qF -- "$text" <<<"$said"; } || { [ -z "$text" ] && [ -n "$said" ]; }; then
        echo "FAIL: $*: status $rc instead of $status, '$text' is not in:"
        echo "$said"
        failed=1
    fi
}
sampler() { "$occq" sampler --socket "$work/socket" "$@"; }

# ---- without a daemon, and with arguments that are none
expect 1 "no daemon listens at $work/socket" sampler status
[ -e /run/occtrace/occtraced.sock ] || # the system's service would answer
    OCCTRACE_SOCKET=$work/socket expect 1 "no daemon listens at $work/socket (\"occtraced --counters auto\" starts one)" "$occq" sampler status
expect 1 "no daemon listens at $work/socket" sampler
expect 2 "did you mean 'status'?" sampler stats
expect 2 "--for is for pause" sampler resume --for 5m
expect 2 "--for: '25h' is out of range (1 ns to 1 d)" sampler pause --for 25h
expect 2 "--for:" sampler pause --for soon
expect 2 "--json, --csv and -o are for status" sampler pause --json
expect 2 "unknown column" sampler status -o sourc

# ---- a daemon without counters
printf 'socket:\n  mode: "0666"\n' >"$work/config"
serve "$occtraced" --config "$work/config" --db "$work/history.db" --socket "$work/socket" --counters none --log-level info
expect 3 "hardware counters are switched off" sampler status
expect 3 '"sampler": []' sampler status --json
expect 0 "paused for 10 min (\"occq doctor --counters resume\" ends it)" sampler pause
expect 3 "paused for another 10 min" sampler status
grep -q "paused for 600 s by process [0-9]* of uid $(id -u)" "$work/log" || { echo "FAIL: the pause is not in the log"; failed=1; }
expect 0 "paused for 2 s" sampler pause --for 1500ms # in whole seconds
grep -q "paused for 2 s" "$work/log" || { echo "FAIL: not rounded up"; failed=1; }
expect 0 "resumed" sampler resume
if sampler status 2>&1 | grep -q paused; then echo "FAIL: still paused"; failed=1; fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp "$occq" "$work/occq" # where anybody can read it
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$work/occq" sampler --socket "$work/socket" "$@"; }
    expect 3 "hardware counters are switched off" other status
    expect 1 "only root and the daemon's own user" other pause
    expect 1 "only root and the daemon's own user" other resume
    if sampler status 2>&1 | grep -q paused; then echo "FAIL: paused by somebody else"; failed=1; fi
else
    echo "left out: a request of another user (needs root and setpriv)"
fi

# ---- answers
mkdir "$work/answers"
head=$'ok\nmode auto\npaused_s 90\ngpus 2\n'
printf '%sgpu 0\nuuid 00ff\nsource pm\nstate ok\nreason \nsamples 1234\nbad_samples 5\noverflows 1\ngaps 2\nlaunches 77\ndropped 3\noffset_ns -1500\ndrift_ppm 3.456\nresidual_ratio 0.025\nlater_key 1\n' \
    "$head" >"$work/answers/sampler_0"
printf '%sgpu 1\nuuid 01\nsource none\nstate busy\nreason another tool \033[31muses\007 it\nsamples 0\nbad_samples -1\ndrift_ppm nan\noffset_ns 1e99\nlaunches\n' \
    "$head" >"$work/answers/sampler_1"
serve "$fake" "$work/socket" "$work/answers"
cat >"$work/expected" <<'END'
GPU SOURCE STATE SAMPLES OVERFLOWS GAPS   OFFSET DRIFT RESIDUAL LAUNCHES DROPPED REASON
  0 pm     ok       1234         1    2 -1500 ns  3.46     2.5%       77       3 -
  1 none   busy        0         -    -        -     -        -        -       - another tool ?[31muses? it
occq doctor: paused for another 1.5 min ("occq doctor --counters resume" ends it)
END
sampler status >"$work/said" 2>&1 || { echo "FAIL: status of two GPUs"; failed=1; }
sed -i 's/ *$//' "$work/said"
diff -u "$work/expected" "$work/said" || failed=1
expect 0 '"gpu": 0, "source": "pm", "state": "ok", "samples": 1234, "bad_samples": 5, "overflows": 1, "gaps": 2, "offset_ns": -1500, "drift_ppm": 3.456, "residual_ratio": 0.025, "launches": 77, "dropped": 3, "mode": "auto", "paused_s": 90, "uuid": "00ff", "reason": null' \
    sampler status --json
expect 0 '"bad_samples": null, "overflows": null, "gaps": null, "offset_ns": null, "drift_ppm": null' sampler status --json
printf 'ok\ngpus 100000\n' >"$work/answers/sampler_0"
expect 1 "the daemon's number of GPUs" sampler status
printf 'ok\nmode\n\n \ngpus' >"$work/answers/sampler_0"
expect 1 "the daemon's number of GPUs" sampler status
printf 'ok' >"$work/answers/sampler_0"
expect 1 "the daemon's number of GPUs" sampler status
printf 'ok\ngpus 1\ngpu 0\nreason %03000d\n' 0 >"$work/answers/sampler_0"
expect 0 0000000000 sampler status
printf 'error \033[2Jgo away' >"$work/answers/sampler_0"
expect 1 "?[2Jgo away" sampler status
expect 1 "no such answer" sampler pause
exit $failed
