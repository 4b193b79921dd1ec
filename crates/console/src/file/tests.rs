use super::*;
use crate::page::tests::{HOSTILE, frame, text as shown_text};

fn shown(preview: Preview) -> String {
    shown_text(&Page {
        frame: frame(),
        path: "/a".into(),
        crumbs: paths::crumbs("/a"),
        is_dir: false,
        facts: vec![("Owner", HOSTILE.to_owned())],
        acl: vec![HOSTILE.to_owned()],
        quota: Some(Quota::of(&QuotaUsage {
            files_and_directories: 1,
            name_quota: Some(4),
            ..QuotaUsage::default()
        })),
        preview,
        download: Some("/download/a".into()),
        blocks: vec![Block {
            id: 1073741825,
            stamp: 1001,
            offset: "0".into(),
            size: "1 B".into(),
            is_corrupt: true,
            places: vec![HOSTILE.into()],
        }],
        blocks_note: String::new(),
        next_blocks: None,
        snapshots: snapshots::address("/a"),
    })
}

#[test]
fn what_a_file_holds_is_shown_and_not_run() {
    let text = shown(Preview::of(HOSTILE.as_bytes(), false));
    assert!(text.contains("&#60;script&#62;") && text.contains("blk_1073741825_1001"), "{text}");
    assert!(text.contains("value=\"25\""), "{text}");
    shown(Preview::Refused(HOSTILE.to_owned()));
}

#[test]
fn text_is_told_from_bytes() {
    assert!(matches!(Preview::of("ä\tb\n".as_bytes(), false), Preview::Text { .. }));
    // A letter that the cut has gone through.
    assert!(
        matches!(Preview::of(&"aä".as_bytes()[..2], true), Preview::Text { text, is_cut: true } if text == "a")
    );
    assert!(matches!(Preview::of(&"aä".as_bytes()[..2], false), Preview::Bytes { .. }));
    assert!(matches!(Preview::of(b"a\0b", false), Preview::Bytes { .. }));
    assert!(matches!(Preview::of(b"", false), Preview::None));
    let Preview::Bytes { lines, is_cut } = Preview::of(&[0xff; 8192], false) else { panic!("bytes") };
    assert_eq!((lines.len(), is_cut), (LINES_MAX, true));
    assert_eq!(lines[1].0, "000010");
}

#[test]
fn names_of_downloads_cannot_leave_their_header() {
    let told = disposition("a\"b\r\nSet-Cookie: x=ä.txt");
    assert!(HeaderValue::from_str(&told).is_ok(), "{told}");
    assert!(
        told.starts_with("attachment; filename=\"a_b__Set-Cookie_ x__.txt\"; filename*=UTF-8''a%22b%0D%0A"),
        "{told}"
    );
}

#[test]
fn no_block_of_a_file_with_short_blocks_is_left_out() {
    let short: Vec<u64> = (1..=250).map(|number| number * 10).collect();
    assert_eq!(next_page(&short, 5_000, 2_500), Some(1_000));
    assert_eq!(next_page(&short[100..], 6_000, 2_500), Some(2_000));
    assert_eq!(next_page(&short[200..], 7_000, 2_500), None);
    assert_eq!(next_page(&short[..100], 1_000, 2_500), Some(1_000));
    assert_eq!(next_page(&[], 100, 0), None);
}
