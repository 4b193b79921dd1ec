//! What clients that watch the namespace are told (HDFS's inotify): `DFSInotifyEventInputStream` asks both calls.
//!
//! The events themselves are [`namespace::events`], and the tree keeps those of the latest entries while a client watches ([`crate::watchers`]).
//! A transaction id is the number of an entry of the group's log, so a stream goes on where it was when another member takes over.

use super::{
    acls, calls, decode, require_superuser,
    turns::{after_commit, in_turn},
    xattrs,
};
use crate::core::Core;
use base::{FsError, FsResult, GroupId, Sn, Timestamp};
use namespace::{
    Privileged, Sight,
    events::{Created, Event, Update},
};
use prost::Message;
use proto::hdfs as p;
use rpc::{Call, Replier};
use serving::{Basis, RecentEvents, Tree, recent_events::Batch};
use std::sync::Arc;

/// The number of the last entry that has committed. The events behind it are there for a client that asks for them.
pub fn get_current_edit_log_txid(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetCurrentEditLogTxidRequestProto>(&call, reply) else { return };
    let answer = |txid: Sn| p::GetCurrentEditLogTxidResponseProto { txid: txid.0 as i64 };
    let operation = Privileged::GetCurrentEditLogTxid;
    if check_lone_group(core).is_err() {
        // No event is told here, so none is kept.
        return calls::once_certain(core, &call, reply, Sight::Nothing, || {
            require_superuser(core, &call, operation)?;
            Ok(answer(core.partition.commit.committed()))
        });
    }
    let look = move |tree: &Tree, committed: Sn| {
        let is_kept = |events: &RecentEvents| events.first().0 <= committed.0 + 1;
        tree.events().is_some_and(is_kept).then(|| answer(committed))
    };
    watch(core, call, reply, operation, look, answer);
}

/// The events of committed entries from a number on, as many as one answer may have.
pub fn get_edits_from_txid(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetEditsFromTxidRequestProto>(&call, reply) else { return };
    if let Err(error) = check_lone_group(core) {
        let refused = require_superuser(core, &call, Privileged::GetEditsFromTxid).err();
        return reply.fs_error(&refused.unwrap_or(error));
    }
    let from = Sn(request.txid.try_into().unwrap_or(0));
    let events_max = core.config.call_queue.events_max;
    let look = move |tree: &Tree, committed: Sn| {
        let events = tree.events()?;
        Some(listed(events, from, committed, events_max))
    };
    // Events are kept from now on. The next answer says which are missing.
    let begun = |applied| to_list(None, applied, Vec::new());
    watch(core, call, reply, Privileged::GetEditsFromTxid, look, begun);
}

/// # Errors
/// The namespace is held by several groups. Each has a log of its own, and no order in which a client could be told all of them.
fn check_lone_group(core: &Core) -> FsResult<()> {
    if core.partition.cluster.group == GroupId::ROOT && !core.partition.has_homes() {
        return Ok(());
    }
    Err(FsError::Unsupported(
        "Watching the namespace's changes (inotify) is possible only where one group of metadata servers holds it; this namespace has several, and the \
         transaction ids of each are its own."
            .into(),
    ))
}

/// Answers with what `look` finds in the tree. If it finds nothing because events were not kept so far, they are from the next turn on, and `begun` makes
/// the answer of the last entry that was applied then, once that has committed.
fn watch<M: Message + 'static>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    operation: Privileged,
    look: impl FnOnce(&Tree, Sn) -> Option<M>,
    begun: impl FnOnce(Sn) -> M + Send + 'static,
) {
    if let Err(error) = require_superuser(core, &call, operation) {
        return reply.fs_error(&error);
    }
    let Some(epoch) = calls::begin(&core.partition) else { return calls::hand_over(core, call, reply) };
    core.partition.member.on_watcher();
    let found = {
        let tree = core.partition.tree();
        look(&tree, core.partition.commit.committed())
    };
    if let Some(found) = found {
        return calls::answer_since(core, epoch, &call, reply, Sight::Nothing, move |_, _| Ok(found));
    }
    in_turn(core, call, reply, move |core, turn, call, reply| {
        let answer = begun(turn.applied());
        after_commit(core, turn, call, reply, Basis::Reading, Ok(answer));
    });
}

fn listed(
    events: &RecentEvents,
    from: Sn,
    committed: Sn,
    events_max: usize,
) -> p::GetEditsFromTxidResponseProto {
    let told = events.told(from, committed, events_max);
    to_list(told.span, committed, told.batches.into_iter().map(to_batch).collect())
}

fn to_list(
    span: Option<(Sn, Sn)>,
    committed: Sn,
    batch: Vec<p::EventBatchProto>,
) -> p::GetEditsFromTxidResponseProto {
    // With -1 a client knows that nothing was read.
    let (first_txid, last_txid) = span.map_or((-1, -1), |(first, last)| (first.0 as i64, last.0 as i64));
    let sync_txid = committed.0 as i64;
    let events_list = p::EventsListProto { events: Vec::new(), first_txid, last_txid, sync_txid, batch };
    p::GetEditsFromTxidResponseProto { events_list }
}

fn to_batch(batch: &Batch) -> p::EventBatchProto {
    p::EventBatchProto { txid: batch.at.0 as i64, events: batch.events.iter().map(to_event).collect() }
}

fn to_event(event: &Event) -> p::EventProto {
    let of = |kind: p::EventType, contents: Vec<u8>| p::EventProto {
        r#type: kind as i32,
        contents: contents.into(),
    };
    let ms = |time: &Timestamp| time.ms as i64;
    match event {
        Event::Create(created) => of(p::EventType::EventCreate, to_create(created).encode_to_vec()),
        Event::Close { path, length, time } => {
            let file_size = length.map_or(-1, |length| length as i64);
            let close = p::CloseEventProto { path: path.to_string(), file_size, timestamp: ms(time) };
            of(p::EventType::EventClose, close.encode_to_vec())
        }
        Event::Append { path, new_block } => {
            let append = p::AppendEventProto { path: path.to_string(), new_block: Some(*new_block) };
            of(p::EventType::EventAppend, append.encode_to_vec())
        }
        Event::Rename { from, to, time } => {
            let (src_path, dest_path) = (from.to_string(), to.to_string());
            let rename = p::RenameEventProto { src_path, dest_path, timestamp: ms(time) };
            of(p::EventType::EventRename, rename.encode_to_vec())
        }
        Event::Update { path, update } => {
            of(p::EventType::EventMetadata, to_update(path, update).encode_to_vec())
        }
        Event::Unlink { path, time } => {
            let unlink = p::UnlinkEventProto { path: path.to_string(), timestamp: ms(time) };
            of(p::EventType::EventUnlink, unlink.encode_to_vec())
        }
        Event::Truncate { path, length, time } => {
            let truncate = p::TruncateEventProto {
                path: path.to_string(),
                file_size: *length as i64,
                timestamp: ms(time),
            };
            of(p::EventType::EventTruncate, truncate.encode_to_vec())
        }
    }
}

fn to_create(created: &Created) -> p::CreateEventProto {
    let kind = match created.file {
        Some(_) => p::INodeType::ITypeFile,
        None => p::INodeType::ITypeDirectory,
    };
    p::CreateEventProto {
        r#type: kind as i32,
        path: created.path.to_string(),
        ctime: created.time.ms as i64,
        owner_name: created.owner.to_string(),
        group_name: created.group.to_string(),
        perms: p::FsPermissionProto { perm: u32::from(created.mode) },
        replication: Some(created.file.map_or(0, |file| i32::from(file.replication))),
        symlink_target: Some(String::new()),
        overwrite: Some(created.file.is_some_and(|file| file.replaces)),
        default_block_size: Some(created.file.map_or(0, |file| file.block_size as i64)),
        erasure_coded: created.file.map(|_| false),
    }
}

/// Fields that the update does not concern have the values that Hadoop's servers send.
fn to_update(path: &str, update: &Update) -> p::MetadataUpdateEventProto {
    use p::MetadataUpdateType as Type;
    let mut message = p::MetadataUpdateEventProto {
        path: path.to_owned(),
        r#type: 0,
        mtime: Some(0),
        atime: Some(0),
        replication: Some(0),
        owner_name: Some(String::new()),
        group_name: Some(String::new()),
        perms: None,
        acls: Vec::new(),
        x_attrs: Vec::new(),
        x_attrs_removed: Some(false),
    };
    let kind = match update {
        Update::Times { modified, accessed } => {
            let ms = |time: &Option<Timestamp>| Some(time.map_or(-1, |time| time.ms as i64));
            (message.mtime, message.atime) = (ms(modified), ms(accessed));
            Type::MetaTypeTimes
        }
        Update::Replication(replication) => {
            message.replication = Some(i32::from(*replication));
            Type::MetaTypeReplication
        }
        Update::Owner { owner, group } => {
            let name = |name: &Option<Box<str>>| Some(name.as_deref().unwrap_or_default().to_owned());
            (message.owner_name, message.group_name) = (name(owner), name(group));
            Type::MetaTypeOwner
        }
        Update::Mode(mode) => {
            message.perms = Some(p::FsPermissionProto { perm: u32::from(*mode) });
            Type::MetaTypePerms
        }
        Update::Acl(entries) => {
            message.acls = entries.iter().map(acls::entry_to).collect();
            Type::MetaTypeAcls
        }
        Update::XattrsSet(set) => {
            message.x_attrs = set.iter().map(xattrs::to_proto).collect();
            Type::MetaTypeXattrs
        }
        Update::XattrsRemoved(removed) => {
            message.x_attrs = removed.iter().map(xattrs::name_to_proto).collect();
            message.x_attrs_removed = Some(true);
            Type::MetaTypeXattrs
        }
    };
    message.r#type = kind as i32;
    message
}
