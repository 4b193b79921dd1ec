//! Replicas that turned out corrupt.

use super::actor::{Actor, Failure, Session};
use proto::hdfs::datanode::{ReportBadBlocksRequestProto, ReportBadBlocksResponseProto};

impl Actor {
    /// Reports all corrupt replicas that wait. Those that cannot be reported go back to the queue.
    pub(super) async fn report_corrupt(&self, session: &Session) -> Result<(), Failure> {
        let corrupt = session.queue.take_corrupt();
        if corrupt.is_empty() {
            return Ok(());
        }
        let blocks = corrupt.iter().map(|corrupt| session.pool.located(corrupt)).collect();
        let result: Result<ReportBadBlocksResponseProto, _> =
            self.client.call("reportBadBlocks", &ReportBadBlocksRequestProto { blocks }).await;
        result.map(drop).map_err(|error| {
            session.queue.put_back_corrupt(corrupt);
            error.into()
        })
    }
}
