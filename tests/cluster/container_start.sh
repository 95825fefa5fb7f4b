#!/usr/bin/env bash
# Containers start, and their programs report, whatever state occtrace is in: the daemon stopped, restarted below a running
# program, not yet started after a boot; the package removed or purged.   container_start.sh BUILD [WAY_CASE...]
#
# Directories follow the packaged files: /run/occtrace outlives a stop of the daemon only where the unit preserves it
# (systemd.exec(5)), and exists after a boot only where tmpfiles.d names it (tmpfiles.d(5)).
set -euo pipefail
. "$(dirname "$0")/opt_in_node.sh"
prepare_containers || exit 77
[ ${#hello[@]} -gt 0 ] || { echo "SKIP: no simulated device in this build"; exit 77; }
root=$work/rootfs
tmpfiles=$share/opt-in/occtrace-tmpfiles.conf

# ---- the node's life, as systemd and dpkg would lead it ----

stop_daemon() {
  kill "$daemon"
  wait "$daemon" || true
  grep -qx 'RuntimeDirectoryPreserve=yes' "$here/config/occtraced.service.in" || rm -rf /run/occtrace
}
start_service() { # systemd makes RuntimeDirectory= before the daemon starts
  mkdir -p /run/occtrace
  start_daemon
}
boot() { # /run is empty, then systemd-tmpfiles-setup.service has run
  local kind path mode rest
  find /run -mindepth 1 -delete
  [ -e "$tmpfiles" ] || return 0
  while read -r kind path mode rest; do
    [ "$kind" != d ] || mkdir -p -m "$mode" "$path"
  done <"$tmpfiles"
}
remove_package() { rm -rf "${plugins:?}"/* "$share/opt-in"; } # dpkg leaves configuration: the device, and its directories
purge_package() {
  remove_package
  rm -rf /etc/cdi/occtrace-cdi.yaml /run/occtrace "$plugins"
}
install_package() {
  cp -a "$work/installed/share/." "$share"
  mkdir -p "$plugins"
  cp -a "$work/installed/plugins/." "$plugins"
}
mkdir "$work/installed"
cp -a "$share" "$work/installed/share"
cp -a "$plugins" "$work/installed/plugins"

# ---- the two ways into containers ----

options=()
use_cdi() {
  rm -f "$work/hooks"/*
  cp "$work/installed/share/opt-in/occtrace-cdi.yaml" /etc/cdi/
  options=(--device occtrace.io/profiler=node)
}
use_hook() {
  rm -f /etc/cdi/occtrace-cdi.yaml
  ln -sfn "$share/opt-in/oci-hook.json" "$work/hooks/oci-hook.json"
  options=()
}
container() { in_container "${options[@]}" --rootfs "$root" "$@"; }

# ---- the cases: the container starts, and launches before and after are in the history ----

runs_with() { # launches: exactly one ended run has so many, none of them lost
  has "SELECT count(*) FROM run WHERE launches = $1 AND lost = 0 AND end_ns IS NOT NULL" 1
}
# Starts a container with a program that launches for seconds.
start_container() { # launches
  container "${hello[@]}" --launches "$1" --batch 1 --sleep-ms 20 >"$work/container.out" 2>&1 &
  pids+=($!)
  program=$!
}
end_container() {
  local code=0
  wait "$program" || code=$?
  is "the container's status" "$code" 0
}
stopped() {
  stop_daemon
  start_container 151
  sleep 1 # some launches precede the daemon
  start_service
  end_container
  wait_for 60 runs_with 151
}
restarted() {
  mkdir -p "$work/flags"
  rm -f "$work/flags/second"
  in_container "${options[@]}" -v "$work/flags:/flags" --rootfs "$root" sh -c '"$@" --launches 152 --batch 1 --sleep-ms 20
    for i in $(seq 600); do [ -e /flags/second ] && break; sleep 0.2; done # bounded: the container outlives a failed test
    exec "$@" --launches 57 --batch 1 --sleep-ms 20' sh "${hello[@]}" >"$work/container.out" 2>&1 &
  program=$!
  pids+=("$program")
  wait_for 60 has "SELECT count(*) FROM run WHERE end_ns IS NULL AND launches > 0" 1
  stop_daemon
  sleep 0.5 # the program launches without a daemon
  start_service
  wait_for 60 runs_with 152
  touch "$work/flags/second"
  end_container
  wait_for 60 runs_with 57
}
booted() {
  stop_daemon
  boot
  start_container 153
  sleep 1
  start_service
  end_container
  wait_for 60 runs_with 153
}
removed() {
  remove_package
  is "a container after the package was removed" "$(container echo started)" started
  install_package
}
purged() {
  purge_package
  is "a container after the package was purged" "$(container sh -c 'printenv CUDA_INJECTION64_PATH || echo none')" none
  install_package
  mkdir -p /run/occtrace
}

start_service
for each in ${2:-cdi_stopped cdi_restarted cdi_booted cdi_removed hook_stopped hook_restarted hook_booted hook_removed hook_purged}; do
  echo "-- $each"
  rm -f "$history"*
  kill -0 "$daemon" 2>/dev/null && { kill "$daemon"; wait "$daemon" || true; }
  mkdir -p /run/occtrace
  start_service
  "use_${each%%_*}"
  "${each#*_}"
done
echo ok
