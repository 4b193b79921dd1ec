//! An operator orders data servers out of service, and back, and switches off each one that may go.

use super::{
    room::{PORT, ip, server_of},
    words::Event,
};
use crate::{
    check,
    cluster::{happening::OrderOfOperator, request::service_context, server::Server, world::World},
    truth::Broken,
};
use base::{AdminState, Timestamp};
use blocks::ServerFilter;
use namespace::{
    ops::order_server,
    server_orders::{Leave, place},
};
use serving::server_orders::{order_for, outdated, take_out};
use std::net::SocketAddr;

fn place_in_orders(server: usize) -> SocketAddr {
    place(ip(server).parse().expect("it is an address"), PORT)
}

impl Server {
    /// The block map hears of the orders that the journal has.
    pub(super) fn give_orders(&mut self, now_ns: u64) {
        let Some(side) = &mut self.blocks else { return };
        let (orders, wall) = (self.tree.namespace.server_orders(), self.clock.timestamp(now_ns));
        let servers = side.map.servers(ServerFilter::All);
        for (server, order) in outdated(&servers, |server| order_for(&orders, server, wall)) {
            side.map.order_admin_state(server.uuid(), order, side.now);
        }
    }

    /// Before this member commands.
    pub(in crate::cluster) fn take_servers_out(&mut self, now_ns: u64) {
        let Some(side) = &mut self.blocks else { return };
        let wall = self.clock.timestamp(now_ns);
        take_out(&mut side.map, &self.tree.namespace.server_orders(), wall, side.now);
    }
}

impl World {
    /// The operator's order goes to the active, if there is one.
    pub(in crate::cluster) fn order_data_server(&mut self, order: &OrderOfOperator) -> Result<(), Broken> {
        let Some(count) = self.data.as_ref().map(|room| room.servers.len()) else { return Ok(()) };
        let Some(seat) = (0..self.servers.len()).find(|seat| self.servers[*seat].may_append()) else {
            return Ok(());
        };
        let wall = self.servers[seat].clock.timestamp(self.now_ns);
        match *order {
            OrderOfOperator::Leave(server) => {
                self.journal_order(seat, server % count, Some(Leave::Decommission))
            }
            OrderOfOperator::Rest { server, for_ms } => {
                let until = for_ms.map(|ms| Timestamp::from_ms(wall.ms + ms));
                self.journal_order(seat, server % count, Some(Leave::Maintenance { until }))
            }
            OrderOfOperator::Return(server) => self.journal_order(seat, server % count, None),
            OrderOfOperator::AllReturn => {
                (0..count).try_for_each(|server| self.journal_order(seat, server, None))
            }
            OrderOfOperator::SwitchOff => self.switch_off(seat),
        }
    }

    fn journal_order(&mut self, seat: usize, server: usize, leave: Option<Leave>) -> Result<(), Broken> {
        let it = &self.servers[seat];
        let (wall, moment) = (it.clock.timestamp(self.now_ns), it.clock.moment(self.now_ns));
        let request =
            order_server::Request { server: place_in_orders(server), named: ip(server).into(), leave };
        let namespace = &it.tree.namespace;
        let planned =
            service_context(wall, moment, |context| order_server::plan(namespace, context, &request));
        match planned {
            Ok(namespace::Planned::Edit(edit)) => {
                self.note(format!("an operator orders data server {server}: {leave:?}"));
                self.append_own(seat, &edit.into())
            }
            // It has this order already.
            Ok(_) => Ok(()),
            Err(error) => Err(format!("an order for data server {server} is taken: {error}")),
        }
    }

    /// The operator reads at the active which live data servers may go (of a dead one the commands do not say so). A decommissioned one is switched off for good, and its disks are given
    /// away: later an empty server stands in its place. One in maintenance is switched off for a while.
    fn switch_off(&mut self, seat: usize) -> Result<(), Broken> {
        let it = &self.servers[seat];
        if !it.holds_lease(self.now_ns) {
            return Ok(());
        }
        let Some(side) = &it.blocks else { return Ok(()) };
        let seen = side.map.servers(ServerFilter::Live);
        let states = seen.iter().map(|server| (server_of(server.uuid()), server.admin_state));
        for (server, state) in states.collect::<Vec<_>>() {
            match state {
                AdminState::Decommissioned => self.give_away(server)?,
                AdminState::InMaintenance => {
                    self.let_go(server)?;
                    self.stop_for_a_while(server);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Each finished block that a file has must have a good replica elsewhere.
    fn let_go(&mut self, server: usize) -> Result<(), Broken> {
        let room = self.room();
        for replica in room.servers[server].replicas.values() {
            let Some(needed) = room.needed.blocks.get(&replica.block.id) else { continue };
            if needed.is_complete
                && needed.block == replica.block
                && room.servers[server].has_good(&replica.block)
            {
                let elsewhere =
                    room.holders(&replica.block).iter().filter(|holder| **holder != server).count();
                check::servers_that_may_go_have_no_last_replica::check(server, &replica.block, elsewhere)?;
            }
        }
        Ok(())
    }

    fn give_away(&mut self, server: usize) -> Result<(), Broken> {
        self.let_go(server)?;
        self.note(format!("data server {server} is decommissioned, and its disks are given away"));
        let room = self.room();
        let it = &mut room.servers[server];
        it.is_running = false;
        it.removing.clear();
        let replicas = std::mem::take(&mut it.replicas);
        room.counts.given_away += 1;
        for block in replicas.into_values().map(|replica| replica.block) {
            if room.holders(&block).is_empty() && !room.needed.blocks.contains_key(&block.id) {
                room.needed.gone.insert(block.id);
            }
        }
        Ok(())
    }

    fn stop_for_a_while(&mut self, server: usize) {
        let room = self.room();
        if !room.servers[server].is_running {
            return;
        }
        room.servers[server].is_running = false;
        room.counts.rested += 1;
        let ms = 300 + room.dice.below(2_000);
        self.note(format!("data server {server} is in maintenance, and is switched off"));
        self.later(ms * 1_000_000, Event::Start { server });
    }
}
