//! Adding to a backup: entries at its end, and images.

use super::{
    ArchiveError, IMAGES, LOCK, LOG, Manifest, Span, StagedArchiveImage, Whose,
    manifest::{self, SPANS_MAX},
    read::{damaged, read_whole},
    segments,
};
use crate::{
    Checkpoint,
    block::{self, Footer, SegmentHeader},
    record::{BLOCK_BYTES, PAYLOAD_BYTES_MAX, encode_batch, record_bytes},
    scan::{End, scan},
};
use base::{Entry, Epoch, LogPoint, Sn};
use bytes::Bytes;
use env::{Disk, Env, OpenMode, disk::Lock};
use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes of entries in one batch.
const BATCH_BYTES: usize = 1 << 20;
/// A segment with more is sealed.
const SEGMENT_BYTES: u64 = 64 << 20;

/// The one process that adds to a backup.
pub struct Archiver {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    _lock: Box<dyn Lock>,
    manifest: Manifest,
    writes: u64,
    /// The last entry written, synced or not.
    end: Option<LogPoint>,
    synced: Sn,
    segment: Option<Segment>,
    segment_bytes: u64,
}

/// The segment that is added to.
struct Segment {
    file: Arc<dyn env::File>,
    path: PathBuf,
    name: String,
    start: Sn,
    position: u64,
}

impl Archiver {
    /// Begins a backup in a directory that is empty or does not exist, or goes on with one of the same cluster. The
    /// last file of an interrupted run is cut to its last whole entry. `time_of` tells the time of an edit.
    ///
    /// # Errors
    /// [`ArchiveError::InUse`] if another process adds to the backup, [`ArchiveError::NotEmpty`] if the directory holds
    /// other files, [`ArchiveError::Foreign`] if it is another cluster's backup. Those of
    /// [`Backup::open`](super::Backup::open) for the manifest; [`ArchiveError::Damaged`], [`ArchiveError::Gap`],
    /// [`ArchiveError::Image`] or [`ArchiveError::Diverged`] if the last span is not what the manifest says;
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if a file cannot be read or written.
    pub fn open(
        env: &Env,
        directory: &Path,
        whose: &Whose,
        time_of: &dyn Fn(&Entry) -> Option<u64>,
    ) -> Result<Self, ArchiveError> {
        Self::open_with(env, directory, whose, SEGMENT_BYTES, time_of)
    }

    pub(super) fn open_with(
        env: &Env,
        directory: &Path,
        whose: &Whose,
        segment_bytes: u64,
        time_of: &dyn Fn(&Entry) -> Option<u64>,
    ) -> Result<Self, ArchiveError> {
        let disk = env.disk.clone();
        let io = || ArchiveError::io(directory.to_owned());
        Manifest::check(whose).map_err(|what| io()(io::Error::other(what)))?;
        disk.create_directory(directory).map_err(io())?;
        // Looked at before anything is made, and again under the lock.
        Self::refuse_what_is_none(&*disk, directory)?;
        let lock = disk.lock(&directory.join(LOCK)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => ArchiveError::InUse { directory: directory.to_owned() },
            _ => io()(error),
        })?;
        let loaded = manifest::load(&*disk, directory)?;
        let is_new = loaded.is_none();
        let (manifest, writes, _) = loaded.unwrap_or_else(|| {
            (Manifest { whose: whose.clone(), epoch: Epoch(0), spans: Vec::new() }, 0, None)
        });
        let name = |whose: &Whose| format!("cluster {}, block pool {}", whose.cluster_id, whose.block_pool);
        let is_same = |other: &Whose| {
            let key = |it: &Whose| (it.cluster_id.clone(), it.block_pool.clone(), it.namespace_id, it.group);
            key(other) == key(whose)
        };
        if !is_same(&manifest.whose) {
            let (found, expected) = (name(&manifest.whose), name(whose));
            return Err(ArchiveError::Foreign { directory: directory.to_owned(), found, expected });
        }
        for below in [IMAGES, LOG] {
            disk.create_directory(&directory.join(below)).map_err(io())?;
        }
        let mut archiver = Self {
            disk,
            directory: directory.to_owned(),
            _lock: lock,
            end: manifest.spans.last().map(|span| span.end),
            synced: manifest.spans.last().map_or(Sn(0), |span| span.end.id.sn),
            manifest,
            writes,
            segment: None,
            segment_bytes,
        };
        archiver.adopt(time_of)?;
        if is_new {
            archiver.store()?;
        }
        Ok(archiver)
    }

    fn refuse_what_is_none(disk: &dyn Disk, directory: &Path) -> Result<(), ArchiveError> {
        let found = disk.list(directory).map_err(ArchiveError::io(directory.to_owned()))?;
        let is_ours = |name: &String| [LOCK, "manifest.tmp", IMAGES, LOG].contains(&name.as_str());
        if found.is_empty() || found.iter().any(|name| manifest::FILE_NAMES.contains(&name.as_str())) {
            return Ok(());
        }
        // A first run that was interrupted before it had written anything.
        let is_begun = found.iter().all(is_ours)
            && segments(disk, directory).map_err(ArchiveError::io(directory.to_owned()))?.is_empty();
        if is_begun {
            return Ok(());
        }
        let found = found.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        Err(ArchiveError::NotEmpty { directory: directory.to_owned(), found })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The last entry that is archived; `None` where nothing is.
    pub fn end(&self) -> Option<LogPoint> {
        self.end
    }

    /// Begins to take an image; `None` where it is in its place already.
    ///
    /// # Errors
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if the directory of images cannot be read or written.
    pub fn stage(&self, checkpoint: Checkpoint) -> Result<Option<StagedArchiveImage>, ArchiveError> {
        StagedArchiveImage::begin(&self.disk, &self.directory, checkpoint, self.manifest.whose.group)
    }

    /// Begins a span: the next entries follow this image, or the beginning of the log if there is no image. Entries
    /// between the last span and this one are not in the backup.
    ///
    /// # Errors
    /// [`ArchiveError::TooManySpans`] if the backup has as many spans as it may, [`ArchiveError::Diverged`] if the
    /// image is not of a later entry than the last one here; [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if the
    /// open segment cannot be ended, or the manifest cannot be written.
    pub fn begin_span(
        &mut self,
        image: Option<Checkpoint>,
        begin_ms: Option<u64>,
    ) -> Result<(), ArchiveError> {
        if self.manifest.spans.len() == SPANS_MAX {
            return Err(ArchiveError::TooManySpans(SPANS_MAX));
        }
        let begin = image.map_or(LogPoint::default(), |image| image.at);
        if let Some(end) = self.end.filter(|end| begin.id.sn <= end.id.sn) {
            return Err(ArchiveError::Diverged { after: end, found: begin.id });
        }
        self.seal()?;
        self.manifest.spans.push(Span::new(begin, image, begin_ms));
        self.end = Some(begin);
        self.synced = begin.id.sn;
        self.store()
    }

    /// Takes entries that have committed and follow the last one. They count when [`Archiver::sync`] has returned.
    ///
    /// # Errors
    /// [`ArchiveError::Diverged`] if an entry does not follow the one before it: nothing was taken then.
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if a segment cannot be written; the batches before the one that
    /// failed are taken.
    ///
    /// # Panics
    /// No span was begun: see [`Archiver::begin_span`].
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), ArchiveError> {
        let mut end = self.end.expect("a span was begun");
        for entry in entries {
            let follows = entry.id.sn.0 == end.id.sn.0 + 1
                && entry.id.epoch >= end.id.epoch
                && entry.previous_chain == end.chain;
            if !follows {
                return Err(ArchiveError::Diverged { after: end, found: entry.id });
            }
            end = entry.point();
        }
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|entry| {
                let is_first = bytes == 0;
                bytes += entry.payload.len() + 1;
                is_first || bytes <= BATCH_BYTES
            });
            let (batch, later) = rest.split_at(count.count());
            self.write_batch(first, batch)?;
            self.end = batch.last().map(Entry::point);
            rest = later;
        }
        Ok(())
    }

    fn write_batch(&mut self, first: &Entry, batch: &[Entry]) -> Result<(), ArchiveError> {
        let group = self.manifest.whose.group;
        if self.segment.is_none() {
            self.segment = Some(self.new_segment(first)?);
        }
        let bytes = encode_batch(batch, group, self.synced);
        let segment = self.segment.as_mut().expect("there is one");
        segment.file.write_at(&bytes, segment.position).map_err(ArchiveError::io(segment.path.clone()))?;
        segment.position += bytes.len() as u64;
        Ok(())
    }

    fn new_segment(&self, first: &Entry) -> Result<Segment, ArchiveError> {
        let log = self.directory.join(LOG);
        let name = block::file_name(first.id.epoch, first.id.sn, true);
        let path = log.join(&name);
        let header = SegmentHeader {
            version: block::VERSION,
            group: self.manifest.whose.group,
            epoch: first.id.epoch,
            previous: self.end.expect("a span was begun"),
            store_uuid: [0; 16],
            // The file grows with each write: nothing is allocated ahead.
            allocated: BLOCK_BYTES,
        };
        let io = || ArchiveError::io(path.clone());
        let file = self.disk.open(&path, OpenMode::CreateOrTruncate).map_err(io())?;
        file.write_at(&header.encode(), 0).map_err(io())?;
        self.disk.sync_directory(&log).map_err(io())?;
        Ok(Segment { file, path, name, start: first.id.sn, position: BLOCK_BYTES })
    }

    /// Makes what was appended durable and says so in the manifest. `epoch` is the highest that the members tell of, `end_ms` the time of
    /// the last edit appended, and `complete_ms` the time up to which nothing is missing.
    ///
    /// # Errors
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if the open segment cannot be synced or, being full, ended, or
    /// the manifest cannot be written.
    pub fn sync(
        &mut self,
        epoch: Epoch,
        end_ms: Option<u64>,
        complete_ms: Option<u64>,
    ) -> Result<(), ArchiveError> {
        if let Some(segment) = &self.segment {
            segment.file.sync_data().map_err(ArchiveError::io(segment.path.clone()))?;
        }
        let before = self.manifest.clone();
        self.manifest.epoch = self.manifest.epoch.max(epoch);
        if let (Some(span), Some(end)) = (self.manifest.spans.last_mut(), self.end) {
            span.end = end;
            span.end_ms = end_ms.or(span.end_ms);
            span.complete_ms = complete_ms.max(span.complete_ms);
            self.synced = end.id.sn;
        }
        if self.manifest != before {
            self.store()?;
        }
        if self.segment.as_ref().is_some_and(|segment| segment.position >= self.segment_bytes) {
            self.seal()?;
        }
        Ok(())
    }

    /// Ends the open segment with its footer, and syncs it.
    ///
    /// # Errors
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if the footer cannot be written, or the file cannot be synced
    /// or renamed.
    pub fn seal(&mut self) -> Result<(), ArchiveError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        let end = self.end.expect("there is an entry");
        self.end_segment(&segment, segment.position, end)
    }

    fn end_segment(&self, segment: &Segment, offset: u64, end: LogPoint) -> Result<(), ArchiveError> {
        let io = || ArchiveError::io(segment.path.clone());
        let log = self.directory.join(LOG);
        let footer_at = offset.next_multiple_of(BLOCK_BYTES);
        let footer = Footer {
            version: block::VERSION,
            group: self.manifest.whose.group,
            end,
            count: end.id.sn.0 + 1 - segment.start.0,
            offset: footer_at,
        };
        (|| {
            segment.file.set_length(offset)?;
            segment.file.write_at(&footer.encode(), footer_at)?;
            segment.file.sync_data()?;
            let sealed = segment.name.trim_end_matches(".open");
            self.disk.rename(&segment.path, &log.join(sealed))?;
            self.disk.sync_directory(&log)
        })()
        .map_err(io())
    }

    /// Takes over the entries that an interrupted run has written behind the manifest's end, as far as they are
    /// whole: they had committed. The last file is read whole, so that nothing is added to a damaged one.
    fn adopt(&mut self, time_of: &dyn Fn(&Entry) -> Option<u64>) -> Result<(), ArchiveError> {
        let log = self.directory.join(LOG);
        let mut files = segments(&*self.disk, &self.directory).map_err(ArchiveError::io(log))?;
        let Some(span) = self.manifest.spans.last().cloned() else { return Ok(()) };
        self.check_image(&span)?;
        let last = loop {
            let Some(file) = files.pop() else { break None };
            let mut bytes = read_whole(&*self.disk, &file)?;
            if file.is_open {
                bytes = as_if_allocated(&bytes);
            }
            let header = SegmentHeader::decode(&bytes);
            let is_begun = file.is_open && file.start.0 == span.end.id.sn.0 + 1;
            match header {
                Some(header) => {
                    break Some((file, bytes, header));
                }
                // Nothing in it has ever counted.
                _ if is_begun => self.disk.remove_file(&file.path).map_err(ArchiveError::io(file.path))?,
                _ => {
                    let (expected, found) = ("the header of a segment".into(), "something else".into());
                    return Err(ArchiveError::Damaged { file: file.path, offset: 0, expected, found });
                }
            }
        };
        let is_empty = span.end == span.begin;
        let Some((file, bytes, header)) =
            last.filter(|(file, ..)| !is_empty || file.start > span.begin.id.sn)
        else {
            let gap = ArchiveError::Gap {
                directory: self.directory.clone(),
                after: span.begin.id.sn,
                up_to: span.end.id.sn,
            };
            return if is_empty { Ok(()) } else { Err(gap) };
        };
        let (mut end_ms, mut other) = (span.end_ms, None);
        let scanned = scan(&bytes, self.manifest.whose.group, Some(header.previous), |_, entry| {
            if entry.id.sn == span.end.id.sn && entry.point() != span.end {
                other = Some(entry.id);
            }
            if entry.id.sn > span.end.id.sn {
                end_ms = time_of(&entry).or(end_ms);
            }
            Ok::<(), Infallible>(())
        });
        let scanned =
            scanned.map_err(|damage| damaged(&file, &bytes, damage))?.unwrap_or_else(|never| match never {});
        if let Some(found) = other {
            return Err(ArchiveError::Diverged { after: span.end, found });
        }
        let (End::Sealed { offset } | End::Open { offset } | End::Torn { offset }) = scanned.end;
        let is_sealed = matches!(scanned.end, End::Sealed { .. });
        let reaches = scanned.last.id.sn >= span.end.id.sn && file.start.0 <= span.end.id.sn.0 + 1;
        if !reaches || (!file.is_open && !is_sealed) {
            let expected = format!("entries up to {}, as the manifest says", span.end.id);
            let found = format!("an end behind {}", scanned.last.id);
            return Err(ArchiveError::Damaged { file: file.path, offset, expected, found });
        }
        if file.is_open && scanned.count == 0 {
            self.disk.remove_file(&file.path).map_err(ArchiveError::io(file.path))?;
            return Ok(());
        }
        if file.is_open {
            let segment = Segment {
                file: self
                    .disk
                    .open(&file.path, OpenMode::ReadWrite)
                    .map_err(ArchiveError::io(file.path.clone()))?,
                name: block::file_name(header.epoch, file.start, true),
                path: file.path,
                start: file.start,
                position: offset,
            };
            self.end_segment(&segment, offset, scanned.last)?;
        }
        self.end = Some(scanned.last);
        self.synced = scanned.last.id.sn;
        if scanned.last != span.end {
            let span = self.manifest.spans.last_mut().expect("there is one");
            (span.end, span.end_ms) = (scanned.last, end_ms);
            self.store()?;
        }
        Ok(())
    }

    /// A backup whose image is gone is not added to.
    fn check_image(&self, span: &Span) -> Result<(), ArchiveError> {
        let Some(image) = &span.image else { return Ok(()) };
        let file = self.directory.join(IMAGES).join(image.file_name());
        match self.disk.length(&file) {
            Ok(length) if length == image.file_bytes => Ok(()),
            Ok(length) => {
                let what = format!("it has {length} bytes, and the manifest says {}", image.file_bytes);
                Err(ArchiveError::Image { file, what })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ArchiveError::Image { file, what: "it is missing".into() })
            }
            Err(error) => Err(ArchiveError::io(file)(error)),
        }
    }

    fn store(&mut self) -> Result<(), ArchiveError> {
        manifest::store(&*self.disk, &self.directory, &self.manifest, self.writes + 1)?;
        self.writes += 1;
        Ok(())
    }
}

/// A segment of a member is allocated ahead, so that a write which was cut off is followed by zeros. This one grows: where it was cut
/// off, it ends.
fn as_if_allocated(bytes: &[u8]) -> Bytes {
    let mut allocated = Vec::with_capacity(bytes.len() + record_bytes(PAYLOAD_BYTES_MAX));
    allocated.extend_from_slice(bytes);
    allocated.resize(bytes.len() + record_bytes(PAYLOAD_BYTES_MAX), 0);
    allocated.into()
}
