//! Access control lists.

use super::calls::{self, asked, decode};
use crate::core::Core;
use namespace::{
    acl::{AclEntry, Kind, Scope},
    ops::set_acl::{self, Change},
    reads::get_acl_status,
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn set_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetAclRequestProto>(&call, reply) else { return };
    let change = Change::Replace(entries(&request.acl_spec));
    let request = set_acl::Request { path: request.src, change };
    calls::write(core, call, reply, request, |_, _| p::SetAclResponseProto {});
}

pub fn modify_acl_entries(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ModifyAclEntriesRequestProto>(&call, reply) else { return };
    let change = Change::Merge(entries(&request.acl_spec));
    let request = set_acl::Request { path: request.src, change };
    calls::write(core, call, reply, request, |_, _| p::ModifyAclEntriesResponseProto {});
}

pub fn remove_acl_entries(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveAclEntriesRequestProto>(&call, reply) else { return };
    let change = Change::Remove(entries(&request.acl_spec));
    let request = set_acl::Request { path: request.src, change };
    calls::write(core, call, reply, request, |_, _| p::RemoveAclEntriesResponseProto {});
}

pub fn remove_default_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveDefaultAclRequestProto>(&call, reply) else { return };
    let request = set_acl::Request { path: request.src, change: Change::RemoveDefault };
    calls::write(core, call, reply, request, |_, _| p::RemoveDefaultAclResponseProto {});
}

pub fn remove_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveAclRequestProto>(&call, reply) else { return };
    let request = set_acl::Request { path: request.src, change: Change::RemoveAll };
    calls::write(core, call, reply, request, |_, _| p::RemoveAclResponseProto {});
}

fn entries(list: &[p::AclEntryProto]) -> Vec<AclEntry> {
    list.iter().map(entry_of).collect()
}

fn entry_of(entry: &p::AclEntryProto) -> AclEntry {
    use p::acl_entry_proto::{AclEntryScopeProto, AclEntryTypeProto};
    AclEntry {
        scope: match entry.scope() {
            AclEntryScopeProto::Access => Scope::Access,
            AclEntryScopeProto::Default => Scope::Default,
        },
        kind: match entry.r#type() {
            AclEntryTypeProto::User => Kind::User,
            AclEntryTypeProto::Group => Kind::Group,
            AclEntryTypeProto::Mask => Kind::Mask,
            AclEntryTypeProto::Other => Kind::Other,
        },
        name: entry.name.as_deref().filter(|name| !name.is_empty()).map(Arc::from),
        // FsActionProto counts like the permission bits.
        permission: entry.permissions as u8 & 7,
    }
}

pub fn entry_to(entry: &AclEntry) -> p::AclEntryProto {
    p::AclEntryProto {
        // Both count as Hadoop does.
        r#type: entry.kind as i32,
        scope: entry.scope as i32,
        permissions: i32::from(entry.permission),
        name: entry.name.as_deref().map(str::to_owned),
    }
}

pub fn get_acl_status(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetAclStatusRequestProto| get_acl_status::Request { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, status| {
        Ok(p::GetAclStatusResponseProto {
            result: p::AclStatusProto {
                owner: status.owner.to_owned(),
                group: status.group.to_owned(),
                sticky: status.sticky,
                entries: status.entries.iter().map(entry_to).collect(),
                permission: status.permission.map(|mode| p::FsPermissionProto { perm: u32::from(mode) }),
            },
        })
    });
}
