//! Ids and counters. Each is a type of its own, so that one is never taken for another.

mod inode;

pub use inode::{InodeId, InodeOrigin};

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
    /// Bits 52 to 61 name the block pool: 0 for that of the first group.
    BlockId(u64)
}

const POOL_BITS: u32 = 10;
const POOL_AT: u32 = 52;

impl BlockId {
    /// The last id that HDFS reserves: the first sequential block is the one after it.
    pub const LAST_RESERVED: BlockId = BlockId(1_073_741_824);

    /// The number of the block pool to which the block belongs, counted from 0; it stays there for ever.
    pub fn pool_number(self) -> u16 {
        (self.0 >> POOL_AT & ((1 << POOL_BITS) - 1)) as u16
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

id! {
    /// The place of an entry in a group's log, counted from 1 without gaps.
    Sn(u64)
}

id! {
    /// A replica group: one partition of the namespace and the servers that hold it.
    GroupId(u32)
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

/// The 16 bytes by which a client process names itself in every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 16]);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
