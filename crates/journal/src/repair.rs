//! A damaged store, while its holes are filled from other members' copies.
//!
//! Intact entries stay. The whole store is searched for them ([`crate::salvage`]), and other members can read each of
//! them ([`Repair::read`]). A [`Hole`] is a stretch of entries that is missing between intact neighbours. An entry
//! fills a hole if its chain is the one that the entry behind it names, so each one is proved by itself, from the
//! hole's end to its beginning, and it does not matter which member sent it. Only a hole at the log's end has nothing
//! behind it: it is continued with another member's log ([`Repair::continue_with`]), and the store is marked as
//! suspect.
//!
//! Nothing on the disk is changed before [`Repair::mend`], which writes the segments concerned anew, and keeps what
//! they were. `clover-group` decides which member to ask for which entries, and when a hole is given up.

mod mend;

use crate::{
    Checkpoint, ImageReader, MemberState, RecoverError, Recovery, Settings,
    member_state::StateFile,
    recovery::{Parts, Segment},
    salvage::{self, Behind, Place, Run, Salvaged},
    scan::End,
    store::IMAGES,
};
use base::{Chain, Entry, LogPoint, Sn};
use bytes::Bytes;
use env::{Env, File, OpenMode, disk::Lock};
use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use mend::Mended;

/// Entries that are not in this log any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The entry before it.
    pub after: Sn,
    /// Its last entry and the chain that this entry must have; unknown at the end of a log.
    pub last: Option<(Sn, Chain)>,
    /// Without these entries the store cannot be read back. Others lie before its image: they are of use to others only.
    pub is_needed: bool,
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.after.0 + 1;
        match self.last {
            Some((last, _)) if last.0 == first => write!(f, "entry {first}"),
            Some((last, _)) => write!(f, "entries {first} to {last}"),
            None => write!(f, "the end of the log from entry {first} on"),
        }
    }
}

/// The most bytes of entries that may wait, in holes, for the entries behind them to prove them. Entries beyond that
/// are dropped.
const OFFERED_BYTES_MAX: usize = 1 << 30;

/// A store whose log or images are damaged. It holds the store's lock.
pub struct Repair {
    env: Env,
    directory: PathBuf,
    settings: Settings,
    file: StateFile,
    _lock: Box<dyn Lock>,
    files: Vec<Scanned>,
    /// The first of the files that a start has to read.
    first_needed: usize,
    /// The image that a start can begin with; the default where there is none.
    base: LogPoint,
    /// The images that can be read, oldest first.
    images: Vec<Checkpoint>,
    /// No image can be read, and the log does not begin at its first entry.
    needs_image: bool,
    /// The stretches of the log that are known, in the order of their entries. None overlaps another.
    known: Vec<Known>,
    /// Proved by what stands behind them.
    filled: BTreeMap<u64, Entry>,
    offered: BTreeMap<u64, Vec<Entry>>,
    offered_bytes: usize,
    /// Entries of another member that follow the last known entry.
    continued: Vec<Entry>,
    is_rotten_at_end: bool,
    /// Entries behind the log's end were given up, or may have been.
    is_suspect: bool,
    /// Up to here something was written, as far as can be told.
    written: Sn,
    /// The log ends with what is known, whatever stood behind that.
    end_is_settled: bool,
    /// Entries are given up that may have committed.
    gives_up_commits: bool,
    /// Files that were written anew, and where they are now as they were.
    copies: BTreeMap<PathBuf, PathBuf>,
}

/// One file of the log.
struct Scanned {
    segment: Segment,
    /// Its entries are in another file of the same name but for its ending.
    is_twin: bool,
    salvaged: Salvaged,
}

/// A run, and the file and place where its entries are; a mere point has none.
#[derive(Clone, Copy, Debug)]
struct Known {
    run: Run,
    at: Option<(usize, Place)>,
}

impl Recovery {
    /// Looks through the whole store instead of reading it back. Blocks; nothing is changed.
    ///
    /// # Errors
    /// [`RecoverError::Io`] if a segment cannot be read, [`RecoverError::Version`] if it is of a later release. Damage
    /// is no error: it is what a repair is for.
    pub fn repair(self) -> Result<Repair, RecoverError> {
        let Parts { env, directory, settings, file, lock, segments, superseded } = self.into_parts();
        let group = file.state.identity.group;
        let mut files = Vec::new();
        for (segment, is_twin) in
            segments.into_iter().map(|it| (it, false)).chain(superseded.into_iter().map(|it| (it, true)))
        {
            let bytes = read_whole(&env, &segment.path)?;
            let salvaged =
                salvage::salvage(&bytes, group, segment.start).map_err(|damage| RecoverError::Version {
                    file: segment.path.clone(),
                    what: format!(
                        "expected {} at offset {}, found {}",
                        damage.expected, damage.offset, damage.found
                    ),
                })?;
            files.push(Scanned { segment, is_twin, salvaged });
        }
        files.sort_by_key(|it| (it.segment.start, it.segment.epoch, it.is_twin));
        let mut repair = Repair {
            env,
            directory,
            settings,
            file,
            _lock: lock,
            files,
            first_needed: 0,
            base: LogPoint::default(),
            images: Vec::new(),
            needs_image: false,
            known: Vec::new(),
            filled: BTreeMap::new(),
            offered: BTreeMap::new(),
            offered_bytes: 0,
            continued: Vec::new(),
            is_rotten_at_end: false,
            is_suspect: false,
            written: Sn(0),
            end_is_settled: false,
            gives_up_commits: false,
            copies: BTreeMap::new(),
        };
        repair.choose_image();
        repair.sort_out()?;
        Ok(repair)
    }
}

impl Repair {
    pub fn state(&self) -> &MemberState {
        &self.file.state
    }

    /// The stretches of entries that are missing, in the order of the log.
    pub fn holes(&self) -> Vec<Hole> {
        let mut holes = Vec::new();
        let mut at = self.floor();
        for known in &self.known {
            if known.run.first > Sn(at.0 + 1) {
                let (mut last, mut chain) = (known.run.first.0 - 1, known.run.before);
                while let Some(entry) = self.filled.get(&last).filter(|_| last > at.0) {
                    (last, chain) = (last - 1, entry.previous_chain);
                }
                if last > at.0 {
                    let is_needed = last > self.base.id.sn.0;
                    holes.push(Hole { after: at, last: Some((Sn(last), chain)), is_needed });
                }
            }
            at = at.max(known.run.last.id.sn);
        }
        let is_short = self.end().id.sn.0 < self.known_durable();
        if !self.end_is_settled && (self.is_rotten_at_end || is_short) {
            holes.push(Hole { after: self.end().id.sn, last: None, is_needed: true });
        }
        holes
    }

    /// Whether neither an image nor an entry is missing, so that [`Repair::mend`] may be called.
    pub fn is_whole(&self) -> bool {
        !self.needs_image && !self.holes().iter().any(|hole| hole.is_needed)
    }

    /// No image of the store can be read, and without one its log does not begin at the beginning.
    pub fn needs_image(&self) -> bool {
        self.needs_image
    }

    /// The last entry that is intact before this hole; the default where nothing is.
    pub fn before(&self, hole: &Hole) -> LogPoint {
        let before = |known: &&Known| known.run.last.id.sn <= hole.after;
        self.known.iter().rev().find(before).map_or(self.base, |known| known.run.last)
    }

    /// The end of the log as it is known now.
    pub fn end(&self) -> LogPoint {
        let known = self.known.last().map_or(self.base, |known| known.run.last.max(self.base));
        self.continued.last().map_or(known, Entry::point)
    }

    /// The log ends where it says; nothing has rotted there.
    pub fn is_end_certain(&self) -> bool {
        !self.is_rotten_at_end && !self.is_suspect && !self.file.state.is_suspect
    }

    /// Entries were written up to here at least, whether or not they are intact.
    pub fn written(&self) -> Sn {
        self.written.max(self.end().id.sn).max(Sn(self.known_durable()))
    }

    /// The last entry that is known to have committed. Its chain comes with it if that entry, or the one behind it,
    /// is intact.
    pub fn commit_point(&self) -> (Sn, Option<LogPoint>) {
        let sn = self.file.state.known_commit.max(self.base.id.sn);
        (sn, self.point_of(sn))
    }

    /// The intact point at this sn.
    pub fn point_of(&self, sn: Sn) -> Option<LogPoint> {
        if sn == self.base.id.sn {
            return Some(self.base);
        }
        let continued = self.continued.iter().find(|entry| entry.id.sn == sn);
        if let Some(entry) = continued.or_else(|| self.filled.get(&sn.0)) {
            return Some(entry.point());
        }
        let known = self.known.iter().find(|it| it.run.first <= sn && it.run.last.id.sn >= sn)?;
        if known.run.last.id.sn == sn {
            return Some(known.run.last);
        }
        self.entries_of(known, Sn(sn.0 - 1), sn, usize::MAX).ok()?.last().map(Entry::point)
    }

    /// Takes entries of another member for the holes, and keeps in memory those that fit. Returns how many fit now
    /// that did not before.
    pub fn fill(&mut self, entries: &[Entry]) -> usize {
        let holes = self.holes();
        for entry in entries {
            let sn = entry.id.sn;
            let is_missing =
                holes.iter().any(|hole| sn > hole.after && hole.last.is_some_and(|(last, _)| sn <= last));
            if is_missing && self.offered_bytes + entry.payload.len() <= OFFERED_BYTES_MAX {
                let offered = self.offered.entry(sn.0).or_default();
                if !offered.contains(entry) {
                    self.offered_bytes += entry.payload.len();
                    offered.push(entry.clone());
                }
            }
        }
        self.prove()
    }

    /// Proves entries from the end of each hole backwards: an entry fits if its chain is the one that the entry behind
    /// it names. Returns how many were proved.
    fn prove(&mut self) -> usize {
        let mut fitted = 0;
        for hole in self.holes() {
            let Some((mut last, mut chain)) = hole.last else { continue };
            while last > hole.after {
                let fits = |entry: &&Entry| entry.point().chain == chain;
                let Some(entry) = self.offered.get(&last.0).and_then(|all| all.iter().find(fits)).cloned()
                else {
                    break;
                };
                (last, chain) = (Sn(last.0 - 1), entry.previous_chain);
                self.filled.insert(entry.id.sn.0, entry);
                fitted += 1;
            }
        }
        for sn in self.filled.keys() {
            for entry in self.offered.remove(sn).unwrap_or_default() {
                self.offered_bytes -= entry.payload.len();
            }
        }
        fitted
    }

    /// The log ends before this hole, and goes on with these entries of a member whose log is complete, if there are
    /// any. The entries that this log held behind the hole had not committed. If entries are given up that have
    /// committed, `may_lose` must allow it; the store gets a new generation then, because nobody may count on what it
    /// held.
    ///
    /// False: the entries do not follow, or what is known to have committed would be lost; nothing is changed.
    pub fn continue_with(&mut self, hole: &Hole, entries: &[Entry], may_lose: bool) -> bool {
        let mut at = self.before(hole);
        for entry in entries {
            let follows = entry.id.sn.0 == at.id.sn.0 + 1
                && entry.previous_chain == at.chain
                && entry.id.epoch >= at.id.epoch;
            if !follows {
                return false;
            }
            at = entry.point();
        }
        if at.id.sn < self.base.id.sn || (at.id.sn < self.file.state.known_commit && !may_lose) {
            return false;
        }
        self.known.retain(|known| known.run.last.id.sn <= hole.after);
        self.filled.retain(|sn, _| *sn <= hole.after.0);
        self.offered.clear();
        self.offered_bytes = 0;
        self.continued = entries.to_vec();
        (self.end_is_settled, self.is_suspect) = (true, true);
        self.file.state.known_commit = self.file.state.known_commit.min(at.id.sn);
        self.gives_up_commits = may_lose;
        true
    }

    /// The intact entries after `after`, none above `up_to`, of about `bytes_max` bytes: from the first one on that there is, up
    /// to the next hole. The point before them comes with them.
    ///
    /// # Errors
    /// A segment cannot be read again.
    pub fn read(&self, after: Sn, up_to: Sn, bytes_max: usize) -> io::Result<Option<(LogPoint, Vec<Entry>)>> {
        let holder = self.known.iter().find(|it| it.at.is_some() && it.run.last.id.sn > after);
        let first_filled = self.filled.range(after.0 + 1..).next().map(|(sn, _)| *sn);
        let entries = match holder {
            Some(known) if first_filled.is_none_or(|sn| sn > known.run.first.0.max(after.0 + 1)) => {
                self.entries_of(known, after, up_to, bytes_max)?
            }
            _ => {
                let mut bytes = 0;
                let mut next = first_filled.unwrap_or(u64::MAX);
                self.filled
                    .range(after.0 + 1..)
                    .take_while(|(sn, entry)| {
                        let goes_on = **sn == next && **sn <= up_to.0 && (bytes == 0 || bytes < bytes_max);
                        (next, bytes) = (next.saturating_add(1), bytes + entry.payload.len() + 1);
                        goes_on
                    })
                    .map(|(_, entry)| entry.clone())
                    .collect()
            }
        };
        let Some(first) = entries.first() else { return Ok(None) };
        let before = Sn(first.id.sn.0 - 1);
        let point = self.point_of(before).unwrap_or(LogPoint {
            id: base::TxId { epoch: first.id.epoch, sn: before },
            chain: first.previous_chain,
        });
        Ok(Some((point, entries)))
    }

    /// Images that can be read, oldest first.
    pub fn images(&self) -> Vec<Checkpoint> {
        self.images.clone()
    }

    /// # Errors
    /// `NotFound` if there is no such file; or the system cannot open it.
    pub fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn File>> {
        let path = self.directory.join(IMAGES).join(checkpoint.file_name());
        self.env.disk.open(&path, OpenMode::Read)
    }

    /// The checkpoints of the store's own images, newest first: any of them, fetched again, will do.
    pub fn wanted_images(&self) -> Vec<Checkpoint> {
        self.file.state.checkpoints.iter().rev().copied().collect()
    }

    /// Whether an image of another member may be put beside this log: the log holds the very entry that it was made after.
    pub fn fits(&self, checkpoint: &Checkpoint) -> bool {
        self.point_of(checkpoint.at.id.sn) == Some(checkpoint.at)
    }

    /// Prepares to fetch the image of this checkpoint into a temporary file beside the store.
    pub fn begin_image(&self, checkpoint: &Checkpoint) -> Taking {
        let path = self.directory.join(IMAGES).join(checkpoint.file_name());
        let temporary = self.directory.join(IMAGES).join(format!("{}.tmp", checkpoint.file_name()));
        Taking { env: self.env.clone(), path, temporary, checkpoint: *checkpoint }
    }

    /// Puts an image that was taken among the store's own: what it contains need not be in the log.
    ///
    /// # Errors
    /// The text says what failed: an old file cannot be kept aside, the new one cannot get its name, the member's state
    /// cannot be written, or a segment cannot be read again.
    ///
    /// # Panics
    /// The end of the log is settled already.
    pub fn adopt_image(&mut self, taken: Taking) -> Result<(), String> {
        assert!(!self.end_is_settled, "images are fetched before the end of the log is settled");
        let Taking { path, temporary, checkpoint, .. } = taken;
        let kept = self.keep_aside(&path);
        let disk = &*self.env.disk;
        kept.and_then(|()| disk.rename(&temporary, &path))
            .and_then(|()| disk.sync_directory(&self.directory.join(IMAGES)))
            .map_err(|error| error.to_string())?;
        if !self.file.state.checkpoints.contains(&checkpoint) {
            self.file.state.checkpoints.retain(|own| own.at.id.sn < checkpoint.at.id.sn);
            self.file.state.add_checkpoint(checkpoint);
            self.file.store(disk).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
        }
        self.choose_image();
        self.sort_out().map_err(|error| error.to_string())
    }

    /// The newest image that can be read.
    fn choose_image(&mut self) {
        let checkpoints = self.file.state.checkpoints.iter();
        self.images = checkpoints.filter(|it| self.look_at(it).is_ok()).copied().collect();
        let found = self.images.last();
        let begins = self.files.first().is_none_or(|file| file.segment.start == Sn(1));
        self.needs_image = found.is_none() && !(self.file.state.checkpoints.is_empty() || begins);
        self.base = found.map_or(LogPoint::default(), |checkpoint| checkpoint.at);
        let reaches = |file: &Scanned| file.segment.start.0 <= self.base.id.sn.0 + 1;
        self.first_needed = self.files.iter().rposition(|it| !it.is_twin && reaches(it)).unwrap_or(0);
    }

    fn look_at(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        check_image(self.open_image(checkpoint)?, checkpoint)
    }

    /// Chooses the runs of entries to believe: the longest first, and none that overlaps a chosen one. The other runs
    /// are offered for the holes, like another member's copy.
    fn sort_out(&mut self) -> Result<(), RecoverError> {
        let mut found = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            found.extend(
                file.salvaged.runs.iter().map(|place| Known { run: place.run, at: Some((index, *place)) }),
            );
        }
        found.sort_by_key(|it| (std::cmp::Reverse(it.run.count()), it.run.first));
        let mut known: Vec<Known> = Vec::new();
        let mut rest = Vec::new();
        for it in found {
            if fits_among(&known, &it.run) { known.push(it) } else { rest.push(it) }
        }
        // For stretches without an entry, headers, footers and the image tell which entry stood there.
        let headers =
            self.files.iter().filter_map(|it| it.salvaged.header.as_ref().map(|header| header.previous));
        let footers = self.files.iter().filter_map(|it| it.salvaged.footer.as_ref().map(|footer| footer.end));
        for point in std::iter::once(self.base).chain(footers).chain(headers) {
            let run = Run::known(point);
            let is_inside =
                |it: &Known| it.run.first <= Sn(point.id.sn.0 + 1) && it.run.last.id.sn >= point.id.sn;
            if point.id.sn > Sn(0) && !known.iter().any(is_inside) && fits_among(&known, &run) {
                known.push(Known { run, at: None });
            }
        }
        known.sort_by_key(|it| (it.run.first, it.run.last.id.sn));
        self.known = known;
        self.look_at_end();
        for it in rest {
            let Some((index, place)) = it.at else { continue };
            let bytes = read_whole(&self.env, &self.files[index].segment.path)?;
            let entries: Vec<Entry> = salvage::entries(&bytes, &place).collect();
            self.fill(&entries);
        }
        self.prove();
        Ok(())
    }

    /// Whether the last file ends as a log does.
    fn look_at_end(&mut self) {
        let mut written = Sn(0);
        for file in &self.files {
            written = written.max(file.salvaged.written);
        }
        let Some(last) = self.files.iter().rev().find(|it| !it.is_twin) else { return };
        let footer_says = last.salvaged.footer.is_some();
        let is_full = last.salvaged.runs.last().is_some_and(|place| {
            let length = self.env.disk.length(&last.segment.path).unwrap_or(0);
            place.end.next_multiple_of(crate::record::BLOCK_BYTES) + crate::record::BLOCK_BYTES == length
        });
        self.is_rotten_at_end = match last.salvaged.behind {
            Behind::End(End::Sealed { .. }) => false,
            // A sealed file ends with a footer; where that has rotted, its last entry stands before its place.
            _ if !last.segment.is_open => !footer_says && !is_full,
            Behind::End(End::Open { .. }) => false,
            Behind::End(End::Torn { .. }) => {
                self.is_suspect = true;
                false
            }
            Behind::Rotten => true,
        };
        self.written = written;
        if self.is_rotten_at_end {
            self.written = self.written.max(Sn(self.end().id.sn.0 + 1));
        }
    }

    /// The entry after which the log must be whole. Earlier entries are in the image.
    fn floor(&self) -> Sn {
        let first = self.files.get(self.first_needed).map(|file| Sn(file.segment.start.0.saturating_sub(1)));
        if self.needs_image {
            // The entries before the log are in the image that is still to be fetched.
            return first.unwrap_or_default();
        }
        first.map_or(self.base.id.sn, |first| first.min(self.base.id.sn))
    }

    /// Entries up to here were durable.
    fn known_durable(&self) -> u64 {
        let state = &self.file.state;
        state.known_commit.0.max(state.next.0.saturating_sub(1)).max(self.base.id.sn.0)
    }

    fn entries_of(&self, known: &Known, after: Sn, up_to: Sn, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let Some((index, place)) = known.at else { return Ok(Vec::new()) };
        let path = &self.files[index].segment.path;
        let bytes = read_whole(&self.env, self.copies.get(path).unwrap_or(path)).map_err(io::Error::other)?;
        let mut size = 0;
        let entries = salvage::entries(&bytes, &place)
            .filter(|entry| entry.id.sn > after)
            .take_while(|entry| {
                let goes_on = entry.id.sn <= up_to && (size == 0 || size < bytes_max);
                size += entry.payload.len() + 1;
                goes_on
            })
            // A copy: an answer may live for long, the segment need not.
            .map(|entry| Entry { payload: Bytes::copy_from_slice(&entry.payload), ..entry });
        Ok(entries.collect())
    }
}

/// An image on its way from another member.
pub struct Taking {
    env: Env,
    path: PathBuf,
    temporary: PathBuf,
    checkpoint: Checkpoint,
}

impl Taking {
    /// Fetches the image and compares its digest. `next` is called with an offset and returns the piece that begins
    /// there, until all bytes are here. Blocks.
    ///
    /// # Errors
    /// `next` failed or gave a piece of a wrong length, the file cannot be written, or it is not the image of the
    /// checkpoint. The bytes written by then are removed.
    pub fn fetch(&self, mut next: impl FnMut(u64) -> Result<Bytes, String>) -> Result<(), String> {
        let disk = &*self.env.disk;
        let fetched = (|| {
            let io = |error: io::Error| error.to_string();
            let file = disk.open(&self.temporary, OpenMode::CreateOrTruncate).map_err(io)?;
            let (mut at, total) = (0, self.checkpoint.file_bytes);
            while at < total {
                let piece = next(at)?;
                if piece.is_empty() || piece.len() as u64 > total - at {
                    return Err(format!("a piece of {} bytes at {at}", piece.len()));
                }
                file.write_at(&piece, at).map_err(io)?;
                at += piece.len() as u64;
            }
            file.sync_data().map_err(io)?;
            check_image(file, &self.checkpoint).map_err(io)
        })();
        if fetched.is_err() {
            let _ = disk.remove_file(&self.temporary);
        }
        fetched
    }
}

/// Overlaps none of these, and meets its neighbours.
fn fits_among(known: &[Known], run: &Run) -> bool {
    known.iter().all(|it| {
        let other = &it.run;
        let is_before = other.last.id.sn < run.first;
        let is_behind = other.first > run.last.id.sn;
        let meets = match () {
            () if is_before && other.last.id.sn.0 + 1 == run.first.0 => other.last.chain == run.before,
            () if is_behind && run.last.id.sn.0 + 1 == other.first.0 => run.last.chain == other.before,
            () => true,
        };
        (is_before || is_behind) && meets
    })
}

fn check_image(file: Arc<dyn File>, checkpoint: &Checkpoint) -> io::Result<()> {
    let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
    let reader = ImageReader::open(file)?;
    if reader.header().at != checkpoint.at || reader.file_bytes() != checkpoint.file_bytes {
        return invalid("it is the image of another checkpoint");
    }
    if reader.finish()? != checkpoint.sha256 {
        return invalid("its sha256 is not the one in its checkpoint");
    }
    Ok(())
}

fn read_whole(env: &Env, path: &Path) -> Result<Bytes, RecoverError> {
    let io = |source| RecoverError::Io { file: path.to_owned(), source };
    let file = env.disk.open(path, OpenMode::Read).map_err(io)?;
    let limit = Settings::SEGMENT_BYTES_MAX + 2 * crate::record::PAYLOAD_BYTES_MAX as u64;
    // Bytes behind that are no part of a segment.
    let mut bytes = vec![0; file.length().map_err(io)?.min(limit) as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0).map_err(io)?;
    Ok(bytes.into())
}
