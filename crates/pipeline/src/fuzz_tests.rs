//! Random packets, acknowledgements and answers: whatever comes, the machines answer and keep their promises.

use crate::{
    Ack, Checksum, Duty, Range, Receiver, Reply, Responder, Status, Window,
    recovery::{BlockRecovery, Failure, Outcome, RecoveryOrder},
};
use base::{Block, BlockId, Candidate, GenerationStamp, PacketHeader, ReplicaState};
use proptest::prelude::*;

fn any_header() -> impl Strategy<Value = PacketHeader> {
    let small = prop_oneof![0..4i64, -3..3i64, any::<i64>()];
    let offset = prop_oneof![0..3000i64, any::<i64>()];
    let length = prop_oneof![0..2000i32, any::<i32>()];
    (small, offset, length, any::<bool>(), any::<bool>()).prop_map(
        |(seqno, offset_in_block, data_length, last_in_block, sync)| PacketHeader {
            offset_in_block,
            seqno,
            last_in_block,
            data_length,
            sync,
        },
    )
}

fn any_ack() -> impl Strategy<Value = Ack> {
    (-3..5i64, prop::collection::vec(any::<u32>().prop_map(Reply), 0..4)).prop_map(|(seqno, replies)| Ack {
        seqno,
        replies,
        downstream_ns: 0,
    })
}

fn any_block() -> impl Strategy<Value = Block> {
    let length = prop_oneof![0..5u64, any::<u64>()];
    let stamp = prop_oneof![0..5u64, any::<u64>()];
    (length, stamp).prop_map(|(length, stamp)| Block {
        id: BlockId(1),
        generation_stamp: GenerationStamp(stamp),
        length,
    })
}

fn any_answer() -> impl Strategy<Value = Result<Option<Candidate>, Failure>> {
    let state = (0..5u64).prop_map(|number| ReplicaState::from_number(number).expect("one of five"));
    prop_oneof![
        8 => (any_block(), state).prop_map(|(block, state)| Ok(Some(Candidate { block, state }))),
        2 => Just(Ok(None)),
        2 => Just(Err(Failure::Unknown(String::new()))),
    ]
}

proptest! {
    #[test]
    fn a_recovery_asks_nobody_for_bytes_that_it_does_not_have(
        block in any_block(),
        answers in prop::collection::vec(any_answer(), 0..5),
        truncation in prop_oneof![Just(None), any::<u64>().prop_map(Some)],
    ) {
        let servers = (0..answers.len()).map(|server| server.to_string().into()).collect();
        let order = RecoveryOrder { block, stamp: GenerationStamp(9), truncation, target: BlockId(1), servers };
        let mut recovery = BlockRecovery::new(order);
        while let Some(server) = recovery.ask() {
            recovery.answered(server, answers[server].clone());
        }
        match recovery.decide() {
            Ok(Outcome::Agreed(agreement)) => {
                let participants = agreement.participants();
                prop_assert!(!participants.is_empty());
                let has_all = |length: u64| length >= agreement.length();
                prop_assert!(truncation.is_some() || participants.iter().all(|it| has_all(it.replica.length)));
            }
            Ok(Outcome::Delete) => {
                let has_bytes = |answer: &Result<Option<Candidate>, Failure>| {
                    matches!(answer, Ok(Some(found)) if found.block.length > 0)
                };
                prop_assert!(!answers.iter().any(has_bytes));
                prop_assert!(block.length == 0 && truncation.is_none());
            }
            Err(_) => {}
        }
    }

    #[test]
    fn a_receiver_never_grows_past_its_limit_or_over_a_gap(
        packets in prop::collection::vec((any_header(), 0..20usize), 0..30),
    ) {
        let mut receiver = Receiver::new(Checksum::CRC32C_512, 700, 2500, true);
        for (header, sums_bytes) in packets {
            let before = receiver.end();
            match receiver.on_packet(&header, sums_bytes) {
                Ok(Duty::Write { offset, .. }) => prop_assert!(offset <= before),
                Ok(_) => prop_assert_eq!(receiver.end(), before),
                Err(_) => prop_assert_eq!(receiver.end(), before),
            }
            prop_assert!(receiver.end() <= 2500);
        }
    }

    #[test]
    fn a_range_yields_each_of_its_bytes_once(
        packets in prop::collection::vec((any_header(), 0..20usize), 0..30),
        start in 512..1024u64,
        length in 0..5000u64,
    ) {
        let mut range = Range::new(Checksum::CRC32C_512, start..start + length, 512).unwrap();
        for (header, sums_bytes) in packets {
            let before = range.position();
            if let Ok(piece) = range.on_packet(&header, sums_bytes) {
                prop_assert!(piece.end <= header.data_length as usize);
                prop_assert_eq!(range.position() - before, piece.len() as u64);
            }
        }
    }

    #[test]
    fn a_responder_acknowledges_in_order_what_is_done_everywhere(
        steps in prop::collection::vec((0..4u8, any_ack()), 0..60),
    ) {
        let mut responder = Responder::new(true);
        let (mut received, mut done, mut answered) = (0, 0, 0);
        for (step, ack) in steps {
            match step {
                0 => {
                    responder.on_received(received, 512 * received as u64);
                    received += 1;
                }
                1 if done < received => {
                    responder.on_done(Status::Success);
                    done += 1;
                }
                2 => {
                    let _ = responder.on_downstream(ack);
                }
                _ => {}
            }
            while let Some(ack) = responder.poll() {
                prop_assert_eq!(ack.seqno, answered);
                answered += 1;
                prop_assert!(answered <= done);
            }
        }
    }

    #[test]
    fn a_window_never_panics_and_never_forgets(acks in prop::collection::vec(any_ack(), 0..30)) {
        let mut window = Window::new(80, 0);
        for seqno in 0..4 {
            let header = PacketHeader { seqno, offset_in_block: 100 * seqno, data_length: 100, ..Default::default() };
            window.on_sent(header, ());
        }
        let mut left = 4;
        for ack in acks {
            if let Ok(Some(())) = window.on_ack(&ack, 2) {
                left -= 1;
            }
            prop_assert_eq!(window.under_way().count(), left);
            prop_assert_eq!(window.acknowledged(), 100 * (4 - left as u64));
        }
    }
}
