//! Asks a data server for the open files of a replica.

use super::{replica::LocalReplica, segments::SlotHold};
use proto::{
    common::TokenProto,
    data_transfer::{Opcode, slot},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ExtendedBlockProto, OpRequestShortCircuitAccessProto,
        ShortCircuitFdResponse, Status,
    },
};
use rpc::{local::LocalLink, streaming::StreamError};
use std::{io, path::Path, time::Duration};

/// The answer of a server.
pub enum Got {
    Files(LocalReplica),
    /// This block is to be read in another way.
    NotThisOne(String),
    /// The server gives no files at all.
    Nothing(String),
}

/// Asks the server that listens at `path`. The slot belongs to the replica if there is one, and is given back otherwise.
///
/// # Errors
/// The connection could not be made or broke.
pub async fn files(
    path: &Path,
    block: &ExtendedBlockProto,
    token: &TokenProto,
    slot: Option<SlotHold>,
    patience: Duration,
) -> Result<Got, StreamError> {
    let mut link = LocalLink::connect(path, patience).await?;
    let request = OpRequestShortCircuitAccessProto {
        header: BaseHeaderProto { block: block.clone(), token: Some(token.clone()), trace_info: None },
        max_version: slot::FORMAT_VERSION,
        slot_id: slot.as_ref().map(SlotHold::to_proto),
        supports_receipt_verification: Some(true),
    };
    link.send(Opcode::RequestShortCircuitFds, &request).await?;
    let answer: BlockOpResponseProto = link.message().await?;
    let is_about_block = answer.short_circuit_access_version.is_some();
    match Status::try_from(answer.status) {
        Ok(Status::Success) => {}
        Ok(Status::ErrorUnsupported) if is_about_block => {
            return Ok(Got::NotThisOne(answer.message().to_owned()));
        }
        Ok(Status::ErrorAccessToken) => return Ok(Got::NotThisOne(answer.message().to_owned())),
        Ok(_) | Err(_) if slot.as_ref().is_some_and(SlotHold::is_orphaned) => {
            return Ok(Got::NotThisOne(answer.message().to_owned()));
        }
        Ok(_) | Err(_) => return Ok(Got::Nothing(answer.message().to_owned())),
    }
    let (byte, files) = link.descriptors().await?;
    let Ok([block_file, meta_file]) = <[_; 2]>::try_from(files) else {
        let why = "the server passed no two descriptors; this process may have as many as it may";
        return Ok(Got::NotThisOne(why.into()));
    };
    if i32::from(byte) == ShortCircuitFdResponse::UseReceiptVerification as i32 {
        link.receipt().await?;
    }
    let stamp = block.generation_stamp;
    let opened =
        tokio::task::spawn_blocking(move || LocalReplica::new(block_file, meta_file, stamp, slot)).await;
    match opened.map_err(io::Error::other)? {
        Ok(replica) => Ok(Got::Files(replica)),
        Err(error) => Ok(Got::NotThisOne(error.to_string())),
    }
}
