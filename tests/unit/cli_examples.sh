#!/usr/bin/env bash
# cli_examples.sh CLI_HISTORY OCCQ IMPORT_DATA: every example in --help works when it is pasted: it is no wrong usage, and where
# nothing but a history and files are needed it gives an answer (or nothing matches: 3).
set -u
history=$1 occq=$2 data=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config TZ=UTC NO_COLOR=1
mkdir -p state/occtrace config/occtrace bin
echo 'prices: {T4: 0.50 EUR}' >config/occtrace/occq.yaml
ln -s "$(command -v "$occq")" bin/occq
PATH=$work/bin:$PATH
failed=0
for file in before.db after.db state/occtrace/history.db; do "$history" $file || exit 1; done
mkdir traces
gzip -c "$data/kineto.json" | tee trace.json.gz >traces/rank_0.json.gz
cp "$data/ncu-printed.txt" ncu.txt
sqlite3 report.sqlite <"$data/nsys-2026.2.sql" 2>/dev/null
printf 'rules:\n  - config: theoretical >= 0.01\n' | tee occq-rules.yaml >r.yaml
printf 'gpu,threads,regs,static_smem,dynamic_smem\nt4,128,32,0,0\n' >configs.csv
# what these need is not here: a terminal, a compiler, its files, a program, a daemon; runs of that number or label
needs='diff before.db|doctor|^nvcc|--cubin|ncu-rep|runs pause|jq|duckdb|prune 3 4|label:|run:|occq check|--image|live --window|--cluster|^occq live$'
count=0
mapfile -t commands < <("$occq" --complete '' | cut -f1 | grep -v ^-)
for command in "" "${commands[@]}" 'top --gaps' 'top --cost' 'top --on t4' 'top --by allocation' 'top --by rank --cluster x' 'calc --list' 'runs --info' 'check --image x' 'diff --image' 'doctor --counters'; do
    while IFS= read -r example; do
        [ -n "$example" ] || continue
        bash -c "$example" >out 2>err </dev/null
        status=$?
        count=$((count + 1))
        if grep -qE -- "$needs" <<<"$example"; then
            [ $status -ne 2 ] || grep -q 'rules' err || { echo "FAIL: $example: $(cat err)"; failed=1; }
        elif [ $status -ne 0 ] && [ $status -ne 3 ]; then
            echo "FAIL: $example: status $status: $(cat err)"
            failed=1
        fi
    done < <("$occq" $command --help | sed -n '/^Examples:/,$p' | grep -E '^  [a-z]' | sed 's/^  //; s/   *[a-zA-Z].*$//')
done
[ $count -gt 30 ] || { echo "FAIL: only $count examples"; failed=1; }
exit $failed
