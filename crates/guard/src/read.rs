//! A mebibyte of a block, on its way from the bytes of a replica to those of its reader.

use base::PacketHeader;
use bytes::BytesMut;
use pipeline::{Checksum, Range};
use proto::data_transfer::packet::{Taken, encode_prefix, take};

pub const BYTES: usize = 1 << 20;
/// Data in a packet, as servers send it.
const PACKET_BYTES: usize = 64 << 10;

/// The bytes of a replica, and their checksums.
pub struct Block {
    checksum: Checksum,
    data: Vec<u8>,
    sums: Vec<u8>,
    /// The packets, one behind the other, as they go to the socket.
    sent: BytesMut,
}

impl Block {
    pub fn to_read() -> Self {
        let checksum = Checksum::new(2, 512).expect("CRC-32C of 512 bytes");
        let data: Vec<u8> = (0..BYTES).map(|at| ((at * 31) >> 3) as u8).collect();
        let mut sums = Vec::new();
        checksum.compute(&data, &mut sums);
        Self { checksum, data, sums, sent: BytesMut::with_capacity(2 * BYTES) }
    }

    /// Checks the bytes against their sums and sends them, as a server does; takes them and checks them again, as a reader does. Returns how
    /// many bytes the reader got.
    pub fn read(&mut self) -> usize {
        let sums_of_packet = self.checksum.sums_bytes(PACKET_BYTES);
        let pieces = self.data.chunks(PACKET_BYTES).zip(self.sums.chunks(sums_of_packet));
        for (seqno, (data, sums)) in pieces.enumerate() {
            self.checksum.verify(data, sums).expect("good bytes");
            let header = PacketHeader {
                offset_in_block: (seqno * PACKET_BYTES) as i64,
                seqno: seqno as i64,
                last_in_block: false,
                data_length: data.len() as i32,
                sync: false,
            };
            encode_prefix(&header, sums.len(), &mut self.sent);
            self.sent.extend_from_slice(sums);
            self.sent.extend_from_slice(data);
        }
        let mut range =
            Range::new(self.checksum, 0..BYTES as u64, 0).expect("a range that begins at a chunk");
        let mut got = 0;
        while !range.is_complete() {
            let Taken::Packet(packet) = take(&mut self.sent).expect("a packet") else {
                unreachable!("all packets were sent");
            };
            let wanted = range.on_packet(&packet.header, packet.sums.len()).expect("the next packet");
            self.checksum.verify(&packet.data, &packet.sums).expect("good bytes");
            got += packet.data.slice(wanted).len();
        }
        got
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_reach_the_reader() {
        assert_eq!(Block::to_read().read(), BYTES);
    }
}
