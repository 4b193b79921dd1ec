//! Images and what they make superfluous.

use crate::{
    Checkpoint, ImageError, ImageReader, ImageWriter, StateError, block, flow::Shared, image::ImageHeader,
    store::IMAGES,
};
use base::{LogPoint, Sn};
use env::{File, OpenMode, pulse};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How much log there was when images were begun.
pub(crate) struct Keeping {
    begun: Vec<(LogPoint, u64)>,
    at_checkpoint: u64,
    /// Entries from here on stay although no checkpoint needs them.
    keep_from: Sn,
    /// The digests of image files, as far as this life knows them. Two members may make images of one entry: the files have the same
    /// name, and not the same bytes.
    digests: BTreeMap<Sn, [u8; 32]>,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { begun: Vec::new(), at_checkpoint: 0, keep_from: Sn(u64::MAX), digests: BTreeMap::new() }
    }
}

impl Keeping {
    /// Bytes of log taken when the newest usable image was begun.
    pub fn log_bytes_at_checkpoint(&self) -> u64 {
        self.at_checkpoint
    }

    pub fn begin(&mut self, at: LogPoint, log_bytes: u64) {
        self.begun.push((at, log_bytes));
    }

    fn commit(&mut self, at: LogPoint) {
        if let Some((_, log_bytes)) = self.begun.iter().find(|(begun, _)| *begun == at) {
            self.at_checkpoint = self.at_checkpoint.max(*log_bytes);
        }
        self.begun.retain(|(begun, _)| begun.id.sn > at.id.sn);
        self.digests.retain(|sn, _| *sn >= at.id.sn);
    }

    /// The file of the image of this entry has this digest.
    pub fn know(&mut self, checkpoint: &Checkpoint) {
        self.digests.insert(checkpoint.at.id.sn, checkpoint.sha256);
    }
}

impl Shared {
    pub(crate) fn write_image(
        &self,
        at: LogPoint,
        log_bytes: u64,
        write: impl FnOnce(&mut ImageWriter) -> io::Result<()>,
    ) -> Result<Checkpoint, ImageError> {
        let disk = &*self.env.disk;
        let images = self.directory.join(IMAGES);
        let name = Checkpoint { at, file_bytes: 0, sha256: [0; 32] }.file_name();
        let (path, temporary) = (images.join(&name), images.join(format!("{name}.tmp")));
        self.keeping.lock().begin(at, log_bytes);
        let header = ImageHeader { group: self.group, at, store_uuid: self.store_uuid };
        let written = (|| {
            let mut writer = ImageWriter::new(disk.open(&temporary, OpenMode::CreateOrTruncate)?, &header)?;
            write(&mut writer)?;
            writer.finish()
        })();
        let checkpoint = written.map_err(|source| {
            // It may be large and is worth nothing; a file that stays goes at the next start.
            let _ = disk.remove_file(&temporary);
            ImageError::Io { file: temporary.clone(), source }
        })?;
        self.verify(&temporary, &checkpoint)?;
        disk.rename(&temporary, &path)
            .and_then(|()| disk.sync_directory(&images))
            .map_err(|source| ImageError::Io { file: path, source })?;
        self.keeping.lock().know(&checkpoint);
        Ok(checkpoint)
    }

    /// Reads the written file back before it is relied upon.
    ///
    /// # Errors
    /// [`ImageError::Verify`] if the file cannot be read, is damaged, or has another digest.
    pub(crate) fn verify(&self, path: &Path, checkpoint: &Checkpoint) -> Result<(), ImageError> {
        let fail = |what: String| ImageError::Verify { file: path.to_owned(), what };
        let digest = self
            .env
            .disk
            .open(path, OpenMode::Read)
            .and_then(ImageReader::open)
            .and_then(ImageReader::finish)
            .map_err(|error| fail(error.to_string()))?;
        if digest != checkpoint.sha256 {
            return Err(fail("another sha256".into()));
        }
        Ok(())
    }

    pub(crate) fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn File>> {
        let path = self.directory.join(IMAGES).join(checkpoint.file_name());
        let file = self.env.disk.open(&path, OpenMode::Read)?;
        let found = file.length()?;
        if found != checkpoint.file_bytes {
            let what = format!("{} has {found} bytes, not {}", path.display(), checkpoint.file_bytes);
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let known = self.keeping.lock().digests.get(&checkpoint.at.id.sn).copied();
        if known.is_some_and(|digest| digest != checkpoint.sha256) {
            let what = format!("{} is another image of the same entry", path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        Ok(file)
    }

    /// Reads the file of an image of which this life does not know the digest: an earlier life has left it.
    fn look_at_left_image(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        let file = self.open_image(checkpoint)?;
        if self.keeping.lock().digests.contains_key(&checkpoint.at.id.sn) {
            return Ok(());
        }
        let sha256 = match ImageReader::open(file).and_then(ImageReader::finish) {
            Err(error) if env::disk::is_want(&error) => return Err(error),
            // Bytes that cannot be read are not those of any checkpoint.
            read => read.unwrap_or_default(),
        };
        self.keeping.lock().know(&Checkpoint { sha256, ..*checkpoint });
        self.open_image(checkpoint).map(drop)
    }

    pub(crate) fn checkpoint_committed(&self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        let path = self.directory.join(IMAGES).join(checkpoint.file_name());
        self.look_at_left_image(checkpoint).map_err(|source| StateError::Io { file: path, source })?;
        let mut oldest = None;
        let _proof = self.change_state(|state| {
            state.add_checkpoint(*checkpoint);
            oldest = (state.checkpoints.len() > 1).then(|| state.checkpoints[0].at.id.sn);
        })?;
        self.keeping.lock().commit(checkpoint.at);
        match oldest {
            Some(oldest) => self.purge(oldest),
            None => Ok(()),
        }
    }

    pub(crate) fn keep_from(&self, from: Sn) -> Result<(), StateError> {
        self.keeping.lock().keep_from = from;
        let oldest = {
            let checkpoints = &pulse::lock(&self.file).state.checkpoints;
            (checkpoints.len() > 1).then(|| checkpoints[0].at.id.sn)
        };
        let second = self.index.lock().places().get(1).map(|place| place.start);
        match (oldest, second) {
            (Some(oldest), Some(second)) if second <= from && second.0 <= oldest.0 + 1 => self.purge(oldest),
            _ => Ok(()),
        }
    }

    /// Removes segments and images that lie wholly behind the second-last committed checkpoint, but no segment whose
    /// entries are wanted longer.
    fn purge(&self, oldest: Sn) -> Result<(), StateError> {
        // A second thread that purges at the same time waits here, and then finds nothing left to remove.
        let _one_at_a_time = pulse::lock(&self.purge);
        let keep_from = self.keeping.lock().keep_from;
        let disk = &*self.env.disk;
        let log = self.log_directory();
        let io = |file: PathBuf| move |source| StateError::Io { file, source };
        let mut segments: Vec<_> = disk
            .list(&log)
            .map_err(io(log.clone()))?
            .into_iter()
            .filter_map(|name| block::parse_file_name(&name).map(|(_, start, _)| (start, name)))
            .collect();
        segments.sort();
        for pair in segments.windows(2) {
            let next_start = pair[1].0;
            if next_start.0 <= oldest.0 + 1 && next_start <= keep_from {
                let path = log.join(&pair[0].1);
                self.index.lock().forget(pair[0].0);
                disk.remove_file(&path).map_err(io(path.clone()))?;
            }
        }
        let images = self.directory.join(IMAGES);
        let keep: Vec<String> =
            pulse::lock(&self.file).state.checkpoints.iter().map(Checkpoint::file_name).collect();
        for name in disk.list(&images).map_err(io(images.clone()))? {
            // An image that is newer than the last checkpoint may become a checkpoint yet.
            if name.ends_with(".image")
                && keep.iter().all(|kept| *kept != name)
                && keep.iter().any(|kept| name < *kept)
            {
                let path = images.join(name);
                disk.remove_file(&path).map_err(io(path.clone()))?;
            }
        }
        disk.sync_directory(&log).map_err(io(log))?;
        disk.sync_directory(&images).map_err(io(images))
    }
}
