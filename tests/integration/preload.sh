#!/usr/bin/env bash
# What libocctrace-preload.so does to a program's environment, and what it needs of a C library: of glibc's programs, and of
# musl's where musl-gcc is here.   preload.sh STUB COMPILER
set -u
stub=$1 compiler=$2
guest=${stub%/*}/libocctrace.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "${stub%/*}" || exit 1 # for a relative path
failed=0
fail() { echo "FAILED: $*"; failed=1; }
unset LD_PRELOAD CUDA_INJECTION64_PATH OCCTRACE_DISABLE OCCTRACE_PRELOAD_ALL

# It links no library, exports nothing, and needs one object that every C library has under this name, without a version.
readelf -dW "$stub" | grep -E 'NEEDED|VERNEED|TEXTREL' && fail "it links something"
symbols=$(readelf --dyn-syms -W "$stub" | awk '$1 ~ /^[0-9]+:$/ && NF > 7 { print $5, $7, $8 }' | sort | tr '\n' ';')
[ "$symbols" = 'WEAK UND __environ;' ] || fail "symbols: $symbols"

cat >"$work/show.c" <<'C'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    const char *list = getenv("LD_PRELOAD"), *injected = getenv("CUDA_INJECTION64_PATH");
    int n = 0;
    while (environ[n])
        n++;
    printf("[%s] [%s] %d %d\n", list ? list : "-", injected ? injected : "-", n, errno);
    if (argc > 1 && strcmp(argv[1], "twice") == 0)
        return fflush(stdout) || execl(argv[0], argv[0], (char *)0);
    return 0;
}
C
try() { # title; what the program shows; LD_PRELOAD; more variables
  local title=$1 expected=$2 list=$3 shown
  shift 3
  shown=$(env -i "LD_PRELOAD=$list" "$@" "$work/show" 2>&1)
  [ "$shown" = "$expected" ] || fail "$program, $title: '$shown', not '$expected'"
}
cases() {
  local other=$1 # a library that these programs can load
  try alone "[-] [$guest] 1 0" "$stub"
  try "in front" "[$other] [$guest] 2 0" "$stub:$other"
  try "at the end" "[$other] [$guest] 2 0" "$other:$stub"
  try between "[$other:$other] [$guest] 2 0" "$other:$stub:$other"
  try "blanks" "[$other $other] [$guest] 2 0" "$other $stub $other"
  try "twice" "[$other] [$guest] 2 0" "$stub:$other:$stub"
  try "only separators left" "[-] [$guest] 1 0" ":$stub:"
  try "another tool's variable" "[-] [/other.so] 1 0" "$stub" CUDA_INJECTION64_PATH=/other.so
  try "kept" "[$other:$stub] [$guest] 3 0" "$other:$stub" OCCTRACE_PRELOAD_ALL=1
  try "kept, not wanted" "[-] [$guest] 2 0" "$stub" OCCTRACE_PRELOAD_ALL=0
  try "a path that is not absolute" "[$other:./${stub##*/}] [-] 1 0" "$other:./${stub##*/}"
  try "another's library" "[$other] [-] 1 0" "$other"
  # the program that it executes sees the variable only, and nothing is preloaded into it
  [ "$(env -i "LD_PRELOAD=$stub" "$work/show" twice 2>&1)" = "[-] [$guest] 1 0"$'\n'"[-] [$guest] 1 0" ] ||
    fail "$program: the next program differs"
}
for kind in -pie -no-pie; do # the latter has a copy of the environment's pointer of its own
  program="glibc's, $kind"
  "$compiler" $kind -o "$work/show" "$work/show.c" || fail "cannot compile"
  cases libm.so.6
done
if command -v musl-gcc >/dev/null; then
  program="musl's"
  musl-gcc -o "$work/show" "$work/show.c" && echo 'int nothing;' | musl-gcc -shared -o "$work/other.so" -x c - || fail "cannot compile"
  cases "$work/other.so"
else
  echo "musl-gcc is not here: tried with glibc only"
fi
exit $failed
