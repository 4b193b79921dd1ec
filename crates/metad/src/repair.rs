//! A member whose store is damaged, before it takes part: it gives the others its intact entries, and asks them for
//! the missing ones.
//!
//! Nothing of the group's protocol runs meanwhile: such a member grants, acknowledges, claims and discards nothing,
//! and it stays in the sets in which the coordinator's view has it. It does this:
//!
//! 1. It answers other members' questions for images and entries, as every member does ([`crate::exchange`]), from what can be read.
//! 2. It asks all others for the entries that it lacks. An entry fits if it leads to the next one that is here
//!    ([`journal::repair`]).
//! 3. [`group::repair`] decides about entries that no member has, by the others' answers about themselves.
//!
//! With all holes closed the store is written anew where it was damaged, and the start goes on as any other. Until then this is
//! tried for ever; `/health`, the log and `clover admin group show` say what is missing and who is silent.

mod desk;

use crate::{
    cluster::Cluster,
    config::MetaConfig,
    exchange::{
        PIECE_BYTES,
        fetch::Pieces,
        source::{Asker, Source},
    },
    loading::LoadingPages,
    peers::Secret,
};
use base::{GroupView, LogPoint, MemberId, MemberLife, MemberStore, Sn};
use coord::{Coordinator, MemberRecord, ReadError};
use desk::Desk;
use env::Env;
use group::repair::{Damaged, Standing, Verdict, judge};
use journal::{Checkpoint, Hole, OpenError, RecoverError, Repair};
use std::{
    cell::Cell,
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use thiserror::Error;
use tokio::runtime::Handle;

/// Between two rounds of questions.
const PAUSE: Duration = Duration::from_millis(300);
/// A line about what is missing is written this often, if nothing changes.
const TELL_PERIOD: Duration = Duration::from_secs(10);
/// How much of another member's log is taken for an end that is lost here. More will come from the active.
const END_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] RecoverError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the address {address} could not be bound while the store is being repaired")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("the server was stopped while its store was being repaired")]
    Stopped,
}

/// The means of a repair.
pub struct Means<'a> {
    pub env: &'a Env,
    pub config: &'a MetaConfig,
    pub cluster: &'a Cluster,
    pub secret: &'a Secret,
    pub coordinator: &'a Arc<dyn Coordinator>,
    pub store: &'a Path,
    pub stop: &'a AtomicBool,
    /// They have the HTTP port, and lend it while the repair has more to tell.
    pub pages: Option<&'a LoadingPages>,
}

/// The outcome for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store was written anew where it was damaged.
    Mended,
    /// There was nothing to do: whatever keeps it from being read back is no damage that others can mend.
    Sound,
    /// The store begins empty, and the active renews it.
    GivenUp,
}

/// Blocks until the store can be opened again, or the server is stopped.
pub fn run(means: &Means<'_>, damage: &RecoverError) -> Result<Outcome, Error> {
    tracing::error!(
        error = %damage,
        "the store is damaged; the other members are asked for what is missing, and nothing of it is given up meanwhile"
    );
    let repair = journal::open(means.env, means.store, means.config.group.journal)?.repair()?;
    let me = MemberStore { member: repair.state().identity.member, generation: repair.state().generation };
    let boot = repair.state().boot;
    let desk = Arc::new(Desk::new(means, me, repair));
    let open = desk::open(&desk, means.config, means.pages)?;
    let record = MemberRecord {
        // No life of its own: this process has acknowledged nothing, and does not until it takes part.
        life: MemberLife { store: me, boot },
        peer_address: means.config.group.advertised.peer.clone().unwrap_or_default(),
        rpc_address: means.config.group.advertised.rpc.clone().unwrap_or(open.rpc_address().to_string()),
        http_address: open.http_address().map_or(String::new(), |bound| {
            means.config.group.advertised.http.clone().unwrap_or(bound.to_string())
        }),
    };
    let asker = Arc::new(Asker {
        scope: means.cluster.scope(),
        me: me.member,
        secret: means.secret.clone(),
        user: means.config.limits.access.superuser.to_string(),
    });
    let mut repairer = Repairer {
        means,
        desk,
        asker,
        me,
        runtime: Handle::current(),
        told: None,
        record: Some(record),
        has_fetched: Cell::new(false),
    };
    let ended = repairer.rounds();
    open.close(&repairer.runtime);
    if let Some(pages) = means.pages {
        pages.resume();
    }
    match ended? {
        End::Whole(repair) => {
            let mended = repair.mend()?;
            let (end, written) = (mended.end, mended.written.len());
            tracing::warn!(
                %end, written, is_suspect = mended.is_suspect, kept_in = %mended.kept_in.display(),
                "the store is whole again"
            );
            Ok(if written > 0 || repairer.has_fetched.get() { Outcome::Mended } else { Outcome::Sound })
        }
        End::GivenUp { to } => {
            let reason =
                format!("{damage}; member {to}, which serves, has what has committed, and renews this store");
            journal::distrust(means.env, means.store, &reason)?;
            Ok(Outcome::GivenUp)
        }
    }
}

enum End {
    Whole(Box<Repair>),
    GivenUp { to: MemberId },
}

struct Repairer<'a> {
    means: &'a Means<'a>,
    desk: Arc<Desk>,
    asker: Arc<Asker>,
    me: MemberStore,
    runtime: Handle,
    /// The last line written to the log, and when.
    told: Option<(String, Instant)>,
    /// This server's record, so that the others find it.
    record: Option<MemberRecord>,
    /// An image has come, and so there was something to do.
    has_fetched: Cell<bool>,
}

/// The result of a round of questions.
enum Round {
    Whole,
    GiveUp(MemberId),
    Wait { silent: Vec<MemberId>, why: String },
}

impl Repairer<'_> {
    fn rounds(&mut self) -> Result<End, Error> {
        loop {
            if self.means.stop.load(Ordering::Acquire) {
                return Err(Error::Stopped);
            }
            let round = match self.round() {
                Ok(round) => round,
                // The coordinator may be starting as well.
                Err(error) => {
                    Round::Wait { silent: Vec::new(), why: format!("the view cannot be read: {error}") }
                }
            };
            match round {
                Round::Whole => return Ok(End::Whole(Box::new(self.desk.take()))),
                Round::GiveUp(to) => {
                    drop(self.desk.take());
                    return Ok(End::GivenUp { to });
                }
                Round::Wait { silent, why } => self.wait(silent, why),
            }
        }
    }

    fn wait(&mut self, silent: Vec<MemberId>, why: String) {
        let line = self.desk.note(silent, why);
        let is_old = self.told.as_ref().is_none_or(|(told, at)| *told != line || at.elapsed() >= TELL_PERIOD);
        if is_old {
            tracing::warn!("{line}");
            self.told = Some((line, Instant::now()));
        }
        std::thread::sleep(PAUSE);
    }

    fn round(&mut self) -> Result<Round, ReadError> {
        let (coordinator, group) = (self.means.coordinator, self.means.cluster.group);
        if let Some(record) = self.record.take()
            && let Err(error) = coord::wait(|done| coordinator.write_member(group, record.clone(), done))
        {
            tracing::warn!(%error, "the others are not told yet where this member is");
            self.record = Some(record);
        }
        let Some(before) = coord::wait(|done| coordinator.read(group, done))? else {
            return Ok(Round::Wait { silent: Vec::new(), why: "the coordinator knows no view".into() });
        };
        let records = coord::wait(|done| coordinator.read_members(group, done))?;
        let sources: Vec<Source> = records
            .iter()
            .filter(|record| record.life.store.member != self.me.member && !record.rpc_address.is_empty())
            .map(|record| {
                let member = record.life.store.member;
                Source::new(member, record.rpc_address.clone(), &self.asker, &self.runtime)
            })
            .collect();
        self.desk.see(&before.view, records);
        let mut answers = BTreeMap::new();
        for source in &sources {
            match self.ask(source) {
                Ok(standing) => drop(answers.insert(source.member(), standing)),
                Err(error) => tracing::debug!(member = %source.member(), error, "no answer"),
            }
            if self.desk.with(|repair| repair.is_whole()) {
                return Ok(Round::Whole);
            }
        }
        self.fetch_image(&sources);
        if let Some(member) = self.desk.take_order() {
            self.cut(member);
        }
        if self.desk.with(|repair| repair.is_whole()) {
            return Ok(Round::Whole);
        }
        let after = coord::wait(|done| coordinator.read(group, done))?;
        if after.is_none_or(|after| after.version != before.version) {
            // A member that is complete by the view need not have been so when it answered.
            return Ok(Round::Wait {
                silent: Vec::new(),
                why: "the view has changed; all are asked again".into(),
            });
        }
        Ok(self.decide(&before.view, &answers, &sources))
    }

    /// Asks a member for all missing entries and takes those that fit, then for its answer about itself.
    fn ask(&self, source: &Source) -> Result<Standing, String> {
        let committed = self.desk.with(|repair| repair.commit_point().0);
        let standing = source.standing(committed)?;
        for hole in self.desk.with(|repair| repair.holes()) {
            let Some((last, _)) = hole.last else { continue };
            let mut at = hole.after.max(standing.begins_after);
            while at < last {
                let Some((_, entries)) = source.read_log(at, last)? else { break };
                let Some(end) = entries.last().map(|entry| entry.id.sn).filter(|end| *end > at) else {
                    break;
                };
                self.desk.with(|repair| repair.fill(&entries));
                at = end;
            }
        }
        Ok(standing)
    }

    /// An image for a store that has none, or one that contains what no log has any more.
    fn fetch_image(&self, sources: &[Source]) {
        let (needs_image, hole) = self.desk.with(|repair| {
            let hole = repair.holes().into_iter().filter(|hole| hole.is_needed).find_map(|hole| hole.last);
            (repair.needs_image(), hole.map(|(last, _)| last))
        });
        if !needs_image && hole.is_none() {
            return;
        }
        let mut found: Vec<(Checkpoint, &Source)> = Vec::new();
        for source in sources {
            let images = source.images().unwrap_or_default();
            found.extend(images.into_iter().map(|image| (image, source)));
        }
        let (wanted, fitting): (Vec<Checkpoint>, Vec<bool>) = self.desk.with(|repair| {
            let fits =
                |image: &Checkpoint| repair.fits(image) && hole.is_none_or(|last| image.at.id.sn >= last);
            (repair.wanted_images(), found.iter().map(|(image, _)| fits(image)).collect())
        });
        let mut usable: Vec<(Checkpoint, &Source)> = found
            .into_iter()
            .zip(fitting)
            .filter(|((image, _), fits)| *fits || (needs_image && wanted.contains(image)))
            .map(|(found, _)| found)
            .collect();
        usable.sort_by_key(|(image, _)| std::cmp::Reverse(image.at.id));
        for (image, source) in usable {
            let taking = self.desk.with(|repair| repair.begin_image(&image));
            let fetched = taking.fetch(|at| {
                if self.means.stop.load(Ordering::Acquire) {
                    return Err("the server is stopping".into());
                }
                let length = u64::from(PIECE_BYTES).min(image.file_bytes - at) as u32;
                source.read(&image, at, length)
            });
            let taken = fetched.and_then(|()| self.desk.with(|repair| repair.adopt_image(taking)));
            match taken {
                Ok(()) => {
                    self.has_fetched.set(true);
                    return tracing::info!(at = %image.at, from = %source.member(), "an image was fetched");
                }
                Err(error) => {
                    tracing::warn!(at = %image.at, from = %source.member(), error, "no image from there")
                }
            }
        }
    }

    /// Carries out an operator's order to give up all entries behind the last good record.
    fn cut(&self, member: MemberId) {
        let end = self.desk.with(|repair| {
            let hole = repair.holes().into_iter().find(|hole| hole.is_needed)?;
            let end = repair.before(&hole);
            repair.continue_with(&hole, &[], true).then_some(end)
        });
        match end {
            Some(end) => {
                tracing::error!(%member, %end, "the log is cut off behind its last good record, as ordered")
            }
            None => tracing::error!(%member, "the log cannot be cut off: no image of it can be read"),
        }
    }

    fn decide(&self, view: &GroupView, answers: &BTreeMap<MemberId, Standing>, sources: &[Source]) -> Round {
        let first = self.desk.with(|repair| {
            let hole = repair.holes().into_iter().find(|hole| hole.is_needed)?;
            let (committed, commit_point) = repair.commit_point();
            let own = Damaged {
                me: self.me.member,
                promised: repair.state().promised,
                committed,
                commit_point,
                hole_after: hole.after,
                is_bounded: hole.last.is_some(),
                written: repair.written(),
            };
            Some((hole, repair.before(&hole), own))
        });
        let all_silent = |why: &str| Round::Wait { silent: Vec::new(), why: why.into() };
        let Some((hole, end, own)) = first else {
            let serving = answers.values().find(|it| {
                let leads = view.active == Some(it.store.member) && it.serves == Some(view.epoch);
                let own = self.desk.with(|repair| {
                    let (committed, commit_point) = repair.commit_point();
                    let promised = repair.state().promised;
                    let (hole_after, written) = (Sn(0), repair.written());
                    Damaged {
                        me: self.me.member,
                        promised,
                        committed,
                        commit_point,
                        hole_after,
                        is_bounded: true,
                        written,
                    }
                });
                leads && view.epoch >= own.promised && group::repair::may_be_given_up(&own, it)
            });
            return match serving {
                Some(serving) => Round::GiveUp(serving.store.member),
                None => all_silent("no image can be read, and no member has one that fits this log"),
            };
        };
        match judge(view, &own, answers) {
            Verdict::Continue { with, may_lose } => {
                let source = sources.iter().find(|source| source.member() == with);
                match source.map(|source| self.continue_with(source, &hole, end, may_lose)) {
                    Some(Ok(())) => Round::Whole,
                    Some(Err(why)) => all_silent(&format!("member {with} could not be read: {why}")),
                    None => all_silent("a member has come and gone"),
                }
            }
            Verdict::GiveUp { to, .. } => Round::GiveUp(to),
            Verdict::Wait { silent, why } => Round::Wait { silent, why: why.to_string() },
        }
    }

    /// Takes what a complete member has behind the last good record, if its log leads on from there.
    fn continue_with(
        &self,
        source: &Source,
        hole: &Hole,
        end: LogPoint,
        may_lose: bool,
    ) -> Result<(), String> {
        let (mut entries, mut at, mut bytes) = (Vec::new(), end, 0);
        while bytes < END_BYTES_MAX {
            let Some((previous, more)) = source.read_log(at.id.sn, Sn(u64::MAX))? else { break };
            // Elsewhere already: what it has is for the active to bring.
            if previous.chain != at.chain || more.is_empty() {
                break;
            }
            at = more.last().map_or(at, base::Entry::point);
            bytes += more.iter().map(|entry| entry.payload.len()).sum::<usize>();
            entries.extend(more);
        }
        let is_done =
            self.desk.with(|repair| repair.continue_with(hole, &entries, may_lose) && repair.is_whole());
        tracing::warn!(from = %source.member(), %end, entries = entries.len(), "the end of the log is another member's");
        if is_done { Ok(()) } else { Err("what it has does not go on from here".into()) }
    }
}
