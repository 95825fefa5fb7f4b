#!/usr/bin/env bash
# The Ansible role (packaging/ansible) on a copy of this machine's root, which ends with the test: a package and a bundle made of BUILD's
# programs, accounts, settings, ways to opt in, units (systemctl is a stand-in that keeps their states) and the shipper's account (a stand-in for
# ClickHouse that keeps the statements). A second run changes nothing.
#
#   ansible.sh SOURCES BUILD
set -euo pipefail
sources=$(realpath "${1:?}") build=$(realpath "${2:?}")
skip() { echo "skipped: $1"; exit 77; }
if [ -z "${OCC_ANSIBLE_ROOT:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "a root of its own needs root"
  command -v ansible-playbook >/dev/null || skip "ansible-playbook is not installed (apt-get install ansible-core)"
  command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
  export OCC_ANSIBLE_ROOT
  OCC_ANSIBLE_ROOT=$(mktemp -d)
  trap 'rm -rf --one-file-system "$OCC_ANSIBLE_ROOT"' EXIT
  unshare --mount true 2>/dev/null || skip "no mount namespaces here"
  unshare --mount --pid --fork --kill-child bash "$0" "$sources" "$build"
  exit
fi

# ---- the root ----
work=$OCC_ANSIBLE_ROOT
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work"/{upper,lower,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/lower" "$work/root" 2>/dev/null || skip "no overlay here"
root=$work/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mount --bind -o ro "$sources" "$root/mnt"
rm -rf "$root/etc/occtrace" "$root/etc/profile.d/occtrace.sh" "$root/etc/cdi" "$root/opt/occtrace"

# ---- a package and a bundle ----
stage() { # DIRECTORY PREFIX: as the installation has them
  local top=$1$2 file
  mkdir -p "$top"/{bin,lib/systemd/system,share/occtrace/opt-in}
  cp "$build"/bin/{occtraced,occtrace-ship,occq} "$top/bin/"
  ln -s occq "$top/bin/occtrace"
  for file in "$sources"/packaging/opt-in/*.in; do
    sed "s|@share@|$2/share/occtrace|g; s|@bin@|$2/bin|g; s|@plugins@|$2/lib/occtrace|g" "$file" >"$top/share/occtrace/opt-in/$(basename "$file" .in)"
    chmod 755 "$top/share/occtrace/opt-in/$(basename "$file" .in)"
  done
  for file in "$sources"/config/*.service.in; do sed "s|@bindir@|$2/bin|g" "$file" >"$top/lib/systemd/system/$(basename "$file" .in)"; done
  cp "$sources"/config/occtraced-metrics.socket "$top/lib/systemd/system/"
}
stage "$root/tmp/deb" /usr
mkdir "$root/tmp/deb/DEBIAN"
printf 'Package: occtrace-of-the-test\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: none\n' >"$root/tmp/deb/DEBIAN/control"
dpkg-deb --build "$root/tmp/deb" "$root/tmp/occtrace.deb" >/dev/null
for number in 1 2; do
  rm -rf "$root/tmp/bundle"
  stage "$root/tmp/bundle" /opt/occtrace
  echo $number >"$root/tmp/bundle/opt/occtrace/number"
  mkdir -p "$root/tmp/bundle/opt/occtrace/etc/occtrace"
  cp "$sources/config/occtrace.yaml" "$root/tmp/bundle/opt/occtrace/etc/occtrace/"
  tar -C "$root/tmp/bundle/opt" -czf "$root/tmp/bundle-$number.tar.gz" occtrace
done

# ---- stand-ins ----
cat >"$root/usr/local/sbin/systemctl" <<'S'
#!/bin/bash
# Keeps each unit's state: enabled, active; and if the daemon holds the socket of its metrics. As systemd does, it refuses a socket whose service
# runs, and a service keeps the socket that it got at its start.
state=/tmp/units
daemon=$state/occtraced.service socket=$state/occtraced-metrics.socket
hold() { [[ $file != "$daemon" ]] || { rm -f "$daemon.holds"; [ ! -e "$socket.active" ] || touch "$daemon.holds"; }; }
mkdir -p $state
while [[ ${1:-} == -* ]]; do shift; done
verb=${1:-} unit=${2:-}
[[ $unit == *.* || -z $unit ]] || unit=$unit.service
file=$state/$unit
case $verb in
  show) echo "Id=$unit"; echo LoadState=loaded; [ -e "$file.active" ] && echo ActiveState=active || echo ActiveState=inactive
        [ -e "$file.enabled" ] && echo UnitFileState=enabled || echo UnitFileState=disabled ;;
  is-enabled) [ -e "$file.enabled" ] && echo enabled || { echo disabled; exit 1; } ;;
  is-active) [ -e "$file.active" ] && echo active || { echo inactive; exit 3; } ;;
  enable) touch "$file.enabled" ;;
  disable) rm -f "$file.enabled" ;;
  start) if [[ $file == "$socket" && -e $daemon.active && ! -e $socket.active ]]; then
           echo "$unit: Socket service occtraced.service already active, refusing." >&2; exit 1; fi
         [ -e "$file.active" ] || hold
         touch "$file.active" ;;
  restart) hold; touch "$file.active"; echo "$unit" >>$state/restarted ;;
  stop) rm -f "$file.active" "$file.holds" ;;
  daemon-reload) echo reload >>$state/restarted ;;
esac
S
printf '#!/bin/sh\nexit 0\n' >"$root/usr/local/sbin/systemd-tmpfiles"
chmod 755 "$root"/usr/local/sbin/*
mkdir -p "$root/run/systemd/system" # as sd_booted(3) asks
cat >"$work/server.py" <<'S'
import http.server, sys
statements, users = [], set()
class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        sql = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert self.headers["X-ClickHouse-User"] == "admin" and self.headers["X-ClickHouse-Key"] == "s3cret"
        with open(sys.argv[2], "a") as f:
            f.write(sql + "\n")
        if sql.startswith("CREATE USER"):
            users.add(1)
        text = f"{len(users)}\n".encode() if sql.startswith("SELECT") else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Server)
with open(sys.argv[1], "w") as f:
    f.write(str(server.server_port))
server.serve_forever()
S
/usr/bin/python3 "$work/server.py" "$work/port" "$work/statements" &
for ((i = 0; i < 100; i++)); do [ -s "$work/port" ] && break; sleep 0.1; done

# ---- runs ----
die() { { echo "FAILED: $*"; tail -n 60 "$work/said"; } >&2; exit 1; }
inventory() { # JSON of variables
  cat >"$root/tmp/inventory.yaml" <<I
gpu_nodes:
  hosts: {node1: {ansible_connection: local, ansible_python_interpreter: /usr/bin/python3, ansible_become: false}}
  vars: $1
I
}
play() { # options...: the recap's numbers
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 ANSIBLE_NOCOWS=1 ANSIBLE_LOCALHOST_WARNING=0 \
    ansible-playbook -i /tmp/inventory.yaml /mnt/packaging/ansible/site.yaml "$@" >"$work/said" 2>&1 || die "ansible-playbook $*"
  sed -n 's/.*changed=\([0-9]*\) .*failed=\([0-9]*\).*/\1 \2/p' "$work/said"
}
twice() {
  local first second
  first=$(play --diff)
  second=$(play)
  [[ $second == "0 0" ]] || die "a second run changes: $second"
  echo "$1: ${first%% *} changes, then none"
}
is() { [ "$2" = "$3" ] || { echo "FAILED: $1: '$2', not '$3'"; exit 1; }; }
in_root() { chroot "$root" env PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
mode() { stat -c '%a %U' "$root$1"; }

all="{occtrace_package: /tmp/occtrace.deb, occtrace_opt_in: [profile, slurm, podman, enroot, cdi], occtrace_metrics: true, occtrace_ship: true,
  occtrace_ship_password: pass word, occtrace_metrics_readers: [nobody], occtrace_slurm_conf: /etc/slurm/slurm.conf,
  occtrace_settings: {database: {max_size: 20G}, ship: {url: 'https://w:8443', user: occ_node_node1, node: node1, cluster: c1}},
  occtrace_warehouse: {url: 'http://127.0.0.1:$(cat "$work/port")/', user: admin, password: s3cret}}"
mkdir -p "$root/etc/slurm"
printf 'ClusterName=c1\nEpilog=/site/epilog\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL\n' >"$root/etc/slurm/slurm.conf"
inventory "$all"
twice "package, everything"
is "settings" "$(in_root /usr/bin/occtraced --print-config | grep -c -e 'max_size: 20G' -e 'url: .*https://w:8443')" 2
is "the password's file" "$(mode /etc/occtrace/clickhouse-password)" "600 root"
is "the password" "$(cat "$root/etc/occtrace/clickhouse-password")" "pass word"
! grep -q 'pass word\|s3cret' "$work/said" || die "a password is shown"
grep -q '^LoadCredential=clickhouse-password:' "$root/etc/systemd/system/occtrace-ship.service.d/password.conf" || die "no credential"
is "the profile" "$(readlink "$root/etc/profile.d/occtrace.sh")" /usr/share/occtrace/opt-in/profile.sh
is "slurm.conf" "$(sed -n 's/^TaskProlog=//p; s/^Epilog=/epilog /p' "$root/etc/slurm/slurm.conf" | sort | tr '\n' ' ')" \
  "/usr/share/occtrace/opt-in/slurm-task-prolog epilog /site/epilog "
grep -q 'call /usr/share/occtrace/opt-in/slurm-epilog from it' "$work/said" || die "nothing about the site's epilog"
is "the shipper's user" "$(in_root id -gn occtrace-ship)" occtrace-ship
is "a reader of /metrics" "$(in_root id -nG nobody | tr ' ' '\n' | grep -x occtrace)" occtrace
is "units" "$(cd "$root/tmp/units" && ls | grep -v restarted | tr '\n' ' ')" \
  "occtrace-ship.service.active occtrace-ship.service.enabled occtraced-metrics.socket.active occtraced-metrics.socket.enabled occtraced.service.active occtraced.service.enabled occtraced.service.holds "
is "statements for ClickHouse" "$(grep -vc ^SELECT "$work/statements")" 2
grep -q "^CREATE USER IF NOT EXISTS \`occ_node_node1\` IDENTIFIED WITH sha256_hash BY '$(printf 'pass word' | sha256sum | cut -d' ' -f1)' DEFAULT ROLE occ_node$" \
  "$work/statements" || die "$(cat "$work/statements")"

# less than before: links go, services end, another's file stays
ln -sf /site/profile.sh "$root/etc/profile.d/site.sh"
inventory "{occtrace_package: /tmp/occtrace.deb, occtrace_settings: {database: {max_size: 30G}}}"
trial=$(play --check --diff)
[[ $trial == [1-9]*" 0" ]] || die "a trial: $trial"
is "a trial changes nothing" "$(grep -c 'max_size: 20G' "$root/etc/occtrace/occtrace.yaml")" 1
twice "package, nothing opted in"
is "slurm.conf" "$(grep -c 'occtrace' "$root/etc/slurm/slurm.conf")" 0
is "no link is left" "$(find "$root"/etc/profile.d/occtrace.sh "$root"/etc/enroot/hooks.d "$root"/etc/containers/oci/hooks.d -type l 2>/dev/null | wc -l)" 0
is "the shipper's unit" "$(cd "$root/tmp/units" && ls | grep -c 'ship.*active\|ship.*enabled')" 0
is "restarted for the settings" "$(grep -c "^occtraced.service" "$root/tmp/units/restarted")" 1
is "the daemon and its socket" "$(cd "$root/tmp/units" && ls | grep -c 'socket.active\|holds')" 0

# the socket of a daemon that runs, and its end, without other changes
inventory "{occtrace_package: /tmp/occtrace.deb, occtrace_settings: {database: {max_size: 30G}}, occtrace_metrics: true}"
twice "the socket of a daemon that runs"
is "the daemon and its socket" "$(cd "$root/tmp/units" && ls | grep -c 'service.active\|socket.active\|holds')" 3
inventory "{occtrace_package: /tmp/occtrace.deb, occtrace_settings: {database: {max_size: 30G}}}"
twice "a daemon without its socket"
is "the daemon and its socket" "$(cd "$root/tmp/units" && ls | grep -c 'socket.active\|holds')" 0
is "the daemon" "$(cd "$root/tmp/units" && ls | grep -c '^occtraced.service.active')" 1

# wrong settings never arrive
inventory "{occtrace_package: /tmp/occtrace.deb, occtrace_settings: {database: {max_sice: 30G}}}"
(play) >/dev/null 2>&1 && die "wrong settings were written"
is "the settings before stay" "$(grep -c 'max_size: 30G' "$root/etc/occtrace/occtrace.yaml")" 1
inventory "{occtrace_package: /tmp/occtrace.deb, occtrace_opt_in: [profil]}"
(play) >/dev/null 2>&1 && die "an unknown way was accepted"

# a bundle, and the next one; what the administrator adds to the settings stays, also of a bundle that keeps them in itself
chroot "$root" dpkg -P occtrace-of-the-test >/dev/null 2>&1
in_root sh -c 'mkdir -p /opt/occtrace-bundles/0/etc/occtrace/conf.d && ln -s /opt/occtrace-bundles/0 /opt/occtrace && cd /opt/occtrace/etc/occtrace &&
  echo "log: {level: debug}" >conf.d/log.yaml && echo key >users-key && chmod 640 users-key && echo "database: {max_size: 7G}" >occtrace.yaml'
for number in 1 2; do
  inventory "{occtrace_package: /tmp/bundle-$number.tar.gz, occtrace_settings: {database: {max_size: 40G}, ship: {url: 'https://w:8443'}}, occtrace_opt_in: [profile], occtrace_ship: true}"
  mkdir -p "$root/tmp/units"; : >"$root/tmp/units/restarted"
  twice "bundle $number"
  [ $number = 1 ] || is "restarted for the bundle" "$(grep service "$root/tmp/units/restarted" | sort | tr '\n' ' ')" "occtrace-ship.service occtraced.service "
  [ $number = 2 ] || in_root sh -c 'echo "ship: {users: none}" >/opt/occtrace/etc/occtrace/conf.d/privacy.yaml'
  is "settings beside the role's" "$(in_root /opt/occtrace/bin/occtraced --print-config | grep -cE '^ *(level: debug|users: none)')" 2
  is "a key beside them" "$(mode /etc/occtrace/users-key)" "640 root"
  is "the bundle" "$(in_root cat /opt/occtrace/number)" $number
  is "its settings" "$(in_root /opt/occtrace/bin/occtraced --print-config | grep -c 'max_size: 40G')" 1
  is "its profile" "$(readlink "$root/etc/profile.d/occtrace.sh")" /opt/occtrace/share/occtrace/opt-in/profile.sh
  grep -q '^ExecStart=/opt/occtrace/bin/occtraced' "$root/etc/systemd/system/occtraced.service" || die "the unit"
done
echo ok
