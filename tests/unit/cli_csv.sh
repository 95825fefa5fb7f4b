#!/usr/bin/env bash
# cli_csv.sh CLI_HISTORY OCCQ: the cells of every CSV that occq writes. NULL is an empty field and an empty text is "", zero has no sign,
# and a text that a spreadsheet would run has an apostrophe before it.
set -u
history=$1 occq=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
fail() { echo "FAIL: $*"; failed=1; }
same() { # name, wanted, found
    [ "$2" = "$3" ] || { fail "$1"; diff <(printf '%s\n' "$2") <(printf '%s\n' "$3"); }
}
"$history" h.db || exit 1

# ---- sql: cells and headings ----
cell() { "$occq" sql -d h.db --csv "SELECT $1 AS c" | tail -n +2; }
same NULL '' "$(cell NULL)"
same 'empty text' '""' "$(cell "''")"
same 'empty blob' '""' "$(cell "x''")"
same 'NULL beside empty text' ',"",0' "$("$occq" sql -d h.db --csv "SELECT NULL AS a, '' AS b, 0 AS c" | tail -n 1)"
same 'minus zero' 0 "$(cell -0.0)"
same 'minus zero in JSON' '    {"c": 0}' "$("$occq" sql -d h.db --json 'SELECT -0.0 AS c' | grep '"c"')"
same 'small negative number' -1e-09 "$(cell -1e-9)"
same 'number' -1.5 "$(cell -1.5)"
same 'comma' '"a,b"' "$(cell "'a,b'")"
same 'quotes' '"a""b"' "$(cell "'a\"b'")"
same 'newline' $'"a\nb"' "$(cell "'a' || char(10) || 'b'")"
same 'carriage return' $'"a\rb"' "$(cell "'a' || char(13) || 'b'")"
same 'carriage return at the end' $'"a\r"' "$(cell "'a' || char(13)")"
same 'tabulator' $'a\tb' "$(cell "'a' || char(9) || 'b'")"
for text in '=1+1' '+SUM(A1)' '-A1' '@SUM(A1)' '=' '-' '-1+2' '+' '@'; do
    same "text $text" "'$text" "$(cell "'$text'")"
done
same 'formula with a comma' "\"'=HYPERLINK(1,2)\"" "$(cell "'=HYPERLINK(1,2)'")"
same 'formula with quotes' "\"'=cmd|\"\"/c calc\"\"!A1\"" "$(cell "'=cmd|\"/c calc\"!A1'")"
same 'formula behind a tabulator' $'\'\t=1' "$(cell "char(9) || '=1'")"
same 'formula behind a carriage return' $'"\'\r=1"' "$(cell "char(13) || '=1'")"
same 'formula behind a newline' $'"\'\n=1"' "$(cell "char(10) || '=1'")"
same 'formula behind an apostrophe' "''=1" "$(cell "'''=1'")" # so that one apostrophe is removed, and only where it was added
same 'an apostrophe' "'a" "$(cell "'''a'")"
for number in -1 +1 -1.5 +.5 -1e-9 -1E5; do same "a number as text $number" "$number" "$(cell "'$number'")"; done
same 'heading' "\"'=1,2\"" "$("$occq" sql -d h.db --csv 'SELECT 1 AS "=1,2"' | head -n 1)"
same 'JSON has the text' '    {"c": "=1+1"}' "$("$occq" sql -d h.db --json "SELECT '=1+1' AS c" | grep '"c"')"
# every text comes back: one apostrophe less where after the first ones a dangerous character follows
"$occq" sql -d h.db --csv "WITH t(x) AS (VALUES (''), ('='), ('''='), (''''''), ('-5'), ('a,''='), (char(13)), ('x' || char(13) || char(10) || 'y'), ('\"')) SELECT x, hex(x) AS h FROM t" >texts.csv
python3 - <<'PYTHON' || fail 'texts are not the same again'
import csv, re, sys
number = re.compile(r'[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?')
rows = list(csv.reader(open('texts.csv', newline='')))[1:]
assert len(rows) == 9, rows
for text, digits in rows:
    inner = text.lstrip("'")
    if text.startswith("'") and inner[:1] in ('=', '+', '-', '@', '\t', '\r', '\n') and inner[:1]:
        text = text[1:]
    assert text.encode().hex().upper() == digits, (text, digits)
PYTHON

# ---- names of kernels in the other tables, and labels ----
name='=cmd|calc!A1'
printf '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}],
"traceEvents": [{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": 1767225600000000, "dur": 10, "args": {"device": 0,
"context": 1, "stream": 7, "correlation": 1, "registers per thread": 32, "shared memory": 0, "grid": [108, 1, 1], "block": [256, 1, 1]}}]}' "$name" >n.json
"$occq" import -d n.db --label '@x' n.json >/dev/null 2>&1 || fail import
for command in 'top -o kernel' 'launches -o kernel' 'what-if --gpu h100 -o kernel' 'diff run:1 run:1 -o kernel'; do
    "$occq" $command -d n.db --csv 2>/dev/null | tail -n +2 | grep -q "^\"*'=cmd" || fail "$command: $("$occq" $command -d n.db --csv)"
done
same label "'@x" "$("$occq" runs -d n.db --csv -o label | tail -n 1)"
"$occq" export -d n.db --csv -o n.csv 2>/dev/null || fail export
grep -q ",'=cmd|calc!A1," n.csv || { fail 'export --csv'; cat n.csv; }

# ---- calc --batch: cells that are copied, and messages ----
printf 'name,gpu,threads,regs,static_smem,dynamic_smem,carveout\n=1+1,h100,256,32,0,0,-1\n"=a,b",h100,256,32,0,0,-1\n"",h100,256,32,0,0,-1\n,h100,256,32,0,0,-1\n@x,=y,256,32,0,0,-1\n' |
    "$occq" calc --batch 2>/dev/null | tail -n +2 | cut -d, -f1-8 >batch
printf "'=1+1,h100,256,32,0,0,-1,8\n\"'=a,b\",h100,256,32,0,0,-1\n\"\",h100,256,32,0,0,-1,8\n,h100,256,32,0,0,-1,8\n'@x,'=y,256,32,0,0,-1,\n" | cmp - batch || { fail 'calc --batch'; cat batch; }
exit $failed
