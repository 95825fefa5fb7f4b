#!/usr/bin/env bash
# cli_screen.sh OCCQ NAMES: what occq prints on screens. A history of the kernels in NAMES: no two rows of `occq top` look
# alike and none is wider than the screen, from 40 to 200 columns; the pager; colours.
set -u
occq=$1 names=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR COLUMNS PAGER OCC_PAGER LESS
failed=0
fail() { echo "FAIL: $*"; failed=1; }

{
    echo '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42505273344, "computeMajor": 8,'
    echo '"computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536,'
    echo '"regsPerMultiprocessor": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "sharedMemPerMultiprocessor": 167936,'
    echo '"numSms": 108, "sharedMemPerBlockOptin": 166912}], "baseTimeNanoseconds": 1700000000000000000, "traceEvents": ['
    n=0
    while IFS= read -r name; do
        [ $n -gt 0 ] && echo ,
        n=$((n + 1))
        printf '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %d, "dur": %d, "args": {"device": 0, ' "$name" $((n * 1000)) $((300 - n))
        printf '"stream": 7, "correlation": %d, "grid": [216, 1, 1], "block": [128, 1, 1], "registers per thread": 64, ' $n
        printf '"shared memory": 0}}'
    done <"$names"
    echo ']}'
} >trace.json
"$occq" import -d h.db trace.json >import 2>&1 || { cat import; exit 1; }

# rows without their numbers: the names of the kernels
for columns in 40 80 120 200; do
    COLUMNS=$columns "$occq" top -d h.db -n 1000 >top || fail "top at $columns columns"
    while IFS= read -r line; do # characters, not bytes
        [ ${#line} -le $columns ] || fail "wider than $columns: $line"
    done <top
    alike=$(sed '1,/^ *ID KERNEL /d' top | head -n -2 | cut -c 5- | sed -E 's/ +[0-9.]+( [um]s|%).*//' | sort | uniq -d)
    [ -z "$alike" ] || fail "alike at $columns columns: $alike"
    grep -q '^[0-9]* of [0-9]* kernels' top || fail "no footer"
done
grep -q '^ *ID KERNEL .* WHOSE' top || fail "200 columns are not used"
COLUMNS=80 "$occq" top -d h.db >top
grep -q '^ *ID KERNEL .* SHARE *USED WHY ' top || fail "no kernel"
[ "$(wc -l <top)" -le 23 ] || fail "top is longer than a screen with its prompt: $(cat top)"
head -1 top | grep -q 'recorded: kernels ran [0-9.]*% of the time' || fail "not how busy the GPU was: $(head -1 top)"
[ "$(sed -n '/^GPU time/,/^largest/p' top | sed '/^largest/d' | grep -o '[0-9]*%' | awk '{ sum += $1 } END { print sum }')" = 100 ] || fail "GPU time: $(cat top)"
for column in bound launches; do # what -o names stays, also where it is a default
    COLUMNS=60 "$occq" top -d h.db --advice -o "+$column" | head -1 | grep -qi " $column" || fail "-o +$column is not there"
done

for command in launches 'what-if --gpu h200'; do # both ends of what is expected
    COLUMNS=80 "$occq" $command -d h.db | head -4 | grep -q ' EXPECTED ' || fail "$command: no EXPECTED on 80 columns"
done

# a terminal: colours and a pager, which gets what standard output gets
on_terminal() { script -qec "stty cols 100; $1" /dev/null </dev/null; }
on_terminal "OCC_PAGER='sed s/^/paged:/' $occq top -d h.db -n 2" >out
[ "$(grep -c '^paged:' out)" -ge 4 ] || fail "not paged: $(cat out)"
grep -q $'\033\[1m' out || fail "no bold heading"
on_terminal "OCC_PAGER='sed s/^/paged:/' $occq top -d h.db -n 2 --no-pager --color=never" >out
grep -q -e paged: -e $'\033' out && fail "--no-pager, --color=never: $(cat out)"
on_terminal "PAGER=cat NO_COLOR=1 $occq top -d h.db -n 2" >out
grep -q $'\033' out && fail "NO_COLOR"
on_terminal "PAGER=false $occq top -d h.db -n 2; echo status \$?" >out # a pager that reads nothing
grep -q 'status [01]' out || fail "a pager that ends at once: $(cat out)"
OCC_PAGER='sed s/^/paged:/' "$occq" top -d h.db -n 2 -o +loss --color=always >out
grep -q paged: out && fail "paged into a file"
grep -q $'\033\[31m' out || fail "no colour for a large loss"
printf 'config:\n  - {rule: fits, theoretical: ">= 1%%"}\n  - {rule: large, registers_per_thread: ">= 999"}\n' >rules.yaml
"$occq" check -d h.db --rules rules.yaml --color=always >out
grep -q $'\033\[1;32mholds\033' out && grep -q $'\033\[1;31mfails\033' out || fail "check: no colours: $(cat out)"
"$occq" doctor -d h.db --color=always >out
grep -q $'^\033\[1;3[12]m[a-z]*\033' out || fail "doctor: no colours: $(cat out)"
"$occq" doctor -d h.db | grep -q $'\033' && fail "doctor: colours in a pipe"
for kernel in 1 2 3; do # of what `show` prints only words without a blank may be wider
    { COLUMNS=80 "$occq" show $kernel -d h.db && COLUMNS=80 "$occq" show $kernel --all -d h.db; } >out || fail "show"
    wide=$(grep -vE '[^ ]{40}' out | wc -L)
    [ "$wide" -le 80 ] || fail "$wide columns: $(cat out)"
done
grep -q '^      [a-z]' out || fail "nothing is wrapped: $(cat out)"
"$occq" show 3 -d h.db | grep -q '.\{100\}' || fail "wrapped in a pipe"
LC_ALL=C COLUMNS=80 "$occq" top -d h.db >out
grep -q -e $'\342' -e '\\x' out && fail "no ASCII: $(cat out)"

# names of wide characters are as wide as they look, whatever the locale
sed 's/"name": "[^"]*"/"name": "\xe8\xa1\x8c\xe5\x88\x97<float>"/; 20q' trace.json | sed '$s/,*$/]}/' >wide.json
"$occq" import -d w.db wide.json >/dev/null 2>&1 || fail "import of wide names"
for locale in C C.UTF-8; do
    LC_ALL=$locale COLUMNS=80 "$occq" top -d w.db >out
    grep -q $'\xe8\xa1\x8c\xe5\x88\x97' out || fail "no wide name in $locale"
    heading=$(sed -n '1s/TIME.*/TIME/p' out | wc -L) row=$(sed -n '2s/ms.*/ms/p' out | wc -L)
    [ "$heading" = "$row" ] || fail "wide names in $locale: $(cat out)"
done
exit $failed
