//! An operator's orders for data servers, and an operator's word on their racks, on the way to the block map.

use crate::core::Core;
use ::blocks::{AdminOrder, DataServer, ServerFilter};
use std::net::IpAddr;

/// The order of an operator for the data server that speaks from `ip` and takes data at `port`.
pub fn order_for(core: &Core, ip: IpAddr, port: u32) -> AdminOrder {
    core.admission.order_for(ip, port, core.env.clock.timestamp())
}

/// Gives all data servers, dead ones included, the orders that hold now.
pub fn give_all(core: &Core) {
    let servers = core.partition.blocks.lock().servers(ServerFilter::All);
    for server in servers {
        let registration = &server.registration;
        let Ok(ip) = registration.ip.parse() else { continue };
        let order = order_for(core, ip, registration.transfer_port.into());
        // The map is locked for those few only that have to change.
        if !order.is_obeyed_in(server.admin_state) {
            give(core, &server, order);
        }
    }
}

/// Asks the script anew for the racks of all data servers.
pub fn ask_for_racks(core: &Core) {
    let servers = core.partition.blocks.lock().servers(ServerFilter::All);
    core.racks.refresh(servers.iter().filter_map(|server| server.registration.ip.parse().ok()));
}

/// The data server is to obey this order from now on.
pub fn give(core: &Core, server: &DataServer, order: AdminOrder) {
    let has_changed = core.partition.blocks.lock().order_admin_state(server.uuid(), order, core.moment());
    if has_changed {
        let what = match order {
            AdminOrder::InService => "data server is to be in service again",
            AdminOrder::Decommission => {
                "data server is to be decommissioned: its blocks are copied to others"
            }
            AdminOrder::Maintenance => "data server is to be in maintenance",
        };
        tracing::info!(server = server.registration.transfer_address(), "{what}");
    }
}
