#!/bin/sh
# Dependencies between directories (docs/architecture.md): fails on every #include "..." across directories that the table does
# not allow, and on a directory with sources that the table does not have. "cli/occq/*" is each directory below cli/occq: a command
# of occq uses the libraries, and never another command.
#
#   check_dependencies.sh SOURCE
cd "$1" || exit 1

table='
answer: cluster/ask compare config explain names occupancy store support
attribution: support
cli: names occupancy support
cli/agents: answer cli cli/analysis cli/history cli/kernels cli/rules cli/sides compare explain names occupancy store support
cli/analysis: cli draw explain names occupancy support
cli/gate: cli cli/analysis cli/history cli/kernels cli/sides compare image names occupancy store support
cli/history: answer cli cluster/ask config names store support
cli/kernels: answer cli cli/analysis cli/history compare explain names occupancy store support
cli/occq: cli cli/history support
cli/occq/*: answer cli cli/agents cli/analysis cli/gate cli/history cli/kernels cli/rules cli/sides cli/trend compare config draw explain image import names occupancy store support
cli/occtrace: answer cli config names store support
cli/rules: cli cli/sides compare config store support
cli/sides: answer cli cli/history cli/kernels compare explain names store support
cli/trend: cli cli/history compare draw store support
cluster: cluster/ask cluster/otlp cluster/seen config occupancy schema store store/codec support
cluster/ask: names occupancy schema store store/codec store/query support
cluster/otlp: cluster/ask cluster/seen occupancy store support
cluster/seen: support
cluster/webhook: support
compare: support
config: support
cupti:
daemon: attribution config cupti daemon/coverage daemon/histories daemon/owners daemon/sampling daemon/sampling/counters daemon/serve ring store support
daemon/collect: daemon/owners occupancy ring store support
daemon/coverage: cupti support
daemon/histories: daemon/collect daemon/owners daemon/sampling store support
daemon/owners: support
daemon/sampling: attribution cupti daemon/collect daemon/sampling/counters occupancy ring store support
daemon/sampling/counters: attribution cupti support
daemon/serve: daemon/collect daemon/coverage daemon/histories daemon/owners daemon/sampling daemon/sampling/counters daemon/serve/metrics ring store support
daemon/serve/metrics: occupancy store support
draw: support
explain: names occupancy support
image:
import: occupancy store support
injector: cupti injector/exact injector/nvtx ring
injector/exact: cupti ring
injector/nvtx: cupti
injector/old_glibc:
injector/preload:
names: occupancy support
occupancy:
query: answer cli cli/history store support
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
    function row(d) { return d in row_of ? d : directory(d) "/*" }
    BEGIN {
      rows = split(table, line, "\n")
      for (i = 1; i <= rows; i++) {
        words = split(line[i], word, "[: ]+")
        row_of[word[1]]
        for (k = 1; k <= words; k++) allowed[word[1] " " word[k]]
      }
      n = split(files, file, "[ \n]+")
      for (i = 1; i <= n; i++) {
        exists[file[i]]
        d = directory(file[i])
        if (!(row(d) in row_of)) { print file[i] ": the table has no row for " d; bad = 1 }
      }
    }
    {
      split($0, part, ":")
      split($0, quoted, "\"")
      from = directory(part[1])
      to = directory((from "/" quoted[2] in exists) ? from "/" quoted[2] : quoted[2])
      if (to == "" || to == from || row(from) " " to in allowed) next
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
