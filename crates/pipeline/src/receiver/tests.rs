use super::*;

fn receiver() -> Receiver {
    Receiver::new(Checksum::CRC32C_512, 0, 1 << 20, true)
}

fn data(seqno: i64, offset_in_block: i64, data_length: i32) -> PacketHeader {
    PacketHeader { seqno, offset_in_block, data_length, ..Default::default() }
}

fn last(seqno: i64, offset_in_block: i64) -> PacketHeader {
    PacketHeader { last_in_block: true, ..data(seqno, offset_in_block, 0) }
}

fn write(offset: u64) -> Result<Duty, PacketError> {
    Ok(Duty::Write { offset, verify: true, compute: false, sync: false })
}

#[test]
fn a_block_of_two_packets_with_a_heartbeat_between() {
    let mut receiver = receiver();
    assert_eq!(receiver.on_packet(&data(0, 0, 1024), 8), write(0));
    assert_eq!(receiver.on_packet(&data(-1, 0, 0), 0), Ok(Duty::Heartbeat));
    assert_eq!(receiver.on_packet(&data(1, 1024, 100), 4), write(1024));
    assert_eq!(receiver.on_packet(&last(2, 1124), 0), Ok(Duty::End { sync: false }));
    assert_eq!((receiver.end(), receiver.has_ended()), (1124, true));
    assert_eq!(receiver.on_packet(&data(3, 1124, 1), 4), Err(PacketError::AfterLast));
}

#[test]
fn a_resent_partial_chunk_is_accepted_and_a_gap_is_not() {
    let mut receiver = receiver();
    assert_eq!(receiver.on_packet(&data(0, 0, 700), 8), write(0));
    assert_eq!(receiver.on_packet(&data(1, 512, 512), 4), write(512));
    assert_eq!(
        receiver.on_packet(&data(2, 1536, 512), 4),
        Err(PacketError::Offset { seqno: 2, expected: 1024, found: 1536 })
    );
}

#[test]
fn the_first_number_may_be_any_after_a_recovery_and_then_they_only_rise() {
    let mut receiver = Receiver::new(Checksum::CRC32C_512, 1024, 1 << 20, true);
    assert_eq!(receiver.on_packet(&data(17, 512, 512), 4), write(512));
    assert_eq!(
        receiver.on_packet(&data(17, 1024, 512), 4),
        Err(PacketError::Sequence { expected: 18, found: 17 })
    );
    // Hadoop's client throws a packet away that a second hflush has found to be sent already.
    assert_eq!(receiver.on_packet(&data(19, 1024, 512), 4), write(1024));
    assert_eq!(
        receiver.on_packet(&data(18, 1536, 512), 4),
        Err(PacketError::Sequence { expected: 20, found: 18 })
    );
}

#[test]
fn offsets_and_lengths_out_of_bounds_are_refused() {
    let mut receiver = receiver();
    assert!(matches!(receiver.on_packet(&data(0, -1, 1), 4), Err(PacketError::Offset { .. })));
    assert!(matches!(receiver.on_packet(&data(0, i64::MAX, 1), 4), Err(PacketError::Offset { .. })));
    assert_eq!(receiver.on_packet(&data(0, 0, -1), 4), Err(PacketError::DataLength(-1)));
    assert!(matches!(receiver.on_packet(&data(0, 0, (1 << 20) + 1), 8196), Err(PacketError::PastEnd { .. })));
    assert!(matches!(receiver.on_packet(&data(-7, 0, 1), 4), Err(PacketError::Sequence { .. })));
    assert!(matches!(receiver.on_packet(&data(i64::MAX, 0, 1), 4), Err(PacketError::Sequence { .. })));
}

#[test]
fn as_many_checksums_as_chunks_or_none_at_all() {
    let mut receiver = receiver();
    assert_eq!(
        receiver.on_packet(&data(0, 0, 513), 4),
        Err(PacketError::SumsLength { found: 4, expected: 8, data_length: 513 })
    );
    assert_eq!(
        receiver.on_packet(&data(0, 0, 513), 0),
        Ok(Duty::Write { offset: 0, verify: false, compute: true, sync: false })
    );
}

#[test]
fn a_packet_within_a_chunk_stays_within_it_and_is_always_verified() {
    let mut receiver = Receiver::new(Checksum::CRC32C_512, 500, 1 << 20, false);
    assert!(matches!(receiver.on_packet(&data(0, 500, 13), 4), Err(PacketError::Unaligned { .. })));
    assert_eq!(receiver.on_packet(&data(0, 500, 12), 4), write(500));
    assert_eq!(
        receiver.on_packet(&data(1, 512, 12), 4),
        Ok(Duty::Write { offset: 512, verify: false, compute: false, sync: false })
    );
}

#[test]
fn the_last_packet_is_empty_and_at_the_end() {
    let mut receiver = receiver();
    let with_data = PacketHeader { last_in_block: true, ..data(0, 0, 5) };
    assert_eq!(receiver.on_packet(&with_data, 4), Err(PacketError::LastWithData(5)));
    assert_eq!(receiver.on_packet(&data(0, 0, 5), 4), write(0));
    assert!(matches!(receiver.on_packet(&last(1, 4), 0), Err(PacketError::Offset { .. })));
    assert!(!receiver.has_ended());
}
