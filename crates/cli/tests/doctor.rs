//! `clover doctor` against a cluster, and the archive that it writes.

mod demo;

use demo::{Demo, clover, run};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

const USER: &str = "zaphodbeeblebrox";

fn archive(path: &Path) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        parts.insert(name.trim_start_matches("clover-doctor/").to_owned(), text);
    }
    parts
}

fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let all = json["checks"].as_array().unwrap();
    all.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no check {name}: {json:#}"))
}

#[test]
fn a_cluster_is_looked_at_and_packed_with_and_without_names() {
    let demo = Demo::start();
    demo.must(&["-mkdir", "/public"]);
    demo.must(&["-chmod", "777", "/public"]);
    assert_eq!(demo.fs(Some(USER), &["-touch", "/public/file"]).code, 0);
    let local = demo.local();
    // A file of a server that would use the ports of the demo's, with a secret in it.
    let config = local.join("meta.toml");
    let uri = demo.uri();
    let address = uri.trim_start_matches("hdfs://");
    std::fs::create_dir(local.join("name")).unwrap();
    let secret = local.join("verysecret");
    std::fs::write(&secret, "0123456789abcdef".repeat(4)).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "name_dir = \"{}\"\nrpc_address = \"{address}\"\nhttp_address = \"127.0.0.1:0\"\nsecret_file = \"{}\"\n",
        local.join("name").display(),
        secret.display()
    );
    std::fs::write(&config, text).unwrap();
    let log = local.join("server.log");
    std::fs::write(&log, format!("a call of {USER} to /public/file\n")).unwrap();

    let looked = |words: &[&str]| {
        let config = config.display().to_string();
        let mut command = clover(&local);
        command.args(["doctor", "--json", "--fs", &uri, "--config", &config]).args(words);
        let output = run(command);
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", output.text));
        let has_failed = json["checks"].as_array().unwrap().iter().any(|check| check["result"] == "failed");
        assert_eq!(output.code, i32::from(has_failed), "{json:#}");
        json
    };
    let (open, hidden) = (local.join("open.tar.gz"), local.join("hidden.tar.gz"));
    let log = log.display().to_string();
    let json = looked(&["--bundle", &open.display().to_string(), "--log-file", &log]);
    assert_eq!(check(&json, "metadata servers")["found"], "1 of 1");
    assert_eq!(check(&json, "releases")["result"], "good");
    let port = check(&json, &format!("rpc_address {address}"));
    assert!(port["found"].as_str().unwrap().starts_with("used by clover ("), "{port}");
    assert_eq!(port["result"], "good");
    assert_eq!(check(&json, &format!("directory {}", local.join("name").display()))["result"], "good");
    assert!(json["checks"].as_array().unwrap().iter().any(|check| check["check"] == "swap"), "{json:#}");

    let parts = archive(&open);
    assert_eq!(std::fs::metadata(&open).unwrap().mode() & 0o777, 0o600);
    for name in [
        "doctor.txt",
        "status.json",
        "facts.txt",
        "settings/1.toml",
        "servers/1/jmx.json",
        "servers/4/metrics.txt",
    ] {
        assert!(parts.contains_key(name), "{name}: {:?}", parts.keys());
    }
    assert!(parts["logs/1.txt"].contains(USER) && parts["servers/1/metrics.txt"].contains(USER));
    assert!(serde_json::from_str::<Value>(&parts["servers/1/health.json"]).unwrap()["verdict"].is_string());
    for (name, text) in &parts {
        assert!(!text.contains("verysecret") && !text.contains("0123456789abcdef0123"), "{name}");
    }

    looked(&["--bundle", &hidden.display().to_string(), "--hide-names", "--log-file", &log]);
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let parts = archive(&hidden);
    assert!(parts["logs/1.txt"].starts_with("a call of user-"), "{}", parts["logs/1.txt"]);
    for (name, text) in &parts {
        for word in [USER, "/public", "clover-shell-"] {
            assert!(!text.contains(word), "{name} has {word}");
        }
        // The name of a machine may be a part of any word.
        let mut words = text.split(|letter: char| !letter.is_alphanumeric() && !"-_.".contains(letter));
        assert!(own.trim() == "localhost" || words.all(|word| word != own.trim()), "{name} has {own}");
    }
    // An archive that is there is not overwritten.
    let mut command = clover(&local);
    command.args(["doctor", "--fs", &uri, "--bundle"]).arg(&hidden);
    let again = run(command);
    assert!(again.code == 1 && again.text.contains("exists"), "{}", again.text);
}

#[test]
fn a_cluster_that_is_away_and_a_port_of_another_program_fail() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let directory = std::env::temp_dir().join(format!("clover-doctor-away-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let missing = directory.join("missing");
    let text = format!("data_dirs = [\"{}\"]\ntransfer_address = \"{address}\"\n", missing.display());
    std::fs::write(directory.join("data.toml"), text).unwrap();
    let mut command = clover(&directory);
    command.args(["doctor", "--json", "--config", "data.toml", "--fs", &format!("hdfs://{free}")]);
    let output = run(command);
    std::fs::remove_dir_all(&directory).unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", output.text));
    assert_eq!((output.code, &json["ok"]), (1, &false.into()));
    for name in [
        "metadata servers".to_owned(),
        "verdict on the cluster".into(),
        format!("transfer_address {address}"),
        format!("directory {}", missing.display()),
    ] {
        let check = check(&json, &name);
        assert_eq!(check["result"], "failed", "{check}");
        assert!(!check["remedy"].as_str().unwrap().is_empty(), "{check}");
    }
}
