//! Bringing a store back: image first, then the entries after it, then appends.

use crate::{
    Checkpoint, ImageReader, Journal, MemberState, OpenError, RecoverError, Settings, block,
    flow::Opened,
    index::{Index, Place},
    member_state::StateFile,
    promise::{self, PromiseFile},
    scan::{Damage, End, Scanned, scan, unknown_version},
    seal::seal,
    segment::SPARE,
    store::{IMAGES, LOG},
};
use base::{Entry, EntryKind, Epoch, LogPoint, Sn};
use bytes::Bytes;
use env::{Env, OpenMode, disk::Lock};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A fault that recovery met and could deal with. The caller should write a line in its log for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: PathBuf,
    pub offset: u64,
    /// A sentence: what was there, what was expected, what was done.
    pub what: String,
}

/// The result of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last entry of the log, the tail included.
    pub end: LogPoint,
    /// Everything up to here has committed and was given to `apply`, or is in the image.
    pub base: LogPoint,
    /// The entries after `base`: durable here, not known to have committed, not given to `apply`.
    pub tail: Vec<Entry>,
    /// A torn tail was found now or earlier, and no active has vouched for the log's end since.
    pub is_suspect: bool,
    /// Entries given to `apply`.
    pub replayed: u64,
    pub findings: Vec<Finding>,
}

/// The error of an `apply` that is given to [`Recovery::replay`].
pub type ApplyError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) const REBUILD: &str =
    "Nothing was changed. Restore this file from a copy, or rebuild the member from another one";

/// An open store whose log has not been read yet.
pub struct Recovery {
    env: Env,
    directory: PathBuf,
    settings: Settings,
    file: StateFile,
    lock: Box<dyn Lock>,
    /// The segments, in the order of their first entries.
    segments: Vec<Segment>,
    /// Open segments of which there is a sealed copy.
    superseded: Vec<Segment>,
    /// Whether an image was looked for.
    image_was_read: bool,
    /// The last entry that the image contains.
    from: LogPoint,
    findings: Vec<Finding>,
}

pub(crate) struct Segment {
    pub path: PathBuf,
    pub epoch: Epoch,
    pub start: Sn,
    pub is_open: bool,
}

/// The parts of an open store.
pub(crate) struct Parts {
    pub env: Env,
    pub directory: PathBuf,
    pub settings: Settings,
    pub file: StateFile,
    pub lock: Box<dyn Lock>,
    /// The segments, in the order of their first entries.
    pub segments: Vec<Segment>,
    /// Open segments of which there is a sealed copy.
    pub superseded: Vec<Segment>,
}

impl Segment {
    fn place(&self) -> Place {
        Place::new(self.epoch, self.start, self.is_open)
    }
}

impl Recovery {
    /// # Errors
    /// [`OpenError::Io`] if the directory of segments cannot be listed.
    pub(crate) fn new(
        env: Env,
        directory: &Path,
        settings: Settings,
        file: StateFile,
        finding: Option<(PathBuf, String)>,
        lock: Box<dyn Lock>,
    ) -> Result<Self, OpenError> {
        let log = directory.join(LOG);
        let names = env.disk.list(&log).map_err(|source| OpenError::Io { file: log.clone(), source })?;
        let mut segments: Vec<Segment> = names
            .iter()
            .filter_map(|name| {
                let (epoch, start, is_open) = block::parse_file_name(name)?;
                Some(Segment { path: log.join(name), epoch, start, is_open })
            })
            .collect();
        // The sealed one first: where there are both, it is the open one written anew, and whole.
        segments.sort_by_key(|segment| (segment.start, segment.epoch, segment.is_open));
        let mut superseded = Vec::new();
        segments.dedup_by(|open, sealed| {
            let is_twin = open.start == sealed.start && open.epoch == sealed.epoch;
            if is_twin {
                superseded.push(Segment { path: open.path.clone(), ..*open });
            }
            is_twin
        });
        let findings = finding
            .map(|(file, what)| Finding {
                file,
                offset: 0,
                what: format!("one copy of the member's state cannot be read: {what}; the other was used"),
            })
            .into_iter()
            .collect();
        Ok(Self {
            env,
            directory: directory.to_owned(),
            settings,
            file,
            lock,
            segments,
            superseded,
            image_was_read: false,
            from: LogPoint::default(),
            findings,
        })
    }

    pub(crate) fn into_parts(self) -> Parts {
        let Self { env, directory, settings, file, lock, segments, superseded, .. } = self;
        Parts { env, directory, settings, file, lock, segments, superseded }
    }

    /// The member's state as the last life left it.
    pub fn state(&self) -> &MemberState {
        &self.file.state
    }

    /// Reads the newest image that can be read, and falls back to the one before it. `None`: there is no
    /// image, the log starts at its first entry. `read` may run more than once; what an earlier run built is
    /// void. An error from `read` counts as a damaged image.
    ///
    /// # Errors
    /// [`RecoverError::Damaged`] if no image can be used and the log does not begin with its first entry;
    /// [`RecoverError::Version`] if a later release wrote an image; [`RecoverError::Io`] if memory, room or descriptors
    /// are short.
    pub fn load_image<T>(
        &mut self,
        mut read: impl FnMut(&mut ImageReader) -> io::Result<T>,
    ) -> Result<Option<(LogPoint, T)>, RecoverError> {
        self.image_was_read = true;
        let checkpoints = self.file.state.checkpoints.clone();
        let mut last_failure = None;
        for checkpoint in checkpoints.iter().rev() {
            let path = self.directory.join(IMAGES).join(checkpoint.file_name());
            match self.read_image(&path, checkpoint, &mut read) {
                Ok(value) => {
                    self.from = checkpoint.at;
                    return Ok(Some((checkpoint.at, value)));
                }
                // The image is not at fault: it may be as good as ever.
                Err(source) if env::disk::is_want(&source) => {
                    return Err(RecoverError::Io { file: path, source });
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return Err(RecoverError::Version { file: path, what: error.to_string() });
                }
                Err(error) => {
                    let what = format!("the image cannot be used: {error}; the one before it is tried");
                    self.findings.push(Finding { file: path.clone(), offset: 0, what });
                    last_failure = Some((path, error));
                }
            }
        }
        let starts_at_first = self.segments.first().is_some_and(|segment| segment.start == Sn(1));
        match last_failure {
            Some((file, error)) if !starts_at_first => Err(RecoverError::Damaged {
                file,
                offset: 0,
                expected: "an image to start from".into(),
                found: error.to_string(),
                remedy: REBUILD,
            }),
            _ => Ok(None),
        }
    }

    fn read_image<T>(
        &self,
        path: &Path,
        checkpoint: &Checkpoint,
        read: &mut impl FnMut(&mut ImageReader) -> io::Result<T>,
    ) -> io::Result<T> {
        let invalid = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let mut reader = ImageReader::open(self.env.disk.open(path, OpenMode::Read)?)?;
        let header = *reader.header();
        if header.at != checkpoint.at || header.group != self.file.state.identity.group {
            return invalid(format!("expected the image of {}, found one of {}", checkpoint.at, header.at));
        }
        if reader.file_bytes() != checkpoint.file_bytes {
            let (expected, found) = (checkpoint.file_bytes, reader.file_bytes());
            return invalid(format!("expected {expected} bytes, found {found}"));
        }
        let value = read(&mut reader)?;
        if reader.finish()? != checkpoint.sha256 {
            return invalid("its sha256 is not the one in its checkpoint".into());
        }
        Ok(value)
    }

    /// Entries behind the image, as far as the member's state and the names of the segments tell. The newest segment may have
    /// more.
    pub fn entries_expected(&self) -> u64 {
        let state = &self.file.state;
        let started = self.segments.last().map_or(0, |newest| newest.start.0.saturating_sub(1));
        state.known_commit.0.max(started).saturating_sub(self.from.id.sn.0)
    }

    /// Gives every entry after the image that is known to have committed to `apply`, in order; the others come
    /// back as [`Recovered::tail`]. Seals what was open, and opens the log for appends. An error from `apply`
    /// ends recovery.
    ///
    /// Nothing on the disk is changed before all entries were read; then this start is counted.
    ///
    /// # Errors
    /// [`RecoverError::Damaged`] if a segment is damaged or missing, or the log ends before an entry that was durable;
    /// [`RecoverError::Version`] if a segment is of a later release; [`RecoverError::Apply`] if `apply` refused an
    /// entry, or the log holds another entry than the image was made after; [`RecoverError::Io`] if a file cannot be
    /// read or written.
    ///
    /// # Panics
    /// The store has an image, and [`Recovery::load_image`] was not called before.
    pub fn replay(
        mut self,
        mut apply: impl FnMut(Entry) -> Result<(), ApplyError>,
    ) -> Result<(Journal, Recovered), RecoverError> {
        assert!(
            self.image_was_read || self.file.state.checkpoints.is_empty(),
            "the image comes before the entries after it"
        );
        let segments = std::mem::take(&mut self.segments);
        let known_commit = self.file.state.known_commit.max(self.from.id.sn);
        let mut walk = Walk::new(self.from, known_commit);
        let (mut to_seal, mut empty) = (Vec::new(), None);
        // Segments that the image has made superfluous need not be read.
        let first =
            segments.iter().rposition(|segment| segment.start.0 <= self.from.id.sn.0 + 1).unwrap_or(0);
        for (index, segment) in segments.iter().enumerate().skip(first) {
            let is_last = index + 1 == segments.len();
            let scanned = self.read_segment(segment, is_last, &mut walk, &mut apply)?;
            // Not the last one: it was being replaced; its footer is there, its new name is not.
            if segment.is_open {
                to_seal.push((segment, scanned));
            }
        }
        let end = walk.at.unwrap_or(self.from);
        self.check_end(end, segments.last())?;
        let is_torn = std::mem::take(&mut walk.is_torn);
        if is_torn && !self.file.state.is_suspect {
            // Noted before the traces of it are removed.
            self.file.state.is_suspect = true;
            self.store_state()?;
        }
        for (segment, scanned) in to_seal {
            self.seal(segment, &scanned)?;
            if scanned.count == 0 {
                empty = Some(segment.start);
            }
        }
        let places = segments
            .iter()
            .filter(|segment| Some(segment.start) != empty)
            .map(|segment| segment.place().sealed())
            .collect();
        self.forget_what_is_behind()?;
        for checkpoint in walk.checkpoints {
            // Only those that have committed are here.
            if self.is_usable(&checkpoint)? {
                self.file.state.add_checkpoint(checkpoint);
            }
        }
        let state = &mut self.file.state;
        state.boot += 1;
        state.next = Sn(end.id.sn.0 + 1);
        state.promised = state.promised.max(walk.promised);
        self.store_state()?;
        // Not before the state has it: until then the old file may be the only one that does.
        let (disk, store_uuid) = (&*self.env.disk, self.file.state.store_uuid);
        let promise = PromiseFile::make(disk, &self.directory, store_uuid, self.file.state.promised)
            .map_err(|source| RecoverError::Io { file: self.directory.join(promise::FILE_NAME), source })?;
        let recovered = Recovered {
            end,
            base: walk.base,
            tail: walk.tail,
            is_suspect: self.file.state.is_suspect,
            replayed: walk.replayed,
            findings: self.findings,
        };
        let journal = Journal::open(Opened {
            env: self.env,
            directory: self.directory,
            settings: self.settings,
            file: self.file,
            lock: self.lock,
            end,
            log_bytes: walk.log_bytes,
            promise,
            index: Index::new(places, end),
        });
        Ok((journal, recovered))
    }

    /// Whether the image of this checkpoint is here, and newer than those that are known. A file of its name may be another image of the
    /// same entry: one that this member made itself, of which no checkpoint has committed.
    fn is_usable(&self, checkpoint: &Checkpoint) -> Result<bool, RecoverError> {
        if self.file.state.checkpoints.last().is_some_and(|last| last.at.id.sn >= checkpoint.at.id.sn) {
            return Ok(false);
        }
        let path = self.directory.join(IMAGES).join(checkpoint.file_name());
        let io = |source| RecoverError::Io { file: path.clone(), source };
        if !self.env.disk.exists(&path).map_err(io)? {
            return Ok(false);
        }
        let read = self.env.disk.open(&path, OpenMode::Read).and_then(ImageReader::open);
        match read.and_then(ImageReader::finish) {
            Ok(sha256) => Ok(sha256 == checkpoint.sha256),
            Err(source) if env::disk::is_want(&source) => Err(io(source)),
            // The log does without it.
            Err(_) => Ok(false),
        }
    }

    fn read_segment(
        &mut self,
        segment: &Segment,
        is_last: bool,
        walk: &mut Walk,
        apply: &mut impl FnMut(Entry) -> Result<(), ApplyError>,
    ) -> Result<Scanned, RecoverError> {
        let bytes = self.read_whole(&segment.path)?;
        let group = self.file.state.identity.group;
        let from = self.from;
        let mut after = walk.at;
        if after.is_none() && self.from.id.sn.0 + 1 == segment.start.0 {
            after = Some(self.from);
        }
        let damaged = |damage: Damage| match unknown_version(&bytes, damage.offset) {
            Some(what) => RecoverError::Version { file: segment.path.clone(), what },
            None => RecoverError::Damaged {
                file: segment.path.clone(),
                offset: damage.offset,
                expected: damage.expected,
                found: damage.found,
                remedy: REBUILD,
            },
        };
        let result = scan(&bytes, group, after, |offset, entry| {
            let id = entry.id;
            if id.sn == from.id.sn && entry.point() != from {
                let source = format!("the image was made after {from}, the log holds {}", entry.point());
                return Err(RecoverError::Apply {
                    file: segment.path.clone(),
                    offset,
                    id,
                    source: source.into(),
                });
            }
            if id.sn <= from.id.sn {
                return Ok(());
            }
            walk.promised = walk.promised.max(id.epoch);
            walk.log_bytes += crate::record::record_bytes(entry.payload.len()) as u64;
            if id.sn > walk.known_commit {
                // A copy: the entry may stay for long, the segment need not.
                let payload = Bytes::copy_from_slice(&entry.payload);
                walk.tail.push(Entry { payload, ..entry });
                return Ok(());
            }
            if entry.kind == EntryKind::Checkpoint
                && let Some(checkpoint) = Checkpoint::decode(&entry.payload)
            {
                walk.checkpoints.push(checkpoint);
            }
            walk.replayed += 1;
            walk.base = entry.point();
            apply(entry).map_err(|source| RecoverError::Apply {
                file: segment.path.clone(),
                offset,
                id,
                source,
            })
        });
        let scanned = result.map_err(damaged)??;
        let start = Sn(scanned.last.id.sn.0 + 1 - scanned.count);
        let refuse = |offset, expected: String, found: String| damaged(Damage { offset, expected, found });
        if start != segment.start {
            let expected = format!("entry {} first, as the file's name says", segment.start);
            return Err(refuse(0, expected, format!("entry {start}")));
        }
        if after.is_none() && self.from == LogPoint::default() && start != Sn(1) {
            return Err(refuse(
                0,
                "entry 1: there is no image to start from".into(),
                format!("entry {start}"),
            ));
        }
        if start.0 > self.from.id.sn.0 + 1 && after.is_none() {
            let expected = format!("entry {}, the first after the image", self.from.id.sn.0 + 1);
            return Err(refuse(0, expected, format!("entry {start}")));
        }
        match scanned.end {
            End::Sealed { .. } => {}
            End::Open { offset } | End::Torn { offset } if !segment.is_open || !is_last => {
                let expected = format!("entry {} or the segment's footer", scanned.last.id.sn.0 + 1);
                return Err(refuse(offset, expected, "nothing intact".into()));
            }
            End::Open { .. } => {}
            End::Torn { offset } => {
                walk.is_torn = true;
                self.findings.push(Finding {
                    file: segment.path.clone(),
                    offset,
                    what: format!(
                        "the write of entry {} was cut off before it was durable; the log ends with {}",
                        scanned.last.id.sn.0 + 1,
                        scanned.last.id
                    ),
                });
            }
        }
        for offset in &scanned.dirty_padding {
            let what =
                "a byte between two batches is not zero: the disk has changed it. No entry is affected";
            self.findings.push(Finding { file: segment.path.clone(), offset: *offset, what: what.into() });
        }
        walk.at = Some(scanned.last);
        Ok(scanned)
    }

    fn read_whole(&self, path: &Path) -> Result<Bytes, RecoverError> {
        let io = |source| RecoverError::Io { file: path.to_owned(), source };
        let file = self.env.disk.open(path, OpenMode::Read).map_err(io)?;
        let length = file.length().map_err(io)?;
        let limit = Settings::SEGMENT_FILE_BYTES_MAX;
        if length > limit {
            return Err(RecoverError::Damaged {
                file: path.to_owned(),
                offset: limit,
                expected: format!("a segment of at most {limit} bytes"),
                found: format!("{length} bytes"),
                remedy: REBUILD,
            });
        }
        let mut bytes = vec![0; length as usize];
        env::disk::read_exact_at(&*file, &mut bytes, 0).map_err(io)?;
        Ok(bytes.into())
    }

    fn store_state(&mut self) -> Result<(), RecoverError> {
        self.file.store(&*self.env.disk).map_err(|(file, source)| RecoverError::Io { file, source })
    }

    /// Refuses a log that ends before an entry that was durable once.
    fn check_end(&self, end: LogPoint, last: Option<&Segment>) -> Result<(), RecoverError> {
        let state = &self.file.state;
        let known = state.known_commit.0.max(state.next.0.saturating_sub(1)).max(self.from.id.sn.0);
        if end.id.sn.0 >= known {
            return Ok(());
        }
        Err(RecoverError::Damaged {
            file: last.map_or_else(|| self.directory.join(LOG), |segment| segment.path.clone()),
            offset: 0,
            expected: format!("a log up to entry {known}, which is known to have been durable"),
            found: format!("one that ends with {}", end.id),
            remedy: REBUILD,
        })
    }

    /// Makes what was read durable and final: an open segment is written anew with its footer, an empty one
    /// goes. From then on nothing that a cut-off write left behind can be taken for an entry.
    ///
    /// It is written anew, and not only synced, because after a sync that failed in an earlier life the system
    /// may show bytes that it no longer means to write, and say of them that they are synced.
    fn seal(&self, segment: &Segment, scanned: &Scanned) -> Result<(), RecoverError> {
        let disk = &*self.env.disk;
        let log = self.directory.join(LOG);
        let result = if scanned.count > 0 {
            let (End::Sealed { offset } | End::Open { offset } | End::Torn { offset }) = scanned.end;
            seal(disk, &log, self.file.state.identity.group, &segment.place(), offset, scanned.last)
        } else {
            disk.remove_file(&segment.path)
        };
        result.map_err(|source| RecoverError::Io { file: segment.path.clone(), source })
    }

    /// Removes what an interrupted life left behind: segments that were written anew, files never finished.
    /// Then all names are durable.
    fn forget_what_is_behind(&self) -> Result<(), RecoverError> {
        let log = self.directory.join(LOG);
        let at_log = |source| RecoverError::Io { file: log.clone(), source };
        for segment in &self.superseded {
            self.env.disk.remove_file(&segment.path).map_err(at_log)?;
        }
        // A spare segment is not trusted either: its preparation may have been cut off, or its sync have failed.
        for name in self.env.disk.list(&log).map_err(at_log)? {
            if name == SPARE || name.ends_with(".tmp") {
                self.env.disk.remove_file(&log.join(name)).map_err(at_log)?;
            }
        }
        self.env.disk.sync_directory(&log).map_err(at_log)?;
        let images = self.directory.join(IMAGES);
        let io = |source| RecoverError::Io { file: images.clone(), source };
        for name in self.env.disk.list(&images).map_err(io)? {
            if name.ends_with(".tmp") {
                self.env.disk.remove_file(&images.join(name)).map_err(io)?;
            }
        }
        Ok(())
    }
}

/// The state of a walk over the segments.
struct Walk {
    at: Option<LogPoint>,
    /// Entries above it are not known to have committed.
    known_commit: Sn,
    base: LogPoint,
    tail: Vec<Entry>,
    replayed: u64,
    log_bytes: u64,
    /// Committed ones.
    checkpoints: Vec<Checkpoint>,
    /// The highest epoch of an entry.
    promised: Epoch,
    is_torn: bool,
}

impl Walk {
    fn new(from: LogPoint, known_commit: Sn) -> Self {
        Self {
            at: None,
            known_commit,
            base: from,
            tail: Vec::new(),
            replayed: 0,
            log_bytes: 0,
            checkpoints: Vec::new(),
            promised: Epoch(0),
            is_torn: false,
        }
    }
}
