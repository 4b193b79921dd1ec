//! An image on its way from another member: taken in chunks, resumable, checked at the end.
//!
//! ```text
//! staging/wanted    the checkpoint (65 bytes), crc32c of it (4)
//! staging/image     as much of the image's file as is here
//! ```
//!
//! A download that was cut off goes on behind the last chunk of the image whose checksum is right; nothing is noted
//! about progress. Whether the image can be used is decided when it is whole, by its sha256.

use crate::{
    Checkpoint, Journal, NextStart, StagingError, flow::Shared, image::growing::GrowingImage,
    settings::BULK_BYTES, store::IMAGES,
};
use base::GroupId;
use env::{Disk, OpenMode};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

pub(crate) const STAGING: &str = "staging";
const WANTED: &str = "wanted";
const IMAGE: &str = "image";

/// An image being downloaded into the store's staging directory. There is one at a time.
pub struct Staged {
    place: Claimed,
    image: GrowingImage,
}

/// The right to use the staging directory.
struct Claimed(Arc<Shared>);

impl Drop for Claimed {
    fn drop(&mut self) {
        self.0.is_staging.store(false, Ordering::Release);
    }
}

impl Staged {
    pub fn checkpoint(&self) -> &Checkpoint {
        self.image.checkpoint()
    }

    /// The number of bytes that are here and need not be asked for again: the offset of the next chunk.
    pub fn have(&self) -> u64 {
        self.image.have()
    }

    pub fn is_complete(&self) -> bool {
        self.image.is_complete()
    }

    /// Takes the bytes that follow those that are here. Blocks.
    ///
    /// # Errors
    /// [`StagingError::Offset`] if `offset` is not where the bytes here end, [`StagingError::Verify`] if the bytes go
    /// beyond the image's length, [`StagingError::Io`] if they cannot be written or synced.
    pub fn write_chunk(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StagingError> {
        if offset != self.have() {
            return Err(StagingError::Offset { expected: self.have(), found: offset });
        }
        if let Err(what) = self.image.check_length(bytes) {
            return Err(StagingError::Verify { file: self.path(), what });
        }
        let result = self.image.write(bytes, BULK_BYTES as u64);
        result.map_err(|source| StagingError::Io { file: self.path(), source })
    }

    /// To be called when all bytes are here. Syncs them, reads them back and checks the digest. An image with another
    /// digest is thrown away. Blocks.
    ///
    /// # Errors
    /// [`StagingError::Offset`] if bytes are missing, [`StagingError::Verify`] if they are not those of the image that
    /// was wanted, [`StagingError::Io`] if they cannot be synced.
    pub fn finish(mut self) -> Result<StagedImage, StagingError> {
        let checkpoint = *self.checkpoint();
        if !self.is_complete() {
            return Err(StagingError::Offset { expected: checkpoint.file_bytes, found: self.have() });
        }
        let (disk, path) = (&*self.place.0.env.disk, self.path());
        let directory = self.place.0.directory.join(STAGING);
        self.image
            .sync()
            .and_then(|()| disk.open(&directory.join(WANTED), OpenMode::ReadWrite)?.sync_data())
            .and_then(|()| disk.sync_directory(&directory))
            .map_err(|source| StagingError::Io { file: path.clone(), source })?;
        let verified = self.place.0.verify(&path, &checkpoint);
        if let Err(error) = verified {
            let _ = disk.remove_file(&directory.join(WANTED));
            return Err(StagingError::Verify { file: path, what: error.to_string() });
        }
        Ok(StagedImage { place: self.place, checkpoint })
    }

    fn path(&self) -> PathBuf {
        self.place.0.directory.join(STAGING).join(IMAGE)
    }
}

/// A staged image that is whole, checked and durable.
pub struct StagedImage {
    place: Claimed,
    checkpoint: Checkpoint,
}

impl StagedImage {
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

impl Journal {
    /// Begins to stage the image of this checkpoint, or goes on where an earlier download of the same one has
    /// stopped. Any other staged image is thrown away. Fails while another one is being staged.
    ///
    /// # Errors
    /// [`StagingError::Io`] if another image is being staged (its kind is `WouldBlock`), or the directory cannot be
    /// read or written.
    pub fn stage(&self, checkpoint: Checkpoint) -> Result<Staged, StagingError> {
        let shared = self.shared();
        let directory = shared.directory.join(STAGING);
        let io = |source| StagingError::Io { file: directory.clone(), source };
        if shared.is_staging.swap(true, Ordering::AcqRel) {
            return Err(io(io::Error::new(io::ErrorKind::WouldBlock, "another image is being staged")));
        }
        let place = Claimed(shared.clone());
        let image = resume(&*shared.env.disk, &directory, checkpoint, shared.group).map_err(io)?;
        Ok(Staged { place, image })
    }

    /// Puts a staged image among this store's images; to be followed by [`Journal::checkpoint_committed`].
    ///
    /// # Errors
    /// [`StagingError::Io`] if the file cannot be moved, or the directories not be synced.
    ///
    /// # Panics
    /// Another store has staged the image.
    pub fn keep_image(&self, image: StagedImage) -> Result<(), StagingError> {
        let shared = self.shared();
        assert!(Arc::ptr_eq(shared, &image.place.0), "an image is kept by the store that staged it");
        let log_bytes = shared.inner.lock().log_bytes;
        shared.keeping.lock().begin(image.checkpoint.at, log_bytes);
        move_to_images(&*shared.env.disk, &shared.directory, &image.checkpoint)
            .map_err(|source| StagingError::Io { file: shared.directory.join(STAGING), source })?;
        shared.keeping.lock().know(&image.checkpoint);
        Ok(())
    }

    /// Puts a staged image in the place of the store's own of the same checkpoint, which has rotted.
    ///
    /// # Errors
    /// [`StagingError::Io`] if the file cannot be moved, or the directories not be synced.
    ///
    /// # Panics
    /// Another store has staged the image.
    pub fn replace_image(&self, image: StagedImage) -> Result<(), StagingError> {
        let shared = self.shared();
        assert!(Arc::ptr_eq(shared, &image.place.0), "an image is kept by the store that staged it");
        move_to_images(&*shared.env.disk, &shared.directory, &image.checkpoint)
            .map_err(|source| StagingError::Io { file: shared.directory.join(STAGING), source })?;
        shared.keeping.lock().know(&image.checkpoint);
        Ok(())
    }

    /// The last act of a journal: it takes nothing more, and the next start replaces the log and all images by
    /// this one. Only for a member that is not in sync. Blocks.
    ///
    /// Where the log goes further than the image, it is another history: the generation rises, so that no member
    /// counts on the entries that the log held.
    ///
    /// # Errors
    /// [`StagingError::Outdated`] if the log has committed up to the image or beyond. [`StagingError::State`] if the
    /// journal had failed before, or fails now because the member's state cannot be written.
    ///
    /// # Panics
    /// Another store has staged the image.
    pub fn install(&self, image: StagedImage) -> Result<(), StagingError> {
        let shared = self.shared();
        assert!(Arc::ptr_eq(shared, &image.place.0), "an image is installed by the store that staged it");
        let at = image.checkpoint.at;
        let (committed, end) = {
            let inner = shared.inner.lock();
            (inner.known_commit, inner.end)
        };
        if at.id.sn <= committed {
            return Err(StagingError::Outdated { at: at.id.sn, committed });
        }
        let reason = format!("an image of {at} replaces its log, which ends with {end}");
        self.end_with(&reason, |state| {
            if at.id.sn <= end.id.sn {
                state.generation += 1;
            }
            state.next_start = NextStart::Install;
        })?;
        Ok(())
    }
}

/// Opens the staged image, cut to what can be believed of it.
fn resume(
    disk: &dyn Disk,
    directory: &Path,
    checkpoint: Checkpoint,
    group: GroupId,
) -> io::Result<GrowingImage> {
    disk.create_directory(directory)?;
    if let Some(parent) = directory.parent() {
        disk.sync_directory(parent)?;
    }
    let (wanted, image) = (directory.join(WANTED), directory.join(IMAGE));
    let staged = read_wanted(disk, directory).ok().flatten();
    if staged == Some(checkpoint) && disk.exists(&image)? {
        return GrowingImage::resume(disk.open(&image, OpenMode::ReadWrite)?, checkpoint, group);
    }
    let mut bytes = checkpoint.encode().to_vec();
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    disk.open(&wanted, OpenMode::CreateOrTruncate)?.write_at(&bytes, 0)?;
    Ok(GrowingImage::begin(disk.open(&image, OpenMode::CreateOrTruncate)?, checkpoint))
}

/// The checkpoint of the image that is being staged, or was. `None` if there is no whole one. A file that cannot be
/// read is an error, whatever the reason: without the checkpoint, the store would be emptied.
///
/// # Errors
/// `Unsupported` if a later release wrote the checkpoint; or the file cannot be read.
pub(crate) fn read_wanted(disk: &dyn Disk, directory: &Path) -> io::Result<Option<Checkpoint>> {
    let file = match disk.open(&directory.join(WANTED), OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = [0; Checkpoint::ENCODED_BYTES + 4];
    if file.read_at(&mut bytes, 0)? < bytes.len() {
        return Ok(None);
    }
    let (checkpoint, crc) = bytes.split_at(Checkpoint::ENCODED_BYTES);
    if crc32c::crc32c(checkpoint).to_le_bytes() != crc {
        return Ok(None);
    }
    let what = "the checkpoint of the staged image has a version that this program does not know";
    let unknown = || io::Error::new(io::ErrorKind::Unsupported, what);
    Checkpoint::decode(checkpoint).ok_or_else(unknown).map(Some)
}

/// Gives the staged image its final name, durably. Done once, it may be done again.
pub(crate) fn move_to_images(disk: &dyn Disk, store: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let (staging, images) = (store.join(STAGING), store.join(IMAGES));
    let staged = staging.join(IMAGE);
    if disk.exists(&staged)? {
        disk.rename(&staged, &images.join(checkpoint.file_name()))?;
    }
    disk.sync_directory(&images)?;
    disk.sync_directory(&staging)
}

/// Whether the image of this checkpoint is staged, or was moved to its place already; its content was checked
/// when it was staged, and is again when it is read.
pub(crate) fn is_ready(disk: &dyn Disk, store: &Path, checkpoint: &Checkpoint) -> io::Result<bool> {
    for path in [store.join(STAGING).join(IMAGE), store.join(IMAGES).join(checkpoint.file_name())] {
        if disk.exists(&path)? && disk.length(&path)? == checkpoint.file_bytes {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the staged image, which is of no use any more.
pub(crate) fn clear(disk: &dyn Disk, store: &Path) {
    for name in [WANTED, IMAGE] {
        // A file that stays is overwritten by the next image.
        let _ = disk.remove_file(&store.join(STAGING).join(name));
    }
}
