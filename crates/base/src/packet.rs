//! The header of a data packet, as writers, relays and readers of blocks all speak of it.

/// The header of a packet. The fields are as received: only a `pipeline` machine checks whether they make sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeader {
    /// The offset in the block of the packet's first byte.
    pub offset_in_block: i64,
    /// Counts packets from 0; [`PacketHeader::HEARTBEAT_SEQNO`] for a packet that only says "still here".
    pub seqno: i64,
    /// Set on the empty packet after which nothing follows.
    pub last_in_block: bool,
    /// Bytes of data, without checksums.
    pub data_length: i32,
    /// Everything up to and with this packet must be on stable storage before it is acknowledged.
    pub sync: bool,
}

impl PacketHeader {
    /// Hadoop's number for packets that carry nothing and only keep a connection alive.
    pub const HEARTBEAT_SEQNO: i64 = -1;

    pub fn is_heartbeat(&self) -> bool {
        self.seqno == Self::HEARTBEAT_SEQNO
    }
}
