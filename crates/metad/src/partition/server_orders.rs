//! The orders for data servers that the journal has, on the way to the block map.

use super::Partition;
use ::blocks::{AdminOrder, DataServer, ServerFilter};
use base::Timestamp;
use namespace::server_orders::{Leave, ServerOrders, place};
use std::net::SocketAddr;

/// The orders, as far as this member has applied the journal.
pub fn of_the_journal(partition: &Partition) -> ServerOrders {
    partition.tree().namespace.server_orders()
}

/// The place under which orders know the data server.
pub fn place_of(server: &DataServer) -> Option<SocketAddr> {
    let registration = &server.registration;
    registration.ip.parse().ok().map(|ip| place(ip, registration.transfer_port))
}

/// The order that the block map follows for a data server.
pub fn order_of(leave: Option<Leave>, now: Timestamp) -> AdminOrder {
    match leave.filter(|leave| leave.holds_at(now)) {
        None => AdminOrder::InService,
        Some(Leave::Decommission) => AdminOrder::Decommission,
        Some(Leave::Maintenance { .. }) => AdminOrder::Maintenance,
    }
}

/// Before this member commands: it places no block on a server that is ordered out of service in an entry which it has just inherited. Nothing is
/// taken back here: the files may order a server out of service as well.
pub fn take_out(partition: &Partition) {
    let orders = of_the_journal(partition);
    if orders.is_empty() {
        return;
    }
    let (now, moment) = (partition.env.clock.timestamp(), partition.moment());
    let mut map = partition.blocks.lock();
    for server in map.servers(ServerFilter::All) {
        let leave = place_of(&server).and_then(|place| orders.get(place)).map(|order| order.leave);
        let order = order_of(leave, now);
        let is_stronger = order == AdminOrder::Decommission
            || (order == AdminOrder::Maintenance && server.admin_state.is_in_service());
        if is_stronger {
            map.order_admin_state(server.uuid(), order, moment);
        }
    }
}
