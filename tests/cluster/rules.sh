#!/usr/bin/env bash
# The rules for Prometheus: promtool's check and its tests of each alert, vmalert's check; every metric in them is one that
# occtraced or occtrace-ship has, and every alert has a test. What is not installed is said; with nothing, it is no success.
#
#   rules.sh SOURCE
set -euo pipefail
source=$1
rules=$source/packaging/prometheus/occtrace.rules.yaml cases=$source/tests/cluster/rules_test.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "rules.sh: $*"; exit 1; }
tested=0

grep -oE '\bocctrace_[a-z_]+' "$rules" | grep -vE '^occtrace_(node|shipper|use|cost|cost_per_hour|gpu_hour_price|held_gpus|watts|(waste|busy|recoverable|coverage)_ratio|wasted_warp_seconds)$' | sort -u |
  while read -r name; do
    grep -q "\"$name\"" "$source/daemon/serve/metrics/exposition.h" ||
      { [ "${name#occtrace_ship_}" != "$name" ] && grep -q "\"${name#occtrace_ship_}\"" "$source/cluster/metrics.c"; } ||
      fail "there is no metric $name"
  done
for alert in $(sed -n 's/.*- alert: //p' "$rules"); do
  grep -A3 "alertname: $alert\b" "$cases" | grep -q 'exp_labels' || fail "$alert is not seen to fire"
done

if command -v promtool >/dev/null; then
  promtool check rules "$rules"
  sed "s|RULES|$rules|" "$cases" >"$work/test.yaml"
  promtool test rules "$work/test.yaml"
  tested=1
else
  echo "rules.sh: NOT TESTED with promtool: not installed (scripts/setup --test)"
fi
if command -v vmalert >/dev/null; then
  vmalert -dryRun -rule="$rules" 2>"$work/log" || { cat "$work/log"; exit 1; }
  echo "vmalert: rules are valid"
  tested=1
else
  echo "rules.sh: NOT TESTED with vmalert: not installed (scripts/setup --test)"
fi
[ $tested = 1 ] || exit 77
