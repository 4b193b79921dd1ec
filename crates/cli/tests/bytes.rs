//! Bytes that go through `clover fs` come back the same: large files, many files, pipes, and after a kill.

mod demo;

use demo::{Demo, clover};
use std::{fs, io::Write, process::Stdio};

/// Bytes without a pattern that a misplaced block could repeat.
fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(count);
    bytes
}

#[test]
fn a_file_of_many_blocks_comes_back_whole_also_after_a_kill() {
    let mut demo = Demo::start();
    let bytes = noise(10_000_001, 1);
    fs::write(demo.local().join("big"), &bytes).unwrap();
    demo.must(&["-D", "dfs.blocksize=1m", "-put", "big", "/big"]);
    assert_eq!(demo.must(&["-cat", "/big"]).stdout, bytes);
    let checksum = demo.must(&["-checksum", "/big"]).text;
    assert!(checksum.contains("MD5-of-2048MD5-of-512CRC32C"), "{checksum}");

    demo.kill_and_start();
    demo.must(&["-get", "/big", "back"]);
    assert_eq!(fs::read(demo.local().join("back")).unwrap(), bytes);
    assert_eq!(demo.must(&["-checksum", "/big"]).text, checksum);
}

#[test]
fn a_tree_is_copied_by_many_hands_and_none_is_left_half_done() {
    let demo = Demo::start();
    let tree = demo.local().join("tree");
    for directory in 0..10 {
        fs::create_dir_all(tree.join(format!("d{directory}"))).unwrap();
        for file in 0..20 {
            let name = format!("d{directory}/f{file}");
            fs::write(tree.join(name), noise(directory * 1_000 + file * 37, 7)).unwrap();
        }
    }
    demo.must(&["-put", "-t", "16", "tree", "/tree"]);
    demo.must(&["-cp", "-t", "3", "/tree", "/copy"]);
    demo.must(&["-get", "-t", "8", "/copy", "back"]);
    for directory in 0..10 {
        for file in 0..20 {
            let name = format!("d{directory}/f{file}");
            let (sent, back) = (fs::read(tree.join(&name)), fs::read(demo.local().join("back").join(&name)));
            assert_eq!(sent.unwrap(), back.unwrap(), "{name}");
        }
    }
    let names = demo.must(&["-ls", "-R", "-C", "/"]).text;
    assert!(!names.contains("._COPYING_"), "{names}");
    let count = demo.must(&["-count", "/tree", "/copy"]).text;
    assert_eq!(count.matches(" 200 ").count(), 2, "{count}");
}

#[test]
fn pipes_are_read_and_written() {
    let demo = Demo::start();
    let bytes = noise(3_000_000, 3);
    let mut command = clover(&demo.local());
    command.args(["fs", "--fs", &demo.uri(), "put", "-", "/piped"]).stdin(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(process.wait().unwrap().success());
    assert_eq!(demo.must(&["-cat", "/piped"]).stdout, bytes);

    // A reader that has had enough ends the command, without a word.
    let mut command = clover(&demo.local());
    command.args(["fs", "--fs", &demo.uri(), "cat", "/piped"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(141), &b""[..]));
}

#[test]
fn files_of_this_machine_are_named_by_uris() {
    let demo = Demo::start();
    let local = demo.local().canonicalize().unwrap();
    fs::write(local.join("lines"), "one\ntwo\n").unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/text/bytes.seq"), local.join("rows")).unwrap();
    let uri = |name: &str| format!("file://{}/{name}", local.display());
    demo.must(&["-cp", &uri("lines"), "/copied"]);
    demo.must(&["-cp", "-p", "/copied", &uri("back")]);
    assert_eq!(fs::read_to_string(local.join("back")).unwrap(), "one\ntwo\n");
    assert_eq!(demo.must(&["-cat", &uri("back"), "/copied"]).text, "one\ntwo\none\ntwo\n");
    assert_eq!(demo.must(&["-text", &uri("rows"), &uri("lines")]).text, "(null)\t01 ff 0a\none\ntwo\n");
    let refused = demo.fs(None, &["-cat", &format!("file://{}", local.display())]);
    assert!(refused.code == 1 && refused.text.contains("Is a directory"), "{}", refused.text);
}

#[test]
fn stock_configuration_files_lead_to_the_cluster() {
    let demo = Demo::start();
    let mut command = clover(&demo.local());
    command.args(["client-config", "conf", "--target", &demo.uri()]);
    assert_eq!(demo::run(command).code, 0);
    let mut command = clover(&demo.local());
    command.args(["fs", "-mkdir", "-p", "/made/by/configuration"]).env("HADOOP_CONF_DIR", "conf");
    assert_eq!(demo::run(command).text, "");
    demo.must(&["-test", "-d", "/made/by/configuration"]);

    fs::write(demo.local().join("conf/hdfs-site.xml"), "<configuration>\n<property>\n</configuration>")
        .unwrap();
    let mut command = clover(&demo.local());
    command.args(["fs", "--conf", "conf", "-ls", "/"]);
    let output = demo::run(command);
    assert_ne!(output.code, 0);
    assert!(output.text.contains("conf/hdfs-site.xml:3: is not well-formed XML"), "{}", output.text);
}
