//! The writer's side: bytes become packets.
//!
//! A packet is laid out once, in the buffer that goes to the socket:
//!
//! ```text
//! | room for lengths and header | checksums | data |
//! ```
//!
//! Data is copied in behind room for as many checksums as a full packet has; a packet that ends early has
//! fewer, and they move up against the data.

use crate::Checksum;
use base::PacketHeader;
use bytes::{Buf, BytesMut};

#[derive(Debug)]
pub struct Packer {
    checksum: Checksum,
    /// Bytes left free for lengths and header.
    room: usize,
    chunks_max: usize,
    /// The offset of the next byte in the block.
    position: u64,
    /// The packet being filled; data begins at `data_start`.
    buffer: BytesMut,
    /// Data bytes that this packet may hold: fewer than usual in one that begins within a chunk.
    capacity: usize,
}

/// A packet laid out but for its header.
#[derive(Debug)]
pub struct Packed {
    /// Everything but the sequence number is set.
    pub header: PacketHeader,
    /// `room` bytes of nothing, then checksums and data.
    pub buffer: BytesMut,
    pub sums_bytes: usize,
}

impl Packer {
    /// Packets of at most `packet_bytes`, with `room` for lengths and header, for data from `position` on.
    pub fn new(checksum: Checksum, packet_bytes: usize, room: usize, position: u64) -> Self {
        let chunk = checksum.bytes_per_checksum() as usize + checksum.size();
        let chunks_max = (packet_bytes.saturating_sub(room) / chunk).max(1);
        Self { checksum, room, chunks_max, position, buffer: BytesMut::new(), capacity: 0 }
    }

    /// The offset of the next byte in the block.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn data_start(&self) -> usize {
        self.room + self.chunks_max * self.checksum.size()
    }

    /// Takes bytes off the front of `data`. Returns a packet when one is full; call again while `data` lasts.
    pub fn push(&mut self, data: &mut &[u8]) -> Option<Packed> {
        if data.is_empty() {
            return None;
        }
        let data_start = self.data_start();
        if self.buffer.is_empty() {
            self.begin();
        }
        let left = self.capacity - (self.buffer.len() - data_start);
        let count = left.min(data.len());
        self.buffer.extend_from_slice(&data[..count]);
        data.advance(count);
        self.position += count as u64;
        if count == left { self.finish() } else { None }
    }

    fn begin(&mut self) {
        let bytes_per_checksum = self.checksum.bytes_per_checksum() as usize;
        let within = (self.position % bytes_per_checksum as u64) as usize;
        // A packet that begins within a chunk ends with that chunk, so that checksums keep to the chunks of the
        // block.
        self.capacity =
            if within > 0 { bytes_per_checksum - within } else { self.chunks_max * bytes_per_checksum };
        let data_start = self.data_start();
        self.buffer = BytesMut::with_capacity(data_start + self.capacity);
        self.buffer.resize(data_start, 0);
    }

    /// Ends the packet being filled, full or not; nothing when there is none.
    pub fn finish(&mut self) -> Option<Packed> {
        if self.buffer.is_empty() {
            return None;
        }
        let data_start = self.data_start();
        let data_length = self.buffer.len() - data_start;
        let sums_bytes = self.checksum.sums_bytes(data_length);
        let mut buffer = std::mem::take(&mut self.buffer);
        let (front, data) = buffer.split_at_mut(data_start);
        self.checksum.compute(data, &mut front[data_start - sums_bytes..]);
        buffer.advance(data_start - sums_bytes - self.room);
        let header = PacketHeader {
            offset_in_block: (self.position - data_length as u64) as i64,
            data_length: data_length as i32,
            ..Default::default()
        };
        Some(Packed { header, buffer, sums_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(packer: &mut Packer, mut data: &[u8]) -> Vec<Packed> {
        std::iter::from_fn(|| packer.push(&mut data)).collect()
    }

    fn check(packed: &Packed, offset: i64, data: &[u8]) {
        assert_eq!((packed.header.offset_in_block, packed.header.data_length), (offset, data.len() as i32));
        let sums = &packed.buffer[33..33 + packed.sums_bytes];
        assert_eq!(&packed.buffer[33 + packed.sums_bytes..], data);
        Checksum::CRC32C_512.verify(data, sums).unwrap();
    }

    #[test]
    fn full_packets_come_out_as_they_fill() {
        let data = (0..=255).cycle().take(4000).collect::<Vec<u8>>();
        // Room for three chunks and not for four.
        let mut packer = Packer::new(Checksum::CRC32C_512, 33 + 4 * 516 - 1, 33, 0);
        let packets = pack(&mut packer, &data);
        assert_eq!(packets.len(), 2);
        check(&packets[0], 0, &data[..1536]);
        check(&packets[1], 1536, &data[1536..3072]);
        check(&packer.finish().unwrap(), 3072, &data[3072..]);
        assert!(packer.finish().is_none());
        assert_eq!(packer.position(), 4000);
    }

    #[test]
    fn a_packet_that_begins_within_a_chunk_ends_with_it() {
        let data = [7; 2000];
        let mut packer = Packer::new(Checksum::CRC32C_512, 65536, 33, 500);
        let packets = pack(&mut packer, &data);
        assert_eq!(packets.len(), 1);
        check(&packets[0], 500, &data[..12]);
        check(&packer.finish().unwrap(), 512, &data[12..]);
    }

    #[test]
    fn a_packet_holds_at_least_one_chunk() {
        let checksum = Checksum::new(2, 4096).unwrap();
        let mut packer = Packer::new(checksum, 100, 33, 0);
        assert_eq!(pack(&mut packer, &[1; 4096]).len(), 1);
    }
}
