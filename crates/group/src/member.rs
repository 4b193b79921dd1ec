//! One server's membership in one replica group.

mod adopt;
mod candidate;
mod change;
mod deaf;
mod digests;
mod evidence;
mod follow;
mod hand_over;
mod in_sync;
mod lead;
mod repair;
mod stream;

use crate::{
    Effects, Input, Order, Proof, Role, Settings, StateDigest, Status, Takeover, ViewChange, peer::Peer,
    status::PeerStatus, tail::Tail,
};
use base::{Entry, Epoch, GroupView, Level, LogPoint, MemberId, MemberLife, MemberStore, Moment, Sn};
use candidate::Candidacy;
use digests::Digests;
pub use digests::{Agreement, ImageFate};
use evidence::Evidence;
use follow::Following;
use lead::Leading;

/// The facts about this member that its store remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub promised: Epoch,
    /// Everything up to here is known to have committed, and the state machine has applied it.
    pub base: LogPoint,
    /// The entries after `base`: durable, perhaps committed, not applied.
    pub tail: Vec<Entry>,
    /// Starts of the store, this one included: names this life.
    pub boot: u64,
    /// The log's end was torn: an entry that this member has acknowledged may be missing.
    pub is_suspect: bool,
    /// The digests of the state machine at the checkpoints that were applied anew, the oldest first.
    pub digests: Vec<StateDigest>,
    /// A store of this member was put aside because its state differed from that of the others, and is still there.
    pub has_differed: bool,
    /// The group's level, as the state machine has it.
    pub level: Level,
}

/// One server's membership in one replica group.
///
/// Its methods are of three kinds: [`Member::step`] takes an input and returns its effects, [`Member::deadline`] says
/// when to come back if nothing happens, and questions look at it. After each step the object is clean:
/// [`Member::is_consistent`] holds.
///
/// The log may run ahead of the disk, commits may not: an entry commits when every member of the confirmed
/// in-sync set, and of a set that is being changed to, has proved it durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    settings: Settings,
    me: MemberStore,
    boot: u64,
    /// State of the dice for back-offs.
    dice: u64,
    /// Changes of the view asked for in this life.
    change_count: u64,
    role: Role,
    /// The view as last confirmed by the coordinator, with its version.
    view: Option<(GroupView, u64)>,
    /// A change of the view under way. Until its answer is known both sets are required.
    pending: Option<Pending>,
    /// Highest epoch promised, durable.
    promised: Epoch,
    /// Highest epoch whose promise was asked for. Messages of lower epochs are ignored.
    promising: Epoch,
    tail: Tail,
    /// The last entry of the own log that is durable.
    durable: LogPoint,
    /// How often the log was cut off in this life.
    cuts: u64,
    /// Everything up to here is known to have committed; after a start the state machine may be behind.
    committed: Sn,
    /// The state machine has applied, or was given, everything up to here.
    applied: Sn,
    is_suspect: bool,
    /// The state machine has applied what was cut off and is built anew: it is given nothing more in this life.
    is_rebuilt: bool,
    is_ready: bool,
    /// The group's, as this member's state machine has it from entries that have committed.
    level: Level,
    /// Data servers that have reached this member lately.
    data_servers: u32,
    following: Following,
    candidacy: Candidacy,
    /// The evidence of the others' stores about the group's history.
    evidence: Evidence,
    digests: Digests,
    /// The state of an active; `None` if this member does not lead.
    leading: Option<Box<Leading>>,
    /// When to send the pending change again, or to read the view again and then, perhaps, to claim.
    retry_at: Option<Moment>,
    takeovers: Vec<Takeover>,
}

/// A change of the view whose answer is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pending {
    change: ViewChange,
    cause: Cause,
    asked_at: Moment,
    /// An answer got lost: an earlier copy may have been taken.
    was_unknown: bool,
    /// It is not sent again, but an earlier copy may have been taken, or may yet be: the view tells.
    is_in_doubt: bool,
    /// The claim of a member that may lack what has committed.
    is_unclean: bool,
    /// The unclean claim is not repeated, because nothing need be lost any more.
    is_void: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cause {
    Claim,
    InSync,
    Reconfigure {
        ticket: u64,
    },
    /// The view learns what has committed.
    Hint,
    Repair {
        ticket: u64,
    },
}

/// An epoch so far above the view's is taken for nonsense until the view has been read again.
const EPOCH_LEAP_MAX: u64 = 64;
/// Takeovers remembered for operators.
const TAKEOVERS_KEPT: usize = 16;

impl Member {
    /// `seed` is for back-offs only: members of a group had better not share it.
    pub fn new(settings: Settings, me: MemberStore, restored: Restored, now: Moment, seed: u64) -> Self {
        let tail = Tail::new(restored.base, restored.tail);
        let proved = tail.proved().filter(|_| !settings.breaks(crate::broken::Broken::EntriesProveNothing));
        let committed = proved.unwrap_or_default().max(restored.base.id.sn);
        Self {
            me,
            boot: restored.boot,
            dice: seed,
            change_count: 0,
            role: Role::Following,
            view: None,
            pending: None,
            promised: restored.promised,
            promising: restored.promised,
            durable: tail.end(),
            cuts: 0,
            committed,
            applied: restored.base.id.sn,
            tail,
            is_suspect: restored.is_suspect,
            is_rebuilt: false,
            is_ready: true,
            level: restored.level,
            data_servers: 0,
            following: Following::new(now, &settings),
            candidacy: Candidacy::default(),
            evidence: Evidence::default(),
            digests: Digests::new(restored.digests, restored.has_differed),
            leading: None,
            retry_at: None,
            takeovers: Vec::new(),
            settings,
        }
    }

    /// Takes one input; returns everything the world must now do.
    pub fn step(&mut self, now: Moment, input: Input) -> Effects {
        let mut effects = Effects { cuts: self.cuts, ..Effects::default() };
        let role_before = self.role.clone();
        if !matches!(self.role, Role::Stopped { .. }) {
            self.look_soon(now, &input);
            self.take(now, input, &mut effects);
            self.drive(now, &mut effects);
        } else if let Input::Propose(proposals) = input {
            effects.outgoing.refused = proposals;
        }
        if self.role != role_before {
            effects.outgoing.role = Some(self.role.clone());
        }
        effects.cuts = self.cuts;
        let kept = self.committed.min(self.applied).min(self.durable.id.sn);
        self.tail.forget(kept, self.settings.window_bytes);
        debug_assert_eq!(self.is_consistent(), Ok(()));
        effects
    }

    fn take(&mut self, now: Moment, input: Input, effects: &mut Effects) {
        match input {
            Input::View { view, version } => self.on_view(now, view, version, effects),
            Input::Changed { asked, answer } => self.on_changed(now, asked, answer, effects),
            Input::Durable(proof) => self.on_durable(now, proof, effects),
            Input::DiskFailed => self.stop("the journal has failed; check the disk"),
            Input::Propose(proposals) => self.on_propose(now, proposals, effects),
            Input::Suggest(proposal) => self.on_suggest(proposal, effects),
            Input::Message { from, boot, message } => self.on_message(now, from, boot, message, effects),
            Input::PeerConnected(member) => self.on_peer_connected(member, effects),
            Input::PeerGone(member) => self.on_peer_gone(now, member),
            Input::PeerEnded { store, boot } => self.on_peer_ended(now, store, boot),
            Input::LockGone => self.candidacy.lock_is_gone = true,
            Input::LogRead { asked, result } => self.on_log_read(now, asked, result, effects),
            Input::Operator { ticket, order } => self.on_order(now, ticket, order, effects),
            Input::Ready(is_ready) => self.is_ready = is_ready,
            Input::Level(level) => self.level = self.level.max(level),
            Input::Digest(digest) => self.on_digest(digest, effects),
            Input::DataServers(count) => self.data_servers = count,
            Input::Quiet => self.on_quiet(),
            Input::StepDown => self.on_step_down(now),
            Input::Tick => {}
        }
    }

    /// Inputs that are no part of the stream may change who is in sync.
    fn look_soon(&mut self, now: Moment, input: &Input) {
        let is_stream = matches!(
            input,
            Input::Propose(_)
                | Input::Durable(_)
                | Input::Tick
                | Input::Message { message: crate::Message::Appended { .. }, .. }
        );
        if let Some(leading) = self.leading.as_mut().filter(|_| !is_stream) {
            leading.look_at = now;
        }
    }

    /// Does all that time, or the input just taken, has made due. Cheap when nothing is.
    fn drive(&mut self, now: Moment, effects: &mut Effects) {
        self.repeat_change(now, effects);
        self.go_on_repairing(now, effects);
        if self.leading.is_some() {
            self.drive_leading(now, effects);
        }
        if self.leading.is_none() {
            self.consider_claim(now, effects);
        }
    }

    /// When to call `step(now, Input::Tick)` if nothing else happens first.
    pub fn deadline(&self) -> Option<Moment> {
        if matches!(self.role, Role::Stopped { .. }) {
            return None;
        }
        let role = if self.leading.is_some() { self.leading_deadline() } else { self.candidate_deadline() };
        let inquiry = self.evidence.inquiry.as_ref().map(|inquiry| inquiry.until);
        [self.retry_at, inquiry, role].into_iter().flatten().min()
    }

    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Entries up to here have committed.
    pub fn committed(&self) -> Sn {
        self.committed
    }

    /// The last entry of the log, durable or not.
    pub fn end(&self) -> LogPoint {
        self.tail.end()
    }

    /// The highest epoch promised, durable.
    pub fn promised(&self) -> Epoch {
        self.promised
    }

    /// The view by which this member leads in `epoch`, named by its version and the change that made it. `None` if this
    /// member does not lead in that epoch, or if the view that it knows is of another lead.
    pub fn basis_of_lead(&self, epoch: Epoch) -> Option<(u64, u64)> {
        let leads = match self.role {
            Role::Serving { epoch: own } | Role::Reading { epoch: own } => own == epoch,
            _ => false,
        };
        let (view, version) = self.view.as_ref()?;
        let is_own = view.active == Some(self.me.member) && view.epoch == epoch;
        (leads && is_own).then_some((*version, view.change_id))
    }

    pub fn view(&self) -> Option<&GroupView> {
        self.view.as_ref().map(|(view, _)| view)
    }

    pub fn me(&self) -> MemberStore {
        self.me
    }

    /// Until when nobody else can have become active: `None` is for ever (nobody else is eligible), the
    /// beginning of time is not at all. To be asked after a read was evaluated and before it is answered.
    pub fn lease_end(&self) -> Option<Moment> {
        let never = Some(Moment::default());
        let (Some(leading), Some(view)) = (&self.leading, self.view()) else { return never };
        if !matches!(self.role, Role::Serving { .. } | Role::HandingOver { .. } | Role::Reading { .. }) {
            return never;
        }
        let pending = self.pending.as_ref().map(|pending| &pending.change.view);
        let eligible = [Some(view), pending].into_iter().flatten();
        let forgets_exiles = self.settings.breaks(crate::broken::Broken::LeaseOfInSyncOnly);
        let counts_old = self.settings.breaks(crate::broken::Broken::CountsOldGrants);
        eligible
            .flat_map(|view| view.in_sync.iter().chain(view.exiles.iter().filter(|_| !forgets_exiles)))
            .filter(|store| store.member != self.me.member)
            .map(|store| {
                let peer = leading.peers.get(&store.member);
                peer.and_then(|peer| peer.granted_by(*store, counts_old)).unwrap_or_default()
            })
            .min()
    }

    pub fn status(&self, now: Moment) -> Status {
        let view = self.view();
        let peers = self.leading.iter().flat_map(|leading| &leading.peers);
        Status {
            role: self.role.clone(),
            view: self.view.clone(),
            promised: self.promised,
            end: self.end(),
            committed: self.committed,
            active: self.active(),
            hears_active: self.leading.is_some()
                || now < self.following.granted_until && self.active().is_some(),
            is_eligible: view.is_some_and(|view| view.is_eligible(self.me)),
            is_in_sync: view.is_some_and(|view| view.in_sync.contains(&self.me)),
            is_writable: self.is_writable(),
            peers: peers.map(|(member, peer)| self.peer_status(now, *member, peer)).collect(),
            trouble: self.trouble(now).or_else(|| self.difference()).or_else(|| self.is_deaf()),
            known: self.evidence.known().clone(),
            last_takeovers: self.takeovers.clone(),
        }
    }

    fn peer_status(&self, now: Moment, member: MemberId, peer: &Peer) -> PeerStatus {
        let heard_ms_ago = peer.heard_at.map(|at| now.ms_since(at));
        let is_in = |stores: &[MemberStore]| stores.iter().any(|store| store.member == member);
        let view = self.view().expect("whoever leads has a view");
        let state = match peer.next {
            _ if is_in(&view.in_sync) => "in sync",
            _ if is_in(&view.exiles) => "exile",
            _ if heard_ms_ago.is_none_or(|ms| ms > self.settings.silence_ms) => "silent",
            crate::peer::Next::NeedsImage => "needs an image",
            crate::peer::Next::Contradicts => "contradicts",
            crate::peer::Next::Reading(_) => "reading the log",
            _ => "catching up",
        };
        PeerStatus {
            member,
            is_connected: !peer.is_gone,
            heard_ms_ago,
            matched: peer.matched,
            end: peer.end,
            state,
            data_servers: peer.data_servers,
            is_ready: peer.is_ready,
        }
    }

    /// The member that leads, as far as this one knows: itself, or the member that it last heard of.
    pub fn active(&self) -> Option<MemberId> {
        match (&self.leading, &self.following.leader) {
            (Some(_), _) => Some(self.me.member),
            (None, Some(leader)) if leader.epoch == self.promising => Some(leader.member),
            _ => None,
        }
    }

    /// Whether enough members are in sync for entries to commit.
    pub fn is_writable(&self) -> bool {
        self.view().is_some_and(|view| view.in_sync.len() as u32 >= view.in_sync_min)
    }

    /// The complete check, for debug builds and simulators.
    ///
    /// # Errors
    /// An invariant is broken. The text is the first one found, as a sentence that should be true.
    pub fn is_consistent(&self) -> Result<(), &'static str> {
        let end = self.end().id.sn;
        if self.committed > end || self.applied > end {
            return Err("nothing is committed or applied beyond the end of the log");
        }
        if self.durable.id.sn > end {
            return Err("nothing is durable beyond the end of the log");
        }
        if self.promised > self.promising {
            return Err("what is promised was asked for");
        }
        let leads = match self.role {
            Role::Starting { epoch }
            | Role::Reading { epoch }
            | Role::Serving { epoch }
            | Role::HandingOver { epoch } => Some(epoch),
            _ => None,
        };
        if leads != self.leading.as_ref().map(|leading| leading.epoch) {
            return Err("the role says who leads");
        }
        if let Some(epoch) = leads {
            let Some((view, _)) = &self.view else {
                return Err("whoever leads has seen the view that says so");
            };
            // The coordinator has forgotten that view and is asked to have it again.
            let repaired =
                self.pending.as_ref().filter(|pending| matches!(pending.cause, Cause::Repair { .. }));
            let view = repaired.map_or(view, |pending| &pending.change.view);
            if view.epoch != epoch || view.active != Some(self.me.member) {
                return Err("whoever leads is the active of the confirmed view");
            }
            if self.promising != epoch {
                return Err("whoever leads has asked for the promise of its own epoch and of no later one");
            }
            let has_begun = self.leading.as_ref().is_some_and(|leading| leading.epoch_start > Sn(0));
            if has_begun && self.promised != epoch {
                return Err("nothing is appended in an epoch before its promise is durable");
            }
        }
        if let Role::Serving { .. } = self.role
            && self.leading.as_ref().is_some_and(|leading| self.committed < leading.epoch_start)
        {
            return Err("nothing is served before the epoch's first entry has committed");
        }
        if let Role::Reading { .. } = self.role
            && (self.applied != end || self.leading.as_ref().is_none_or(|leading| leading.epoch_start > end))
        {
            return Err("whoever answers below the minimum has applied its whole log");
        }
        if matches!(self.role, Role::Claiming) && self.view.is_none() {
            return Err("a claim rests on a view");
        }
        Ok(())
    }

    fn on_durable(&mut self, now: Moment, proof: Proof, effects: &mut Effects) {
        if let Some(promised) = proof.promised {
            self.promised = self.promised.max(promised);
            self.on_promised(now, promised, effects);
        }
        // After a cut, proofs of what was written before it are void: what stayed is proved by the next one.
        if let Some(appended) = proof.appended
            && proof.cuts == self.cuts
            && appended.id.sn > self.durable.id.sn
        {
            assert!(appended.id.sn <= self.end().id.sn, "only what was appended becomes durable");
            self.durable = appended;
            match &mut self.leading {
                Some(leading) => leading.durable_at = now,
                None => self.acknowledge(effects),
            }
        }
        self.advance_commit(now, effects);
    }

    /// Cuts the log off after `sn`, which has not been overtaken by the commit.
    fn cut(&mut self, sn: Sn, effects: &mut Effects) {
        self.tail.cut(sn);
        self.cuts += 1;
        if self.durable.id.sn > sn {
            self.durable = self.tail.end();
        }
        if self.applied > sn {
            effects.outgoing.rebuild = Some(format!(
                "entries up to {} were applied here, but the group goes on after {sn}",
                self.applied
            ));
            // All further entries belong to a state machine that is built anew.
            self.is_rebuilt = true;
            self.applied = sn;
        }
        effects.cut = Some(self.tail.end());
    }

    fn push(&mut self, entry: Entry, effects: &mut Effects) -> LogPoint {
        let point = self.tail.push(entry.clone());
        effects.entries.push(entry);
        effects.appended = Some(point);
        point
    }

    fn commit_up_to(&mut self, sn: Sn, effects: &mut Effects) {
        if sn <= self.committed {
            return;
        }
        self.committed = sn;
        if self.is_rebuilt {
            self.applied = self.applied.max(sn);
            return;
        }
        effects.outgoing.committed = Some(sn);
        if self.committed > self.applied {
            effects.outgoing.apply.extend(self.tail.between(self.applied, self.committed));
            self.applied = self.committed;
        }
    }

    fn is_alone(&self) -> bool {
        self.view().is_some_and(|view| view.members == [self.me.member])
    }

    fn is_member(&self, member: MemberId) -> bool {
        member != self.me.member && self.view().is_some_and(|view| view.members.contains(&member))
    }

    /// Pseudo-random, below `bound`.
    fn roll(&mut self, bound: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn life_of(store: MemberStore, boot: u64) -> MemberLife {
        MemberLife { store, boot }
    }

    fn on_order(&mut self, now: Moment, ticket: u64, order: Order, effects: &mut Effects) {
        let answer = match order {
            Order::HandOver { to } => self.begin_hand_over(now, Some(ticket), to),
            Order::Reconfigure { members, in_sync_min } => self.reconfigure(ticket, members, in_sync_min),
            Order::UncleanElect => self.force_claim(now, ticket, effects),
            Order::Repair { without, is_confirmed } => {
                self.repair(now, ticket, &without, is_confirmed, effects)
            }
        };
        if let Err(reason) = answer {
            effects.outgoing.answers.push((ticket, Err(reason)));
        }
    }

    fn on_step_down(&mut self, now: Moment) {
        let is_served = matches!(self.role, Role::Serving { .. });
        if !is_served || self.begin_hand_over(now, None, None).is_err() {
            self.stop("asked to step down");
        }
    }

    fn stop(&mut self, reason: &str) {
        self.leading = None;
        self.pending = None;
        self.retry_at = None;
        self.candidacy = Candidacy::default();
        self.role = Role::Stopped { reason: reason.to_owned() };
    }

    /// This store is not what it should be: it must be renewed from others.
    fn distrust(&mut self, reason: String, effects: &mut Effects) {
        self.stop(&reason);
        effects.outgoing.distrust = Some(reason);
    }
}

#[cfg(test)]
mod tests;
