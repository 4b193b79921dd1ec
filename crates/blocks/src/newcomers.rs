//! Data servers that have not shown yet that they store anything.
//!
//! Anybody can register as a data server and claim to hold every block. If such claims counted, real replicas
//! would be superfluous, and deleted. So a server is a *newcomer* until one of two things was seen here:
//! - it was in the pipeline with which a client has finished a block, and reported that replica as the client did. A recovery is no client,
//!   and a client that only opens a file again has no pipeline yet;
//! - a server that is not a newcomer has received a copy of a block from it, and has reported that copy.
//!
//! Where a newcomer may hold something, a *sample* is taken: the newcomer is ordered to send one block that it claims
//! to a server that is not a newcomer and lacks the block. The copy is deleted once it has arrived. While a sample
//! may still come, nothing is decided about blocks that the newcomer claims. A replica is deleted as superfluous or
//! damaged only where as many good ones as are wanted are on servers that are no newcomers, and newcomers' go first.
//!
//! A newcomer of which several samples did not come is *doubted*: its claims count for nothing, and those blocks are
//! copied from others. The result of a trial holds for a uuid at its address, for as long as this process lives: see
//! `docs/decisions/2026-11-22-newcomers.md`.

use crate::{
    map::BlockMap, pending::Sender, placement::Wish, random::Random, servers::Order, words::BlockState,
};
use base::{BlockId, Moment, StoragePolicy};
use std::{collections::BTreeMap, sync::Arc};

/// Blocks that are remembered of what a newcomer claims, drawn with equal chance. Some may have gone, or be on all
/// servers that could receive them.
const CANDIDATES: usize = 8;
/// Samples ordered in one tick, so that a restart of a large cluster does not begin with a storm of copies.
const SAMPLES_PER_TICK: usize = 16;
/// The number of samples of one server that have to fail before it is doubted: one may fail because of its receiver.
const FAILURES_MAX: u8 = 3;

/// A copy that is awaited no longer may come for as many times of those in which it should have.
const LATE_TIMEOUTS: u64 = 12;
/// Blocks of which copies may still come that are awaited no longer. Beyond that the oldest blocks are forgotten.
const LATE_MAX: usize = 65_536;

/// How far a server has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trial {
    /// A newcomer. A sample may be asked for, or is on its way: nothing is decided about what it claims.
    #[default]
    Open,
    /// A newcomer whose claims cannot be proved now: all that could receive a sample have it already.
    Unprovable,
    /// A newcomer of which no sample came.
    Doubted,
    /// The server is no newcomer.
    Passed,
}

impl Trial {
    pub fn has_passed(self) -> bool {
        self == Self::Passed
    }

    /// Whether a server is let go because of replicas on a server in this state. Replicas are deleted because of others on servers that have
    /// passed alone; but a server whose place a new one takes is to go some day.
    pub fn is_believed(self) -> bool {
        matches!(self, Self::Passed | Self::Unprovable)
    }
}

/// The blocks that a newcomer claims to have.
#[derive(Default)]
pub struct Claims {
    candidates: Vec<BlockId>,
    seen: usize,
    failures: u8,
}

impl Claims {
    /// Keeps each of those seen with the same chance.
    pub fn note(&mut self, id: BlockId, random: &mut Random) {
        self.seen += 1;
        if self.candidates.len() < CANDIDATES {
            self.candidates.push(id);
            return;
        }
        let at = random.below(self.seen);
        if at < CANDIDATES {
            self.candidates[at] = id;
        }
    }
}

/// A copy on its way that will show something of its source.
struct Sample {
    source: u32,
    target: u32,
    deadline: Moment,
    /// The copy is wanted only as a sample.
    is_surplus: bool,
}

/// Copies of a block that may come although they are awaited no longer.
struct Late {
    sender: Sender,
    until: Moment,
}

#[derive(Default)]
pub struct Newcomers {
    /// The samples under way. At most one is taken of each block.
    samples: BTreeMap<BlockId, Sample>,
    /// Copies that were ordered and are awaited no longer, by block. They may still come, or be reported late, anywhere: of such a block no other
    /// server than their sender is asked for a sample.
    late: BTreeMap<BlockId, Late>,
    /// The addresses of servers that are no newcomers, by uuid. A server that comes back there is no newcomer either.
    passed: BTreeMap<Arc<str>, Arc<str>>,
}

impl Newcomers {
    pub fn has_passed(&self, uuid: &str, ip: &str) -> bool {
        self.passed.get(uuid).is_some_and(|passed| **passed == *ip)
    }

    /// The server where a sample of the block is awaited. If the block came to it from elsewhere, that would pass for the sample.
    pub fn awaits_sample(&self, id: BlockId) -> Option<u32> {
        self.samples.get(&id).map(|sample| sample.target)
    }

    /// The block is gone.
    pub fn forget_block(&mut self, id: BlockId) {
        self.samples.remove(&id);
        self.late.remove(&id);
    }

    /// A sample of the block proves nothing any more. It may come until this moment.
    fn give_up_sample(&mut self, id: BlockId, until: Moment) {
        if let Some(sample) = self.samples.remove(&id) {
            self.note_late(id, Late { sender: Sender::One(sample.source), until });
        }
    }

    /// A server begins anew, or is lost.
    fn give_up_samples_of(&mut self, server: u32, until: Moment) {
        let concerns = |sample: &Sample| sample.source == server || sample.target == server;
        let ended: Vec<BlockId> =
            self.samples.iter().filter(|(_, sample)| concerns(sample)).map(|(id, _)| *id).collect();
        ended.into_iter().for_each(|id| self.give_up_sample(id, until));
    }

    fn note_late(&mut self, id: BlockId, late: Late) {
        let known = self.late.entry(id).or_insert(Late { sender: late.sender, until: late.until });
        known.sender = known.sender.and(late.sender);
        known.until = known.until.max(late.until);
        if self.late.len() > LATE_MAX {
            self.late.pop_first();
        }
    }

    /// Whether a copy of the block that comes may be another server's.
    pub fn may_be_of_others(&self, id: BlockId, source: u32, now: Moment) -> bool {
        self.late.get(&id).is_some_and(|late| now < late.until && late.sender != Sender::One(source))
    }

    fn has_sample_of(&self, server: u32) -> bool {
        self.samples.values().any(|sample| sample.source == server)
    }
}

impl BlockMap {
    fn late_until(&self) -> Moment {
        self.latest.plus_ms(self.config.pending_timeout_ms.saturating_mul(LATE_TIMEOUTS))
    }

    /// A copy is awaited no longer, but may still come.
    pub(crate) fn note_late(&mut self, id: BlockId, sender: Sender) {
        let until = self.late_until();
        self.newcomers.note_late(id, Late { sender, until });
    }

    /// A sample of the block proves nothing any more.
    pub(crate) fn give_up_sample(&mut self, id: BlockId) {
        self.newcomers.give_up_sample(id, self.late_until());
    }

    /// No sample that was ordered proves anything any more.
    pub(crate) fn give_up_samples(&mut self) {
        let ids: Vec<BlockId> = self.newcomers.samples.keys().copied().collect();
        ids.into_iter().for_each(|id| self.give_up_sample(id));
    }

    /// The server is lost.
    pub(crate) fn forget_samples_of(&mut self, server: u32) {
        self.newcomers.give_up_samples_of(server, self.late_until());
        // Its number may be given to another server.
        for late in self.newcomers.late.values_mut().filter(|late| late.sender == Sender::One(server)) {
            late.sender = Sender::Others;
        }
    }

    /// The server begins a session: from an address at which it has passed before, or it has that before it.
    pub(crate) fn begin_trial(&mut self, server: u32) {
        let registration = self.servers.get(server).face.registration.clone();
        let passed = self.newcomers.has_passed(&registration.uuid, &registration.ip);
        self.newcomers.give_up_samples_of(server, self.late_until());
        self.servers.get_mut(server).claims.failures = 0;
        self.set_trial(server, if passed { Trial::Passed } else { Trial::Open });
    }

    fn set_trial(&mut self, server: u32, trial: Trial) {
        let before = std::mem::replace(&mut self.servers.get_mut(server).trial, trial);
        if before.is_believed() && !trial.is_believed() {
            // The replicas on the server prove nothing any more.
            self.look_again_for_need();
        }
        for place in self.servers.get(server).storages.clone() {
            self.storages.get_mut(place).trial = trial;
        }
    }

    /// The server has shown that it stores what it says.
    pub(crate) fn pass(&mut self, server: u32) {
        if self.servers.get(server).trial == Trial::Passed {
            return;
        }
        let was_doubted = self.servers.get(server).trial == Trial::Doubted;
        self.set_trial(server, Trial::Passed);
        self.servers.get_mut(server).claims = Claims::default();
        let registration = self.servers.get(server).face.registration.clone();
        self.events.passed.push(registration.transfer_address());
        // A bound like that on servers: beyond it somebody is a newcomer again when it comes back.
        if self.newcomers.passed.len() < self.config.max_servers {
            self.newcomers.passed.insert(registration.uuid.clone(), registration.ip.clone());
        }
        if was_doubted {
            self.look_at_all_blocks();
        }
        self.count_slow_reports_of(server);
    }

    pub(crate) fn doubt(&mut self, server: u32) {
        self.set_trial(server, Trial::Doubted);
        self.events.doubted.push(self.servers.get(server).face.registration.transfer_address());
        self.look_at_all_blocks();
    }

    fn look_at_all_blocks(&mut self) {
        self.sweep_is_awaited = true;
        self.sweeper.request_redundancy();
    }

    /// A newcomer has one more replica, by its own word.
    pub(crate) fn note_claim(&mut self, place: u32, slot: u32) {
        let storage = self.storages.get(place);
        if storage.trial != Trial::Passed {
            let id = self.arena.record(slot).id();
            self.servers.get_mut(storage.server).claims.note(id, &mut self.random);
        }
    }

    /// A client has finished a block with these servers, and they have reported it: they are no newcomers. Each may have put it on
    /// another disk than was planned.
    pub(crate) fn pass_pipeline(&mut self, slot: u32, targets: &[u32]) {
        let id = self.arena.record(slot).id();
        let of_pipeline = |server: &u32| {
            targets
                .iter()
                .any(|place| self.storages.is_live(*place) && self.storages.get(*place).server == *server)
        };
        let places = self.arena.places(slot);
        let good = places
            .iter()
            .filter(|place| self.storages.is_live(*place) && !self.redundancy.corrupt.contains(id, *place));
        let servers: Vec<u32> =
            good.map(|place| self.storages.get(place).server).filter(of_pipeline).collect();
        for server in servers {
            self.pass(server);
        }
    }

    /// A copy from a newcomer is ordered for its own sake.
    pub(crate) fn note_copy(&mut self, id: BlockId, source: u32, targets: &[u32], deadline: Moment) {
        if !self.servers.get(source).trial.has_passed()
            && !self.newcomers.may_be_of_others(id, source, self.latest)
            && let Some(target) = targets.iter().copied().find(|target| self.may_receive_sample(*target))
        {
            self.give_up_sample(id);
            self.newcomers.samples.insert(id, Sample { source, target, deadline, is_surplus: false });
        }
    }

    /// A finished replica is reported. If it came as a sample its source is no newcomer, and it goes again.
    pub(crate) fn take_sample(&mut self, slot: u32, place: u32) {
        let id = self.arena.record(slot).id();
        let server = self.storages.get(place).server;
        let Some(sample) = self.newcomers.samples.get(&id).filter(|sample| sample.target == server) else {
            return;
        };
        let (source, is_surplus) = (sample.source, sample.is_surplus);
        self.newcomers.samples.remove(&id);
        if self.storages.get(place).stale {
            // A storage that has come since may have had the block before.
            return;
        }
        self.pass(source);
        let is_complete = self.arena.record(slot).state() == BlockState::Complete;
        if is_surplus && is_complete && self.count(slot).live > self.wanted(slot) {
            self.give_back(slot, place);
        }
    }

    /// Asks newcomers for samples, and draws conclusions from those that did not come.
    pub(crate) fn try_newcomers(&mut self, now: Moment) {
        self.newcomers.late.retain(|_, late| now < late.until);
        self.end_overdue_samples(now);
        let trial = |server: u32| self.servers.get(server).trial;
        let live = self.servers.live();
        if !live.iter().any(|server| trial(*server) == Trial::Passed) {
            return;
        }
        let is_on_trial = |server: &u32| matches!(trial(*server), Trial::Open | Trial::Unprovable);
        let newcomers: Vec<u32> = live.iter().copied().filter(is_on_trial).collect();
        // One of these may be able to receive a sample later.
        let is_unreported = |server: &u32| trial(*server).has_passed() && !self.is_surely_known(*server);
        let are_all_reported = !self.servers.in_service().iter().any(is_unreported);
        let mut asked = 0;
        for server in newcomers {
            let has_claims = !self.servers.get(server).claims.candidates.is_empty();
            if asked == SAMPLES_PER_TICK || !has_claims || self.newcomers.has_sample_of(server) {
                continue;
            }
            let is_asked = self.ask_for_sample(server, now);
            asked += usize::from(is_asked);
            // A claim that can be proved later is not believed before.
            let awaits_others = |id: &BlockId| self.newcomers.may_be_of_others(*id, server, now);
            let is_open = is_asked
                || !are_all_reported
                || self.servers.get(server).claims.candidates.iter().any(awaits_others);
            let trial = if is_open { Trial::Open } else { Trial::Unprovable };
            if self.servers.get(server).trial != trial {
                self.set_trial(server, trial);
            }
        }
    }

    fn ask_for_sample(&mut self, source: u32, now: Moment) -> bool {
        let mut candidates = self.servers.get(source).claims.candidates.clone();
        self.random.shuffle(&mut candidates);
        candidates.into_iter().any(|id| self.order_sample(id, source, now))
    }

    /// Returns false if no server can receive it, or the replica has changed meanwhile.
    fn order_sample(&mut self, id: BlockId, source: u32, now: Moment) -> bool {
        let Some(slot) = self.arena.find(id) else { return false };
        let held: Vec<u32> =
            self.arena.places(slot).iter().filter(|place| self.storages.is_live(*place)).collect();
        let holds = held.iter().any(|place| {
            self.storages.get(*place).server == source && !self.redundancy.corrupt.contains(id, *place)
        });
        let is_complete = self.arena.record(slot).state() == BlockState::Complete;
        let is_provable =
            !self.newcomers.samples.contains_key(&id) && !self.newcomers.may_be_of_others(id, source, now);
        if !holds || !is_complete || !is_provable {
            return false;
        }
        let mut excluded: Vec<u32> = held.iter().map(|place| self.storages.get(*place).server).collect();
        excluded.extend(self.redundancy.pending.servers(id));
        let live = self.servers.live().iter().copied();
        excluded.extend(live.filter(|server| !self.may_receive_sample(*server)));
        let wish = Wish {
            block: Some(id),
            count: 1,
            block_size: self.arena.record(slot).length(),
            writer: None,
            excluded,
            favoured: Vec::new(),
            existing: Vec::new(),
            only: None,
            policy: StoragePolicy::in_force(0),
            avoided_rack: None,
            is_new_block: false,
        };
        let targets = self.choose(wish, now);
        let Some(target) = targets.first().map(|place| self.storages.get(*place).server) else {
            return false;
        };
        let deadline = now.plus_ms(self.config.pending_timeout_ms);
        self.newcomers.samples.insert(id, Sample { source, target, deadline, is_surplus: true });
        self.servers.get_mut(source).orders.push_back(Order { block: id, targets });
        true
    }

    /// Whether a copy that the server reports is surely one that it has received: it is no newcomer, and has named all that it has. One that has
    /// just come back may have the block already.
    fn may_receive_sample(&self, server: u32) -> bool {
        self.servers.get(server).trial.has_passed() && self.is_surely_known(server)
    }

    fn end_overdue_samples(&mut self, now: Moment) {
        let overdue: Vec<BlockId> = self
            .newcomers
            .samples
            .iter()
            .filter(|(_, sample)| sample.deadline <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in overdue {
            let Some(Sample { source, is_surplus, .. }) = self.newcomers.samples.remove(&id) else {
                continue;
            };
            self.note_late(id, Sender::One(source));
            if !is_surplus {
                continue;
            }
            let claims = &mut self.servers.get_mut(source).claims;
            claims.failures += 1;
            // The last one is kept: without a block to ask for, the server would be on trial for ever.
            if claims.candidates.len() > 1 {
                claims.candidates.retain(|candidate| *candidate != id);
            }
            if claims.failures >= FAILURES_MAX {
                self.doubt(source);
            }
        }
    }
}
