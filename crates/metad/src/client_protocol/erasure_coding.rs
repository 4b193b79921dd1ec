//! Erasure coding, for which there is no data path yet. [`namespace::erasure_coding`] has the policies, and what orders
//! about them lead to.

use super::{
    calls::{self, asked},
    decode, refuse_in_safe_mode, require_superuser,
};
use crate::core::Core;
use base::FsResult;
use namespace::{
    Privileged,
    erasure_coding::{self, ADDING_IS_OFF, CELL_BYTES, Order, POLICIES, Policy},
    ops::set_erasure_coding,
    reads::get_erasure_coding_policy,
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn policy_proto(policy: &Policy) -> p::ErasureCodingPolicyProto {
    p::ErasureCodingPolicyProto {
        name: Some(policy.name.into()),
        schema: Some(p::EcSchemaProto {
            codec_name: policy.codec.into(),
            data_units: policy.data_units,
            parity_units: policy.parity_units,
            options: Vec::new(),
        }),
        cell_size: Some(CELL_BYTES),
        id: policy.id,
        state: Some(p::ErasureCodingPolicyState::Disabled as i32),
    }
}

pub fn get_erasure_coding_policies(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetErasureCodingPoliciesRequestProto>(&call, reply) else { return };
    let ec_policies = POLICIES.iter().map(policy_proto).collect();
    reply.ok(&p::GetErasureCodingPoliciesResponseProto { ec_policies });
}

/// None: `hdfs ec -listCodecs` says that no codec is supported on this cluster.
pub fn get_erasure_coding_codecs(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetErasureCodingCodecsRequestProto>(&call, reply) else { return };
    reply.ok(&p::GetErasureCodingCodecsResponseProto { codec: Vec::new() });
}

/// None: no file is erasure-coded.
pub fn get_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetErasureCodingPolicyRequestProto| get_erasure_coding_policy::Request {
        path: message.src,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, ()| {
        Ok(p::GetErasureCodingPolicyResponseProto { ec_policy: None })
    });
}

/// A policy that is disabled cannot be set; replication can, and is what every directory has anyway.
pub fn set_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let policy = request.ec_policy_name.unwrap_or_else(|| erasure_coding::DEFAULT.to_owned());
    let request = set_erasure_coding::Request { path: request.src, policy };
    calls::write(core, call, reply, request, |_, _| p::SetErasureCodingPolicyResponseProto {});
}

pub fn unset_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::UnsetErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let request = set_erasure_coding::Removal { path: request.src };
    calls::write(core, call, reply, request, |_, _| p::UnsetErasureCodingPolicyResponseProto {});
}

fn carry_out(core: &Core, call: &Call, order: Order<'_>) -> FsResult<()> {
    require_superuser(core, call, order.privilege())?;
    refuse_in_safe_mode(&core.partition, || order.what())?;
    order.answer()
}

pub fn add_erasure_coding_policies(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddErasureCodingPoliciesRequestProto>(&call, reply) else {
        return;
    };
    if let Err(error) = carry_out(core, &call, Order::Add) {
        return reply.fs_error(&error);
    }
    let refused = |policy| p::AddErasureCodingPolicyResponseProto {
        policy,
        succeed: false,
        error_msg: Some(ADDING_IS_OFF.into()),
    };
    let responses = request.ec_policies.into_iter().map(refused).collect();
    reply.ok(&p::AddErasureCodingPoliciesResponseProto { responses });
}

pub fn remove_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    match carry_out(core, &call, Order::Remove(&request.ec_policy_name)) {
        Ok(()) => reply.ok(&p::RemoveErasureCodingPolicyResponseProto {}),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn enable_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::EnableErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    match carry_out(core, &call, Order::Enable(&request.ec_policy_name)) {
        Ok(()) => reply.ok(&p::EnableErasureCodingPolicyResponseProto {}),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn disable_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::DisableErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    match carry_out(core, &call, Order::Disable(&request.ec_policy_name)) {
        Ok(()) => reply.ok(&p::DisableErasureCodingPolicyResponseProto {}),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn get_ec_topology_result_for_policies(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetEcTopologyResultForPoliciesRequestProto>(&call, reply) else {
        return;
    };
    let answer = require_superuser(core, &call, Privileged::GetEcTopologyResult)
        .and_then(|()| erasure_coding::topology(&request.policies));
    match answer {
        Ok(found) => reply.ok(&p::GetEcTopologyResultForPoliciesResponseProto {
            response: p::EcTopologyVerifierResultProto {
                is_supported: found.is_supported,
                result_message: found.message,
            },
        }),
        Err(error) => reply.fs_error(&error),
    }
}
