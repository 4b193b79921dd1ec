//! When the block map hears of the orders that the journal has for data servers.
//!
//! The journal has an order by the address of a data server; the map has servers by their names. A member gives its map the orders when a
//! data server registers, now and then, and before the member commands. It takes them from the tree as applied: an order that has
//! not committed yet moves no data that anybody misses if it never commits.

use base::{Moment, Timestamp};
use blocks::{AdminOrder, BlockMap, DataServer, ServerFilter};
use namespace::server_orders::{Leave, ServerOrders, place};
use std::{net::SocketAddr, sync::Arc};

/// The place under which orders know the data server. `None`: its address cannot be read, and no order can name it.
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

/// The order that the journal has for the server at this place.
pub fn order_for(orders: &ServerOrders, server: SocketAddr, now: Timestamp) -> AdminOrder {
    order_of(orders.get(server).map(|order| order.leave), now)
}

/// The servers that obey another order than the one that holds for their place by `order_for`, each with that order.
pub fn outdated(
    servers: &[Arc<DataServer>],
    order_for: impl Fn(SocketAddr) -> AdminOrder,
) -> impl Iterator<Item = (&DataServer, AdminOrder)> {
    servers.iter().filter_map(move |server| {
        let order = order_for(place_of(server)?);
        (order != AdminOrder::obeyed_in(server.admin_state)).then_some((server.as_ref(), order))
    })
}

/// Before a member commands: it places no block on a server that is ordered out of service in an entry which it has just inherited. Nothing is
/// taken back here: a member's files may order a server out of service as well.
pub fn take_out(map: &mut BlockMap, orders: &ServerOrders, now: Timestamp, moment: Moment) {
    if orders.is_empty() {
        return;
    }
    let servers = map.servers(ServerFilter::All);
    for (server, order) in outdated(&servers, |server| order_for(orders, server, now)) {
        if order > AdminOrder::obeyed_in(server.admin_state) {
            map.order_admin_state(server.uuid(), order, moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_the_journal_ends_at_its_time() {
        let at = Timestamp::from_ms;
        let until = Some(Leave::Maintenance { until: Some(at(50)) });
        assert_eq!(order_of(until, at(49)), AdminOrder::Maintenance);
        assert_eq!(order_of(until, at(50)), AdminOrder::InService);
        assert_eq!(order_of(Some(Leave::Decommission), at(50)), AdminOrder::Decommission);
        assert_eq!(order_of(None, at(50)), AdminOrder::InService);
    }
}
