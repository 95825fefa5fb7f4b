#!/bin/sh
# scripts/prose: the source tree holds its limits; a tree of hard-to-read comments in a directory that must hold them fails.
#
#   check_prose.sh SOURCE
set -u
prose=$1/scripts/prose
"$prose" "$1" || exit 1

tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
held=$("$prose" "$1" --held)
# expect STATUS TEXT: scripts/prose ends with STATUS if each directory that must hold the limits has comments of TEXT
expect() {
  for directory in $held; do
    mkdir -p "$tree/$directory"
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo "/* $2 */"; done >"$tree/$directory/file.c"
  done
  "$prose" "$tree" >"$tree/output"
  status=$?
  [ "$status" -eq "$1" ] || { echo "status $status instead of $1 for \"$2\":"; cat "$tree/output"; exit 1; }
}
expect 0 'Returns the number of rows.'
expect 1 'Returns what was counted of it.'
expect 1 'Of the rows that have a launch.'
rm -rf "$tree"
mkdir "$tree"
"$prose" "$tree" >/dev/null && { echo 'an entry without text is no failure'; exit 1; }
exit 0
