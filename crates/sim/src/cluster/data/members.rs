//! Members answer data servers from their block maps, and look after those.

use super::{
    room::{PORT, ip, storage, uuid},
    words::{Call, Event, Reply, Request, Rest},
};
use crate::{
    check,
    cluster::{
        happening::{Arrival, Happening},
        request::service_context,
        server::Server,
        world::World,
    },
    truth::Broken,
};
use base::{BlockId, Sn};
use blocks::{
    Answer, Claim, Command, Heartbeat, Registration, ServerError, ServerId, SessionKey, StorageReport,
    StorageType, Terms,
};
use group::Role;
use std::collections::BTreeSet;

/// How often a block map is given the time.
const TICK_MS: u64 = 60;
const STORAGE_BYTES: u64 = 1 << 40;

fn registration(server: usize) -> Registration {
    Registration {
        uuid: uuid(server).into(),
        ip: ip(server).into(),
        host_name: uuid(server).into(),
        transfer_port: PORT,
        ..Registration::default()
    }
}

/// `used`: so that the fullest server is now this one, now that.
fn heartbeat(server: usize, used: u64) -> Heartbeat {
    let storage = StorageReport {
        id: storage(server).into(),
        capacity: STORAGE_BYTES,
        remaining: STORAGE_BYTES - used,
        ..StorageReport::default()
    };
    Heartbeat { storages: vec![storage], ..Heartbeat::default() }
}

impl Server {
    fn claim(&self) -> Claim {
        let serves_in = match self.role() {
            Some(Role::Serving { epoch }) => Some(*epoch),
            _ => None,
        };
        Claim::of(serves_in, self.answers.commit.committed())
    }
}

impl World {
    pub(in crate::cluster) fn hear_data_server(
        &mut self,
        seat: usize,
        call: Call,
        rest: Option<Rest>,
    ) -> Result<(), Broken> {
        let now = self.servers[seat].clock.moment(self.now_ns);
        let claim = match rest {
            Some(Rest::Heartbeat(claim)) => claim,
            _ => self.servers[seat].claim(),
        };
        // A thread may be without the processor for a while.
        if matches!(call.what, Request::Heartbeat { .. }) && rest.is_none() && self.room().dice.chance(2) {
            self.goes_on(seat, 1_000, call, Rest::Heartbeat(claim));
            return Ok(());
        }
        let is_sure = self.servers[seat].is_serving() && self.servers[seat].holds_lease(self.now_ns);
        let key = SessionKey([self.room().dice.roll() as u8; SessionKey::BYTES]);
        let is_slow = self.room().dice.chance(20);
        let used = self.room().dice.below(1_000);
        let Some(side) = &mut self.servers[seat].blocks else { return Ok(()) };
        side.now = now;
        let server = call.session.server;
        let (uuid, ip, storage) = (uuid(server), ip(server), storage(server));
        let id = ServerId {
            uuid: &uuid,
            ip: &ip,
            transfer_port: PORT,
            session: &call.key.0,
            connection: call.connection,
        };
        let reply = match &call.what {
            Request::Register => match side.map.register(registration(server), key, now) {
                Ok(_) => {
                    self.servers[seat].give_orders(self.now_ns);
                    Reply::Registered(key)
                }
                Err(_) => Reply::Failed,
            },
            Request::Heartbeat { wants_lease } => {
                let terms = Terms { claim, is_sure, wants_lease: *wants_lease };
                match side.map.answer_heartbeat(id, &heartbeat(server, used), terms, now) {
                    Ok(answer) => {
                        let needed = self.gives(seat, server, &answer)?;
                        Reply::Answered(answer, needed)
                    }
                    Err(_) => Reply::Failed,
                }
            }
            Request::FullReport { lease, rows } => {
                let (report, from) = match rest {
                    Some(Rest::FullReport(report, from)) => (Ok(report), from),
                    _ => (side.map.begin_report(id, &storage, StorageType::Disk, *lease, now), 0),
                };
                let until = if is_slow && from == 0 { rows.len() / 2 } else { rows.len() };
                let taken = report.and_then(|report| {
                    side.map.report_slice(report, &rows[from..until], now)?;
                    if until < rows.len() {
                        return Ok(Some(report));
                    }
                    side.map.finish_report(report, now).map(|_| None)
                });
                match taken {
                    Ok(Some(report)) => {
                        self.goes_on(seat, 60, call, Rest::FullReport(report, until));
                        return Ok(());
                    }
                    Ok(None) => Reply::Taken,
                    Err(ServerError::NotRegistered(_) | ServerError::AnotherHolds { .. }) => {
                        Reply::Unregistered
                    }
                    Err(_) => Reply::Failed,
                }
            }
            Request::Changes(news) => {
                match side.map.incremental_report(id, &storage, StorageType::Disk, news, now) {
                    Ok(()) => Reply::Taken,
                    Err(_) => Reply::Failed,
                }
            }
        };
        if let Some(ns) = self.room().paths.send(server, seat) {
            self.later(ns, Event::Answer { session: call.session, number: call.number, reply });
        }
        Ok(())
    }

    fn goes_on(&mut self, seat: usize, ms_max: u64, call: Call, rest: Rest) {
        let life = self.servers[seat].life;
        let ms = self.room().dice.below(ms_max);
        self.after_ms(ms, Happening::Arrival { seat, life, what: Arrival::FromData(call, Some(rest)) });
    }

    /// Looks at the orders that a member gives. Returns those of the blocks to be deleted that a file has.
    fn gives(&mut self, seat: usize, server: usize, answer: &Answer) -> Result<BTreeSet<BlockId>, Broken> {
        let mut needed = BTreeSet::new();
        for command in &answer.commands {
            let Command::Invalidate(blocks) = command else { continue };
            let ids: Vec<BlockId> = blocks.iter().map(|block| block.id).collect();
            self.note(format!("member {} has data server {server} delete {ids:?}", seat + 1));
            let truth = &self.room().needed;
            for id in ids {
                if truth.blocks.contains_key(&id) {
                    needed.insert(id);
                } else {
                    check::unknown_replicas_stay::check(truth, id, server)?;
                }
            }
        }
        Ok(needed)
    }

    /// What files need, by what has committed until now.
    pub(in crate::cluster) fn follow_needed(&mut self) -> Result<(), Broken> {
        let Some(room) = &mut self.data else { return Ok(()) };
        let reference = &self.observer.reference;
        while let Some(entry) = reference.entry(Sn(room.needed.followed().0 + 1)) {
            room.needed.committed(entry, self.now_ns)?;
        }
        Ok(())
    }

    /// Committed entries were given up.
    pub(in crate::cluster) fn forget_needed(&mut self) {
        if let Some(room) = &mut self.data {
            room.needed.forget();
        }
    }

    /// The block map of a process that has joined is given the time from now on.
    pub(in crate::cluster) fn begin_ticks(&mut self, seat: usize) {
        let life = self.servers[seat].life;
        self.later(TICK_MS * 1_000_000, Event::Tick { seat, life });
    }

    pub(super) fn tick_blocks(&mut self, seat: usize, life: u64) -> Result<(), Broken> {
        let server = &mut self.servers[seat];
        if server.life != life || !server.is_running {
            return Ok(());
        }
        self.later(TICK_MS * 1_000_000, Event::Tick { seat, life });
        let server = &mut self.servers[seat];
        let now = server.clock.moment(self.now_ns);
        if server.is_paused || !server.host.is_up() {
            return Ok(());
        }
        let Some(side) = &mut server.blocks else { return Ok(()) };
        side.now = now;
        server.give_orders(self.now_ns);
        let Some(side) = &mut self.servers[seat].blocks else { return Ok(()) };
        side.map.tick(now, &|_| 0);
        while side.map.sweep(1_000, now) {}
        side.map.take_events();
        self.tidy_up(seat)
    }

    /// Takes deleted subtrees apart, as the active does.
    fn tidy_up(&mut self, seat: usize) -> Result<(), Broken> {
        let server = &self.servers[seat];
        if !server.may_append() || !server.tree.namespace.has_background_work() {
            return Ok(());
        }
        let (wall, moment) = (server.clock.timestamp(self.now_ns), server.clock.moment(self.now_ns));
        let namespace = &server.tree.namespace;
        let edit = service_context(wall, moment, |context| namespace::ops::cleanup::plan(namespace, context));
        match edit {
            Some(edit) => self.append_own(seat, &edit.into()),
            None => Ok(()),
        }
    }

    /// An operator has looked at what is held back, and allows it to be deleted.
    pub(in crate::cluster) fn allow_deletions(&mut self) -> Result<(), Broken> {
        let Some(seat) = (0..self.servers.len()).find(|seat| self.servers[*seat].may_append()) else {
            return Ok(());
        };
        let server = &self.servers[seat];
        let (wall, moment) = (server.clock.timestamp(self.now_ns), server.clock.moment(self.now_ns));
        let namespace = &server.tree.namespace;
        if let Some(held_since) = namespace.unknown_replicas().held_since() {
            let request = namespace::ops::allow_deletions::Request { held_since };
            let planned = service_context(wall, moment, |context| {
                namespace::ops::allow_deletions::plan(namespace, context, &request)
            });
            if let Ok(namespace::Planned::Edit(edit)) = planned {
                self.note(format!("an operator allows deletions at member {}", seat + 1));
                return self.append_own(seat, &edit.into());
            }
        }
        let is_closing = self.is_closing;
        if let Some(side) = &mut self.servers[seat].blocks {
            side.map.allow_deletions(moment);
            // What a loss has brought back may have no replica any more: nothing is waited for that would come.
            if is_closing && side.map.in_safe_mode() {
                side.map.leave_safe_mode(false, moment);
            }
        }
        Ok(())
    }
}
