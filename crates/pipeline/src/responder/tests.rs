use super::*;

fn ack(seqno: i64, statuses: &[Status]) -> Ack {
    Ack { seqno, replies: statuses.iter().map(|status| Reply::new(*status)).collect(), downstream_ns: 0 }
}

use Status::{Error, ErrorChecksum, Restart, Success};

#[test]
fn the_last_server_acknowledges_when_it_is_done_itself() {
    let mut responder = Responder::new(false);
    responder.on_received(0, 512);
    responder.on_received(1, 1024);
    assert_eq!(responder.poll(), None);
    responder.on_done(Success);
    assert_eq!(responder.poll(), Some(ack(0, &[Success])));
    assert_eq!(responder.acknowledged(), 512);
    assert_eq!(responder.poll(), None);
    responder.on_done(Success);
    assert_eq!(responder.poll(), Some(ack(1, &[Success])));
    assert!(responder.is_idle());
}

#[test]
fn a_server_in_the_middle_waits_for_itself_and_those_behind_in_either_order() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    responder.on_received(1, 1024);
    assert_eq!(responder.on_downstream(ack(0, &[Success, Success])), Ok(None));
    assert_eq!(responder.poll(), None);
    responder.on_done(Success);
    responder.on_done(Success);
    assert_eq!(responder.poll(), Some(ack(0, &[Success, Success, Success])));
    assert_eq!(responder.poll(), None);
    assert_eq!(responder.on_downstream(ack(1, &[Success, Error])), Ok(None));
    assert_eq!(responder.poll(), Some(ack(1, &[Success, Success, Error])));
    assert_eq!(responder.acknowledged(), 512, "a failed ack acknowledges nothing");
}

#[test]
fn load_bits_of_others_are_relayed_as_they_are() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    responder.on_done(Success);
    let loaded = Ack { seqno: 0, replies: vec![Reply(0b1_0110_0000)], downstream_ns: 5 };
    responder.on_downstream(loaded).unwrap();
    let relayed = responder.poll().unwrap();
    assert_eq!(relayed.replies, [Reply(0), Reply(0b1_0110_0000)]);
    assert!(relayed.is_success());
}

#[test]
fn a_lost_mirror_is_told_once_and_nothing_after_it_is_acknowledged() {
    let mut responder = Responder::new(true);
    responder.on_received(7, 512);
    responder.on_received(8, 1024);
    responder.on_done(Success);
    responder.on_downstream(ack(7, &[Success])).unwrap();
    assert_eq!(responder.on_mirror_lost(), Some(ack(7, &[Success, Error])));
    assert_eq!(responder.on_mirror_lost(), None);
    assert_eq!(responder.poll(), Some(ack(7, &[Success, Success])), "what was acknowledged stays so");
    responder.on_done(Success);
    assert_eq!(responder.poll(), None);
}

#[test]
fn a_mirror_that_finds_our_data_corrupt_makes_us_the_culprit() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    assert_eq!(responder.on_downstream(ack(0, &[ErrorChecksum])), Err(ResponderError::CorruptHere));
}

#[test]
fn our_own_checksum_error_waits_for_nobody() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    responder.on_done(ErrorChecksum);
    assert_eq!(responder.poll(), Some(ack(0, &[ErrorChecksum])));
}

#[test]
fn news_without_a_packet_goes_up_at_once() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    let restart = responder.on_downstream(ack(Ack::NO_PACKET, &[Restart])).unwrap().unwrap();
    assert_eq!(restart, ack(Ack::NO_PACKET, &[Success, Restart]));
    assert!(restart.is_out_of_band());
    assert_eq!(restart.failed(), Some((1, Restart)));
}

#[test]
fn acknowledgements_out_of_order_or_empty_end_the_connection() {
    let mut responder = Responder::new(true);
    responder.on_received(0, 512);
    let expected = Some(0);
    assert_eq!(
        responder.on_downstream(ack(1, &[Success])),
        Err(ResponderError::OutOfOrder { expected, found: 1 })
    );
    assert_eq!(responder.on_downstream(ack(0, &[])), Err(ResponderError::NoReply(0)));
    responder.on_downstream(ack(0, &[Success])).unwrap();
    assert_eq!(
        responder.on_downstream(ack(0, &[Success])),
        Err(ResponderError::OutOfOrder { expected: None, found: 0 })
    );
}

#[test]
fn a_mirror_owes_nothing_once_it_has_acknowledged_all() {
    let mut responder = Responder::new(true);
    assert!(!responder.awaits_mirror());
    responder.on_received(0, 512);
    assert!(responder.awaits_mirror());
    responder.on_downstream(ack(0, &[Success])).unwrap();
    assert!(!responder.awaits_mirror() && !responder.is_idle(), "only this server's own disk is not done");
}
