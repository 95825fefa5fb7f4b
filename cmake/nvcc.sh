#!/bin/sh
# nvcc.sh CACHE TREE OUTPUT SOURCE [HEADER...] -- NVCC [ARGUMENT...]
#
# Compiles SOURCE to OUTPUT, a file of the build tree TREE. The messages of nvcc and ptxas go to a file beside OUTPUT, with .ptxas
# in place of its suffix. A folder CACHE ('' for none) keeps the newest file of each name: other build trees copy the file
# if the compilers, the arguments and the sources are the same. nvcc takes seconds for a file, and all presets need the same files.
set -eu
cache=$1 tree=$2 output=$3 source=$4
case ${output##*/} in
  *.*) log=${output%.*}.ptxas ;;
  *) log=$output.ptxas ;;
esac
shift 3
contents=$(for file; do [ "$file" != -- ] || break; cat "$file"; done | sha256sum)
while [ "$1" != -- ]; do shift; done
shift

compile() {
  "$@" -o "$output" "$source" >"$log" 2>&1 || { cat "$log"; rm -f "$output"; exit 1; }
}

[ -n "$cache" ] || { compile "$@"; exit 0; }
mkdir -p "$cache"
kept=$cache/$(printf '%s' "${output#"$tree"/}" | tr / _)
exec 9>"$kept.lock"
flock 9 # another build may make the same file
key=$({ "$1" --version; cc --version; printf '%s\n' "$contents" "$@"; } | sha256sum)
if [ ! -e "$kept.key" ] || [ "$(cat "$kept.key")" != "$key" ]; then
  rm -f "$kept.key"
  compile "$@"
  cp "$output" "$kept"
  cp "$log" "$kept.ptxas"
  printf '%s\n' "$key" >"$kept.key" # last: the entry is whole
else
  cp "$kept.ptxas" "$log"
  cp "$kept" "$output"
fi
