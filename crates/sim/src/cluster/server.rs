//! One metadata server of a simulated cluster: its member and log, its namespace, and the calls that wait.

use super::{
    client::CallKey,
    clock::Clock,
    request::{Answer, Outcome, Request},
    threads::Hang,
};
use crate::{
    dice::Dice,
    host::{Host, LogDisk},
};
use base::{
    CallId, CallOrigin, ClientId, Entry, EntryKind, GroupView, LogPoint, MemberId, MemberStore, Moment, Sn,
    Timestamp, TxId,
};
use bytes::Bytes;
use group::{EpochStart, Proposal, Role, repair::Standing};
use namespace::{Edit, Mark, Namespace, NewEpoch, Reach, Reply, RetryLookup};
use std::collections::BTreeMap;

/// A call whose answer is known and may not go out yet.
#[derive(Debug)]
pub struct Waiting {
    pub key: CallKey,
    pub answer: Answer,
    /// Everything that the answer rests on.
    pub observed: LogPoint,
    /// Nothing of it will ever be in the log: who answers must still lead.
    pub is_read: bool,
    /// The answer that the committed entries give, for a read below the minimum that looked at nothing in doubt.
    pub reference: Option<Answer>,
    /// The coordinator is being asked whether the view is still the one that this member knows.
    pub is_confirming: bool,
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
    pub namespace: Namespace,
    /// The marks touched by entries that were applied before they had committed, with the last such entry of each.
    in_doubt: BTreeMap<Mark, Sn>,
    pub waiting: Vec<Waiting>,
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
    /// A copy of the disk, made while the process ran.
    pub copy: Option<(MemberStore, LogDisk, Option<Image>)>,
}

/// What a member whose store is damaged has heard in a round of questions.
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

/// As every member applies an entry.
///
/// # Errors
/// The entry is not the next one, or cannot be decoded.
pub fn apply_to(namespace: &mut Namespace, entry: &Entry) -> Result<(), String> {
    let expected = namespace.applied().sn.0 + 1;
    if entry.id.sn.0 != expected {
        return Err(format!("entries are applied in their order: {} instead of {expected}", entry.id));
    }
    match entry.kind {
        EntryKind::Operation => {
            let edit = Edit::decode(&entry.payload).map_err(|error| format!("{}: {error}", entry.id))?;
            namespace.apply(entry.id, &edit);
        }
        EntryKind::EpochStart => {
            let start = EpochStart::decode(&entry.payload).ok_or("not the first entry of an epoch")?;
            namespace.start_epoch(entry.id, epoch_of(&start));
        }
        EntryKind::Checkpoint => namespace.skip_to(entry.id),
    }
    Ok(())
}

/// The part of an epoch's first entry that concerns the tree.
pub fn epoch_of(start: &EpochStart) -> NewEpoch {
    NewEpoch {
        inodes: start.id_steps.inode,
        blocks: start.id_steps.block,
        generation_stamps: start.id_steps.generation_stamp,
        keeps_skipped: start.keeps_skipped,
        holds_deletions: start.is_unclean,
    }
}

pub fn origin_of(key: CallKey) -> CallOrigin {
    CallOrigin {
        client_id: ClientId([key.client as u8; 16]),
        call_id: CallId(key.call as i32),
        retry_count: 0,
        address: None,
    }
}

fn new_namespace(dice: &mut Dice) -> Namespace {
    Namespace::new(dice.roll(), "hdfs", "supergroup", Timestamp::from_ms(1))
}

impl Server {
    pub fn new(host: Host, clock: Clock, dice: &mut Dice) -> Self {
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
            namespace: new_namespace(dice),
            in_doubt: BTreeMap::new(),
            waiting: Vec::new(),
            kill_after_steps: None,
            tick_at: None,
            image: None,
            looked_through: Sn(0),
            hang: None,
            has_failed_disk: false,
            looks_again: false,
            round: None,
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
        self.in_doubt.clear();
        let base = self.host.applied;
        self.namespace = match &self.image {
            Some(image) if image.at.id.sn <= base.id.sn => {
                let size = image.bytes.len() as u64;
                Namespace::read_image(dice.roll(), &mut &image.bytes[..], size)
                    .map_err(|error| format!("an image cannot be read: {error}"))?
            }
            _ => new_namespace(dice),
        };
        let from = self.namespace.applied().sn.0 + 1;
        for sn in from..=base.id.sn.0 {
            let index = (sn - self.host.disk.start.id.sn.0 - 1) as usize;
            let entry = self.host.disk.entries[index].clone();
            self.apply(&entry)?;
        }
        Ok(())
    }

    /// Takes an image of everything applied, and lets go of the log up to `keep` entries before it.
    pub fn take_image(&mut self, keep: u64) {
        let member = self.host.member();
        if self.namespace.applied().sn != member.committed()
            || self.namespace.applied() != self.host.applied.id
        {
            return; // An active ahead of its commits: another time.
        }
        let mut bytes = Vec::new();
        let written = self.namespace.snapshot().write(&mut |part| {
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

    /// As every member applies an entry.
    ///
    /// # Errors
    /// Those of [`apply_to`]; the text names the member.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), String> {
        apply_to(&mut self.namespace, entry)
            .map_err(|error| format!("member {}: {error}", self.host.store.member))
    }

    /// Applies an entry that may have committed, or not.
    ///
    /// # Errors
    /// The entry cannot be decoded; and those of [`apply_to`].
    pub fn apply_ahead(&mut self, entry: &Entry) -> Result<(), String> {
        if entry.kind == EntryKind::Operation {
            let edit = Edit::decode(&entry.payload).map_err(|error| format!("{}: {error}", entry.id))?;
            self.note_doubt(&edit, entry.id.sn);
        }
        self.apply(entry)
    }

    /// Notes that the inodes which an edit touches are in doubt until it has committed, whether this member has
    /// planned the edit as an active or inherited it: an active that is deposed may lead again before its own edits
    /// have committed.
    fn note_doubt(&mut self, edit: &Edit, sn: Sn) {
        let committed = self.host.member().committed();
        self.in_doubt.retain(|_, last| *last > committed);
        let mut footprint = Vec::new();
        self.namespace.footprint_of(edit, &mut footprint);
        self.in_doubt.extend(footprint.into_iter().map(|mark| (mark, sn)));
    }

    /// The answer to a read, unless it would rest on what may have committed, or not.
    pub fn look(&self, key: CallKey, request: &Request, now_ns: u64, minds_doubt: bool) -> Option<Answer> {
        let Request::Read(path) = request else { return None };
        let committed = self.host.member().committed();
        let mut seen = Vec::new();
        let is_known = self.namespace.seen_on(path, Reach::Itself, &mut seen);
        let in_doubt = |mark: &Mark| self.in_doubt.get(mark).is_some_and(|sn| *sn > committed);
        if minds_doubt && (!is_known || seen.iter().any(in_doubt)) {
            return None;
        }
        let (wall, moment) = (self.clock.timestamp(now_ns), self.clock.moment(now_ns));
        match request.plan(&self.namespace, origin_of(key), wall, moment) {
            Outcome::Answer(answer) => Some(answer),
            Outcome::Edit(_) => None,
        }
    }

    /// Plans a call. An edit that is to be appended is applied already; the answer waits.
    pub fn take_call(&mut self, key: CallKey, request: &Request, now_ns: u64) -> (Waiting, Option<Proposal>) {
        let origin = origin_of(key);
        let end = self.host.disk.end();
        let waiting = |answer, observed, is_read| Waiting {
            key,
            answer,
            observed,
            is_read,
            reference: None,
            is_confirming: false,
        };
        if let RetryLookup::Hit(reply) = self.namespace.retry_lookup(&origin, request.fingerprint()) {
            return (waiting(Answer::Reply(reply), end, false), None);
        }
        let (wall, moment) = (self.clock.timestamp(now_ns), self.clock.moment(now_ns));
        match request.plan(&self.namespace, origin, wall, moment) {
            Outcome::Answer(answer) => (waiting(answer, end, true), None),
            Outcome::Edit(edit) => {
                let Some(Role::Serving { epoch }) = self.role().cloned() else {
                    unreachable!("only an active plans");
                };
                let id = TxId { epoch, sn: Sn(end.id.sn.0 + 1) };
                self.note_doubt(&edit, id.sn);
                let reply: Reply = self.namespace.apply(id, &edit).reply;
                let mut payload = Vec::new();
                edit.encode(&mut payload);
                let proposal = Proposal { kind: EntryKind::Operation, payload: payload.into() };
                let entry = Entry::after(end, epoch, proposal.kind, proposal.payload.clone());
                (waiting(Answer::Reply(reply), entry.point(), false), Some(proposal))
            }
        }
    }
}
