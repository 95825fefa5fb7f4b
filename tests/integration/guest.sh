#!/bin/bash
# The program's stdout, stderr, exit code and signal are the same with and without occtrace.   guest.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
hello=$build/samples/hello
[ -x "$hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ulimit -c 0
failed=0

# In a shell of its own, whose messages about signals do not count.
run() { # NAME command...: leaves NAME.out, NAME.err, NAME.code
  local name=$1
  shift
  ( "$@" >"$name.out" 2>"$name.err" </dev/null; echo $? >"$name.code" ) 2>/dev/null
}

check() { # what the case is called; the program's arguments
  local title=$1
  shift
  run bare "$here/scripts/simgpu" --build "$build" "$hello" "$@"
  run traced "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -q -d "$work/h.db" "$hello" "$@"
  for part in out err code; do
    if ! cmp -s bare.$part traced.$part; then
      echo "FAILED: $title: $part differs"
      diff bare.$part traced.$part | head -5
      failed=1
    fi
  done
}

check "plain" --launches 100
check "four threads" --launches 100 --threads 4
check "much output" --launches 10 --stdout 100000
check "exit code 7" --launches 10 --exit 7
check "exit code 255" --launches 10 --exit 255
check "_exit" --launches 10 --_exit
check "abort" --launches 10 --abort
check "segmentation fault" --launches 10 --segv
check "fork" --launches 10 --fork
check "exec" --launches 10 --exec

# A signal from outside: the caller sees the program's death by that signal.
for signal in TERM INT HUP USR1; do
  "$here/scripts/simgpu" --build "$build" "$build/bin/occtrace" -q -d "$work/h.db" "$hello" --spin >spin.out 2>spin.err &
  top=$!
  until program=$(pgrep -P $top -x hello) || ! kill -0 $top; do sleep 0.05; done
  kill -$signal "$program"
  wait $top 2>/dev/null
  code=$?
  [ $code -eq $((128 + $(kill -l $signal))) ] || { echo "FAILED: SIG$signal gives exit code $code"; failed=1; }
done

# The same database has taken all of it.
[ "$("$build/bin/occq" sql -d h.db --csv 'PRAGMA integrity_check' | sed 1d)" = ok ] || { echo "FAILED: integrity"; failed=1; }
stored=$("$build/bin/occq" sql -d h.db --csv 'SELECT count(*) FROM launch' | sed 1d)
[ "$stored" -ge 200 ] || { echo "FAILED: $stored launches"; failed=1; }
exit $failed
