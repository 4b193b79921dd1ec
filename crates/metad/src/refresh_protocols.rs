//! Hadoop's protocols for reading configuration again while a server runs.
//!
//! A metadata server's configuration is a file that is read when it starts, so there is little to read again: a
//! setting that cannot change is refused with Hadoop's own words for a server that has it switched off, or with
//! advice. Every member answers for itself.

use crate::{
    client_protocol::{decode, require_superuser},
    core::Core,
};
use base::FsError;
use namespace::Privileged;
use proto::{
    common as c,
    exception::{AUTHORIZATION, JAVA_ILLEGAL_ARGUMENT},
    hdfs as p, protocol,
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.protocol {
        protocol::REFRESH_AUTHORIZATION_POLICY => refresh_service_acl(call, reply),
        protocol::REFRESH_CALL_QUEUE => refresh_call_queue(call, reply),
        protocol::GENERIC_REFRESH => refresh(call, reply),
        _ => reconfigure(core, call, reply),
    }
}

/// `dfsadmin -refreshServiceAcl`.
fn refresh_service_acl(call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::RefreshServiceAclRequestProto>(&call, reply) else { return };
    reply.error(RpcError::application(AUTHORIZATION, "Service Level Authorization not enabled!"));
}

/// `dfsadmin -refreshCallQueue`. HDFS reads the numbers of its queue again; here they are those of the start, so
/// the queue is as it should be.
fn refresh_call_queue(call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::RefreshCallQueueRequestProto>(&call, reply) else { return };
    reply.ok(&c::RefreshCallQueueResponseProto {});
}

/// `dfsadmin -refresh HOST:PORT KEY`: nothing has registered a key.
fn refresh(call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<c::GenericRefreshRequestProto>(&call, reply) else { return };
    reply.error(RpcError::application(
        JAVA_ILLEGAL_ARGUMENT,
        format!(
            "Identifier '{}' does not exist in RefreshRegistry. Valid options are: ",
            request.identifier.unwrap_or_default()
        ),
    ));
}

/// `dfsadmin -reconfig namenode`.
fn reconfigure(core: &Arc<Core>, call: Call, reply: Replier) {
    let operation = match call.method {
        "listReconfigurableProperties" => Privileged::ListProperties,
        "getReconfigurationStatus" => Privileged::GetReconfigurationStatus,
        _ => Privileged::StartReconfiguration,
    };
    if let Err(error) = require_superuser(core, &call, operation) {
        return reply.fs_error(&error);
    }
    match call.method {
        "listReconfigurableProperties" => {
            reply.ok(&p::ListReconfigurablePropertiesResponseProto { name: Vec::new() });
        }
        // A start of 0: Hadoop's clients say that no task was found.
        "getReconfigurationStatus" => reply.ok(&p::GetReconfigurationStatusResponseProto {
            start_time: 0,
            end_time: None,
            changes: Vec::new(),
        }),
        _ => reply.fs_error(&FsError::Unsupported(
            "No property can be changed while the server runs: change its configuration file and start it again."
                .into(),
        )),
    }
}
