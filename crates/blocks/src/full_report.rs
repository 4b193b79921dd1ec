//! A data server names all replicas of one of its storages.
//!
//! The rows come in slices, so that the driver can let others in between: `begin_report`, then `report_slice` as
//! often as it takes, then `finish_report`. A set of the slots seen is kept meanwhile, and follows all other news
//! about the storage, so that after the last slice it is exactly the storage's content. If the storage is recorded to
//! hold more, the rest is forgotten by a sweep; if the two numbers agree, as they almost always do, nothing is left
//! to be done.

use crate::{
    lap::Lap,
    map::BlockMap,
    replica::Verdict,
    seen::Seen,
    server::StorageType,
    unknown::Source,
    words::{BlockState, ReplicaState, ReportDone, ReportId, ReportedReplica, ServerError, ServerId},
};
use base::{BlockId, Moment};
use std::collections::BTreeSet;

/// Rows whose records are read ahead at once. A processor has about so many reads under way.
const FETCHED_TOGETHER: usize = 16;

pub struct Report {
    serial: u64,
    /// The connection that brings it.
    connection: u64,
    pub seen: Seen,
    done: ReportDone,
    /// The report is complete, and what it did not name is forgotten when the sweeper is here.
    sweep_until: Option<Lap>,
    /// The unfinished blocks of which the storage was heard to have something since the report began.
    pub unfinished: BTreeSet<BlockId>,
    /// It shows what the storage holds since its server obeys this one: see [`crate::takeover`].
    pub is_unfenced: bool,
    /// The row before: ids often rise as slots do, and then no index need be asked.
    last: (BlockId, u32),
}

/// The kinds of row of a full report.
enum Row {
    Done,
    /// It was known, in this slot.
    Known(u32),
    /// It fits its block, in this slot, and was not known.
    New(u32),
    Unusual,
}

impl Report {
    pub fn is_whole(&self) -> bool {
        self.sweep_until.is_some()
    }

    /// Two whole reports as one: it lacks what one of them lacks, and is swept when both are.
    pub fn and(mut self, later: Self) -> Self {
        self.seen.retain(&later.seen);
        self.sweep_until = self.sweep_until.max(later.sweep_until);
        self
    }

    pub fn is_missing(&self, slot: u32) -> bool {
        self.sweep_until.is_some() && !self.seen.contains(slot)
    }

    pub fn swept_by(&self, lap: Lap) -> bool {
        self.sweep_until.is_some_and(|until| until <= lap)
    }
}

impl BlockMap {
    /// Begins a full report of a storage. An earlier report that the storage had begun is given up, and so are rows
    /// about its replicas that still wait, which are older. `lease` is the permission that the report was sent with;
    /// 0 if none.
    ///
    /// # Errors
    /// [`ServerError::NotRegistered`] or [`ServerError::AnotherHolds`] if the server may not speak;
    /// [`ServerError::Overtaken`] if it has reported on a later connection;
    /// [`ServerError::TooManyStorages`] if the storage is new and the server has its maximum of storages already.
    pub fn begin_report(
        &mut self,
        id: ServerId,
        storage: &str,
        storage_type: StorageType,
        lease: u64,
        _now: Moment,
    ) -> Result<ReportId, ServerError> {
        let server = self.reporter(id)?;
        let place = self.storage_named(server, storage, storage_type)?;
        let serial = self.next_serial();
        let is_unfenced = self.is_unfenced(server, id.connection, lease);
        self.postponed.forget_place(place);
        self.forget_unknown_of(place);
        self.storages.get_mut(place).is_incomplete = false;
        self.storages.get_mut(place).begin_report(Report {
            serial,
            connection: id.connection,
            seen: Seen::default(),
            done: ReportDone::default(),
            sweep_until: None,
            unfinished: BTreeSet::new(),
            is_unfenced,
            last: (BlockId(u64::MAX), 0),
        });
        Ok(ReportId { storage: place, serial })
    }

    /// Takes some of the rows. Two thousand take well under a millisecond.
    ///
    /// # Errors
    /// [`ServerError::ReportGone`] if the server was lost, or has finished this report or begun another one;
    /// [`ServerError::Overtaken`] if it has reported on a later connection: what it has taken so far stays, and the rest is given up.
    pub fn report_slice(
        &mut self,
        id: ReportId,
        replicas: &[ReportedReplica],
        now: Moment,
    ) -> Result<(), ServerError> {
        let mut report = self.take_report(id)?;
        let has_lacking = self.storages.get(id.storage).lacking.is_some();
        for (at, replica) in replicas.iter().enumerate() {
            if at % FETCHED_TOGETHER == 0 {
                self.fetch(report.last, &replicas[at..replicas.len().min(at + FETCHED_TOGETHER)]);
            }
            match self.look_at_row(&mut report, id.storage, replica) {
                Row::Known(slot) if has_lacking => {
                    if let Some(lacking) = &mut self.storages.get_mut(id.storage).lacking {
                        lacking.seen.insert(slot);
                    }
                }
                Row::Done | Row::Known(_) => {}
                Row::New(slot) if self.add_at_start(slot, id.storage) => {
                    report.seen.insert(slot);
                }
                Row::New(_) | Row::Unusual => {
                    // The report is back in its place while the row is judged, because judging looks for it there.
                    self.storages.get_mut(id.storage).full_report = Some(report);
                    let verdict = self.take_replica(id.storage, replica, now);
                    if verdict == Verdict::Unknown {
                        self.take_unknown(id.storage, replica, Source::FullReport);
                    }
                    let report_again = self.storages.get_mut(id.storage).full_report.take();
                    report = report_again.expect("it was put there just now");
                    note(&mut report.done, verdict);
                }
            }
        }
        report.done.rows += replicas.len() as u64;
        self.storages.get_mut(id.storage).full_report = Some(report);
        if self.safe_mode.is_on() {
            self.check_safe_mode(now);
        }
        Ok(())
    }

    /// Reads the records of the next rows one right after the other, so that the processor waits for all of them at once and not for each by itself:
    /// in a report in the order of ids, each is on another line of memory.
    fn fetch(&self, last: (BlockId, u32), rows: &[ReportedReplica]) {
        let read = rows.iter().filter_map(|row| self.arena.id_in(guess(last, row.block.id)));
        std::hint::black_box(read.fold(0, |all, id| all ^ id.0));
    }

    /// Deals with the common row: a finalized replica of a complete block, known already.
    fn look_at_row(&self, report: &mut Report, place: u32, replica: &ReportedReplica) -> Row {
        let guess = guess(report.last, replica.block.id);
        let slot = match self.arena.is_at(guess, replica.block.id) {
            true => guess,
            false => match self.arena.find(replica.block.id) {
                Some(slot) => slot,
                None => return Row::Unusual,
            },
        };
        report.last = (replica.block.id, slot);
        let record = self.arena.record(slot);
        let fits = replica.state == ReplicaState::Finalized
            && record.state() == BlockState::Complete
            && record.stamp() == replica.block.generation_stamp
            && record.length() == replica.block.length
            && !self.redundancy.excess.contains(record.id(), place)
            && (self.redundancy.corrupt.is_empty() || !self.redundancy.corrupt.contains(record.id(), place));
        if !self.arena.holds(slot, place) {
            return if fits { Row::New(slot) } else { Row::Unusual };
        }
        // A row that says again what an earlier one said, or the contrary, is dropped.
        if fits || report.seen.contains(slot) {
            let is_new = report.seen.insert(slot);
            report.done.duplicates += u64::from(!is_new);
            return if is_new { Row::Known(slot) } else { Row::Done };
        }
        Row::Unusual
    }

    /// The short way for the flood of rows after a start, when nothing is copied or deleted yet and nothing
    /// special is known of any replica. False if this is not such a moment, or the server has the block on
    /// another storage.
    fn add_at_start(&mut self, slot: u32, place: u32) -> bool {
        let server = self.storages.get(place).server;
        if self.may_command()
            || !self.redundancy.corrupt.is_empty()
            || !self.redundancy.corrupt.out_of_sight.is_empty()
            || self.redundancy.pending.len() > 0
            || !self.servers.get(server).deletions.is_empty()
            || !self.servers.get(server).ordered.is_empty()
            || self.arena.places(slot).iter().any(|other| self.storages.get(other).server == server)
        {
            return false;
        }
        self.arena.add_place(slot, place);
        self.storages.get_mut(place).blocks += 1;
        self.note_claim(place, slot);
        // The report itself is in the hands of the caller; an earlier one that lacked the replica does so no longer.
        self.note_seen(slot, place);
        self.counts.safe += u64::from(self.arena.place_count(slot) == self.min_replication());
        true
    }

    /// Ends a report whose rows are all in. Replicas that were known and not named are forgotten by the next sweep.
    ///
    /// # Errors
    /// [`ServerError::ReportGone`] if the server was lost, or has finished this report or begun another one;
    /// [`ServerError::Overtaken`] if it has reported on a later connection: what it has taken so far stays, and the rest is given up.
    pub fn finish_report(&mut self, id: ReportId, now: Moment) -> Result<ReportDone, ServerError> {
        let mut report = self.take_report(id)?;
        let storage = self.storages.get_mut(id.storage);
        let server = storage.server;
        report.done.needs_sweep = storage.blocks != report.seen.count();
        let done = report.done;
        // A block may have been opened again since its row was taken.
        let is_seen = |id: BlockId| self.arena.find(id).is_some_and(|slot| report.seen.contains(slot));
        self.constructions.forget_lacking(id.storage, |id| report.unfinished.contains(&id) || is_seen(id));
        if done.needs_sweep {
            report.sweep_until = Some(self.request_sweep());
            self.storages.get_mut(id.storage).full_report = Some(report);
        } else {
            self.note_reported(id.storage, &report);
        }
        self.settle_unknown(id.storage, now);
        self.counts.dropped_rows += done.duplicates + done.unknown;
        self.servers.face_mut(server).last_report = now;
        self.servers.get_mut(server).lease = None;
        self.check_safe_mode(now);
        Ok(done)
    }

    fn take_report(&mut self, id: ReportId) -> Result<Box<Report>, ServerError> {
        let is_this = |report: &mut Box<Report>| report.serial == id.serial && report.sweep_until.is_none();
        let storage = self.storages.get_mut(id.storage);
        let server = storage.server;
        let report = storage.full_report.take_if(is_this).ok_or(ServerError::ReportGone)?;
        if self.is_overtaken(server, report.connection) { Err(ServerError::Overtaken) } else { Ok(report) }
    }
}

/// Where the record of this id is if slots rise as ids do from the row before.
fn guess((last_id, last_slot): (BlockId, u32), id: BlockId) -> u32 {
    last_slot.wrapping_add(id.0.wrapping_sub(last_id.0) as u32)
}

fn note(done: &mut ReportDone, verdict: Verdict) {
    match verdict {
        Verdict::Unknown => done.unknown += 1,
        Verdict::Corrupt => done.corrupt += 1,
        Verdict::Taken | Verdict::Ignored | Verdict::Postponed => {}
    }
}
