#!/bin/bash
# Where libcupti lies only in Python's packages: a C program is recorded, a private daemon measures it, and a daemon that finds
# none of its own takes the one that the program reports, unless others may have written it.   packages.sh BUILD
set -u
build=$1
[ -x "$build/samples/hello" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no sample or no simulated device"; exit 77; }
toolkit=$(readlink -f /usr/local/cuda || true)
if [ -z "${OCC_TEST_HIDDEN:-}" ]; then # the toolkit is hidden in a mount namespace
  export OCC_TEST_HIDDEN=1
  [ -d "$toolkit" ] || exec bash "$0" "$@"
  unshare --mount true 2>/dev/null || { echo "SKIP: no mount namespace"; exit 77; }
  exec unshare --mount bash -c 'mount -t tmpfs none "$0" || exit 77; exec bash "$@"' "$toolkit" "$0" "$@"
fi
work=$(mktemp -d -p /var/tmp) # /tmp may be a mount with nosuid, of which root's daemon takes no library
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
title=
fail() { echo "FAILED: $title: $*"; failed=1; }
query() { "$build/bin/occq" sql -d h.db --csv "$1" | sed '1d; s/"//g'; }

site=venv/lib/python3.12/site-packages/nvidia/cu13/lib
mkdir -p driver counters $site
cp -P "$build"/simgpu/libcuda.so* "$build"/simgpu/libnvidia-ml.so* driver/
cp "$build/simgpu/libcupti.so.13" $site/
export LD_LIBRARY_PATH=$work/driver OCCSIM_COUNTERS=$work/counters OCCSIM_BLOCK_NS=2000000 OCCSIM_GPU=h200 PATH=/usr/bin:/bin
unset OCCTRACE_CUPTI CUDA_HOME CUDA_PATH VIRTUAL_ENV
hello=("$build/samples/hello" --launches 400 --batch 4)

title="no libcupti at all"
"$build/bin/occtrace" -d h.db "${hello[@]}" >out 2>err || fail "exit code $?"
tr -s ' \n' '  ' <err | grep -q "nothing was recorded: no libcupti was found" || fail "$(cat err)"

title="in a virtual environment"
rm -f h.db*
VIRTUAL_ENV=$work/venv "$build/bin/occtrace" -q -d h.db "${hello[@]}" >out 2>err || fail "exit code $?: $(cat err)"
[ "$(query 'SELECT count(*) FROM launch')" = 400 ] || fail "not all launches are in the history"
[ "$(query 'SELECT level FROM run')" = full ] || fail "level $(query "SELECT level || ': ' || level_reason FROM run")"
[ "$(query 'SELECT cupti_path FROM run')" = "$(readlink -f $site)/libcupti.so.13" ] || fail "not its libcupti: $(query 'SELECT cupti_path FROM run')"

title="in packages that others may write"
rm -f h.db*
chmod 777 venv/lib
VIRTUAL_ENV=$work/venv "$build/bin/occtrace" -d h.db "${hello[@]}" >out 2>err || fail "exit code $?: $(cat err)"
tr -s ' \n' '  ' <err | grep -q "is not trusted: .*venv/lib can be written by others" || fail "$(cat err)"
chmod 755 venv/lib

# A service: the program finds the library, the daemon does not.
serve() { # the program's libcupti
  title=$1
  rm -f h.db*
  "$build/bin/occtraced" --db h.db --socket "$work/socket" --counters auto >daemon.log 2>&1 &
  local daemon=$!
  for _ in $(seq 200); do [ -S socket ] && break; sleep 0.05; done
  OCCTRACE_CUPTI=$2 "$build/bin/occtrace" -q --socket "$work/socket" "$build/samples/hello" --launches 600 --batch 4 --sleep-ms 4 >out 2>err ||
    fail "exit code $?: $(cat err)"
  kill $daemon
  wait $daemon
  [ "$(query 'SELECT count(*) FROM launch')" = 600 ] || fail "not all launches are in the history"
}
serve "a daemon takes the program's" "$work/$site/libcupti.so.13"
[ "$(query 'SELECT level FROM run')" = full ] || fail "level $(query "SELECT level || ': ' || level_reason FROM run"): $(tail -3 daemon.log)"
mkdir -m 777 open
cp $site/libcupti.so.13 open/
serve "a daemon leaves one that others may write" "$work/open/libcupti.so.13"
[ "$(query 'SELECT level FROM run')" = gpm ] || fail "level $(query 'SELECT level FROM run')"
query 'SELECT level_reason FROM run' | grep -q "is not trusted: .*open can be written by others" || fail "$(query 'SELECT level_reason FROM run')"
exit $failed
