#!/usr/bin/env bash
# E6: a training loop of graph replays: device memory, timestamps, time.
. "${OCC_KIT:?}/report.sh"
expect "no growth of device memory, no launch without times, below 10 % slower"
steps=20000
if quick; then steps=3000; fi
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -1; }

plain=$(best_of 2 "$OCC_SAMPLES/transformer" --steps "$steps")
before=$(used)
"$occtrace" --counters=none -q -d "$work/graph.db" "$OCC_SAMPLES/transformer" --steps "$steps" >"$work/out" 2>&1 &
pid=$!
sleep 2
early=$(used)
peak=$early
while kill -0 $pid 2>/dev/null; do
  now=$(used)
  [ -z "$now" ] || [ "${now:-0}" -le "${peak:-0}" ] || peak=$now
  sleep 0.5
done
wait $pid || skip "the transformer does not run: $(tail -1 "$work/out")"
observed=$(best_of 2 "$occtrace" --counters=none -q -d "$work/again.db" "$OCC_SAMPLES/transformer" --steps "$steps")
want=$(sed -n 's/^launches: *//p' "$work/out")
got=$(ask "$work/graph.db" 'SELECT count(*) FROM launch')
bad=$(ask "$work/graph.db" "SELECT coalesce(sum(launches), 0) FROM loss")
value launches "$got" "of $want"
value lost "$bad" "launches, all causes"
value graph_nodes "$(ask "$work/graph.db" 'SELECT count(DISTINCT graph_node_id) FROM launch WHERE graph_node_id <> 0')" ""
value plain "$plain" "s"
value observed "$observed" "s"
value slowdown "$(calc "($observed / $plain - 1) * 100")" "%"
value memory_before "${before:--}" "MiB"
value memory_growth "$([ -n "$early" ] && calc "$peak - $early" || echo -)" "MiB while it ran"
count_surplus "$got" "$want"
refute_surplus
growth=$([ -n "$early" ] && calc "$peak - $early" || echo 0)
if [ "$got" = "$want" ] && holds "$growth < 100" && holds "$observed <= $plain * 1.1"; then
  decide confirmed "graphs stay traced node by node"
fi
decide refuted "graph mode: compare the numbers above; a leak asks for libcupti 13.3 or the work-around, a slowdown for graph-level records"
