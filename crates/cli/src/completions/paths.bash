
# Behind `clover fs`: Hadoop's spelling of commands, and the paths of the file system. These stand behind `clover fsck` as well.
_clover_with_paths() {
    local line=${COMP_LINE:0:COMP_POINT} command="" word
    local -a words=() options=()
    local -i i=1 paths=0 is_fs=0
    # Not COMP_WORDS: bash parts hdfs://host:8020/a at its colons.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local -i last=${#words[@]}-1
    local cur=${words[last]}
    while ((i < last)); do
        word=${words[i]}
        case $word in
            --fs | -fs) options+=(--fs "${words[i + 1]}") && i+=1 ;;
            --conf | -conf) options+=(--conf "${words[i + 1]}") && i+=1 ;;
            -D) options+=(-D "${words[i + 1]}") && i+=1 ;;
            --fs=* | --conf=* | -D*) options+=("$word") ;;
            --log) i+=1 ;;
            --*) ;;
            -*) ((is_fs)) && [[ -z $command ]] && command=${word#-} ;;
            fs) if ((is_fs == 0)); then is_fs=1; elif [[ -z $command ]]; then command=$word; else paths+=1; fi ;;
            fsck) if ((is_fs == 0)); then is_fs=1 command=fsck; else paths+=1; fi ;;
            *) if ((is_fs == 0)); then break; elif [[ -z $command ]]; then command=$word; else paths+=1; fi ;;
        esac
        i+=1
    done
    COMPREPLY=()
    # The value of an option.
    ((is_fs && i > last)) && return
    if ((is_fs)) && [[ -z $command && $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -P - -W "$_clover_fs_commands" -- "${cur#-}")
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "--fs --conf --json --log --help -D" -- "$cur")
        return
    fi
    if ((is_fs == 0)) || [[ -z $command ]]; then
        _clover "$@"
        return
    fi
    if [[ $cur == -* && $command == fsck ]]; then
        _clover "$@"
        return
    fi
    if [[ $cur == -* ]]; then
        local -a COMP_WORDS=("$1" fs "$command" "$cur")
        local COMP_CWORD=3
        _clover "$1" "$cur" "$command"
        return
    fi
    local is_remote=1 is_local=0
    case $command in
        put | copyFromLocal | moveFromLocal | appendToFile) is_local=1 is_remote=$((paths > 0)) ;;
        get | copyToLocal | moveToLocal | getmerge) is_local=$((paths > 0)) ;;
    esac
    ((is_remote)) && mapfile -t COMPREPLY < <("$1" fs "${options[@]}" complete-path -- "${cur//\\/}" 2>/dev/null)
    ((is_local)) && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${cur//\\/}")
    # Quotes what needs it. No file of this machine where none is meant.
    compopt -o filenames +o default +o bashdefault 2>/dev/null
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    # Bash takes what stands before the last colon for another word.
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local before=${cur%"${cur##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}

complete -F _clover_with_paths -o bashdefault -o default clover
