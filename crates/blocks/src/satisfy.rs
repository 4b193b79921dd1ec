//! Replicas that are moved to the media of their file's policy, because a user asks for it.
//!
//! HDFS leaves this to a process of its own, its storage policy satisfier, which tells data servers itself what to move. Here the block map gives
//! the orders, with its other ones. A replica on an unwanted medium moves to another storage of its data server, if there is one of a
//! wanted medium with room and the server has not as many orders as it may have. Otherwise the block gets one replica more, on a wanted medium of another server. Then it has one too many, and the rules
//! of [`crate::excess`] choose it: nothing goes here. So a block never has fewer replicas for being moved, and racks go before media.
//!
//! As long as a replica may just be moving within its server, no other replica of the block goes for its sake.
//!
//! It is soft state like all else: after a takeover the blocks are named anew.

use crate::{
    efforts::{Effort, Satisfied},
    map::BlockMap,
    newcomers::Trial,
    placement::Wish,
    racks::Spread,
    server::StorageType,
    servers::Order,
    words::BlockState,
};
use base::{BlockId, InodeId, Moment, StoragePolicy, types_beyond};

/// How long a move within a server, or the deletion behind a copy, is awaited before the block is looked at again.
const PAUSE_MS: u64 = 2_000;
/// The pause before another look at a block for which there is no place.
const NO_PLACE_PAUSE_MS: u64 = 20_000;
/// So many looks in a row that find no place end the effort, as in HDFS (`dfs.storage.policy.satisfier.retry.max.attempts`).
const NO_PLACE_LOOKS_MAX: u8 = 3;
/// A replica that has not moved within its server in this time is taken to another server. Hadoop's data servers do not move it.
const WITHIN_MS: u64 = 60_000;
/// Orders in a tick for each live data server (`dfs.storage.policy.satisfier.work.multiplier.per.iteration`).
const ORDERS_PER_LIVE_SERVER: usize = 1;

/// The outcome of a look at a block.
enum Outcome {
    Satisfied,
    UnderWay,
    NoPlace,
}

/// The difference between the media that have a block's replicas and the media that its file's policy wants.
struct Lack {
    /// The places that count, those on unwanted media among them.
    held: Vec<u32>,
    /// Places on media with more replicas than the policy wants. They may be more than are to move.
    movable: Vec<u32>,
    /// The media without a replica that the policy wants there.
    missing: Vec<StorageType>,
    /// How many replicas are to move.
    moves: usize,
}

impl BlockMap {
    /// Begins to move the replicas of these blocks to the media of their files' policies. A block that the map does not know is left out, and
    /// an effort that is under way goes on. The server that commands calls this, with a bounded number of blocks.
    pub fn satisfy(&mut self, ids: &[BlockId], now: Moment) {
        for id in ids.iter().filter(|id| self.arena.find(**id).is_some()) {
            self.satisfying.begin(*id, now);
        }
    }

    /// How many blocks are not yet where their policies want them, as far as was asked for, and have not been given up.
    pub fn unsatisfied(&self) -> usize {
        self.satisfying.blocks.len()
    }

    /// Ends all efforts, because the client's request was withdrawn. Data servers may still carry out moves that were ordered.
    pub fn stop_satisfying(&mut self) {
        self.satisfying.clear();
    }

    /// The outcomes since the start.
    pub fn satisfied(&self) -> Satisfied {
        self.satisfying.counts
    }

    /// Looks at the blocks whose time has come, and gives orders for them.
    pub(crate) fn satisfy_policies(&mut self, now: Moment, policy_of: &dyn Fn(InodeId) -> u8) {
        let limit_ms = self.config.stale_interval_ms;
        let is_silent = |place: u32| {
            let storage = self.storages.get(place);
            let last = || self.servers.get(storage.server).face.last_heartbeat;
            storage.is_live() && now.ms_since(last()) > limit_ms
        };
        self.satisfying.forget_old_moves(now, is_silent);
        if self.satisfying.blocks.is_empty() {
            return;
        }
        let mut budget = self.servers.live().len() * ORDERS_PER_LIVE_SERVER;
        for id in self.satisfying.due(now) {
            if budget == 0 {
                return;
            }
            self.satisfying.cursor = BlockId(id.0.saturating_add(1));
            let Some(slot) = self.arena.find(id) else {
                self.satisfying.remove(id);
                continue;
            };
            let Some(mut effort) = self.satisfying.blocks.remove(&id) else { continue };
            let policy = StoragePolicy::in_force(policy_of(self.arena.record(slot).inode()));
            match self.improve(slot, &mut effort, policy, now, &mut budget) {
                Outcome::Satisfied => {
                    self.satisfying.counts.done += 1;
                    continue;
                }
                Outcome::UnderWay => {
                    effort.looks_without_place = 0;
                    effort.next_look = now.plus_ms(PAUSE_MS);
                }
                Outcome::NoPlace => {
                    effort.looks_without_place += 1;
                    effort.next_look = now.plus_ms(NO_PLACE_PAUSE_MS);
                }
            }
            if effort.looks_without_place >= NO_PLACE_LOOKS_MAX || effort.deadline <= now {
                self.satisfying.counts.given_up += 1;
            } else {
                self.satisfying.blocks.insert(id, effort);
            }
        }
    }

    fn improve(
        &mut self,
        slot: u32,
        effort: &mut Effort,
        policy: &'static StoragePolicy,
        now: Moment,
        budget: &mut usize,
    ) -> Outcome {
        let id = self.arena.record(slot).id();
        if self.arena.record(slot).state() != BlockState::Complete {
            // Orders to move it are dropped, or fail: that they are not carried out says nothing of the servers.
            effort.within.clear();
            return Outcome::UnderWay;
        }
        let wanted = self.wanted(slot);
        let lack = self.lack(slot, wanted, policy);
        if lack.moves > 0 {
            effort.note_left(lack.moves, now);
        }
        let is_held = |place: u32| lack.held.contains(&place);
        let late = |it: &&(u32, Moment)| is_held(it.0) && it.1 <= now;
        effort.in_vain.extend(effort.within.iter().filter(late).map(|(place, _)| *place));
        effort.within.retain(|(place, until)| is_held(*place) && *until > now);
        if lack.moves == 0 {
            // Another policy may have had replicas moved that have not told yet where they are.
            let may_move =
                |place: &u32| !effort.in_vain.contains(place) && self.satisfying.may_have_moved(id, *place);
            return if lack.held.iter().any(may_move) { Outcome::UnderWay } else { Outcome::Satisfied };
        }
        // A copy is on its way, or has come and the replica that goes for it is not yet chosen.
        let is_awaited = !self.redundancy.pending.servers(id).is_empty() || lack.held.len() > wanted;
        if is_awaited || !effort.within.is_empty() {
            return Outcome::UnderWay;
        }
        let within = self.move_within(slot, &lack, &effort.in_vain);
        if !within.is_empty() {
            *budget = budget.saturating_sub(within.len());
            self.satisfying.counts.orders += within.len() as u64;
            within.iter().for_each(|place| self.satisfying.note_moving(id, *place, now));
            effort.within = within.into_iter().map(|place| (place, now.plus_ms(WITHIN_MS))).collect();
            return Outcome::UnderWay;
        }
        let Some(source) = self.source(slot) else { return Outcome::UnderWay };
        effort.tried.retain(|server| self.is_newcomer(*server));
        let Some(target) = self.better_place(slot, &lack, &effort.tried, policy, now) else {
            return Outcome::NoPlace;
        };
        let server = self.storages.get(target).server;
        if self.is_newcomer(server) {
            effort.tried.push(server);
        }
        *budget -= 1;
        self.satisfying.counts.orders += 1;
        self.give_order(id, source, vec![target], now);
        Outcome::UnderWay
    }

    /// Compares the media of the replicas that count with the media that the policy wants.
    fn lack(&self, slot: u32, wanted: usize, policy: &StoragePolicy) -> Lack {
        let mut held = self.places_in_service(slot);
        held.retain(|place| self.storages.get(*place).trial != Trial::Doubted);
        let media: Vec<StorageType> = held.iter().map(|place| self.medium(*place)).collect();
        let unwanted = policy.types_too_many(wanted, &media);
        let missing = types_beyond(&policy.types_for(wanted), media);
        let moves = unwanted.len().min(missing.len());
        let movable = self.on_unwanted_media(&held, wanted, Some(policy));
        let movable = movable.into_iter().map(|at| held[at]).collect();
        Lack { held, movable, missing, moves }
    }

    /// Orders as many moves as possible from one storage to another of the same server. Returns the places that the replicas leave.
    fn move_within(&mut self, slot: u32, lack: &Lack, in_vain: &[u32]) -> Vec<u32> {
        let (id, length) = (self.arena.record(slot).id(), self.arena.record(slot).length());
        let mut missing = lack.missing.clone();
        let mut left = Vec::new();
        for place in lack.movable.iter().copied().filter(|place| !in_vain.contains(place)) {
            if left.len() == lack.moves {
                break;
            }
            let server = self.storages.get(place).server;
            if self.is_busy(server) || !self.storages.get(place).is_present() {
                continue;
            }
            let takes = |kind: StorageType| {
                let storages = self.servers.get(server).storages.iter().copied();
                storages.filter(|at| self.may_take(*at, kind, length)).min()
            };
            let Some((at, target)) =
                missing.iter().enumerate().find_map(|(at, kind)| Some((at, takes(*kind)?)))
            else {
                continue;
            };
            missing.remove(at);
            self.storages.get_mut(target).promise();
            self.servers.get_mut(server).orders.push_back(Order { block: id, targets: vec![target] });
            left.push(place);
        }
        left
    }

    /// An order goes out to this data server. If it is to move a replica within the server, that begins now, however long the order has waited.
    pub(crate) fn note_move_within(&mut self, server: u32, order: &Order) {
        let is_here = |place: &u32| self.storages.get(*place).server == server;
        if !order.targets.iter().any(is_here) {
            return;
        }
        let Some(slot) = self.arena.find(order.block) else { return };
        let held = self.arena.places(slot);
        if let Some(place) = held.iter().find(|place| self.storages.is_live(*place) && is_here(place)) {
            self.satisfying.note_moving(order.block, place, self.latest);
        }
    }

    fn is_newcomer(&self, server: u32) -> bool {
        self.servers.get(server).trial != Trial::Passed
    }

    /// A storage of a missing medium on a server that has no replica, and was not tried. With a replica there and one less on an unwanted medium, the
    /// block is still on two racks, if it has to be.
    fn better_place(
        &mut self,
        slot: u32,
        lack: &Lack,
        tried: &[u32],
        policy: &'static StoragePolicy,
        now: Moment,
    ) -> Option<u32> {
        let id = self.arena.record(slot).id();
        let held = self.arena.places(slot);
        let held = held.iter().filter(|place| self.storages.is_live(*place));
        let mut excluded: Vec<u32> = held.map(|place| self.storages.get(place).server).collect();
        excluded.extend(self.newcomers.awaits_sample(id));
        excluded.extend(tried);
        let goes = *lack.movable.first()?;
        let existing = lack.held.iter().copied().filter(|place| *place != goes).collect();
        let wish = Wish {
            block: Some(id),
            count: 1,
            avoided_rack: self.rack_to_avoid(slot, lack),
            block_size: self.arena.record(slot).length(),
            writer: None,
            excluded,
            favoured: Vec::new(),
            existing,
            policy,
            only: Some(lack.missing.clone()),
            is_new_block: false,
        };
        self.choose(wish, now).pop()
    }

    /// The rack on which all replicas are that are left, whichever of the movable ones goes. `None`: there is no such rack, or one rack is enough.
    fn rack_to_avoid(&self, slot: u32, lack: &Lack) -> Option<u32> {
        if !self.has_racks || self.wanted(slot) < 2 {
            return None;
        }
        let mut racks = lack.movable.iter().map(|goes| {
            let rest: Vec<u32> = lack.held.iter().copied().filter(|place| place != goes).collect();
            self.spread_of(&rest)
        });
        match racks.next() {
            Some(Spread::On(rack)) if racks.all(|other| other == Spread::On(rack)) => Some(rack),
            _ => None,
        }
    }
}
