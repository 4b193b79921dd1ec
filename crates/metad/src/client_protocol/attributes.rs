//! chmod, chown, touch, setrep.

use super::{
    answers::boolean,
    calls::{self, decode},
};
use crate::core::Core;
use namespace::ops;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn set_permission(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetPermissionRequestProto>(&call, reply) else { return };
    let request =
        ops::set_permission::Request { path: request.src, permission: request.permission.perm as u16 };
    calls::write(core, call, reply, request, |_, _| p::SetPermissionResponseProto {});
}

pub fn set_owner(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetOwnerRequestProto>(&call, reply) else { return };
    let request = ops::set_owner::Request {
        path: request.src,
        owner: request.username.filter(|name| !name.is_empty()),
        group: request.groupname.filter(|name| !name.is_empty()),
    };
    calls::write(core, call, reply, request, |_, _| p::SetOwnerResponseProto {});
}

pub fn set_times(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetTimesRequestProto>(&call, reply) else { return };
    // Java's -1 ("leave it") travels as an unsigned number.
    let request = ops::set_times::Request {
        path: request.src,
        modified: request.mtime as i64,
        accessed: request.atime as i64,
    };
    calls::write(core, call, reply, request, |_, _| p::SetTimesResponseProto {});
}

pub fn set_replication(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetReplicationRequestProto>(&call, reply) else { return };
    let request = ops::set_replication::Request { path: request.src, replication: request.replication };
    calls::write(core, call, reply, request, |_, essentials| p::SetReplicationResponseProto {
        result: boolean(essentials),
    });
}
