//! How far a block that is being written can be read.

use crate::{Error, FileSystem, Result, block::BlockOptions};
use base::FsError;
use proto::{
    exception::{REPLICA_NOT_FOUND, RETRIABLE},
    hdfs::{self, LocatedBlockProto},
};
use std::time::Duration;
use tokio::time::Instant;

/// The pause before a data server is asked again that has said so.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks the block's data servers one after the other, as Hadoop's `DFSInputStream.readBlockLength` does. `None`: the block has
/// bytes, and no server is known that has them.
///
/// # Errors
/// [`FsError::Io`] if no server tells the length. The length that the metadata server knows may be smaller: whoever took it
/// for the end would take part of a file for all of it.
pub(crate) async fn of_block(
    fs: &FileSystem,
    located: &LocatedBlockProto,
    options: &BlockOptions,
) -> Result<Option<u64>> {
    if located.locs.is_empty() {
        return Ok((located.b.num_bytes() == 0).then_some(0));
    }
    let request = hdfs::GetReplicaVisibleLengthRequestProto { block: located.b.clone() };
    let address_of = |node: &hdfs::DatanodeInfoProto| {
        let host = if options.by_host_name { &node.id.host_name } else { &node.id.ip_addr };
        format!("{host}:{}", node.id.ipc_port)
    };
    let mut waiting: Vec<String> = located.locs.iter().map(address_of).collect();
    let (began, mut without, mut refusals) = (Instant::now(), 0, Vec::new());
    while !waiting.is_empty() {
        let mut again = Vec::new();
        for address in waiting {
            let client = crate::namenodes::to_data_server(&address, fs.user(), options.connect_timeout);
            let asked = client
                .call::<_, hdfs::GetReplicaVisibleLengthResponseProto>("getReplicaVisibleLength", &request);
            let error = match asked.await {
                // A replica that waits for its recovery has no length: -1.
                Ok(response) if i64::try_from(response.length).is_err() => {
                    refusals.push(format!("{address}: it has no length yet"));
                    continue;
                }
                Ok(response) => return Ok(Some(response.length)),
                Err(error) => error,
            };
            tracing::info!("{address} does not tell the length of {:?}: {error}", located.b.block_id);
            match error.class() {
                Some(REPLICA_NOT_FOUND) => without += 1,
                Some(RETRIABLE) if began.elapsed() < options.connect_timeout => again.push(address),
                _ => refusals.push(format!("{address}: {error}")),
            }
        }
        if !again.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        waiting = again;
    }
    // The pipeline was chosen, and nothing was sent through it yet; unless bytes are known, which other servers have then.
    if without == located.locs.len() {
        return Ok((located.b.num_bytes() == 0).then_some(0));
    }
    let (block, servers) = (&located.b, refusals.join("; "));
    Err(Error::Fs(FsError::Io(format!(
        "Cannot obtain block length for {}:blk_{}_{}, which is being written: {servers}",
        block.pool_id, block.block_id, block.generation_stamp
    ))))
}
