//! Writing a repaired log: segments anew where they were damaged, the old files kept beside them.
//!
//! A crash at any moment leaves a store that is as whole as before or more so: a segment takes the place of the old one by a
//! rename, and the old one was copied before.

use super::{Repair, Scanned};
use crate::{
    RecoverError, block,
    record::record_bytes,
    renewal,
    scan::End,
    segment::{SegmentContent, write_sealed},
    store::LOG,
};
use base::{Entry, LogPoint, Sn};
use env::OpenMode;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The last entry of the log.
    pub end: LogPoint,
    /// The end of the log was not certain: the store is marked as suspect.
    pub is_suspect: bool,
    /// Segments that were written anew.
    pub written: Vec<String>,
    /// The directory with the files that were replaced or removed. None of them is needed any more.
    pub kept_in: PathBuf,
}

/// The name under which a segment is written anew; a start removes what is left of it.
const MENDING: &str = "mending.tmp";
const COPY_BYTES: usize = 1 << 20;

/// Entries that are to be written as segments.
struct Stretch {
    previous: LogPoint,
    last: Sn,
    /// Its file, if it has one.
    replaces: Option<PathBuf>,
}

impl Repair {
    /// Writes what was repaired. Blocks; the store can be opened afterwards, and is an ordinary one. Only where
    /// [`Repair::is_whole`].
    ///
    /// # Errors
    /// [`RecoverError::Io`] if the member's state or a segment cannot be written, or an old file cannot be moved aside.
    /// The repair can be begun again then.
    ///
    /// # Panics
    /// A hole is left: see [`Repair::is_whole`].
    pub fn mend(mut self) -> Result<Mended, RecoverError> {
        assert!(self.is_whole(), "holes are filled before a store is mended");
        let end = self.end();
        let kept_in = self.aside();
        self.note(end)?;
        let (stretches, leave) = self.plan(end);
        for path in leave.iter().rev() {
            self.move_aside(path)?;
        }
        let mut written = Vec::new();
        for stretch in &stretches {
            written.extend(self.write(stretch)?);
        }
        Ok(Mended { end, is_suspect: self.file.state.is_suspect, written, kept_in })
    }

    /// First the state: from now on a log that ends earlier has lost nothing, and its end is not sure.
    fn note(&mut self, end: LogPoint) -> Result<(), RecoverError> {
        let disk = &*self.env.disk;
        let state = &mut self.file.state;
        let is_lower = state.next.0 > end.id.sn.0 + 1;
        if !is_lower && !self.gives_up_commits && (state.is_suspect || !self.is_suspect) {
            return Ok(());
        }
        state.next = state.next.min(Sn(end.id.sn.0 + 1));
        state.is_suspect |= self.is_suspect;
        if self.gives_up_commits {
            state.generation += 1;
            renewal::forget_watermark(disk, &self.directory)
                .map_err(|source| RecoverError::Io { file: self.directory.clone(), source })?;
        }
        self.file.store(disk).map_err(|(file, source)| RecoverError::Io { file, source })
    }

    /// The stretches to write, in the order of the log, and the files to move aside without a replacement.
    fn plan(&self, end: LogPoint) -> (Vec<Stretch>, Vec<PathBuf>) {
        let (mut stretches, mut leave) = (Vec::new(), Vec::new());
        let begin = self.begin();
        let mut at = begin.unwrap_or_else(|| self.point_of(self.floor()).unwrap_or_default());
        let files: Vec<&Scanned> = self.files.iter().filter(|file| !file.is_twin).collect();
        for (index, file) in files.iter().enumerate() {
            let start = file.segment.start;
            let next = files.get(index + 1).map(|next| next.segment.start);
            let upper = next.map_or(end.id.sn, |next| Sn(next.0 - 1)).min(end.id.sn);
            let is_before = next.is_some_and(|next| next.0 <= self.floor().0 + 1);
            if is_before && begin.is_none() {
                continue;
            }
            if upper <= at.id.sn || start > end.id.sn {
                // An empty one that is as it should be goes with the next start.
                let is_empty = file.salvaged.scanned.as_ref().is_some_and(|scanned| scanned.count == 0);
                if !is_empty || next.is_some() {
                    leave.push(file.segment.path.clone());
                }
                continue;
            }
            if start.0 > at.id.sn.0 + 1 {
                // The file that held these is gone.
                let last = Sn(start.0 - 1);
                stretches.push(Stretch { previous: at, last, replaces: None });
                at = self.point_of(last).expect("no entry is missing any more");
            }
            let is_last = upper == end.id.sn;
            let sound = file.salvaged.scanned.as_ref().filter(|scanned| {
                let is_ended = matches!(scanned.end, End::Sealed { .. }) || (file.segment.is_open && is_last);
                scanned.last.id.sn <= upper && is_ended && start.0 == at.id.sn.0 + 1
            });
            match sound {
                Some(scanned) if !is_last || scanned.last.id.sn == upper => at = scanned.last,
                _ => {
                    let replaces = Some(file.segment.path.clone());
                    stretches.push(Stretch { previous: at, last: upper, replaces });
                    at = self.point_of(upper).expect("no entry is missing any more");
                }
            }
        }
        if at.id.sn < end.id.sn {
            stretches.push(Stretch { previous: at, last: end.id.sn, replaces: None });
        }
        (stretches, leave)
    }

    /// The entry behind which the log is to begin, if that is later than before: entries that the image contains are in
    /// no log any more, or nothing tells what stood before the first of them.
    fn begin(&self) -> Option<LogPoint> {
        let base = self.base;
        let floor = self.floor();
        let gone = self.holes().into_iter().filter_map(|hole| hole.last).map(|(last, _)| last).next_back();
        let from = match gone {
            Some(last) => last,
            None if floor == Sn(0) || self.point_of(floor).is_some() => return None,
            None => floor,
        };
        if from >= base.id.sn {
            return Some(base);
        }
        Some(self.point_of(Sn(from.0 + 1)).expect("the entry behind a hole is known"))
    }

    fn write(&mut self, stretch: &Stretch) -> Result<Vec<String>, RecoverError> {
        let log = self.directory.join(LOG);
        let (mending, mut previous, mut names) = (log.join(MENDING), stretch.previous, Vec::new());
        if let Some(path) = &stretch.replaces {
            self.keep_aside(path).map_err(|source| RecoverError::Io { file: path.clone(), source })?;
        }
        while previous.id.sn < stretch.last {
            let io = |source| RecoverError::Io { file: mending.clone(), source };
            let entries = self.segment_behind(previous, stretch.last).map_err(io)?;
            let (first, last) = match entries.as_slice() {
                [first, .., last] => (first, last),
                [one] => (one, one),
                [] => {
                    let what = format!("entry {} cannot be read any more", previous.id.sn.0 + 1);
                    return Err(io(io::Error::new(io::ErrorKind::InvalidData, what)));
                }
            };
            let content = SegmentContent {
                group: self.file.state.identity.group,
                store_uuid: self.file.state.store_uuid,
                epoch: first.id.epoch,
                previous,
                entries: &entries,
            };
            let disk = &*self.env.disk;
            write_sealed(disk, &mending, &content, 0).map_err(io)?;
            let name = block::file_name(first.id.epoch, first.id.sn, false);
            disk.rename(&mending, &log.join(&name)).and_then(|()| disk.sync_directory(&log)).map_err(io)?;
            previous = last.point();
            names.push(name);
        }
        if let Some(path) = &stretch.replaces
            && !names.iter().any(|name| path.ends_with(name))
        {
            // Its entries are under other names now: an open segment is sealed, for one.
            let disk = &*self.env.disk;
            disk.remove_file(path)
                .and_then(|()| disk.sync_directory(&log))
                .map_err(|source| RecoverError::Io { file: path.clone(), source })?;
        }
        Ok(names)
    }

    /// The entries of one segment, of the usual size.
    fn segment_behind(&self, previous: LogPoint, last: Sn) -> io::Result<Vec<Entry>> {
        let bytes_max = self.settings.segment_bytes;
        let (mut entries, mut at, mut size) = (Vec::new(), previous, 0);
        while at.id.sn < last && size < bytes_max {
            let Some(more) = self.stretch_behind(at.id.sn, last, (bytes_max - size) as usize)? else { break };
            for entry in more {
                let follows = entry.id.sn.0 == at.id.sn.0 + 1 && entry.previous_chain == at.chain;
                if !follows {
                    let what = format!("entry {} does not follow {at}", entry.id);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                at = entry.point();
                size += record_bytes(entry.payload.len()) as u64;
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn stretch_behind(&self, after: Sn, last: Sn, bytes_max: usize) -> io::Result<Option<Vec<Entry>>> {
        let behind = self.continued.first().is_some_and(|first| first.id.sn.0 <= after.0 + 1);
        if behind {
            let rest = self.continued.iter().filter(|entry| entry.id.sn > after && entry.id.sn <= last);
            return Ok(Some(rest.cloned().collect()));
        }
        Ok(self.read(after, last, bytes_max)?.map(|(_, entries)| entries))
    }

    /// A directory for what this repair replaces.
    fn aside(&self) -> PathBuf {
        self.directory.join(format!("{}{}", renewal::DAMAGED, self.file.state.boot + 1))
    }

    /// Copies a file to the directory of what was replaced, durably, under a name of its own: a repair before this one may have
    /// been interrupted. From now on this repair reads the copy.
    pub(super) fn keep_aside(&mut self, path: &Path) -> io::Result<()> {
        let disk = &*self.env.disk;
        if !disk.exists(path)? {
            return Ok(());
        }
        let aside = self.aside();
        disk.create_directory(&aside)?;
        disk.sync_directory(&self.directory)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut copy, copying) = (aside.join(&name), aside.join("copying.tmp"));
        let mut number = 0;
        while disk.exists(&copy)? {
            number += 1;
            copy = aside.join(format!("{name}.{number}"));
        }
        let (from, to) = (disk.open(path, OpenMode::Read)?, disk.open(&copying, OpenMode::CreateOrTruncate)?);
        let (length, mut at) = (from.length()?, 0);
        let mut buffer = vec![0; COPY_BYTES];
        while at < length {
            let count = buffer.len().min((length - at) as usize);
            env::disk::read_exact_at(&*from, &mut buffer[..count], at)?;
            to.write_at(&buffer[..count], at)?;
            at += count as u64;
        }
        to.sync_data()?;
        disk.rename(&copying, &copy)?;
        disk.sync_directory(&aside)?;
        self.copies.insert(path.to_owned(), copy);
        Ok(())
    }

    fn move_aside(&mut self, path: &Path) -> Result<(), RecoverError> {
        let kept = self.keep_aside(path);
        let disk = &*self.env.disk;
        kept.and_then(|()| disk.remove_file(path))
            .and_then(|()| disk.sync_directory(&self.directory.join(LOG)))
            .map_err(|source| RecoverError::Io { file: path.to_owned(), source })
    }
}
