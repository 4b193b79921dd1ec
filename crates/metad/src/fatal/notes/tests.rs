use super::*;

const REQUEST: &[u8] = b"\x0a\x02/a";

fn note(number: u64, request: &[u8]) -> Note {
    Note {
        number,
        at_ms: 1_763_829_600_000,
        member: MemberId(2),
        protocol: "p.ClientProtocol".into(),
        method: "mkdirs".into(),
        bytes: request.len() as u64,
        fingerprint: Fingerprint::of(request),
        user: "alice".into(),
        client: ClientId([7; 16]),
        call: CallId(-3),
    }
}

fn of(notes: impl IntoIterator<Item = Note>) -> Notes {
    let mut all = Notes::default();
    notes.into_iter().for_each(|note| all.add(note));
    all
}

#[test]
fn what_is_written_reads_back_and_a_torn_line_is_passed_over() {
    let notes = of([note(5, b"one"), note(9, b"two")]);
    let text = notes.encode();
    assert_eq!(Notes::decode(text.as_bytes()), Some((notes, 0)));
    let (torn, malformed) = Notes::decode(&text.as_bytes()[..text.len() - 1]).unwrap();
    assert_eq!((torn, malformed), (of([note(5, b"one")]), 1));
}

#[test]
fn hostile_lines_are_counted_and_change_nothing() {
    let notes = of([note(5, REQUEST)]);
    let line = note(6, REQUEST).line();
    let wrong = [
        "hang number=1".to_owned(),
        "\u{7f}".to_owned(),
        String::new(),
        line.trim_end().replace("number=6", "number=0"),
        line.trim_end().replace("number=6", &format!("number={}", NUMBER_MAX + 1)),
        line.trim_end().replace("bytes=4", "bytes=-4"),
        line.trim_end().replace("sha256=", "sha256=é"),
        line.trim_end().replace("user=alice", "user=al\u{7f}ice"),
        line.trim_end().replace("user=alice", "user=alicé"),
        line.trim_end().replace("user=alice", "user="),
        line.trim_end().replace("user=alice", &format!("user={}", "a".repeat(WORD_BYTES_MAX + 1))),
        format!("{} more=1", line.trim_end()),
        format!("cleared up_to={NUMBER_MAX}"),
        "cleared up_to=x".to_owned(),
    ];
    for wrong in wrong {
        let text = format!("{}{wrong}\n", notes.encode());
        assert_eq!(Notes::decode(text.as_bytes()), Some((notes.clone(), 1)), "{wrong}");
    }
    assert_eq!(Notes::decode(&[0xff; 100]), None);
    assert_eq!(Notes::decode(b""), None);
    let later = notes.encode().replace("requests 1", "requests 2");
    assert_eq!(Notes::decode(later.as_bytes()), None, "of a later release");
}

#[test]
fn exactly_that_request_is_found() {
    let notes = of([note(5, REQUEST)]);
    let found = |protocol, method, request: &[u8]| notes.find(protocol, method, request).is_some();
    assert!(found("p.ClientProtocol", "mkdirs", REQUEST));
    assert!(!found("p.ClientProtocol", "mkdirs", b"\x0a\x02/b"));
    assert!(!found("p.ClientProtocol", "mkdirs", b"\x0a\x02/a\x10"));
    assert!(!found("p.ClientProtocol", "delete", REQUEST));
    assert!(!found("p.Other", "mkdirs", REQUEST));
}

#[test]
fn members_come_to_know_the_same_in_any_order_and_however_often_they_are_told() {
    let (mut one, mut other) = (of([note(5, b"1"), note(7, b"2")]), of([note(5, b"3"), note(7, b"2")]));
    let told = one.clone();
    assert!(one.merge(other.clone()) && other.merge(told.clone()));
    assert_eq!(one, other);
    assert!(!one.merge(told), "nothing is new");
    assert_eq!(one.all().len(), 3, "two that died apart have counted alike");
}

#[test]
fn what_was_cleared_does_not_come_back() {
    let mut one = of([note(5, b"1"), note(7, b"2")]);
    let mut away = one.clone();
    one.clear();
    assert!(one.all().is_empty());
    assert!(!one.merge(away.clone()), "a member that was away tells of it again");
    assert!(away.merge(one.clone()));
    assert_eq!(away, one);
    let again = note(one.next_number(), b"1");
    one.add(again);
    assert_eq!(one.all().len(), 1, "it has ended another server since");
}

#[test]
fn a_note_counts_whatever_the_clock_of_its_member_said() {
    let mut notes = of([Note { at_ms: u64::MAX, ..note(1, b"1") }]);
    notes.clear();
    let number = notes.next_number();
    notes.add(Note { at_ms: 0, ..note(number, b"2") });
    assert_eq!(notes.all().len(), 1);
    assert_eq!(notes.all()[0].time(), "1970-01-01T00:00:00Z");
    assert!(Note { at_ms: u64::MAX, ..note(1, b"1") }.time().ends_with("ms after 1970"));
}

#[test]
fn the_oldest_makes_room_and_a_text_has_a_bound() {
    let notes = of((1..=200u64).map(|number| note(number, &number.to_le_bytes())));
    assert_eq!(notes.all().len(), NOTES_MAX);
    assert_eq!(notes.all()[0].number, 200 - NOTES_MAX as u64 + 1);
    let odd = Note { user: word(&"ü ".repeat(500)), method: word(&"m".repeat(500)), ..note(1, REQUEST) };
    let odd = Note { protocol: word(&"p".repeat(500)), number: NUMBER_MAX, at_ms: u64::MAX, ..odd };
    assert!((odd.line().len() + 1) * (NOTES_MAX + 2) < TEXT_BYTES_MAX);
    assert_eq!(Note::parse(odd.line().trim_end()), Some(odd));
}
