#!/bin/sh
# No two files of the libraries use functions or variables of each other, directly or through others, and no headers include each
# other: what both need is a file of its own. Fails with each circle and the symbols that close it.
#
#   check_circles.sh SOURCE OBJECTS BUILD     OBJECTS lists the object files of all libraries, one a line
cd "$1" || exit 1
objects=$2 build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "USER DEFINER SYMBOL" for each symbol that one file uses and another defines; BUILD/x/CMakeFiles/y.dir/z.c.o is x/z.c.
xargs nm -A -P -g <"$objects" | sed -e "s|^$build/||" -e 's|CMakeFiles/[^/]*\.dir/\(\./\)*||' -e 's|\.o: | |' |
  awk '$3 ~ /^[A-TV-Z]$/ { definer[$2] = $1 }
       $3 == "U" { used[$1 " " $2] }
       END { for (use in used) {
               split(use, part, " ")
               from = part[1]; symbol = part[2]; to = definer[symbol]
               if (to != "" && to != from) print from, to, symbol } }' | sort >"$work/arrows"
[ -s "$work/arrows" ] || { echo "$objects: no file uses another"; exit 1; }

# "HEADER HEADER #include", names as in the statement or beside the file.
find . -path ./build -prune -o -name '*.h' -print | xargs grep -H '^#include "' | sed 's|^\./\([^:]*\):#include "\([^"]*\)".*|\1 \2|' |
  while read -r from to; do
    [ -e "${from%/*}/$to" ] && to=${from%/*}/$to
    echo "$from $to #include"
  done >>"$work/arrows"

# tsort writes for each loop a line that ends in "loop:", then one line a file.
cut -d ' ' -f 1,2 "$work/arrows" | LC_ALL=C tsort >/dev/null 2>"$work/loops" && exit 0
echo "Files that use each other in a circle:"
awk 'NR == FNR { symbols[$1 " " $2] = symbols[$1 " " $2] " " $3; next }
     function arrow(from, to) { if (from != "") text = text "  " from " -> " to ":" symbols[from " " to] "\n" }
     function finish() { arrow(last, first); if (text && !seen[text]++) print text; text = first = last = "" }
     /loop:$/ { finish(); next }
     { if (first == "") first = $2; arrow(last, $2); last = $2 }
     END { finish() }' "$work/arrows" "$work/loops"
exit 1
