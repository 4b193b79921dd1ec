//! `clover admin decommission`, `maintenance`, `recommission` and `orders`, as an operator types them.

mod demo;

use demo::{Demo, Output};
use serde_json::Value;

fn admin(demo: &Demo, words: &[&str]) -> Output {
    if demo.local().join("../cluster/conf").exists() {
        return demo.run_for_group(&[&["admin"], words].concat());
    }
    let mut command = demo::clover(&demo.local());
    command.args(["admin", "--fs", &demo.uri()]).args(words);
    demo::run(command)
}

fn run(demo: &Demo, words: &[&str], code: i32) -> Output {
    let output = admin(demo, words);
    assert_eq!(output.code, code, "{words:?}: {}", output.text);
    output
}

fn json(demo: &Demo, words: &[&str]) -> Value {
    let output = run(demo, words, 0);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

fn orders(demo: &Demo) -> Vec<Value> {
    json(demo, &["orders", "--json"])["orders"].as_array().unwrap().clone()
}

/// The addresses of the data servers.
fn addresses(demo: &Demo) -> Vec<String> {
    let report = json(demo, &["report", "--json"]);
    let servers = report["data_servers"].as_array().unwrap();
    servers.iter().map(|server| server["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_data_server_leaves_while_the_operator_waits_and_comes_back() {
    let demo = Demo::of_data_servers(4);
    std::fs::write(demo.local().join("letter"), "hello\n").unwrap();
    demo.must(&["-put", "letter", "/letter"]);
    let addresses = addresses(&demo);
    let (first, second) = (&*addresses[0], &*addresses[1]);
    assert_eq!(run(&demo, &["orders"], 0).text, "No data server is ordered out of service.\n");

    let text = run(&demo, &["decommission", first, "--wait"], 0).text;
    for part in
        ["live, in service, has ", "ordered out of service for good", "3 data servers stay in service"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.ends_with(&format!("{first} may be switched off: no block needs it.\n")), "{text}");
    let told = orders(&demo);
    let fact = |name: &str| told[0][name].clone();
    assert_eq!(
        (told.len(), fact("journal"), fact("service")),
        (1, "decommission".into(), "decommissioned".into())
    );
    assert_eq!(
        (fact("by"), fact("may_be_off"), fact("files")),
        (demo.superuser().into(), true.into(), Value::Null)
    );
    let text = run(&demo, &["report"], 0).text;
    assert!(
        text.contains(&format!(
            "{first} may be switched off: no block needs it. It is ordered in the journal."
        )),
        "{text}"
    );

    // With one more, too few would be left.
    let text = run(&demo, &["decommission", second], 1).text;
    assert!(
        text.contains("2 data servers would stay") && text.contains("Nothing was done; `--force`"),
        "{text}"
    );
    let text = run(&demo, &["maintenance", second, "--for", "2h", "--wait"], 0).text;
    assert!(
        text.contains("ordered into maintenance (until ") && text.contains("may be switched off"),
        "{text}"
    );
    let text = run(&demo, &["orders"], 0).text;
    assert!(text.contains("in maintenance") && text.contains("decommissioned"), "{text}");
    assert_eq!(demo.must(&["-cat", "/letter"]).text, "hello\n");

    let text = run(&demo, &["recommission", first, second], 0).text;
    assert_eq!(text.matches("in service again").count(), 2, "{text}");
    assert!(orders(&demo).is_empty());
    let text = run(&demo, &["recommission", first], 0).text;
    assert!(text.contains("nothing has changed"), "{text}");
}

#[test]
fn a_word_that_means_no_server_or_several_is_refused() {
    let demo = Demo::of_data_servers(2);
    let text = run(&demo, &["decommission", "127.0.0.1"], 1).text;
    assert!(text.contains("may be any of 2 data servers") && text.contains("Nothing was done"), "{text}");
    let text = run(&demo, &["decommission", "127.0.0.1:1"], 1).text;
    assert!(text.contains("--expected"), "{text}");
    let words = ["maintenance", "127.0.0.1:1", "--expected", "--until", "2999-01-01T00:00:00Z", "--wait"];
    let text = run(&demo, &words, 0).text;
    assert!(
        text.contains("no data server has registered there yet") && text.contains("is not waited for"),
        "{text}"
    );
    assert_eq!(orders(&demo)[0]["address"], "127.0.0.1:1");
    for wrong in [["--for", "soon"], ["--until", "soon"], ["--until", "2001-01-01T00:00:00Z"]] {
        let words = [&["maintenance", "127.0.0.1:1"], &wrong[..]].concat();
        let output = admin(&demo, &words);
        assert_ne!(output.code, 0, "{wrong:?}: {}", output.text);
    }
}

#[test]
fn all_groups_take_the_order_and_all_say_when_the_server_may_go() {
    let demo = Demo::of_groups(2, 1);
    let address = addresses(&demo).swap_remove(0);
    let text = run(&demo, &["decommission", &address, "--force", "--wait"], 0).text;
    assert!(text.contains("may be switched off"), "{text}");
    let told = orders(&demo);
    let groups: Vec<_> = told.iter().map(|one| (one["group"].as_u64(), one["journal"].as_str())).collect();
    assert_eq!(groups, [(Some(1), Some("decommission")), (Some(2), Some("decommission"))]);
    run(&demo, &["recommission", &address], 0);
    assert!(orders(&demo).is_empty());
}
