//! Lists of data servers that are understood wrongly.

use super::{
    Admission,
    hosts_file::{Listed, Wish, parse},
};
use ::blocks::AdminOrder;
use base::Timestamp;

fn order(text: &str, port: u32) -> AdminOrder {
    let directory =
        std::env::temp_dir().join(format!("attacked-{}-{port}-{}", std::process::id(), text.len()));
    std::fs::write(&directory, text).unwrap();
    let admission = Admission::new(None, Some(directory.clone()));
    let read = admission.reread(&env::LocalDisk::new());
    std::fs::remove_file(&directory).unwrap();
    read.unwrap();
    admission.order_for([10, 0, 0, 1].into(), port, Timestamp { ms: 0 })
}

/// Editors on Windows put this mark in front. As words, the text names hosts that do not exist: no data server is admitted any more.
#[test]
fn json_behind_a_byte_order_mark_is_not_taken_for_words() {
    let one = Listed { host: "a".into(), port: None, wish: Wish::Decommissioned };
    let parsed = parse("\u{feff}[{\"hostName\": \"a\", \"adminState\": \"DECOMMISSIONED\"}]");
    assert!(parsed.is_err() || parsed.as_ref().is_ok_and(|listed| *listed == [one]), "{parsed:?}");
}

/// As in HDFS, and as in JSON.
#[test]
fn port_0_of_a_word_is_any_port() {
    assert_eq!(order("10.0.0.1:0", 9866), AdminOrder::Decommission);
}

/// Nobody has such a port: the operator is told, instead of waiting for a decommission that never begins.
#[test]
fn a_port_that_cannot_be_is_refused() {
    assert!(parse(r#"{"hostName": "a", "port": 70000}"#).is_err());
}

#[test]
fn a_word_with_a_port_that_cannot_be_is_refused() {
    assert!(parse("10.0.0.1:98666").is_err());
}

/// These hold.
#[test]
fn json_that_is_nested_deep_or_cut_off_is_refused() {
    let deep = "[".repeat(1_000_000);
    assert!(parse(&deep).is_err());
    let deep = format!(r#"{{"hostName": "a", "upgradeDomain": {}1"#, "[".repeat(1_000_000));
    assert!(parse(&deep).is_err());
    let deep = format!(r#"{{"hostName": "a", "x": {}{}}}"#, "{\"y\":".repeat(100_000), "1");
    assert!(parse(&deep).is_err());
    assert!(parse(r#"{"hostName": "a", "port": 4294967296}"#).is_err());
    assert!(parse(r#"{"hostName": "a", "port": -1}"#).is_err());
    assert!(parse(r#"{"hostName": "a"} and more"#).is_err());
}
