//! Reads a range of one block from its replicas.

use super::{
    BadReplica, BlockOptions, ReadError,
    connection::{Link, LinkError, address, describe, header},
    local::FileSource,
};
use bytes::Bytes;
use pipeline::{Checksum, Range};
use proto::{
    data_transfer::Opcode,
    hdfs::{ClientReadStatusProto, LocatedBlockProto, OpReadBlockProto, Status},
};
use std::ops;

/// A range of a block on its way in, from one replica at a time. All bytes that it returns have been checked against
/// the replica's checksums. When a replica fails, it goes on with the next one.
pub struct BlockReader {
    located: LocatedBlockProto,
    options: BlockOptions,
    /// The range of the block that has not been returned yet.
    wanted: ops::Range<u64>,
    source: Option<Source>,
    /// The replica is not read from files or through a socket of this machine, since that has failed.
    is_local_over: bool,
    /// Servers not tried yet, the nearest last.
    untried: Vec<usize>,
    bad_replicas: Vec<BadReplica>,
    /// Why each server was left.
    reasons: Vec<String>,
}

/// The replica being read.
struct Source {
    node: usize,
    way: Way,
}

enum Way {
    Stream(Box<Stream>),
    Files(FileSource),
}

/// Packets of a data server.
struct Stream {
    link: Link,
    checksum: Checksum,
    range: Range,
}

enum Failure {
    Link(String),
    Corrupt(String),
    /// The server is not to blame: its stream tells what is true of the replica.
    Local(String),
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::Link(error.to_string())
    }
}

impl BlockReader {
    /// Opens `length` bytes from `offset` (both within the block) on the first replica that answers.
    ///
    /// # Errors
    /// [`ReadError::NoReplica`] if no data server of the location lets the replica be read; [`ReadError::Misuse`] if
    /// the range ends beyond 2^64.
    pub async fn open(
        located: &LocatedBlockProto,
        offset: u64,
        length: u64,
        options: &BlockOptions,
    ) -> Result<Self, ReadError> {
        let end = offset
            .checked_add(length)
            .ok_or_else(|| ReadError::Misuse(format!("offset {offset} and length {length} overflow")))?;
        let mut reader = Self {
            located: located.clone(),
            options: options.clone(),
            wanted: offset..end,
            source: None,
            is_local_over: false,
            untried: (0..located.locs.len()).rev().collect(),
            bad_replicas: Vec::new(),
            reasons: Vec::new(),
        };
        if length > 0 {
            reader.connect().await?;
        }
        Ok(reader)
    }

    /// The next bytes, verified against their checksums; nothing at the end of the range. Goes on with
    /// another replica where one fails.
    ///
    /// # Errors
    /// [`ReadError::NoReplica`] if every replica has failed: the server broke off, was silent for too long, or sent
    /// bytes that do not match their checksums.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        while !self.wanted.is_empty() {
            if self.source.is_none() {
                self.connect().await?;
            }
            let Some(source) = &mut self.source else { continue };
            let failure = match source.next().await {
                Ok(data) if data.is_empty() => continue,
                Ok(data) => {
                    self.wanted.start += data.len() as u64;
                    if self.wanted.is_empty()
                        && let Some(source) = self.source.take()
                    {
                        source.finish().await;
                    }
                    return Ok(Some(data));
                }
                Err(failure) => failure,
            };
            let node = source.node;
            self.source = None;
            self.leave(node, failure);
        }
        Ok(None)
    }

    /// Opens what is left of the range on the next server that has not failed yet.
    async fn connect(&mut self) -> Result<(), ReadError> {
        while let Some(node) = self.untried.pop() {
            match self.open_on(node).await {
                Ok(source) => {
                    self.source = Some(source);
                    return Ok(());
                }
                Err(failure) => self.leave(node, failure),
            }
        }
        Err(ReadError::NoReplica {
            block: describe(&self.located.b),
            offset: self.wanted.start,
            reason: match &*self.reasons {
                [] => "no data server has one".into(),
                reasons => reasons.join("; "),
            },
        })
    }

    async fn open_on(&self, node: usize) -> Result<Source, Failure> {
        let message = OpReadBlockProto {
            header: header(self.located.b.clone(), &self.located.block_token, &self.options),
            offset: self.wanted.start,
            len: self.wanted.end - self.wanted.start,
            send_checksums: Some(true),
            caching_strategy: None,
        };
        let location = &self.located.locs[node];
        let local = self.options.local.as_ref().filter(|_| !self.is_local_over);
        if let Some(local) = local {
            let (block, token) = (&self.located.b, &self.located.block_token);
            if let Some(replica) = local.replica(location, block, token, self.wanted.end).await {
                let files = FileSource::new(local.clone(), replica, self.wanted.clone());
                return Ok(Source { node, way: Way::Files(files) });
            }
        }
        let patience = self.options.io_timeout;
        let mut link = None;
        if let Some(local) = local
            && let Some(path) = local.data_path(location)
        {
            match Link::open_local(&path, Opcode::ReadBlock, &message, patience, &self.options).await {
                Ok(opened) => link = Some(opened),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a data server is not reached through its socket");
                    local.data_failed(&path);
                }
            }
        }
        let mut link = match link {
            Some(link) => link,
            None => Link::open(location, Opcode::ReadBlock, &message, patience, &self.options).await?,
        };
        let response = link.response().await?;
        let info = response
            .read_op_checksum_info
            .ok_or_else(|| Failure::Link("the server does not say how the data is summed".into()))?;
        let checksum = Checksum::new(info.checksum.r#type, info.checksum.bytes_per_checksum)
            .map_err(|error| Failure::Link(error.to_string()))?;
        let range = Range::new(checksum, self.wanted.clone(), info.chunk_offset)
            .map_err(|error| Failure::Link(error.to_string()))?;
        Ok(Source { node, way: Way::Stream(Box::new(Stream { link, checksum, range })) })
    }

    fn leave(&mut self, node: usize, failure: Failure) {
        let location = &self.located.locs[node];
        let (is_corrupt, reason) = match failure {
            Failure::Link(reason) => (false, reason),
            Failure::Corrupt(reason) => (true, reason),
            Failure::Local(reason) => {
                let block = describe(&self.located.b);
                tracing::info!(block, reason, "a replica's files cannot be read; its server is asked");
                self.is_local_over = true;
                self.untried.push(node);
                if let Some(local) = &self.options.local {
                    local.forget(&self.located.b);
                }
                return;
            }
        };
        let reason = format!("{}: {reason}", address(location));
        tracing::warn!(block = describe(&self.located.b), reason, "a replica cannot be read");
        self.reasons.push(reason);
        if is_corrupt {
            self.bad_replicas.push(BadReplica {
                block: self.located.b.clone(),
                node: location.clone(),
                storage_id: self.located.storage_i_ds.get(node).cloned().unwrap_or_default(),
            });
        }
    }

    /// Replicas met so far whose bytes do not match their checksums (`reportBadBlocks`).
    pub fn bad_replicas(&self) -> &[BadReplica] {
        &self.bad_replicas
    }

    /// Bytes of the range not yet returned.
    pub fn remaining(&self) -> u64 {
        self.wanted.end - self.wanted.start
    }
}

impl Source {
    async fn next(&mut self) -> Result<Bytes, Failure> {
        match &mut self.way {
            Way::Stream(stream) => stream.next().await,
            Way::Files(files) => files.next().await.map_err(Failure::Local),
        }
    }

    async fn finish(self) {
        match self.way {
            Way::Stream(stream) => stream.finish().await,
            Way::Files(_) => {}
        }
    }
}

impl Stream {
    /// The wanted part of the next packet.
    async fn next(&mut self) -> Result<Bytes, Failure> {
        let packet = self.link.inbound.packet().await.map_err(|error| Failure::Link(error.to_string()))?;
        let piece = self
            .range
            .on_packet(&packet.header, packet.sums.len())
            .map_err(|error| Failure::Link(error.to_string()))?;
        if let Err(mismatch) = self.checksum.verify(&packet.data, &packet.sums) {
            let offset = packet.header.offset_in_block;
            return Err(Failure::Corrupt(format!("the packet at offset {offset}: {mismatch}")));
        }
        Ok(packet.data.slice(piece))
    }

    /// Hears the server out and tells it that all was well. Nothing depends on it.
    async fn finish(mut self) {
        while !self.range.has_ended() {
            if self.next().await.is_err() {
                return;
            }
        }
        let status = match self.checksum.size() {
            0 => Status::Success,
            _ => Status::ChecksumOk,
        };
        let _ = self.link.out.message(&ClientReadStatusProto { status: status.into() }).await;
    }
}
