#!/usr/bin/env bash
# cli_doctor.sh OCCQ FAKE_CUPTI: occq doctor's page for a machine that lies below a directory, its other forms, and what
# occtraced tells it of libcupti. Prints what differs; 0 if nothing does.
set -u
occq=$1 fake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
export LC_ALL=C NO_COLOR=1 HOME=$work OCCTRACE_SOCKET=$work/no/socket OCCTRACE_CUPTI=$fake FAKE_CUPTI_VERSION=130301
unset XDG_STATE_HOME CUDA_MPS_PIPE_DIRECTORY NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES CUDA_INJECTION64_PATH SLURM_JOB_ID POD_NAME

put() { mkdir -p "$(dirname "$work/root$1")" && printf '%b' "$2" >"$work/root$1"; }
put /sys/module/nvidia/version '580.126.09\n'
put /dev/nvidiactl '' ; put /dev/nvidia-uvm '' ; put /dev/nvidia0 ''
put /proc/driver/nvidia/gpus/0000:18:00.0/information 'Model: \t\t NVIDIA H200\n'
put /proc/driver/nvidia/params 'RmProfilingAdminOnly: 1\n'
put /proc/self/status 'CapEff:\t0000000000000000\n'
put /proc/900/comm 'ncu\n'; ln -s /bin/true "$work/root/proc/900/exe"
doctor() { "$occq" doctor --root "$work/root" "$@"; }

cat >"$work/expected" <<'END'
record launches        yes
measure occupancy      limited, see counters, profilers
keep a history         yes

ok       driver        580.126.09
ok       GPUs          NVIDIA H200
note     counters      RmProfilingAdminOnly: 1
                       PM sampling is for administrators. Hopper and newer still
                       have GPM: means of a whole GPU.
                       -> run occtraced as root or with CAP_SYS_ADMIN
                          (CAP_PERFMON from driver 565 on), or load the driver
                          with NVreg_RestrictProfilingToAdminUsers=0
note     profilers     Nsight Compute runs
                       Hardware counters serve one tool at a time; occtraced
                       leaves them to this one.
                       -> end it where occupancy is to be measured
END
# what depends on where the test runs is left out: paths, the disk, a daemon of the system, the clock
doctor >"$work/said" 2>"$work/err"
status=$?
tr -s ' \n' ' ' <"$work/said" | grep -qF "ok libcupti $fake (version 130301" ||
    fail "libcupti is not $fake"
awk '/^(ok|note|problem) /{ keep = !/^[a-z]+ +(libcupti|history|disk space|settings|daemon|service|clock) / } keep || NR <= 4' "$work/said" >"$work/kept"
diff -u "$work/expected" "$work/kept" || fail "the page"
[ $status -eq 0 ] || fail "exit status $status without a problem"
[ -s "$work/err" ] && { cat "$work/err"; fail "stderr"; }
[ "$(awk '/^record launches/{ print $3 }' "$work/said")" = yes ] || fail "no summary"
grep -v -e "$work" -e "$fake" "$work/said" | awk 'length > 80 { print; wide = 1 } END { exit wide }' || fail "wider than 80 columns"

rm "$work/root/sys/module/nvidia/version"
doctor >"$work/said"
[ $? -eq 1 ] || fail "a problem is told by exit status 1"
grep -qx 'record launches        no, see driver' "$work/said" || fail "why nothing is recorded"
doctor --json | grep -q '"check": "driver", "state": "problem", "found": "none", "meaning": "No CUDA program can run here.", "remedy": "install' ||
    fail "JSON"
[ "$(doctor -o check,state --csv | sed -n 1,2p | tr '\n' ' ')" = "check,state driver,problem " ] || fail "CSV"
FAKE_CUPTI_VERSION=19 doctor >"$work/said"
grep -q '^problem  libcupti      none' "$work/said" && tr -s ' \n' ' ' <"$work/said" | grep -q '(version 19) is older than CUDA 12.2' ||
    fail "a libcupti that is too old"
doctor --rot >/dev/null 2>&1
[ $? -eq 2 ] || fail "usage"
for root in "$work/said" "$work/nowhere"; do # a file; nothing
    "$occq" doctor --root "$root" >/dev/null 2>"$work/err"
    [ $? -eq 2 ] && grep -q -- "--root: $root: " "$work/err" || fail "--root that is no directory"
done
cp "$occq" "$work/occq" # without occtraced beside it
"$work/occq" doctor | grep -q '^problem  libcupti      none' || fail "without occtraced"
doctor >/dev/full 2>/dev/null
[ $? -eq 1 ] || fail "a full disk"
exit $failed
