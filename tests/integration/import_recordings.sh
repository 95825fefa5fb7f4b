#!/usr/bin/env bash
# Real recordings made by other tools: every launch of every file is imported or accounted for, and each one's
# theoretical occupancy is what NVIDIA's cuda_occupancy.h gives.
#
#   import_recordings.sh BUILD [ORACLE]      OCC_TEST_RECORDINGS: a folder with kineto/*.json.gz, nsys/*.sqlite, ncu/*.txt
set -euo pipefail
build=${1:?} oracle=${2:-}
folder=${OCC_TEST_RECORDINGS:-}
if [ -z "$folder" ] || [ ! -d "$folder" ]; then
  echo "skipped: OCC_TEST_RECORDINGS names no folder with recordings"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
occq=$build/bin/occq
failed=0

# What the file itself says, counted without our readers.
launches_in() {
  case "$1" in
    *.txt) grep -c ', Context [0-9]*, Stream [0-9]*' "$1" ;;
    *.gz) zcat "$1" | grep -o '"cat": *"[kK]ernel"' | wc -l ;;
    *) sqlite3 "$1" 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL' ;;
  esac
}

for file in "$folder"/kineto/*.json.gz "$folder"/nsys/*.sqlite "$folder"/ncu/*.txt; do
  [ -e "$file" ] || continue
  options=()
  case "$file" in *no_device_properties*) options=(--gpu v100) ;; esac
  want=$(launches_in "$file")
  got=$("$occq" import -d "$work/history.db" "${options[@]}" --csv -o launches,skipped "$file" | tail -1)
  if [ "$got" != "$want,0" ]; then
    echo "FAILED: $file has $want launches; imported,skipped: $got"
    failed=1
  else
    echo "ok: $file: $want launches"
  fi
done
if [ -n "$oracle" ]; then
  "$oracle" "$work/history.db" || failed=1
else
  echo "not compared with cuda_occupancy.h: no CUDA headers"
fi
# of what a source claims, everything that differs from ours is explained
unexplained=$("$occq" show -d "$work/history.db" . --json -n 100000 | grep -c '"difference": "not explained"' || true)
[ "$unexplained" = 0 ] || { echo "FAILED: $unexplained claims are not explained"; failed=1; }
exit $failed
