//! The reader's side: is this packet the next piece of the range asked for, and which part of it was?

use crate::{Checksum, PacketError};
use base::PacketHeader;
use std::ops;

/// A range of a block on its way in. Servers send whole chunks, so that more may come at either end.
#[derive(Debug)]
pub struct Range {
    checksum: Checksum,
    /// The next byte wanted and the end of the range.
    wanted: ops::Range<u64>,
    /// The offset in the block at which the next packet begins.
    position: u64,
    next_seqno: i64,
    ended: bool,
}

impl Range {
    /// `first_chunk` is where the server said that it begins.
    ///
    /// # Errors
    /// [`PacketError::Offset`] if `first_chunk` lies behind the beginning of the range, or a whole chunk or more before
    /// it.
    pub fn new(checksum: Checksum, wanted: ops::Range<u64>, first_chunk: u64) -> Result<Self, PacketError> {
        let skipped = wanted.start.checked_sub(first_chunk);
        if skipped.is_none_or(|skipped| skipped >= checksum.bytes_per_checksum().into()) {
            return Err(PacketError::Offset { seqno: 0, expected: wanted.start, found: first_chunk as i64 });
        }
        Ok(Self { checksum, wanted, position: first_chunk, next_seqno: 0, ended: false })
    }

    /// The next byte wanted.
    pub fn position(&self) -> u64 {
        self.wanted.start
    }

    /// Every byte of the range has come.
    pub fn is_complete(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The server has said that nothing more comes.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns which bytes of the packet's data belong to the range.
    ///
    /// # Errors
    /// [`PacketError::Sequence`] or [`PacketError::Offset`] if the packet is not the next one in number or place,
    /// [`PacketError::DataLength`] if its length is negative, [`PacketError::SumsLength`] if it has more or fewer
    /// checksums than its data needs, [`PacketError::AfterLast`] if it comes after the last. For the last packet
    /// [`PacketError::LastWithData`] if it has data, [`PacketError::TooShort`] if it comes before the range is
    /// complete.
    pub fn on_packet(
        &mut self,
        header: &PacketHeader,
        sums_bytes: usize,
    ) -> Result<ops::Range<usize>, PacketError> {
        if self.ended {
            return Err(PacketError::AfterLast);
        }
        let data_length =
            usize::try_from(header.data_length).map_err(|_| PacketError::DataLength(header.data_length))?;
        let seqno = header.seqno;
        if seqno != self.next_seqno {
            return Err(PacketError::Sequence { expected: self.next_seqno, found: seqno });
        }
        if header.offset_in_block != self.position as i64 {
            return Err(PacketError::Offset {
                seqno,
                expected: self.position,
                found: header.offset_in_block,
            });
        }
        let expected = self.checksum.sums_bytes(data_length);
        if sums_bytes != expected {
            return Err(PacketError::SumsLength { found: sums_bytes, expected, data_length });
        }
        self.next_seqno += 1;
        if header.last_in_block {
            if data_length > 0 {
                return Err(PacketError::LastWithData(header.data_length));
            }
            if !self.is_complete() {
                return Err(PacketError::TooShort { at: self.position, end: self.wanted.end });
            }
            self.ended = true;
            return Ok(0..0);
        }
        let end = self.position + data_length as u64;
        let start = self.wanted.start.clamp(self.position, end);
        let stop = self.wanted.end.clamp(start, end);
        let piece = (start - self.position) as usize..(stop - self.position) as usize;
        self.wanted.start = self.wanted.start.max(stop).min(self.wanted.end);
        self.position = end;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(seqno: i64, offset_in_block: i64, data_length: i32) -> PacketHeader {
        PacketHeader { seqno, offset_in_block, data_length, ..Default::default() }
    }

    fn range(wanted: ops::Range<u64>, first_chunk: u64) -> Range {
        Range::new(Checksum::CRC32C_512, wanted, first_chunk).unwrap()
    }

    #[test]
    fn what_was_not_asked_for_is_cut_off_at_both_ends() {
        let mut range = range(600..1500, 512);
        assert_eq!(range.on_packet(&data(0, 512, 512), 4), Ok(88..512));
        assert_eq!(range.position(), 1024);
        assert_eq!(range.on_packet(&data(1, 1024, 512), 4), Ok(0..476));
        assert!(range.is_complete());
        let last = PacketHeader { last_in_block: true, ..data(2, 1536, 0) };
        assert_eq!(range.on_packet(&last, 0), Ok(0..0));
        assert!(range.has_ended());
        assert_eq!(range.on_packet(&last, 0), Err(PacketError::AfterLast));
    }

    #[test]
    fn a_server_that_begins_elsewhere_is_refused() {
        assert!(Range::new(Checksum::CRC32C_512, 600..700, 601).is_err());
        assert!(Range::new(Checksum::CRC32C_512, 600..700, 0).is_err());
    }

    #[test]
    fn gaps_repetitions_and_an_early_end_are_refused() {
        let mut range = range(0..2000, 0);
        assert!(matches!(range.on_packet(&data(1, 0, 512), 4), Err(PacketError::Sequence { .. })));
        assert!(matches!(range.on_packet(&data(0, 512, 512), 4), Err(PacketError::Offset { .. })));
        assert!(matches!(range.on_packet(&data(0, 0, 512), 8), Err(PacketError::SumsLength { .. })));
        assert!(matches!(range.on_packet(&data(0, 0, -1), 8), Err(PacketError::DataLength(-1))));
        assert_eq!(range.on_packet(&data(0, 0, 512), 4), Ok(0..512));
        let last = PacketHeader { last_in_block: true, ..data(1, 512, 0) };
        assert_eq!(range.on_packet(&last, 0), Err(PacketError::TooShort { at: 512, end: 2000 }));
    }
}
