//! One connection: operations, one after the other.

use super::{checksum, copy, read, refusal::Refusal, replace, transfer, write};
use crate::state::State;
use proto::{
    data_transfer::{Op, Opcode, delimited},
    hdfs::{ReleaseShortCircuitAccessResponseProto, ShortCircuitShmResponseProto, Status},
};
use rpc::streaming::{self, Inbound, Outgoing, StreamError};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// How long a connection is kept for the next operation (`dfs.datanode.socket.reuse.keepalive`).
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// How long a refused sender may go on sending before the connection is cut. Hadoop's servers wait as long for
/// their last word to arrive.
const LINGER: Duration = Duration::from_secs(3);

/// Whether another operation may follow on the same connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Operation,
    End,
}

pub async fn run(state: &Arc<State>, socket: TcpStream, peer: SocketAddr) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "a transfer connection is gone already");
        return;
    }
    let patience = Duration::from_millis(state.config.transfer_timeout_ms);
    let (mut inbound, mut out) = streaming::split(socket, patience);
    let mut is_known = false;
    loop {
        let wait = state.waiting.begin(is_known);
        let op = tokio::select! {
            // A header that trickles in has no longer than one that comes at once.
            op = timeout(patience, inbound.op()) => op.unwrap_or(Err(StreamError::Timeout(patience))),
            () = wait.is_called() => {
                tracing::debug!(%peer, "a transfer connection that waited ends: others need its place");
                return;
            }
        };
        drop(wait);
        let op = match op {
            Ok(op) => op,
            Err(StreamError::Wire(error)) => {
                tracing::info!(%peer, %error, "no data transfer operation; the connection is closed");
                refuse(&mut inbound, &mut out, &error.into()).await;
                return;
            }
            Err(error) => {
                tracing::debug!(%peer, %error, "a transfer connection ends");
                return;
            }
        };
        is_known = true;
        let code = op.code;
        inbound.timeout = patience;
        match operate(state, op, &mut inbound, &mut out, peer).await {
            Ok(Next::Operation) => {}
            Ok(Next::End) => {
                out.end().await;
                return;
            }
            Err(refusal) => {
                tracing::info!(%peer, ?code, reason = refusal.message(), "a transfer operation failed");
                refuse(&mut inbound, &mut out, &refusal).await;
                return;
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
    peer: SocketAddr,
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
        Opcode::RequestShortCircuitShm => {
            out.message(&ShortCircuitShmResponseProto {
                status: Status::ErrorUnsupported.into(),
                error: Some(NO_SHORT_CIRCUIT.into()),
                ..Default::default()
            })
            .await?;
            Ok(Next::Operation)
        }
        Opcode::ReleaseShortCircuitFds => {
            out.message(&ReleaseShortCircuitAccessResponseProto {
                status: Status::ErrorUnsupported.into(),
                error: Some(NO_SHORT_CIRCUIT.into()),
            })
            .await?;
            Ok(Next::Operation)
        }
        Opcode::RequestShortCircuitFds => Err(Refusal::unsupported(NO_SHORT_CIRCUIT)),
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

const NO_SHORT_CIRCUIT: &str = "short-circuit reads are not supported; read through the transfer port";
