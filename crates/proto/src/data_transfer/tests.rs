use super::*;
use crate::hdfs::{BlockOpResponseProto, OpReadBlockProto, PacketHeaderProto, PipelineAckProto, Status};
use base::PacketHeader;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

fn read_op() -> OpReadBlockProto {
    let mut op = OpReadBlockProto { offset: 7, len: 9, ..Default::default() };
    op.header.client_name = "me".into();
    op.header.base_header.block.pool_id = "BP-1".into();
    op
}

#[test]
fn an_operation_survives_the_wire_in_any_pieces() {
    let mut bytes = BytesMut::new();
    op::encode(Opcode::ReadBlock, &read_op(), &mut bytes);
    assert_eq!(bytes[..3], [0, 28, 81]);
    let mut received = BytesMut::new();
    for (index, byte) in bytes.iter().enumerate() {
        assert_eq!(op::take(&mut received), Ok(None), "after {index} bytes");
        received.put_u8(*byte);
    }
    received.put_slice(b"next");
    let op = op::take(&mut received).unwrap().unwrap();
    assert_eq!(op.code, Opcode::ReadBlock);
    assert_eq!(delimited::decode::<OpReadBlockProto>(op.message), Ok(read_op()));
    assert_eq!(&received[..], b"next");
}

#[test]
fn other_versions_and_opcodes_are_refused_by_name() {
    assert_eq!(op::frame(&[0, 27]), Err(Error::Version(27)));
    assert_eq!(op::frame(b"GET / HTTP"), Err(Error::Version(0x4745)));
    assert_eq!(op::frame(&[0, 28, 0]), Err(Error::Opcode(0)));
    assert_eq!(op::frame(&[0, 28, 255]), Err(Error::Opcode(255)));
    assert_eq!(op::frame(&[0, 28, 82]), Err(Error::Opcode(82)));
    assert_eq!(op::frame(&[0]), Ok(None));
}

#[test]
fn every_opcode_has_its_own_number() {
    let known = (0..=255).filter_map(|code| Some((code, Opcode::from_code(code)?))).collect::<Vec<_>>();
    assert_eq!(known.len(), 11);
    known.iter().for_each(|(code, op)| assert_eq!(op.code(), *code));
}

#[test]
fn a_header_over_the_limit_is_refused_before_it_is_received() {
    // 256 KiB + 1
    assert_eq!(
        op::frame(&[0, 28, 80, 0x81, 0x80, 0x10]),
        Err(Error::MessageTooLong { length: 256 * 1024 + 1 })
    );
    assert_eq!(op::frame(&[0, 28, 80, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Err(Error::Length));
}

#[test]
fn a_message_without_a_required_field_is_malformed() {
    let response = delimited::decode::<BlockOpResponseProto>(Bytes::from_static(b"\x2a\x01x"));
    assert!(matches!(response, Err(Error::Malformed { .. })), "{response:?}");
    let truncated = delimited::decode::<PipelineAckProto>(Bytes::from_static(b"\x08"));
    assert!(matches!(truncated, Err(Error::Malformed { .. })), "{truncated:?}");
}

#[test]
fn acknowledgements_survive_the_wire() {
    let ack = PipelineAckProto {
        seqno: -2,
        reply: vec![Status::Success as i32, Status::ErrorChecksum as i32],
        flag: vec![0, 2],
        ..Default::default()
    };
    let bytes = delimited::encoded(&ack);
    let range = delimited::frame(&bytes).unwrap().unwrap();
    assert_eq!(range.end, bytes.len());
    assert_eq!(delimited::decode::<PipelineAckProto>(bytes.slice(range)), Ok(ack));
}

fn some_header() -> PacketHeader {
    PacketHeader { offset_in_block: 1 << 40, seqno: 17, last_in_block: false, data_length: 1000, sync: true }
}

fn encoded(header: &PacketHeader, checksum_bytes: usize) -> BytesMut {
    let mut bytes = BytesMut::new();
    packet::encode_prefix(header, checksum_bytes, &mut bytes);
    assert_eq!(bytes.len(), packet::prefix_bytes(header));
    bytes
}

#[test]
fn a_packet_header_is_the_protobuf_message_that_hadoop_reads() {
    for sync in [true, false] {
        let header = PacketHeader { sync, ..some_header() };
        let bytes = encoded(&header, 8);
        let decoded = PacketHeaderProto::decode(&bytes[packet::LENGTHS_BYTES..]).unwrap();
        assert_eq!(decoded.offset_in_block, header.offset_in_block);
        assert_eq!(decoded.seqno, header.seqno);
        assert_eq!(decoded.last_packet_in_block, header.last_in_block);
        assert_eq!(decoded.data_len, header.data_length);
        assert_eq!(decoded.sync_block(), sync);

        let lengths = packet::Lengths::decode(*bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(lengths.body_bytes, 1008);
        assert_eq!(packet::decode_header(lengths, &bytes[packet::LENGTHS_BYTES..]), Ok(header));
    }
}

#[test]
fn fields_in_another_order_and_an_explicit_no_are_read_too() {
    let bytes = b"\x28\x00\x25\x04\x00\x00\x00\x18\x01\x11\xff\xff\xff\xff\xff\xff\xff\xff\
        \x09\x00\x02\x00\x00\x00\x00\x00\x00";
    let lengths = packet::Lengths { header_bytes: bytes.len(), body_bytes: 4 };
    let header = packet::decode_header(lengths, bytes).unwrap();
    assert!(header.is_heartbeat() && header.last_in_block && !header.sync);
    assert_eq!((header.offset_in_block, header.data_length), (512, 4));
}

#[test]
fn a_packet_is_taken_when_all_of_it_is_there() {
    let header = PacketHeader { data_length: 5, ..some_header() };
    let mut whole = encoded(&header, 4);
    whole.put_slice(b"sumsbytes");
    let mut received = BytesMut::new();
    for byte in &whole {
        let packet::Taken::More(needed) = packet::take(&mut received).unwrap() else { panic!("too early") };
        assert!((1..=whole.len() - received.len()).contains(&needed));
        received.put_u8(*byte);
    }
    received.put_u8(9);
    let packet::Taken::Packet(packet) = packet::take(&mut received).unwrap() else { panic!("complete") };
    assert_eq!(packet.header, header);
    assert_eq!((&packet.sums[..], &packet.data[..]), (&b"sums"[..], &b"bytes"[..]));
    assert_eq!((&packet.whole[..], received.len()), (&whole[..], 1));
}

fn lengths(payload: i32, header: i16) -> Result<packet::Lengths, Error> {
    let mut bytes = [0; 6];
    bytes[..4].copy_from_slice(&payload.to_be_bytes());
    bytes[4..].copy_from_slice(&header.to_be_bytes());
    packet::Lengths::decode(bytes)
}

#[test]
fn packets_with_impossible_lengths_are_refused() {
    for (payload, header) in [
        (3, 25),
        (0, 25),
        (-1, 25),
        (i32::MIN, 25),
        (i32::MAX, 25),
        (4, -1),
        (4, i16::MIN),
        (16 * 1024 * 1024, 1),
    ] {
        assert!(lengths(payload, header).is_err(), "{payload} {header}");
    }
    assert!(lengths(16 * 1024 * 1024 - 25, 25).is_ok());
}

#[test]
fn data_lengths_that_do_not_fit_the_payload_are_refused() {
    for data_length in [-1, i32::MIN, i32::MAX, 1009] {
        let bytes = encoded(&PacketHeader { data_length: 0, ..some_header() }, 1008);
        let lengths = packet::Lengths::decode(*bytes.first_chunk().unwrap()).unwrap();
        let mut header = bytes[packet::LENGTHS_BYTES..].to_vec();
        header[21..25].copy_from_slice(&data_length.to_le_bytes());
        assert!(packet::decode_header(lengths, &header).is_err(), "{data_length}");
    }
}

#[test]
fn headers_cut_short_or_lacking_a_field_are_refused() {
    let bytes = encoded(&some_header(), 0);
    let header = &bytes[packet::LENGTHS_BYTES..];
    for end in 0..header.len() - 2 {
        let lengths = packet::Lengths { header_bytes: end, body_bytes: 1000 };
        assert!(packet::decode_header(lengths, &header[..end]).is_err(), "{end} bytes");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes: Vec<u8>) {
        let _ = op::take(&mut BytesMut::from(&bytes[..]));
        let _ = op::take(&mut BytesMut::from(&[&[0, 28, 80], &bytes[..]].concat()[..]));
        let _ = delimited::frame(&bytes);
        let _ = packet::take(&mut BytesMut::from(&bytes[..]));
        let _ = delimited::decode::<BlockOpResponseProto>(Bytes::from(bytes.clone()));
        let lengths = packet::Lengths { header_bytes: bytes.len(), body_bytes: 100 };
        let _ = packet::decode_header(lengths, &bytes);
        if let Some(bytes) = bytes.first_chunk() {
            let _ = packet::Lengths::decode(*bytes);
        }
    }

    #[test]
    fn packet_headers_round_trip(offset: i64, seqno: i64, last: bool, data_length in 0..1 << 20, sync: bool) {
        let header = PacketHeader { offset_in_block: offset, seqno, last_in_block: last, data_length, sync };
        let bytes = encoded(&header, 4);
        let lengths = packet::Lengths::decode(*bytes.first_chunk().unwrap()).unwrap();
        proptest::prop_assert_eq!(packet::decode_header(lengths, &bytes[6..]), Ok(header));
    }
}
