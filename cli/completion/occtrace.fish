# fish completion for occtrace, occq and occtraced. The first two know their own words (PROGRAM --complete WORD...,
# cli/complete.h); occtraced's are in its --help.
function __occtrace_complete
    set -l words (commandline -opc) (commandline -ct | string replace -ra '[\'"\\\\]' '')
    for line in ($words[1] --complete $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- $words[-1])
            case ':program *'
                __fish_complete_subcommand --fcs-skip=(math (string replace ':program ' '' -- $line) + 1)
            case '*'
                echo $line
        end
    end
end
function __occtraced_options
    occtraced --help 2>/dev/null | string match -rg '^ {2,6}(?:-[a-zA-Z], )?(--[a-z-]+)'
end
complete -c occtrace -f -a '(__occtrace_complete)'
complete -c occq -f -a '(__occtrace_complete)'
complete -c occtraced -a '(__occtraced_options)'
