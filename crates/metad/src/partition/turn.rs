//! The writer's turn: a batch of operations under one lock, planned and applied one after the other.

use super::Partition;
use crate::{
    member::Proposed,
    older_answers::Older,
    points::{self, Point},
    settle::tell_ahead,
};
use ::blocks::Location;
use base::{
    Block, CallOrigin, Caller, EntryKind, Epoch, FsError, FsResult, GroupId, InodeId, LogPoint, Moment, Sn,
    Timestamp, TxId,
    directory_log::{Dix, Mark},
};
use bytes::Bytes;
use dirlog::OpId;
use group::Proposal;
use namespace::{
    Applied, BlockChange, BlockFacts, Context, Edit, Looks, Namespace, Renewals, RetryLookup, Watch,
    older_calls::Noted,
    ops::Body,
    questions::{Question, Told},
    shares::{Lack, Room},
};
use serving::{RecentEvents, Tree, Until};
use std::sync::Arc;

/// How long one turn may keep readers waiting.
pub const TURN_NS_MAX: u64 = 1_000_000;

/// Sends a reply, once its entry has committed; an error says that it will not commit here.
pub type Release = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// Sees the tree and the place in the log that it stands at.
pub type AtTheEnd = Box<dyn FnOnce(&Namespace, LogPoint) + Send>;

/// The work that a turn leaves for after the namespace is unlocked.
pub struct Finished {
    pub releases: Vec<(Until, Release)>,
    /// The replies whose edits never reached the log.
    pub unreleased: Vec<(Until, Release)>,
    pub orphans_left: bool,
    pub proposed: Proposed,
    /// Events that are kept no more, to be dropped while nothing is locked.
    pub events: Option<RecentEvents>,
}

pub struct Turn<'a> {
    partition: &'a Arc<Partition>,
    tree: &'a mut Tree,
    epoch: Epoch,
    pub now: Timestamp,
    pub moment: Moment,
    /// When the call that is being carried out was taken up.
    pub taken_up: Moment,
    entries: Vec<(EntryKind, Bytes)>,
    releases: Vec<(Until, Release)>,
    at_the_end: Vec<AtTheEnd>,
    /// One buffer for the encoding of all edits of this turn.
    scratch: Vec<u8>,
    /// The changes that the block map is told when their edits have committed.
    unsettled: Vec<(Sn, BlockChange)>,
    /// The notes for the index of older calls; `None` if there is no index.
    news: Option<Vec<Noted>>,
    orphans_left: bool,
    events: Option<RecentEvents>,
    /// The looks that were taken for the call that is being carried out. Without them its plans look at all that they need.
    looks: Option<Looks>,
    /// The journal's answer about the call that is being carried out, in case the retry cache does not know it.
    older: Older,
    /// What has to be visible before the call that is being carried out may be answered: the entries of the directory log on which its edits
    /// rest.
    rests_on: Until,
    /// What homes have told the root group for the call that is being carried out.
    told: Option<Told>,
    /// The operation for which they hold that.
    op: Option<OpId>,
    /// Whether the call that is being carried out has asked the root group for an allowance of a quota, and what its last plan lacked.
    room: Room,
    /// The call that is being carried out is not answered now.
    detour: Option<Detour>,
}

/// Why a call is not answered in this turn.
pub enum Detour {
    /// Homes have to tell these first.
    Ask(Vec<Question>),
    /// What they have told is void: they are asked anew.
    AskedAnew,
    /// The root group has to give this group, or others, more of a quota.
    Allot(Lack),
    /// Another group decides it now.
    Elsewhere(GroupId),
}

impl<'a> Turn<'a> {
    pub fn begin(partition: &'a Arc<Partition>, tree: &'a mut Tree, moment: Moment) -> Self {
        let events = tree.keep_events(partition.member.is_watched(moment));
        Self {
            epoch: partition.member.epoch(),
            now: partition.env.clock.timestamp(),
            moment,
            taken_up: moment,
            partition,
            tree,
            entries: Vec::new(),
            releases: Vec::new(),
            at_the_end: Vec::new(),
            scratch: Vec::new(),
            unsettled: Vec::new(),
            news: partition.older_answers.feed.is_open().then(Vec::new),
            orphans_left: false,
            events,
            looks: None,
            older: Older::Nothing,
            rests_on: Until::NOW,
            told: None,
            op: None,
            room: Room::default(),
            detour: None,
        }
    }

    /// Carries a call out of which this is known.
    pub fn knowing<T>(&mut self, older: Older, carry_out: impl FnOnce(&mut Self) -> T) -> T {
        self.older = older;
        self.rests_on = Until::NOW;
        let result = carry_out(self);
        self.older = Older::Nothing;
        (self.told, self.op, self.detour) = (None, None, None);
        self.room = Room::default();
        result
    }

    /// The call that is carried out next changes directories perhaps, and may ask homes; `op` and `told` if they were asked for it before.
    pub fn may_ask(&mut self, op: Option<OpId>, told: Told) {
        (self.op, self.told) = (op, Some(told));
    }

    /// The call that is carried out next has asked for more of a quota, and was answered with this entry of the directory log.
    pub fn has_asked(&mut self, since: Option<Dix>) {
        self.room = Room::since(since);
    }

    /// What the last plan lacks of a quota. Whatever it came to is of no use then.
    pub fn take_lack(&self) -> Option<Lack> {
        self.room.take_lack()
    }

    /// The questions that the last plan has to have answered.
    pub fn take_unanswered(&self) -> Option<Vec<Question>> {
        self.told.as_ref()?.take_unanswered()
    }

    /// The edit of the call's operation, which rests on what homes have told. `Err`: that is void.
    pub fn order(&mut self, edit: Edit) -> Result<Edit, ()> {
        let Some(op) = self.op.take() else { return Ok(edit) };
        let sn = Sn(self.applied().0 + 1);
        let directories = &self.partition.directories;
        directories.order_asked(&self.tree.namespace, op, edit, self.epoch, sn, self.moment)
    }

    /// The call's operation changes nothing, having seen this. False: what homes have told is void.
    pub fn refuse(&mut self, seen: impl FnOnce(&Namespace) -> Vec<Mark>) -> bool {
        let Some(op) = self.op.take() else { return true };
        self.partition.directories.refuse(op, &seen(&self.tree.namespace), self.moment)
    }

    pub fn go_round(&mut self, detour: Detour) {
        self.detour = Some(detour);
    }

    pub fn take_detour(&mut self) -> Option<Detour> {
        self.detour.take()
    }

    /// Carries a call out for which these looks at large subtrees were taken. Gives them back.
    pub fn looking<T>(&mut self, looks: Looks, carry_out: impl FnOnce(&mut Self) -> T) -> (T, Looks) {
        self.looks = Some(looks);
        let result = carry_out(self);
        (result, self.looks.take().expect("nobody else takes them"))
    }

    /// Sets a watch on a directory and all below it. `None` while too many are set.
    pub fn watch(&mut self, top: InodeId) -> Option<Arc<Watch>> {
        self.tree.watch(top)
    }

    /// The answer of the retry cache about a call, or else the journal's.
    ///
    /// # Errors
    /// [`FsError::Retry`] for a call that says that it is repeated, as long as it is not known whether it was carried
    /// out.
    pub fn retry_lookup(&self, origin: &CallOrigin, fingerprint: u64) -> FsResult<RetryLookup> {
        match self.tree.namespace.retry_lookup(origin, fingerprint) {
            RetryLookup::Miss => self.older.lookup(origin),
            known => Ok(known),
        }
    }

    /// The epoch in which this member leads; no other role begins within a turn.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn partition(&self) -> &'a Arc<Partition> {
        self.partition
    }

    pub fn namespace(&self) -> &Namespace {
        &self.tree.namespace
    }

    /// The last edit applied. An answer that has seen the present namespace waits for its commit.
    pub fn applied(&self) -> Sn {
        self.tree.namespace.applied().sn
    }

    /// Plans with the caller's context.
    pub fn plan<T>(
        &self,
        caller: &Caller,
        origin: CallOrigin,
        fingerprint: u64,
        plan: impl FnOnce(&Namespace, &Context<'_>, &dyn BlockFacts) -> T,
    ) -> T {
        let renewals = self.partition.renewals.lock();
        self.plan_with(caller, Some(origin), fingerprint, &renewals, plan)
    }

    /// Plans for the service itself.
    pub fn plan_own<T>(&self, plan: impl FnOnce(&Namespace, &Context<'_>, &dyn BlockFacts) -> T) -> T {
        let renewals = self.partition.renewals.lock();
        self.plan_with(&self.partition.service_caller(), None, 0, &renewals, plan)
    }

    fn plan_with<T>(
        &self,
        caller: &Caller,
        origin: Option<CallOrigin>,
        fingerprint: u64,
        renewals: &Renewals,
        plan: impl FnOnce(&Namespace, &Context<'_>, &dyn BlockFacts) -> T,
    ) -> T {
        let context = Context {
            caller,
            origin,
            fingerprint,
            now: self.now,
            moment: self.moment,
            limits: &self.partition.config.limits,
            renewals: Some(renewals),
            looks: self.looks.as_ref().filter(|_| origin.is_some()),
            told: self.told.as_ref().filter(|_| origin.is_some()),
            room: Some(&self.room).filter(|_| origin.is_some()),
        };
        plan(&self.tree.namespace, &context, &Facts { partition: self.partition })
    }

    /// Applies an edit and lets the block map know: at once, or where replicas may be deleted for it, when it has
    /// committed. The edit joins the turn's batch.
    pub fn apply(&mut self, edit: impl Into<Edit>) -> Applied {
        self.apply_with_targets(edit, &[])
    }

    /// Applies, like [`Turn::apply`], an edit that allocates a block or gives one a new pipeline, and notes the targets
    /// on which its replicas will be.
    pub fn apply_with_targets(&mut self, edit: impl Into<Edit>, targets: &[Location]) -> Applied {
        self.append_edit(edit.into(), targets)
    }

    fn append_edit(&mut self, edit: Edit, targets: &[Location]) -> Applied {
        let at = TxId { epoch: self.epoch, sn: Sn(self.applied().0 + 1) };
        let edit = &self.partition.directories.order(self.namespace(), edit, self.epoch, at.sn, self.moment);
        self.rests_on = self.rests_on.and(self.tree.rests_on_directories(edit));
        self.tell_news(|| Noted::edit(at.sn, edit));
        let mut applied = self.tree.apply_own(at, edit);
        points::pass_if(
            Point::MoveOrdered,
            || matches!(&edit.body, Body::Ordered(ordered) if matches!(*ordered.change, Body::MoveFile(_))),
        );
        self.scratch.clear();
        edit.encode(&mut self.scratch);
        self.entries.push((EntryKind::Operation, Bytes::copy_from_slice(&self.scratch)));
        let changes = std::mem::take(&mut applied.block_changes);
        tell_ahead(&self.partition.blocks, at.sn, changes, targets, self.moment, &mut self.unsettled);
        applied
    }

    fn tell_news(&mut self, noted: impl FnOnce() -> Noted) {
        if let Some(news) = &mut self.news {
            news.push(noted());
        }
    }

    /// Whether enough finished replicas of exactly this block were reported.
    pub fn is_reported(&self, block: &Block) -> bool {
        Facts { partition: self.partition }.is_complete(block)
    }

    /// `release` runs once everything applied so far has committed.
    pub fn after_commit(&mut self, release: impl FnOnce(Result<(), &str>) + Send + 'static) {
        self.releases.push((self.tree.shows(), Box::new(release)));
    }

    /// `release` runs once everything applied so far has committed, and what the edits of this call rest on is visible.
    pub fn after_own_edit(&mut self, release: impl FnOnce(Result<(), &str>) + Send + 'static) {
        let until = Until::own(self.applied()).and(self.rests_on);
        self.releases.push((until, Box::new(release)));
    }

    /// Takes one step of taking deleted subtrees apart, and of sweeping away entries that no snapshot sees.
    pub fn clean_up_orphans(&mut self) {
        if !self.tree.namespace.has_background_work() {
            return;
        }
        if let Some(edit) =
            self.plan_own(|namespace, context, _| namespace::ops::cleanup::plan(namespace, context))
        {
            self.apply(edit);
            self.orphans_left = self.tree.namespace.has_background_work();
        }
    }

    /// Appends the entry that makes an image usable. `done` runs once it has committed.
    pub fn append_checkpoint(
        &mut self,
        payload: Bytes,
        done: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        let at = TxId { epoch: self.epoch, sn: Sn(self.applied().0 + 1) };
        self.tell_news(|| Noted::no_edit(at.sn));
        self.tree.namespace.skip_to(at);
        self.entries.push((EntryKind::Checkpoint, payload));
        let (partition, digest) = (self.partition.clone(), self.tree.digest());
        self.after_commit(move |committed| {
            if committed.is_ok() {
                partition.member.say_digest(digest);
            }
            done(committed.map_err(str::to_owned));
        });
    }

    /// `look` sees the tree as this turn leaves it, and the end of the log that leads up to exactly that.
    pub fn at_the_end(&mut self, look: AtTheEnd) {
        self.at_the_end.push(look);
    }

    /// Appends what another member suggests.
    pub fn append_suggested(&mut self, proposal: Proposal) {
        let checkpoint = journal::Checkpoint::decode(&proposal.payload);
        let Some(checkpoint) = checkpoint.filter(|_| proposal.kind == EntryKind::Checkpoint) else {
            return tracing::error!(kind = ?proposal.kind, "only checkpoints may be suggested; this is dropped");
        };
        let (partition, payload) = (self.partition.clone(), proposal.payload.clone());
        let committed = partition.commit.committed();
        if checkpoint.at.id.sn > committed {
            return tracing::error!(at = %checkpoint.at, %committed, "an image of what has not committed is dropped");
        }
        self.append_checkpoint(proposal.payload, move |result| {
            if result.is_ok() {
                partition.checkpoints.send_replace(Some(payload));
            }
        });
    }

    /// Proposes what was applied, while no other turn can begin. The disk is not waited for.
    pub fn finish(self) -> Finished {
        let (end, proposed) = self.partition.member.propose(self.entries);
        let Some(end) = end else {
            // Deposed meanwhile. The tree has edits that no log has, and is thrown away with this server. The news
            // for the block map is dropped with it.
            return Finished {
                releases: Vec::new(),
                unreleased: self.releases,
                orphans_left: false,
                proposed,
                events: self.events,
            };
        };
        self.partition.unsettled.wait(self.unsettled, self.moment);
        if let Some(mut news) = self.news {
            self.partition.older_answers.feed.push(&mut news);
        }
        if !self.at_the_end.is_empty() {
            assert_eq!(end.id.sn, self.tree.namespace.applied().sn, "the log and the tree went apart");
            for look in self.at_the_end {
                look(&self.tree.namespace, end);
            }
        }
        Finished {
            releases: self.releases,
            unreleased: Vec::new(),
            orphans_left: self.orphans_left,
            proposed,
            events: self.events,
        }
    }
}

/// The answers to plans' questions about replicas.
struct Facts<'a> {
    partition: &'a Partition,
}

impl BlockFacts for Facts<'_> {
    fn is_complete(&self, block: &Block) -> bool {
        let minimum = usize::from(self.partition.config.limits.replication_min);
        self.partition
            .blocks
            .lock()
            .facts(block.id)
            .is_some_and(|facts| facts.finalized_as(*block) >= minimum)
    }

    fn recovered_length(&self, block: &Block) -> Option<u64> {
        let facts = self.partition.blocks.lock().facts(block.id)?;
        facts
            .replicas
            .iter()
            .filter(|replica| replica.generation_stamp == block.generation_stamp)
            .filter(|replica| replica.state == ::blocks::ReplicaState::Finalized)
            .map(|replica| replica.length)
            .min()
    }

    fn is_located(&self, block: &Block) -> bool {
        // Shortly after a start nobody has said so yet, but somebody may.
        !self.partition.is_settled() || self.partition.blocks.lock().was_placed(block.id)
    }
}

/// The error for a client when a commit fails: the change may have happened or not, and another server will know.
pub fn commit_failed(reason: &str) -> FsError {
    FsError::NotActive(format!("The operation could not be made durable here: {reason}"))
}
