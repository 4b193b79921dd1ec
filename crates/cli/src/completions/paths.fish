
# The paths of the file system, and files of this machine where a command copies from or to it.
function __clover_paths
    set -l options
    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --fs -fs
                set -a options --fs $words[(math $i + 1)]
            case --conf -conf
                set -a options --conf $words[(math $i + 1)]
            case -D
                set -a options -D $words[(math $i + 1)]
            case '--fs=*' '--conf=*'
                set -a options $words[$i]
        end
    end
    clover fs $options complete-path -- (commandline -ct) 2>/dev/null
end

set -l copying put copyFromLocal moveFromLocal appendToFile get copyToLocal moveToLocal getmerge
complete -c clover -n "__fish_clover_using_subcommand fs; and __fish_seen_subcommand_from $_clover_fs_commands" -a '(__clover_paths)'
complete -c clover -n "__fish_clover_using_subcommand fs; and __fish_seen_subcommand_from $_clover_fs_commands; and not __fish_seen_subcommand_from $copying" -f
