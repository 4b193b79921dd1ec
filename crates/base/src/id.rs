//! Ids and counters. Each is a type of its own, so that one is never taken for another.

mod inode;

pub use inode::{InodeId, InodeOrigin};

use inode::GROUP_BITS;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

id! {
    /// A block. Hadoop writes it as a signed number in file names; the ones that Clover makes are positive.
    ///
    /// Bits 52 to 61 name the block pool by the [number](GroupId::number) of its group: 0 for that of the root group.
    BlockId(u64)
}

const POOL_BITS: u32 = 10;
const POOL_AT: u32 = 52;

impl BlockId {
    /// The last id that HDFS reserves: the first sequential block is the one after it.
    pub const LAST_RESERVED: BlockId = BlockId(1_073_741_824);

    /// A pool gives out fewer ids than this.
    pub const POOL_COUNT_LIMIT: u64 = 1 << POOL_AT;

    /// The id that the counter of a pool gives out.
    ///
    /// # Panics
    ///
    /// If the pool's number has more than ten bits, or the count is used up: two blocks would get one id.
    pub fn of_pool(number: u16, count: u64) -> Self {
        assert!(number < 1 << POOL_BITS, "the pool number {number} has more than ten bits");
        assert!(count < Self::POOL_COUNT_LIMIT, "block count {count} of pool {number}: it has no more ids");
        Self(u64::from(number) << POOL_AT | count)
    }

    /// The number of the block pool to which the block belongs, counted from 0; it stays there for ever.
    pub fn pool_number(self) -> u16 {
        (self.0 >> POOL_AT & ((1 << POOL_BITS) - 1)) as u16
    }

    /// The count at which the pool's counter stood when it gave out this id.
    pub fn pool_count(self) -> u64 {
        self.0 & (Self::POOL_COUNT_LIMIT - 1)
    }
}

id! {
    /// The version of a block: it rises each time a write pipeline is set up anew or recovered.
    GenerationStamp(u64)
}

impl GenerationStamp {
    /// All stamps are below it: 34 years at a thousand new ones a second.
    pub const LIMIT: u64 = 1 << 40;
    /// The last stamp that HDFS reserves.
    pub const LAST_RESERVED: GenerationStamp = GenerationStamp(1_000);
}

id! {
    /// A reign: at most one member of a group appends in an epoch.
    Epoch(u64)
}

impl Epoch {
    /// Data servers are told `epoch * 2^40 + sn` in a signed number of 64 bits: no honest epoch is larger.
    pub const LAST: Epoch = Epoch((1 << 23) - 1);
}

id! {
    /// The place of an entry in a group's log, counted from 1 without gaps.
    Sn(u64)
}

id! {
    /// A replica group: one partition of the namespace and the servers that hold it. People count groups from 1.
    GroupId(u32)
}

impl GroupId {
    /// The group that a cluster begins with. It orders the changes of directories.
    pub const ROOT: GroupId = GroupId(1);
    /// A cluster has no more groups than this: ids name their group in seven bits.
    pub const LAST: GroupId = GroupId(1 << GROUP_BITS);

    /// Whether there can be such a group.
    pub fn is_possible(self) -> bool {
        (Self::ROOT..=Self::LAST).contains(&self)
    }

    /// The group's number in the ids that it gives out, counted from 0.
    ///
    /// # Panics
    ///
    /// If there can be no such group.
    pub fn number(self) -> u8 {
        assert!(self.is_possible(), "group {self} is none of {} to {}", Self::ROOT, Self::LAST);
        (self.0 - Self::ROOT.0) as u8
    }
}

id! {
    /// A server's membership in groups; unique in a cluster.
    MemberId(u32)
}

id! {
    /// The number a client gave to a call; with the [`ClientId`] it names the call for ever.
    CallId(i32)
}

/// The name of a log entry. Two entries with the same `sn` in different epochs are different entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxId {
    pub epoch: Epoch,
    pub sn: Sn,
}

impl fmt::Display for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.sn)
    }
}

/// How far a group's log had committed when its active was asked, in the epoch in which it led. A member that does not lead answers a read
/// from a tree that shows all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    pub epoch: Epoch,
    pub committed: Sn,
}

/// The 16 bytes by which a client process names itself in every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 16]);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_id_names_its_pool_and_those_of_the_first_are_what_they_always_were() {
        assert_eq!(BlockId::of_pool(0, 1_073_741_825), BlockId(1_073_741_825));
        for (number, count) in [(1, 0), (127, 7), (1_023, BlockId::POOL_COUNT_LIMIT - 1)] {
            let id = BlockId::of_pool(number, count);
            assert_eq!((id.pool_number(), id.pool_count()), (number, count));
            assert!(i64::try_from(id.0).is_ok(), "Hadoop takes it for a signed number");
        }
    }

    #[test]
    #[should_panic(expected = "it has no more ids")]
    fn a_pool_that_has_used_up_its_ids_does_not_take_those_of_the_next() {
        BlockId::of_pool(3, BlockId::POOL_COUNT_LIMIT);
    }

    #[test]
    fn every_possible_group_has_a_number_in_ids() {
        assert_eq!((GroupId::ROOT.number(), GroupId::LAST.number()), (0, 127));
        assert!(!GroupId(0).is_possible() && !GroupId(129).is_possible());
    }
}
