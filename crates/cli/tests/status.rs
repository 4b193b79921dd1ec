//! `clover status`, `/health` and `/metrics` say the same of a cluster.

mod demo;

use demo::{Demo, clover, run};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Conditions of the machine that runs the test, which are true there and no fault of the cluster.
const OF_THE_MACHINE: [&str; 4] =
    ["DISK_NEARLY_FULL", "CAPACITY_NEARLY_FULL", "JOURNAL_SLOW", "DATA_SERVER_STALE"];

fn codes(judged: &Value) -> Vec<String> {
    let conditions = judged["conditions"].as_array().unwrap_or_else(|| panic!("no conditions: {judged}"));
    let codes = conditions.iter().map(|one| one["code"].as_str().unwrap().to_owned());
    codes.filter(|code| !OF_THE_MACHINE.contains(&code.as_str())).collect()
}

/// Asks until the answer is as wanted.
fn until(mut ask: impl FnMut() -> Value, wanted: &[&str]) -> Value {
    let begun = Instant::now();
    loop {
        let judged = ask();
        if codes(&judged) == wanted {
            return judged;
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted:?} is not told: {judged:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn page(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

fn health(address: &str) -> Value {
    let answer = page(address, "/health");
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn status(demo: &Demo, words: &[&str]) -> Value {
    let output = demo.run_for_group(&[&["status", "--json"], words].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

#[test]
fn a_group_is_healthy_and_all_say_so_until_safe_mode_is_an_error_everywhere() {
    let demo = Demo::of_members(3);
    let judged = until(|| status(&demo, &[]), &[]);
    let members = judged["groups"][0]["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{judged:#}");
    assert!(members.iter().all(|member| member["answers"] == true), "{judged:#}");

    let group = demo.run_for_group(&["admin", "group", "--json"]);
    let group: Value = serde_json::from_slice(&group.stdout).unwrap();
    let active = group["view"]["active"].as_u64().unwrap();
    let of_active = group["members"].as_array().unwrap().iter().find(|member| member["member"] == active);
    let address = of_active.unwrap()["http_address"].as_str().unwrap().to_owned();
    until(|| health(&address), &[]);
    let safe_mode = "clover_condition{code=\"SAFE_MODE\",severity=\"error\"}";
    assert!(page(&address, "/metrics").contains(&format!("{safe_mode} 0\n")));

    let entered = demo.run_for_group(&["admin", "safe-mode", "enter"]);
    assert_eq!(entered.code, 0, "{}", entered.text);
    let told = until(|| health(&address), &["SAFE_MODE"]);
    assert_eq!((&told["verdict"], &told["ok"]), (&"error".into(), &true.into()), "{told:#}");
    assert!(page(&address, "/metrics").contains(&format!("{safe_mode} 1\n")));
    let judged = until(|| status(&demo, &[]), &["SAFE_MODE"]);
    assert_eq!(judged["verdict"], "error");
    let output = demo.run_for_group(&["status"]);
    assert_eq!(output.code, 1);
    assert!(output.text.contains("error    SAFE_MODE\n"), "{}", output.text);
    assert!(output.text.contains("clover admin safe-mode leave"), "{}", output.text);
    let late = demo.run_for_group(&["status", "--exit-when-healthy", "--timeout", "0"]);
    assert_eq!(late.code, 1, "{}", late.text);

    assert_eq!(demo.run_for_group(&["admin", "safe-mode", "leave"]).code, 0);
    until(|| status(&demo, &[]), &[]);
}

#[test]
fn every_group_of_a_namespace_is_judged() {
    let demo = Demo::of_groups(2, 1);
    let judged = until(|| status(&demo, &[]), &[]);
    let groups: Vec<_> = judged["groups"].as_array().unwrap().iter().map(|group| &group["group"]).collect();
    assert_eq!(groups, [1, 2], "{judged:#}");
    let written = demo.run_for_group(&["generate", "prometheus-config"]);
    assert_eq!(written.code, 0, "{}", written.text);
    for part in
        ["labels: {metadata_group: \"1\"}", "labels: {metadata_group: \"2\"}", "job_name: clover-data"]
    {
        assert!(written.text.contains(part), "{part}: {}", written.text);
    }
}

#[test]
fn where_no_server_answers_that_is_the_condition() {
    // Free now; nobody else is likely to listen there in the next moment.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = clover(&std::env::temp_dir());
    command.args(["status", "--json", "--fs", &format!("hdfs://{address}")]);
    let output = run(command);
    let judged: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.code, &judged["verdict"]), (1, &"error".into()), "{judged:#}");
    assert_eq!(codes(&judged), ["NO_ANSWER"]);
    assert!(judged["conditions"][0]["text"].as_str().unwrap().contains(&address.to_string()), "{judged:#}");
}
