//! Replicas that turned out corrupt.

use super::actor::{Actor, Failure, Session};
use crate::{convert, reporter::Corrupt};
use proto::hdfs::{
    LocatedBlockProto,
    datanode::{ReportBadBlocksRequestProto, ReportBadBlocksResponseProto},
};

impl Actor {
    /// Reports all corrupt replicas that wait. Those that cannot be reported go back to the queue.
    pub(super) async fn report_corrupt(&self, session: &Session) -> Result<(), Failure> {
        let corrupt = self.queue.take_corrupt();
        if corrupt.is_empty() {
            return Ok(());
        }
        let blocks = corrupt.iter().map(|corrupt| located(&session.pool, corrupt)).collect();
        let result: Result<ReportBadBlocksResponseProto, _> =
            self.client.call("reportBadBlocks", &ReportBadBlocksRequestProto { blocks }).await;
        result.map(drop).map_err(|error| {
            self.queue.put_back_corrupt(corrupt);
            error.into()
        })
    }
}

fn located(pool: &str, corrupt: &Corrupt) -> LocatedBlockProto {
    LocatedBlockProto {
        b: convert::extended_to_proto(pool, corrupt.block),
        locs: vec![corrupt.node.clone()],
        storage_types: vec![proto::hdfs::StorageTypeProto::Disk.into()],
        storage_i_ds: vec![corrupt.storage_id.clone()],
        ..Default::default()
    }
}
