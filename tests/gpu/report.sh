# What an experiment in shell says; the twin of report.h. Sourced.
#
#   OCC_BIN   directory of occtrace, occq, occtraced        OCC_SAMPLES   of the sample programs
#   OCC_GPU_QUICK   set: the short form                     OCC_GPU_REPORT  file for the facts

gpu_fact() { # kind field...
  local IFS=$'\t' line
  line="$*"
  [ -z "${OCC_GPU_REPORT:-}" ] || printf '%s\n' "$line" >>"$OCC_GPU_REPORT"
  printf '  %s\n' "${line//$'\t'/ }"
}
expect() { gpu_fact expected "$1"; }
value() { gpu_fact value "$1" "$2" "${3:-}"; } # name number unit; - is "not measured"
saw() { gpu_fact text "$1" "${2//[$'\t\n\r']/ }"; }
decide() { gpu_fact verdict "$1"; gpu_fact decision "$2"; exit 0; } # confirmed|refuted|unclear, what follows
skip() { gpu_fact skipped "$1"; exit 77; }

quick() { [ -n "${OCC_GPU_QUICK:-}" ]; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
occtrace=$OCC_BIN/occtrace
occq=$OCC_BIN/occq

# The number that a query of a history gives; 0 without a history.
ask() { # history sql
  "$occq" sql -d "$1" --csv "$2" 2>/dev/null | sed -n 2p
}
# Seconds that a command takes, best of some rounds; its output is thrown away.
best_of() { # rounds command...
  local rounds=$1 best= i took
  shift
  for ((i = 0; i < rounds; i++)); do
    took=$( { TIMEFORMAT=%R; time "$@" >/dev/null 2>&1; } 2>&1 | tail -1)
    if [ -z "$best" ] || awk "BEGIN { exit !($took < $best) }"; then best=$took; fi
  done
  echo "$best"
}
calc() { awk "BEGIN { printf \"%.6g\", $1 }"; }
holds() { awk "BEGIN { exit !($1) }"; }

# Processes of this session that run that program.
pids_of() { # path
  local program self stat pid
  program=$(readlink -f "$1") self=$(session_of $$)
  for stat in /proc/[0-9]*/stat; do
    pid=${stat#/proc/} pid=${pid%/stat}
    [ "$(readlink "/proc/$pid/exe" 2>/dev/null)" != "$program" ] || [ "$(session_of "$pid")" != "$self" ] || echo "$pid"
  done
}
session_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f4; } # pid
kill_program() { # path
  local pids
  mapfile -t pids < <(pids_of "$1")
  [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
}

# Records may be lost and counted; more of them than launches are none of the program's.
surplus=0
count_surplus() { # recorded made: adds what is too much; "" is unknown
  if [ "${1:-0}" -gt "${2:-x}" ] 2>/dev/null; then surplus=$((surplus + $1 - $2)); fi
}
refute_surplus() {
  [ "$surplus" -eq 0 ] ||
    decide refuted "$surplus records more than launches that were made: CUPTI's own kernels (WaitNs), or records that come twice"
}
