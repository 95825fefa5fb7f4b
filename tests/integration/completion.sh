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
else
  echo "zsh is not installed"
fi
exit $failed
