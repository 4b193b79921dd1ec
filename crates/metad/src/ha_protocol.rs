//! Hadoop's `HAServiceProtocol`: what `haadmin` asks.

use crate::{client_protocol::decode, core::Core};
use group::Role;
use proto::{
    common as p,
    exception::{HEALTH_CHECK_FAILED, SERVICE_FAILED},
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        "getServiceStatus" => {
            let Some((_, reply)) = decode::<p::GetServiceStatusRequestProto>(&call, reply) else { return };
            let serving = matches!(core.replica.role(), Role::Serving { .. });
            let state =
                if serving { p::HaServiceStateProto::Active } else { p::HaServiceStateProto::Standby };
            reply.ok(&p::GetServiceStatusResponseProto {
                state: state as i32,
                ready_to_become_active: Some(serving),
                not_ready_reason: core.commit.failure(),
            });
        }
        "monitorHealth" => {
            let Some((_, reply)) = decode::<p::MonitorHealthRequestProto>(&call, reply) else { return };
            match core.commit.failure() {
                None => reply.ok(&p::MonitorHealthResponseProto {}),
                Some(reason) => reply.error(RpcError::application(HEALTH_CHECK_FAILED, reason)),
            }
        }
        "transitionToActive" => {
            let Some((_, reply)) = decode::<p::TransitionToActiveRequestProto>(&call, reply) else { return };
            reply.ok(&p::TransitionToActiveResponseProto {});
        }
        "transitionToStandby" | "transitionToObserver" => reply.error(RpcError::application(
            SERVICE_FAILED,
            "This group has one member: nobody could take over. Add members first.",
        )),
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}
