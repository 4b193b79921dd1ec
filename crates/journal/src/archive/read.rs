//! Reading a backup: everything is checked again by checksum and chain before it is given on.

use super::{ArchiveError, File, IMAGES, Manifest, Span, manifest, segments};
use crate::{
    ImageReader, Settings,
    scan::{Damage, End, scan, unknown_version},
};
use base::{Entry, LogPoint};
use bytes::Bytes;
use env::{Disk, OpenMode};
use std::{
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A backup as its manifest told of it when it was opened.
pub struct Backup {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    manifest: Manifest,
    finding: Option<String>,
}

/// How much of one span was read and found sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub image_bytes: u64,
    pub entries: u64,
    pub log_bytes: u64,
    pub files: u64,
}

impl Backup {
    /// # Errors
    /// [`ArchiveError::NoBackup`] if the directory holds no manifest, [`ArchiveError::Manifest`] if both copies of it
    /// are damaged, [`ArchiveError::Version`] or [`ArchiveError::Level`] if a later release wrote one,
    /// [`ArchiveError::Io`] if one cannot be read.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path) -> Result<Self, ArchiveError> {
        let loaded = manifest::load(&*disk, directory)?;
        let (manifest, _, finding) =
            loaded.ok_or_else(|| ArchiveError::NoBackup { directory: directory.to_owned() })?;
        Ok(Self { disk, directory: directory.to_owned(), manifest, finding })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A sentence about the copy of the manifest that is damaged, where one is. The other copy was used.
    pub fn finding(&self) -> Option<&str> {
        self.finding.as_deref()
    }

    /// Gives the image that a span begins with to `read`; `None` where it begins with the first entry. An error from `read` counts as
    /// a damaged image.
    ///
    /// # Errors
    /// [`ArchiveError::Image`] if the file cannot be read, is damaged or is another image than the manifest names, or
    /// `read` failed; [`ArchiveError::Version`] if a later release wrote it.
    pub fn read_image<T>(
        &self,
        span: &Span,
        read: impl FnOnce(&mut ImageReader) -> io::Result<T>,
    ) -> Result<Option<T>, ArchiveError> {
        let Some(checkpoint) = &span.image else { return Ok(None) };
        let file = self.directory.join(IMAGES).join(checkpoint.file_name());
        let value = (|| {
            let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
            let mut reader = ImageReader::open(self.disk.open(&file, OpenMode::Read)?)?;
            let header = *reader.header();
            if header.at != checkpoint.at || header.group != self.manifest.whose.group {
                return Err(invalid("it is another image than the manifest names"));
            }
            if reader.file_bytes() != checkpoint.file_bytes {
                return Err(invalid("its length is not the one in the manifest"));
            }
            let value = read(&mut reader)?;
            if reader.finish()? != checkpoint.sha256 {
                return Err(invalid("its sha256 is not the one in the manifest"));
            }
            Ok(value)
        })();
        value.map(Some).map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::Unsupported => {
                ArchiveError::Version { file, found: error.to_string(), known: "another one".into() }
            }
            // The system could not read it: that says nothing about what stands in it.
            kind if kind != io::ErrorKind::NotFound && error.raw_os_error().is_some() => {
                ArchiveError::Io { file, source: error }
            }
            _ => ArchiveError::Image { file, what: error.to_string() },
        })
    }

    /// Gives the entries of a span to `visit`, in order, until it breaks off or the span ends. Holds one file in memory at a time.
    ///
    /// # Errors
    /// [`ArchiveError::Gap`] if a file of the span is missing, [`ArchiveError::Damaged`] if one is damaged,
    /// [`ArchiveError::Version`] if a later release wrote it, [`ArchiveError::Io`] if it cannot be read,
    /// [`ArchiveError::Diverged`] if the last entry is not the one that the manifest names.
    pub fn walk<B>(
        &self,
        span: &Span,
        mut visit: impl FnMut(Entry) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, ArchiveError> {
        let mut counted = Checked::default();
        self.walk_counting(span, &mut counted, &mut visit)
    }

    /// Reads a span to its end.
    ///
    /// # Errors
    /// Those of [`Backup::read_image`] and [`Backup::walk`].
    pub fn check(&self, span: &Span) -> Result<Checked, ArchiveError> {
        let mut checked = Checked::default();
        // `read_image` reads to the end, so that nothing is left to do here.
        self.read_image(span, |_| Ok(()))?;
        checked.image_bytes = span.image.map_or(0, |image| image.file_bytes);
        let _ = self.walk_counting(span, &mut checked, &mut |_| ControlFlow::<()>::Continue(()))?;
        Ok(checked)
    }

    fn walk_counting<B>(
        &self,
        span: &Span,
        counted: &mut Checked,
        visit: &mut impl FnMut(Entry) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, ArchiveError> {
        let log = self.directory.join(super::LOG);
        let files = segments(&*self.disk, &self.directory).map_err(ArchiveError::io(log))?;
        let mut at = span.begin;
        while at.id.sn < span.end.id.sn {
            let next = files.iter().find(|file| file.start.0 == at.id.sn.0 + 1);
            let Some(file) = next else {
                let up_to = files.iter().map(|file| file.start).find(|start| *start > at.id.sn);
                let up_to = up_to.map_or(span.end.id.sn, |start| base::Sn(start.0 - 1)).min(span.end.id.sn);
                return Err(ArchiveError::Gap { directory: self.directory.clone(), after: at.id.sn, up_to });
            };
            let bytes = read_whole(&*self.disk, file)?;
            counted.files += 1;
            counted.log_bytes += bytes.len() as u64;
            let stop = self.scan_file(file, &bytes, span, &mut at, &mut |entry| {
                counted.entries += 1;
                visit(entry)
            })?;
            if let ControlFlow::Break(stop) = stop {
                return Ok(ControlFlow::Break(stop));
            }
        }
        if at != span.end {
            return Err(ArchiveError::Diverged { after: at, found: span.end.id });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries of one file that belong to the span.
    fn scan_file<B>(
        &self,
        file: &File,
        bytes: &Bytes,
        span: &Span,
        at: &mut LogPoint,
        visit: &mut impl FnMut(Entry) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, ArchiveError> {
        let begin = *at;
        let scanned = scan(bytes, self.manifest.whose.group, Some(begin), |_, entry| {
            if entry.id.sn > span.end.id.sn {
                // Written since the manifest was read.
                return Err(None);
            }
            *at = entry.point();
            match visit(entry) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(stop) => Err(Some(stop)),
            }
        });
        let scanned = match scanned.map_err(|damage| damaged(file, bytes, damage))? {
            Ok(scanned) => scanned,
            Err(Some(stop)) => return Ok(ControlFlow::Break(stop)),
            Err(None) => return Ok(ControlFlow::Continue(())),
        };
        let (End::Sealed { offset } | End::Open { offset } | End::Torn { offset }) = scanned.end;
        let is_whole = matches!(scanned.end, End::Sealed { .. }) || at.id.sn >= span.end.id.sn;
        let expected = match (is_whole, file.is_open) {
            (true, _) if at.id.sn > begin.id.sn => return Ok(ControlFlow::Continue(())),
            (false, true) => format!("entries up to {}", span.end.id),
            _ => "its footer behind at least one entry".to_owned(),
        };
        let found = format!("an end behind entry {}", at.id);
        Err(ArchiveError::Damaged { file: file.path.clone(), offset, expected, found })
    }
}

pub(super) fn damaged(file: &File, bytes: &[u8], damage: Damage) -> ArchiveError {
    match unknown_version(bytes, damage.offset) {
        Some(found) => ArchiveError::Version { file: file.path.clone(), found, known: "another one".into() },
        None => ArchiveError::Damaged {
            file: file.path.clone(),
            offset: damage.offset,
            expected: damage.expected,
            found: damage.found,
        },
    }
}

pub(super) fn read_whole(disk: &dyn Disk, file: &File) -> Result<Bytes, ArchiveError> {
    let io = || ArchiveError::io(file.path.clone());
    let open = disk.open(&file.path, OpenMode::Read).map_err(io())?;
    let length = open.length().map_err(io())?;
    if length > Settings::SEGMENT_FILE_BYTES_MAX {
        return Err(ArchiveError::Damaged {
            file: file.path.clone(),
            offset: Settings::SEGMENT_FILE_BYTES_MAX,
            expected: "the end of the file".into(),
            found: format!("{length} bytes"),
        });
    }
    let mut bytes = vec![0; length as usize];
    env::disk::read_exact_at(&*open, &mut bytes, 0).map_err(io())?;
    Ok(bytes.into())
}
