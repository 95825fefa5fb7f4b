#!/bin/bash
# Completion: what the programs offer, and that bash, zsh and fish show it (those that are installed).   completion.sh BUILD
set -u
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=$build/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
touch recording.json
failed=0
fail() { echo "FAILED: $*"; failed=1; }

# What PROGRAM offers for the words, joined by blanks.
offers() { # expected, program, words...
  local want=$1 got
  shift
  got=$("$1" --complete "${@:2}" | cut -f1 | paste -sd' ')
  [ "$got" = "$want" ] || fail "$* offers '$got', not '$want'"
}
offers top occq to
offers "--order" occq top --ord
offers waste occq top --order wast
offers --order=waste occq top --order=wast
offers "+kernel,launches" occq top -o +kernel,laun
offers h200-7g.141gb occq calc --gpu h200-7
offers :files occq import ""
offers :files occq top -d ""
offers "status" occq doctor --counters stat
offers "--gaps" occq top --ga
offers "allocation" occq top --by alloc
offers h200-7g.141gb occq top --on h200-7
offers "pause resume" occq runs ""
offers "" occq nonsense ""
offers "" occq
offers :files occtrace -d ""
offers ":program 0" occtrace ""
offers ":program 2" occtrace -d h.db app
offers ":program 1" occtrace -- -x
offers ":program 0" occtrace app --counters ""
offers "auto pm gpm none exact" occtrace --counters ""

# Recorded names: kernels, labels, runs and sides of a history; names that a shell could misread are escaped or left out.
"$build/bin/cli_history" h.db || exit 1
export OCCTRACE_DB=$work/h.db
offers "gemm" occq show ge
offers "tiny" occq history ti
offers "softmax" occq top --kernel soft
offers "--kernel=softmax" occq top --kernel=soft
offers "too_many tiny" occq show t
offers "batch 64" occq top --label ba
offers "label:batch 64 :files" occq diff label:
offers "a,run:last a,run:3 a,run:2 a,run:1 :files" occq diff "a,run:"
offers "run:last run:3 run:2 run:1 :files" occq check run:
offers "1" occq prune 1
offers "gemm" occq show -d h.db ge
offers "" occq show -d missing.db ge
offers "" occq show --cluster http://127.0.0.1:1/ ge
[ "$(occq --complete show '' | grep -c .)" = 5 ] || fail "the kernels: $(occq --complete show '')"
occq --complete show '' | grep -q $'\e' && fail "a name with an escape"
mkfifo pipe.db # opening it never returns: the process ends after a second
(exec 3>&1; timeout 20 occq --complete show -d pipe.db '' >/dev/null 2>&1; [ $? != 124 ]) || fail "a history that does not answer"
cp h.db names.db
python3 - <<'END'
import sqlite3
database = sqlite3.connect("names.db")
names = ["mat<64>", "a b;touch hacked", "$(touch hacked)", ":files", "-rf", "it's", *("many%d" % i for i in range(400))]
columns = [row[1] for row in database.execute("PRAGMA table_info(stored_kernel)")]
(template,) = database.execute("SELECT * FROM stored_kernel WHERE rowid = 1").fetchall()
for i, name in enumerate(names):
    row = dict(zip(columns, template))
    for key, value in row.items():
        if key == columns[0]:
            row[key] = 1000 + i
        elif isinstance(value, str):
            row[key] = name
        elif isinstance(value, (int, bytes)) and "hash" in key:
            row[key] = i + 77
    database.execute("INSERT INTO stored_kernel VALUES(%s)" % ", ".join("?" * len(columns)), list(row.values()))
database.commit()
END
[ "$(occq --complete show -d names.db '' | grep -c .)" = 200 ] || fail "more names than 200"
[ "$(occq --complete show -d names.db many | grep -c many)" = 200 ] || fail "names that begin with many"
for name in :fil -r; do
  occq --complete show -d names.db "$name" | grep -v -- '^--' | grep -q -e '^:files$' -e '^-rf$' && fail "a name that a script misreads: $name"
done

in_bash() { # expected, line
  local got
  got=$(bash --norc -c 'source "$1"; _command_offset() { COMPREPLY=("command at $1"); }; compopt() { :; }
    COMP_WORDS=($2); [[ $2 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _${COMP_WORDS[0]/occq/occtrace} "${COMP_WORDS[0]}"; echo "${COMPREPLY[*]}"' - "$here/cli/completion/occtrace.bash" "$2" 2>&1)
  [ "$got" = "$1" ] || fail "bash: '$2' gives '$got', not '$1'"
}
in_bash top "occq to"
in_bash waste "occq top --order = wast"
in_bash "recording.json" "occq import reco"
in_bash 'mat\<64\>' "occq show -d names.db mat"
in_bash '\$\(touch\ hacked\)' "occq show -d names.db \$("
in_bash 'batch\ 64' "occq top --label ba"
in_bash 'batch 64' "occq diff label : ba"
in_bash "command at 3" "occtrace -d h.db ap"
in_bash "command at 1" "occtrace "
in_bash "--check-config" "occtraced --che"
in_bash "pm" "occtraced --counters p"

if command -v fish >/dev/null; then
  in_fish() {
    local got
    got=$(HOME=$work fish --no-config -c "source '$here/cli/completion/occtrace.fish'; complete -C '$2'" 2>&1 | cut -f1 | paste -sd' ')
    [ "$got" = "$1" ] || fail "fish: '$2' gives '$got', not '$1'"
  }
  in_fish top "occq to"
  in_fish --order=waste "occq top --order=wast"
  in_fish recording.json "occq import reco"
  in_fish "mat<64>" "occq show -d names.db mat"
  in_fish "label:batch 64" "occq diff label:ba"
  in_fish "paste" "occtrace -d h.db past"
  in_fish "--check-config" "occtraced --che"
else
  echo "fish is not installed"
fi

if command -v zsh >/dev/null; then
  # A terminal of its own, in which the line is typed and Tab pressed.
  in_zsh() { # what is added, line
    HOME=$work timeout 60 zsh -f -c '
      zmodload zsh/zpty
      zpty shell "PS1=: zsh -f -i"
      zpty -w shell "fpath=(\"$1\" \$fpath); autoload -U compinit; compinit -u -d \"$PWD/dump\"; print READY"
      zpty -r shell line "*READY*READY*"
      zpty -w -n shell "$3"$'\''\t'\''
      zpty -r shell line "*$3*$2*"' - "$here/cli/completion" "$1" "$2" || fail "zsh adds no '$1' to '$2'"
  }
  in_zsh unches "occq la"
  in_zsh rding.json "occq import reco"
  in_zsh cupancy "occq top --order=oc"
  in_zsh "\<64" "occq show -d names.db mat"
  in_zsh "atch" "occq top --label b"
else
  echo "zsh is not installed"
fi
exit $failed
