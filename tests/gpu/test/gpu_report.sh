#!/usr/bin/env bash
# The runner of the GPU experiments: every outcome has its place in the JSON, nothing stops the rest, nothing is left
# running; and the kit's own first experiment on the simulated device.
#
#   gpu_report.sh SOURCE BUILD
set -uo pipefail
source=${1:?} build=${2:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1"; exit 1; }
[ -e "$build/simgpu/libcuda.so.1" ] || { echo "skipped: no simulated device"; exit 77; }
simgpu=("$source/scripts/simgpu" --build "$build")

kit=$work/kit
mkdir "$kit"
cp "$build/gpu/gpu_report_join" "$build/gpu/report.sh" "$kit/"
cat >"$kit/experiments" <<'TABLE'
# id|program|part|quick|full|title|question
A|good.sh|1|100|100|Good|Does it?
B|hangs.sh|1|1|1|Hangs|Is it ended?
C|crashes.sh|1|100|100|Crashes|Does the rest go on?
D|garbage.sh|1|100|100|Garbage|Is it told apart?
E|skips.sh|1|100|100|Skips|Does it say why?
F|silent.sh|2|100|100|Silent|Is that a failure?
G|surplus.sh|1|100|100|Surplus|Are more records than launches refused?
TABLE
make() { cat >"$kit/$1"; chmod +x "$kit/$1"; }
make good.sh <<'S'
#!/usr/bin/env bash
. "$OCC_KIT/report.sh"
expect 'one "quoted" thing'
value cost 12.5 ns
value unknown - s
saw words 'a "b" \ c'
decide confirmed "it stays"
S
make hangs.sh <<S
#!/usr/bin/env bash
sleep 60 & echo \$! >$work/child
sleep 60
S
make crashes.sh <<'S'
#!/usr/bin/env bash
. "$OCC_KIT/report.sh"
value before 1 ""
kill -SEGV $$
S
make garbage.sh <<'S'
#!/usr/bin/env bash
head -c 3000 /dev/urandom >>"$OCC_GPU_REPORT"
printf 'verdict\tmarvellous\nvalue\tx\tnan\ts\n' >>"$OCC_GPU_REPORT"
S
make skips.sh <<'S'
#!/usr/bin/env bash
. "$OCC_KIT/report.sh"
skip "no such thing here"
S
make surplus.sh <<'S'
#!/usr/bin/env bash
. "$OCC_KIT/report.sh"
count_surplus 11 10
count_surplus 9 10
refute_surplus
decide confirmed "one more does not matter"
S
make silent.sh <<'S'
#!/usr/bin/env bash
exit 0
S
OCC_BIN=$build/bin OCC_SAMPLES=$build/samples "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$kit" --quick --out "$work/out" 2>"$work/err"
[ $? -eq 1 ] || { cat "$work/err"; fail "failures must be told by exit 1"; }
"$build/gpu/gpu_report_check" "$work/out/report.json" || fail "not sound JSON"
verdict() { awk -v id="\"id\": \"$1\"" 'index($0, id) { on = 1 } on && /"verdict"/ { gsub(/[", ]/, ""); sub("verdict:", ""); print; exit }' "$work/out/report.json"; }
for pair in A:confirmed B:timeout C:failed D:failed E:skipped F:failed G:refuted; do
  got=$(verdict "${pair%%:*}")
  [ "$got" = "${pair##*:}" ] || fail "experiment ${pair%%:*}: $got, expected ${pair##*:}"
done
grep -q '1 records more than launches that were made' "$work/out/report.json" || fail "records without a launch"
grep -q '"reason": "no such thing here"' "$work/out/report.json" || fail "why it was skipped"
grep -q '"simulated": "yes"' "$work/out/report.json" || fail "the simulated device is not marked"
state=$(sed 's/.*) //' "/proc/$(cat "$work/child")/stat" 2>/dev/null | cut -c1)
case $state in ''|Z) ;; *) fail "a child of a hanging experiment lives" ;; esac # Z: dead, nobody asked for it yet
[ -s "$work/out/report.md" ] || fail "no text"

# --part takes its own; --only may take of all
for pair in "--part 2:F" "--part 1 --only A,F:A" "--only A,F:A F"; do
  OCC_BIN=$build/bin OCC_SAMPLES=$build/samples "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$kit" ${pair%:*} --out "$work/part" >/dev/null 2>&1
  ran=$(sed -n 's/^ *"id": "\(.*\)",$/\1/p' "$work/part/report.json" | paste -sd' ')
  [ "$ran" = "${pair##*:}" ] || fail "gpu-report ${pair%:*} ran $ran"
done
# limits of a part add up to its time, less what looking for the GPU takes
awk -F'|' '/^[^#]/ { quick[$3] += $4; full[$3] += $5 } END { for (p in full) if (full[p] > 560 || quick[p] > 280) { print "part", p; exit 1 } }' \
  "$build/gpu/experiments" || fail "the limits of that part add up to more than its time"
while IFS='|' read -r id program rest; do
  case $id in ''|'#'*) continue ;; esac
  [ -x "$build/gpu/$program" ] || [ ! -x "$build/gpu/e04_other_process" ] || fail "$id: no $program in the kit"
done <"$build/gpu/experiments"

export OCC_GPU_TIME_FACTOR=30 # limits are for a GPU of its own
"${simgpu[@]}" "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E1,E3 --out "$work/real" 2>"$work/err" ||
  { cat "$work/err" "$work/real/report.md"; fail "the kit's E1 and E3 on the simulated device"; }
grep -q '"verdict": "confirmed"' "$work/real/report.json" || fail "E1 is not confirmed on the simulated device"

# Programs that behave as some do. Verdicts that follow from times are this machine's; that each says one is not.
if [ -x "$build/gpu/behave" ]; then
  "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E17,E18,E19,E20,E21 --out "$work/behave" 2>"$work/err" ||
    { cat "$work/err" "$work/behave/report.md"; fail "E17 to E21 on the simulated device"; }
  for value in 'driver_api_uncounted 0' 'driver_api_bad_ends 0' 'lost_[0-9]+ 0' 'exit_code 0' 'observed_code 0' '32_exact_code 0'; do
    grep -qE "^  value $value " "$work/behave/report.md" || { cat "$work/behave/report.md"; fail "not: $value"; }
  done
fi

# Counters: launches last what the experiments ask for, 1 ms or so, and samples are 12.5 us off. Not looked at: what
# E8 says of time and cost, that is this machine's. These verdicts follow from the counters alone.
if [ -x "$build/gpu/e04_other_process" ]; then
  mkdir "$work/told"
  OCCSIM_COUNTERS=$work/told OCCSIM_COUNTER_OFFSET_NS=12500 OCCSIM_BLOCK_NS=1000000 \
    "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E4,E8,E9,E22 --out "$work/counters" 2>"$work/err"
  has() { # a value's name and what it must be
    grep -qxE " *value +$1: $2 *" "$work/counters/report.md" ||
      { cat "$work/err" "$work/counters/report.md"; fail "counters: $1 is not $2"; }
  }
  has idle.sm_active '0 ratio'
  has one_process.achieved '0\.5 ratio'
  has one_process.blocks '4 blocks/SM'
  has same_process.achieved '0\.5 ratio'
  has 1000us_64MB.achieved '1 ratio'
  has 50us_64MB.bad '0'
  has across_processes.rising.median '12500 ns'
  has across_processes.falling.median '12500 ns'
  has one_process.rising.median '12500 ns'
  has as_shipped.achieved '0\.5 ratio'
  has opened_again.achieved '0\.5 ratio'
  has enable.turns '6 turns'
  # Blocks last as long as E10 asks for, and its check of the launched blocks sees it.
  OCCSIM_COUNTERS=$work/told "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E10 --out "$work/counters" 2>"$work/err"
  has half_100us.direct '0\.(5|49[89]|50[01])[0-9]* ratio'
  has half_100us.block '(99|100)(\.[0-9]+)? us'
  # GPM, read as nobody if we are root: what is told of the device must be readable then, and the programs.
  chmod 755 "$work" "$work/told"
  nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  if [ "$(id -u)" -ne 0 ] ||
     { nobody test -x "$build/gpu/gpu_sample" && nobody test -r "$build/simgpu/libnvidia-ml.so.1"; }; then
    OCCSIM_COUNTERS=$work/told OCCSIM_BLOCK_NS=1000000 \
      "${simgpu[@]}" "$source/scripts/gpu-report" --kit "$build/gpu" --quick --only E11 --out "$work/counters" 2>"$work/err"
    has gpm_100ms.achieved '0\.5 ratio'
    has gpm_100ms.pm.achieved '0\.5 ratio'
    has gpm_200ms.achieved '0\.5 ratio'
  else
    echo "not tried: E11 (as nobody the build tree cannot be read)"
  fi
fi

# without any GPU: said, and 77
LD_LIBRARY_PATH=/nowhere "$source/scripts/gpu-report" --kit "$build/gpu" --quick --out "$work/none" 2>"$work/err"
code=$?
[ $code -eq 77 ] || [ -e /dev/nvidiactl ] || fail "exit code without a GPU: $code"
echo ok
