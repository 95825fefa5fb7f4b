#!/usr/bin/env bash
# cli_export.sh CLI_HISTORY OCCQ SOURCE: occq export on known histories, on a recorded trace with kernels that overlap and on names that
# attack; both formats by the rules of their viewers; and outputs that fail.
set -u
history=$1 occq=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
fail() { echo "FAIL: $*"; failed=1; }
expect() { # status, command...
    local wanted=$1 status
    shift
    "$@" >stdout 2>stderr
    status=$?
    [ $status = "$wanted" ] || { fail "status $status instead of $wanted: $*"; cat stderr; }
}
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }

# ---- a name that means another format ----
"$history" known.db
expect 2 "$occq" export -d known.db -o x.parquet
grep -q 'x.parquet.*--format chrome, perfetto, csv or jsonl' stderr || fail "an unknown ending"
[ ! -e x.parquet ] || fail "an unknown ending: a file"
expect 0 "$occq" export -d known.db -o out.v2 --format csv
expect 0 "$occq" export -d known.db -o timeline.gz
expect 0 "$occq" sql -d known.db --json "SELECT 'x' || char(0) || 'y' || char(0) AS z, 1 AS n"
grep -qF $'"z": "x\xef\xbf\xbdy\xef\xbf\xbd"' stdout || fail "text with a NUL: $(cat stdout)"
expect 1 "$occq" sql -d known.db --json "SELECT 1 AS a, 1 AS a"
expect 0 "$occq" sql -d known.db "SELECT 1 AS a, 1 AS a"

# compute WHERE FILE [decoders]: Perfetto's compute view finds in FILE what SQL says of db
compute() {
    "$occq" sql -d "$db" --csv "SELECT start_ns, duration_ns, run_id, stream_id, correlation_id, graph_node_id, achieved, achieved_ci95,
        measured_ratio, range, phase, pid, program, compute_capability, c.* FROM (SELECT * FROM launch WHERE $1) JOIN launch_config c
        USING (config_id) JOIN device d ON d.device_id = c.device_id JOIN (SELECT run_id, pid, program FROM run) USING (run_id)
        LEFT JOIN range USING (run_id, range_id)" >compute.csv || fail "sql"
    "$occq" sql -d "$db" --csv "SELECT * FROM device" >gpus.csv || fail "sql"
    PYTHONDONTWRITEBYTECODE=1 python3 "$source/tests/unit/perfetto_check.py" "$2" compute.csv gpus.csv ${3-} >compute.said || fail "$db: compute view"
}

# both WHERE [OPTION...]: the two formats say the same of db, and what SQL says
both() {
    local where=$1
    shift
    "$occq" sql -d "$db" --csv "SELECT start_ns, duration_ns, config_id, run_id, context_id, stream_id, correlation_id, device_id FROM launch
        WHERE $where" >launches.csv || fail "sql"
    for format in chrome perfetto; do
        expect 0 "$occq" export -d "$db" --format $format -o "out.$format" "$@"
        PYTHONDONTWRITEBYTECODE=1 python3 "$source/tests/unit/export_check.py" $format "out.$format" launches.csv >"$format.said" || fail "$db: $format"
    done
    expect 0 "$occq" export -d "$db" --csv -o out.csv "$@"
    expect 0 "$occq" export -d "$db" --format jsonl -o out.jsonl "$@"
    python3 lines.py out.csv out.jsonl launches.csv || fail "$db: lines"
    cmp chrome.said perfetto.said || { fail "$db: the formats differ"; diff chrome.said perfetto.said | head -5; }
}

cat >lines.py <<'PYTHON'
import csv, json, sys
lines, wanted = list(csv.DictReader(open(sys.argv[1], newline=""))), sorted(map(list, map(dict.items, csv.DictReader(open(sys.argv[3])))))
objects = [json.loads(line) for line in open(sys.argv[2])]
text = lambda v: "" if v is None else str(v)
number = lambda t: float(t) if t.replace(".", "").replace("e-", "").isdigit() else t.replace("\ufffd", "?")
assert lines and [list(o) for o in objects] == [list(r) for r in lines], "columns"
for o, r in zip(objects, lines):
    for k in r:
        if k != "kernel":
            assert number(text(o[k])) == number(r[k]), (k, o[k], r[k])
        assert r[k] != "" or o[k] is None, k
assert sorted([(k, r[k] or "0" * (k == "correlation_id")) for k in dict(wanted[0])] for r in lines) == [[(k, v or "0" * (k == "correlation_id")) for k, v in w] for w in wanted], "launches differ from SQL's"
assert [int(r["start_ns"]) for r in lines] == sorted(int(r["start_ns"]) for r in lines), "order"
PYTHON
"$history" h.db && "$history" m.db measured || exit 1
cat >names.json <<'JSON'
{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}], "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "</script><!-- \"q\" \\ \u0001 \u202e \u2028 'x'", "pid": 0, "tid": 7, "ts": 1767225600000000, "dur": 10.5, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "inner", "pid": 0, "tid": 7, "ts": 1767225600000002, "dur": 3, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 2, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "across", "pid": 0, "tid": 7, "ts": 1767225600000004, "dur": 30, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 3, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "none", "pid": 0, "tid": 7, "ts": 1767225600000034, "dur": 0, "args": {"device": 0, "context": 2, "stream": 7, "correlation": 4, "registers per thread": 32, "shared memory": 0, "grid": [9, 1, 1], "block": [128, 1, 1]}}
]}
JSON
expect 0 "$occq" import -d names.db names.json
expect 0 "$occq" import -d kineto.db "$source/tests/data/import/kineto.json"
for db in h.db m.db names.db kineto.db; do both 1; done
db=names.db
both "correlation_id = 3" --kernel across
both 1
grep -q '^1767225600000002000 1767225600000005000 inner .* run 1 stream 7$' chrome.said || { fail "inner"; cat chrome.said; }
[ "$(grep -c '"thread_name"' out.chrome)" = 4 ] || fail "three lanes and another context"
# what was not measured is in no counter
db=m.db
both 1
grep -q '^GPU 1 .* occupancy (elapsed), % 1700000001000000000 0.0$' chrome.said || { fail "the end of the counter"; grep '%' chrome.said; }
grep -q '^GPU 1 .* occupancy (elapsed), % 1700000000001000000 25.0$' chrome.said || fail "the sample in which the first launch begins"
grep -q '"achieved": 0.20000, "achieved_ci95"' out.chrome || { fail "achieved"; grep -m 1 achieved\" out.chrome; }

# ---- Perfetto's compute view ----
"$occq" export -d m.db --format perfetto -o m.pftrace --low-occupancy=10 || fail "export"
compute "coalesce(achieved, expected_achieved_low) < 0.1" m.pftrace
grep -q '^1050 launches, 50 with a counter' compute.said || { fail "counters"; cat compute.said; }
"$occq" export -d m.db --format perfetto -o m.pftrace # here all of them overlap others
compute 1 m.pftrace
grep -q ' 0 with a counter' compute.said || { fail "counters of launches that overlap"; cat compute.said; }
python3 - <<'PYTHON'
import json
trace = json.load(open("names.json"))
trace["traceEvents"][1]["name"] = "_Z" + "\u00e9" * 20000
trace["traceEvents"][2]["args"].update(grid=[2147483647, 65535, 65535], block=[1024, 1, 1])
trace["traceEvents"][2]["name"] = "x" * 4095 + "\u00e9"
json.dump(trace, open("long.json", "w"))
PYTHON
for db in names.db kineto.db ranges.db long.db; do
    [ -e $db ] || "$occq" import -d $db $([ $db = long.db ] && echo long.json || echo "$source/tests/data/import/kineto_ranges.json") >/dev/null 2>&1 || fail "import"
    expect 0 "$occq" export -d $db --format perfetto -o other.pftrace
    compute 1 other.pftrace decoders
done
db=ranges.db
expect 0 "$occq" export -d $db --format perfetto -o other.pftrace
compute 1 other.pftrace
grep -q ' 2 in layers' compute.said || { fail "layers"; cat compute.said; }

# ---- outputs ----
for end in gz zst; do
    expect 0 "$occq" export -d h.db -o "out.json.$end"
    { [ $end = gz ] && gzip -dc out.json.gz || zstd -dcq out.json.zst; } | cmp - <("$occq" export -d h.db) || fail "$end"
done
# the format follows the name, which --format must not contradict
for end in json:chrome pftrace:perfetto perfetto-trace:perfetto csv:csv jsonl:jsonl ndjson:jsonl any:chrome; do
    "$occq" export -d h.db --format ${end#*:} >wanted
    for compression in "" .gz .zst; do
        expect 0 "$occq" export -d h.db -o "named.${end%:*}$compression"
        case $compression in
            .gz) gzip -dc ;;
            .zst) zstd -dcq ;;
            *) cat ;;
        esac <"named.${end%:*}$compression" | cmp - wanted || fail "named.${end%:*}$compression is not ${end#*:}"
    done
done
rm named.*
expect 2 "$occq" export -d h.db --format perfetto -o named.json.gz
grep -q 'the name of named.json.gz is that of format chrome, not of perfetto' stderr || fail "reason: perfetto in .json"
expect 2 "$occq" export -d h.db --csv -o named.jsonl
expect 2 "$occq" export -d h.db --csv --format perfetto
expect 0 "$occq" export -d h.db --csv --format csv -n 1
expect 1 "$occq" export -d h.db -o named.json.bz2
grep -q 'named.json.bz2: only .gz and .zst are compressed' stderr || fail "reason: bz2"
ls named.* 2>/dev/null && fail "files that were refused"
echo before >there.json
expect 0 "$occq" export -d h.db -o there.json
cmp there.json <("$occq" export -d h.db) || fail "an existing file is replaced"
touch new
[ "$(stat -c %a there.json)" = "$(stat -c %a new)" ] || fail "rights of the file"
expect 1 "$occq" export -d h.db -o none/out.json
expect 1 "$occq" export -d h.db -o /dev/full
[ ! -e none ] || fail "a directory was made"
for end in json gz zst csv jsonl; do
    (ulimit -f 1; trap '' XFSZ; exec "$occq" export -d h.db $([ $end = csv ] || [ $end = jsonl ] && echo --format $end) -o limited.$end) 2>stderr && fail "a full disk is no success: $end"
    [ ! -e limited.$end ] || fail "half a file: $end"
done
expect 1 "$occq" export -d h.db -o h.db # a history is not replaced
ln -s h.db-wal link-to-log.json
echo log >h.db-wal
for end in wal shm journal; do # nor what SQLite has beside it, or would take for that
    expect 1 "$occq" export -d m.db -o h.db-$end
    grep -q "h.db-$end is part of a database" stderr || { fail "no reason: h.db-$end"; cat stderr; }
    expect 0 "$occq" export -d m.db -o no-history.db-$end
done
expect 1 "$occq" export -d m.db -o link-to-log.json
[ "$(cat h.db-wal)" = log ] || fail "the log of a history was replaced"
rm h.db-wal
expect 0 "$occq" info -d h.db
ln -s there.json link.json
chmod 600 there.json
expect 0 "$occq" export -d h.db -o link.json
[ -L link.json ] && [ "$(stat -c %a there.json)" = 600 ] || fail "a link and rights are kept"
expect 3 "$occq" export -d h.db --kernel nothing -o nothing.json
[ ! -e nothing.json ] || fail "a file without launches"
ls | grep -q '\.json\.......$' && fail "a temporary file is left: $(ls)"
expect 2 "$occq" export --format svg
head -n 1 out.csv | grep -q '^start_ns,duration_ns,run_id,.*,achieved,achieved_ci95,measured_ratio,kernel,device_id,.*,static_shared_bytes,' || fail "heading"
expect 0 "$occq" export -d h.db -n 5
grep -q 'only the first 5 launches' stderr || fail "nobody says that there are more"
[ "$(grep -c '"ph": "X"' stdout)" = 5 ] || fail "-n"
expect 0 "$occq" export -d h.db -n 5 --csv
[ "$(wc -l <stdout)" = 6 ] || fail "-n of lines"
for format in chrome perfetto csv jsonl; do
    ("$occq" export -d h.db --format $format; echo $? >status) 2>stderr | head -c 9 >/dev/null
    [ ! -s stderr ] || { fail "a broken pipe: $format"; cat stderr; }
done
exit $failed
