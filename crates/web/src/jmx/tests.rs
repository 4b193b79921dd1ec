//! Questions as tools ask them.

use super::*;
use crate::refusal::Refusal;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

const STATUS: &str = "Hadoop:service=NameNode,name=NameNodeStatus";

/// A server with two beans, and the number of beans that it has made.
fn source() -> (BeanSource, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let source: BeanSource = Arc::new(move |beans| {
        beans.put(STATUS.to_owned(), "NameNode", || {
            counted.fetch_add(1, Ordering::Relaxed);
            json!({ "State": "active", "SecurityEnabled": false })
        });
        beans.put("java.lang:type=Runtime".to_owned(), "Runtime", || {
            counted.fetch_add(1, Ordering::Relaxed);
            json!({ "Uptime": 7 })
        });
    });
    (source, made)
}

fn ask(qry: Option<&str>, get: Option<&str>) -> Value {
    let answer = answer(&source().0, qry, get).unwrap();
    serde_json::from_str(&layout::text(&answer)).unwrap()
}

#[test]
fn all_beans_are_shown_if_none_is_named() {
    let all = ask(None, None);
    assert_eq!(all["beans"].as_array().unwrap().len(), 2);
    assert_eq!(all["beans"][0]["name"], STATUS);
    assert_eq!(all["beans"][0]["modelerType"], "NameNode");
    assert_eq!(all["beans"][0]["State"], "active");
}

#[test]
fn beans_are_chosen_by_their_names() {
    assert_eq!(ask(Some("java.lang:*"), None)["beans"][0]["Uptime"], 7);
    assert_eq!(ask(Some("Hadoop:service=DataNode,*"), None), json!({ "beans": [] }));
    assert_eq!(ask(Some("nonsense"), None), json!({}));
}

#[test]
fn one_attribute_is_shown_alone() {
    let one = ask(None, Some("Hadoop:service=NameNode,name=NameNodeStatus::State"));
    assert_eq!(one["beans"][0]["State"], "active");
    assert_eq!(one["beans"][0].get("SecurityEnabled"), None);
    let absent = ask(None, Some("Hadoop:service=NameNode,name=NameNodeStatus::Nope"));
    assert_eq!(absent["beans"][0]["message"], "No attribute with name Nope was found.");
    assert_eq!(ask(None, Some("bad"))["message"], "query format is not as expected.");
}

#[test]
fn a_bean_that_is_not_asked_for_is_not_made() {
    let questions = [
        (Some(STATUS), None, 1),
        (None, Some("java.lang:type=Runtime::Uptime"), 1),
        (Some("Hadoop:service=DataNode,*"), None, 0),
        (Some("nonsense"), None, 0),
        (None, Some("bad"), 0),
        (None, None, 2),
    ];
    for (qry, get, expected) in questions {
        let (source, made) = source();
        answer(&source, qry, get).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), expected, "{qry:?} {get:?}");
    }
}

#[test]
fn a_name_that_is_too_long_is_refused() {
    let long = format!("Hadoop:name={}", "*a".repeat(2_000));
    let is_refused = |answer: Result<Answer>| matches!(answer, Err(Refusal { status, .. }) if status == 400);
    assert!(is_refused(answer(&source().0, Some(&long), None)));
    assert!(is_refused(answer(&source().0, None, Some(&format!("{long}::State")))));
}

#[test]
fn the_process_has_the_beans_that_java_has() {
    let pattern = Pattern::parse("*:*").unwrap();
    let mut beans = Beans::named(&pattern);
    put_process_beans(&mut beans, "NameNode", env::ProcessFacts::now);
    let names: Vec<_> = beans.made().into_iter().map(|bean| bean.name).collect();
    let expected = [
        "Hadoop:service=NameNode,name=JvmMetrics",
        "java.lang:type=Runtime",
        "java.lang:type=Memory",
        "java.lang:type=OperatingSystem",
    ];
    assert_eq!(names, expected);
}
