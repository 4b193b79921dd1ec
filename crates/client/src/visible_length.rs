//! How far a block that is being written can be read.

use crate::{FileSystem, block::BlockOptions};
use proto::hdfs::{self, LocatedBlockProto};

/// Asks the block's data servers one after the other; nothing where none answers.
pub(crate) async fn of_block(
    fs: &FileSystem,
    located: &LocatedBlockProto,
    options: &BlockOptions,
) -> Option<u64> {
    let request = hdfs::GetReplicaVisibleLengthRequestProto { block: located.b.clone() };
    for node in &located.locs {
        let host = if options.by_host_name { &node.id.host_name } else { &node.id.ip_addr };
        let address = format!("{host}:{}", node.id.ipc_port);
        let client = crate::namenodes::to_data_server(&address, fs.user(), options.connect_timeout);
        match client
            .call::<_, hdfs::GetReplicaVisibleLengthResponseProto>("getReplicaVisibleLength", &request)
            .await
        {
            Ok(response) => return Some(response.length),
            Err(error) => {
                tracing::info!("{address} does not tell the length of {:?}: {error}", located.b.block_id)
            }
        }
    }
    None
}
