//! Every replica of every volume, told at once.

use super::actor::{Actor, Failure, Session};
use crate::convert;
use blockstore::{ReplicaFacts, StorageReplicas};
use bytes::{BufMut, Bytes, BytesMut};
use proto::hdfs::datanode::{
    BlockReportContextProto, BlockReportRequestProto, BlockReportResponseProto, StorageBlockReportProto,
};

/// Up to this many replicas go in one call; with more, each volume has its own. Hadoop's
/// `dfs.blockreport.split.threshold`.
const SPLIT_THRESHOLD: usize = 1_000_000;

/// Bytes of one of the buffers that a volume's list is cut into, as Hadoop cuts it.
const BUFFER_BYTES: usize = 64 * 1024;

impl Actor {
    /// Sends a full report of all volumes. Replicas that finish after the report's picture was taken stay queued and
    /// go out next on this connection. So a report never takes back news that is later than its picture.
    pub(super) async fn report_everything(&self, session: &Session, lease: u64) -> Result<(), Failure> {
        let store = session.pool.store.clone();
        let volumes = self.state.in_office(move |_| store.block_reports()).await;
        let replica_count: usize = volumes.iter().map(|volume| volume.replicas.len()).sum();
        let reports: Vec<_> = volumes.iter().map(storage_block_report).collect();
        let calls: Vec<Vec<StorageBlockReportProto>> = match replica_count {
            0..=SPLIT_THRESHOLD => vec![reports],
            _ => reports.into_iter().map(|report| vec![report]).collect(),
        };
        // Never 0, which means none.
        let id = (self.state.env.random.next_u64() >> 1).max(1) as i64;
        let total = calls.len() as i32;
        for (index, reports) in calls.into_iter().enumerate() {
            let request = BlockReportRequestProto {
                registration: session.registration.clone(),
                block_pool_id: session.pool.id.to_string(),
                reports,
                context: Some(BlockReportContextProto {
                    total_rpcs: total,
                    cur_rpc: index as i32,
                    id,
                    lease_id: Some(lease),
                }),
            };
            let answer: Result<BlockReportResponseProto, _> = self.client.call("blockReport", &request).await;
            let answer = answer.map_err(|error| self.give_up(error))?;
            if let Some(command) = answer.cmd {
                self.obey(session, &command, session.pool.leadership.mandate_of(session.place))?;
            }
        }
        tracing::info!(server = %self.address, replicas = replica_count, "sent a full block report");
        Ok(())
    }
}

fn storage_block_report(volume: &StorageReplicas) -> StorageBlockReportProto {
    let mut list = encode(&volume.replicas);
    let mut blocks_buffers = Vec::with_capacity(list.len().div_ceil(BUFFER_BYTES));
    while !list.is_empty() {
        blocks_buffers.push(list.split_to(list.len().min(BUFFER_BYTES)));
    }
    StorageBlockReportProto {
        storage: convert::storage_to_proto(&volume.storage_id, volume.storage_type),
        blocks: Vec::new(),
        number_of_blocks: Some(volume.replicas.len() as u64),
        blocks_buffers,
    }
}

/// Four varints a replica: id (zigzag), bytes on disk, generation stamp, state.
fn encode(replicas: &[ReplicaFacts]) -> Bytes {
    let mut list = BytesMut::with_capacity(replicas.len() * 12);
    for facts in replicas {
        let id = facts.block.id.0 as i64;
        put_varint(&mut list, ((id << 1) ^ (id >> 63)) as u64);
        put_varint(&mut list, facts.block.length);
        put_varint(&mut list, facts.block.generation_stamp.0);
        put_varint(&mut list, convert::replica_state_to_proto(facts.state) as u64);
    }
    list.freeze()
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
    use base::{Block, BlockId, GenerationStamp};
    use blockstore::ReplicaState;

    #[test]
    fn a_replica_is_four_varints() {
        let facts = |id: i64, length, stamp, state| ReplicaFacts {
            block: Block { id: BlockId(id as u64), generation_stamp: GenerationStamp(stamp), length },
            state,
            visible_length: 0,
        };
        let list = encode(&[
            facts(64, 300, 1001, ReplicaState::Finalized),
            facts(-1, 0, 1, ReplicaState::WaitingRecovery),
        ]);
        assert_eq!(list[..], [0x80, 1, 0xac, 2, 0xe9, 7, 0, 1, 0, 1, 2]);
    }
}
