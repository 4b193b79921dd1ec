//! What a data server says may be long under way, and arrive behind what it has said since.
//!
//! A data server sends its reports one after the other, each behind the answer to the one before. If it waits no longer for
//! an answer, it closes the connection and makes another. The call that it has given up may still be on its way
//! through the old connection. A full report that is older than a deletion would bring the deleted replica back here, and here only;
//! a good replica elsewhere would then be deleted as superfluous, the last one even. News of single replicas would do the same.
//!
//! So the connections are compared. Once a data server has reported on one, no report counts any more that comes on a
//! connection made earlier, and neither does the rest of a long one that had begun there. Heartbeats do not say which replicas there are,
//! and nothing rests on their order. All data servers keep to this: Hadoop's have one thread for their reports, and their RPC client closes
//! the connection of a call that it gives up; Clover's do likewise. HDFS's metadata server believes whatever arrives.

use crate::{
    broken::Broken,
    map::BlockMap,
    words::{ServerError, ServerId},
};

impl BlockMap {
    /// The number of the data server that reports.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] or [`ServerError::AnotherHolds`] if the server may not speak;
    /// [`ServerError::Overtaken`] if it has reported on a later connection.
    pub(crate) fn reporter(&mut self, id: ServerId) -> Result<u32, ServerError> {
        let index = self.speaker(id)?;
        if self.is_overtaken(index, id.connection) {
            return Err(ServerError::Overtaken);
        }
        let server = self.servers.get_mut(index);
        server.reports_on = server.reports_on.max(id.connection);
        Ok(index)
    }

    /// Whether the data server has reported on a later connection than this one.
    pub(crate) fn is_overtaken(&self, server: u32, connection: u64) -> bool {
        connection < self.servers.get(server).reports_on
            && !self.config.rules.break_rule(Broken::LateWordsTrusted)
    }
}
