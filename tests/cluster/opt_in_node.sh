# A node that programs report to, for the tests of packaging/opt-in: sourced with the build directory as $1, before anything else.
#
# Everything happens in namespaces of its own (/run, /etc/cdi, the host's name, the network), as root of this machine or of a
# user namespace. Afterwards a daemon can be started; `hello` is a CUDA program on the simulated device, if that was built.
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ -z "${OCC_NODE_NAMESPACE:-}" ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(--user --map-root-user)
  unshare "${as_root[@]}" --mount --net --uts true 2>/dev/null || { echo "SKIP: no namespaces can be made here"; exit 77; }
  OCC_NODE_NAMESPACE=1 exec unshare "${as_root[@]}" --mount --net --uts --propagation private "$0" "$@"
fi
work=$(mktemp -d)
plugins=$work/plugins share=$work/share pids=()
finish() {
  kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$work/daemon.log" "$work/container.out" 2>/dev/null; query "SELECT run_id, launches, lost, slurm_job, end_ns FROM run" || true; exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"; }

# ---- the node: what the package installs, and a daemon ----

mount -t tmpfs tmpfs /run
mkdir -p /run/occtrace "$plugins" "$share/opt-in" "$work/home/.config/occtrace"
cp "$build"/lib/occtrace/libocctrace.so "$plugins"
for file in "$here"/packaging/opt-in/*.in; do
  sed "s|@plugins@|$plugins|g; s|@share@|$share|g; s|@bin@|$build/bin|g" "$file" >"$share/opt-in/$(basename "$file" .in)"
done
chmod +x "$share"/opt-in/{slurm-task-prolog,slurm-epilog,oci-hook}
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config
unset CUDA_INJECTION64_PATH OCCTRACE_SOCKET OCCTRACE_DISABLE LD_PRELOAD OCCTRACE_CUPTI XDG_RUNTIME_DIR
library=$plugins/libocctrace.so
history=$work/history.db
hello=() # a CUDA program on the simulated device, where it is built
if [ -x "$build/samples/hello" ] && [ -e "$build/simgpu/libcuda.so.1" ]; then
  hello=("$here/scripts/simgpu" --build "$build" "$build/samples/hello")
else
  echo "NOT TESTED: programs that launch kernels (no simulated device in this build)"
fi
wait_for() { # seconds of patience, command
  local deadline=$((SECONDS + $1))
  while ! "${@:2}"; do
    [ $SECONDS -lt $deadline ] || fail "waited in vain: ${*:2}"
    sleep 0.02
  done
}
start_daemon() {
  rm -f /run/occtrace/occtraced.sock
  "$build/bin/occtraced" -d "$history" --socket /run/occtrace/occtraced.sock 2>"$work/daemon.log" &
  daemon=$!
  pids+=("$daemon")
  wait_for 30 test -S /run/occtrace/occtraced.sock
}
query() { "$build/bin/occq" sql -d "$history" --csv "$1" | sed 1d | tr -d '\r'; }
has() { [ "$(query "$1")" = "$2" ]; }
# SQL EXPECTED COMMAND...: the command's programs are recorded. A program waits two seconds for the daemon when it ends, no
# longer: on a machine under load it may take another.
recorded() {
  local i attempt
  for attempt in 1 2 3 4 5; do
    "${@:3}" >"$work/recorded.out" || fail "${*:3}: $(cat "$work/recorded.out")"
    for ((i = 0; i < 250; i++)); do
      has "$1" "$2" && return
      sleep 0.02
    done
  done
  fail "not recorded: ${*:3}"
}

# ---- containers: podman with crun, whose root file system is this machine's /usr ----

in_container() { # options of podman...
  timeout 60 podman --root "$work/podman/root" --runroot "$work/podman/run" --tmpdir "$work/podman/tmp" --cgroup-manager=cgroupfs \
    --storage-driver=vfs --runtime crun --events-backend none --hooks-dir "$work/hooks" run --rm --network=none --cgroups=disabled \
    --ulimit "nofile=$(ulimit -n):$(ulimit -Hn)" --ulimit nproc=1000:1000 --security-opt seccomp=unconfined \
    -v /usr:/usr:ro -v "$here:$here:ro" -v "$build:$build:ro" "$@"
}

# Prints the reason and fails where containers cannot run here.
prepare_containers() {
  local root=$work/rootfs dir tool
  for tool in podman crun jq; do
    command -v $tool >/dev/null || { echo "NOT TESTED with containers: no $tool (scripts/setup --cluster)"; return 1; }
  done
  mkdir -p "$root"/{usr,etc,tmp,proc,dev,sys,run} "$work/hooks" "$work/etc"
  for dir in bin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
  [ -d /sys/fs/cgroup/unified ] && { umount -l /sys/fs/cgroup/unified || true; } # crun refuses the hybrid hierarchy
  mount -t tmpfs tmpfs /etc/containers 2>/dev/null || true
  if ! in_container --rootfs "$root" true 2>"$work/podman.err"; then
    echo "NOT TESTED with containers: podman does not run here: $(tail -1 "$work/podman.err")"
    return 1
  fi
  # podman looks for devices in /etc/cdi
  mount -t overlay overlay -o "lowerdir=/etc,upperdir=$(mktemp -d -p "$work"),workdir=$(mktemp -d -p "$work")" /etc 2>/dev/null &&
    mkdir -p /etc/cdi || { echo "NOT TESTED with containers: CDI (an overlay over /etc cannot be mounted)"; return 1; }
}
