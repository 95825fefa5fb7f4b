#!/usr/bin/env bash
# cli_occtrace.sh OCCTRACE OCCQ LIBRARIES: programs without CUDA behave under occtrace as they do alone: status, signal,
# input and output, descriptors, signal handling; the run is recorded as "nothing" with the reason; nothing is left
# behind. Waiting is for events (a line in a pipe, a state of a process), never for a time.
set -u
occtrace=$1 occq=$2 libraries=$3
work=$(mktemp -d)
failed=0
export XDG_RUNTIME_DIR=$work/run XDG_STATE_HOME=$work/state HOME=$work LC_ALL=C
unset OCCTRACE_SOCKET LD_PRELOAD CUDA_INJECTION64_PATH
export ASAN_OPTIONS=verify_asan_link_order=0 # one case preloads before a sanitizer could
mkdir -m 700 "$work/run"
cleanup() {
    # shellcheck disable=SC2046
    kill -KILL $(jobs -p) 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1

fail() { echo "FAIL: $*"; failed=1; }
same() { [ "$2" = "$3" ] || fail "$1: '$2' alone, '$3' under occtrace"; }
quiet=("$occtrace" -q -d "$work/h.db")
traced() { "${quiet[@]}" "$@"; }

# ---- status and signal ----
for n in 0 1 7 42 124 125 126 127 128 255; do
    traced sh -c "exit $n"; same "exit status" "$n" $?
done
for signal in HUP INT QUIT ABRT KILL SEGV PIPE ALRM TERM USR1; do
    (sh -c "kill -$signal \$\$"; echo $? >alone) 2>/dev/null
    (traced sh -c "kill -$signal \$\$"; echo $? >traced) 2>/dev/null
    same "death by SIG$signal" "$(cat alone)" "$(cat traced)"
done
traced "$work/no-such-program" 2>err; same "not found" 127 $?
[ "$(wc -l <err)" = 1 ] || fail "not one line about a program that does not exist: $(cat err)"
traced no-such-program 2>/dev/null; same "not found in PATH" 127 $?
echo text >file; traced ./file 2>/dev/null; same "not executable" 126 $?
traced "$work" 2>/dev/null; same "a directory" 126 $?
printf 'exit 9\n' >script; chmod +x script; traced ./script; same "a script without #!" 9 $?
"$occtrace" 2>/dev/null; same "no program" 2 $?
"$occtrace" --lable x true 2>err; same "unknown option" 2 $?
grep -q -- "--lable.*--label" err || fail "no suggestion: $(cat err)"

# ---- input, output, environment, descriptors ----
head -c 300000 /dev/urandom >input
traced sh -c 'cat; echo problem >&2' <input >output 2>err
cmp input output || fail "stdin and stdout"
same stderr problem "$(cat err)"
same "no arguments changed" "$(printf '[%s]' a '' 'b c' -- -d)" "$(traced printf '[%s]' a '' 'b c' -- -d)"
env | grep -v '^_=' | sort >alone
traced env | grep -vE '^(_|OCCTRACE_SOCKET|OCCTRACE_SESSION|CUDA_INJECTION64_PATH)=' | sort >traced
diff alone traced || fail "environment"
both() { printenv LD_PRELOAD CUDA_INJECTION64_PATH OCCTRACE_PRELOAD_ALL | tr '\n' ' '; }
export -f both
guest=$libraries/libocctrace.so stub=$libraries/libocctrace-preload.so
same "what is injected" "$guest " "$(traced bash -c both)"
same "what is injected, LD_PRELOAD set" "libm.so.6 $guest " "$(LD_PRELOAD=libm.so.6 traced bash -c both)"
same "what is injected, --preload=all" "$stub $guest 1 " "$(traced --preload=all bash -c both)"
same "what is injected, --preload=none" "$guest " "$(traced --preload=none bash -c both)"
same "what is injected, another tool" "/other.so " "$(CUDA_INJECTION64_PATH=/other.so traced bash -c both)"
same "what is injected, another tool, none" "/other.so " "$(CUDA_INJECTION64_PATH=/other.so traced --preload=none bash -c both)"
same label "two words" "$(traced --label 'two words' printenv OCCTRACE_LABEL)"
text=$(head -c 255 /dev/zero | tr '\0' x) # as long as the program takes it
same "the longest label" "$text" "$(traced --label "$text" printenv OCCTRACE_LABEL)"
"$occtrace" --label "x$text" true 2>err; same "a label that is too long" 2 $?
grep -q -- "--label: longer than 255 bytes" err || fail "a label that is too long: $(cat err)"
session=$(traced printenv OCCTRACE_SESSION)
[[ $session =~ ^[0-9a-f]{32}$ ]] || fail "session '$session'"
list() { "$@" bash -c 'cd /proc/$$/fd && ls'; }
same descriptors "$(list env | tr '\n' ' ')" "$(list traced | tr '\n' ' ')"
same "descriptors, stdin closed" "$(list env <&- | tr '\n' ' ')" "$(list traced <&- | tr '\n' ' ')"
same "descriptors, stdin and stderr closed" "$(list env <&- 2>&- | tr '\n' ' ')" "$(list traced <&- 2>&- | tr '\n' ' ')"
same "descriptor 9" "$(list env 9<input | tr '\n' ' ')" "$(list traced 9<input | tr '\n' ' ')"
"$occtrace" -d closed.db sh -c 'exit 39' <&- >&- 2>&-; same "everything closed" 39 $?
[ "$("$occq" runs -d closed.db --csv -o level | sed '1d;s/\r$//')" = nothing ] || fail "everything closed: no run"
state() { "$@" grep -E '^Sig(Blk|Ign)' /proc/self/status; }
same "signal state" "$(state env)" "$(state traced)"
same "signal state, some ignored" "$(trap '' HUP INT USR1 CHLD; state env)" "$(trap '' HUP INT USR1 CHLD; state traced)"

# ---- signals sent to occtrace ----
mkfifo ready go
for signal in TERM HUP USR1 USR2; do
    "${quiet[@]}" bash -c "trap 'echo caught; exit 33' $signal; echo up >ready; while :; do read -t 0.05 -r x <>go; done" >out &
    pid=$!
    read -r _ <ready
    kill -$signal $pid
    wait $pid; same "SIG$signal forwarded" 33 $?
    same "SIG$signal forwarded once" caught "$(cat out)"
done
for signal in INT QUIT; do
    env --default-signal "${quiet[@]}" bash -c 'echo up >ready; read -r word <go; exit "$word"' &
    pid=$!
    read -r _ <ready
    kill -$signal $pid
    echo 34 >go
    wait $pid; same "SIG$signal is the terminal's business" 34 $?
done

# ---- stopping: under a shell with job control occtrace stops and goes on with its program ----
state_of() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
await_state() {
    local tries=0
    until [ "$(state_of "$1")" = "$2" ]; do
        tries=$((tries + 1))
        [ $tries -lt 60000 ] || { fail "process is '$(state_of "$1")', not '$2'"; return 1; }
        read -r -t 0.01 _ <>go
    done
    return 0 # not the last read's status, which is that of a time out
}
set -m
"${quiet[@]}" bash -c 'echo $$ >ready; kill -TSTP $$; exit 35' &
pid=$!
read -r _ <ready
await_state $pid T && kill -CONT -$pid
wait $pid; status=$?
[ $status -lt 128 ] || { wait $pid; status=$?; }
same "stopped and continued" 35 $status
set +m

# ---- the private daemon ----
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
daemon_of() {
    for child in $(children "$1"); do
        [ "$(cat "/proc/$child/comm" 2>/dev/null)" = occtraced ] && echo "$child"
    done
}
if [ -e /proc/$$/task/$$/children ]; then
    "${quiet[@]}" bash -c 'echo up >ready; read -r word <go; exit "$word"' 2>err &
    pid=$!
    read -r _ <ready
    first=$(daemon_of $pid)
    if [ -n "$first" ]; then
        kill -KILL "$first"
        tries=0
        until second=$(daemon_of $pid); [ -n "$second" ] && [ "$second" != "$first" ]; do
            tries=$((tries + 1))
            [ $tries -lt 60000 ] || { fail "the daemon is not started again"; break; }
            read -r -t 0.01 _ <>ready
        done
    else
        fail "no private daemon"
    fi
    echo 36 >go
    wait $pid; same "a killed daemon" 36 $?
fi
# nothing is preloaded or injected into it
cat >environment.sh <<'SH'
for task in /proc/[0-9]*; do
    [ "$(cut -d ' ' -f 4 $task/stat 2>/dev/null)" = "$PPID" ] && grep -q '^occtraced$' $task/comm && tr '\0' '\n' <$task/environ
done
SH
LD_PRELOAD=libm.so.6 CUDA_INJECTION64_PATH=/other.so traced bash environment.sh >daemon-environment
grep -q ^HOME= daemon-environment || fail "no environment of the private daemon"
grep -E '^(LD_PRELOAD|CUDA_INJECTION64_PATH)=' daemon-environment && fail "injected into the private daemon"
mkdir db-is-a-directory
"$occtrace" -d db-is-a-directory sh -c 'exit 37' 2>err; same "a database that cannot be" 37 $?
grep -q 'without being observed' err || fail "no word about it: $(cat err)"
grep -q 'error:' err && fail "the daemon's prefix in occtrace's message: $(cat err)"
# with few descriptors the daemon fails at one step or another, some of them after the program has started
for descriptors in 6 7 8 9 10 11 12; do
    rm -f few.db*
    (ulimit -n $descriptors && "$occtrace" -d few.db sh -c 'exit 35') 2>err; same "$descriptors descriptors" 35 $?
    grep -qE 'error: *(;|$)' err && fail "$descriptors descriptors: no reason: $(cat err)"
    grep -qE 'without being observed|may lack the end|nothing was recorded' err || fail "$descriptors descriptors: no word: $(cat err)"
done
cp "$occtrace" alone-in-its-directory; ./alone-in-its-directory sh -c 'exit 38' 2>err; same "no library" 38 $?
[ "$(wc -l <err)" = 1 ] || fail "not one line about a library that does not exist: $(cat err)"

# a socket's path has at most 107 bytes: no other daemon gets the run
long=$(printf '/%0107d' 0)
"$occtrace" --socket "$long" sh -c 'echo "${OCCTRACE_SOCKET-none}"; exit 39' >out 2>err; same "a long --socket" 39 $?
[ "$(cat out)" = none ] || fail "a long --socket: the program got $(cat out)"
grep -q -- '--socket: longer than 107 bytes' err && ! grep -q 'as soon as one does' err || fail "a long --socket: $(cat err)"
"$occtrace" --socket "${long%?}" sh -c 'exit 39' 2>err; same "a --socket of 107 bytes" 39 $?

# ---- what the history and the summary say ----
"$occtrace" -d one.db --label mark sh -c 'exit 0' 2>err
grep -q '^occtrace: nothing was recorded: ' err || fail "no reason on stderr: $(cat err)"
OCCTRACE_DISABLE=1 "$occtrace" -d off.db true 2>&1 | grep -q 'OCCTRACE_DISABLE=1 is in' || fail "OCCTRACE_DISABLE is not named"
"$occq" runs -d one.db --csv -o level,label,program,launches >rows || fail "occq runs"
printf 'level,label,program,launches\nnothing,mark,%s,0\n' "$(basename "$(realpath "$(command -v sh)")")" >want
diff want rows || fail "the run's row"
"$occq" runs -d one.db --json -o reason | grep -qE '"level_reason": "(no CUDA driver|the program did not)' || fail reason
[ -z "$(ls -A "$work/run")" ] || fail "left behind: $(ls -A "$work/run")"
exit $failed
