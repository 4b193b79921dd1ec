use super::*;
use crate::conformance;

#[test]
fn a_view_reads_back() {
    let view = conformance::sample();
    let bytes = encode_view(&view).unwrap();
    assert!(
        bytes.starts_with(br#"{"format":1,"epoch":4,"active":2,"#),
        "{}",
        String::from_utf8_lossy(&bytes)
    );
    assert_eq!(decode_view(&bytes), Ok(view));
}

#[test]
fn a_members_record_reads_back_as_its_own_only() {
    let record = conformance::record(2, u64::MAX, 9);
    let bytes = encode_member(&record);
    assert_eq!(decode_member(&bytes, MemberId(2)), Ok(record));
    assert!(decode_member(&bytes, MemberId(3)).unwrap_err().contains("member 2"));
}

#[test]
fn what_was_cut_off_or_is_of_another_format_is_said_so() {
    let bytes = encode_view(&conformance::sample()).unwrap();
    assert_eq!(decode_view(b"").unwrap_err(), "it is empty");
    for length in 1..bytes.len() {
        assert!(decode_view(&bytes[..length]).is_err(), "cut to {length}");
    }
    let newer = String::from_utf8(bytes).unwrap().replace("\"format\":1", "\"format\":3");
    assert!(decode_view(newer.as_bytes()).unwrap_err().contains("format 3"));
    let large = vec![b' '; 1 << 20];
    assert!(decode_view(&large).unwrap_err().contains("1048576 bytes"));
}

#[test]
fn a_view_that_cannot_be_is_not_read() {
    let text = String::from_utf8(encode_view(&conformance::sample()).unwrap()).unwrap();
    for (good, bad) in [
        ("\"in_sync\":[[1,0],[2,7]]", "\"in_sync\":[[2,7],[1,0]]"),
        ("\"in_sync\":[[1,0],[2,7]]", "\"in_sync\":[[1,0],[2,7],[3,1]]"),
        ("\"members\":[1,2,3]", "\"members\":[]"),
        ("\"members\":[1,2,3]", "\"members\":[1,1,3]"),
        ("\"in_sync_min\":3", "\"in_sync_min\":0"),
        ("\"in_sync_min\":3", "\"in_sync_min\":-1"),
        ("\"epoch\":4", "\"epoch\":1e99"),
        ("\"epoch\":4", "\"epoch\":null"),
        ("\"active\":2", "\"active\":4294967296"),
    ] {
        assert!(text.contains(good), "{good}");
        let changed = text.replace(good, bad);
        assert!(decode_view(changed.as_bytes()).is_err(), "{bad}");
    }
    let deep = format!("{{\"format\":1,\"epoch\":{}", "[".repeat(60_000));
    assert!(decode_view(deep.as_bytes()).is_err());
}

#[test]
fn a_view_with_a_level_has_a_format_that_older_releases_refuse() {
    let raised = GroupView { level: Level::NEWEST, ..conformance::sample() };
    let text = String::from_utf8(encode_view(&raised).unwrap()).unwrap();
    assert!(text.starts_with(r#"{"format":2,"#) && text.contains(r#""level":5,"release":"0.2.0""#), "{text}");
    assert_eq!(decode_view(text.as_bytes()), Ok(raised));
    let later = text.replace(r#""level":5,"release":"0.2.0""#, r#""level":7,"release":"3.4.0""#);
    let refusal = decode_view(later.as_bytes()).unwrap_err();
    assert!(refusal.contains("level 7") && refusal.contains("Start release 3.4.0"), "{refusal}");
}

/// The nodes of a group of release 0.1.0; the bytes were recorded from it by `tests/upgrade/record`.
#[test]
fn nodes_of_the_older_release_are_read_and_written_as_it_wrote_them() {
    let state = include_bytes!("../../../../../tests/recorded/0.1.0/zookeeper/state");
    let view = decode_view(state).unwrap();
    assert_eq!(view.level, Level::FIRST);
    assert_eq!((view.members.len(), view.in_sync_min), (3, 2));
    assert_eq!(encode_view(&view).unwrap(), state, "it would read what this release writes");
    let member = include_bytes!("../../../../../tests/recorded/0.1.0/zookeeper/member-2");
    let record = decode_member(member, MemberId(2)).unwrap();
    assert_eq!(encode_member(&record), member);
}
