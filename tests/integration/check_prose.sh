#!/bin/sh
# scripts/prose: the source tree holds its limits; a tree of hard-to-read comments or documents that must hold them fails.
#
#   check_prose.sh SOURCE
set -u
prose=$1/scripts/prose
"$prose" "$1" || exit 1

tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
held=$("$prose" "$1" --held)
# ten BEGIN TEXT END: ten lines of them
ten() { for _ in 1 2 3 4 5 6 7 8 9 10; do echo "$1$2$3"; done; }
# expect STATUS TEXT: scripts/prose ends with STATUS if each directory that must hold the limits has comments of TEXT, or else if
# each document has paragraphs of it
expect() {
  for name in $held; do
    case $name in
      *.md) mkdir -p "$tree/$(dirname "$name")" && ten '' "$2" '' >"$tree/$name" ;;
      docs/*) mkdir -p "$tree/$name" && ten '' "$2" '' >"$tree/$name/page.md" ;;
      *) mkdir -p "$tree/$name" && ten '/* ' "$2" ' */' >"$tree/$name/file.c" ;;
    esac
  done
  "$prose" "$tree" >"$tree/output"
  status=$?
  [ "$status" -eq "$1" ] || { echo "status $status instead of $1 for \"$2\":"; cat "$tree/output"; exit 1; }
}
expect 0 'Returns the number of rows.'
expect 1 'Returns what was counted of it.'
expect 1 'Of the rows that have a launch.'
expect 0 'Returns the number of rows.'
for page in AGENTS.md docs/decisions/page.md docs/internals/page.md; do # each document by itself
  ten '' 'Returns what was counted of it.' '' >"$tree/$page"
  "$prose" "$tree" >/dev/null && { echo "$page may exceed the limits"; exit 1; }
  ten '' 'Returns the number of rows.' '' >"$tree/$page"
done
rm -rf "$tree"
mkdir "$tree"
"$prose" "$tree" >/dev/null && { echo 'an entry without text is no failure'; exit 1; }
exit 0
