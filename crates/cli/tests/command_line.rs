//! Command lines that need no cluster: mistakes are named, and completions are made.

mod demo;

use demo::{Output, clover, run};
use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

fn say(words: &[&str]) -> Output {
    let mut command = clover(Path::new("/"));
    command.args(words);
    run(command)
}

#[test]
fn mistakes_are_named_and_have_hadoops_exit_code() {
    for (words, expected) in [
        (&["fs", "-nosuch"][..], "unrecognized subcommand 'nosuch'"),
        (&["fs", "-ls", "-Z"], "unexpected argument '-Z'"),
        (&["fs", "-head"], "<PATH>"),
        (&["fs", "-put", "-t", "0", "a", "b"], "0 is not in 1..=256"),
        (&["fs", "-mv", "/a"], "2 more required"),
        (&["fs"], "Usage: clover fs"),
    ] {
        let output = say(words);
        assert_eq!(output.code, 255, "{words:?}: {}", output.text);
        let is_close = expected == "2 more required" && output.text.contains("required by");
        assert!(output.text.contains(expected) || is_close, "{words:?}: {}", output.text);
    }
}

#[test]
fn a_configuration_that_makes_no_sense_is_named() {
    for (words, expected) in [
        (&["fs", "-D", "x", "-ls"][..], "-D x: is not KEY=VALUE"),
        (&["fs", "--conf", "/nope", "-ls"], "/nope: cannot be read: No such file"),
        (&["fs", "-fs", "http://a", "-ls"], "`http://a`: has the scheme http; only hdfs is served here"),
        (&["fs", "-fs", "hdfs://a:0", "-ls"], "a port between 1 and 65535"),
        (&["--log", "a=b=c", "fs", "-ls"], "--log: `a=b=c` is not a log filter"),
    ] {
        let output = say(words);
        assert_ne!(output.code, 0, "{words:?}");
        assert!(output.text.contains(expected), "{words:?}: {}", output.text);
    }
}

#[test]
fn nobody_at_home_is_told_soon_and_with_a_remedy() {
    let begun = std::time::Instant::now();
    let output = say(&["fs", "-fs", "hdfs://127.0.0.1:1", "-ls", "/"]);
    assert!(begun.elapsed().as_secs() < 10);
    assert_eq!(output.code, 1);
    for part in
        ["ls: cannot reach a metadata server of hdfs://127.0.0.1:1", "refused", "--fs hdfs://HOST:PORT"]
    {
        assert!(output.text.contains(part), "{part}: {}", output.text);
    }
    assert_eq!(output.text.lines().count(), 1, "{}", output.text);
    let output = say(&["admin", "report", "--fs", "hdfs://127.0.0.1:1"]);
    assert!(
        output.text.contains("refused") && output.text.contains("--fs hdfs://HOST:PORT"),
        "{}",
        output.text
    );
    // Names that end like this are nobody's.
    let output = say(&["fs", "-fs", "hdfs://prod_invalid", "-ls", "/"]);
    let part = "If prod_invalid is the name of a group, HADOOP_CONF_DIR or --conf";
    assert!(output.text.contains(part), "{}", output.text);
}

#[test]
fn help_and_completions_are_there() {
    for words in
        [&["--help"][..], &["fs", "--help"], &["fs", "ls", "--help"], &["fs", "put", "-h"], &["--version"]]
    {
        let output = say(words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.text);
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = say(&["completions", shell]);
        assert_eq!(output.code, 0);
        assert!(output.text.contains("client-config") && output.text.contains("checksum"), "{shell}");
        let asks = output.text.lines().filter(|line| line.contains(" complete-path --")).count();
        assert_eq!(asks, 1, "{shell} asks for paths, and offers nobody the question");
    }
    assert_eq!(say(&["completions", "csh"]).code, 2);
}

/// Runs `clover` in an empty directory that holds only `server.toml`.
fn start(toml: &str, words: &[&str]) -> Output {
    static STARTS: AtomicU32 = AtomicU32::new(0);
    let number = STARTS.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("clover-start-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(directory.join("full")).unwrap();
    std::fs::write(directory.join("full/precious"), "data").unwrap();
    std::fs::write(directory.join("server.toml"), toml).unwrap();
    let mut command = clover(&directory);
    command.args(words);
    let output = run(command);
    assert_eq!(std::fs::read_to_string(directory.join("full/precious")).unwrap(), "data");
    std::fs::remove_dir_all(&directory).unwrap();
    output
}

#[test]
fn servers_refuse_to_start_from_what_they_do_not_understand() {
    let meta = &["meta", "--config", "server.toml"][..];
    let format = &["meta", "format", "--config", "server.toml"][..];
    let data = &["data", "--config", "server.toml"][..];
    for (toml, words, parts) in [
        ("name_dir = 'n'\nrpc_adress = '127.0.0.1:1'\n", meta, &["server.toml:2", "`rpc_adress`"][..]),
        (
            "name_dir = 'n'\n\nmax_component_length = 256\n",
            meta,
            &["server.toml:3", "max_component_length", "256", "1 to 255"],
        ),
        (
            "name_dir = 'n'\nrpc_address = '0.0.0.0:1'\n",
            meta,
            &["rpc_address", "0.0.0.0:1", "insecure_simple_auth = true"],
        ),
        ("name_dir = \n", meta, &["server.toml:1"]),
        ("", meta, &["name_dir is not set", "clover meta format"]),
        ("name_dir = 'n'\n", data, &["server.toml:1", "`name_dir`"]),
        ("name_dir = 'n'\n", &["meta", "--config", "absent.toml"], &["absent.toml"]),
        (
            "name_dir = 'n'\nmembers = [1, 2, 3]\nin_sync_min = 4\n",
            meta,
            &["in_sync_min = 4", "members = [1, 2, 3]", "1 to 3"],
        ),
        ("name_dir = 'n'\n\nmember = 0\n", meta, &["server.toml:3", "member", "1 to 10000"]),
        ("name_dir = 'n'\nmembers = [1, 1]\n", meta, &["members names 1 twice"]),
        (
            "name_dir = 'n'\ncoordinator = 'zookeeper://a:b/c'\n",
            meta,
            &["server.toml:2", "coordinator", "`a:b`"],
        ),
        ("name_dir = 'n'\ngroup_silence_ms = 400\n", meta, &["group_*_ms", "400", "340"]),
        ("name_dir = 'n'\nmember = 4\nmembers = [1]\n", format, &["member = 4", "members = [1]"]),
        (
            "name_dir = 'n'\n",
            &["meta", "format", "--join", "--config", "server.toml"],
            &["no cluster to join"],
        ),
        (
            "name_dir = 'n'\ncoordinator = 'zookeeper://127.0.0.1:1/c'\npeer_address = '127.0.0.1:0'\n\
             coordinator_session_ms = '1s'\ninsecure_coordinator = true\n",
            format,
            &["nothing was made", "ZooKeeper 127.0.0.1:1"],
        ),
        (
            "name_dir = 'n'\ncoordinator = 'zookeeper://127.0.0.1:1/c'\npeer_address = '127.0.0.1:0'\n",
            meta,
            &["coordinator_auth_file", "user:password", "insecure_coordinator = true"],
        ),
        (
            "data_dirs = ['d']\nmetadata_servers = ['meta-1']\n",
            data,
            &["metadata_servers", "`meta-1`", "host:port"],
        ),
        (
            "<?xml version='1.0'?>\n<configuration/>\n",
            meta,
            &["server.toml:1", "is XML", "clover config convert server.toml"],
        ),
        (
            "name_dir = '/a,/b'\n",
            meta,
            &["name_dir = /a,/b", "several directories", "further members of a group"],
        ),
        ("name_dir = ['/a', '/b']\n", meta, &["server.toml:1", "is a list, and takes one value"]),
        (
            "data_dirs = ['/a,/b']\n",
            data,
            &["server.toml:1", "one text with commas in it", "quotes of its own"],
        ),
        (
            "'dfs.block.size' = 1048576\n",
            meta,
            &["server.toml:1", "Hadoop's older name of `dfs.blocksize`; write that"],
        ),
        (
            "'dfs.namenode.handler.count' = 64\n",
            meta,
            &["server.toml:1", "calls do not occupy threads here; leave it out", "from-hdfs.md"],
        ),
        ("'dfs.http.policy' = 'HTTPS_ONLY'\n", meta, &["not built yet", "no HTTPS"]),
        ("'dfs.client.retry.max.attempts' = 3\n", data, &["is read by clients"]),
        (
            "rpc_address = 'meta-1:8020'\n",
            meta,
            &["server.toml:1", "is a host's name", "0.0.0.0:8020", "advertised_"],
        ),
        ("rpc_address = 'localhost:8020'\n", meta, &["write 127.0.0.1:8020"]),
        ("rpc_address = 'hdfs://10.0.0.1:8020'\n", meta, &["is a URI"]),
        (
            "data_dirs = ['d']\nmetadata_servers = ['hdfs://meta-1:8020']\n",
            data,
            &["leave out what stands before the host"],
        ),
        (
            "name_dirs = 'n'\nmember = 0\n",
            meta,
            &["server.toml:1", "did you mean `name_dir`", "1 more", "clover config check server.toml"],
        ),
        ("http_address = ''\n", data, &["server.toml:1", "`clover meta` has it"]),
        ("rpc_adress = ''\n", meta, &["did you mean `rpc_address`?"]),
        ("'dfs.namenode.rpc-adress' = ''\n", meta, &["did you mean `dfs.namenode.rpc-address`?"]),
        ("", &["demo", "--dir", "d", "--set", "nonsense=1"], &["--set", "`nonsense`"]),
        ("", &["demo", "--dir", "d", "--set", "dfs.blocksize=1"], &["default_block_size", "1", "512"]),
        ("", &["demo", "--dir", "full"], &["full", "not a demo cluster"]),
    ] {
        let output = start(toml, words);
        assert_ne!(output.code, 0, "{toml}");
        for part in parts {
            assert!(output.text.contains(part), "{toml}: `{part}` is missing in: {}", output.text);
        }
    }
}

#[test]
fn a_file_is_checked_whole_and_without_a_start() {
    let check = &["config", "check", "server.toml"];
    let good = start("name_dir = 'n'\n", check);
    assert_eq!((good.code, &*good.text), (0, "server.toml: good for `clover meta --config server.toml`\n"));
    let bad = start("name_dir = 'n'\nmember = 0\n\ndfs.nonsense = 1\nhold_ms = 'x'\n", check);
    assert_eq!(bad.code, 1);
    for part in ["server.toml:2: member", "server.toml:4: ", "server.toml:5: hold_ms", "NOT good", "3 things"]
    {
        assert!(bad.text.contains(part), "{part}: {}", bad.text);
    }
    // Rules between several keys are checked as well.
    let bad = start("name_dir = 'n'\nmembers = [1, 2]\n", &["config", "check", "--json", "server.toml"]);
    assert_eq!(bad.code, 1);
    assert!(bad.text.contains("\"good\":false") && bad.text.contains("need a coordinator"), "{}", bad.text);
    let bad = start("data_dirs = ['d']\nmetadata_servers = ['m']\n", check);
    assert!(bad.text.contains("NOT good for `clover data`"), "{}", bad.text);
}

#[test]
fn hadoops_files_become_the_servers() {
    let xml = "<configuration>\n<property><name>dfs.replication</name><value>2</value></property>\n\
               <property><name>dfs.datanode.data.dir</name><value>/d1,/d2</value></property>\n\
               <property><name>dfs.namenode.handler.count</name><value>64</value></property></configuration>";
    let both = start(xml, &["config", "convert", "server.toml"]);
    assert_eq!(both.code, 0, "{}", both.text);
    for part in [
        "default_replication = 2",
        "data_dirs = [\"/d1\", \"/d2\"]",
        "taken: 2",
        "dropped: 1",
        "dfs.namenode.handler.count = 64: has no counterpart",
    ] {
        assert!(both.text.contains(part), "{part}: {}", both.text);
    }
    let meta = start(xml, &["config", "convert", "--role", "meta", "--json", "server.toml"]);
    let json: serde_json::Value = serde_json::from_str(&meta.text).unwrap();
    assert_eq!(
        (&json["taken"][0]["key"], &json["files"]["data"]),
        (&"default_replication".into(), &().into())
    );
    let broken =
        start("<configuration>\n<property>\n</configuration>", &["config", "convert", "server.toml"]);
    assert_ne!(broken.code, 0);
    assert!(broken.text.contains("server.toml:3: is not well-formed XML"), "{}", broken.text);
}

#[test]
fn a_cluster_is_never_made_over_something_else_nor_by_itself() {
    let output = start("name_dir = 'full'\n", &["meta", "format", "--config", "server.toml"]);
    assert_ne!(output.code, 0);
    assert!(output.text.contains("full"), "{}", output.text);
    let output = start("name_dir = 'unmade'\n", &["meta", "--config", "server.toml"]);
    assert_ne!(output.code, 0);
    assert!(output.text.contains("format"), "{}", output.text);
}

/// What starts servers by itself orders it before each start.
#[test]
fn a_directory_is_made_once_and_stays_as_it_is() {
    let directory = std::env::temp_dir().join(format!("clover-once-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("meta.toml"), "name_dir = 'name'\n").unwrap();
    let once = |words: &[&str]| {
        let mut command = clover(&directory);
        command.args(["meta", "format", "--once", "--config", "meta.toml"]).args(words);
        run(command)
    };
    let kept = || std::fs::read_to_string(directory.join("name/CLUSTER"));
    let made = once(&["--cluster-id", "CID-once"]);
    assert!(made.code == 0 && made.text.contains("Made cluster CID-once"), "{}", made.text);
    let cluster = kept().unwrap();
    // Also with the options of another order: what is there is the cluster.
    for words in [&[][..], &["--replace"], &["--cluster-id", "CID-other"]] {
        let again = once(words);
        assert_eq!(again.code, 0, "{words:?}: {}", again.text);
        assert!(again.text.contains("name belongs to cluster CID-once already"), "{words:?}: {}", again.text);
        assert_eq!(kept().unwrap(), cluster, "{words:?}");
    }
    // It is neither made over what was broken off, nor over something else.
    std::fs::write(directory.join("name/MAKING"), "").unwrap();
    std::fs::remove_file(directory.join("name/CLUSTER")).unwrap();
    let half_made = once(&[]);
    assert!(half_made.code != 0 && half_made.text.contains("is half made"), "{}", half_made.text);
    std::fs::remove_file(directory.join("name/MAKING")).unwrap();
    let other = once(&[]);
    assert!(other.code != 0 && other.text.contains("is not empty"), "{}", other.text);
    assert!(kept().is_err() && directory.join("name/group-1").is_dir(), "what is there stays");
    let both = once(&["--join"]);
    assert!(both.code != 0 && both.text.contains("cannot be used with"), "{}", both.text);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn every_key_is_printed_with_an_explanation() {
    for role in ["meta", "data"] {
        let text = say(&["config", role]).text;
        let keys = text.lines().filter(|line| !line.starts_with('#') && line.contains(" = ")).count();
        assert!(keys > 8 && text.lines().filter(|line| line.starts_with("# ")).count() > keys, "{text}");
    }
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let directory = std::env::temp_dir().join(format!("clover-nobody-reads-{}", std::process::id()));
    let name_dir = directory.join("meta");
    let assignment = format!("name_dir={}", name_dir.display());
    let format = ["meta", "format", "--set", &assignment];
    for words in [&format[..], &["completions", "bash"]] {
        // This is `clover … | true`: the reader is gone before anything is printed.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = clover(Path::new("/"));
        let output = command.args(words).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{words:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    }
    assert!(name_dir.join("group-1").is_dir(), "what was asked for was done");
    std::fs::remove_dir_all(directory).unwrap();
}
