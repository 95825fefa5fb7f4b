#!/usr/bin/env bash
# cli_documents.sh OCCTRACE OCCQ SOURCE: the committed man pages are what scripts/gen-man writes today, and every
# page, and the completion, list exactly the options (and columns) that --help lists.
set -u
occtrace=$1 occq=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() { echo "FAIL: $*"; failed=1; }

"$source/scripts/gen-man" "$occtrace" "$occq" "$work" || fail "cannot write the documents"
for file in "$work"/*; do
    diff -u "$source/docs/man/${file##*/}" "$file" ||
        fail "docs/man/${file##*/} is old: cmake --build ... --target documents"
done

# Long options of a help text, and of a page.
help_options() { sed '/^Other forms:/,/^$/d' | grep -oE -- '^ {2,6}(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort; }
page_options() { sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$1" | sed '/^\.SH OTHER/,$d' | grep -oE '^\.B .*\\-\\-([a-z]|\\-)+' |
    sed -E 's/.* //; s/\\-/-/g' | sort; }
help_columns() { sed -n '/^Columns/,/^$/p' | grep -oE '^  [a-z_0-9%]+' | tr -d ' ' | sort; }
page_columns() { sed -n '/^\.SH COLUMNS/,/^\.SH [^C]/p' "$1" | grep -oE '^\.B [a-z_0-9%]+' | sed 's/^.B //' | sort; }

compare() {
    local page=$source/docs/man/$1 text
    shift
    text=$("$@" --help) || fail "$* --help"
    [ -n "$(help_options <<<"$text")" ] || fail "no options in $* --help"
    diff <(help_options <<<"$text") <(page_options "$page") || fail "options of $* and $page differ"
    diff <(help_columns <<<"$text") <(page_columns "$page") || fail "columns of $* and $page differ"
}

compare occtrace.1 "$occtrace"
compare occq-top-gaps.1 "$occq" top --gaps
compare occq-top-cost.1 "$occq" top --cost
compare occq-show-hit-rate.1 "$occq" show --hit-rate
compare occq-top-on.1 "$occq" top --on GPU
compare occq-top-by-rank.1 "$occq" top --by rank --cluster URL
compare occq-top-by-allocation.1 "$occq" top --by allocation
compare occq-calc-list.1 "$occq" calc --list
compare occq-check-image.1 "$occq" check --image FILE
compare occq-diff-image.1 "$occq" diff --image
compare occq-runs-info.1 "$occq" runs --info
compare occq-doctor-counters.1 "$occq" doctor --counters

# Each page has its sections and names other pages that exist, not itself.
for page in "$source"/docs/man/occ*.1; do
    name=${page##*/}
    for section in "EXIT STATUS" "SEE ALSO"; do
        grep -q "^\.SH $section" "$page" || fail "$name has no $section"
    done
    grep -q "^\.BR occq (1)" "$page" || [ "$name" = occq.1 ] || fail "$name does not name occq(1)"
    while read -r other number; do
        [ "$other.$number" != "$name" ] || fail "$name names itself"
        [ -e "$source/docs/man/$other.$number" ] || fail "$name names $other($number), which has no page"
    done < <(sed -n '/^\.SH SEE ALSO/,$p' "$page" | sed -nE 's/^\.BR ([^ ]*) \(([0-9])\),?$/\1 \2/p' | tr -d '\\')
done
for text in OCCTRACE_DB OCCTRACE_CLUSTER OCC_PAGER occq.yaml; do
    grep -q "$text" "$source/docs/man/occq.1" || fail "occq.1 does not name $text"
done
[ "$(sed -n '/^\.SH EXIT STATUS/,/^\.SH ENV/p' "$source/docs/man/occq.1" | grep -c '^\.B [0-9]')" = 5 ] || fail "exit statuses of occq.1"
compare occq.1 "$occq"
commands=$("$occq" --complete '' | cut -f1 | grep -v ^-)
[ -n "$commands" ] || fail "occq has no commands"
for command in $commands; do
    "$occq" --help | grep -q "^  $command " || fail "occq --help does not list $command"
done
for command in $commands; do
    compare "occq-$command.1" "$occq" "$command"
    grep -q "^\.B ${command//-/\\\\-}\$" "$source/docs/man/occq.1" || fail "occq.1 does not name $command"
done

# The completion offers every command, option and column.
complete_occq() { "$occq" --complete "$@" | cut -f1; }
for command in $commands; do
    help=$("$occq" "$command" --help)
    others=$(sed -n '/^Other forms:/,/^$/p' <<<"$help" | grep -oE '^  occq [a-z]+ --[a-z-]+' | grep -oE -- '--[a-z-]+')
    diff <({ help_options <<<"$help"; echo "$others"; } | grep . | sort -u) <(complete_occq "$command" -- | grep -E -- '^--[a-z-]+' | sort -u) ||
        fail "completion of $command"
    [[ $help != *--columns* ]] || diff <(help_columns <<<"$help") <(complete_occq "$command" -o '' | sort) ||
        fail "completion of $command -o"
done
[ "$(complete_occq '' | grep -vc -- '^-')" = "$(wc -w <<<"$commands")" ] || fail "completion of commands"
[ "$(complete_occq top --cause block)" = "$(printf 'blocks\nblock_size\nblock_start')" ] || fail "completion of --cause"
[ "$(complete_occq top --order t | tr '\n' ' ')" = "time tail " ] || fail "completion of --order"
complete_occtrace() { "$occtrace" --complete "$@" | cut -f1 | paste -sd" "; }
[ "$(complete_occtrace --counters '')" = "auto pm gpm none exact" ] || fail "completion of --counters"
[ "$(complete_occtrace --counters pm --excl)" = "" ] && [ "$(complete_occtrace --counters pm --exa)" = "--exact" ] ||
    fail "completion takes the value of --counters for the program"

# "help" is another word for --help.
diff <("$occq" help) <("$occq" --help) || fail "occq help"
diff <("$occq" help top) <("$occq" top --help) || fail "occq help top"
"$occq" help tpo 2>&1 | grep -q "unknown command 'tpo'; did you mean 'top'" || fail "occq help tpo"
exit $failed
