//! Access control lists.

use super::calls::{self, Sight, decode};
use crate::core::Core;
use namespace::{
    acl::{AclEntry, Kind, Scope},
    ops::set_acl::{self, Change},
    reads::get_acl_status,
};
use prost::Message;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// The kind of a change, apart from its entries.
#[derive(Clone, Copy)]
enum Verb {
    Replace,
    Merge,
    Remove,
    RemoveDefault,
    RemoveAll,
}

impl Verb {
    /// How Hadoop begins the sentence about safe mode.
    fn sentence(self) -> &'static str {
        match self {
            Self::Replace => "Cannot set ACL on",
            Self::Merge => "Cannot modify ACL entries on",
            Self::Remove => "Cannot remove ACL entries on",
            Self::RemoveDefault => "Cannot remove default ACL entries on",
            Self::RemoveAll => "Cannot remove ACL on",
        }
    }
}

pub fn set_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetAclRequestProto>(&call, reply) else { return };
    change(core, call, reply, request.src, Verb::Replace, &request.acl_spec, p::SetAclResponseProto {});
}

pub fn modify_acl_entries(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ModifyAclEntriesRequestProto>(&call, reply) else { return };
    let answer = p::ModifyAclEntriesResponseProto {};
    change(core, call, reply, request.src, Verb::Merge, &request.acl_spec, answer);
}

pub fn remove_acl_entries(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveAclEntriesRequestProto>(&call, reply) else { return };
    let answer = p::RemoveAclEntriesResponseProto {};
    change(core, call, reply, request.src, Verb::Remove, &request.acl_spec, answer);
}

pub fn remove_default_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveDefaultAclRequestProto>(&call, reply) else { return };
    change(core, call, reply, request.src, Verb::RemoveDefault, &[], p::RemoveDefaultAclResponseProto {});
}

pub fn remove_acl(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveAclRequestProto>(&call, reply) else { return };
    change(core, call, reply, request.src, Verb::RemoveAll, &[], p::RemoveAclResponseProto {});
}

fn change<M: Message + 'static>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    src: String,
    verb: Verb,
    entries: &[p::AclEntryProto],
    answer: M,
) {
    let entries: Vec<AclEntry> = entries.iter().map(entry_of).collect();
    let path = src.clone();
    calls::write_planned(
        core,
        call,
        reply,
        move || format!("{} {src}", verb.sentence()),
        move |namespace, context, _| {
            let change = match verb {
                Verb::Replace => Change::Replace(&entries),
                Verb::Merge => Change::Merge(&entries),
                Verb::Remove => Change::Remove(&entries),
                Verb::RemoveDefault => Change::RemoveDefault,
                Verb::RemoveAll => Change::RemoveAll,
            };
            set_acl::plan(namespace, context, &set_acl::Request { path: &path, change })
        },
        |_, _| answer,
    );
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

fn entry_to(entry: &AclEntry) -> p::AclEntryProto {
    p::AclEntryProto {
        // Both count as Hadoop does.
        r#type: entry.kind as i32,
        scope: entry.scope as i32,
        permissions: i32::from(entry.permission),
        name: entry.name.as_deref().map(str::to_owned),
    }
}

pub fn get_acl_status(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetAclStatusRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let status = get_acl_status::get(&tree.namespace, context, &request.src)?;
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
