#!/usr/bin/env bash
# How programs of a node report without being started by occtrace: packaging/opt-in tried with login shells, srun, podman, and
# an upgrade while programs run.   opt_in.sh BUILD [CASE]
set -euo pipefail
. "$(dirname "$0")/opt_in_node.sh"
start_daemon

# ---- login shells ----

profile_of() { sh -c ". $share/opt-in/profile.sh; printf %s \"\${CUDA_INJECTION64_PATH:-}\""; }
login_shells() {
  is "a login shell" "$(profile_of)" "$library"
  is "another profiler's" "$(CUDA_INJECTION64_PATH=/other.so profile_of)" /other.so
  touch "$HOME/.config/occtrace/off"
  is "a user who is out" "$(profile_of)" ""
  rm "$HOME/.config/occtrace/off"
  is "set -eu" "$(env -u HOME -u XDG_CONFIG_HOME sh -euc ". $share/opt-in/profile.sh; printf %s \"\$CUDA_INJECTION64_PATH\"")" "$library"
  mv /run/occtrace/occtraced.sock /run/occtrace/away
  is "no daemon" "$(profile_of)" ""
  mv /run/occtrace/away /run/occtrace/occtraced.sock
  [ ${#hello[@]} -gt 0 ] || return 0
  recorded "SELECT max(launches) FROM run WHERE end_ns IS NOT NULL" 7 \
    sh -c '. "$0"; exec "$@"' "$share/opt-in/profile.sh" "${hello[@]}" --launches 7
  OCCTRACE_DISABLE=1 sh -c '. "$0"; exec "$@"' "$share/opt-in/profile.sh" "${hello[@]}" --launches 8 >/dev/null
  sleep 1
  is "a program that is out" "$(query 'SELECT count(*) FROM run WHERE launches = 8')" 0
}

# ---- users other than root, and sessions with a directory of their own: no variable names the daemon's socket ----

launched() { echo "SELECT min(1, count(*)) FROM run WHERE launches = $1 AND end_ns IS NOT NULL"; }
other_users() {
  [ ${#hello[@]} -gt 0 ] || return 0
  local login=(sh -c '. "$0"; exec "$@"' "$share/opt-in/profile.sh" "${hello[@]}" --launches) reason
  local task=(sh -c 'eval "$("$0")"; exec "$@"' "$share/opt-in/slurm-task-prolog" "${hello[@]}" --launches)
  mkdir -p "$work/session"
  recorded "$(launched 31)" 1 env XDG_RUNTIME_DIR="$work/session" "${login[@]}" 31
  local as_user=(setpriv --reuid 47110 --regid 47110 --clear-groups) # no user of this machine, who may run a daemon
  if ! reason=$("${as_user[@]}" "$build/bin/occq" --version 2>&1); then
    echo "NOT TESTED as another user: ${reason:0:200}"
    return 0
  fi
  chmod 755 "$work" "$work/home"
  recorded "$(launched 32)" 1 "${as_user[@]}" "${login[@]}" 32
  recorded "$(launched 33)" 1 "${as_user[@]}" "${task[@]}" 33
  install -d -o 47110 -m 700 "$work/session-47110"
  recorded "$(launched 34)" 1 "${as_user[@]}" env XDG_RUNTIME_DIR="$work/session-47110" "${login[@]}" 34
  install -d -m 755 /tmp/occtrace-47110 # as another user makes it
  chown 47111 /tmp/occtrace-47110
  local code=0
  (recorded "$(launched 35)" 1 "${as_user[@]}" "${login[@]}" 35) || code=$?
  rm -rf /tmp/occtrace-47110
  is "another user took the name in /tmp" "$code" 0
}

# ---- Slurm: one node, its controller and munge, in this network namespace ----

start_slurm() {
  ip link set lo up
  ip addr add 10.11.12.13/32 dev lo # names are looked up for families that have more than a loopback address
  hostname occtest
  echo "127.0.0.1 localhost occtest" >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  mkdir -p "$work"/slurm/{state,spool} "$work/munge"
  chmod 755 "$work" "$work/munge"
  head -c 128 /dev/urandom >"$work/munge/key"
  chmod 600 "$work/munge/key"
  printf '#!/bin/sh\nSLURM_CONF=%s OCCTRACE_STATE=%s exec %s/opt-in/slurm-epilog\n' "$work/slurm/slurm.conf" "$work" "$share" >"$work/slurm/epilog"
  chmod +x "$work/slurm/epilog"
  cat >"$work/slurm/slurm.conf" <<S
ClusterName=test
SlurmctldHost=occtest(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.pid
SlurmctldLogFile=$work/slurm/slurmctld.log
SlurmdLogFile=$work/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
ReturnToService=2
TaskProlog=$share/opt-in/slurm-task-prolog
Epilog=$work/slurm/epilog
NodeName=occtest NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
S
  export SLURM_CONF=$work/slurm/slurm.conf
  munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" 2>"$work/munge/out" &
  pids+=($!)
  wait_for 20 test -S "$work/munge/socket"
  slurmctld -D >"$work/slurm/ctld.out" 2>&1 &
  pids+=($!)
  slurmd -D >"$work/slurm/d.out" 2>&1 &
  pids+=($!)
}
slurm_is_up() { timeout 5 sinfo -h -o %T 2>/dev/null | grep -q idle; }
injected() { printenv CUDA_INJECTION64_PATH || echo none; }
slurm() {
  local tool i
  for tool in srun slurmctld slurmd munged ip; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "NOT TESTED with srun: no $tool (scripts/setup --cluster)"; return 0; }
  done
  PATH=$PATH:/usr/sbin
  start_slurm
  for ((i = 0; i < 200; i++)); do
    slurm_is_up && break
    sleep 0.1
  done
  if ! slurm_is_up; then
    echo "NOT TESTED with srun: Slurm does not start here: $(cat "$work"/munge/out "$work"/slurm/*.out | grep -i error | tail -1)"
    return 0
  fi
  export -f injected
  is "srun" "$(srun bash -c injected)" "$library"
  is "a job that is out" "$(OCCTRACE_DISABLE=1 srun bash -c injected)" none
  is "a job with another profiler" "$(CUDA_INJECTION64_PATH=/other.so srun bash -c injected)" /other.so
  touch "$HOME/.config/occtrace/off"
  is "a job of a user who is out" "$(srun bash -c injected)" none
  rm "$HOME/.config/occtrace/off"
  is "a batch job" "$(sbatch --wait -o "$work/batch" --wrap 'srun printenv CUDA_INJECTION64_PATH' >/dev/null; cat "$work/batch")" "$library"
  [ ${#hello[@]} -gt 0 ] || return 0
  recorded "SELECT max(ranks) FROM (SELECT count(*) AS ranks FROM run WHERE launches = 5 GROUP BY slurm_job)" 2 \
    srun -n 2 --overcommit "${hello[@]}" --launches 5
  recorded "SELECT DISTINCT slurm_account || ' ' || slurm_partition || ' ' || slurm_array_task FROM run WHERE slurm_array_task IS NOT NULL" \
    "phys test 3" sbatch --wait -A phys --array=3 -o "$work/batch-%j" --wrap "srun ${hello[*]} --launches 6"
  wait_for 30 grep -q '^occtrace occtest: largest loss: ' "$work"/batch-[0-9]*
  local name
  for name in 'of-%A_%3a-%u-%N-%n-%t-%s-%J-%%-%q' '' 'literal\\-%A_%a'; do # as sbatch names the output, '': its default
    mkdir -p "$work/names"
    rm -f "$work"/names/*
    (cd "$work/names" && sbatch --wait --array=3 ${name:+-o "$name"} --wrap "srun ${hello[*]} --launches 6") >/dev/null
    wait_for 30 grep -q '^occtrace occtest: largest loss: ' "$work"/names/*
  done
}

# ---- containers: the CDI device, and the hook for all containers ----

containers() {
  local root=$work/rootfs inside
  prepare_containers || return 0
  inside='printenv CUDA_INJECTION64_PATH; ls -d "$CUDA_INJECTION64_PATH" "$OCCTRACE_SOCKET"'
  is "a container that asks for nothing" "$(in_container --rootfs "$root" sh -c 'printenv CUDA_INJECTION64_PATH || echo none')" none
  cp "$share/opt-in/occtrace-cdi.yaml" /etc/cdi/
  is "the CDI device" "$(in_container --device occtrace.io/profiler=node --rootfs "$root" sh -c "$inside" | tr '\n' ' ')" \
    "$library /run/occtrace/occtraced.sock $library "
  cp "$share/opt-in/oci-hook.json" "$work/hooks/"
  is "the hook" "$(in_container --rootfs "$root" sh -c "$inside" | tr '\n' ' ')" "$library /run/occtrace/occtraced.sock $library "
  local none='printenv CUDA_INJECTION64_PATH || echo none'
  is "a container that is out" "$(in_container --annotation io.occtrace.off=1 --rootfs "$root" sh -c "$none")" none
  is "a variable" "$(in_container -e OCCTRACE_DISABLE=1 --rootfs "$root" sh -c "$none")" none
  is "another profiler" "$(in_container -e CUDA_INJECTION64_PATH=/other.so --rootfs "$root" sh -c "$none")" /other.so
  is "a container without limits" "$(in_container --ulimit core=-1:-1 --rootfs "$root" sh -c "$inside" | tr '\n' ' ')" \
    "$library /run/occtrace/occtraced.sock $library "
  # the text of each number stays, also of one that no double has; a string is no number
  local numbers='"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":18446744073709551615,"soft":-1}],"limit":9223372036854775807,"x":[1e400,-0.12345678901234567890,true,"a\\\"1,2"]'
  local strings='"A=\"B\":[18446744073709551615,\\\\"'
  is "numbers" "$(printf '{"process":{"env":[%s],%s},"mounts":[]}' "$strings" "$numbers" | "$share/opt-in/oci-hook" | sed 's/"mounts".*//')" \
    "{\"process\":{\"env\":[$strings,\"CUDA_INJECTION64_PATH=$library\",\"OCCTRACE_SOCKET=/run/occtrace/occtraced.sock\"],$numbers},"
  local other='{"process":{"args":["@number:7"],"env":[]}}'
  is "a text of the hook's own" "$(echo "$other" | "$share/opt-in/oci-hook")" "$other"
  is "a broken configuration" "$(echo '{"process": 7' | "$share/opt-in/oci-hook")" '{"process": 7'
  [ ${#hello[@]} -gt 0 ] || return 0
  recorded "SELECT min(1, count(*)) FROM run WHERE launches = 9" 1 in_container --rootfs "$root" "${hello[@]}" --launches 9
  # a pod's user, with the variable and the mounts of the admission webhook
  rm /etc/cdi/occtrace-cdi.yaml "$work/hooks/oci-hook.json"
  chmod 755 "$work" "$work/rootfs"
  recorded "$(launched 36)" 1 in_container --user 1000 -e CUDA_INJECTION64_PATH="$library" -v "$plugins:$plugins:ro" \
    -v /run/occtrace:/run/occtrace:ro --rootfs "$root" "${hello[@]}" --launches 36
  root_in_a_container
}

# Root of a container has uid 0 on the host, and a mount that is read-only stops neither connect() nor locks.
root_in_a_container() {
  local root=$work/rootfs holder page='curl -s --unix-socket /run/occtrace-metrics/metrics.sock http://node/metrics'
  names() { grep -q '^occtrace_run_info{' && echo names || echo none; }
  is "the directory that containers mount" "$(in_container -v /run/occtrace:/run/occtrace:ro --rootfs "$root" ls /run/occtrace | tr '\n' ' ')" \
    "occtraced.lock occtraced.sock "
  if command -v curl >/dev/null; then
    is "names for root of the host" "$($page | names)" names
    is "names for root of a container" \
      "$(in_container -v /run/occtrace-metrics:/run/occtrace-metrics:ro --rootfs "$root" sh -c "$page | sed 's/^occtrace_gpu_launches_total{/seen &/'" | tee "$work/page" | names)" none
    grep -q '^seen ' "$work/page" || fail "a container gets the series of GPUs"
  fi
  in_container --cap-drop all -v /run/occtrace:/run/occtrace:ro --rootfs "$root" python3 -c '
import fcntl, os, time
fd = os.open("/run/occtrace/occtraced.lock", os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
print("locked", flush=True)
while not os.path.exists("/run/occtrace/leave"):
    time.sleep(0.05)' >"$work/lock" 2>&1 &
  holder=$!
  pids+=("$holder")
  wait_for 30 grep -qx locked "$work/lock"
  kill "$daemon"
  wait "$daemon" || true
  start_daemon
  touch /run/occtrace/leave
  wait "$holder" || fail "the container with the lock: $(cat "$work/lock")"
  rm /run/occtrace/leave
}

# ---- an upgrade: the library is replaced by rename, the daemon by another process ----

upgrade() {
  local old
  [ ${#hello[@]} -gt 0 ] || return 0
  export CUDA_INJECTION64_PATH=$library
  "${hello[@]}" --spin --batch 16 --sleep-ms 5 >"$work/spin.out" 2>"$work/spin.err" &
  old=$!
  pids+=("$old")
  wait_for 30 has "SELECT count(*) FROM run WHERE end_ns IS NULL AND launches > 0" 1
  cp "$library" "$library.dpkg-new" # as dpkg does
  mv "$library.dpkg-new" "$library"
  grep -q "libocctrace.so (deleted)" "/proc/$old/maps" || fail "the running program does not keep its library"
  kill "$daemon"
  wait "$daemon" || true
  start_daemon
  recorded "SELECT min(1, count(*)) FROM run WHERE launches = 11 AND end_ns IS NOT NULL" 1 "${hello[@]}" --launches 11
  kill -TERM "$old"
  local code=0
  wait "$old" || code=$?
  is "the old program's end" "$code" 143 # it ends by the signal, after its loop
  wait_for 30 has "SELECT count(*) FROM run WHERE end_ns IS NULL" 0
  is "lost" "$(query 'SELECT coalesce(sum(lost), 0) FROM run')" 0
  [ ! -s "$work/spin.err" ] || fail "the program says: $(cat "$work/spin.err")"
  unset CUDA_INJECTION64_PATH
}

# ---- prolog and epilog of the documents: Slurm drains a node whose prolog fails ----

document() { # Prolog or Epilog: its lines, with a directory of the test
  sed -n '/^# Prolog$/,/^```/p' "$here/docs/opt-in.md" | awk -v part="# $1" '/^# (Prolog|Epilog)$/ {on = $0 == part} /^```/ {on = 0} on' |
    sed "s|/run/dcgm-job-mapping|$work/jobs|g"
}
scheduler() {
  local directory=$work/jobs prolog epilog
  prolog=$(document Prolog) epilog=$(document Epilog)
  [[ $prolog == *SLURM_JOB_GPUS* && $epilog == *rm* ]] || fail "no prolog and epilog in docs/opt-in.md"
  is "a prolog after a boot" "$(umask 077; SLURM_JOB_ID=7 SLURM_JOB_GPUS=0,3 sh -c "$prolog"; echo $?; stat -c %a "$directory"; cat "$directory/0" "$directory/3")" $'0\n755\n7\n7'
  is "an epilog" "$(SLURM_JOB_ID=7 SLURM_JOB_GPUS=0,3 sh -c "$epilog"; echo $?; ls "$directory")" 0
  is "a job without GPUs" "$(SLURM_JOB_ID=8 sh -c "$prolog"; echo $?; SLURM_JOB_ID=8 sh -c "$epilog"; echo $?; ls "$directory")" $'0\n0'
  rmdir "$directory"
  : >"$directory"
  is "a prolog that cannot write" "$(SLURM_JOB_ID=7 SLURM_JOB_GPUS=0 sh -c "$prolog" 2>/dev/null; echo $?)" 0
  rm "$directory"
}

# ---- what CDI is given: of one mind about paths ----

manifests() {
  python3 -c 'import yaml' 2>/dev/null || { echo "NOT TESTED: the CDI file (no python3-yaml; scripts/setup --cluster)"; return 0; }
  python3 - "$share/opt-in/occtrace-cdi.yaml" <<'P'
import sys, yaml
edits = yaml.safe_load(open(sys.argv[1]))["devices"][0]["containerEdits"]
environment = dict(line.split("=") for line in edits["env"])
for path in environment.values():
    assert any(path.startswith(mount["containerPath"] + "/") for mount in edits["mounts"]), path
P
}

for each in ${2:-manifests login_shells other_users scheduler slurm containers upgrade}; do
  echo "-- $each"
  $each
done
echo ok
