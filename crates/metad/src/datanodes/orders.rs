//! An operator's orders for data servers, and an operator's word on their racks, on the way to the block map.
//!
//! Orders come from two places: the files of this member, and the journal, which all members have. The greater one holds ([`AdminOrder`]).

use crate::{core::Core, partition::server_orders::of_the_journal};
use ::blocks::{AdminOrder, DataServer, ServerFilter};
use base::Timestamp;
use namespace::server_orders::{ServerOrder, ServerOrders, place};
use serving::server_orders::{order_for, order_of, outdated, place_of};
use std::net::{IpAddr, SocketAddr};

/// The orders for one data server, by where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    pub files: AdminOrder,
    pub journal: AdminOrder,
}

impl Sources {
    /// The order that holds.
    pub fn joined(self) -> AdminOrder {
        self.files.max(self.journal)
    }
}

/// The orders that hold at one moment.
pub struct Orders<'a> {
    core: &'a Core,
    journal: ServerOrders,
    now: Timestamp,
}

impl<'a> Orders<'a> {
    pub fn now(core: &'a Core) -> Self {
        let journal = of_the_journal(&core.partition);
        Self { core, journal, now: core.env.clock.timestamp() }
    }

    pub fn sources(&self, server: SocketAddr) -> Sources {
        let files = self.core.admission.order_for(server.ip(), server.port().into(), self.now);
        Sources { files, journal: order_for(&self.journal, server, self.now) }
    }
}

/// Gives the data server that has registered from `ip`, and takes data at `port`, the order that holds for it. The operator may take
/// the order back meanwhile. The orders are therefore read again afterwards: a server without an order is not looked at later, and would
/// keep the old one for ever.
pub fn give_newest(core: &Core, server: &DataServer, ip: IpAddr, port: u16) {
    let newest = || Orders::now(core).sources(place(ip, port)).joined();
    let mut order = newest();
    loop {
        give(core, server, order);
        match newest() {
            now if now == order => return,
            now => order = now,
        }
    }
}

/// Gives all data servers, dead ones included, the orders that hold now.
pub fn give_all(core: &Core) {
    let servers = core.partition.blocks.lock().servers(ServerFilter::All);
    let orders = Orders::now(core);
    // The map is locked for those few only that have to change.
    for (server, order) in outdated(&servers, |server| orders.sources(server).joined()) {
        give(core, server, order);
    }
}

/// The journal has this order for a data server from now on. It looks at no tree, which may be locked.
pub fn give_one(core: &Core, server: SocketAddr, order: Option<&ServerOrder>) {
    let now = core.env.clock.timestamp();
    let files = core.admission.order_for(server.ip(), server.port().into(), now);
    let order = Sources { files, journal: order_of(order.map(|order| order.leave), now) }.joined();
    let servers = core.partition.blocks.lock().servers(ServerFilter::All);
    for known in servers.iter().filter(|known| place_of(known) == Some(server)) {
        give(core, known, order);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_source_takes_a_server_out_and_for_good_is_stronger() {
        use AdminOrder::{Decommission, InService, Maintenance};
        for (one, other, joined) in [
            (InService, InService, InService),
            (InService, Maintenance, Maintenance),
            (InService, Decommission, Decommission),
            (Maintenance, Maintenance, Maintenance),
            (Maintenance, Decommission, Decommission),
        ] {
            assert_eq!(Sources { files: one, journal: other }.joined(), joined);
            assert_eq!(Sources { files: other, journal: one }.joined(), joined);
        }
    }
}
