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

cat >"$work/serve.py" <<'PY'
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
PY
serve() { # name port: a daemon with a TCP socket at descriptor 3, as a socket unit passes it
  python3 "$work/serve.py" "$2" "$build/bin/occtraced" -c "$work/$1.yaml" --db "$work/$1.db" --socket "$work/$1.sock" 2>"$work/$1.log" &
  pids+=($!)
}

printf 'http:\n  socket: %s\n' "$work/metrics.sock" >"$work/plain.yaml"
port=$(free_port)
serve plain "$port"
until_true curl -sf -o "$work/health" --unix-socket "$work/metrics.sock" http://node/healthz
grep -qx ok "$work/health"
# The liveness probe: 0 while the loop turns, else 1.
"$build/bin/occtraced" --alive -c "$work/plain.yaml"
printf 'http: {socket: "%s"}\n' "$work/nobody.sock" >"$work/nobody.yaml"
code=0; "$build/bin/occtraced" --alive -c "$work/nobody.yaml" 2>"$work/nobody" || code=$?
[ "$code" = 1 ] && grep -q "no daemon serves metrics at $work/nobody.sock" "$work/nobody" ||
  { echo "metrics.sh: --alive without a daemon: $code"; cat "$work/nobody"; exit 1; }

page text/plain >"$work/page"
promtool check metrics <"$work/page"
page 'application/openmetrics-text;version=1.0.0' | tail -1 | grep -qx '# EOF'
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$work/page" | while read -r name; do
  grep -q "^\.It Cm $name" "$source/docs/man/occtraced.8" || { echo "metrics.sh: the man page lacks $name"; exit 1; }
done
# The daemon's own TCP socket, and the node's name in a container.
own_port=$(free_port)
printf 'http: {listen: "127.0.0.1:%s"}\n' "$own_port" >"$work/own.yaml"
OCCTRACE_NODE=gpu-17 "$build/bin/occtraced" -c "$work/own.yaml" --db "$work/own.db" --socket "$work/own.sock" 2>"$work/own.log" &
pids+=($!)
until_true curl -sf -o "$work/own" "http://127.0.0.1:$own_port/metrics"
grep -q '^occtrace_store_stalled{hostname="gpu-17"' "$work/own" || { echo "metrics.sh: the node's name"; grep -m 3 hostname "$work/own"; exit 1; }
# TLS: names for a client whose certificate the authority signed, as one of a client and for today; not for another's, a server's
# or an old one, or none.
if command -v openssl >/dev/null; then
  sign() { # name authority purpose days
    openssl req -new -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days "$4" -out "$1.pem" \
      -extfile <(echo "subjectAltName=IP:127.0.0.1"; echo "extendedKeyUsage=$3")
  }
  (
    cd "$work"
    for ca in ca other; do
      openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$ca" -keyout $ca.key -out $ca.pem
    done
    sign server ca serverAuth 2
    sign client ca clientAuth 2
    sign foreign other clientAuth 2
    sign wrong ca serverAuth 2
    sign old ca clientAuth -1 || rm -f old.pem
  ) >"$work/openssl.log" 2>&1 || { cat "$work/openssl.log"; exit 1; }
  tls_port=$(free_port)
  printf 'http: {tls_cert: %s, tls_key: %s, client_ca: %s}\nlog: {level: info}\n' "$work/server.pem" "$work/server.key" "$work/ca.pem" >"$work/tls.yaml"
  serve tls "$tls_port"
  names() { # certificate: how many families there are that name somebody
    curl -sf --cacert "$work/ca.pem" ${1:+--cert "$work/$1.pem" --key "$work/$1.key"} "https://127.0.0.1:$tls_port/metrics" >"$work/secure" ||
      return
    grep -q occtrace_store_stalled "$work/secure" && grep -c '^# TYPE occtrace_\(run\|kernel\)_' "$work/secure" || true
  }
  until_true names "" >/dev/null
  for case in client:4 foreign:0 wrong:0 :0 $([ ! -s "$work/old.pem" ] || echo old:0); do
    [ "$(names "${case%:*}")" = "${case#*:}" ] || { echo "metrics.sh: with certificate '${case%:*}': $(names "${case%:*}") names"; exit 1; }
  done
  if curl -s "http://127.0.0.1:$tls_port/metrics" | grep -q occtrace; then echo "metrics.sh: answers without TLS"; exit 1; fi
  # New files are served without a restart: when they change, and by SIGHUP. Files that cannot be used change nothing.
  served() { # the serial number of the certificate that is served
    openssl s_client -connect "127.0.0.1:$tls_port" </dev/null 2>/dev/null | openssl x509 -noout -serial
  }
  serial() { openssl x509 -noout -serial -in "$work/$1.pem"; }
  expires() { date -d "$(openssl x509 -noout -enddate -in "$work/$1.pem" | cut -d= -f2)" +%s; }
  put() { # name: in place of the server's files, each at once
    cp "$work/$1.pem" "$work/next.pem" && mv "$work/next.pem" "$work/server.pem"
    cp "$work/$1.key" "$work/next.key" && mv "$work/next.key" "$work/server.key"
  }
  expiry() { # label: by the metric
    names "" >/dev/null && sed -n "s/^occtrace_tls_certificate_not_after_timestamp_seconds{.*certificate=\"$1\"} //p" "$work/secure"
  }
  cp "$work/server.pem" "$work/first.pem" && cp "$work/server.key" "$work/first.key"
  [ "$(served)" = "$(serial first)" ] && [ "$(expiry server)" = "$(expires first)" ] && [ "$(expiry client_ca)" = "$(expires ca)" ] ||
    { echo "metrics.sh: '$(served)', '$(expiry server)' '$(expiry client_ca)' instead of '$(serial first)', '$(expires first)' '$(expires ca)'"; exit 1; }
  (cd "$work" && sign second ca serverAuth 30 && sign third ca serverAuth 9) >"$work/openssl.log" 2>&1
  put second
  [ "$(served)" = "$(serial second)" ] && [ "$(expiry server)" = "$(expires second)" ] ||
    { echo "metrics.sh: a new certificate is not served"; exit 1; }
  cp "$work/foreign.key" "$work/server.key"
  [ "$(served)" = "$(serial second)" ] && [ "$(names client)" = 4 ] && grep -q 'stays as it was: .*no key that belongs' "$work/tls.log" ||
    { echo "metrics.sh: a key that belongs to another certificate is used"; exit 1; }
  echo broken >"$work/server.pem"
  [ "$(served)" = "$(serial second)" ] && grep -q 'no certificate that can be read' "$work/tls.log" ||
    { echo "metrics.sh: a broken certificate is used"; exit 1; }
  put third
  cp "$work/other.pem" "$work/ca.pem.next" && cp "$work/ca.pem" "$work/own-ca.pem" && mv "$work/ca.pem.next" "$work/ca.pem"
  known() { # certificate: as names(), whose client knows the server still
    curl -sf --cacert "$work/own-ca.pem" --cert "$work/$1.pem" --key "$work/$1.key" "https://127.0.0.1:$tls_port/metrics" |
      grep -c '^# TYPE occtrace_\(run\|kernel\)_' || true
  }
  [ "$(served)" = "$(serial third)" ] && [ "$(known foreign)" = 4 ] && [ "$(known client)" = 0 ] ||
    { echo "metrics.sh: a new authority of clients is not used"; exit 1; }
  read_anew() { grep -c 'is read anew' "$work/tls.log" || true; }
  before=$(read_anew)
  kill -HUP "${pids[-1]}"
  until_true bash -c "[ \$(grep -c 'is read anew' '$work/tls.log') -gt $before ]"
  printf 'http: {tls_cert: %s}\n' "$work/server.pem" >"$work/half.yaml"
  serve half "$(free_port)"
  until_true grep -q 'are set together' "$work/half.log"
else
  echo "metrics.sh: no TLS, openssl is not installed"
fi
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
