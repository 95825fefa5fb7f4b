#!/usr/bin/env bash
# /metrics of a real daemon, as the tools of others read it: promtool's verdict, and with `engines` a scrape by Prometheus and
# VictoriaMetrics over TCP, with the same number of samples each time. What is not installed is said and left out.
#
#   metrics.sh BUILD SOURCE [engines]
set -euo pipefail
build=$1 source=$2 mode=${3:-}
work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
for tool in curl promtool python3; do
  command -v "$tool" >/dev/null || { echo "metrics.sh: skipped, $tool is not installed"; exit 77; }
done

until_true() { # command: tries again until it succeeds
  for _ in $(seq 600); do "$@" && return 0; sleep 0.2; done
  echo "metrics.sh: never: $*"; return 1
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
page() { curl -sf -H "Accept: $1" --unix-socket "$work/metrics.sock" http://node/metrics; }

printf 'http:\n  socket: %s\n' "$work/metrics.sock" >"$work/occtrace.yaml"
port=$(free_port)
# The daemon with a TCP socket at descriptor 3, as a socket unit passes it.
python3 - "$port" "$build/bin/occtraced" -c "$work/occtrace.yaml" --db "$work/h.db" --socket "$work/o.sock" <<'PY' &
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
PY
pids+=($!)
until_true curl -sf -o "$work/health" --unix-socket "$work/metrics.sock" http://node/healthz
grep -qx ok "$work/health"

page text/plain >"$work/page"
promtool check metrics <"$work/page"
page 'application/openmetrics-text;version=1.0.0' | tail -1 | grep -qx '# EOF'
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$work/page" | while read -r name; do
  grep -q "^\.It Cm $name" "$source/docs/man/occtraced.8" || { echo "metrics.sh: the man page lacks $name"; exit 1; }
done
[ "$mode" = engines ] || exit 0

# Each engine scrapes the TCP socket; `up` is 1, and the number of samples stays what the page has.
expected=$(curl -sf "http://127.0.0.1:$port/metrics" | grep -vc '^#')
query() { # port expression: the value
  curl -sf "http://127.0.0.1:$1/api/v1/query" --data-urlencode "query=$2" -o "$work/answer" &&
    python3 -c 'import json, sys; r = json.load(sys.stdin)["data"]["result"]; print(r[0]["value"][1] if r else "")' \
      <"$work/answer"
}
cat >"$work/prometheus.yml" <<YAML
scrape_configs:
  - job_name: occtrace
    scrape_interval: 1s
    static_configs: [{targets: ["127.0.0.1:$port"]}]
YAML
is() { [ "$(query "$1" "$2")" = "$3" ]; }
check_engine() { # name port
  until_true is "$2" up 1
  until_true is "$2" scrape_samples_scraped "$expected"
  until_true is "$2" 'count_over_time(up[1m]) >= bool 5' 1
  is "$2" 'min_over_time(scrape_samples_scraped[1m])' "$expected"
  is "$2" occtrace_store_stalled 0
  echo "metrics.sh: $1 has $expected samples a scrape"
}
if command -v prometheus >/dev/null; then
  at=$(free_port)
  prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/prometheus" --web.listen-address="127.0.0.1:$at" \
    --log.level=error &
  pids+=($!)
  check_engine prometheus "$at"
else
  echo "metrics.sh: prometheus is not installed"
fi
if command -v victoria-metrics >/dev/null; then
  at=$(free_port)
  victoria-metrics -promscrape.config="$work/prometheus.yml" -storageDataPath="$work/victoria" -httpListenAddr="127.0.0.1:$at" \
    -search.latencyOffset=0s -loggerLevel=ERROR &
  pids+=($!)
  check_engine victoria-metrics "$at"
else
  echo "metrics.sh: victoria-metrics is not installed"
fi
