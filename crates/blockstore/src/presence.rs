//! Whether a volume is still there, for those who miss a file on it.
//!
//! The place of a disk that was taken away answers for every file that there is none. So a missing file says something only
//! if the volume is there, before it was missed and after.

use crate::{
    error::OpenError,
    store::BlockStore,
    version_file::Version,
    volume::{Volume, VolumeIndex, is_broken},
};
use env::disk::LockFile;

/// What a look at a volume has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    There,
    /// The volume cannot be used any more; the text says why.
    Lost(String),
    /// Nothing can be said now: what is missing may be there.
    Unknown(String),
}

impl BlockStore {
    /// Whether a file that is missing on this volume is gone. A volume that turns out to be lost is ended as failed.
    pub(crate) fn is_there(&self, index: VolumeIndex) -> bool {
        let volume = self.volume(index);
        match self.presence(volume) {
            Presence::There => volume.is_alive() && !self.is_closed(),
            Presence::Lost(why) => {
                // It may have been closed while this looked.
                if !self.is_closed() {
                    self.fail_volume(index, &why);
                }
                false
            }
            Presence::Unknown(why) => {
                if !self.is_closed() {
                    tracing::warn!(directory = %volume.paths.root.display(), why, "whether a volume is there cannot be seen");
                }
                false
            }
        }
    }

    fn presence(&self, volume: &Volume) -> Presence {
        if self.is_closed() {
            return Presence::Unknown("the store is closed".into());
        }
        match volume.look_at_lock() {
            // Without its lock's file the directory may still be there: people remove such files.
            Ok(Some(LockFile::Held | LockFile::Missing)) => {}
            Ok(Some(LockFile::Another)) => {
                return Presence::Lost(format!(
                    "{} is not the file that this process has locked: another disk is mounted there, or another process uses it",
                    volume.paths.lock().display()
                ));
            }
            Ok(None) => return Presence::Unknown("the store is closed".into()),
            Err(error) if is_broken(&error) => {
                return Presence::Lost(format!("{}: {error}", volume.paths.lock().display()));
            }
            Err(error) => return Presence::Unknown(format!("{}: {error}", volume.paths.lock().display())),
        }
        let path = volume.paths.version();
        match Version::read_medium(self.disk(), &path) {
            Ok(Some(version)) => match version.get("storageID") {
                Some(found) if *found == *volume.storage_id => Presence::There,
                Some(found) => Presence::Lost(format!(
                    "{}: storageID is {found}, and was {}: another disk is mounted there",
                    path.display(),
                    volume.storage_id
                )),
                None => Presence::Unknown(format!("{} has no storageID", path.display())),
            },
            Ok(None) => {
                Presence::Lost(format!("{} is not there any more: was its disk unmounted?", path.display()))
            }
            Err(OpenError::Io { error, .. }) if is_broken(&error) => {
                Presence::Lost(format!("{}: {error}", path.display()))
            }
            Err(error) => Presence::Unknown(error.to_string()),
        }
    }
}
