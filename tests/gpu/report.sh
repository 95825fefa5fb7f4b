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
