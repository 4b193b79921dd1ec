use super::*;
use crate::page::tests::{HOSTILE, frame, text as shown_text};

fn status(name: &str, kind: FileKind) -> FileStatus {
    FileStatus {
        path: paths::join("/d", name),
        kind,
        length: 1536,
        mode: 0o1755,
        owner: HOSTILE.to_owned(),
        group: HOSTILE.to_owned(),
        modified_ms: 1_000,
        accessed_ms: 0,
        replication: 3,
        block_size: 128 << 20,
        file_id: 16386,
        children: None,
        has_acl: true,
        erasure_coding: None,
        storage_policy: 0,
    }
}

#[test]
fn entries_are_links_whatever_their_names() {
    let entries = vec![
        status("a b?c#d%2e", FileKind::File),
        // A slash is in no name; all else may be.
        status(&HOSTILE.replace('/', ""), FileKind::Directory),
    ];
    let shown = shown_text(&Page::new(frame(), "/d".into(), entries, ""));
    assert!(shown.contains("href=\"/files/d/a%20b%3Fc%23d%252e\""), "{shown}");
    assert!(shown.contains("href=\"/files/d/%3Cscript%3E"), "{shown}");
    assert!(shown.contains("-rwxr-xr-t+") && shown.contains("1.50 KiB"), "{shown}");
    assert!(!shown.contains("rel=\"next\""), "{shown}");
}

#[test]
fn a_page_ends_with_the_way_to_the_next() {
    let entries: Vec<_> =
        (0..=ENTRIES_MAX).map(|number| status(&format!("f{number:04} &"), FileKind::File)).collect();
    let page = Page::new(frame(), "/d".into(), entries, "x");
    assert_eq!(page.entries.len(), ENTRIES_MAX);
    assert_eq!(page.next.as_deref(), Some("/files/d?after=f0199+%26"));
    assert!(shown_text(&page).contains("First page"));
}
