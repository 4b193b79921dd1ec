//! The answer that says where the blocks of a file are.

use super::{Put, Writer};
use crate::hdfs::{StorageTypeProto, datanode_info_proto::AdminState};

/// Bytes of a usual replica, and of a usual block beside its replicas.
const PLACE: usize = 180;
const BLOCK: usize = 80;

/// `LocatedBlocksProto`: 1 fileLength, 2 blocks, 3 underConstruction, 4 lastBlock, 5 isLastBlockComplete.
///
/// Never sent: 6 fileEncryptionInfo, 7 ecPolicy.
pub struct LocatedBlocks<I, B> {
    pub length: u64,
    pub blocks: I,
    pub under_construction: bool,
    /// The last block of the file, whether or not it is among those asked for.
    pub last: Option<B>,
    pub is_last_complete: bool,
}

impl<B: Put, I: ExactSizeIterator<Item = B>> Put for LocatedBlocks<I, B> {
    fn about(&self) -> usize {
        // An estimate for usual blocks, with three replicas each.
        5 * Writer::FIELD_MAX + (self.blocks.len() + usize::from(self.last.is_some())) * (BLOCK + 3 * PLACE)
    }

    fn put(self, out: &mut Writer) {
        out.uint(1, self.length);
        for block in self.blocks {
            out.message(2, block);
        }
        out.bool(3, self.under_construction);
        if let Some(last) = self.last {
            out.message(4, last);
        }
        out.bool(5, self.is_last_complete);
    }
}

/// `LocatedBlockProto`, with an empty token, as without security.
///
/// ```text
/// 1 b { 1 poolId, 2 blockId, 3 generationStamp, 4 numBytes }   2 offset   3 locs   4 corrupt
/// 5 blockToken { 1 identifier, 2 password, 3 kind, 4 service }   6 isCached, packed   7 storageTypes   8 storageIDs
/// ```
///
/// Never sent: 9 blockIndices, 10 blockTokens.
pub struct LocatedBlock<'a, I> {
    pub pool: &'a str,
    pub id: u64,
    pub generation_stamp: u64,
    pub length: u64,
    /// The offset in the file of the block's first byte.
    pub offset: u64,
    pub corrupt: bool,
    /// The best first.
    pub places: I,
}

impl<'a, I: ExactSizeIterator<Item = Place<'a>> + Clone> Put for LocatedBlock<'_, I> {
    fn about(&self) -> usize {
        BLOCK + self.places.len() * PLACE
    }

    fn put(self, out: &mut Writer) {
        out.nested(1, self.pool.len() + 24, |out| {
            out.text(1, self.pool);
            out.uint(2, self.id);
            out.uint(3, self.generation_stamp);
            out.uint(4, self.length);
        });
        out.uint(2, self.offset);
        for place in self.places.clone() {
            out.message(3, place);
        }
        out.bool(4, self.corrupt);
        out.nested(5, 8, |out| (1..=4).for_each(|number| out.bytes(number, b"")));
        if self.places.len() > 0 {
            // Nothing is cached.
            out.zeros(6, self.places.len());
        }
        for place in self.places.clone() {
            out.uint(7, place.storage_type as u64);
        }
        for place in self.places {
            out.text(8, place.storage);
        }
    }
}

/// A replica: the storage that it is on, and the addresses and the rack of its data server.
///
/// Its fields are those of `DatanodeInfoProto`:
///
/// ```text
///  1 id { 1 ipAddr, 2 hostName, 3 datanodeUuid, 4 xferPort, 5 infoPort, 6 ipcPort, 7 infoSecurePort }
///  2 capacity      3 dfsUsed     4 remaining   5 blockPoolUsed   7 xceiverCount   8 location   9 nonDfsUsed
/// 10 adminState   11 cacheCapacity   12 cacheUsed   17 numBlocks   18 softwareVersion
/// ```
///
/// The numbers that only people want are in reports: 6 lastUpdate, 13 lastUpdateMonotonic, 15 and 16 of the last
/// block report. Never sent: 14 upgradeDomain.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub ip: &'a str,
    pub host_name: &'a str,
    pub uuid: &'a str,
    pub transfer_port: u16,
    pub info_port: u16,
    pub ipc_port: u16,
    pub info_secure_port: u16,
    pub capacity: u64,
    pub dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub xceivers: u32,
    pub rack: &'a str,
    pub non_dfs_used: u64,
    pub cache_capacity: u64,
    pub cache_used: u64,
    pub blocks: u32,
    pub software_version: &'a str,
    pub admin_state: AdminState,
    pub storage: &'a str,
    pub storage_type: StorageTypeProto,
}

impl Put for Place<'_> {
    fn about(&self) -> usize {
        PLACE
    }

    fn put(self, out: &mut Writer) {
        let id = self.ip.len() + self.host_name.len() + self.uuid.len() + 24;
        out.nested(1, id, |out| {
            out.text(1, self.ip);
            out.text(2, self.host_name);
            out.text(3, self.uuid);
            out.uint(4, self.transfer_port.into());
            out.uint(5, self.info_port.into());
            out.uint(6, self.ipc_port.into());
            out.uint(7, self.info_secure_port.into());
        });
        out.uint(2, self.capacity);
        out.uint(3, self.dfs_used);
        out.uint(4, self.remaining);
        out.uint(5, self.block_pool_used);
        out.uint(7, self.xceivers.into());
        out.text(8, self.rack);
        out.uint(9, self.non_dfs_used);
        out.uint(10, self.admin_state as u64);
        out.uint(11, self.cache_capacity);
        out.uint(12, self.cache_used);
        out.uint(17, self.blocks.into());
        out.text(18, self.software_version);
    }
}
