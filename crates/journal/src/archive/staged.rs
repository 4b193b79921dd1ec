//! An image on its way into a backup: taken in pieces, resumed where it stopped, checked when it is whole.

use super::{ArchiveError, IMAGES};
use crate::{Checkpoint, ImageReader, image::growing::GrowingImage, settings::BULK_BYTES};
use base::GroupId;
use env::{Disk, OpenMode};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const PART: &str = ".part";

pub struct StagedArchiveImage {
    disk: Arc<dyn Disk>,
    images: PathBuf,
    image: GrowingImage,
}

impl StagedArchiveImage {
    /// Goes on with what is there of this image; parts of other images are removed. `None`: it is whole, and in its place.
    pub(super) fn begin(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        checkpoint: Checkpoint,
        group: GroupId,
    ) -> Result<Option<Self>, ArchiveError> {
        let images = directory.join(IMAGES);
        let (name, part) = (checkpoint.file_name(), format!("{}{PART}", checkpoint.file_name()));
        let io = || ArchiveError::io(images.clone());
        for found in disk.list(&images).map_err(io())? {
            if found.ends_with(PART) && found != part {
                disk.remove_file(&images.join(found)).map_err(io())?;
            }
        }
        let whole = images.join(&name);
        if disk.exists(&whole).map_err(io())? {
            if verify(&**disk, &whole, &checkpoint).is_ok() {
                return Ok(None);
            }
            disk.remove_file(&whole).map_err(io())?;
        }
        let path = images.join(&part);
        let io = || ArchiveError::io(path.clone());
        let image = match disk.exists(&path).map_err(io())? {
            true => {
                let file = disk.open(&path, OpenMode::ReadWrite).map_err(io())?;
                GrowingImage::resume(file, checkpoint, group).map_err(io())?
            }
            false => GrowingImage::begin(disk.open(&path, OpenMode::CreateNew).map_err(io())?, checkpoint),
        };
        Ok(Some(Self { disk: disk.clone(), images, image }))
    }

    pub fn checkpoint(&self) -> &Checkpoint {
        self.image.checkpoint()
    }

    /// The number of bytes that are here: the offset of the next piece.
    pub fn have(&self) -> u64 {
        self.image.have()
    }

    pub fn is_complete(&self) -> bool {
        self.image.is_complete()
    }

    /// Takes the bytes that follow those that are here.
    ///
    /// # Errors
    /// [`ArchiveError::Image`] if the bytes go beyond the image's length; [`ArchiveError::NoRoom`] or
    /// [`ArchiveError::Io`] if they cannot be written or synced.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let path = self.part();
        if let Err(what) = self.image.check_length(bytes) {
            return Err(ArchiveError::Image { file: path, what });
        }
        self.image.write(bytes, 16 * BULK_BYTES as u64).map_err(ArchiveError::io(path))
    }

    /// To be called when all bytes are here. Syncs them, reads them back, compares the digest, and gives the file its
    /// name. A file with another digest is removed.
    ///
    /// # Errors
    /// [`ArchiveError::Image`] if the bytes are not those of the image that was wanted, which removes them;
    /// [`ArchiveError::NoRoom`] or [`ArchiveError::Io`] if they cannot be synced or removed, or the file cannot get its
    /// name.
    pub fn finish(mut self) -> Result<(), ArchiveError> {
        let path = self.part();
        let io = || ArchiveError::io(path.clone());
        self.image.sync().map_err(io())?;
        if let Err(what) = verify(&*self.disk, &path, self.checkpoint()) {
            self.disk.remove_file(&path).map_err(io())?;
            return Err(ArchiveError::Image { file: path, what: format!("{what}; it was thrown away") });
        }
        self.disk
            .rename(&path, &self.images.join(self.checkpoint().file_name()))
            .and_then(|()| self.disk.sync_directory(&self.images))
            .map_err(io())
    }

    fn part(&self) -> PathBuf {
        self.images.join(format!("{}{PART}", self.checkpoint().file_name()))
    }
}

fn verify(disk: &dyn Disk, path: &Path, checkpoint: &Checkpoint) -> Result<(), String> {
    let read = disk.open(path, OpenMode::Read).and_then(ImageReader::open).and_then(|reader| {
        let at = reader.header().at;
        Ok((at, reader.file_bytes(), reader.finish()?))
    });
    match read.map_err(|error| error.to_string())? {
        found if found == (checkpoint.at, checkpoint.file_bytes, checkpoint.sha256) => Ok(()),
        _ => Err("it is another image than was wanted".into()),
    }
}
