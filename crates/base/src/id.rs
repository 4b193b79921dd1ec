//! Ids and counters. Each is a type of its own, so that one is never taken for another.

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
    /// An inode of the namespace. Ids rise and are never used twice.
    InodeId(u64)
}

impl InodeId {
    /// The root directory, as in HDFS.
    pub const ROOT: InodeId = InodeId(16_385);
}

id! {
    /// A block. Hadoop writes it as a signed number in file names; the ones that Clover makes are positive.
    BlockId(u64)
}

impl BlockId {
    /// The last id that HDFS reserves: the first sequential block is the one after it.
    pub const LAST_RESERVED: BlockId = BlockId(1_073_741_824);
}

id! {
    /// The version of a block: it rises each time a write pipeline is set up anew or recovered.
    GenerationStamp(u64)
}

impl GenerationStamp {
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
