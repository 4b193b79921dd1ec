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
    }
}

#[test]
fn the_state_reads_back() {
    for note in [None, Some("fsync: no".to_owned())] {
        for next_start in [NextStart::Recover, NextStart::Discard, NextStart::Install] {
            let state = MemberState { fault_note: note.clone(), next_start, ..sample() };
            assert_eq!(MemberState::decode(&state.encode(9)), Ok((state, 9)));
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
