//! The command lines that `--help` shows beyond the options, to start from.
//!
//! They stand in one table, so that one test can hold each of them, and those of the manual, against the parser.

#[cfg(test)]
mod tests;

use clap::{Command, CommandFactory};

/// The whole command line, with its examples.
pub fn command() -> Command {
    let mut root = crate::Cli::command();
    for (path, lines) in EXAMPLES {
        let text = lines.iter().fold("Examples:".to_owned(), |text, line| text + "\n  " + line);
        root = at(root, path.split_whitespace(), &text);
    }
    root
}

/// The examples of the command that the words lead to.
pub fn examples(path: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(of, _)| *of == path).map_or(&[], |(_, lines)| lines)
}

/// The command with the text at the end of the help of the one that the words lead to.
fn at<'a>(command: Command, mut words: impl Iterator<Item = &'a str>, text: &str) -> Command {
    match words.next() {
        None => command.after_help(text.to_owned()),
        Some(word) => command.mut_subcommand(word, |command| at(command, words, text)),
    }
}

/// The examples by the command that they explain. The text behind two spaces and a `#` is a remark to the reader.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "clover demo --dir /tmp/demo                    # a cluster to try things on",
            "clover fs -put report.csv /                    # as hdfs dfs -put",
            "clover status                                  # whether the cluster is well",
            "clover admin report                            # data servers, room, blocks",
            "clover config meta > meta.toml                 # every key of a metadata server",
        ],
    ),
    (
        "demo",
        &[
            "clover demo --dir /tmp/demo",
            "clover demo --dir /tmp/demo --members 3        # and watch a takeover",
            "clover demo --dir /tmp/demo --members 3 --with-load    # what clients feel of it",
            "clover demo --dir /tmp/demo --groups 3         # several groups hold one namespace",
            "clover demo --dir /tmp/demo --rpc-port 0 --http-port 0 --set dfs.replication=2",
        ],
    ),
    (
        "status",
        &[
            "clover status",
            "clover status --watch                          # whenever a condition comes or goes",
            "clover status --exit-when-healthy --timeout 60 # in a script that goes on afterwards",
            "clover status --json --fs hdfs://meta-1:8020",
        ],
    ),
    (
        "doctor",
        &[
            "clover doctor                                  # this machine, and the cluster",
            "clover doctor --config /etc/clover/meta.toml   # and the directories and ports of a server here",
            "clover doctor --bundle clover.tar.gz --hide-names",
        ],
    ),
    ("generate", &["clover generate alerts > clover-rules.yml"]),
    (
        "generate alerts",
        &[
            "clover generate alerts > clover-rules.yml",
            "clover generate alerts --groups 3 > clover-rules.yml    # each group is judged for itself",
        ],
    ),
    ("generate dashboard", &["clover generate dashboard > clover-dashboard.json"]),
    (
        "generate prometheus-config",
        &[
            "clover generate prometheus-config > prometheus.yml      # asks the cluster for its servers",
            "clover generate prometheus-config --meta meta-1:9870 --data data-1:9864",
        ],
    ),
    ("generate man", &["clover generate man /usr/local/share/man/man1"]),
    (
        "balancer",
        &[
            "clover balancer --dry-run                      # what is where, and what would be moved",
            "clover balancer --threshold 5 --bandwidth 200m",
            "clover balancer --exclude data-7.example --json",
        ],
    ),
    ("meta", &["clover meta format --config meta.toml          # once", "clover meta --config meta.toml"]),
    (
        "meta format",
        &[
            "clover meta format --config meta.toml          # a new cluster",
            "clover meta format --join --config meta.toml   # a further server of one",
            "clover meta format --group 2 --join --config meta.toml    # the first server of a further group",
            "clover meta format --once --config meta.toml   # before each start, by a program that starts servers",
        ],
    ),
    ("meta make-group", &["clover meta make-group --config meta.toml"]),
    ("meta accept-disk", &["clover meta accept-disk --config meta.toml"]),
    ("meta aside", &["clover meta aside list --config meta.toml"]),
    ("meta aside list", &["clover meta aside list --config meta.toml"]),
    ("meta aside restore", &["clover meta aside restore 3 --config meta.toml --yes"]),
    ("meta aside drop", &["clover meta aside drop 3 --config meta.toml --yes"]),
    ("meta backup", &["clover meta backup list /backup/clover"]),
    (
        "meta backup list",
        &[
            "clover meta backup list /backup/clover",
            "clover meta backup list /backup/1 /backup/2    # of two groups: where both can be restored",
        ],
    ),
    (
        "meta backup verify",
        &[
            "clover meta backup verify /backup/clover",
            "clover meta backup verify --deep /backup/clover    # and makes the names from it",
        ],
    ),
    (
        "meta backup look",
        &[
            "clover meta backup look /backup/clover /projects --at '2026-11-23 04:05:00'",
            "clover meta backup look -R /backup/clover / --entry 48100",
            "clover meta backup look --gone-since /backup/clover / --at 2026-11-23T04:05:00Z",
        ],
    ),
    ("meta name-directory", &["clover meta name-directory /backup/clover /var/lib/hadoop/name"]),
    (
        "meta restore",
        &[
            "clover meta restore /backup/clover --config meta.toml",
            "clover meta restore /backup/clover --config meta.toml --at 2026-11-23T04:05:00Z",
            "clover meta restore /backup/1 --config meta.toml --dix 338    # the root group of several",
            "clover meta restore /backup/2 --config meta.toml              # another group, where the root group is",
        ],
    ),
    (
        "data",
        &[
            "clover data --config data.toml",
            "clover data --set data_dirs=/mnt/disk1,/mnt/disk2 --set metadata_servers=meta-1:8020",
        ],
    ),
    (
        "fs",
        &[
            "clover fs -ls -R /                             # Hadoop's spelling",
            "clover fs ls -R /                              # or ours",
            "clover fs --fs hdfs://meta-1:8020 put report.csv /",
            "clover fs --json ls / | jq -r .path",
        ],
    ),
    (
        "fs ls",
        &[
            "clover fs ls -h -t /logs                      # the latest first, sizes as 1.5 K",
            "clover fs ls '/logs/2026-*/*.gz'",
        ],
    ),
    ("fs mkdir", &["clover fs mkdir -p /logs/2026/11"]),
    (
        "fs put",
        &[
            "clover fs put report.csv /data",
            "clover fs put -f -t 16 logs /data              # a tree, sixteen files at a time",
            "mysqldump shop | clover fs put - /backup/shop.sql",
        ],
    ),
    ("fs get", &["clover fs get /data/report.csv", "clover fs get -p '/logs/2026-*' logs"]),
    ("fs moveToLocal", &["clover fs moveToLocal /out/result.csv ."]),
    ("fs moveFromLocal", &["clover fs moveFromLocal report.csv /data"]),
    ("fs appendToFile", &["clover fs appendToFile today.log /logs/all.log"]),
    ("fs getmerge", &["clover fs getmerge /out/part-* out.txt"]),
    ("fs truncate", &["clover fs truncate -w 1000 /logs/all.log"]),
    ("fs concat", &["clover fs concat /logs/all.log /logs/monday.log /logs/tuesday.log"]),
    ("fs cat", &["clover fs cat '/out/part-*' | sort"]),
    ("fs text", &["clover fs text /data/notes.txt"]),
    ("fs head", &["clover fs head /data/report.csv"]),
    ("fs tail", &["clover fs tail -f /logs/all.log"]),
    ("fs rm", &["clover fs rm -r -skipTrash /tmp/old"]),
    ("fs rmdir", &["clover fs rmdir /tmp/empty"]),
    ("fs expunge", &["clover fs expunge"]),
    ("fs mv", &["clover fs mv /tmp/a /tmp/b /data"]),
    ("fs cp", &["clover fs cp -p /data /backup", "clover fs cp hdfs://old:8020/data hdfs://new:8020/"]),
    ("fs du", &["clover fs du -h /", "clover fs du / | sort -nr | head                # the largest first"]),
    ("fs df", &["clover fs df -h"]),
    ("fs stat", &["clover fs stat '%n %b %o %r' /data/report.csv"]),
    ("fs touchz", &["clover fs touchz /out/_SUCCESS"]),
    ("fs touch", &["clover fs touch -t 20261121:073059 /data/report.csv"]),
    ("fs chmod", &["clover fs chmod -R g+w,o-rwx /data", "clover fs chmod 1777 /tmp"]),
    ("fs chown", &["clover fs chown -R ada:staff /user/ada"]),
    ("fs chgrp", &["clover fs chgrp -R staff /data"]),
    ("fs setrep", &["clover fs setrep -w 2 /data"]),
    ("fs getfacl", &["clover fs getfacl -R /data"]),
    (
        "fs setfacl",
        &["clover fs setfacl -m user:ada:rw-,default:group:staff:r-x /data", "clover fs setfacl -b /data"],
    ),
    ("fs getfattr", &["clover fs getfattr -d /data/report.csv"]),
    ("fs setfattr", &["clover fs setfattr -n user.origin -v shop /data/report.csv"]),
    ("fs count", &["clover fs count -q -h -v /user/ada"]),
    (
        "fs find",
        &[
            "clover fs find /logs -name '*.gz'",
            "clover fs find / -iname '*report*' -print0 | xargs -0 -n 1 clover fs checksum",
        ],
    ),
    ("fs test", &["clover fs test -d /data && echo there"]),
    ("fs checksum", &["clover fs checksum /data/report.csv"]),
    ("fs complete-path", &["clover fs complete-path /lo"]),
    ("fs createSnapshot", &["clover fs createSnapshot /data monday"]),
    ("fs deleteSnapshot", &["clover fs deleteSnapshot /data monday"]),
    ("fs renameSnapshot", &["clover fs renameSnapshot /data monday before-release"]),
    (
        "admin",
        &[
            "clover admin report --fs hdfs://meta-1:8020    # data servers, room, blocks",
            "clover admin group                             # who is active, who is in sync",
            "clover admin safe-mode get",
        ],
    ),
    (
        "admin group",
        &[
            "clover admin group                             # as `clover admin group show`",
            "clover admin group hand-over --to 2 --config meta.toml    # before the active's machine is stopped",
        ],
    ),
    (
        "admin groups",
        &[
            "clover admin groups                            # as `clover admin groups show`",
            "clover admin groups give-slots 2               # files of new directories are there as well",
        ],
    ),
    ("admin groups show", &["clover admin groups show --json"]),
    ("admin groups give-slots", &["clover admin groups give-slots 2 --config meta.toml"]),
    ("admin where", &["clover admin where /data/logs                  # which group has the files in it"]),
    ("admin group show", &["clover admin group show --json | jq .view.active"]),
    ("admin group add", &["clover admin group add 4"]),
    ("admin group remove", &["clover admin group remove 3 --secret-file /etc/clover/secret"]),
    ("admin group minimum", &["clover admin group minimum 2"]),
    (
        "admin group hand-over",
        &[
            "clover admin group hand-over --to 2",
            "clover admin group hand-over --from self --config meta.toml    # before this server is stopped",
        ],
    ),
    ("admin group fail-active", &["clover admin group fail-active"]),
    (
        "admin group unclean-elect",
        &[
            "clover admin group unclean-elect --member 3 --config meta.toml    # says what would be lost, and does nothing",
            "clover admin group unclean-elect --member 3 --config meta.toml --off 1,2 --yes-lose-data",
        ],
    ),
    (
        "admin group repair",
        &[
            "clover admin group repair --config meta.toml          # says what would be written, and does nothing",
            "clover admin group repair --config meta.toml --yes",
        ],
    ),
    (
        "admin backup",
        &[
            "clover admin backup /backup/clover --config meta.toml",
            "clover admin backup /backup/clover --follow --secret-file /etc/clover/secret   # until ^C",
        ],
    ),
    ("admin blocks", &["clover admin blocks allow-deletions            # says what is held back, and asks"]),
    (
        "admin blocks allow-deletions",
        &[
            "clover admin blocks allow-deletions",
            "clover admin blocks allow-deletions --json | jq .bytes",
            "clover admin blocks allow-deletions --yes --config meta.toml",
        ],
    ),
    ("admin upgrade", &["clover admin upgrade status                   # which release each server runs"]),
    ("admin upgrade status", &["clover admin upgrade status --json | jq .can_finalize"]),
    (
        "admin upgrade finalize",
        &[
            "clover admin upgrade finalize --config meta.toml          # says what it would do, and asks",
            "clover admin upgrade finalize --yes --secret-file /etc/clover/secret",
        ],
    ),
    (
        "admin login-link",
        &[
            "clover admin login-link --config meta.toml       # on the machine of a metadata server",
            "clover admin login-link --user ann --secret-file cluster.secret",
        ],
    ),
    ("admin report", &["clover admin report --dead", "clover admin report --json | jq .missing_blocks"]),
    (
        "admin decommission",
        &[
            "clover admin decommission worker-7               # its blocks are copied to others",
            "clover admin decommission worker-7 worker-8:9866 --wait",
        ],
    ),
    (
        "admin maintenance",
        &[
            "clover admin maintenance worker-7 --for 2h --wait",
            "clover admin maintenance 10.0.0.7:9866 --until 2026-12-24T18:00",
        ],
    ),
    ("admin recommission", &["clover admin recommission worker-7"]),
    (
        "admin orders",
        &[
            "clover admin orders                             # which may be switched off",
            "clover admin orders --json | jq '.orders[].blocks_in_need'",
        ],
    ),
    ("admin topology", &["clover admin topology"]),
    ("admin safe-mode", &["clover admin safe-mode get --json", "clover admin safe-mode wait"]),
    ("admin save-namespace", &["clover admin save-namespace"]),
    ("admin roll-edits", &["clover admin roll-edits"]),
    ("admin refresh-nodes", &["clover admin refresh-nodes"]),
    ("admin list-open-files", &["clover admin list-open-files --path /logs"]),
    (
        "fsck",
        &[
            "clover fsck                                    # all files",
            "clover fsck /logs --files --blocks --racks     # each file, and where its blocks are",
            "clover fsck / --json | tail -1                 # the sums alone",
        ],
    ),
    ("admin list-corrupt-files", &["clover admin list-corrupt-files"]),
    ("admin set-balancer-bandwidth", &["clover admin set-balancer-bandwidth 100m"]),
    (
        "admin disk-balancer",
        &[
            "clover admin disk-balancer data-1:9867 --plan               # what would be moved",
            "clover admin disk-balancer data-1:9867 --bandwidth 50m",
            "clover admin disk-balancer data-1:9867 --status",
        ],
    ),
    (
        "admin reconfigure",
        &["clover admin reconfigure data-1:9867    # after a change of data_dirs in its file"],
    ),
    ("admin allow-snapshot", &["clover admin allow-snapshot /data"]),
    ("admin disallow-snapshot", &["clover admin disallow-snapshot /data"]),
    ("admin ls-snapshottable-dir", &["clover admin ls-snapshottable-dir"]),
    ("admin ls-snapshot", &["clover admin ls-snapshot /data"]),
    (
        "admin snapshot-diff",
        &[
            "clover admin snapshot-diff /data monday tuesday",
            "clover admin snapshot-diff /data monday .      # to now",
        ],
    ),
    ("admin set-quota", &["clover admin set-quota 10000 /user/ada"]),
    ("admin clr-quota", &["clover admin clr-quota /user/ada"]),
    (
        "admin set-space-quota",
        &[
            "clover admin set-space-quota 2t /user/ada",
            "clover admin set-space-quota 100g --storage-type SSD /user/ada",
        ],
    ),
    ("admin clr-space-quota", &["clover admin clr-space-quota /user/ada"]),
    ("admin storage-policies", &["clover admin storage-policies list"]),
    ("admin storage-policies list", &["clover admin storage-policies list"]),
    ("admin storage-policies get", &["clover admin storage-policies get /data"]),
    ("admin storage-policies set", &["clover admin storage-policies set /data COLD"]),
    ("admin storage-policies unset", &["clover admin storage-policies unset /data"]),
    ("admin storage-policies satisfy", &["clover admin storage-policies satisfy /data"]),
    (
        "client-config",
        &[
            "clover client-config conf --target hdfs://meta-1:8020",
            "clover client-config conf --members meta-1:8020,meta-2:8020,meta-3:8020 --nameservice prod",
            "HADOOP_CONF_DIR=$PWD/conf hdfs dfs -ls /",
        ],
    ),
    ("config", &["clover config meta > meta.toml", "clover config data --json | jq -r '.[].key'"]),
    (
        "config check",
        &[
            "clover config check /etc/clover/meta.toml",
            "clover config check --json meta.toml data.toml | jq .problems",
        ],
    ),
    (
        "config convert",
        &[
            "clover config convert --role meta /etc/hadoop/conf > meta.toml",
            "clover config convert --role data hdfs-site.xml core-site.xml > data.toml",
        ],
    ),
    ("completions", &["source <(clover completions bash)"]),
    (
        "inspect",
        &[
            "clover inspect /var/lib/clover/meta            # is everything sound?",
            "clover inspect --json --from 100 --to 120 SEGMENT",
            "clover inspect --verify /var/lib/clover/data   # does every replica match its checksums?",
            "clover inspect BLOCK_FILE                      # and where does it not?",
        ],
    ),
];
