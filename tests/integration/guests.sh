#!/usr/bin/env bash
# Programs that do odd things, each run without and with occtrace: stdout, stderr and the exit status or signal must be the same,
# byte for byte.
#
#   guests.sh BUILD [--all] [--table FILE]     --all: also the slow and the many; --table: what was compared, as markdown
#
# A row is `row [-l N] TITLE COMMAND...`: the command runs in the simulated device's environment; N launches must be in the
# history then (with -l some: at least one); with -n occtrace may note on stderr what it cannot do. Rows of one kind follow each other; what cannot be tried here says so.
set -u
build=$(cd "$1" && pwd) || exit 1
shift
all= table=
while [ $# -gt 0 ]; do
  case $1 in
    --all) all=yes ;;
    --table) table=$2; shift ;;
  esac
  shift
done
here=$(cd "$(dirname "$0")/../.." && pwd)
guests=$build/bin/guests image=$build/tests/samples/images/hello.fatbin
[ -e "$image" ] && [ -e "$build/simgpu/libcuda.so.1" ] || { echo "SKIP: no device code or no simulated device"; exit 77; }
work=$(mktemp -d)
chmod 755 "$work"
finish() {
  umount "$work"/*/ 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
ulimit -c 0
export XDG_RUNTIME_DIR=$work XDG_STATE_HOME=$work/state HOME=$work LC_ALL=C GUESTS_IMAGE=$image
export LD_LIBRARY_PATH=$build/simgpu OCCTRACE_CUPTI=$build/simgpu/libcupti.so.13 OCCSIM_GPU=h200
unset LD_PRELOAD CUDA_INJECTION64_PATH OCCTRACE_SOCKET OCCTRACE_DISABLE
options=(-q --counters=none)
failed=0 rows=0 lines=()
root=; [ "$(id -u)" = 0 ] && root=yes

# What the command is run by, in front of occtrace too: before=(...). Options of occtrace: options=(...).
before=() occtrace=$build/bin/occtrace
row() {
  local launches= title different= end stored=- notes=
  [ "$1" = -l ] && { launches=$2; shift 2; }
  [ "$1" = -n ] && { notes=yes; shift; }
  title=$1
  shift
  rm -f h.db* ./*.out ./*.err ./*.end
  "$guests" --run bare "${before[@]}" "$@" <"${input:-/dev/null}"
  "$guests" --run traced "${before[@]}" "$occtrace" "${options[@]}" -d "$work/h.db" "$@" <"${input:-/dev/null}"
  rows=$((rows + 1))
  [ -z "$notes" ] || sed -i '/^occtrace: /d' traced.err
  for part in out err end; do
    cmp -s bare.$part traced.$part && continue
    different+=" $part"
    diff -a bare.$part traced.$part | head -5
  done
  end=$(cat bare.end 2>/dev/null || echo hangs)
  case $end in hangs|"exit 9"[2-9]) different+=" (alone: $end)" ;; esac
  if [ -e h.db ]; then
    stored=$("$build/bin/occq" sql -d h.db --csv 'SELECT coalesce(sum(launches), 0) FROM run' | sed 1d)
  fi
  [ -z "$launches" ] || [ "$stored" = "$launches" ] || different+=" launches ($stored, not $launches)"
  [ -z "$different" ] || { echo "FAILED: $title:$different"; failed=1; }
  lines+=("| $title | $end | $(wc -c <bare.out) + $(wc -c <bare.err) | ${different:-same} | $stored |")
}
slow() { [ -z "$all" ] || row "$@"; }
skip() {
  echo "SKIP: $1"
  lines+=("| $1 | | | not tried here | |")
}
have() { command -v "$1" >/dev/null || { skip "$2 (no $1)"; false; }; }

. "$here/tests/integration/guests/rows.sh"

echo "$rows programs compared"
if [ -n "$table" ]; then
  {
    echo "# Programs with and without occtrace"
    echo
    echo "\`tests/integration/guests.sh BUILD --all --table FILE\` on $(date -u +%F): stdout, stderr and the end of each program, compared byte for byte."
    echo "$rows programs, simulated H200; the last column is the launches in the history (-: no history could be written)."
    echo
    echo "| program | ends with | bytes on stdout + stderr | under occtrace | launches |"
    echo "|---|---|---|---|---|"
    printf '%s\n' "${lines[@]}"
  } >"$table"
fi
exit $failed
