#!/usr/bin/env bash
# scripts/cluster-demo shows what it promises.   demo.sh BUILD
set -euo pipefail
PATH=$PATH:/usr/sbin
for tool in clickhouse-server prometheus curl; do
  command -v $tool >/dev/null || { echo "SKIP: no $tool (scripts/setup --cluster, --test)"; exit 77; }
done
said=$("$(dirname "$0")/../../scripts/cluster-demo" --build "$1" 2>&1) || { echo "$said"; exit 1; }
for line in 'matmul<64>' '3 nodes, complete until' '^firing OcctraceDown node3'; do
  grep -qE "$line" <<<"$said" || { echo "no line has '$line': $said"; exit 1; }
done
[ "$(grep -c ' node[123] .*slurm:4242$' <<<"$said")" = 6 ] || [ ! -e "$1/simgpu/libcuda.so.1" ] || { echo "not six ranks: $said"; exit 1; }
