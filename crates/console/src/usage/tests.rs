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
    assert_eq!((known(0).percent, known(1).percent, page.rows[2].known.is_none()), (90, 10, true));
    assert!(known(1).is_small && !known(0).is_small);
    assert_eq!(known(1).quotas, "50 % of its names");
    let shown = shown_text(&page);
    assert!(
        shown.contains("href=\"/usage?of=%2Fd%2Fsmall\"") && shown.contains("href=\"/usage?of=%2Fd\""),
        "{shown}"
    );
    assert!(shown.contains("not known"), "{shown}");
}

#[test]
fn the_largest_is_shown_wherever_its_name_stands() {
    let sum =
        |length| ContentSummary { length, files: 1, space_consumed: length, ..ContentSummary::default() };
    let mut sums: Vec<_> = (0..150)
        .map(|number| (entry(&format!("d{number:03}"), FileKind::Directory), Some(sum(10))))
        .collect();
    sums.push((entry("zz", FileKind::Directory), Some(sum(1 << 30))));
    sums.push((entry("zzz", FileKind::Directory), None));
    let page = Page::new(frame(), "/many", sums, true);
    assert_eq!((page.rows[0].name.as_str(), page.rows.len()), ("zz", ROWS_MAX));
    assert_eq!(page.others, "52 smaller entries take 510 B together, 1 of them not known.");
    let shown = shown_text(&page);
    assert!(shown.contains("52 smaller entries") && shown.contains("are left out"), "{shown}");
}
