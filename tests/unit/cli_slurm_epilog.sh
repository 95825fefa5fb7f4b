#!/usr/bin/env bash
# cli_slurm_epilog.sh OCCQ CLI_HISTORY EPILOG.in: the Slurm epilog writes a job's verdict by a scontrol that keeps its words, once
# a job, and ends with 0 whatever it finds.
set -u
occq=$1 history=$2 epilog=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

mkdir -p "$work/bin" "$work/state/u1000"
"$history" "$work/state/u1000/history.db" || exit 1
# The words of "update" are kept, one a line.
cat >"$work/bin/scontrol" <<'S'
#!/bin/sh
case $1 in
show) printf 'node1\nnode2\n' ;;
*) printf '%s\n' "$@" >>"$SAID" ;;
esac
exit ${SCONTROL_STATUS:-0}
S
ln -s "$occq" "$work/bin/occq"
sed "s|@bin@|$work/bin|; s|@bin@|$work/bin|g" "$epilog" >"$work/epilog"
chmod +x "$work/bin/scontrol" "$work/epilog"

# epilog NAME=VALUE...: what it told scontrol is in $work/said
epilog() {
    rm -f "$work/said"
    env -i "PATH=$work/bin:$PATH" "SAID=$work/said" "OCCTRACE_STATE=$work/state" SLURM_JOB_ID=4713 SLURM_JOB_UID=1000 \
        'SLURM_JOB_NODELIST=node[1-2]' SLURMD_NODENAME=node1 "$@" "$work/epilog" >"$work/out" 2>&1
    local status=$?
    [ $status -eq 0 ] || fail "$*: status $status"
    [ ! -s "$work/out" ] || fail "$*: prints $(cat "$work/out")"
}

sqlite3 "$work/state/u1000/history.db" "UPDATE stored_run SET end_ns = start_ns + 1000000000" || exit 1
epilog
[ "$(sed -n 1,2p "$work/said" | tr '\n' ' ')" = "update JobId=4713 " ] || fail "the job: $(cat "$work/said")"
grep -q '^AdminComment=occtrace node1: Tesla T4, .* recorded: .*; GPU time: .*; largest loss: ' "$work/said" || fail "the verdict: $(cat "$work/said")"
[ "$(wc -l <"$work/said")" -eq 3 ] || fail "more than one comment"

# One node of the job writes; a job without launches, or without a history, has no comment; a scontrol that fails is no failure.
silent() { [ ! -e "$work/said" ] || fail "$*: $(cat "$work/said")"; }
epilog SLURMD_NODENAME=node2
silent "another node"
epilog SLURM_JOB_ID=99
silent "a job that is not recorded"
epilog SLURM_JOB_UID=1001
silent "a user without a history"
epilog SCONTROL_STATUS=1
for value in '' '4713;touch x' "4713' OR 1=1 --" '1000/../u1000' '-1'; do
    epilog SLURM_JOB_ID="$value"
    silent "job '$value'"
    epilog SLURM_JOB_UID="$value"
    silent "uid '$value'"
done

# Names of devices and kernels that a program chose stay one printable word of at most 500 bytes and its head.
sqlite3 "$work/state/u1000/history.db" "UPDATE stored_device SET name = 'x' || char(10) || 'JobId=1' || char(27) || '\$(id)\`id\`é' || replace(hex(zeroblob(400)), '0', 'y')"
epilog SLURM_JOB_NAME='a
b'
[ "$(wc -l <"$work/said")" -eq 3 ] || fail "a hostile name: $(cat "$work/said")"
[ "$(tail -n 1 "$work/said" | wc -c)" -le 540 ] || fail "a long name"
LC_ALL=C grep -q '[^ -~]' "$work/said" && fail "control characters"
grep -q '^JobId=1' "$work/said" && fail "another job"
exit $failed
