//! Asks a data server for the checksum of a block that it holds.

use crate::block::{BlockOptions, ReadError};
use bytes::BytesMut;
use proto::{
    data_transfer::{Opcode, delimited, op},
    hdfs::{
        self, BlockOpResponseProto, DatanodeInfoProto, LocatedBlockProto, OpBlockChecksumResponseProto,
        Status,
    },
};
use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The MD5 of a block's checksums, from the first of its servers that answers.
pub(crate) async fn of_block(
    located: &LocatedBlockProto,
    options: &BlockOptions,
) -> Result<OpBlockChecksumResponseProto, ReadError> {
    let mut reasons = Vec::new();
    for node in &located.locs {
        match ask(node, located, options).await {
            Ok(checksum) => return Ok(checksum),
            Err(error) => {
                let reason = format!("{}:{}: {error}", node.id.ip_addr, node.id.xfer_port);
                tracing::info!("no checksum of block {}: {reason}", located.b.block_id);
                reasons.push(reason);
            }
        }
    }
    let block = format!("blk_{}_{}", located.b.block_id, located.b.generation_stamp);
    let reason = if reasons.is_empty() { "no data server has one".to_owned() } else { reasons.join("; ") };
    Err(ReadError::NoReplica { block, offset: 0, reason })
}

async fn ask(
    node: &DatanodeInfoProto,
    located: &LocatedBlockProto,
    options: &BlockOptions,
) -> io::Result<OpBlockChecksumResponseProto> {
    let host = if options.by_host_name { &node.id.host_name } else { &node.id.ip_addr };
    let port = u16::try_from(node.id.xfer_port).map_err(io::Error::other)?;
    let mut stream = timeout(options.connect_timeout, TcpStream::connect((host.as_str(), port))).await??;
    let header = hdfs::BaseHeaderProto {
        block: located.b.clone(),
        token: Some(located.block_token.clone()),
        trace_info: None,
    };
    let request = hdfs::OpBlockChecksumProto { header, block_checksum_options: None };
    let mut buffer = BytesMut::new();
    op::encode(Opcode::BlockChecksum, &request, &mut buffer);
    timeout(options.io_timeout, stream.write_all(&buffer)).await??;
    buffer.clear();
    let response: BlockOpResponseProto = loop {
        if let Some(response) = delimited::take(&mut buffer).map_err(io::Error::other)? {
            break response;
        }
        if timeout(options.io_timeout, stream.read_buf(&mut buffer)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    match (response.status(), response.checksum_response) {
        (Status::Success, Some(checksum)) => Ok(checksum),
        (Status::Success, None) => Err(io::Error::other("an answer without a checksum")),
        (status, _) => {
            let message = response.message.unwrap_or_default();
            Err(io::Error::other(format!("{}: {message}", status.as_str_name())))
        }
    }
}
