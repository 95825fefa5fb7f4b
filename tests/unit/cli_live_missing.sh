#!/usr/bin/env bash
# cli_live_missing.sh CLI_HISTORY OCCQ: occq live in scripts. A history that does not exist is an error at once; --wait waits for it.
set -u
history=$1 occq=$2
work=$(mktemp -d)
waiting=
trap '[ -n "$waiting" ] && kill "$waiting" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export TZ=UTC LC_ALL=C NO_COLOR=1
failed=0
fail() { echo "FAIL: $*"; failed=1; }
"$history" h.db || exit 1

for how in --json -b '--json -n 3' '-b -n 1'; do
    timeout 60 "$occq" live -d missing.db $how -i 100ms >stdout 2>stderr # 124: it waits
    status=$?
    [ $status = 1 ] || fail "live $how without a history: status $status"
    [ -s stdout ] && fail "live $how: an answer without a history"
    [ "$(grep -c 'there is no history at missing.db' stderr)" = 1 ] || { fail "live $how: message"; cat stderr; }
done
timeout 60 "$occq" live -d h.db --json -n 1 >stdout 2>stderr
[ $? = 3 ] && [ -s stdout ] || fail "a history without recent launches"
"$occq" live -d h.db --wait >stdout 2>stderr
[ $? = 2 ] || fail "--wait on a terminal"

# --wait: at least one attempt fails, then the history appears, and the answers follow
"$occq" live -d late.db --json --wait -i 100ms >stdout 2>stderr &
waiting=$!
for i in $(seq 600); do grep -q 'there is no history' stderr && break; sleep 0.1; done
cp h.db late.db
for i in $(seq 600); do grep -q '"kernels"' stdout && break; sleep 0.1; done
grep -q '"kernels"' stdout || { fail '--wait: no answer'; cat stderr; }
kill -0 $waiting || fail '--wait ended'
exit $failed
