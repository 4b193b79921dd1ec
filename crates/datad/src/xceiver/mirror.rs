//! The next server of a pipeline, seen from the one before it.

use super::{
    refusal::Refusal,
    request::{self, Write},
};
use crate::{slowness::PeerTimes, state::State};
use bytes::BytesMut;
use proto::{
    data_transfer::{Opcode, op},
    hdfs::{BlockOpResponseProto, OpWriteBlockProto, Status},
};
use rpc::streaming::{self, Inbound, Outgoing};
use std::{sync::Arc, time::Duration};

/// The time that each further server of a pipeline may add before an answer comes (Hadoop's
/// `READ_TIMEOUT_EXTENSION`).
const TIMEOUT_EXTENSION: Duration = Duration::from_secs(5);

/// How long a server may take to accept a connection. The host of one that is gone may answer nothing at all, and the writer waits meanwhile.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

pub struct Mirror {
    pub inbound: Inbound,
    pub out: Outgoing,
    /// Where the times of packets are noted, if they are.
    pub times: Option<Arc<PeerTimes>>,
}

/// Connects to the first target and hands it the rest of the pipeline. For a client's pipeline its answer is
/// awaited; a refusal names the server that is to blame.
pub async fn open(state: &State, write: &Write) -> Result<Mirror, Refusal> {
    let target = &write.header.targets[0];
    let addr = request::socket_addr(target)?;
    let bad_link = |reason: String| {
        let address = request::address(target);
        tracing::info!(block = %write.block, mirror = address, reason, "no pipeline to the next server");
        Refusal::bad_link(address.clone(), format!("no pipeline to {address}: {reason}"))
    };
    let patience = Duration::from_millis(state.config.transfer_timeout_ms)
        + TIMEOUT_EXTENSION * write.header.targets.len() as u32;
    let socket = streaming::connect(addr, patience.min(CONNECT_LIMIT))
        .await
        .map_err(|error| bad_link(error.to_string()))?;
    let (mut inbound, mut out) = streaming::split(socket, patience);

    let mut bytes = BytesMut::new();
    op::encode(Opcode::WriteBlock, &forwarded(&write.header), &mut bytes);
    out.write(&bytes).await.map_err(|error| bad_link(error.to_string()))?;
    if write.is_acknowledged() {
        let response: BlockOpResponseProto =
            inbound.message().await.map_err(|error| bad_link(error.to_string()))?;
        if response.status != Status::Success as i32 {
            // The blame goes where the one further down put it, or to the mirror itself.
            let first_bad_link = match response.first_bad_link() {
                "" => request::address(target),
                link => link.to_owned(),
            };
            let status = Status::try_from(response.status).unwrap_or(Status::Error);
            return Err(Refusal::Answer { status, message: response.message().to_owned(), first_bad_link });
        }
    }
    // Only of the last server is it known that it does not wait for another.
    let times = match &write.header.targets[..] {
        [last] => state.slowness.peer(&last.id, state.env.clock.moment()),
        _ => None,
    };
    Ok(Mirror { inbound, out, times })
}

/// The header for the next server: what was the first target's is now its own.
fn forwarded(header: &OpWriteBlockProto) -> OpWriteBlockProto {
    let mut header = header.clone();
    header.targets.remove(0);
    if !header.target_storage_types.is_empty() {
        header.storage_type = Some(header.target_storage_types.remove(0));
    }
    if !header.target_storage_ids.is_empty() {
        header.storage_id = Some(header.target_storage_ids.remove(0));
    }
    if !header.target_pinnings.is_empty() {
        header.pinning = Some(header.target_pinnings.remove(0));
    }
    header
}
