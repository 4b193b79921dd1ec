//! The rows of a full block report, written as Hadoop packs them.

use crate::hdfs::datanode::StorageBlockReportProto;
use crate::hdfs::{DatanodeStorageProto, ReplicaStateProto};
use bytes::{BufMut, BytesMut};

/// Bytes of one of the buffers that a storage's list is cut into, as Hadoop cuts it.
const BUFFER_BYTES: usize = 64 * 1024;
/// The bytes of a usual block's row: an id of 31 bits, a length of 128 MiB, a stamp of 21 bits.
const ROW_BYTES_USUAL: usize = 13;

/// One replica.
#[derive(Clone, Copy, Debug)]
pub struct BlockRow {
    pub id: i64,
    /// Bytes on disk.
    pub length: u64,
    pub generation_stamp: u64,
    pub state: ReplicaStateProto,
}

/// The full report of one storage.
pub fn storage_report(
    storage: DatanodeStorageProto,
    rows: impl ExactSizeIterator<Item = BlockRow>,
) -> StorageBlockReportProto {
    let number_of_blocks = Some(rows.len() as u64);
    let mut list = BytesMut::with_capacity(rows.len() * ROW_BYTES_USUAL);
    rows.for_each(|row| put_row(&mut list, row));
    let mut list = list.freeze();
    let mut blocks_buffers = Vec::with_capacity(list.len().div_ceil(BUFFER_BYTES));
    while !list.is_empty() {
        blocks_buffers.push(list.split_to(list.len().min(BUFFER_BYTES)));
    }
    StorageBlockReportProto { storage, blocks: Vec::new(), number_of_blocks, blocks_buffers }
}

/// Four varints: id (zigzag), bytes on disk, generation stamp, state.
fn put_row(list: &mut BytesMut, row: BlockRow) {
    put_varint(list, ((row.id << 1) ^ (row.id >> 63)) as u64);
    put_varint(list, row.length);
    put_varint(list, row.generation_stamp);
    put_varint(list, row.state as u64);
}

fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, length: u64, generation_stamp: u64, state: ReplicaStateProto) -> BlockRow {
        BlockRow { id, length, generation_stamp, state }
    }

    #[test]
    fn a_replica_is_four_varints() {
        let rows = [row(64, 300, 1001, ReplicaStateProto::Finalized), row(-1, 0, 1, ReplicaStateProto::Rwr)];
        let report = storage_report(DatanodeStorageProto::default(), rows.into_iter());
        assert_eq!(report.number_of_blocks, Some(2));
        assert_eq!(report.blocks_buffers, [[0x80, 1, 0xac, 2, 0xe9, 7, 0, 1, 0, 1, 2].as_slice()]);
    }

    #[test]
    fn a_long_list_is_cut_into_buffers_anywhere() {
        let rows = vec![row(1 << 30, 1 << 27, 1001, ReplicaStateProto::Finalized); 20_000];
        let report = storage_report(DatanodeStorageProto::default(), rows.into_iter());
        let lengths: Vec<usize> = report.blocks_buffers.iter().map(bytes::Bytes::len).collect();
        assert_eq!(lengths, [BUFFER_BYTES, BUFFER_BYTES, BUFFER_BYTES, 20_000 * 12 - 3 * BUFFER_BYTES]);
    }
}
