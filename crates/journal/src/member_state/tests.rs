use super::*;
use base::LogPoint;

fn sample() -> MemberState {
    let checkpoint = |sn| Checkpoint {
        at: LogPoint { id: base::TxId { epoch: Epoch(3), sn: Sn(sn) }, chain: base::Chain(sn * 3) },
        file_bytes: 100 + sn,
        sha256: [sn as u8; 32],
    };
    MemberState {
        identity: Identity { cluster_id: "CID-1f".into(), group: GroupId(0), member: MemberId(1) },
        store_uuid: [5; 16],
        promised: Epoch(4),
        known_commit: Sn(77),
        boot: 6,
        next: Sn(80),
        generation: 1,
        fault_note: Some("sync failed".into()),
        checkpoints: vec![checkpoint(10), checkpoint(20)],
        is_suspect: true,
        next_start: NextStart::Install,
        level: Level::NEWEST,
    }
}

#[test]
fn the_state_reads_back() {
    for note in [None, Some("fsync: no".to_owned())] {
        for next_start in [NextStart::Recover, NextStart::Discard, NextStart::Install] {
            for level in [Level::FIRST, Level::NEWEST] {
                let state = MemberState { fault_note: note.clone(), next_start, level, ..sample() };
                assert_eq!(MemberState::decode(&state.encode(9)), Ok((state, 9)));
            }
        }
    }
}

#[test]
fn a_flipped_bit_or_a_cut_anywhere_is_noticed() {
    let good = sample().encode(9);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(MemberState::decode(&bad).is_err(), "byte {at}");
        assert!(MemberState::decode(&good[..at]).is_err(), "cut to {at}");
    }
}

#[test]
fn a_long_fault_note_is_cut_at_a_character() {
    let state = MemberState { fault_note: Some("é".repeat(2000)), ..sample() };
    let (read, _) = MemberState::decode(&state.encode(1)).unwrap();
    assert_eq!(read.fault_note.unwrap().len(), FAULT_NOTE_BYTES_MAX);
}

#[test]
fn two_checkpoints_are_kept() {
    let mut state = sample();
    let mut next = state.checkpoints[1];
    next.at.id.sn = Sn(30);
    state.add_checkpoint(next);
    state.add_checkpoint(next);
    let kept: Vec<u64> = state.checkpoints.iter().map(|checkpoint| checkpoint.at.id.sn.0).collect();
    assert_eq!(kept, [20, 30]);
}

#[test]
fn at_the_first_level_the_state_is_written_as_a_release_without_levels_reads_it() {
    let first = MemberState { level: Level::FIRST, ..sample() };
    assert_eq!(u32_at(&first.encode(1), 12), 3);
    assert_eq!(u32_at(&sample().encode(1), 12), 4, "such a release refuses it");
}

#[test]
fn a_level_of_a_later_release_is_named_with_that_release() {
    let mut bytes = sample().encode(1);
    let at = bytes.len() - (2 + 1 + "0.2.0".len());
    bytes[at] = 9;
    bytes[at + 3..].copy_from_slice(b"4.1.0");
    let crc = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    let unknown = MemberState::unknown_level(&bytes).unwrap();
    assert_eq!((unknown.level, &*unknown.release), (Level(9), "4.1.0"));
    assert!(MemberState::decode(&bytes).unwrap_err().contains("Start release 4.1.0"));
    assert_eq!(MemberState::unknown_version(&bytes), None);
}
