use super::*;
use crate::page::tests::{HOSTILE, frame, text as shown_text};
use serde_json::json;
use std::sync::Arc;
use web::{Facts, Health, Sources};

fn page(is_signed_in: bool, attributes: Value, info: Value, endangered: Option<Vec<String>>) -> Page {
    let status = json!({ "State": "active" });
    let all = [(NAMESYSTEM, attributes), (INFO, info), ("NameNodeStatus", status)];
    let put = move |beans: &mut web::jmx::Beans<'_>| {
        for (name, attributes) in &all {
            beans.put(format!("Hadoop:service=NameNode,name={name}"), "x", || attributes.clone());
        }
    };
    let sources = Sources { beans: Some(Arc::new(put)), ..Sources::default() };
    let mut frame = frame();
    frame.visitor.is_signed_in = is_signed_in;
    Page::new(frame, &Beans::of(&Facts { health: Arc::new(Health::default), sources }), endangered)
}

#[test]
fn lost_blocks_are_counted_and_their_files_named() {
    let lost = json!([HOSTILE, "/a b"]).to_string();
    let attributes = json!({ "MissingBlocks": 1234, "BlocksTotal": 5000 });
    let info = json!({ "CorruptFiles": lost });
    let stranger = shown_text(&page(false, attributes.clone(), info.clone(), None));
    assert!(!stranger.contains("a%20b") && !stranger.contains("/a b"), "{stranger}");
    assert!(stranger.contains("<p>2. Their names are for users who have signed in."), "{stranger}");
    let page = page(true, attributes, info, None);
    assert_eq!((page.counts[1].value.as_str(), page.counts[1].class), ("1\u{202f}234", "error"));
    assert_eq!(page.counts[3].value, text::UNKNOWN);
    let shown = shown_text(&page);
    assert!(shown.contains("href=\"/files/a%20b\"") && !shown.contains("does not lead"), "{shown}");
}

#[test]
fn nothing_lost_is_said_so() {
    let shown = shown_text(&page(
        false,
        json!({ "MissingBlocks": 0 }),
        json!({ "CorruptFiles": "no json" }),
        Some(vec![]),
    ));
    assert_eq!(shown.matches("<p class=\"empty\">None.</p>").count(), 2, "{shown}");
}

#[test]
fn files_with_too_few_replicas_are_named_for_superusers() {
    let few = Some(vec!["/few".to_owned(), HOSTILE.to_owned()]);
    let shown = shown_text(&page(false, json!({}), json!({}), few));
    assert!(shown.contains("href=\"/files/few\"") && shown.contains("clover fsck /"), "{shown}");
    let shown = shown_text(&page(false, json!({}), json!({}), None));
    assert!(shown.contains("Their names are for superusers"), "{shown}");
}
