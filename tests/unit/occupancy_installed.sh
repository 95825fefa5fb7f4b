#!/usr/bin/env bash
# The model on its own: installs it to a new directory, compiles a program against what is there, as C and as C++, and
# runs it.
#   occupancy_installed.sh CMAKE BUILD_DIR CONSUMER.c CC CXX [FLAGS...]      CXX empty: no C++ compiler
set -euo pipefail
cmake=$1 build=$2 consumer=$3 cc=$4 cxx=$5
shift 5

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config"; exit 77; }
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --component occupancy --prefix "$prefix" >/dev/null

pc=$(find "$prefix" -name occtrace-occupancy.pc)
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags <<<"$(pkg-config --cflags --libs occtrace-occupancy)"
expected="7 blocks, 0.8750, registers, first advice registers 64, 32 points"

check() {
  got=$("$prefix/program")
  [ "$got" = "$expected" ] || { echo "$1: '$got' instead of '$expected'" >&2; exit 1; }
}

"$cc" -std=c11 -Wall -Wextra -Werror -o "$prefix/program" "$consumer" "${flags[@]}" "$@"
check C
if [ -n "$cxx" ] && command -v "$cxx" >/dev/null; then
  "$cxx" -x c++ -Wall -Wextra -Werror -o "$prefix/program" "$consumer" -x none "${flags[@]}" "$@"
  check C++
fi
