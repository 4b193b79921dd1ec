//! A store whose disk has failed, taken back: the entries that the medium really holds are written anew.
//!
//! After a failed sync the system may show bytes that it never wrote and will not try to write again. So the log is read
//! past the system's cache. The segments that were finished must be whole. The one that was written to is copied into a
//! new file, up to its last intact record, and that file is synced. Only then the note goes that keeps the store from
//! opening: a crash in between leaves the note, and everything is done again.
//!
//! Entries that were acknowledged had been synced before the failure, and are there unless the disk has lost more
//! than it said. The note's writer has left how far the log was durable; a log that ends earlier is taken by an
//! operator's word only.

use crate::{
    MemberState, OpenError, RecoverError, Settings, block,
    index::Place,
    member_state::StateFile,
    promise,
    recovery::REBUILD,
    scan::{End, scan, unknown_version},
    seal,
    store::{LOG, load_state, lock, promise_error},
    watermark,
};
use base::{Epoch, LogPoint, Sn};
use bytes::Bytes;
use env::{Env, OpenMode, disk::Lock};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The authority that wants the store back. It decides how much of the log must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The member itself, to follow another one that leads: everything that was durable must be there, and this member
    /// claims only when all eligible ones have answered, until an active has vouched for its end.
    Member,
    /// A person who has looked at the disk: what is there counts.
    Operator,
}

/// The result of taking a store back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// Why the store had been closed.
    pub note: String,
    /// The last entry that the medium holds.
    pub end: LogPoint,
    /// Everything up to here had been durable.
    pub durable: Sn,
}

/// A store with the note of a failed disk, held.
pub struct FailedStore {
    env: Env,
    log: PathBuf,
    file: StateFile,
    note: String,
    promised: Epoch,
    _lock: Box<dyn Lock>,
}

struct Segment {
    place: Place,
    path: PathBuf,
}

/// A segment as the medium holds it.
struct Read {
    bytes: Bytes,
    /// The offset at which the last record ends, and the entry in it.
    end: (u64, LogPoint),
    count: u64,
}

impl FailedStore {
    /// Takes the store's lock. `None`: there is no such note.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if a process has the store's lock; [`OpenError::NotFormatted`] if there is no store;
    /// [`OpenError::StateDamaged`] if its state or its promise is damaged; [`OpenError::Version`] or
    /// [`OpenError::Level`] if its state is of a later release; [`OpenError::Io`] if a file cannot be read.
    pub fn open(env: &Env, directory: &Path) -> Result<Option<Self>, OpenError> {
        let lock = lock(env, directory)?;
        let (mut file, _) = load_state(env, directory)?;
        let Some(note) = file.state.fault_note.clone() else { return Ok(None) };
        let promised = promise::read(&*env.disk, directory, file.state.store_uuid)
            .map_err(|error| promise_error(directory, error))?;
        let state = &mut file.state;
        state.known_commit = state.known_commit.max(watermark::read(&*env.disk, directory, state));
        let (env, log, promised) = (env.clone(), directory.join(LOG), promised.max(file.state.promised));
        Ok(Some(Self { env, log, file, note, promised, _lock: lock }))
    }

    /// Why the store was closed.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The highest epoch promised.
    pub fn promised(&self) -> Epoch {
        self.promised
    }

    /// The member's state as the failure has left it.
    pub fn state(&self) -> &MemberState {
        &self.file.state
    }

    /// Everything up to here had been durable, as far as it is known.
    pub fn durable(&self) -> Sn {
        let state = &self.file.state;
        let image = state.checkpoints.last().map_or(Sn(0), |checkpoint| checkpoint.at.id.sn);
        state.known_commit.max(Sn(state.next.0.saturating_sub(1))).max(image)
    }

    /// The last entry of the log that the medium holds. Only the last segments are read, and nothing is changed.
    ///
    /// # Errors
    /// [`RecoverError::Io`] if a segment cannot be read from the medium, [`RecoverError::Damaged`] if it is damaged,
    /// [`RecoverError::Version`] if it is of a later release.
    pub fn end(&self) -> Result<LogPoint, RecoverError> {
        let segments = self.segments()?;
        let last_sealed = segments.iter().rposition(|segment| !segment.place.is_open).unwrap_or(0);
        self.walk(&segments[last_sealed.min(segments.len())..], |_, _| Ok(()))
    }

    /// Reads the whole log past the system's cache, writes its end into a new file, and removes the note.
    ///
    /// # Errors
    /// [`RecoverError::Damaged`] if a segment is damaged or, with [`Word::Member`], the log ends before an entry that
    /// was durable; [`RecoverError::Version`] if a segment is of a later release; [`RecoverError::Io`] if a file cannot
    /// be read or written. The note stays then.
    pub fn take_back(mut self, word: Word) -> Result<TakenBack, RecoverError> {
        let segments = self.segments()?;
        let mut anew = Vec::new();
        let end = self.walk(&segments, |index, read| {
            if segments[index].place.is_open {
                anew.push((index, read));
            }
            Ok(())
        })?;
        let durable = self.durable();
        if word == Word::Member && end.id.sn < durable {
            return Err(RecoverError::Damaged {
                file: segments.last().map_or_else(|| self.log.clone(), |segment| segment.path.clone()),
                offset: 0,
                expected: format!(
                    "a log up to entry {durable}, which had been durable before the disk failed"
                ),
                found: format!("one that ends with {} on the medium", end.id),
                remedy: REBUILD,
            });
        }
        for (index, read) in anew {
            let segment = &segments[index];
            self.write_anew(segment, &read)
                .map_err(|source| RecoverError::Io { file: segment.path.clone(), source })?;
        }
        let state = &mut self.file.state;
        state.fault_note = None;
        state.next = Sn(end.id.sn.0 + 1);
        match word {
            Word::Member => state.is_suspect = true,
            Word::Operator => state.known_commit = state.known_commit.min(end.id.sn),
        }
        self.file.store(&*self.env.disk).map_err(|(file, source)| RecoverError::Io { file, source })?;
        Ok(TakenBack { note: self.note, end, durable })
    }

    /// The segments in the order of their first entries. If an open file and a sealed one have the same entries, only
    /// the sealed one is listed.
    fn segments(&self) -> Result<Vec<Segment>, RecoverError> {
        let names = self.env.disk.list(&self.log);
        let names = names.map_err(|source| RecoverError::Io { file: self.log.clone(), source })?;
        let mut segments: Vec<Segment> = names
            .iter()
            .filter_map(|name| {
                let (epoch, start, is_open) = block::parse_file_name(name)?;
                Some(Segment { place: Place::new(epoch, start, is_open), path: self.log.join(name) })
            })
            .collect();
        let key = |segment: &Segment| (segment.place.start, segment.place.epoch, segment.place.is_open);
        segments.sort_by_key(key);
        segments.dedup_by_key(|segment| (segment.place.start, segment.place.epoch));
        Ok(segments)
    }

    /// Reads these segments, which follow each other, and returns the end of the last one.
    fn walk(
        &self,
        segments: &[Segment],
        mut visit: impl FnMut(usize, Read) -> Result<(), RecoverError>,
    ) -> Result<LogPoint, RecoverError> {
        let image = self.file.state.checkpoints.last().map_or(LogPoint::default(), |image| image.at);
        let mut after = None;
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            let read = self.read(segment, after, is_last)?;
            after = Some(read.end.1);
            visit(index, read)?;
        }
        Ok(after.unwrap_or(image))
    }

    fn read(&self, segment: &Segment, after: Option<LogPoint>, is_last: bool) -> Result<Read, RecoverError> {
        let damaged = |offset, expected: String, found: String| RecoverError::Damaged {
            file: segment.path.clone(),
            offset,
            expected,
            found,
            remedy: REBUILD,
        };
        let bytes = self.read_medium(&segment.path).map_err(|source| {
            if env::disk::is_want(&source) {
                return RecoverError::Io { file: segment.path.clone(), source };
            }
            damaged(0, "a segment that can be read".into(), format!("an error of the disk: {source}"))
        })?;
        let scanned = scan::<RecoverError>(&bytes, self.file.state.identity.group, after, |_, _| Ok(()))
            .map_err(|damage| match unknown_version(&bytes, damage.offset) {
            Some(what) => RecoverError::Version { file: segment.path.clone(), what },
            None => damaged(damage.offset, damage.expected, damage.found),
        })??;
        let offset = match scanned.end {
            End::Sealed { offset } => offset,
            End::Open { offset } | End::Torn { offset } if segment.place.is_open && is_last => offset,
            End::Open { offset } | End::Torn { offset } => {
                let expected = format!("entry {} or the segment's footer", scanned.last.id.sn.0 + 1);
                return Err(damaged(offset, expected, "nothing intact".into()));
            }
        };
        Ok(Read { bytes, end: (offset, scanned.last), count: scanned.count })
    }

    fn read_medium(&self, path: &Path) -> io::Result<Bytes> {
        let file = self.env.disk.open(path, OpenMode::ReadMedium)?;
        let length = file.length()?;
        if length > Settings::SEGMENT_FILE_BYTES_MAX {
            let what = format!("{length} bytes are more than a segment has");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mut bytes = vec![0; length as usize];
        env::disk::read_exact_at(&*file, &mut bytes, 0)?;
        Ok(bytes.into())
    }

    /// Writes the entries of a segment into a new file, with a footer.
    fn write_anew(&self, segment: &Segment, read: &Read) -> io::Result<()> {
        let disk = &*self.env.disk;
        if read.count == 0 {
            disk.remove_file(&segment.path)?;
            return disk.sync_directory(&self.log);
        }
        let (offset, last) = read.end;
        let (group, whole) = (self.file.state.identity.group, &read.bytes[..offset as usize]);
        seal::seal_from(disk, &self.log, group, &segment.place, last, offset, |to| to.write_at(whole, 0))?;
        disk.sync_directory(&self.log)
    }
}
