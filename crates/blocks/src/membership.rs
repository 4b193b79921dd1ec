//! Data servers come, say that they live, and are lost.

use crate::{
    broken::Broken,
    contested::Contest,
    map::BlockMap,
    newcomers::Claims,
    server::{DataServer, Registration, StorageReport, StorageState, StorageType},
    storage::Storage,
    words::{Command, Heartbeat, Location, RegisterError, ServerError, ServerId, SessionKey, Transfer},
};
use base::{AdminState, BlockId, Moment};
use std::sync::Arc;

/// Storages of one server: a bound against nonsense, far above what has disks.
const MAX_STORAGES: usize = 256;
/// A storage is lost if this many heartbeats in a row do not name it.
const UNNAMED_MAX: u8 = 3;
/// After this process was held up for long, nobody is called dead for so many heartbeat intervals.
const PATIENCE_HEARTBEATS: u64 = 10;

impl BlockMap {
    /// A data server (re)starts, and speaks from the address of its registration. It is expected to report in full
    /// next, and to carry `session` in all that it says. Another server that had the
    /// address before is forgotten. A server known by the same uuid is this one at a new address, unless the old one still speaks.
    ///
    /// # Errors
    /// [`RegisterError::Incomplete`] if the registration lacks the uuid, the address or the transfer port;
    /// [`RegisterError::LivesElsewhere`] if a server of this uuid lives at another address; [`RegisterError::TooMany`]
    /// if there are as many servers as the limit allows.
    pub fn register(
        &mut self,
        mut registration: Registration,
        session: SessionKey,
        now: Moment,
    ) -> Result<Arc<DataServer>, RegisterError> {
        if registration.uuid.is_empty() || registration.ip.is_empty() || registration.transfer_port == 0 {
            return Err(RegisterError::Incomplete);
        }
        let known = self.servers.find(&registration.uuid);
        if let Some(index) = known {
            self.refuse_a_second(index, &registration, now)?;
        }
        if self.is_named_elsewhere(&registration) {
            registration.host_name = registration.ip.clone();
        }
        if let Some(other) = self.servers.find_address(&registration.ip, registration.transfer_port)
            && Some(other) != known
        {
            self.replace(other, &registration, now);
        }
        let rack = self.racks.of(&[&registration.ip, &registration.host_name]);
        let index = match known {
            Some(index) => {
                self.servers.rename(index, registration, rack);
                index
            }
            None if self.servers.len() >= self.config.max_servers => {
                return Err(RegisterError::TooMany { limit: self.config.max_servers });
            }
            None => self.servers.add(new_face(registration, rack, now), session),
        };
        self.note_rack(index);
        if !self.servers.get(index).face.alive {
            self.servers.set_alive(index, true);
            let registration = self.servers.get(index).face.registration.clone();
            if !self.contested.is_known(&registration.ip, registration.transfer_port) {
                self.events.joined.push(registration.transfer_address());
            }
        }
        let server = self.servers.get_mut(index);
        (server.session, server.reports_on) = (session, 0);
        // Started anew, it may not remember whom it obeyed.
        (server.lease, server.fenced_lease, server.heard_on) = (None, 0, None);
        for place in server.storages.clone() {
            // All is said anew: what was missing will be there.
            let storage = self.storages.get_mut(place);
            storage.become_stale();
            (storage.is_incomplete, storage.is_named, storage.is_away) = (false, false, false);
            self.distrust_report(place);
        }
        let server = self.servers.get_mut(index);
        (server.contradicts, server.is_to_register, server.has_named_storages) = (false, false, false);
        server.lost_storages.clear();
        self.forget_ordered(index);
        self.begin_trial(index);
        self.doubt_admin_state(index);
        self.unsettle(index);
        self.servers.face_mut(index).last_heartbeat = now;
        self.check_safe_mode(now);
        Ok(self.servers.get(index).face.clone())
    }

    /// Refuses a second server with a uuid that is known, because a server is in one place. While the known one is
    /// heard from its address, no other address may have its uuid. Two are believed at once: a process that starts
    /// anew on the same host, whatever its port; and a process at the address at which the server has passed its
    /// trial.
    fn refuse_a_second(
        &self,
        index: u32,
        registration: &Registration,
        now: Moment,
    ) -> Result<(), RegisterError> {
        let face = &self.servers.get(index).face;
        let is_back = self.newcomers.has_passed(&registration.uuid, &registration.ip);
        if !face.alive || is_back || face.registration.ip == registration.ip || self.is_stale(face, now) {
            return Ok(());
        }
        Err(RegisterError::LivesElsewhere {
            uuid: registration.uuid.clone(),
            registered: face.registration.transfer_address(),
            speaker: registration.transfer_address(),
            silent_ms: now.ms_since(face.last_heartbeat),
            wait_ms: self.config.stale_interval_ms,
        })
    }

    /// A host name says where clients find a server: that of a live server at another address is not taken over.
    fn is_named_elsewhere(&self, registration: &Registration) -> bool {
        let holders = self.servers.on_host(&registration.host_name).iter();
        holders.map(|index| &self.servers.get(*index).face).any(|face| {
            face.alive && face.registration.ip != registration.ip && face.uuid() != &registration.uuid
        })
    }

    /// The server lives, and its storages are as described. Answers what it must do; the answer will tell it that
    /// this server is the active one, if it commands.
    ///
    /// # Errors
    /// [`ServerError::AnotherHolds`] if another server holds the uuid, [`ServerError::TooManyStorages`] if the server
    /// would have more storages than it may. A server that is not registered gets the order to register, and no error.
    pub fn heartbeat(
        &mut self,
        id: ServerId,
        heartbeat: &Heartbeat,
        now: Moment,
    ) -> Result<Vec<Command>, ServerError> {
        let mut commands = self.heartbeat_without_orders(id, heartbeat, now)?;
        if commands.is_empty() {
            let index = self.speaker(id)?;
            if self.commanding {
                let server = self.servers.get_mut(index);
                server.heard_on = server.heard_on.max(Some(id.connection));
            }
            commands = self.commands(index);
        }
        Ok(commands)
    }

    /// Takes a heartbeat like [`BlockMap::heartbeat`], but gives no orders, because the metadata server does not lead,
    /// or is not sure that it still leads. Orders stay for the next heartbeat. Only the order to register may be
    /// answered, which any server may give.
    ///
    /// # Errors
    /// Those of [`BlockMap::heartbeat`].
    pub fn heartbeat_without_orders(
        &mut self,
        id: ServerId,
        heartbeat: &Heartbeat,
        now: Moment,
    ) -> Result<Vec<Command>, ServerError> {
        match self.lifeline(id, heartbeat, now) {
            Ok(index) if self.takes_new_reports(index) => {
                self.servers.get_mut(index).is_to_register = true;
                Ok(vec![Command::Register])
            }
            Ok(_) => Ok(Vec::new()),
            Err(ServerError::NotRegistered(_)) => Ok(vec![Command::Register]),
            Err(error) => Err(error),
        }
    }

    /// A server too busy for heartbeats says that it lives. It gets no commands.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] or [`ServerError::AnotherHolds`] if the server may not speak;
    /// [`ServerError::TooManyStorages`] if it would have more storages than it may.
    pub fn take_lifeline(
        &mut self,
        id: ServerId,
        heartbeat: &Heartbeat,
        now: Moment,
    ) -> Result<(), ServerError> {
        self.lifeline(id, heartbeat, now).map(|_| ())
    }

    fn lifeline(&mut self, id: ServerId, heartbeat: &Heartbeat, now: Moment) -> Result<u32, ServerError> {
        self.latest = now;
        let index = self.speaker(id)?;
        for report in &heartbeat.storages {
            self.take_storage(index, report)?;
        }
        let more_failed = heartbeat.failed_volumes > self.servers.get(index).face.failed_volumes;
        self.look_for_lost_storages(index, &heartbeat.storages, more_failed);
        self.take_numbers(index, heartbeat, now);
        self.take_slow_reports(index, &heartbeat.slow_peers, &heartbeat.slow_disks, now);
        Ok(index)
    }

    /// A number other than 0 if the server may now send a full report; 0 if too many are doing so.
    pub fn grant_report_lease(&mut self, id: ServerId, now: Moment) -> u64 {
        let Ok(index) = self.speaker(id) else { return 0 };
        let held = |lease: Option<(u64, Moment)>| lease.is_some_and(|(_, until)| now < until);
        let others =
            self.servers.iter().filter(|(other, server)| *other != index && held(server.lease)).count();
        if others >= self.config.max_report_leases {
            return 0;
        }
        let serial = self.next_serial();
        let until = now.plus_ms(self.config.report_lease_ms);
        self.servers.get_mut(index).lease = Some((serial, until));
        serial
    }

    /// The registration of the server that speaks.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] or [`ServerError::AnotherHolds`] if the server may not speak.
    pub fn registration_of(&self, id: ServerId) -> Result<Arc<Registration>, ServerError> {
        self.speaker(id).map(|index| self.servers.get(index).face.registration.clone())
    }

    /// The number of the data server that speaks, if it is registered and alive, and carries the key of its
    /// registration.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] if the server is unknown or lost, or does not carry the key of its registration;
    /// [`ServerError::AnotherHolds`] if another server holds its uuid.
    pub(crate) fn speaker(&self, id: ServerId) -> Result<u32, ServerError> {
        let unregistered = || ServerError::NotRegistered(format!("{id} ({})", id.uuid));
        let index = self.servers.find(id.uuid).ok_or_else(unregistered)?;
        let server = self.servers.get(index);
        // Back where it has passed, it registers again, and is believed.
        let is_back = &*server.face.registration.ip != id.ip && self.newcomers.has_passed(id.uuid, id.ip);
        if !server.is_named_by(id) && !is_back {
            return Err(ServerError::AnotherHolds {
                speaker: id.to_string(),
                uuid: id.uuid.to_owned(),
                registered: server.face.registration.transfer_address(),
            });
        }
        let is_in_session = server.is_in_session(id) || self.config.rules.break_rule(Broken::AnySession);
        if !server.face.alive || !is_in_session {
            return Err(unregistered());
        }
        Ok(index)
    }

    fn take_storage(&mut self, server: u32, report: &StorageReport) -> Result<(), ServerError> {
        let is_failed = report.state == StorageState::Failed;
        if is_failed && self.storage_of(server, &report.id).is_none() {
            return Ok(());
        }
        let place = self.storage_named(server, &report.id, report.storage_type)?;
        self.storages.get_mut(place).report = report.clone();
        if is_failed {
            self.retire(place);
            return Ok(());
        }
        self.storages.get_mut(place).note_named();
        let lost = &mut self.servers.get_mut(server).lost_storages;
        let known = lost.len();
        lost.retain(|name| *name != report.id);
        if lost.len() < known {
            // The storage is back. All that was known of it was forgotten, and no full report is due.
            self.note_contradiction(server);
        }
        Ok(())
    }

    fn storage_of(&self, server: u32, id: &str) -> Option<u32> {
        let storages = &self.servers.get(server).storages;
        storages.iter().copied().find(|place| &*self.storages.get(*place).report.id == id)
    }

    /// The storage of that id; a new one if the server has not spoken of it before.
    ///
    /// # Errors
    /// [`ServerError::TooManyStorages`] if the storage is new and the server has its maximum already.
    pub(crate) fn storage_named(
        &mut self,
        server: u32,
        id: &str,
        storage_type: StorageType,
    ) -> Result<u32, ServerError> {
        if let Some(place) = self.storage_of(server, id) {
            return Ok(place);
        }
        if self.servers.get(server).storages.len() >= MAX_STORAGES {
            return Err(ServerError::TooManyStorages { limit: MAX_STORAGES });
        }
        let report = StorageReport { id: id.into(), storage_type, ..Default::default() };
        let place = self.storages.add(server, self.servers.get(server), report);
        self.servers.get_mut(server).storages.push(place);
        Ok(place)
    }

    /// A storage that heartbeats do not name is not there any more, whatever reports say of it, which may have been made before it failed. That
    /// counts at once for the first heartbeat of a session, and for one that tells of a failed volume. Otherwise a few heartbeats are
    /// waited for, because one may be late.
    fn look_for_lost_storages(&mut self, server: u32, named: &[StorageReport], more_failed: bool) {
        if named.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(&mut self.servers.get_mut(server).has_named_storages, true);
        for place in self.servers.get(server).storages.clone() {
            let storage = self.storages.get_mut(place);
            if named.iter().any(|report| report.id == storage.report.id) {
                continue;
            }
            storage.unnamed = storage.unnamed.saturating_add(1);
            if is_first || more_failed || storage.unnamed >= UNNAMED_MAX {
                self.retire(place);
            }
        }
    }

    fn take_numbers(&mut self, index: u32, heartbeat: &Heartbeat, now: Moment) {
        let places = &self.servers.get(index).storages;
        let storages = || places.iter().map(|place| self.storages.get(*place));
        let blocks = storages().map(|storage| u64::from(storage.blocks)).sum();
        let blocks_scheduled = storages().map(Storage::promised).sum();
        let sum = |of: fn(&StorageReport) -> u64| -> u64 {
            let counts = |report: &&StorageReport| report.state != StorageState::Failed;
            heartbeat.storages.iter().filter(counts).map(of).fold(0, u64::saturating_add)
        };
        let face = self.servers.face_mut(index);
        face.last_heartbeat = now;
        face.capacity = sum(|report| report.capacity);
        face.dfs_used = sum(|report| report.dfs_used);
        face.non_dfs_used = sum(|report| report.non_dfs_used);
        face.remaining = sum(|report| report.remaining);
        face.block_pool_used = sum(|report| report.block_pool_used);
        face.cache_capacity = heartbeat.cache_capacity;
        face.cache_used = heartbeat.cache_used;
        face.xceivers = heartbeat.xceivers;
        face.transfers_in_progress = heartbeat.transfers_in_progress;
        face.failed_volumes = heartbeat.failed_volumes;
        // Nearly always nothing, or the same as before.
        if face.volume_failures.as_deref() != heartbeat.volume_failures.as_ref() {
            face.volume_failures = heartbeat.volume_failures.clone().map(Arc::new);
        }
        (face.blocks, face.blocks_scheduled) = (blocks, blocks_scheduled);
    }

    fn commands(&mut self, index: u32) -> Vec<Command> {
        if !self.may_command() || self.servers.get(index).is_to_register {
            return Vec::new();
        }
        let mut commands = Vec::new();
        let transfers = self.take_orders(index);
        if !transfers.is_empty() {
            commands.push(Command::Transfer(transfers));
        }
        let recoveries = self.take_recoveries(index);
        if !recoveries.is_empty() {
            commands.push(Command::Recover(recoveries));
        }
        if let Some(rate) = self.servers.get_mut(index).balancing_rate.take() {
            commands.push(Command::BalancingRate(rate));
        }
        let deletions = self.take_deletions(index);
        if !deletions.is_empty() {
            commands.push(Command::Invalidate(deletions));
        }
        commands
    }

    /// Tells all living servers, with their next heartbeats, how fast they may move blocks for balancing, in bytes
    /// per second. Servers that come later are not told, as in HDFS.
    pub fn set_balancing_rate(&mut self, bytes_per_second: u64) {
        for server in self.servers.iter_mut().filter(|server| server.face.alive) {
            server.balancing_rate = Some(bytes_per_second);
        }
    }

    fn take_orders(&mut self, index: u32) -> Vec<Transfer> {
        let busy = self.servers.get(index).face.transfers_in_progress as usize;
        let room = self.config.max_transfers_per_server.saturating_sub(busy);
        let orders = &mut self.servers.get_mut(index).orders;
        let orders: Vec<_> = orders.drain(..room.min(orders.len())).collect();
        let mut transfers = Vec::with_capacity(orders.len());
        for order in orders {
            if let Some(transfer) = self.transfer(index, order.block, &order.targets) {
                self.note_move_within(index, &order);
                transfers.push(transfer);
            }
        }
        transfers
    }

    /// The order as a command, if it still makes sense.
    fn transfer(&self, source: u32, id: BlockId, targets: &[u32]) -> Option<Transfer> {
        let slot = self.arena.find(id)?;
        let holds = self.arena.places(slot).iter().any(|place| self.storages.get(place).server == source);
        let complete = self.arena.record(slot).state() == crate::BlockState::Complete;
        let transfer = Transfer {
            block: self.arena.record(slot).block(),
            targets: targets.iter().map(|place| self.location_at(*place)).collect(),
        };
        (holds && complete && !targets.is_empty()).then_some(transfer)
    }

    pub(crate) fn location_at(&self, place: u32) -> Location {
        let storage = self.storages.get(place);
        Location {
            server: self.servers.get(storage.server).face.clone(),
            storage: storage.report.id.clone(),
            storage_type: storage.report.storage_type,
        }
    }

    /// How many data servers were heard within this time.
    pub fn heard_within(&self, limit_ms: u64, now: Moment) -> u32 {
        let last = |index: &u32| self.servers.get(*index).face.last_heartbeat;
        self.servers.live().iter().filter(|index| now.ms_since(last(index)) < limit_ms).count() as u32
    }

    pub(crate) fn find_dead_servers(&mut self, now: Moment) {
        let limit = self.config.dead_after_ms();
        let since_last_ms = now.ms_since(std::mem::replace(&mut self.looked_for_dead, now));
        if since_last_ms > limit / 2 {
            // The silence may be that of this process, which was held up: what others have said meanwhile waits in its sockets.
            self.is_patient_until = now.plus_ms(PATIENCE_HEARTBEATS * self.config.heartbeat_interval_ms);
        }
        if now < self.is_patient_until {
            return;
        }
        let silent = |index: &&u32| now.ms_since(self.servers.get(**index).face.last_heartbeat) > limit;
        for index in self.servers.live().iter().filter(silent).copied().collect::<Vec<_>>() {
            match self.servers.get(index).face.admin_state.is_maintenance() {
                true => self.miss_server(index),
                false => self.lose_server(index),
            }
        }
    }

    /// The server itself says that it can serve no more.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] or [`ServerError::AnotherHolds`] if the server may not speak.
    pub fn give_up_server(&mut self, id: ServerId) -> Result<(), ServerError> {
        let index = self.speaker(id)?;
        self.lose_server(index);
        Ok(())
    }

    /// The server is dead: its replicas no longer count. It stays known.
    fn lose_server(&mut self, index: u32) {
        self.end_server(index);
        self.forget_replicas(index);
    }

    /// The server is dead, and was to be in maintenance: its replicas are remembered, because it will be back.
    fn miss_server(&mut self, index: u32) {
        self.end_server(index);
        for place in self.servers.get(index).storages.clone() {
            let storage = self.storages.get_mut(place);
            storage.is_away = true;
            storage.become_stale();
            self.distrust_report(place);
            self.forget_dealings(place);
        }
        // Blocks that were copied from there are to be copied from elsewhere, and blocks that it held do not keep others from leaving.
        self.sweeper.request_redundancy();
        self.prolong_leaving();
    }

    /// The replicas of a dead server no longer count.
    pub(crate) fn forget_replicas(&mut self, index: u32) {
        for place in self.servers.get(index).storages.clone() {
            self.retire(place);
        }
    }

    /// The server is dead: nothing is under way there any more.
    fn end_server(&mut self, index: u32) {
        let address = self.servers.get(index).face.registration.transfer_address();
        self.events.died.push(address);
        self.servers.set_alive(index, false);
        // The server is not heard again before it has registered. By then it has carried out its orders, or dropped them.
        self.servers.get_mut(index).deletions.clear();
        self.servers.get_mut(index).ordered.clear();
        self.constructions.forget_leader(index);
        self.forget_samples_of(index);
        let server = self.servers.get_mut(index);
        server.claims = Claims::default();
        server.orders.clear();
        server.recoveries.clear();
        server.lease = None;
        let face = self.servers.face_mut(index);
        face.blocks = 0;
        face.xceivers = 0;
        for (id, sender) in self.redundancy.pending.forget_server(index) {
            self.note_late(id, sender);
            self.evaluate_id(id);
        }
    }

    /// Another server has registered at the address of this one, which is forgotten.
    fn replace(&mut self, index: u32, by: &Registration, now: Moment) {
        let face = self.servers.get(index).face.clone();
        if face.alive {
            let contest = self.contested.replaced((&by.ip, by.transfer_port), face.uuid(), &by.uuid, now);
            self.events.contested.extend(contest);
            self.lose_server(index);
            if self.contested.is_known(&by.ip, by.transfer_port) {
                // That it is gone, and is there again, would be told with each of its heartbeats.
                let address = face.registration.transfer_address();
                self.events.died.retain(|died| *died != address);
            }
        }
        self.forget_replicas(index);
        self.redundancy.hints.forget_server(index);
        self.servers.remove(index);
    }

    /// The addresses that data servers take from each other.
    pub fn contested(&self, now: Moment) -> Vec<Contest> {
        self.contested.list(now)
    }

    /// Removes a storage that is lost. All that names it outside the records is cleaned now; the records are cleaned
    /// by a sweep.
    fn retire(&mut self, place: u32) {
        let until = self.request_sweep();
        let server = self.storages.get(place).server;
        let (uuid, name) = self.names_of(place);
        self.redundancy.corrupt.lose_sight_of(place, &uuid, &name);
        self.storages.retire(place, until);
        let owner = self.servers.get_mut(server);
        owner.storages.retain(|held| *held != place);
        if owner.lost_storages.len() < MAX_STORAGES {
            owner.lost_storages.push(name);
        }
        self.forget_dealings(place);
    }

    /// Forgets all that is under way at a storage.
    fn forget_dealings(&mut self, place: u32) {
        self.constructions.forget_place(place);
        self.postponed.forget_place(place);
        self.unknown.held.forget_place(place);
        self.lose_place_of_deletions(place);
        for server in self.servers.iter_mut() {
            for order in &mut server.orders {
                order.targets.retain(|target| *target != place);
            }
        }
    }
}

fn new_face(registration: Registration, rack: Arc<str>, now: Moment) -> DataServer {
    DataServer {
        registration: Arc::new(registration),
        rack,
        alive: false,
        admin_state: AdminState::InService,
        blocks_in_need: 0,
        admin_state_since: now,
        last_heartbeat: now,
        last_report: Moment::default(),
        capacity: 0,
        dfs_used: 0,
        non_dfs_used: 0,
        remaining: 0,
        block_pool_used: 0,
        cache_capacity: 0,
        cache_used: 0,
        blocks: 0,
        blocks_scheduled: 0,
        xceivers: 0,
        transfers_in_progress: 0,
        failed_volumes: 0,
        volume_failures: None,
    }
}
