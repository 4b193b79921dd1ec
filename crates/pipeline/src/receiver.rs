//! The receiving half of a data server: is this packet the one that may come now, and what is to be done?

use crate::{Checksum, PacketError};
use base::PacketHeader;

/// Judges the packets of one writer. It holds no data.
#[derive(Debug)]
pub struct Receiver {
    checksum: Checksum,
    /// The offset in the block behind the bytes received. It never shrinks: a packet may repeat bytes, but not leave a
    /// gap.
    end: u64,
    limit: u64,
    /// The next packet has this number at least: Hadoop's clients leave out those of packets that they have thrown
    /// away, for `hflush` found that everything in them had been sent. Not known before the first one, which after a
    /// recovery of the pipeline is the first that was never acknowledged.
    next_seqno: Option<i64>,
    ended: bool,
    verifies: bool,
}

/// The work that an acceptable packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// "Still here": relayed and acknowledged like any packet, and nothing else.
    Heartbeat,
    Write {
        offset: u64,
        /// The data must be checked against its checksums before it is written or acknowledged.
        verify: bool,
        /// The packet came without checksums although the replica has them: they are to be computed.
        compute: bool,
        sync: bool,
    },
    /// All is received: finalise the replica.
    End { sync: bool },
}

impl Receiver {
    /// `end` is the replica's length so far, `limit` the length that it may grow to. `verifies` says whether this
    /// server checks the checksums: the last server of a pipeline does, and one that copies from another server.
    /// Servers in the middle rely on the last one.
    pub fn new(checksum: Checksum, end: u64, limit: u64, verifies: bool) -> Self {
        Self { checksum, end, limit, next_seqno: None, ended: false, verifies }
    }

    /// The offset in the block behind the bytes received.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// # Errors
    /// [`PacketError::AfterLast`] if the packet comes after the last, [`PacketError::DataLength`] if its length is
    /// negative, [`PacketError::Sequence`] if it repeats an earlier number, [`PacketError::Offset`] if it leaves a gap
    /// or, as the last, does not stand at the end of what was received, and [`PacketError::PastEnd`] if it reaches
    /// beyond the end of the block. [`PacketError::SumsLength`] if the checksums are not one for each chunk,
    /// [`PacketError::Unaligned`] if the data begins within a chunk and reaches beyond it,
    /// [`PacketError::LastWithData`] if the last packet has data.
    pub fn on_packet(&mut self, header: &PacketHeader, sums_bytes: usize) -> Result<Duty, PacketError> {
        if self.ended {
            return Err(PacketError::AfterLast);
        }
        let data_length =
            usize::try_from(header.data_length).map_err(|_| PacketError::DataLength(header.data_length))?;
        if header.is_heartbeat() && data_length == 0 && !header.last_in_block {
            return Ok(Duty::Heartbeat);
        }
        let seqno = header.seqno;
        match self.next_seqno {
            Some(expected) if seqno < expected => {
                return Err(PacketError::Sequence { expected, found: seqno });
            }
            None if seqno < 0 => return Err(PacketError::Sequence { expected: 0, found: seqno }),
            _ => {}
        }
        let offset = u64::try_from(header.offset_in_block)
            .ok()
            .filter(|offset| *offset <= self.end)
            .ok_or(PacketError::Offset { seqno, expected: self.end, found: header.offset_in_block })?;
        let end = offset + data_length as u64;
        if end > self.limit {
            return Err(PacketError::PastEnd { seqno, end, limit: self.limit });
        }
        let duty = if header.last_in_block {
            if data_length > 0 {
                return Err(PacketError::LastWithData(header.data_length));
            }
            if offset != self.end {
                return Err(PacketError::Offset { seqno, expected: self.end, found: header.offset_in_block });
            }
            self.ended = true;
            Duty::End { sync: header.sync }
        } else {
            self.data_duty(offset, data_length, sums_bytes, header.sync)?
        };
        self.end = self.end.max(end);
        self.next_seqno =
            Some(seqno.checked_add(1).ok_or(PacketError::Sequence { expected: 0, found: seqno })?);
        Ok(duty)
    }

    fn data_duty(
        &self,
        offset: u64,
        data_length: usize,
        sums_bytes: usize,
        sync: bool,
    ) -> Result<Duty, PacketError> {
        let bytes_per_checksum = self.checksum.bytes_per_checksum();
        let expected = self.checksum.sums_bytes(data_length);
        let compute = sums_bytes == 0 && expected > 0;
        if sums_bytes != expected && !compute {
            return Err(PacketError::SumsLength { found: sums_bytes, expected, data_length });
        }
        let within = (offset % u64::from(bytes_per_checksum)) as usize;
        if within != 0 && data_length > bytes_per_checksum as usize - within {
            return Err(PacketError::Unaligned { offset, data_length, bytes_per_checksum });
        }
        // The sum of a chunk that is continued is made anew from the data, which must be right then.
        let verify = sums_bytes > 0 && (self.verifies || within != 0);
        Ok(Duty::Write { offset, verify, compute, sync })
    }
}

#[cfg(test)]
mod tests;
