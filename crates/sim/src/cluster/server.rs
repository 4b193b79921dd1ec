//! One metadata server of a simulated cluster: its member and log, its namespace, and the calls that wait.

use super::{
    client::CallCopy,
    clock::Clock,
    data::{room::server_of, side::BlockSide},
    happening::Kind,
    read_points::StandbyRead,
    request::{Answer, Outcome, Request},
    threads::Hang,
};
use crate::{
    dice::Dice,
    host::{Host, LogDisk},
};
use base::{
    CallId, CallOrigin, ClientId, Entry, EntryKind, Epoch, FsError, FsResult, GroupView, Level, LogPoint,
    MemberId, MemberStore, Moment, Sn, Timestamp, TxId,
};
use blocks::{Config, Location};
use bytes::Bytes;
use group::{Proposal, Role, repair::Standing};
use namespace::{
    BlockFacts, Edit, Namespace, Reply, RetryLookup, Step, given_facts::GivenFacts, ops::complete,
};
use serving::{
    Basis, CommitQueue, Decision, Known, Points, ProofSettings, Refusals, Reign, Rules, Said, Tree, Unproved,
};
use std::collections::BTreeMap;

/// A call whose answer is known and may not go out yet.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub copy: CallCopy,
    pub answer: Answer,
    /// Everything that the answer rests on.
    pub observed: LogPoint,
    pub basis: Basis,
    pub kind: Kind,
    /// The epoch in which its evaluation began.
    pub epoch: Epoch,
    /// Under this number the reference has what a read is to be answered.
    pub expected: Option<u64>,
}

/// How the answers of a server are held back.
pub struct Answers {
    pub commit: CommitQueue<Waiting>,
    pub unproved: Unproved<Waiting>,
    pub refusals: Refusals,
    /// Reads that came while the server did not lead.
    pub points: Points<StandbyRead>,
    /// When the answers that wait for a proof are looked at next.
    pub look_at: Option<u64>,
}

impl Answers {
    fn new(committed: Sn, settings: ProofSettings, rules: Rules) -> Self {
        Self {
            commit: CommitQueue::new(committed),
            unproved: Unproved::new(settings, rules),
            refusals: Refusals::new(rules),
            points: Points::new(rules),
            look_at: None,
        }
    }
}

/// How a disk behaves.
#[derive(Clone, Copy, Debug)]
pub struct DiskMood {
    pub sync_us_min: u64,
    pub sync_us_max: u64,
    /// The next sync fails.
    pub fails: bool,
    /// Then the store is kept, with a note that says so; otherwise it is given up.
    pub fails_with_a_note: bool,
}

impl Default for DiskMood {
    fn default() -> Self {
        Self { sync_us_min: 200, sync_us_max: 2_500, fails: false, fails_with_a_note: false }
    }
}

pub struct Server {
    pub host: Host,
    pub clock: Clock,
    pub disk: DiskMood,
    pub is_syncing: bool,
    pub is_downloading: bool,
    /// How often the log was cut: a sync under way then says nothing about what was written since.
    pub cuts: u64,
    /// The number of times that it was told of others' processes, connections and orders.
    pub news: u64,
    /// Rises with each process: an arrival that was meant for an earlier one is void.
    pub life: u64,
    /// A process is there, though its member may still wait for the view.
    pub is_running: bool,
    pub is_paused: bool,
    pub tree: Tree,
    pub answers: Answers,
    /// The epoch in which this process led last.
    pub epoch: Epoch,
    pub proofs: ProofSettings,
    pub rules: Rules,
    /// The level at which its group has begun.
    level: Level,
    /// The process is killed in the middle of its so many-th step from now.
    pub kill_after_steps: Option<u64>,
    /// When the next tick is under way to it.
    pub tick_at: Option<u64>,
    pub image: Option<Image>,
    /// Entries up to here were looked through for those that make images usable.
    pub looked_through: Sn,
    /// A thread of the process that completes nothing.
    pub hang: Option<Hang>,
    /// Its disk has failed, and a note says so: the process waits for another member that leads, or for an operator's word.
    pub has_failed_disk: bool,
    /// It looks again soon whether another member leads.
    pub looks_again: bool,
    /// The questions of a member whose store is damaged.
    pub round: Option<Round>,
    /// What it knows of data servers, if there are any.
    pub blocks: Option<BlockSide>,
    /// A copy of the disk, made while the process ran.
    pub copy: Option<(MemberStore, LogDisk, Option<Image>)>,
}

/// The answers that a member with a damaged store has heard in a round of questions.
pub struct Round {
    pub view: GroupView,
    pub version: u64,
    pub answers: BTreeMap<MemberId, Standing>,
}

/// A state of the namespace, as bytes.
#[derive(Clone)]
pub struct Image {
    pub at: LogPoint,
    pub bytes: Bytes,
}

pub fn origin_of(CallCopy { key, retry_count, repeats }: CallCopy) -> CallOrigin {
    CallOrigin {
        client_id: ClientId([key.client as u8; 16]),
        call_id: CallId(key.call as i32),
        retry_count: retry_count as i32,
        repeats,
        address: None,
    }
}

fn new_namespace(dice: &mut Dice, level: Level) -> Namespace {
    Namespace::new(dice.roll(), "hdfs", "supergroup", Timestamp::from_ms(1)).beginning_at(level)
}

impl Server {
    pub fn new(
        host: Host,
        clock: Clock,
        proofs: ProofSettings,
        rules: Rules,
        level: Level,
        dice: &mut Dice,
    ) -> Self {
        Self {
            host,
            clock,
            disk: DiskMood::default(),
            is_syncing: false,
            is_downloading: false,
            cuts: 0,
            news: 0,
            life: 0,
            is_running: false,
            is_paused: false,
            tree: Tree::new(new_namespace(dice, level), rules),
            answers: Answers::new(Sn(0), proofs, rules),
            epoch: Epoch(0),
            proofs,
            rules,
            level,
            kill_after_steps: None,
            tick_at: None,
            image: None,
            looked_through: Sn(0),
            hang: None,
            has_failed_disk: false,
            looks_again: false,
            round: None,
            blocks: None,
            copy: None,
        }
    }

    pub fn role(&self) -> Option<&Role> {
        self.host.member.as_ref().map(|member| member.role())
    }

    pub fn is_serving(&self) -> bool {
        matches!(self.role(), Some(Role::Serving { .. }))
    }

    /// It leads with too few in sync.
    pub fn is_reading(&self) -> bool {
        matches!(self.role(), Some(Role::Reading { .. }))
    }

    pub fn answers(&self) -> bool {
        self.is_serving() || self.is_reading()
    }

    pub fn holds_lease(&self, now_ns: u64) -> bool {
        self.answers() && self.host.member().lease_end().is_none_or(|end| self.clock.moment(now_ns) < end)
    }

    /// It takes its lease to hold, and by a clock that had not stood since the lease began the lease would be over.
    pub fn lease_is_over_unseen(&self, now_ns: u64, held_ms: u64) -> bool {
        let end = self.host.member.as_ref().and_then(|member| member.lease_end());
        self.holds_lease(now_ns)
            && end.is_some_and(|end| {
                let began = Moment { ns: end.ns.saturating_sub(held_ms * 1_000_000) };
                self.clock.sound_moment(began, now_ns) >= end
            })
    }

    /// Builds the state of a process before it joins: the state at the end of the part of its log that is known to
    /// have committed.
    ///
    /// # Errors
    /// The image cannot be read, or an entry cannot be applied.
    pub fn recover(&mut self, dice: &mut Dice) -> Result<(), String> {
        let base = self.host.applied;
        self.blocks = None;
        self.answers = Answers::new(base.id.sn, self.proofs, self.rules);
        self.epoch = Epoch(0);
        let namespace = match &self.image {
            Some(image) if image.at.id.sn <= base.id.sn => {
                let size = image.bytes.len() as u64;
                Namespace::read_image(dice.roll(), &mut &image.bytes[..], size)
                    .map_err(|error| format!("an image cannot be read: {error}"))?
            }
            _ => new_namespace(dice, self.level),
        };
        self.tree = Tree::new(namespace, self.rules);
        let from = self.tree.namespace.applied().sn.0 + 1;
        for sn in from..=base.id.sn.0 {
            let index = (sn - self.host.disk.start.id.sn.0 - 1) as usize;
            let entry = self.host.disk.entries[index].clone();
            self.apply(&entry)?;
        }
        Ok(())
    }

    /// Begins the block map of the process, behind [`Server::recover`].
    pub fn begin_blocks(&mut self, config: &Config, seed: u64, now: Moment) {
        self.blocks = Some(BlockSide::new(config, seed, &self.tree.namespace, self.rules, now));
    }

    /// Takes an image of everything applied, and lets go of the log up to `keep` entries before it.
    pub fn take_image(&mut self, keep: u64) {
        let member = self.host.member();
        if self.tree.namespace.applied().sn != member.committed()
            || self.tree.namespace.applied() != self.host.applied.id
        {
            return; // An active ahead of its commits: another time.
        }
        let mut bytes = Vec::new();
        let written = self.tree.namespace.freeze().write(&mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        written.expect("memory takes it");
        self.image = Some(Image { at: self.host.applied, bytes: bytes.into() });
        // A start goes on from the image at least.
        self.host.disk.known_commit = self.host.disk.known_commit.max(self.host.applied.id.sn);
        let until = self.host.applied.id.sn.0.saturating_sub(keep);
        let count = until.saturating_sub(self.host.disk.start.id.sn.0) as usize;
        if count > 0 && count <= self.host.disk.durable {
            let start = self.host.disk.entries[count - 1].point();
            self.host.forget_before(count, start);
        }
    }

    /// Applies a committed entry, as every member does.
    ///
    /// # Errors
    /// It cannot be read, or is not the next one; the text names the member.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), String> {
        let applied = Said::of(entry).and_then(|said| self.tree.apply_committed(entry.id, &said));
        let changes = self.told(applied)?;
        if let Some(side) = &mut self.blocks {
            side.tell_committed(&changes);
            side.note_allocated(&self.tree.namespace);
        }
        Ok(())
    }

    /// Applies an entry that may have committed, or not.
    ///
    /// # Errors
    /// Those of [`Server::apply`].
    pub fn apply_ahead(&mut self, entry: &Entry) -> Result<(), String> {
        let applied = Said::of(entry).and_then(|said| self.tree.apply_ahead(entry.id, &said, &entry.payload));
        let changes = self.told(applied)?;
        if let Some(side) = &mut self.blocks {
            side.tell_ahead(entry.id.sn, changes, &[]);
            side.note_allocated(&self.tree.namespace);
        }
        Ok(())
    }

    fn told<T>(&self, applied: Result<T, serving::ApplyError>) -> Result<T, String> {
        applied.map_err(|error| format!("member {}: {error}", self.host.store.member))
    }

    /// The view by which this member leads in the epoch that it has been told of, if it leads.
    pub fn basis_of_lead(&self) -> Option<(u64, u64)> {
        self.host.member.as_ref()?.basis_of_lead(self.epoch)
    }

    /// This member's lead now.
    pub fn reign(&self, now_ns: u64) -> Reign {
        Reign { answers: self.answers(), holds_lease: self.holds_lease(now_ns), epoch: self.epoch }
    }

    /// Plans a change, and applies the edit at once if there is one. The answer waits for everything that it rests on. `None`: the
    /// client is to ask again.
    pub fn change(
        &mut self,
        copy: CallCopy,
        request: &Request,
        now_ns: u64,
    ) -> Option<(Waiting, Option<Proposal>)> {
        let (origin, fingerprint) = (origin_of(copy), request.fingerprint());
        let (end, epoch) = (self.host.disk.end(), self.epoch);
        let (wall, moment) = (self.clock.timestamp(now_ns), self.clock.moment(now_ns));
        let known = Known {
            origin: &origin,
            carried_out: self.tree.namespace.retry_lookup(&origin, fingerprint),
            refused: self.answers.refusals.get(&origin, fingerprint, epoch),
        };
        let mut targets = Vec::new();
        let given = GivenFacts::all_finished();
        let plan = || {
            let facts: &dyn BlockFacts = self.blocks.as_ref().map_or(&given, |side| side);
            match request.plan(&self.tree.namespace, origin, wall, moment, facts) {
                Outcome::Change(planned) => planned,
                Outcome::NewBlock(plan) => {
                    let side = self.blocks.as_mut().expect("blocks are asked for where data servers are");
                    side.place(plan?, moment, &mut targets)
                }
                Outcome::Closing(plan) => closing(plan?),
                Outcome::Read(_) => unreachable!("reads are no changes"),
            }
        };
        let by = self.host.life();
        let is_known = matches!(known.carried_out, RetryLookup::Hit(_));
        let waiting = |answer: FsResult<Reply>, kind, observed, basis| Waiting {
            copy,
            answer: answer.into(),
            observed,
            basis,
            kind,
            epoch,
            expected: None,
        };
        let refusal = Kind::Refusal { by };
        Some(match serving::decide(known, || Ok(()), plan) {
            Decision::Told(answer) => {
                let kind = if is_known { Kind::Change } else { refusal };
                (waiting(answer, kind, end, Basis::Reading), None)
            }
            Decision::NotNow(_) => return None,
            Decision::NoEdit(answer) => {
                self.answers.refusals.put(&origin, fingerprint, epoch, answer.clone());
                let note = request.with_context(origin, wall, moment, |context| {
                    serving::note(self.rules, &self.tree.namespace, context)
                });
                match note {
                    None => (with_places(waiting(answer, refusal, end, Basis::Reading), &targets), None),
                    Some(note) => {
                        let (_, at, proposal) = self.append(&note, &[]);
                        (with_places(waiting(answer, refusal, at, Basis::OwnEdit), &targets), Some(proposal))
                    }
                }
            }
            Decision::Step(Step::Edit(edit)) => {
                let (reply, at, proposal) = self.append(&edit, &targets);
                (with_places(waiting(Ok(reply), Kind::Change, at, Basis::OwnEdit), &targets), Some(proposal))
            }
            Decision::Step(step) => unreachable!("no writer is silent here: {step:?}"),
        })
    }

    /// Whether a change can be planned here now: this member serves, and has applied its whole log.
    pub fn may_append(&self) -> bool {
        self.is_serving() && self.tree.namespace.applied() == self.host.disk.end().id
    }

    /// Applies an edit as the active. It is to be proposed next.
    pub fn append(&mut self, edit: &Edit, targets: &[Location]) -> (Reply, LogPoint, Proposal) {
        let (end, epoch) = (self.host.disk.end(), self.epoch);
        let id = TxId { epoch, sn: Sn(end.id.sn.0 + 1) };
        self.tree.forget(self.answers.commit.certain());
        let applied = self.tree.apply_own(id, edit);
        if let Some(side) = &mut self.blocks {
            side.tell_ahead(id.sn, applied.block_changes, targets);
        }
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        let proposal = Proposal { kind: EntryKind::Operation, payload: payload.into() };
        let entry = Entry::after(end, epoch, proposal.kind, proposal.payload.clone());
        (applied.reply, entry.point(), proposal)
    }

    /// A call that is neither carried out nor refused now: nothing is changed in safe mode, and a file is closed when enough
    /// replicas of its blocks are reported.
    pub fn must_wait(&self, copy: CallCopy, request: &Request, now_ns: u64) -> bool {
        let Some(side) = &self.blocks else { return false };
        if side.map.in_safe_mode() {
            return true;
        }
        if !matches!(request, Request::AddBlock { .. } | Request::Complete { .. }) {
            return false;
        }
        let (wall, moment) = (self.clock.timestamp(now_ns), self.clock.moment(now_ns));
        let outcome = request.plan(&self.tree.namespace, origin_of(copy), wall, moment, side);
        matches!(
            outcome,
            Outcome::Closing(Ok(complete::Plan::Waiting(_)))
                | Outcome::NewBlock(Err(FsError::NotReplicatedYet(_)))
        )
    }
}

fn closing(plan: complete::Plan) -> FsResult<Step> {
    match plan {
        complete::Plan::Waiting(block) => Err(FsError::NotReplicatedYet(block.to_string())),
        decided => Ok(decided.into()),
    }
}

/// The answer to a call for a block names the data servers that were chosen.
fn with_places(waiting: Waiting, targets: &[Location]) -> Waiting {
    match waiting.answer {
        Answer::Reply(Reply::Block { block, .. }) => {
            let targets = targets.iter().map(|target| server_of(target.server.uuid())).collect();
            Waiting { answer: Answer::Placed { block, targets }, ..waiting }
        }
        _ => waiting,
    }
}
