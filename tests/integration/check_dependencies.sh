#!/bin/sh
# Dependencies between directories (docs/architecture.md): fails on every #include "..." across directories that the table does
# not allow, and on a directory with sources that the table does not have.
#
#   check_dependencies.sh SOURCE
cd "$1" || exit 1

table='
attribution: support
cli: cli/occq cli/occtrace occupancy support
cli/occq: cli cli/occq/calc cli/occq/diff cli/occq/doctor cli/occq/export cli/occq/report cluster/ask config import names occupancy store support
cli/occq/calc: cli image names occupancy support
cli/occq/diff: cli config occupancy store support
cli/occq/doctor: cli cli/occq config store support
cli/occq/export: cli support
cli/occq/live: cli cli/occq store support
cli/occq/report: cli cli/occq cli/occq/calc cli/occq/diff occupancy store support
cli/occtrace: cli config store support
cluster: cluster/ask config occupancy schema store store/codec support
cluster/ask: names occupancy schema store store/codec store/query support
config: support
cupti:
daemon: config cupti daemon/histories daemon/owners daemon/sampling daemon/sampling/counters daemon/serve ring store support
daemon/collect: daemon/owners occupancy ring store support
daemon/histories: daemon/collect daemon/owners daemon/sampling store support
daemon/owners: support
daemon/sampling: attribution cupti daemon/collect daemon/sampling/counters occupancy ring store support
daemon/sampling/counters: attribution cupti support
daemon/serve: daemon/collect daemon/histories daemon/owners daemon/sampling daemon/sampling/counters daemon/serve/metrics ring store support
daemon/serve/metrics: occupancy store support
image:
import: occupancy store support
injector: cupti injector/exact injector/nvtx ring
injector/exact: cupti ring
injector/nvtx: cupti
injector/preload:
names: support
occupancy:
ring:
schema:
store: occupancy schema store/codec store/query store/vtab store/write support
store/codec: store support
store/query: names occupancy store store/codec support
store/vtab: occupancy store store/codec support
store/write: names occupancy store store/codec support
support:
'

files=$(find . \( -path ./build -o -path ./tests -o -path ./bench \) -prune -o -name '*.[ch]' -print | sed 's|^\./||')
grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' $files |
  awk -v table="$table" -v files="$files" '
    function directory(path) { return substr(path, 1, match(path, "/[^/]*$") - 1) }
    BEGIN {
      rows = split(table, row, "\n")
      for (i = 1; i <= rows; i++) {
        words = split(row[i], word, "[: ]+")
        for (k = 1; k <= words; k++) allowed[word[1] " " word[k]]
      }
      n = split(files, file, "[ \n]+")
      for (i = 1; i <= n; i++) {
        exists[file[i]]
        d = directory(file[i])
        if (!(d " " d in allowed)) { print file[i] ": the table has no row for " d; bad = 1 }
      }
    }
    {
      split($0, part, ":")
      split($0, quoted, "\"")
      from = directory(part[1])
      to = directory((from "/" quoted[2] in exists) ? from "/" quoted[2] : quoted[2])
      if (to == "" || from " " to in allowed) next
      print part[1] ":" part[2] ": " from " must not include " to
      bad = 1
    }
    END { exit bad || NR == 0 }' || status=1

if grep -nE 'sqlite3|yaml|zstd|smartcols|CUDA::|lcupti' injector/CMakeLists.txt injector/exact/CMakeLists.txt injector/nvtx/CMakeLists.txt cupti/CMakeLists.txt \
    ring/CMakeLists.txt occupancy/CMakeLists.txt |
    grep -nE 'target_link_libraries|USES|PkgConfig'; then
  echo "the guest side links a library that it must not"
  status=1
fi
exit "${status:-0}"
