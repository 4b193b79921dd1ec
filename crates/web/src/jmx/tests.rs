//! Questions as tools ask them.

use super::*;
use serde_json::json;

fn ask(qry: Option<&str>, get: Option<&str>) -> Value {
    let source: BeanSource = Arc::new(|| {
        vec![
            Bean::new(
                "Hadoop:service=NameNode,name=NameNodeStatus",
                "NameNode",
                json!({ "State": "active", "SecurityEnabled": false }),
            ),
            Bean::new("java.lang:type=Runtime", "Runtime", json!({ "Uptime": 7 })),
        ]
    });
    let asked = Asked { qry: qry.map(str::to_owned), get: get.map(str::to_owned) };
    serde_json::from_str(&layout::text(&answer(&source, &asked))).unwrap()
}

#[test]
fn all_beans_are_shown_if_none_is_named() {
    let all = ask(None, None);
    assert_eq!(all["beans"].as_array().unwrap().len(), 2);
    assert_eq!(all["beans"][0]["name"], "Hadoop:service=NameNode,name=NameNodeStatus");
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
fn the_process_has_the_beans_that_java_has() {
    let names: Vec<_> =
        process_beans("NameNode", &env::ProcessFacts::now()).into_iter().map(|bean| bean.name).collect();
    let expected = [
        "Hadoop:service=NameNode,name=JvmMetrics",
        "java.lang:type=Runtime",
        "java.lang:type=Memory",
        "java.lang:type=OperatingSystem",
    ];
    assert_eq!(names, expected);
}
