//! The rows of a full block report, as Hadoop packs them.
//!
//! The current form is a run of numbers over several buffers that are cut anywhere, four numbers a row:
//!
//! ```text
//! block id           zigzag varint
//! length             varint; the low 48 bits count
//! generation stamp   varint
//! replica state      varint; the low 4 bits count
//! ```
//!
//! The older form is an array: the numbers of finalized and of other replicas, then three numbers for each
//! finalized one, a delimiter of three times -1, and four numbers for each of the others.
//!
//! Nothing is allocated by a count that a server claims. A row that cannot be a replica (a negative number,
//! an unknown state) is dropped and counted; a list that is not what it claims is an error.

use base::{BLOCK_BYTES_MAX, Block, BlockId, GenerationStamp};
use blocks::{ReplicaState, ReportedReplica};
use bytes::{Buf, Bytes};
use proto::hdfs::datanode::StorageBlockReportProto;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListError {
    #[error("the block list ends after {rows} of {claimed} replicas")]
    TooShort { rows: u64, claimed: u64 },
    #[error("the block list goes on after the {claimed} replicas that it claims to have")]
    TooLong { claimed: u64 },
    #[error("a number in row {row} of the block list has more than ten bytes")]
    Varint { row: u64 },
    #[error("the finalized and the other replicas of the block list are not delimited")]
    Delimiter,
}

/// The longest varint of 64 bits.
const VARINT_BYTES_MAX: usize = 10;
const LENGTH_MASK: u64 = (1 << 48) - 1;
const STATE_MASK: u64 = (1 << 4) - 1;

/// A list being read.
pub struct BlockList {
    rows: Rows,
    claimed: u64,
    read: u64,
    dropped: u64,
}

enum Rows {
    /// The rest of the buffer being read, and the buffers behind it.
    Packed(Bytes, std::vec::IntoIter<Bytes>),
    Array {
        numbers: std::vec::IntoIter<u64>,
        finalized: u64,
    },
}

impl BlockList {
    pub fn of(report: StorageBlockReportProto) -> Self {
        let (rows, claimed) = match report.number_of_blocks {
            Some(claimed) => (Rows::Packed(Bytes::new(), report.blocks_buffers.into_iter()), claimed),
            None => {
                let mut numbers = report.blocks.into_iter();
                let (finalized, others) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
                (Rows::Array { numbers, finalized }, finalized.saturating_add(others))
            }
        };
        Self { rows, claimed, read: 0, dropped: 0 }
    }

    pub fn claimed(&self) -> u64 {
        self.claimed
    }

    /// Rows that could not be replicas.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Appends up to `count` rows; fewer only at the end of the list.
    pub fn read(&mut self, count: usize, out: &mut Vec<ReportedReplica>) -> Result<(), ListError> {
        for _ in 0..count {
            if self.read == self.claimed {
                return self.check_end();
            }
            let row = self.row()?;
            self.read += 1;
            match replica(row) {
                Some(replica) => out.push(replica),
                None => self.dropped += 1,
            }
        }
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), ListError> {
        let ended = match &mut self.rows {
            Rows::Packed(rest, behind) => {
                !rest.has_remaining() && behind.as_slice().iter().all(Bytes::is_empty)
            }
            // A list without other replicas may lack the delimiter.
            Rows::Array { numbers, .. } => numbers.len() == 0 || numbers.as_slice() == [u64::MAX; 3],
        };
        if ended { Ok(()) } else { Err(ListError::TooLong { claimed: self.claimed }) }
    }

    fn row(&mut self) -> Result<[u64; 4], ListError> {
        let short = ListError::TooShort { rows: self.read, claimed: self.claimed };
        match &mut self.rows {
            Rows::Packed(rest, behind) => {
                let mut row = [0; 4];
                if rest.len() >= 4 * VARINT_BYTES_MAX {
                    let mut bytes: &[u8] = rest;
                    for number in &mut row {
                        *number = varint(&mut bytes).ok_or(ListError::Varint { row: self.read })?;
                    }
                    let taken = rest.len() - bytes.len();
                    rest.advance(taken);
                } else {
                    for number in &mut row {
                        *number = varint_over_buffers(rest, behind)
                            .ok_or_else(|| short.clone())?
                            .ok_or(ListError::Varint { row: self.read })?;
                    }
                }
                row[0] = unzigzag(row[0]);
                row[1] = if row[1] >> 63 == 1 { row[1] } else { row[1] & LENGTH_MASK };
                row[3] &= STATE_MASK;
                Ok(row)
            }
            Rows::Array { numbers, finalized } => {
                if self.read == *finalized {
                    let delimiter: Vec<u64> = numbers.by_ref().take(3).collect();
                    if delimiter != [u64::MAX; 3] {
                        return Err(ListError::Delimiter);
                    }
                }
                let mut next = || numbers.next().ok_or(short.clone());
                let (id, length, stamp) = (next()?, next()?, next()?);
                let state = if self.read < *finalized { 0 } else { next()? };
                Ok([id, length, stamp, state])
            }
        }
    }
}

fn replica([id, length, stamp, state]: [u64; 4]) -> Option<ReportedReplica> {
    let state = ReplicaState::from_number(state)?;
    Some(ReportedReplica { block: block(id, stamp, length)?, state })
}

/// A block of which a replica may exist: `None` for Hadoop's negative ids, and for stamps that no block map holds. A length
/// that none holds becomes the one that stands for all such: earlier releases let files have longer blocks.
pub fn block(id: u64, stamp: u64, length: u64) -> Option<Block> {
    let positive = |number: u64| i64::try_from(number).is_ok();
    let is_possible = positive(id) && positive(length) && stamp < GenerationStamp::LIMIT;
    let length = if length > BLOCK_BYTES_MAX { blocks::LENGTH_BEYOND } else { length };
    is_possible.then_some(Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length })
}

/// The number in the low bits, the sign in the lowest: as a two's complement again.
fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..VARINT_BYTES_MAX {
        let byte = *bytes.get(at)?;
        number |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

/// `None` at the end of all buffers, `Some(None)` if the number does not end.
fn varint_over_buffers(rest: &mut Bytes, behind: &mut std::vec::IntoIter<Bytes>) -> Option<Option<u64>> {
    let mut number = 0;
    for at in 0..VARINT_BYTES_MAX {
        while !rest.has_remaining() {
            *rest = behind.next()?;
        }
        let byte = rest.get_u8();
        number |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            return Some(Some(number));
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests;
