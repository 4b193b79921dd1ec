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
    let newer = String::from_utf8(bytes).unwrap().replace("\"format\":1", "\"format\":2");
    assert!(decode_view(newer.as_bytes()).unwrap_err().contains("format 2"));
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
