//! Making, moving and removing files and directories; leases.

use super::{
    answers::{Encoded, boolean},
    calls::{self, decode},
    status,
    steps::{self, End},
};
use crate::{
    core::Core,
    partition::{Partition, turn::Turn},
};
use base::InodeId;
use namespace::{FileKind, FileStatus, Planned, Reply, ops, reads};
use proto::{answers::Only, hdfs as p};
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn mkdirs(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::MkdirsRequestProto>(&call, reply) else { return };
    let request = ops::mkdirs::Request {
        path: request.src,
        permission: request.masked.perm as u16,
        unmasked: request.unmasked.map(|unmasked| unmasked.perm as u16),
        create_parent: request.create_parent,
    };
    calls::write(core, call, reply, request, |_, essentials| p::MkdirsResponseProto {
        result: boolean(essentials),
    });
}

pub fn create(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CreateRequestProto>(&call, reply) else { return };
    let machine = call.origin.address.map(|address| address.to_string()).unwrap_or_default();
    core.partition.renewals.lock().renew(&request.client_name, core.moment());
    let request = ops::create::Request {
        path: request.src,
        permission: request.masked.perm as u16,
        unmasked: request.unmasked.map(|unmasked| unmasked.perm as u16),
        holder: request.client_name,
        client_machine: machine,
        flags: request.create_flag,
        create_parent: request.create_parent,
        replication: request.replication,
        block_size: request.block_size,
        storage_policy: request.storage_policy,
        erasure_coding: request.ec_policy_name,
    };
    calls::turn(core, call, reply, move |turn, call| {
        ops::create::check_path(&request.path, &turn.partition().config.limits)?;
        let Reply::Created(inode) = calls::run(turn, call, &request)? else { return Ok(created(None)) };
        Ok(match reads::get_file_info::by_id(turn.namespace(), inode) {
            Some(fs) => created(Some(&fs)),
            None => as_it_was_made(turn, call, &request, inode),
        })
    });
}

fn created(file: Option<&FileStatus<'_>>) -> Encoded {
    Encoded::of(Only(file.map(|file| status::view(file, status::Name::Empty))))
}

/// The answer to a call that was repeated so late that others have deleted its file: the file as it was when it was
/// made. Hadoop remembers the whole status with the call, and its client breaks on an answer without one
/// (`DFSOutputStream.newStreamForCreate`: "HdfsFileStatus should not be null!").
fn as_it_was_made(turn: &Turn<'_>, call: &Call, request: &ops::create::Request, inode: InodeId) -> Encoded {
    let parent = request.path.rfind('/').map_or("/", |at| &request.path[..at.max(1)]);
    let group = turn.plan_own(|namespace, context, _| {
        let parent = reads::get_file_info::get(namespace, context, parent).ok().flatten();
        parent.map_or(&*context.limits.access.supergroup, |parent| parent.group).to_owned()
    });
    created(Some(&FileStatus {
        id: inode,
        kind: FileKind::File,
        name: b"",
        length: 0,
        permission: request.permission,
        owner: &call.caller.user,
        group: &group,
        modified: turn.now,
        accessed: turn.now,
        replication: request.replication as u16,
        block_size: request.block_size,
        children_count: 0,
        storage_policy: 0,
        snapshottable: false,
        has_acl: false,
        under_construction: true,
    }))
}

pub fn rename(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RenameRequestProto>(&call, reply) else { return };
    let request = ops::rename::Request { source: request.src, destination: request.dst };
    calls::write(core, call, reply, request, |_, essentials| p::RenameResponseProto {
        result: boolean(essentials),
    });
}

pub fn rename2(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::Rename2RequestProto>(&call, reply) else { return };
    let request = ops::rename2::Request {
        source: request.src,
        destination: request.dst,
        overwrite: request.overwrite_dest,
        to_trash: request.move_to_trash.unwrap_or(false),
    };
    calls::write(core, call, reply, request, |_, _| p::Rename2ResponseProto {});
}

pub fn delete(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::DeleteRequestProto>(&call, reply) else { return };
    let request = ops::delete::Request { path: request.src, recursive: request.recursive };
    calls::write(core, call, reply, request, |_, essentials| p::DeleteResponseProto {
        result: boolean(essentials),
    });
}

pub fn renew_lease(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RenewLeaseRequestProto>(&call, reply) else { return };
    core.partition.renewals.lock().renew(&request.client_name, core.moment());
    reply.ok(&p::RenewLeaseResponseProto {});
}

pub fn recover_lease(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RecoverLeaseRequestProto>(&call, reply) else { return };
    let request = ops::recover_lease::Request { path: request.src, holder: request.client_name };
    calls::turn(core, call, reply, move |turn, call| {
        // While it is false the client asks again.
        let result = match steps::follow(turn, call, &request)? {
            End::Answered(essentials) => boolean(essentials?),
            End::Allocate(..) | End::Wait(_) => false,
        };
        Ok(p::RecoverLeaseResponseProto { result })
    });
}

/// A write of the service's own: a file was read after its access time had become too old.
pub fn note_access(partition: &Arc<Partition>, inode: base::InodeId) {
    // A full queue has better things to do than access times, and in safe mode nothing changes.
    if partition.standing().admit_own().is_err() || partition.blocks.lock().in_safe_mode() {
        return;
    }
    partition.write(Box::new(move |turn| {
        let planned =
            turn.plan_own(|namespace, context, _| ops::set_times::plan_access(namespace, context, inode));
        if let Planned::Edit(edit) = planned {
            turn.apply(edit);
        }
    }));
}
