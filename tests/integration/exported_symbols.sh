#!/bin/sh
# The libraries that live in other people's processes export what others look for, link nothing but libc, and need no version
# of glibc above 2.17; the always-on one has nothing of what --exact does in it. Programs need no version above 2.34.
#   exported_symbols.sh LIBOCCTRACE LIBOCCTRACE_EXACT LIBOCCTRACE_NVTX LIBOCCTRACE_PRELOAD PROGRAM...
status=0
fail() {
  echo "$1"
  status=1
}

works_with() { # file, minor version of glibc
  newer=$(objdump -T "$1" | awk -v most="$2" 'NF > 4 { version = $(NF - 1); gsub(/[()]/, "", version)
    if (split(version, part, /[_.]/) >= 3 && part[1] == "GLIBC" && part[2] == 2 && part[3] > most + 0) print $NF "@" version }' | xargs)
  [ -z "$newer" ] || fail "$1 needs a newer glibc than 2.$2: $newer"
}

# A symbol that glibc 2.34 moved into libc has its old version and the library that had it.
old_enough() {
  works_with "$1" 17
  links() { readelf -d "$1" | grep -q "NEEDED.*\[$2"; }
  for old in libdl.so.2:dlopen libpthread.so.0:pthread_create libpthread.so.0:pthread_mutex_trylock; do
    objdump -T "$1" | grep -q "UND.* ${old#*:}\$" || continue
    links "$1" "${old%:*}" || fail "$1 calls ${old#*:}() without ${old%:*}, where glibc before 2.34 has it"
  done
}

check() { # library, its symbols
  symbols=$(nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | sort -u | xargs)
  [ "$symbols" = "$2" ] || fail "$1 exports: $symbols"
  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libpthread|libdl|librt|ld-linux[^.]*)\.so')
  [ -z "$needed" ] || fail "$1 links: $needed"
  old_enough "$1"
  readelf -d "$1" | grep -q NODELETE || fail "$1 is not marked NODELETE"
}
check "$1" InitializeInjection
check "$2" occ_exact_library
check "$3" "InitializeInjectionNvtx2 occ_nvtx_library"
old_enough "$4"
readelf -d "$4" | grep NEEDED && fail "$4 links a library"

# functions of CUPTI by name, since that is how they are bound
has() { grep -aqE 'cupti(Subscribe|EnableCallback|RangeProfiler|ProfilerHost)' "$1"; }
has "$2" || fail "$2 does not bind the range profiler: this test looks for the wrong names"
has "$1" && fail "$1 subscribes to callbacks"
nm "$1" | grep -E 'on_callback|occ_exact_(watch|library)|occ_matching' && fail "$1 has code of --exact"

# The bundle's and the RPM's minimum. A program that a newer glibc builds has its versions of strtol() and others.
shift 4
here=$(getconf GNU_LIBC_VERSION | sed 's/.*\.//')
for program in "$@"; do
  [ "$here" -gt 36 ] || works_with "$program" 34
done
exit $status
