//! Answers other members that ask for images.

use super::{LOG_BYTES, PIECE_BYTES_MAX, purpose};
use crate::{
    client_protocol::decode,
    core::Core,
    peers::{
        codec,
        version::{Version, Versions},
    },
};
use base::{FsError, Sn};
use bytes::{Bytes, BytesMut};
use group::Message;
use journal::{Checkpoint, ReadLogError};
use proto::clover::pool as p;
use rpc::{Call, Replier, RpcError};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Pieces read at the same time; more are sent away for a moment, so that many juniors do not take the disk
/// from the journal.
const READS_MAX: usize = 4;

/// Reads under way.
#[derive(Debug, Default)]
pub struct Reads(AtomicUsize);

struct Read(Arc<Core>);

impl Read {
    fn begin(core: &Arc<Core>) -> Option<Self> {
        let before = core.pool_reads.0.fetch_add(1, Ordering::AcqRel);
        // Counted down again when it goes, whether it was one too many or not.
        let read = Self(core.clone());
        (before < READS_MAX).then_some(read)
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        self.0.pool_reads.0.fetch_sub(1, Ordering::AcqRel);
    }
}

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        "listImages" => {
            let Some((request, reply)) = decode::<p::ListImagesRequestProto>(&call, reply) else { return };
            let from = request.from.to_le_bytes();
            let parts: [&[u8]; 2] = [request.cluster_id.as_bytes(), &from];
            match check(core, &request.cluster_id, purpose::LIST, &parts, &request.mac) {
                Ok(()) => {
                    let images = core.replica.journal().images();
                    let checkpoints = images.iter().map(Checkpoint::encode).collect();
                    let reads = core.pool_reads.0.load(Ordering::Acquire) as u32;
                    reply.ok(&p::ListImagesResponseProto { checkpoints, reads: Some(reads) });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        "readImage" => {
            let Some((request, reply)) = decode::<p::ReadImageRequestProto>(&call, reply) else { return };
            match check_read(core, &request) {
                Ok((checkpoint, read)) => {
                    tokio::task::spawn_blocking(move || {
                        let answer = read_piece(&read.0, &checkpoint, request.offset, request.length);
                        drop(read);
                        match answer {
                            Ok(response) => reply.ok(&response),
                            Err(error) => {
                                tracing::warn!(%error, at = %checkpoint.at, "an image could not be read");
                                let what = format!("The image of {} cannot be read: {error}", checkpoint.at);
                                reply.fs_error(&FsError::Retry(what));
                            }
                        }
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        "readLog" => {
            let Some((request, reply)) = decode::<p::ReadLogRequestProto>(&call, reply) else { return };
            match check_read_log(core, &request) {
                Ok(read) => {
                    tokio::task::spawn_blocking(move || {
                        let answer = read_log(&read.0, &request);
                        drop(read);
                        match answer {
                            Ok(response) => reply.ok(&response),
                            Err(error) => reply.fs_error(&FsError::Retry(error.to_string())),
                        }
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

fn check_read_log(core: &Arc<Core>, request: &p::ReadLogRequestProto) -> Result<Read, FsError> {
    let from = request.from.to_le_bytes();
    let (after, up_to) = (request.after.to_le_bytes(), request.up_to.to_le_bytes());
    let newest = request.newest_version.to_le_bytes();
    let parts: [&[u8]; 5] = [request.cluster_id.as_bytes(), &from, &after, &up_to, &newest];
    check(core, &request.cluster_id, purpose::READ_LOG, &parts, &request.mac)?;
    Read::begin(core)
        .ok_or_else(|| FsError::Retry(format!("{READS_MAX} pieces of the store are being read already.")))
}

fn read_log(core: &Core, request: &p::ReadLogRequestProto) -> Result<p::ReadLogResponseProto, ReadLogError> {
    let (after, up_to) = (Sn(request.after), Sn(request.up_to));
    let (previous, entries) = match core.replica.journal().read(after, up_to, LOG_BYTES) {
        Err(ReadLogError::Gone { .. }) => return Ok(p::ReadLogResponseProto::default()),
        read => read?,
    };
    let mut fetched = BytesMut::new();
    // Whoever can read none of ours says so.
    let newest = u16::try_from(request.newest_version).unwrap_or(u16::MAX);
    let version = Versions::OURS.newest.min(Version(newest)).max(Versions::OURS.oldest);
    codec::encode(version, &Message::Fetched { previous, entries, committed: Sn(0) }, &mut fetched);
    let crc = crc32c::crc32c(&fetched);
    Ok(p::ReadLogResponseProto {
        fetched: Some(fetched.freeze()),
        crc: Some(crc),
        version: Some(version.0.into()),
    })
}

fn check_read(core: &Arc<Core>, request: &p::ReadImageRequestProto) -> Result<(Checkpoint, Read), FsError> {
    let (from, offset) = (request.from.to_le_bytes(), request.offset.to_le_bytes());
    let length = request.length.to_le_bytes();
    let parts: [&[u8]; 5] = [request.cluster_id.as_bytes(), &from, &request.checkpoint, &offset, &length];
    check(core, &request.cluster_id, purpose::READ, &parts, &request.mac)?;
    let checkpoint = Checkpoint::decode(&request.checkpoint)
        .ok_or_else(|| FsError::InvalidArgument("This is no checkpoint that this version knows.".into()))?;
    if request.offset >= checkpoint.file_bytes || !(1..=PIECE_BYTES_MAX).contains(&request.length) {
        return Err(FsError::InvalidArgument(format!(
            "{} bytes at {} of an image of {} bytes: ask for 1 to {PIECE_BYTES_MAX} bytes of it.",
            request.length, request.offset, checkpoint.file_bytes
        )));
    }
    let read = Read::begin(core)
        .ok_or_else(|| FsError::Retry(format!("{READS_MAX} pieces of images are being read already.")))?;
    Ok((checkpoint, read))
}

/// Whether a member asks.
fn check(core: &Core, cluster_id: &str, purpose: &[u8], parts: &[&[u8]], mac: &[u8]) -> Result<(), FsError> {
    let is_member = core.secret.as_ref().is_some_and(|secret| secret.verifies(purpose, parts, mac));
    if !is_member {
        return Err(FsError::AccessDenied("Images are for members of the group only.".into()));
    }
    if cluster_id != core.cluster.cluster_id {
        return Err(FsError::InvalidArgument(format!(
            "This is a member of cluster {}, not of {cluster_id}.",
            core.cluster.cluster_id
        )));
    }
    Ok(())
}

fn read_piece(
    core: &Core,
    checkpoint: &Checkpoint,
    offset: u64,
    length: u32,
) -> io::Result<p::ReadImageResponseProto> {
    let file = match core.replica.journal().open_image(checkpoint) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(p::ReadImageResponseProto::default());
        }
        opened => opened?,
    };
    let mut data = vec![0; u64::from(length).min(checkpoint.file_bytes - offset) as usize];
    env::disk::read_exact_at(&*file, &mut data, offset)?;
    let crc = crc32c::crc32c(&data);
    Ok(p::ReadImageResponseProto { data: Some(Bytes::from(data)), crc: Some(crc) })
}
