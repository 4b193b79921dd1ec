//! Storage policies: on which media files' replicas shall be.

use super::calls::{self, asked, decode};
use crate::core::Core;
use ::blocks::StorageType;
use base::{FsError, StoragePolicy};
use namespace::{ops, reads::get_storage_policy};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn set_storage_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetStoragePolicyRequestProto>(&call, reply) else { return };
    let policy = Some(request.policy_name);
    let request = ops::set_storage_policy::Request { path: request.src, policy };
    calls::write(core, call, reply, request, |_, _| p::SetStoragePolicyResponseProto {});
}

pub fn unset_storage_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::UnsetStoragePolicyRequestProto>(&call, reply) else { return };
    let request = ops::set_storage_policy::Request { path: request.src, policy: None };
    calls::write(core, call, reply, request, |_, _| p::UnsetStoragePolicyResponseProto {});
}

pub fn get_storage_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetStoragePolicyRequestProto| get_storage_policy::Request { path: message.path };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, policy| {
        Ok(p::GetStoragePolicyResponseProto { storage_policy: policy_proto(policy) })
    });
}

pub fn get_storage_policies(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetStoragePoliciesRequestProto>(&call, reply) else { return };
    let policies = StoragePolicy::all().iter().map(policy_proto).collect();
    reply.ok(&p::GetStoragePoliciesResponseProto { policies });
}

/// The note is all that a client waits for; `crate::satisfier` does the rest.
pub fn satisfy_storage_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SatisfyStoragePolicyRequestProto>(&call, reply) else { return };
    if !core.config.satisfies_policies {
        return reply.fs_error(&FsError::UnsupportedAction(
            "Cannot request to satisfy storage policy when storage policy satisfier feature has been disabled by \
             admin. Seek for an admin help to enable it or use Mover tool."
                .into(),
        ));
    }
    let request = ops::satisfy_storage_policy::Request { path: request.src };
    calls::write(core, call, reply, request, |_, _| p::SatisfyStoragePolicyResponseProto {});
}

fn policy_proto(policy: &StoragePolicy) -> p::BlockStoragePolicyProto {
    let types = |kinds: &[StorageType]| p::StorageTypesProto {
        storage_types: kinds.iter().map(|kind| p::StorageTypeProto::from(*kind) as i32).collect(),
    };
    let fallbacks = |kinds: &[StorageType]| (!kinds.is_empty()).then(|| types(kinds));
    p::BlockStoragePolicyProto {
        policy_id: policy.id.into(),
        name: policy.name.into(),
        creation_policy: types(policy.types),
        creation_fallback_policy: fallbacks(policy.creation_fallbacks),
        replication_fallback_policy: fallbacks(policy.replication_fallbacks),
    }
}
