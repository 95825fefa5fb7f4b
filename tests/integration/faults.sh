#!/bin/bash
# What goes wrong around a program never harms it: it runs as if it were alone, one clear line says what is missing, and
# the history keeps the reason or stays as it was.   faults.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
occq=$build/bin/occq

fail() { echo "FAILED: $title: $*"; failed=1; }
query() { "$occq" sql -d "${db:-h.db}" --csv "$1" | sed 1d; }
simulated() { "$here/scripts/simgpu" --build "$build" "$@"; }

unwrapped() { tr -s ' \n' '  ' <err; } # stderr without the summary's line breaks

# The case's title; the exit code and the text that stderr must have; the command.
expect() {
  title=$1
  local code=$2 text=$3
  shift 3
  "$@" >out 2>err
  local got=$?
  [ $got -eq "$code" ] || fail "exit code $got, not $code"
  [ -z "$text" ] || unwrapped | grep -qF -- "$text" || { fail "stderr lacks \"$text\":"; cat err; }
}
reason_kept() { query "SELECT level_reason FROM run ORDER BY run_id DESC LIMIT 1" | grep -qF -- "$1" || fail "the run's row lacks \"$1\""; }
said_it_all() { [ "$(cat out)" = "launches: $1" ] || fail "the program's output is not its own: $(head -3 out)"; }

trace=("$build/bin/occtrace" -d h.db)

expect "program not found" 127 "./nope: No such file" "${trace[@]}" ./nope
touch plain
expect "program not executable" 126 "./plain: Permission denied" "${trace[@]}" ./plain
expect "no driver" 77 "libcuda.so.1 cannot be loaded" env -u LD_LIBRARY_PATH "${trace[@]}" "$hello"
reason_kept "no CUDA driver"
expect "no use of CUDA" 0 "did not initialise CUDA" simulated "${trace[@]}" true
reason_kept "did not initialise CUDA"
expect "old libcupti" 0 "older than CUDA 12.2" env OCCSIM_CUPTI_VERSION=12 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
said_it_all 3
reason_kept "older than CUDA 12.2"
expect "no libcupti" 0 "cannot be opened: /nonexistent" \
  env OCCTRACE_CUPTI=/nonexistent/libcupti.so LD_LIBRARY_PATH="$build/simgpu" "${trace[@]}" "$hello" --launches 3
said_it_all 3
expect "no GPU" 77 "nothing was recorded: the CUDA driver found no GPU (error 100)" \
  env OCCSIM_FAULT=init:100 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
reason_kept "the CUDA driver found no GPU (error 100): CUPTI (version 130001) refused its callbacks: error 999, CUPTI_ERROR_UNKNOWN"
expect "CUPTI refuses, the driver does not" 0 "nothing was recorded: CUPTI (version 130001) refused kernel records: error 999" \
  env OCCSIM_FAULT=enable:999 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
said_it_all 3
expect "another profiler" 0 "another profiler uses CUPTI" \
  env OCCSIM_FAULT=enable:39 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
said_it_all 3
reason_kept "another profiler uses CUPTI"
expect "another injection" 0 "another tool is injected" \
  env CUDA_INJECTION64_PATH=/other/tool.so "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
said_it_all 3
expect "variables that are not valid" 0 "note: OCCTRACE_BUDGET, OCCTRACE_RING_SLOTS: not valid, ignored" \
  env OCCTRACE_BUDGET=abc OCCTRACE_RING_SLOTS=3 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 3
said_it_all 3
"$occq" runs -d h.db --run last | grep -q 'OCCTRACE_BUDGET, OCCTRACE_RING_SLOTS: not valid, ignored' || fail "not among the notes"
expect "cut off" 0 "launches, lost: unknown; it ended before its last records were delivered" simulated "${trace[@]}" "$hello" --launches 3 --_exit
[ "$(query "SELECT lost IS NULL AND lost_causes = 'unknown' FROM run ORDER BY run_id DESC LIMIT 1")" = 1 ] || fail "lost is known"
expect "a limit of file sizes" 0 "cannot write" bash -c 'ulimit -f 100; exec "$@"' - "$here/scripts/simgpu" --build "$build" \
  "$build/bin/occtrace" -d "it's limited.db" "$hello" --launches 3
said_it_all 3
expect "a name with a blank" 0 "-d 'it'\\''s named.db'" simulated "$build/bin/occtrace" -d "it's named.db" "$hello" --launches 3
expect "lost and mixed records" 0 "950 launches, 50 lost (cupti_dropped 50)" \
  env OCCSIM_FAULT=shuffle:7,drop:20 "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$hello" --launches 1000
said_it_all 1000
[ "$(query 'SELECT launches FROM run ORDER BY run_id DESC LIMIT 1')" = 950 ] || fail "not 950 launches"
case $(query 'SELECT cupti_path FROM run ORDER BY run_id DESC LIMIT 1') in
  */simgpu/libcupti.so.13*) ;;
  *) fail "the run's row does not name its libcupti" ;;
esac

# Graphs before CUPTI 13.3: fills of a graph that are not recorded take a place each, here of 32 x 1.
transformer=$build/samples/transformer
for version in 20 28 130001 130200 130300; do
  expect "graphs with CUPTI $version" 0 "" env OCCSIM_FAULT=leak:1 OCCSIM_CUPTI_VERSION=$version \
    "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$transformer" --steps 100
  [ "$(query 'SELECT count(*) FROM loss WHERE run_id = (SELECT max(run_id) FROM run)')" = 0 ] || fail "launches are lost"
  note=$(query "SELECT coalesce(cupti_note, 'none') FROM run ORDER BY run_id DESC LIMIT 1")
  case $version,$note in
    130300,none) ;;
    130300,*) fail "the run says '$note'" ;;
    *"libcupti before 13.3"*) ;;
    *) fail "the run says '$note'" ;;
  esac
done

# Where recording them does not help, launches without times are counted, not kept.
expect "a leak that recording does not avoid" 0 "(bad_times " env OCCSIM_FAULT=leak:1,leak_all:1 OCCSIM_CUPTI_VERSION=130001 \
  "$here/scripts/simgpu" --build "$build" "${trace[@]}" "$transformer" --steps 100
[ "$(query 'SELECT launches + lost FROM run ORDER BY run_id DESC LIMIT 1')" = 5800 ] || fail "not 5800 launches"

# Databases that cannot be used: the program runs, the file stays as it was.
echo "this is not a database, it only looks long enough to be one" >bad.db
cp bad.db bad.before
expect "not a database" 0 "not a database" simulated "$build/bin/occtrace" -d bad.db "$hello" --launches 3
said_it_all 3
cmp -s bad.db bad.before || fail "the file was changed"
expect "not a database, asked" 1 "not a database" "$occq" top -d bad.db

cp h.db newer.db
sqlite3 newer.db 'PRAGMA user_version = 99'
cp newer.db newer.before
expect "newer version" 0 "newer version" simulated "$build/bin/occtrace" -d newer.db "$hello" --launches 3
said_it_all 3
cmp -s newer.db newer.before || fail "the file was changed"
expect "newer version, asked" 1 "newer version" "$occq" top -d newer.db
expect "no history" 1 "no history at none.db" "$occq" top -d none.db

# Somebody else's history, in a directory where nothing can be made: read as it lies, and not written.
mkdir theirs
cp h.db theirs
chmod 444 theirs/h.db
chmod 555 theirs
as_stranger() { "$@"; }
if [ "$(id -u)" = 0 ]; then
  chmod 755 "$work"
  as_stranger() { setpriv --reuid=65534 --clear-groups "$@"; }
fi
if as_stranger test -x "$occq"; then
  expect "read-only, asked" 0 "" as_stranger "$occq" top -d theirs/h.db
  expect "read-only" 0 "may not be written" as_stranger "$here/scripts/simgpu" --build "$build" \
    "$build/bin/occtrace" -d theirs/h.db "$hello" --launches 3
  said_it_all 3
  cmp -s h.db theirs/h.db || fail "the file was changed"
else
  echo "SKIP: read-only (another user cannot reach $build)"
fi

cp h.db locked.db
mkfifo hold
sqlite3 locked.db <hold &
holder=$!
exec 9>hold
printf 'BEGIN EXCLUSIVE;\n.system touch held\n' >&9
until [ -e held ]; do sleep 0.05; done
expect "locked" 0 "locked" simulated "$build/bin/occtrace" -d locked.db "$hello" --launches 3
said_it_all 3
exec 9>&-
wait $holder

# A daemon that ends while its program runs, and no other comes.
for signal in KILL TERM; do
  title="SIG$signal of the daemon"
  db=$signal.db
  "$build/bin/occtraced" -d "$db" --socket "$work/$signal" --counters none 2>daemon.log &
  daemon=$!
  until [ -S "$signal" ] || ! kill -0 $daemon; do sleep 0.05; done
  "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" --socket "./$signal" "$hello" --spin --batch 5 --sleep-ms 10 >out 2>err &
  top=$!
  until [ "$(query 'SELECT sum(launches) > 0 FROM run' 2>/dev/null)" = 1 ] || ! kill -0 $top; do sleep 0.1; done
  kill -$signal $daemon
  wait $daemon 2>/dev/null
  kill -TERM $top
  wait $top 2>/dev/null
  unwrapped | grep -q 'lost: unknown, launches after ..:..:.. are missing' || fail "losses: $(cat err)"
  unwrapped | grep -q 'unknown ..:..:..-.*: occtraced ended before the program did' || fail "no reason: $(cat err)"
  [ "$(query "SELECT count(*) FROM run WHERE lost IS NULL AND lost_causes = 'unknown' AND end_ns IS NOT NULL")" = 1 ] || fail "the run seems to be complete"
  for command in top gaps; do "$occq" $command -d "$db" 2>&1 >/dev/null | grep -qE 'recorded in part|end of run [0-9]+ is missing' || fail "occq $command says nothing"; done
done
unset db

if mkdir small && mount -t tmpfs -o size=560k tmpfs small 2>/dev/null; then
  title="disk full"
  simulated "$build/bin/occtrace" -d small/h.db "$hello" --launches 200000 --threads 2 >out 2>err || fail "exit code $?"
  said_it_all 400000
  grep -q 'history lacks are lost, unless it can be written within 30 s' err || fail "no word about time for room: $(cat err)"
  unwrapped | grep -q 'lost: unknown, launches after ..:..:.. are missing' || fail "losses: $(cat err)"
  [ "$(db=small/h.db query 'SELECT count(*) FROM run WHERE lost IS NULL')" = 1 ] || fail "the run seems to be complete"
  [ "$(db=small/h.db query 'PRAGMA integrity_check')" = ok ] || fail "integrity_check"
  pkill -f "$work/small/h.db" # the private daemon would try for half a minute
  while pgrep -f "$work/small/h.db" >/dev/null; do sleep 0.1; done
  umount small
else
  echo "SKIP: disk full (no tmpfs can be mounted here)"
fi

# What users type.
expect "unknown option" 2 "unknown option '--frobnicate'" "$occq" top --frobnicate
expect "unknown command" 2 "did you mean 'top'" "$occq" tpo
expect "no path for a socket" 0 "" env XDG_RUNTIME_DIR="/$(printf '%0200d' 0)" "$occq" runs -d h.db
expect "bad regex" 2 "no kernel has this name, and '('" "$occq" top -d h.db --kernel '('
expect "bad duration" 2 "--since: '5parsecs'" "$occq" top -d h.db --since 5parsecs
expect "nothing fits" 3 "no launches match these filters" "$occq" top -d h.db --kernel no_such_kernel
expect "no SQL" 2 "Try 'occq sql --help'" "$occq" sql -d h.db
expect "bad SQL" 1 "syntax error" "$occq" sql -d h.db 'SELECT FROM'
expect "writing SQL" 1 "" "$occq" sql -d h.db 'DELETE FROM run'
expect "another file by SQL" 1 "" "$occq" sql -d h.db "ATTACH '/etc/passwd' AS x"
[ "$(query 'PRAGMA integrity_check')" = ok ] || fail "integrity_check"
exit $failed
