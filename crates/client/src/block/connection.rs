//! Connections to data servers.

use super::{BlockOptions, Checksums};
use bytes::BytesMut;
use pipeline::{Ack, Checksum, Reply};
use proto::{
    common::TokenProto,
    data_transfer::{Opcode, op},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ClientOperationHeaderProto, DatanodeInfoProto,
        ExtendedBlockProto, PipelineAckProto, Status,
    },
};
use rpc::streaming::{self, Inbound, Outgoing, Socket, StreamError};
use std::{io, net::SocketAddr, path::Path, time::Duration};
use thiserror::Error;

/// The time that each further server of a pipeline may add before an answer comes, as in Hadoop's client.
pub(super) const TIMEOUT_EXTENSION: Duration = Duration::from_secs(5);

/// An error of one connection.
#[derive(Debug, Error)]
pub(super) enum LinkError {
    #[error("{0}")]
    Stream(#[from] StreamError),
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side refused the operation.
    #[error("{message}")]
    Refused { message: String, first_bad_link: String },
}

pub(super) struct Link {
    pub inbound: Inbound,
    pub out: Outgoing,
}

impl Link {
    /// Connects to a server and hands it an operation.
    pub async fn open(
        node: &DatanodeInfoProto,
        code: Opcode,
        message: &impl prost::Message,
        patience: Duration,
        options: &BlockOptions,
    ) -> Result<Self, LinkError> {
        let addr = resolve(node, options).await?;
        let socket = streaming::connect(addr, options.connect_timeout).await?;
        Self::begin(socket, code, message, patience).await
    }

    /// Begins an operation like [`Link::open`], through a socket of this machine.
    pub async fn open_local(
        path: &Path,
        code: Opcode,
        message: &impl prost::Message,
        patience: Duration,
        options: &BlockOptions,
    ) -> Result<Self, LinkError> {
        let socket = streaming::connect_local(path, options.connect_timeout).await?;
        Self::begin(socket, code, message, patience).await
    }

    async fn begin(
        socket: impl Into<Socket>,
        code: Opcode,
        message: &impl prost::Message,
        patience: Duration,
    ) -> Result<Self, LinkError> {
        let (inbound, mut out) = streaming::split(socket, patience);
        let mut bytes = BytesMut::new();
        op::encode(code, message, &mut bytes);
        out.write(&bytes).await?;
        Ok(Self { inbound, out })
    }

    /// The answer to the operation, when it is a yes.
    pub async fn response(&mut self) -> Result<BlockOpResponseProto, LinkError> {
        let response: BlockOpResponseProto = self.inbound.message().await?;
        if response.status == Status::Success as i32 {
            return Ok(response);
        }
        let status = Status::try_from(response.status).map_or("an unknown status", |s| s.as_str_name());
        Err(LinkError::Refused {
            message: format!("{status}: {}", response.message()),
            first_bad_link: response.first_bad_link().to_owned(),
        })
    }
}

async fn resolve(node: &DatanodeInfoProto, options: &BlockOptions) -> io::Result<SocketAddr> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let port = u16::try_from(node.id.xfer_port)
        .map_err(|_| invalid(format!("{}: the port is above 65535", address(node))))?;
    let host = if options.by_host_name { &node.id.host_name } else { &node.id.ip_addr };
    if let Ok(ip) = host.parse() {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found = tokio::net::lookup_host((host.as_str(), port)).await?;
    found.next().ok_or_else(|| invalid(format!("{host} has no address")))
}

/// `ip:port`, as servers name each other.
pub(super) fn address(node: &DatanodeInfoProto) -> String {
    format!("{}:{}", node.id.ip_addr, node.id.xfer_port)
}

pub(crate) fn describe(block: &ExtendedBlockProto) -> String {
    format!("{}:blk_{}_{}", block.pool_id, block.block_id, block.generation_stamp)
}

pub(super) fn header(
    block: ExtendedBlockProto,
    token: &TokenProto,
    options: &BlockOptions,
) -> ClientOperationHeaderProto {
    ClientOperationHeaderProto {
        base_header: BaseHeaderProto { block, token: Some(token.clone()), trace_info: None },
        client_name: options.client_name.to_string(),
    }
}

impl BlockOptions {
    pub(super) fn checksum(&self) -> Result<Checksum, String> {
        let kind = match self.checksums {
            Checksums::None => 0,
            Checksums::Crc32 => 1,
            Checksums::Crc32c => 2,
        };
        Checksum::new(kind, self.bytes_per_checksum).map_err(|error| error.to_string())
    }
}

/// A server that sends no flags says nothing about its load.
pub(super) fn ack(ack: &PipelineAckProto) -> Ack {
    let replies = match ack.flag.len() == ack.reply.len() {
        true => ack.flag.iter().map(|flag| Reply(*flag)).collect(),
        false => ack.reply.iter().map(|code| Reply((*code & 0xf) as u32)).collect(),
    };
    Ack { seqno: ack.seqno, replies, downstream_ns: ack.downstream_ack_time_nanos() }
}
