use super::*;
use proptest::{collection::vec, prelude::*};

fn point() -> impl Strategy<Value = LogPoint> {
    (0..=Epoch::LAST.0, any::<u64>(), any::<u64>()).prop_map(|(epoch, sn, chain)| LogPoint {
        id: TxId { epoch: Epoch(epoch), sn: Sn(sn) },
        chain: Chain(chain),
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    (point(), 1..=3u8, vec(any::<u8>(), 0..40)).prop_map(|(point, kind, payload)| Entry {
        id: point.id,
        kind: EntryKind::from_number(kind).unwrap(),
        previous_chain: point.chain,
        payload: payload.into(),
    })
}

fn known() -> impl Strategy<Value = Known> {
    ((0..=Epoch::LAST.0).prop_map(Epoch), point(), point()).prop_map(|(promised, end, committed)| Known {
        promised,
        end,
        committed,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let epoch = || (0..=Epoch::LAST.0).prop_map(Epoch);
    let sn = || any::<u64>().prop_map(Sn);
    prop_oneof![
        (epoch(), point(), vec(entry(), 0..5), sn()).prop_map(|(epoch, previous, entries, committed)| {
            Message::Append(Append { epoch, previous, entries, committed })
        }),
        (epoch(), sn()).prop_map(|(epoch, last)| Message::Appended { epoch, last }),
        (epoch(), point(), point()).prop_map(|(epoch, end, committed)| Message::Mismatch {
            epoch,
            end,
            committed
        }),
        epoch().prop_map(|promised| Message::Fenced { promised }),
        epoch().prop_map(|epoch| Message::NewEpoch { epoch }),
        (epoch(), point(), point(), any::<bool>()).prop_map(|(epoch, end, committed, is_suspect)| {
            Message::Promised { epoch, end, committed, is_suspect }
        }),
        (epoch(), any::<u64>(), sn(), any::<u64>()).prop_map(|(epoch, round, committed, lease_ms)| {
            Message::Beacon { epoch, round, committed, lease_ms }
        }),
        (epoch(), any::<u64>(), any::<(bool, bool)>(), point(), point(), any::<u32>()).prop_map(
            |(epoch, round, (is_granted, is_ready), end, committed, data_servers)| {
                Message::Grant { epoch, round, is_granted, is_ready, end, committed, data_servers }
            }
        ),
        (epoch(), point(), point()).prop_map(|(epoch, end, committed)| Message::Contradiction {
            epoch,
            end,
            committed
        }),
        known().prop_map(|known| Message::Hello { known }),
        vec((point(), any::<u32>(), any::<u64>()), 0..=Message::DIGESTS_MAX).prop_map(|digests| {
            let of = |(point, form, digest): (LogPoint, u32, u64)| StateDigest { at: point.id, form, digest };
            Message::Digests { digests: digests.into_iter().map(of).collect() }
        }),
        (epoch(), point(), any::<u32>()).prop_map(|(epoch, after, bytes_max)| Message::Fetch {
            epoch,
            after,
            bytes_max
        }),
        (epoch(), point(), vec(entry(), 0..5), sn()).prop_map(|(epoch, previous, entries, committed)| {
            Message::Fetched { epoch, previous, entries, committed }
        }),
        (epoch(), point(), point(), any::<bool>()).prop_map(|(epoch, after, committed, is_gone)| {
            Message::FetchFailed { epoch, after, committed, is_gone }
        }),
        (epoch(), epoch()).prop_map(|(epoch, unclean)| Message::NeedsImage { epoch, unclean }),
        epoch().prop_map(|epoch| Message::PreVote { epoch }),
        (epoch(), any::<bool>(), known()).prop_map(|(epoch, holds_grant, known)| Message::PreVoted {
            epoch,
            holds_grant,
            known
        }),
        (epoch(), point()).prop_map(|(epoch, end)| Message::HandOver { epoch, end }),
        (epoch(), 1..=3u8, vec(any::<u8>(), 0..40)).prop_map(|(epoch, kind, payload)| {
            let kind = EntryKind::from_number(kind).unwrap();
            Message::Suggest { epoch, proposal: Proposal { kind, payload: payload.into() } }
        }),
    ]
}

fn letter() -> impl Strategy<Value = Letter> {
    prop_oneof![
        20 => message().prop_map(Letter::Group),
        1 => vec(any::<u8>(), 0..40).prop_map(|text| Letter::FatalRequests(text.into())),
        1 => any::<u64>().prop_map(|left_ms| Letter::Watched { left_ms }),
    ]
}

fn bytes_of(letter: &Letter) -> Bytes {
    let mut bytes = BytesMut::new();
    encode(Versions::OURS.newest, letter, &mut bytes);
    bytes.freeze()
}

fn decoded(bytes: Bytes) -> Result<Option<Letter>, DecodeError> {
    decode(Versions::OURS.newest, bytes)
}

proptest! {
    #[test]
    fn a_letter_comes_back(letter in letter()) {
        prop_assert_eq!(decoded(bytes_of(&letter)), Ok(Some(letter)));
    }

    #[test]
    fn a_letter_cut_off_or_with_more_behind_it_is_refused(letter in letter(), cut in any::<prop::sample::Index>()) {
        let bytes = bytes_of(&letter);
        prop_assert!(decoded(bytes.slice(..cut.index(bytes.len()))).is_err());
        let longer = [&bytes[..], b"x"].concat();
        prop_assert_eq!(decoded(longer.into()), Err(DecodeError::Long { count: 1 }));
    }
}

#[test]
fn an_epoch_that_no_group_reaches_is_refused() {
    let bytes = bytes_of(&Message::NewEpoch { epoch: Epoch(1 << 63) }.into());
    assert_eq!(decoded(bytes), Err(DecodeError::Epoch(1 << 63)));
}

#[test]
fn a_count_of_entries_that_are_not_there_is_refused_before_room_is_made() {
    let mut bytes = BytesMut::new();
    bytes.put_u8(kind::FETCHED);
    bytes.put_u64_le(1);
    put_point(LogPoint::default(), &mut bytes);
    bytes.put_u64_le(0);
    bytes.put_u32_le(u32::MAX);
    assert_eq!(decoded(bytes.freeze()), Err(DecodeError::Short("entries")));
}

#[test]
fn a_kind_that_a_later_release_has_is_passed_over() {
    assert_eq!(decoded(Bytes::from_static(b"\xffof a later release")), Ok(None));
}

#[test]
fn a_neighbour_of_the_release_before_neither_gets_nor_gives_the_count_of_data_servers() {
    let grant = |data_servers| Message::Grant {
        epoch: Epoch(7),
        round: 3,
        is_granted: true,
        is_ready: true,
        end: LogPoint::default(),
        committed: LogPoint::default(),
        data_servers,
    };
    let mut bytes = BytesMut::new();
    encode(Version::FIRST, &grant(9).into(), &mut bytes);
    assert_eq!(bytes.len(), 1 + 8 + 8 + 1 + 1 + 24 + 24, "as the release before reads it");
    assert_eq!(decode(Version::FIRST, bytes.freeze()), Ok(Some(grant(0).into())));
}

#[test]
fn a_letter_is_passed_over_by_a_version_that_does_not_have_it() {
    let letter = Letter::FatalRequests(Bytes::from_static(b"a line"));
    assert_eq!(letter.since(), Version::FATAL_REQUESTS);
    assert_eq!(decode(Version::FIRST, bytes_of(&letter)), Ok(None));
    let letter = Letter::Watched { left_ms: 9 };
    assert_eq!(decode(Version::FATAL_REQUESTS, bytes_of(&letter)), Ok(None));
}

#[test]
fn more_digests_than_anybody_sends_are_refused() {
    let mut bytes = BytesMut::from(&[kind::DIGESTS, 9][..]);
    bytes.put_bytes(0, 9 * 28);
    assert!(matches!(decoded(bytes.freeze()), Err(DecodeError::Unknown { number: 9, .. })));
}
