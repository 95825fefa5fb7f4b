#!/bin/sh
# The libraries that live in other people's processes export what others look for and link nothing but libc; the always-on one
# has nothing of what --exact does in it.   exported_symbols.sh LIBOCCTRACE LIBOCCTRACE_EXACT LIBOCCTRACE_NVTX
status=0
fail() {
  echo "$1"
  status=1
}

check() { # library, its symbols
  symbols=$(nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | sort -u | xargs)
  [ "$symbols" = "$2" ] || fail "$1 exports: $symbols"
  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libpthread|libdl|librt|ld-linux[^.]*)\.so')
  [ -z "$needed" ] || fail "$1 links: $needed"
  readelf -d "$1" | grep -q NODELETE || fail "$1 is not marked NODELETE"
}
check "$1" InitializeInjection
check "$2" occ_exact_library
check "$3" "InitializeInjectionNvtx2 occ_nvtx_library"

# functions of CUPTI by name, since that is how they are bound
has() { grep -aqE 'cupti(Subscribe|EnableCallback|RangeProfiler|ProfilerHost)' "$1"; }
has "$2" || fail "$2 does not bind the range profiler: this test looks for the wrong names"
has "$1" && fail "$1 subscribes to callbacks"
nm "$1" | grep -E 'on_callback|occ_exact_(watch|library)|occ_matching' && fail "$1 has code of --exact"
exit $status
