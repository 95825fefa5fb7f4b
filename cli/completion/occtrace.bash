# bash completion for occtrace, occq and occtraced. The first two know their own words (PROGRAM --complete WORD...,
# cli/complete.h); occtraced's are in its --help.
_occtrace()
{
    local words=() at=() line word i raw=${COMP_WORDS[COMP_CWORD]} breaks='^[=:]+$' has_files= open=
    # bash divides "--by=waste" at "=" and "label:new" at ":"
    for ((i = 1; i <= COMP_CWORD; i++)); do
        if ((i > 1)) && [[ ${COMP_WORDS[i]} =~ $breaks || ${COMP_WORDS[i - 1]} =~ $breaks ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}") at+=("$i")
        fi
    done
    words=("${words[@]//[\'\"\\]/}")
    word=${words[-1]}
    # bash replaces the text after an open quote, or after the last "=" or ":"
    local value=$word before=${word%"${word##*[=:]}"}
    [[ $raw == [\'\"]* ]] && open=1 before=${word%"${raw:1}"}
    [[ $word == --*=* ]] && value=${word#*=}
    while IFS= read -r line; do
        case $line in
            :files) has_files=1; compopt -o filenames; COMPREPLY+=($(compgen -f -- "$value")) ;;
            ":program "*) _command_offset "${at[${line#:program }]}"; return ;;
            *) line=${line%%$'\t'*}; COMPREPLY+=("${line#"$before"}") ;;
        esac
    done < <("$1" --complete "${words[@]}" 2>/dev/null)
    # names of kernels have characters of the shell; bash itself quotes file names
    [[ $open$has_files ]] || for i in "${!COMPREPLY[@]}"; do printf -v 'COMPREPLY[i]' %q "${COMPREPLY[i]}"; done
}
_occtraced()
{
    local word=${COMP_WORDS[COMP_CWORD]}
    case ${COMP_WORDS[COMP_CWORD - 1]} in
        -c | -d | --config | --db | --socket) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;
        --log-level) COMPREPLY=($(compgen -W 'error warning info debug' -- "$word")) ;;
        --counters) COMPREPLY=($(compgen -W 'auto pm gpm none' -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '^ {2,6}(-[a-zA-Z], )?--[a-z-]+' |
            grep -o -- '--.*')" -- "$word")) ;;
    esac
}
complete -F _occtrace occtrace occq
complete -F _occtraced occtraced
