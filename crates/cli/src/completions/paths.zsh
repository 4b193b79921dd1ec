
# The paths of the file system, and files of this machine where a command copies from or to it.
_clover_paths() {
    local -a options found
    local -i i
    local -a typed=(${(z)LBUFFER})
    for ((i = 2; i < $#typed; i++)); do
        case $typed[i] in
            --fs | -fs) options+=(--fs ${(Q)typed[i+1]}) ;;
            --conf | -conf) options+=(--conf ${(Q)typed[i+1]}) ;;
            -D) options+=(-D ${(Q)typed[i+1]}) ;;
            --fs=* | --conf=*) options+=($typed[i]) ;;
        esac
    done
    found=(${(f)"$(clover fs $options complete-path -- ${(Q)PREFIX} 2>/dev/null)"})
    (( $#found )) && compadd -S '' -a found
    case " $typed " in
        *' '(put|copyFromLocal|moveFromLocal|appendToFile|get|copyToLocal|moveToLocal|getmerge)' '*) _files ;;
    esac
}
