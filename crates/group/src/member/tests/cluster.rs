//! A small world for the machine's own tests: members, a coordinator and a network in one thread, with
//! instant disks.

use super::super::*;
use crate::Message;
use base::{Durable, EntryKind};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub struct Cluster {
    pub now: Moment,
    pub settings: Settings,
    pub members: BTreeMap<u32, Node>,
    pub view: GroupView,
    pub version: u64,
    /// The messages under way, in the order of their sending.
    pub wire: VecDeque<(MemberStore, u64, MemberId, Message)>,
    /// Pairs that cannot reach each other, in this direction.
    pub cut: BTreeSet<(u32, u32)>,
    /// The boot that the coordinator has in a member's record, where it is not that of its process.
    pub records: BTreeMap<u32, u64>,
    /// Members that have purged their logs up to here: what is not in memory is gone.
    pub purged: BTreeMap<u32, Sn>,
    /// The coordinator refuses every change.
    pub refuses: bool,
    /// No change reaches it, and whoever asked for one does not know.
    pub is_deaf: bool,
    /// Members that do not reach it.
    pub cut_off: BTreeSet<u32>,
    /// A change is made, and its answer gets lost.
    pub loses_answers: bool,
    /// Changes are made, and their answers held back in `held`.
    pub holds_answers: bool,
    pub held: Vec<(u32, crate::ChangeName, Result<u64, crate::ChangeFailed>)>,
    /// Changes that were asked for, and those of them that were refused although nobody had changed the view.
    pub asked: usize,
    pub not_made: usize,
}

pub struct Node {
    pub member: Member,
    pub log: Vec<Entry>,
    pub promised: Epoch,
    pub committed: Vec<Entry>,
    pub boot: u64,
    pub is_up: bool,
    pub refused: usize,
    pub answers: Vec<(u64, Result<String, String>)>,
    pub rebuild: bool,
    pub distrust: Option<String>,
    pub differs: Option<String>,
    pub needs_image: bool,
}

pub fn store(member: u32) -> MemberStore {
    MemberStore { member: MemberId(member), generation: 0 }
}

pub fn edit(text: &str) -> crate::Proposal {
    crate::Proposal { kind: EntryKind::Operation, payload: Bytes::copy_from_slice(text.as_bytes()) }
}

#[cfg(feature = "broken")]
thread_local! {
    static LEFT_OUT: std::cell::Cell<Option<crate::Broken>> = const { std::cell::Cell::new(None) };
}

/// Tells the story with members that leave a rule out; whether it ends as it is told.
#[cfg(feature = "broken")]
pub fn without(rule: crate::Broken, story: fn()) -> bool {
    LEFT_OUT.set(Some(rule));
    let ended = std::panic::catch_unwind(story);
    LEFT_OUT.set(None);
    ended.is_ok()
}

/// The settings of every member in these stories.
pub fn settings() -> Settings {
    Settings {
        #[cfg(feature = "broken")]
        broken: LEFT_OUT.get(),
        ..Settings::default()
    }
}

impl Cluster {
    /// Members 1 to `count`; the first `in_sync` of them are in sync.
    pub fn new(count: u32, in_sync: u32, in_sync_min: u32) -> Self {
        let stores: Vec<_> = (1..=in_sync).map(store).collect();
        let mut view = GroupView::new(&stores, in_sync_min);
        view.members = (1..=count).map(MemberId).collect();
        let mut cluster = Self {
            now: Moment::from_ms(1_000),
            settings: settings(),
            members: BTreeMap::new(),
            view,
            version: 1,
            wire: VecDeque::new(),
            cut: BTreeSet::new(),
            records: BTreeMap::new(),
            purged: BTreeMap::new(),
            refuses: false,
            is_deaf: false,
            cut_off: BTreeSet::new(),
            loses_answers: false,
            holds_answers: false,
            held: Vec::new(),
            asked: 0,
            not_made: 0,
        };
        for member in 1..=count {
            cluster.boot(member, Vec::new(), Epoch(0), 1);
        }
        for member in 1..=count {
            for other in (1..=count).filter(|other| *other != member) {
                cluster.step(member, Input::PeerConnected(MemberId(other)));
            }
        }
        cluster.settle();
        cluster
    }

    fn boot(&mut self, id: u32, log: Vec<Entry>, promised: Epoch, boot: u64) {
        let restored = Restored {
            promised,
            base: LogPoint::default(),
            tail: log.clone(),
            boot,
            is_suspect: false,
            ..Restored::default()
        };
        let member = Member::new(self.settings, store(id), restored, self.now, u64::from(id));
        let node = Node {
            member,
            log,
            promised,
            committed: Vec::new(),
            boot,
            is_up: true,
            refused: 0,
            answers: Vec::new(),
            rebuild: false,
            distrust: None,
            differs: None,
            needs_image: false,
        };
        self.members.insert(id, node);
        self.read_view(id);
    }

    pub fn kill(&mut self, id: u32) {
        self.node(id).is_up = false;
        self.wire.retain(|(from, _, to, _)| from.member.0 != id && to.0 != id);
        for other in self.up() {
            self.step(other, Input::PeerGone(MemberId(id)));
        }
    }

    pub fn restart(&mut self, id: u32) {
        let node = self.node(id);
        let (log, promised, boot) = (node.log.clone(), node.promised, node.boot + 1);
        self.boot(id, log, promised, boot);
        for other in self.up().into_iter().filter(|other| *other != id) {
            self.step(other, Input::PeerConnected(MemberId(id)));
            self.step(id, Input::PeerConnected(MemberId(other)));
        }
    }

    pub fn node(&mut self, id: u32) -> &mut Node {
        self.members.get_mut(&id).unwrap()
    }

    pub fn up(&self) -> Vec<u32> {
        self.members.iter().filter(|(_, node)| node.is_up).map(|(id, _)| *id).collect()
    }

    pub fn role(&self, id: u32) -> Role {
        self.members[&id].member.role().clone()
    }

    pub fn serving(&self) -> Option<u32> {
        let serves = |id: &u32| matches!(self.role(*id), Role::Serving { .. });
        self.up().into_iter().filter(serves).max_by_key(|id| self.members[id].member.promised())
    }

    pub fn read_view(&mut self, id: u32) {
        if self.cut_off.contains(&id) {
            return;
        }
        let (view, version) = (self.view.clone(), self.version);
        self.step(id, Input::View { view, version });
    }

    pub fn step(&mut self, id: u32, input: Input) {
        if !self.node(id).is_up {
            return;
        }
        let now = self.now;
        let mut effects = self.node(id).member.step(now, input);
        let (me, boot) = (self.node(id).member.me(), self.node(id).boot);
        if let Some(change) = effects.take_change() {
            let asked = change.name();
            self.asked += 1;
            assert!(self.asked < 300, "member {id} asks the coordinator without end");
            assert!(change.view.unclean_epoch <= change.view.epoch, "the coordinator takes no such view");
            let is_known = |life: &MemberLife| {
                let boot = self.members.get(&life.store.member.0).map(|node| node.boot);
                self.records.get(&life.store.member.0).copied().or(boot) == Some(life.boot)
            };
            let mut is_current = false;
            let answer = if self.is_deaf || self.cut_off.contains(&id) {
                Err(crate::ChangeFailed::Unknown)
            } else if (change.expected_version, change.expected_id) != (self.version, self.view.change_id) {
                Err(crate::ChangeFailed::BadVersion)
            } else if self.refuses || !change.requires.iter().all(is_known) {
                self.not_made += 1;
                Err(crate::ChangeFailed::NotMade)
            } else {
                is_current = true;
                self.version += 1;
                self.view = change.view;
                if self.loses_answers { Err(crate::ChangeFailed::Unknown) } else { Ok(self.version) }
            };
            self.deliver(id, effects, me, boot);
            if self.holds_answers {
                self.held.push((id, asked, answer));
            } else {
                self.step(id, Input::Changed { asked, answer });
            }
            if is_current {
                for other in self.up().into_iter().filter(|other| *other != id) {
                    self.read_view(other);
                }
            }
            return;
        }
        self.deliver(id, effects, me, boot);
    }

    fn deliver(&mut self, id: u32, mut effects: Effects, me: MemberStore, boot: u64) {
        for (to, message) in effects.take_messages() {
            self.wire.push_back((me, boot, to, message));
        }
        let outgoing = effects.take_outgoing();
        if let Some(epoch) = effects.promise() {
            self.node(id).promised = epoch;
        }
        if let Some(point) = effects.cut() {
            self.node(id).log.truncate(point.id.sn.0 as usize);
        }
        let entries = effects.take_entries();
        self.node(id).log.extend(entries);
        let node = self.node(id);
        node.committed.extend(outgoing.apply);
        node.refused += outgoing.refused.len();
        node.answers.extend(outgoing.answers);
        node.rebuild |= outgoing.rebuild.is_some();
        node.distrust = outgoing.distrust.or(node.distrust.take());
        node.differs = outgoing.differs.or(node.differs.take());
        node.needs_image |= outgoing.needs_image;
        let reads = outgoing.read_log;
        let reread = outgoing.read_view;
        if effects.needs_disk() {
            let released = effects.release(Durable::attest());
            for (to, message) in released.messages {
                self.wire.push_back((me, boot, to, message));
            }
            if let Some(proof) = released.proof {
                self.step(id, Input::Durable(proof));
            }
        }
        if reread && !self.is_deaf {
            self.read_view(id);
        }
        for asked in reads {
            if self.purged.get(&id).is_some_and(|purged| asked.after < *purged) {
                self.step(id, Input::LogRead { asked, result: Err(crate::LogReadFailed::Gone) });
                continue;
            }
            let log = &self.node(id).log;
            let after = asked.after.0 as usize;
            let previous = if after == 0 { LogPoint::default() } else { log[after - 1].point() };
            let entries = log[after..asked.up_to.0 as usize].to_vec();
            self.step(id, Input::LogRead { asked, result: Ok((previous, entries)) });
        }
    }

    /// Delivers all that is on the wire.
    pub fn settle(&mut self) {
        while let Some((from, boot, to, message)) = self.wire.pop_front() {
            if !self.cut.contains(&(from.member.0, to.0)) {
                self.step(to.0, Input::Message { from, boot, message });
            }
        }
    }

    /// Lets time pass, in the members' own steps.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            let next = self.up().into_iter().filter_map(|id| self.members[&id].member.deadline()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next.max(Moment { ns: self.now.ns + 100_000 }).min(end);
            for id in self.up() {
                if self.members[&id].member.deadline().is_some_and(|at| at <= self.now) {
                    self.step(id, Input::Tick);
                }
            }
            self.settle();
            if self.now >= end {
                break;
            }
        }
        self.now = end;
        self.settle();
    }

    pub fn propose(&mut self, id: u32, text: &str) {
        self.step(id, Input::Propose(vec![edit(text)]));
        self.settle();
    }

    pub fn operations(&self, id: u32) -> Vec<String> {
        let log = &self.members[&id].log;
        let committed = self.members[&id].member.committed().0 as usize;
        log[..committed]
            .iter()
            .filter(|entry| entry.kind == EntryKind::Operation)
            .map(|entry| String::from_utf8(entry.payload.to_vec()).unwrap())
            .collect()
    }
}
