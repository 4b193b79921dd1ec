//! The first entry of an epoch.

use base::{Epoch, LogPoint, MemberId, MemberLife, MemberStore};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// How far each id counter of the state machine is raised, so that an id given out in a tail that was cut off
/// is never used again. Steps are relative, so every member comes to the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdSteps {
    pub inode: u64,
    pub block: u64,
    pub generation_stamp: u64,
}

impl IdSteps {
    /// The steps for so many epochs at once.
    pub fn times(self, epochs: u64) -> Self {
        Self {
            inode: self.inode.saturating_mul(epochs),
            block: self.block.saturating_mul(epochs),
            generation_stamp: self.generation_stamp.saturating_mul(epochs),
        }
    }

    /// The sum of the steps of both, one after the other.
    pub fn plus(self, other: Self) -> Self {
        Self {
            inode: self.inode.saturating_add(other.inode),
            block: self.block.saturating_add(other.block),
            generation_stamp: self.generation_stamp.saturating_add(other.generation_stamp),
        }
    }

    /// Added for an unclean election to what the epochs in between ask for: two elections that begin from the same entry must
    /// not give out the same ids, which their epochs keep apart. How much is lost nobody knows: more ids than an epoch's step may have been
    /// given out in one long epoch, but no more than this in the time between two deaths of a whole group: ten days
    /// at a thousand a second. Inode ids and generation stamps have 40 bits, so there is room for a thousand such elections.
    pub const UNCLEAN_MIN: Self = Self { inode: 1 << 30, block: 1 << 30, generation_stamp: 1 << 30 };

    /// An unclean election passes over at least so many epochs.
    pub const EPOCHS_OF_AN_ELECTION: u64 = 64;

    /// The most unclean elections of which a log is taken to know nothing. Without this bound the ordinary takeovers of many years,
    /// which also make epochs, would use the ids up.
    const ELECTIONS_MAX: u64 = 32;

    /// How far the first entry of an epoch raises the counters, so many epochs behind the last one of which the log has an
    /// entry. Those in between have raised them as well, and the log may lack their entries. With an unclean election that the
    /// log has not told of yet, some of these epochs may be of other unclean elections, which nothing in the log tells of; each has
    /// raised the counters for itself, and has given out ids from there on.
    pub fn over(self, epochs: u64, has_new_election: bool) -> Self {
        let steps = self.times(epochs.max(1));
        let elections = (epochs / Self::EPOCHS_OF_AN_ELECTION).clamp(1, Self::ELECTIONS_MAX);
        if has_new_election { steps.plus(Self::UNCLEAN_MIN.times(elections)) } else { steps }
    }
}

impl Default for IdSteps {
    fn default() -> Self {
        Self { inode: 1 << 20, block: 1 << 20, generation_stamp: 1 << 10 }
    }
}

/// The payload of an `EpochStart` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: Epoch,
    /// The end of the log that the new active adopted.
    pub previous: LogPoint,
    pub id_steps: IdSteps,
    /// An operator had this line of entries go on although it may lack some that had committed: others may hold them, and
    /// data servers may hold the blocks that they speak of.
    pub is_unclean: bool,
    /// State machines remember which ids the raise skips. Not in entries of earlier programs, whose state machines did not:
    /// all members must come to the same state, also one that starts from an image of such a program.
    pub keeps_skipped: bool,
    /// The life of the member that leads the epoch. Written from level 2 on ([`base::Level::EPOCH_LEADERS`]).
    pub leader: Option<MemberLife>,
}

impl EpochStart {
    const VERSION: u8 = 3;
    /// The version that names no leader, and ends before that field.
    const VERSION_WITHOUT_LEADER: u8 = 2;
    /// The version that has no flags either.
    const VERSION_WITHOUT_FLAGS: u8 = 1;
    const BYTES_WITHOUT_FLAGS: usize = 1 + 7 * 8;
    const BYTES_WITHOUT_LEADER: usize = Self::BYTES_WITHOUT_FLAGS + 4;
    const ENCODED_BYTES: usize = Self::BYTES_WITHOUT_LEADER + 4 + 8 + 8 + 2;
    /// The most bytes that later releases may add behind the leader, for people: a reader passes them over.
    const ADDED_BYTES_MAX: usize = 1024;
    const FLAG_UNCLEAN: u32 = 1;
    const FLAG_KEEPS_SKIPPED: u32 = 2;

    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::ENCODED_BYTES);
        bytes.put_u8(if self.leader.is_some() { Self::VERSION } else { Self::VERSION_WITHOUT_LEADER });
        bytes.put_u64_le(self.epoch.0);
        bytes.put_u64_le(self.previous.id.epoch.0);
        bytes.put_u64_le(self.previous.id.sn.0);
        bytes.put_u64_le(self.previous.chain.0);
        bytes.put_u64_le(self.id_steps.inode);
        bytes.put_u64_le(self.id_steps.block);
        bytes.put_u64_le(self.id_steps.generation_stamp);
        let unclean = if self.is_unclean { Self::FLAG_UNCLEAN } else { 0 };
        let keeps_skipped = if self.keeps_skipped { Self::FLAG_KEEPS_SKIPPED } else { 0 };
        bytes.put_u32_le(unclean | keeps_skipped);
        if let Some(leader) = self.leader {
            bytes.put_u32_le(leader.store.member.0);
            bytes.put_u64_le(leader.store.generation);
            bytes.put_u64_le(leader.boot);
            bytes.put_u16_le(0);
        }
        bytes.freeze()
    }

    /// `None` for anything that is not exactly such a payload. A flag that is not known may mean anything, so it is
    /// refused like a version that is not known.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let (has_flags, has_leader) = match (bytes.len(), *bytes.first()?) {
            (Self::ENCODED_BYTES.., Self::VERSION) => (true, true),
            (Self::BYTES_WITHOUT_LEADER, Self::VERSION_WITHOUT_LEADER) => (true, false),
            (Self::BYTES_WITHOUT_FLAGS, Self::VERSION_WITHOUT_FLAGS) => (false, false),
            _ => return None,
        };
        bytes.advance(1);
        let start = Self {
            epoch: bytes.get_u64_le().into(),
            previous: LogPoint {
                id: base::TxId { epoch: bytes.get_u64_le().into(), sn: bytes.get_u64_le().into() },
                chain: base::Chain(bytes.get_u64_le()),
            },
            id_steps: IdSteps {
                inode: bytes.get_u64_le(),
                block: bytes.get_u64_le(),
                generation_stamp: bytes.get_u64_le(),
            },
            is_unclean: false,
            keeps_skipped: false,
            leader: None,
        };
        let flags = if has_flags { bytes.get_u32_le() } else { 0 };
        let leader = if has_leader { Some(decode_leader(&mut bytes)?) } else { None };
        let is_known = flags & !(Self::FLAG_UNCLEAN | Self::FLAG_KEEPS_SKIPPED) == 0;
        is_known.then_some(Self {
            leader,
            is_unclean: flags & Self::FLAG_UNCLEAN != 0,
            keeps_skipped: flags & Self::FLAG_KEEPS_SKIPPED != 0,
            ..start
        })
    }
}

/// Reads the member that leads. Bytes that a later release has added behind it are passed over.
fn decode_leader(bytes: &mut &[u8]) -> Option<MemberLife> {
    let member = MemberId(bytes.try_get_u32_le().ok()?);
    let store = MemberStore { member, generation: bytes.try_get_u64_le().ok()? };
    let boot = bytes.try_get_u64_le().ok()?;
    let added = usize::from(bytes.try_get_u16_le().ok()?);
    (added == bytes.len() && added <= EpochStart::ADDED_BYTES_MAX).then_some(MemberLife { store, boot })
}

#[cfg(test)]
mod tests {
    use super::IdSteps;

    /// The tree's counter of blocks, as an operator's orders leave it.
    fn raised(counter: u64, log_ends: u64, epoch: u64) -> u64 {
        counter + IdSteps::default().over(epoch - log_ends, true).block
    }

    /// The members die one after the other, and an operator lets one lead each time that has none of the entries of the elections
    /// before.
    #[test]
    fn an_election_gives_out_no_id_of_elections_that_its_log_lacks() {
        let (first, second, third) = (raised(0, 0, 66), raised(0, 0, 130), raised(0, 0, 194));
        let most = IdSteps::UNCLEAN_MIN.block;
        assert!(second > first + most - 1 && third > second + most - 1, "{first} {second} {third}");
        // The second knew of the first, and the third of nobody.
        let informed = raised(first, 66, 130);
        assert!(third > informed + most - 1, "{informed} {third}");
    }

    #[test]
    fn a_log_that_is_years_behind_does_not_use_the_ids_up() {
        let steps = IdSteps::default().over(100_000, true);
        assert!(steps.inode < 1 << 38 && steps.generation_stamp < 1 << 38, "{steps:?}");
        assert_eq!(IdSteps::default().over(0, false), IdSteps::default());
    }
}
