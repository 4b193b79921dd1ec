use super::*;
use crate::page::tests::{HOSTILE, frame, text as shown_text};
use client::FileKind;

fn entry(name: &str, kind: FileKind) -> FileStatus {
    FileStatus {
        path: paths::join("/d", name),
        kind,
        length: 0,
        mode: 0o755,
        owner: String::new(),
        group: String::new(),
        modified_ms: 0,
        accessed_ms: 0,
        replication: 0,
        block_size: 0,
        file_id: 0,
        children: None,
        has_acl: false,
        erasure_coding: None,
        storage_policy: 0,
    }
}

#[test]
fn the_largest_comes_first_and_what_is_not_known_last() {
    let sum = |length, files| ContentSummary {
        length,
        files,
        space_consumed: 3 * length,
        ..ContentSummary::default()
    };
    let small = ContentSummary { name_quota: Some(400), ..sum(1_000, 200) };
    let sums = vec![
        (entry("unknown", FileKind::Directory), None),
        (entry("small", FileKind::Directory), Some(small)),
        (entry(&HOSTILE.replace('/', ""), FileKind::File), Some(sum(9_000, 1))),
    ];
    let page = Page::new(frame(), "/d", sums, false);
    let known = |at: usize| page.rows[at].known.as_ref().unwrap();
    assert_eq!((known(0).percent, known(1).percent, page.rows[2].known.is_none()), (90.0, 10.0, true));
    assert!(known(1).is_small && !known(0).is_small);
    assert_eq!(known(1).quotas, "50 % of its names");
    let shown = shown_text(&page);
    assert!(
        shown.contains("href=\"/usage?of=%2Fd%2Fsmall\"") && shown.contains("href=\"/usage?of=%2Fd\""),
        "{shown}"
    );
    assert!(shown.contains("not known"), "{shown}");
}
