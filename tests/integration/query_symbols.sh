#!/bin/sh
# libocctrace-query exports what its header declares, with a version each, and nothing else; it has a version in its name.
#   query_symbols.sh LIBRARY QUERY      QUERY: the folder of the header
status=0
fail() { echo "$1"; status=1; }
exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort | xargs)
declared=$(sed -n 's/^[a-z].*[ *]\(occ_query_[a-z]*\)(.*/\1@@OCCTRACE_QUERY_0.1/p' "$2/occtrace-query.h" | sort | xargs)
[ -n "$declared" ] && [ "$exported" = "$declared" ] || fail "exported: $exported
declared: $declared"
others=$(nm -D --defined-only "$1" | awk '$2 != "T" && $2 != "A"' )
[ -z "$others" ] || fail "further symbols: $others"
readelf -d "$1" | grep -q 'SONAME.*\[libocctrace-query\.so\.0\]' || fail "no soname with a version"
readelf -d "$1" | grep -qE 'NEEDED.*\[lib(cupti|cuda|ncurses)' && fail "it links a library that a question does not need"
exit $status
