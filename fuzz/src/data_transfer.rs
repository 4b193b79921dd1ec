//! The bytes that arrive on a data server's transfer port, and the answers to them.

use crate::{Target, messages};
use base::PacketHeader;
use bytes::{Bytes, BytesMut};
use proto::{
    data_transfer::{Opcode, delimited, op, packet},
    hdfs::{BlockOpResponseProto, PipelineAckProto},
};

pub fn targets() -> [Target; 4] {
    [
        Target { name: "data_transfer_op", samples: ops, check: check_op },
        Target { name: "data_transfer_packet", samples: packets, check: check_packet },
        Target { name: "data_transfer_answer", samples: answers, check: check_answer },
        Target { name: "data_transfer_ack", samples: acks, check: check_ack },
    ]
}

const OPS: [(Opcode, &str); 6] = [
    (Opcode::WriteBlock, "hadoop.hdfs.OpWriteBlockProto"),
    (Opcode::ReadBlock, "hadoop.hdfs.OpReadBlockProto"),
    (Opcode::TransferBlock, "hadoop.hdfs.OpTransferBlockProto"),
    (Opcode::BlockChecksum, "hadoop.hdfs.OpBlockChecksumProto"),
    (Opcode::CopyBlock, "hadoop.hdfs.OpCopyBlockProto"),
    (Opcode::ReplaceBlock, "hadoop.hdfs.OpReplaceBlockProto"),
];

fn ops() -> Vec<Vec<u8>> {
    OPS.iter()
        .map(|(code, name)| {
            let message = messages::sample(name);
            let mut out = vec![0, 28, code.code()];
            proto::wire::put_varint(&mut out, message.len() as u64);
            out.extend_from_slice(&message);
            out
        })
        .collect()
}

fn check_op(bytes: &[u8]) -> bool {
    let mut buffer = BytesMut::from(bytes);
    let Ok(Some(op)) = op::take(&mut buffer) else { return false };
    let Some((_, name)) = OPS.iter().find(|(code, _)| *code == op.code) else { return false };
    let is_whole = proto::required::check(name, &op.message).is_ok();
    let decoded = match op.code {
        Opcode::WriteBlock => decodes::<proto::hdfs::OpWriteBlockProto>(op.message),
        Opcode::ReadBlock => decodes::<proto::hdfs::OpReadBlockProto>(op.message),
        Opcode::TransferBlock => decodes::<proto::hdfs::OpTransferBlockProto>(op.message),
        Opcode::BlockChecksum => decodes::<proto::hdfs::OpBlockChecksumProto>(op.message),
        Opcode::CopyBlock => decodes::<proto::hdfs::OpCopyBlockProto>(op.message),
        _ => decodes::<proto::hdfs::OpReplaceBlockProto>(op.message),
    };
    assert!(is_whole || !decoded, "a message that is not whole is refused");
    decoded
}

fn decodes<M: prost::Message + Default + prost::Name>(bytes: Bytes) -> bool {
    proto::decode::<M>(bytes).is_ok()
}

fn packets() -> Vec<Vec<u8>> {
    [(0, false), (1000, true)]
        .map(|(data_length, sync)| {
            let header = PacketHeader {
                offset_in_block: 512,
                seqno: 7,
                last_in_block: data_length == 0,
                data_length,
                sync,
            };
            let mut out = BytesMut::new();
            let sums = (data_length as usize).div_ceil(512) * 4;
            packet::encode_prefix(&header, sums, &mut out);
            out.resize(out.len() + sums + data_length as usize, 3);
            out.to_vec()
        })
        .to_vec()
}

fn check_packet(bytes: &[u8]) -> bool {
    let mut buffer = BytesMut::from(bytes);
    match packet::take(&mut buffer) {
        Ok(packet::Taken::Packet(packet)) => {
            assert_eq!(packet.data.len(), packet.header.data_length as usize);
            true
        }
        Ok(packet::Taken::More(more)) => {
            assert!(more <= packet::PACKET_BYTES_MAX + 6, "no more is asked for than a packet may have");
            false
        }
        Err(_) => false,
    }
}

fn delimited_sample(name: &str) -> Vec<Vec<u8>> {
    let message = messages::sample(name);
    let mut out = Vec::new();
    proto::wire::put_varint(&mut out, message.len() as u64);
    out.extend_from_slice(&message);
    vec![out]
}

fn answers() -> Vec<Vec<u8>> {
    delimited_sample("hadoop.hdfs.BlockOpResponseProto")
}

fn check_answer(bytes: &[u8]) -> bool {
    matches!(delimited::take::<BlockOpResponseProto>(&mut BytesMut::from(bytes)), Ok(Some(_)))
}

fn acks() -> Vec<Vec<u8>> {
    delimited_sample("hadoop.hdfs.PipelineAckProto")
}

fn check_ack(bytes: &[u8]) -> bool {
    matches!(delimited::take::<PipelineAckProto>(&mut BytesMut::from(bytes)), Ok(Some(_)))
}
