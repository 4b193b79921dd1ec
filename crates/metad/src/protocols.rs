//! The families of protocols that arrive on the RPC port, each to its own.

use crate::{
    admin_protocol, client_protocol, core::Core, datanodes::DatanodeSide, directories, doors::route,
    exchange, forward, ha_protocol, namenode_protocol, post, refresh_protocols, standby_reads,
};
use proto::protocol;
use rpc::{Call, Replier, Service};
use serving::admission;
use std::sync::Arc;

pub struct Protocols {
    pub core: Arc<Core>,
    pub datanodes: Arc<DatanodeSide>,
}

pub const PROTOCOLS: &[(&str, u64)] = &[
    (protocol::CLIENT_NAMENODE, protocol::VERSION),
    (protocol::DATANODE, protocol::VERSION),
    (protocol::DATANODE_LIFELINE, protocol::VERSION),
    (protocol::NAMENODE, protocol::VERSION),
    (protocol::HA_SERVICE, protocol::VERSION),
    (protocol::GET_USER_MAPPINGS, protocol::VERSION),
    (protocol::REFRESH_USER_MAPPINGS, protocol::VERSION),
    (protocol::REFRESH_AUTHORIZATION_POLICY, protocol::VERSION),
    (protocol::REFRESH_CALL_QUEUE, protocol::VERSION),
    (protocol::GENERIC_REFRESH, protocol::VERSION),
    (protocol::RECONFIGURATION, protocol::VERSION),
    (protocol::ZKFC, protocol::VERSION),
    (protocol::ADMIN, protocol::VERSION),
    (protocol::POOL, protocol::VERSION),
    (protocol::FORWARD, protocol::VERSION),
];

impl Service for Protocols {
    fn protocols(&self) -> &[(&'static str, u64)] {
        PROTOCOLS
    }

    fn call(&self, call: Call, reply: Replier) {
        match call.protocol {
            protocol::DATANODE | protocol::DATANODE_LIFELINE => {
                hold(&self.core, call, reply, |call, reply| self.datanodes.call(call, reply));
            }
            protocol::FORWARD if call.method == "directoryLog" => {
                directories::service::call(&self.core, call, reply)
            }
            protocol::FORWARD if call.method == "post" => post::service::call(&self.core, call, reply),
            protocol::FORWARD if call.method == "readPoint" => {
                standby_reads::serve::call(&self.core, call, reply)
            }
            protocol::FORWARD => forward::service::call(&self.core, call, reply),
            protocol::POOL => {
                let shelf: Arc<dyn exchange::serve::Shelf> = self.core.clone();
                exchange::serve::call(&shelf, call, reply);
            }
            _ => answer(&self.core, call, reply),
        }
    }
}

/// Answers a call that came from a client, by itself or in a member's envelope.
pub fn answer(core: &Arc<Core>, call: Call, reply: Replier) {
    hold(core, call, reply, |call, reply| serve(core, call, reply));
}

/// Refuses a call that has ended a server, and has any other one in hand, should it end this one.
fn hold(core: &Core, call: Call, reply: Replier, serve: impl FnOnce(Call, Replier)) {
    if let Some(refusal) = core.fatal.refusal(&call) {
        return reply.error(refusal);
    }
    let _holding = core.in_hand(&call).hold();
    serve(call, reply);
}

fn serve(core: &Arc<Core>, call: Call, reply: Replier) {
    let is_a_clients = matches!(call.protocol, protocol::CLIENT_NAMENODE | protocol::NAMENODE);
    if is_a_clients && core.partition.condition.is_removed() {
        let me = core.partition.member.me().member;
        return reply.fs_error(&admission::not_of_the_group(call.method, me));
    }
    let (call, reply) = match is_a_clients {
        true => match route::route(core, call, reply) {
            Some(own) => own,
            None => return,
        },
        false => (call, reply),
    };
    match call.protocol {
        protocol::CLIENT_NAMENODE => client_protocol::call(core, call, reply),
        protocol::NAMENODE => namenode_protocol::call(core, call, reply),
        protocol::HA_SERVICE => ha_protocol::call(core, call, reply),
        protocol::ZKFC => ha_protocol::call_controller(core, call, reply),
        protocol::GET_USER_MAPPINGS => namenode_protocol::call_user_mappings(core, call, reply),
        protocol::REFRESH_USER_MAPPINGS => namenode_protocol::call_refresh_user_mappings(core, call, reply),
        protocol::REFRESH_AUTHORIZATION_POLICY
        | protocol::REFRESH_CALL_QUEUE
        | protocol::GENERIC_REFRESH
        | protocol::RECONFIGURATION => refresh_protocols::call(core, call, reply),
        protocol::ADMIN => admin_protocol::call(core, call, reply),
        // A question of another group that has waited here, or the own one.
        protocol::FORWARD if call.method == "post" => post::service::call(core, call, reply),
        other => unreachable!("{other} is not among the protocols served"),
    }
}
