//! Every replica of every volume, told at once.

use super::actor::{Actor, Failure, Session};
use crate::convert;
use blockstore::{ReplicaFacts, StorageReplicas};
use prost::Message;
use proto::{
    block_rows::{BlockRow, storage_report},
    hdfs::datanode::{
        BlockReportContextProto, BlockReportRequestProto, BlockReportResponseProto, StorageBlockReportProto,
    },
};

/// Up to this many replicas go in one call; with more, each volume has its own. Hadoop's
/// `dfs.blockreport.split.threshold`.
const SPLIT_THRESHOLD: usize = 1_000_000;

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
            let bytes = request.encoded_len() as u64;
            let answer: Result<BlockReportResponseProto, _> = self.client.call("blockReport", &request).await;
            let answer = answer.map_err(|error| self.give_up(error))?;
            let mut talk = self.talk.lock();
            talk.report_bytes_max = talk.report_bytes_max.max(bytes);
            drop(talk);
            if let Some(command) = answer.cmd {
                self.obey(session, &command, session.pool.leadership.mandate_of(session.place))?;
            }
        }
        self.talk.lock().reported = Some(self.state.env.clock.moment());
        tracing::info!(server = %self.address, replicas = replica_count, "sent a full block report");
        Ok(())
    }
}

fn storage_block_report(volume: &StorageReplicas) -> StorageBlockReportProto {
    let row = |facts: &ReplicaFacts| BlockRow {
        id: facts.block.id.0 as i64,
        length: facts.block.length,
        generation_stamp: facts.block.generation_stamp.0,
        state: convert::replica_state_to_proto(facts.state),
    };
    let storage = convert::storage_to_proto(&volume.storage_id, volume.storage_type);
    storage_report(storage, volume.replicas.iter().map(row))
}
