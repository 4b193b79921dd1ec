//! Answers other members that ask for images and entries, and for how this member's store stands.

use super::{LOG_BYTES, PIECE_BYTES_MAX, purpose, reads::Reads};
use crate::{
    client_protocol::decode,
    core::Core,
    peers::{
        Secret, codec,
        version::{Version, Versions},
    },
};
use base::{Entry, FsError, LogPoint, Sn};
use bytes::{Bytes, BytesMut};
use env::File;
use group::{Message, repair::Standing};
use journal::{Checkpoint, ReadLogError};
use proto::clover::pool as p;
use rpc::{Call, Replier, RpcError};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

/// Pieces read at the same time; more are sent away for a moment, so that many juniors do not take the disk
/// from the journal.
const READS_MAX: usize = 4;

struct Read(Arc<dyn Shelf>);

impl Read {
    fn begin(shelf: &Arc<dyn Shelf>) -> Option<Self> {
        let before = shelf.reads().0.fetch_add(1, Ordering::AcqRel);
        // Counted down again when it goes, whether it was one too many or not.
        let read = Self(shelf.clone());
        (before < READS_MAX).then_some(read)
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        self.0.reads().0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The store that a member opens to others, whether it takes part or its store is being repaired. All but the first
/// three may block, for as long as the disk takes.
pub trait Shelf: Send + Sync {
    /// The group of this member, as messages between members name it.
    fn scope(&self) -> &str;
    fn secret(&self) -> Option<&Secret>;
    fn reads(&self) -> &Reads;
    /// The images that can be read, oldest first.
    fn images(&self) -> Vec<Checkpoint>;
    fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn File>>;
    /// Reads entries after `after`, and the point before them; `None` if they are gone.
    fn read_log(&self, after: Sn, up_to: Sn) -> Result<Option<(LogPoint, Vec<Entry>)>, String>;
    /// How the store stands, and what it has at this place.
    fn standing(&self, committed: Sn) -> Result<Standing, String>;
    /// How far this member's log and images go, for a backup.
    fn archive(&self) -> Result<p::AskArchiveResponseProto, String>;
}

impl Shelf for Core {
    fn scope(&self) -> &str {
        &self.scope
    }

    fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    fn reads(&self) -> &Reads {
        &self.partition.pool_reads
    }

    fn images(&self) -> Vec<Checkpoint> {
        self.partition.member.journal().images()
    }

    fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn File>> {
        self.partition.member.journal().open_image(checkpoint)
    }

    fn read_log(&self, after: Sn, up_to: Sn) -> Result<Option<(LogPoint, Vec<Entry>)>, String> {
        match self.partition.member.journal().read(after, up_to, LOG_BYTES) {
            Ok(read) => Ok(Some(read)),
            Err(ReadLogError::Gone { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn standing(&self, committed: Sn) -> Result<Standing, String> {
        let (journal, status) = (self.partition.member.journal(), self.partition.member.status());
        let state = journal.state();
        let point = |sn: Sn| journal.read(sn, sn, 0).map(|(point, _)| point);
        let end = point(journal.durable()).map_err(|error| error.to_string())?;
        let begins_after = match point(Sn(0)) {
            Err(ReadLogError::Gone { first, .. }) => first,
            _ => Sn(0),
        };
        let serves = self.partition.member.is_serving() && self.partition.member.may_answer();
        Ok(Standing {
            store: self.partition.member.me(),
            promised: status.promised,
            begins_after,
            end,
            is_end_certain: !state.is_suspect,
            is_damaged: false,
            written: end.id.sn,
            serves: serves.then(|| self.partition.member.standing().epoch),
            at_commit: point(committed).ok(),
        })
    }

    fn archive(&self) -> Result<p::AskArchiveResponseProto, String> {
        // Before the end of the log is looked at: what was begun by then stands before that end.
        let now_ms = self.env.clock.timestamp().ms;
        let status = self.partition.member.status();
        let journal = self.partition.member.journal();
        let begins_after = match journal.read(Sn(0), Sn(0), 0) {
            Err(ReadLogError::Gone { first, .. }) => first,
            _ => Sn(0),
        };
        let serves = self.partition.member.is_serving() && self.partition.member.may_answer();
        let view_epoch = status.view.as_ref().map_or(status.promised, |(view, _)| view.epoch);
        let access = &self.config.limits.access;
        Ok(p::AskArchiveResponseProto {
            member: self.partition.member.me().member.0,
            namespace_id: self.cluster.namespace_id,
            block_pool: self.cluster.block_pool.to_string(),
            created_ms: self.cluster.created_ms,
            group: self.cluster.group.0,
            root_owner: access.superuser.to_string(),
            root_group: access.supergroup.to_string(),
            first_level: Some(self.cluster.first_level.0.into()),
            now_ms,
            committed: self.partition.commit.committed().0,
            end: status.end.id.sn.0,
            epoch: view_epoch.max(status.promised).0,
            begins_after: begins_after.0,
            serves: serves.then(|| self.partition.member.standing().epoch.0),
        })
    }
}

pub fn call(shelf: &Arc<dyn Shelf>, call: Call, reply: Replier) {
    match call.method {
        "listImages" => {
            let Some((request, reply)) = decode::<p::ListImagesRequestProto>(&call, reply) else { return };
            let from = request.from.to_le_bytes();
            let parts: [&[u8]; 2] = [request.cluster_id.as_bytes(), &from];
            match check(&**shelf, &request.cluster_id, purpose::LIST, &parts, &request.mac) {
                Ok(()) => {
                    let shelf = shelf.clone();
                    // While the store's state is being written, its images are known when that is done.
                    tokio::task::spawn_blocking(move || {
                        let checkpoints = shelf.images().iter().map(Checkpoint::encode).collect();
                        let reads = shelf.reads().0.load(Ordering::Acquire) as u32;
                        reply.ok(&p::ListImagesResponseProto { checkpoints, reads: Some(reads) });
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        "readImage" => {
            let Some((request, reply)) = decode::<p::ReadImageRequestProto>(&call, reply) else { return };
            match check_read(shelf, &request) {
                Ok((checkpoint, read)) => {
                    tokio::task::spawn_blocking(move || {
                        let answer = read_piece(&*read.0, &checkpoint, request.offset, request.length);
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
            match check_read_log(shelf, &request) {
                Ok(read) => {
                    tokio::task::spawn_blocking(move || {
                        let answer = read_log(&*read.0, &request);
                        drop(read);
                        match answer {
                            Ok(response) => reply.ok(&response),
                            Err(error) => reply.fs_error(&FsError::Retry(error)),
                        }
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        "askStanding" => {
            let Some((request, reply)) = decode::<p::AskStandingRequestProto>(&call, reply) else { return };
            match check_standing(shelf, &request) {
                Ok(read) => {
                    tokio::task::spawn_blocking(move || match read.0.standing(Sn(request.committed)) {
                        Ok(standing) => reply.ok(&told(&standing)),
                        Err(error) => reply.fs_error(&FsError::Retry(error)),
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        "askArchive" => {
            let Some((request, reply)) = decode::<p::AskArchiveRequestProto>(&call, reply) else { return };
            let from = request.from.to_le_bytes();
            let parts: [&[u8]; 2] = [request.cluster_id.as_bytes(), &from];
            match check(&**shelf, &request.cluster_id, purpose::ARCHIVE, &parts, &request.mac) {
                Ok(()) => {
                    let shelf = shelf.clone();
                    tokio::task::spawn_blocking(move || match shelf.archive() {
                        Ok(told) => reply.ok(&told),
                        Err(error) => reply.fs_error(&FsError::Retry(error)),
                    });
                }
                Err(error) => reply.fs_error(&error),
            }
        }
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

fn check_standing(shelf: &Arc<dyn Shelf>, request: &p::AskStandingRequestProto) -> Result<Read, FsError> {
    let (from, committed) = (request.from.to_le_bytes(), request.committed.to_le_bytes());
    let parts: [&[u8]; 3] = [request.cluster_id.as_bytes(), &from, &committed];
    check(&**shelf, &request.cluster_id, purpose::STANDING, &parts, &request.mac)?;
    Read::begin(shelf)
        .ok_or_else(|| FsError::Retry(format!("{READS_MAX} pieces of the store are being read already.")))
}

fn told(standing: &Standing) -> p::AskStandingResponseProto {
    let point =
        |point: LogPoint| p::PointProto { epoch: point.id.epoch.0, sn: point.id.sn.0, chain: point.chain.0 };
    p::AskStandingResponseProto {
        member: standing.store.member.0,
        generation: standing.store.generation,
        promised: standing.promised.0,
        begins_after: standing.begins_after.0,
        end: point(standing.end),
        is_end_certain: standing.is_end_certain,
        is_damaged: standing.is_damaged,
        written: standing.written.0,
        serves: standing.serves.map(|epoch| epoch.0),
        at_commit: standing.at_commit.map(point),
    }
}

fn check_read_log(shelf: &Arc<dyn Shelf>, request: &p::ReadLogRequestProto) -> Result<Read, FsError> {
    let from = request.from.to_le_bytes();
    let (after, up_to) = (request.after.to_le_bytes(), request.up_to.to_le_bytes());
    let newest = request.newest_version.to_le_bytes();
    let parts: [&[u8]; 5] = [request.cluster_id.as_bytes(), &from, &after, &up_to, &newest];
    check(&**shelf, &request.cluster_id, purpose::READ_LOG, &parts, &request.mac)?;
    Read::begin(shelf)
        .ok_or_else(|| FsError::Retry(format!("{READS_MAX} pieces of the store are being read already.")))
}

fn read_log(shelf: &dyn Shelf, request: &p::ReadLogRequestProto) -> Result<p::ReadLogResponseProto, String> {
    let Some((previous, entries)) = shelf.read_log(Sn(request.after), Sn(request.up_to))? else {
        return Ok(p::ReadLogResponseProto::default());
    };
    let mut fetched = BytesMut::new();
    // A member that can read none of our versions says so.
    let newest = u16::try_from(request.newest_version).unwrap_or(u16::MAX);
    let version = Versions::OURS.newest.min(Version(newest)).max(Versions::OURS.oldest);
    codec::encode(
        version,
        &Message::Fetched { epoch: base::Epoch(0), previous, entries, committed: Sn(0) }.into(),
        &mut fetched,
    );
    let crc = crc32c::crc32c(&fetched);
    Ok(p::ReadLogResponseProto {
        fetched: Some(fetched.freeze()),
        crc: Some(crc),
        version: Some(version.0.into()),
    })
}

fn check_read(
    shelf: &Arc<dyn Shelf>,
    request: &p::ReadImageRequestProto,
) -> Result<(Checkpoint, Read), FsError> {
    let (from, offset) = (request.from.to_le_bytes(), request.offset.to_le_bytes());
    let length = request.length.to_le_bytes();
    let parts: [&[u8]; 5] = [request.cluster_id.as_bytes(), &from, &request.checkpoint, &offset, &length];
    check(&**shelf, &request.cluster_id, purpose::READ, &parts, &request.mac)?;
    let checkpoint = Checkpoint::decode(&request.checkpoint)
        .ok_or_else(|| FsError::InvalidArgument("This is no checkpoint that this version knows.".into()))?;
    if request.offset >= checkpoint.file_bytes || !(1..=PIECE_BYTES_MAX).contains(&request.length) {
        return Err(FsError::InvalidArgument(format!(
            "{} bytes at {} of an image of {} bytes: ask for 1 to {PIECE_BYTES_MAX} bytes of it.",
            request.length, request.offset, checkpoint.file_bytes
        )));
    }
    let read = Read::begin(shelf)
        .ok_or_else(|| FsError::Retry(format!("{READS_MAX} pieces of images are being read already.")))?;
    Ok((checkpoint, read))
}

/// Whether a member asks.
fn check(shelf: &dyn Shelf, scope: &str, purpose: &[u8], parts: &[&[u8]], mac: &[u8]) -> Result<(), FsError> {
    let is_member = shelf.secret().is_some_and(|secret| secret.verifies(purpose, parts, mac));
    if !is_member {
        return Err(FsError::AccessDenied("Images and entries are for members of the group only.".into()));
    }
    if scope != shelf.scope() {
        return Err(FsError::InvalidArgument(format!(
            "This is a member of cluster {}, not of {scope}.",
            shelf.scope()
        )));
    }
    Ok(())
}

fn read_piece(
    shelf: &dyn Shelf,
    checkpoint: &Checkpoint,
    offset: u64,
    length: u32,
) -> io::Result<p::ReadImageResponseProto> {
    let file = match shelf.open_image(checkpoint) {
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
