//! One connection: operations, one after the other.

use super::{
    checksum, copy, next::Next, peer::Peer, read, refusal::Refusal, replace, segment::HeldSegment,
    short_circuit, transfer, write,
};
use crate::state::State;
use proto::data_transfer::{Op, Opcode, delimited};
use rpc::streaming::{self, Inbound, Outgoing, Socket, StreamError};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a connection is kept for the next operation (`dfs.datanode.socket.reuse.keepalive`).
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// How long a refused sender may go on sending before the connection is cut. Hadoop's servers wait as long for
/// their last word to arrive.
const LINGER: Duration = Duration::from_secs(3);

/// A connection that has no operations any more, and stands for a segment.
pub struct Hold {
    segment: Box<HeldSegment>,
    inbound: Inbound,
    out: Outgoing,
}

impl Hold {
    /// Waits until the client does not use the segment any more.
    pub async fn wait(self) {
        self.segment.wait(self.inbound, self.out).await;
    }
}

/// Carries out operations until the connection ends, or until it stands for a segment.
pub async fn run(state: &Arc<State>, socket: Socket, peer: Peer) -> Option<Hold> {
    if let Socket::Tcp(socket) = &socket
        && let Err(error) = socket.set_nodelay(true)
    {
        tracing::debug!(%peer, %error, "a transfer connection is gone already");
        return None;
    }
    let patience = Duration::from_millis(state.config.transfer_timeout_ms);
    let (mut inbound, mut out) = streaming::split(socket, patience);
    let (call, mut is_known) = (Arc::default(), false);
    loop {
        let wait = state.waiting.begin(&call, is_known);
        let op = tokio::select! {
            // A header that trickles in has no longer than one that comes at once.
            op = timeout(patience, inbound.op()) => op.unwrap_or(Err(StreamError::Timeout(patience))),
            () = wait.is_called() => {
                tracing::debug!(%peer, "a transfer connection that waited ends: others need its place");
                return None;
            }
        };
        drop(wait);
        let op = match op {
            Ok(op) => op,
            Err(StreamError::Wire(error)) => {
                tracing::info!(%peer, %error, "no data transfer operation; the connection is closed");
                refuse(&mut inbound, &mut out, &error.into()).await;
                return None;
            }
            Err(error) => {
                tracing::debug!(%peer, %error, "a transfer connection ends");
                return None;
            }
        };
        is_known = true;
        let code = op.code;
        inbound.timeout = patience;
        let began = state.env.clock.moment();
        let result = operate(state, op, &mut inbound, &mut out, peer).await;
        // A read is over before its client has said what it thinks of it, which may take long.
        if code != Opcode::ReadBlock {
            state.counters.operated(code, began, state.env.clock.moment());
        }
        match result {
            Ok(Next::Operation) => {}
            Ok(Next::End) => {
                out.end().await;
                return None;
            }
            Ok(Next::Hold(segment)) => return Some(Hold { segment, inbound, out }),
            Err(refusal) => {
                tracing::info!(%peer, ?code, reason = refusal.message(), "a transfer operation failed");
                refuse(&mut inbound, &mut out, &refusal).await;
                return None;
            }
        }
        inbound.timeout = KEEP_ALIVE;
    }
}

async fn refuse(inbound: &mut Inbound, out: &mut Outgoing, refusal: &Refusal) {
    if let Some(response) = refusal.response()
        && out.message(&response).await.is_err()
    {
        return;
    }
    out.end().await;
    inbound.drain(LINGER).await;
}

async fn operate(
    state: &Arc<State>,
    op: Op,
    inbound: &mut Inbound,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<Next, Refusal> {
    match op.code {
        Opcode::WriteBlock => {
            write::write_block(state, delimited::decode(op.message)?, inbound, out, peer).await
        }
        Opcode::ReadBlock => {
            read::read_block(state, delimited::decode(op.message)?, inbound, out, peer).await
        }
        Opcode::BlockChecksum => checksum::block_checksum(state, delimited::decode(op.message)?, out).await,
        Opcode::TransferBlock => transfer::transfer_block(state, delimited::decode(op.message)?, out).await,
        Opcode::RequestShortCircuitFds => {
            short_circuit::request_files(state, delimited::decode(op.message)?, inbound, out).await
        }
        Opcode::ReleaseShortCircuitFds => {
            short_circuit::release_files(state, delimited::decode(op.message)?, out).await
        }
        Opcode::RequestShortCircuitShm => {
            short_circuit::request_segment(state, delimited::decode(op.message)?, out, peer).await
        }
        Opcode::CopyBlock => {
            copy::copy_block(state, delimited::decode(op.message)?, out, peer).await.map(|()| Next::End)
        }
        Opcode::ReplaceBlock => {
            replace::replace_block(state, delimited::decode(op.message)?, out, peer).await.map(|()| Next::End)
        }
        Opcode::BlockGroupChecksum => Err(Refusal::unsupported("erasure coding is not supported")),
        Opcode::Custom => Err(Refusal::unsupported("custom operations are not supported")),
    }
}
