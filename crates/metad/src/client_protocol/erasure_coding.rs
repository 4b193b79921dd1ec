//! Erasure coding, for which there is no data path yet: HDFS's own policies are known and all disabled, and no
//! codec is there to enable them with. A directory can only be told to replicate, which all do.

use super::{
    calls::{self, Sight},
    decode, refuse_in_safe_mode, require_superuser,
};
use crate::core::Core;
use base::{FsError, FsResult};
use namespace::{
    ops::set_erasure_coding::{self, REPLICATION},
    reads,
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// One of the policies that HDFS is born with.
struct Policy {
    id: u32,
    name: &'static str,
    codec: &'static str,
    data_units: u32,
    parity_units: u32,
}

const CELL_BYTES: u32 = 1 << 20;

/// HDFS's `SystemErasureCodingPolicies`, in the order in which its clients list them.
const POLICIES: &[Policy] = &[
    Policy { id: 5, name: "RS-10-4-1024k", codec: "rs", data_units: 10, parity_units: 4 },
    Policy { id: 2, name: "RS-3-2-1024k", codec: "rs", data_units: 3, parity_units: 2 },
    Policy { id: 1, name: DEFAULT, codec: "rs", data_units: 6, parity_units: 3 },
    Policy { id: 3, name: "RS-LEGACY-6-3-1024k", codec: "rs-legacy", data_units: 6, parity_units: 3 },
    Policy { id: 4, name: "XOR-2-1-1024k", codec: "xor", data_units: 2, parity_units: 1 },
];

/// The policy that HDFS takes if a call names none (`dfs.namenode.ec.system.default.policy`).
const DEFAULT: &str = "RS-6-3-1024k";

impl Policy {
    fn find(name: &str) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.name == name)
    }

    fn to_proto(&self) -> p::ErasureCodingPolicyProto {
        p::ErasureCodingPolicyProto {
            name: Some(self.name.into()),
            schema: Some(p::EcSchemaProto {
                codec_name: self.codec.into(),
                data_units: self.data_units,
                parity_units: self.parity_units,
                options: Vec::new(),
            }),
            cell_size: Some(CELL_BYTES),
            id: self.id,
            state: Some(p::ErasureCodingPolicyState::Disabled as i32),
        }
    }
}

fn unknown(name: &str) -> FsError {
    FsError::InvalidArgument(format!("The policy name {name} does not exist"))
}

pub fn get_erasure_coding_policies(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetErasureCodingPoliciesRequestProto>(&call, reply) else { return };
    let ec_policies = POLICIES.iter().map(Policy::to_proto).collect();
    reply.ok(&p::GetErasureCodingPoliciesResponseProto { ec_policies });
}

/// None: `hdfs ec -listCodecs` says that no codec is supported on this cluster.
pub fn get_erasure_coding_codecs(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetErasureCodingCodecsRequestProto>(&call, reply) else { return };
    reply.ok(&p::GetErasureCodingCodecsResponseProto { codec: Vec::new() });
}

/// None: no file is erasure-coded.
pub fn get_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        reads::check_access::check_for_policy(&tree.namespace, context, &request.src)?;
        Ok(p::GetErasureCodingPolicyResponseProto { ec_policy: None })
    });
}

/// A policy that is disabled cannot be set; replication can, and is what every directory has anyway.
pub fn set_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let policy = request.ec_policy_name.unwrap_or_else(|| DEFAULT.to_owned());
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

fn may_change(core: &Core, call: &Call, what: impl FnOnce() -> String) -> FsResult<()> {
    require_superuser(core, call)?;
    refuse_in_safe_mode(&core.partition, what)
}

/// HDFS's answer where an operator has not allowed policies of users.
pub fn add_erasure_coding_policies(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddErasureCodingPoliciesRequestProto>(&call, reply) else {
        return;
    };
    if let Err(error) = may_change(core, &call, || "Cannot add erasure coding policy".into()) {
        return reply.fs_error(&error);
    }
    let refused = |policy| p::AddErasureCodingPolicyResponseProto {
        policy,
        succeed: false,
        error_msg: Some("Addition of user defined erasure coding policy is disabled.".into()),
    };
    let responses = request.ec_policies.into_iter().map(refused).collect();
    reply.ok(&p::AddErasureCodingPoliciesResponseProto { responses });
}

pub fn remove_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let name = &request.ec_policy_name;
    let refused = match may_change(core, &call, || format!("Cannot remove erasure coding policy {name}")) {
        Err(error) => error,
        Ok(()) if Policy::find(name).is_some() => {
            FsError::InvalidArgument(format!("System erasure coding policy {name} cannot be removed"))
        }
        Ok(()) => unknown(name),
    };
    reply.fs_error(&refused);
}

pub fn enable_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::EnableErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let name = &request.ec_policy_name;
    let refused = match may_change(core, &call, || format!("Cannot enable erasure coding policy {name}")) {
        Err(error) => error,
        Ok(()) if Policy::find(name).is_some() => FsError::Unsupported(format!(
            "Cannot enable erasure coding policy {name}: erasure coding is not built yet in this version of \
             Clover."
        )),
        Ok(()) => unknown(name),
    };
    reply.fs_error(&refused);
}

/// All are disabled: nothing is left to do.
pub fn disable_erasure_coding_policy(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::DisableErasureCodingPolicyRequestProto>(&call, reply) else {
        return;
    };
    let name = &request.ec_policy_name;
    match may_change(core, &call, || format!("Cannot disable erasure coding policy {name}")) {
        Err(error) => reply.fs_error(&error),
        Ok(()) if Policy::find(name).is_some() => reply.ok(&p::DisableErasureCodingPolicyResponseProto {}),
        Ok(()) => reply.fs_error(&unknown(name)),
    }
}

pub fn get_ec_topology_result_for_policies(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetEcTopologyResultForPoliciesRequestProto>(&call, reply) else {
        return;
    };
    if let Err(error) = require_superuser(core, &call) {
        return reply.fs_error(&error);
    }
    let names = &request.policies;
    let is_known = |name: &&String| Policy::find(name).is_some() || name.eq_ignore_ascii_case(REPLICATION);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return reply.fs_error(&FsError::InvalidArgument(format!(
            "The given erasure coding policy {name} does not exist."
        )));
    }
    let response = match names.is_empty() {
        // The answer is about the enabled policies.
        true => p::EcTopologyVerifierResultProto {
            is_supported: true,
            result_message: "No erasure coding policy is given.".into(),
        },
        false => p::EcTopologyVerifierResultProto {
            is_supported: false,
            result_message: format!(
                "Erasure coding is not built yet in this version of Clover, whatever the number of data \
                 servers: {}",
                names.join(", ")
            ),
        },
    };
    reply.ok(&p::GetEcTopologyResultForPoliciesResponseProto { response });
}
