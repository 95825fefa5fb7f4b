#!/bin/bash
# Build trees share compiled kernels: nvcc runs once for the same compilers, arguments and sources, and again after a change of
# one of them; a failure leaves nothing.   nvcc_cache.sh SOURCE
set -u
nvcc_sh=$1/cmake/nvcc.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }
mkdir one two one/a.b
echo kernel >k.cu
echo header >k.h
cat >nvcc <<'SH'
#!/bin/sh
[ "$1" != --version ] || { cat version; exit 0; }
echo run >>runs
echo "ptxas: $1"
[ "$1" != -wrong ] || exit 3
while [ "$1" != -o ]; do shift; done
cat "$3" >"$2"
SH
chmod +x nvcc
echo 13.0 >version

# tree, runs of nvcc so far, arguments
made() {
  local tree=$1 runs=$2
  shift 2
  sh "$nvcc_sh" "$work/cache" "$work/$tree" "$work/$tree/k.fatbin" k.cu k.h -- ./nvcc "$@" || fail "$tree, $*: status $?"
  [ "$(wc -l <runs)" = "$runs" ] || fail "$tree, $*: $(wc -l <runs) runs of nvcc instead of $runs"
  cmp -s k.cu "$tree/k.fatbin" || fail "$tree, $*: another file"
  [ "$(cat "$tree/k.ptxas")" = "ptxas: $1" ] || fail "$tree, $*: said '$(cat "$tree/k.ptxas")'"
}
made one 1 -a
made two 1 -a
made one 1 -a
made one 2 -b "c d"
made two 3 -b c d
echo other >k.h; made one 4 -b c d
echo kernel 2 >k.cu; made two 5 -b c d
made one 5 -b c d
echo 13.1 >version; made one 6 -b c d
[ "$(find cache -type f | wc -l)" = 4 ] || fail "the cache keeps old files: $(ls cache)"

sh "$nvcc_sh" "$work/cache" "$work/one" "$work/one/k.fatbin" k.cu k.h -- ./nvcc -wrong >said 2>&1 && fail "a failure is no failure"
grep -q 'ptxas: -wrong' said || fail "a failure without its message"
[ ! -e one/k.fatbin ] && [ ! -e cache/k.fatbin.key ] || fail "a failure leaves a file"
made one 8 -b c d # the failure was a run
sh "$nvcc_sh" '' "$work/one" "$work/one/k.fatbin" k.cu k.h -- ./nvcc -b c d || fail "without a cache"
[ "$(wc -l <runs)" = 9 ] || fail "without a cache: $(wc -l <runs) runs"

sh "$nvcc_sh" '' "$work/one" "$work/one/a.b/program" k.cu -- ./nvcc -b || fail "a name without a suffix"
[ -e one/a.b/program.ptxas ] && [ ! -e one/a.ptxas ] || fail "messages of a name without a suffix"

# two builds at the same time
rm -rf cache
for tree in one two; do sh "$nvcc_sh" "$work/cache" "$work/$tree" "$work/$tree/k.fatbin" k.cu k.h -- ./nvcc -b & done
wait
made two 11 -b
exit $failed
