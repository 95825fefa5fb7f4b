#!/usr/bin/env bash
# cli_slurm_epilog.sh OCCQ CLI_HISTORY EPILOG.in: the Slurm epilog appends a job's verdict to the job's output, once a job, with the
# user's rights, and ends with 0 whatever it finds. scontrol, setpriv, findmnt, timeout and
# sleep are stand-ins.
set -u
occq=$1 history=$2 epilog=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

mkdir -p "$work/bin" "$work/state/u1000"
"$history" "$work/state/u1000/history.db" || exit 1
printf '#!/bin/sh\nprintf "node1\\nnode2\\n"\n' >"$work/bin/scontrol"
printf '#!/bin/sh\necho "$1 $2 $3 $4 $5 $6" >>"%s/rights"\nshift 6\nexec "$@"\n' "$work" >"$work/bin/setpriv"
printf '#!/bin/sh\nfor last; do :; done\n[ -e "$last" ] && echo "${FSTYPE-ext4}"\n' >"$work/bin/findmnt"
printf '#!/bin/sh\n[ "$1 $2" = "-k 1" ] || echo "$*" >>"%s/patient"\nexec "%s" "$@"\n' "$work" "$(command -v timeout)" >"$work/bin/timeout"
ln -s "$occq" "$work/bin/occq"
sed "s|@bin@|$work/bin|g" "$epilog" >"$work/epilog"
printf '#!/bin/sh\necho "$*" >>"%s/waits"\n' "$work" >"$work/bin/sleep"
chmod +x "$work/bin/sleep" "$work/bin/scontrol" "$work/bin/setpriv" "$work/bin/findmnt" "$work/bin/timeout" "$work/epilog"

# epilog NAME=VALUE...: appends to $work/a job's output
epilog() {
    rm -f "$work/rights"
    echo "the job's line" >"$work/a job's output"
    env -i "PATH=$work/bin:$PATH" "OCCTRACE_STATE=$work/state" SLURM_JOB_ID=4713 SLURM_JOB_UID=1000 SLURM_JOB_GID=100 \
        'SLURM_NODELIST=node[1-2]' SLURMD_NODENAME=node1 "SLURM_JOB_STDOUT=$work/a job's output" "$@" "$work/epilog" >"$work/out" 2>&1
    local status=$?
    [ $status -eq 0 ] || fail "$*: status $status"
    [ ! -s "$work/out" ] || fail "$*: prints $(cat "$work/out")"
    said=$(sed 1d "$work/a job's output")
}
silent() { [ -z "$said" ] || fail "$*: $said"; }

sqlite3 "$work/state/u1000/history.db" "UPDATE stored_run SET end_ns = NULL" || exit 1
epilog
[ "$(wc -l <"$work/waits")" -eq 3 ] || fail "a job whose end is not stored: $(cat "$work/waits")"
rm "$work/waits"
sqlite3 "$work/state/u1000/history.db" "UPDATE stored_run SET end_ns = start_ns + 1000000000" || exit 1
epilog
[ ! -e "$work/waits" ] || fail "waits for a job that has ended"
[ "$(grep -c '^occtrace node1: ' <<<"$said")" -eq 3 ] && [ "$(wc -l <<<"$said")" -eq 3 ] || fail "three lines: $said"
for words in 'Tesla T4, .* recorded: ' 'GPU time: ' 'largest loss: '; do
    grep -q "^occtrace node1: $words" <<<"$said" || fail "$words: $said"
done
[ "$(sort -u "$work/rights")" = "--reuid 1000 --regid 100 --clear-groups --no-new-privs" ] || fail "rights: $(cat "$work/rights")"

# One node of the job writes, to a file that exists; a job without launches, or without a history, gets nothing.
epilog SLURMD_NODENAME=node2
silent "another node"
epilog SLURM_JOB_STDOUT=
silent "no output"
epilog "SLURM_JOB_STDOUT=$work/none"
[ ! -e "$work/none" ] || fail "a file is made"
mkfifo "$work/fifo" && epilog "SLURM_JOB_STDOUT=$work/fifo"
epilog SLURM_JOB_ID=99
silent "a job that is not recorded"
epilog SLURM_JOB_UID=1001
silent "a user without a history"
for value in '' '4713;touch x' "4713' OR 1=1 --" '1000/../u1000' '-1'; do
    for name in SLURM_JOB_ID SLURM_JOB_UID SLURM_JOB_GID; do
        epilog "$name=$value"
        silent "$name '$value'"
    done
done

# A relative path is one in the job's directory; a file system of a user's process (FUSE), or an unknown one, gets nothing.
epilog "SLURM_JOB_STDOUT=a job's output" "SLURM_JOB_WORK_DIR=$work"
[ "$(wc -l <<<"$said")" -eq 3 ] || fail "a relative path: $said"
for directory in '' relative; do
    epilog "SLURM_JOB_STDOUT=a job's output" "SLURM_JOB_WORK_DIR=$directory"
    silent "a relative path in '$directory'"
done
for type in fuse fuse.sshfs fuseblk ''; do
    epilog "FSTYPE=$type"
    silent "file system '$type'"
done
epilog FSTYPE=nfs4
[ "$(wc -l <<<"$said")" -eq 3 ] || fail "nfs4: $said"
[ ! -e "$work/patient" ] || fail "a process may outlive its time limit: $(cat "$work/patient")"

# sbatch's patterns; an unknown one has no output.
pattern() { # PATTERN NAME
    echo >"$work/$2"
    epilog "SLURM_JOB_STDOUT=$work/$1" SLURM_ARRAY_JOB_ID=4711 SLURM_ARRAY_TASK_ID=2 SLURM_JOB_USER=ada
    [ "$(wc -l <"$work/$2")" -eq 4 ] || fail "$1 is not $2"
}
pattern slurm-%j.out slurm-4713.out
pattern %A_%a.%u%% 4711_2.ada%
echo >"$work/n%5j" && epilog "SLURM_JOB_STDOUT=$work/n%5j"
[ "$(wc -l <"$work/n%5j")" -eq 1 ] || fail "an unknown pattern"

# Names that a program chose stay printable and short.
sqlite3 "$work/state/u1000/history.db" "UPDATE stored_device SET name = 'x' || char(10) || 'y' || char(27) || '\$(id)\`id\`é' || replace(hex(zeroblob(400)), '0', 'y')"
epilog
[ "$(wc -l <<<"$said")" -eq 3 ] && ! LC_ALL=C grep -q '[^ -~]' <<<"$said" || fail "a hostile name: $said"
[ "$(wc -L <<<"$said")" -le 230 ] || fail "a long name: $said"
exit $failed
