#!/usr/bin/env bash
# E23: what a program pays for being observed, beside the noise of the same measurement: each level of occtrace, and a
# second run of the program alone (the floor), against the program alone. Rounds in mirrored order, A N T G F F G T N A,
# so that a drift which is linear in time falls out; they go on until every interval is narrow enough or time is up. The
# programs time themselves: their start and occtrace's are not in it. Levels below "trace" are the governor's, which chooses
# them while a program runs: they are seen here in the column LEVEL, not asked for.
. "${OCC_KIT:?}/report.sh"
expect "a training step and a serving loop of CUDA graphs are at most 1 % slower with occtrace's default, in an interval of +-0.5 %"
abba=$OCC_KIT/gpu_abba
[ -x "$abba" ] && [ -x "$OCC_KIT/launch_cost" ] || skip "gpu_abba or launch_cost was not built"
narrow=0.5 seconds=85 run_s=0.5
if quick; then seconds=24 run_s=0.1; fi
seconds=${OCC_GPU_COST_SECONDS:-$seconds} # for each program
least_rounds=4                            # abba.h
mark=''
case $("$OCC_KIT/gpu_load" --launches 1 --seconds 1 2>/dev/null) in
  *simulated=0*) ;;
  *simulated=1*) mark=', simulated' ;;
  *) skip "gpu_load does not say whether the GPU is simulated" ;;
esac

arms=(again trace gpm full)
declare -A observer=([again]="none, again" [trace]="occtrace, launches" [gpm]="occtrace, GPM" [full]="occtrace, PM")
declare -A counters=([trace]=none [gpm]=gpm [full]=pm)

# One run of so many units of a workload, and its time in any unit; "" if it fails.
alone() { # workload n
  case $1 in
    training) "$OCC_SAMPLES/transformer" --no-graph --time --steps "$2" ;;
    serving) "$OCC_SAMPLES/transformer" --time --steps "$2" ;;
    storm) "$OCC_KIT/launch_cost" none "$2" 1 1 ;;
  esac 2>/dev/null
}
export -f alone
number() { sed -n 's/^seconds: *//p;/^[0-9.]*$/p' | head -1; }
one() { # workload n arm
  local db=$work/$1-$3.db
  case $3 in
    A|again) alone "$1" "$2" | number ;;
    *)
      rm -f "$db"*
      "$occtrace" --counters="${counters[$3]}" -q -d "$db" bash -c 'alone "$@"' cost "$1" "$2" 2>/dev/null | number
      ;;
  esac
}
# So many units that the timed part of a run takes $run_s seconds or more.
size_of() { # workload first-guess
  local n=$2 took
  for _ in 1 2 3 4 5 6; do
    took=$(one "$1" "$n" A)
    [ -n "$took" ] || return 1
    [ "$1" != storm ] || took=$(calc "$took * $n / 1e9") # ns a launch
    if holds "$took >= $run_s"; then break; fi
    n=$((n * 3))
  done
  echo "$n"
}
rounds_of() { # workload n: mirrored rounds into $work/WORKLOAD-ARM; until every interval is narrow or time is up
  local began=$SECONDS round=0 arm last wide=yes
  declare -A first second
  while [ -n "$wide" ] && [ $((SECONDS - began)) -lt $((seconds)) ]; do
    first[A]=$(one "$1" "$2" A)
    for arm in "${arms[@]}"; do first[$arm]=$(one "$1" "$2" "$arm"); done
    for ((i = ${#arms[@]} - 1; i >= 0; i--)); do second[${arms[i]}]=$(one "$1" "$2" "${arms[i]}"); done
    last=$(one "$1" "$2" A)
    wide=
    round=$((round + 1))
    for arm in "${arms[@]}"; do
      echo "${first[A]} ${first[$arm]} ${second[$arm]} $last" >>"$work/$1-$arm"
      holds "$(field half "$work/$1-$arm") <= $narrow" || wide=yes
    done
    [ $round -ge $least_rounds ] || wide=yes
  done
}
field() { # name file: of gpu_abba; 1e9 where it is unknown
  "$abba" <"$2" | tr ' ' '\n' | sed -n "s/^$1=//p" | sed 's/^-$/1e9/'
}

table=() costly=0 unsure=0 unseen=0
row() { table+=("$(printf '%-9s %-19s %9s %18s %7s %10s %9s  %s' "$@")"); }
shown() { if [ "$1" = 1e9 ]; then echo -; else printf '%+.2f %%' "$1"; fi; }
report_arm() { # workload arm
  local file=$work/$1-$2 db=$work/$1-$2.db cost low high level=- launches=- lost=-
  [ -s "$file" ] || return 0
  cost=$(field cost "$file") low=$(field low "$file") high=$(field high "$file")
  if [ "$2" != again ]; then
    level=$(ask "$db" 'SELECT level FROM run ORDER BY run_id DESC LIMIT 1')
    launches=$(ask "$db" 'SELECT count(*) FROM launch')
    lost=$(ask "$db" 'SELECT coalesce(sum(launches), 0) FROM loss')
  fi
  value "$1_$2_cost" "${cost/1e9/-}" "% of the program's time$mark"
  value "$1_$2_low" "${low/1e9/-}" "%, of its 95 % interval$mark"
  value "$1_$2_high" "${high/1e9/-}" "%$mark"
  value "$1_$2_blocks" "$(field blocks "$file")" "blocks of A B B A"
  row "$1" "${observer[$2]}" "$(shown "$cost")" "$(shown "$low") .. $(shown "$high")" "$(field blocks "$file")" \
    "${launches:--}" "${lost:--}" "${level:--}"
  # storms are for the governor: what it does there is no promise of this experiment
  if [ "$2" != again ] && [ "${launches:-0}" -lt 1 ]; then unseen=$((unseen + 1)); fi
  if [ "$1" != storm ] && [ "$2" = full ]; then
    holds "$low <= 1" || costly=$((costly + 1))
    holds "$high <= 1" || unsure=$((unsure + 1))
  fi
}

row PROGRAM OBSERVER COST '95 % INTERVAL' BLOCKS LAUNCHES LOST LEVEL
for workload in training:20 serving:100 storm:20000; do
  name=${workload%%:*}
  n=$(size_of "$name" "${workload##*:}") || { saw "$name" "does not run"; continue; }
  value "${name}_size" "$n" "$([ "$name" = storm ] && echo launches || echo steps) a run"
  rounds_of "$name" "$n"
  for arm in "${arms[@]}"; do report_arm "$name" "$arm"; done
done
[ -z "$mark" ] || printf '\nSIMULATED DEVICE: this table tests its own machinery, no figure in it is of a GPU.\n'
printf '\n'
printf '%s\n' "${table[@]}"
printf 'COST: of the time that the program takes alone, in mirrored pairs. "none, again" is the noise floor: nothing was observed.\n\n'

[ ${#table[@]} -gt 1 ] || skip "none of the programs runs"
[ $unseen -eq 0 ] || decide unclear "$unseen of the observed programs were not recorded: their times say nothing of the cost"
[ -z "$mark" ] || decide unclear "a simulated device: nothing follows"
[ $costly -eq 0 ] || decide refuted "$costly of 2 programs are more than 1 % slower: the governor has to act on such loops (docs/decisions/0003)"
[ $unsure -eq 0 ] || decide unclear "the intervals reach above 1 %: compare with the floor, and repeat with the GPU to itself"
decide confirmed "always-on stays the default"
