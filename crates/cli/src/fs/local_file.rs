//! A file of this machine that gets its name when it is whole.

use super::failure::{Failure, Outcome};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The ending of a file's name until it is whole, as in Hadoop's shell.
pub const UNFINISHED: &str = "._COPYING_";

/// Files that are to go when the command is interrupted.
static UNFINISHED_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A local file that is being written. Dropped before [`finish`](Self::finish), it goes again.
pub struct LocalFile {
    /// The file that the bytes are written to at present.
    written: PathBuf,
    target: PathBuf,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Temporary,
    /// The bytes are written under the final name from the start.
    Final,
    /// A device, a pipe: nothing to rename, nothing to remove.
    Special,
}

impl LocalFile {
    pub fn create(target: &Path, is_direct: bool) -> Outcome<(Self, File)> {
        let place = match target.metadata() {
            Ok(metadata) if !metadata.is_file() => Place::Special,
            _ if is_direct => Place::Final,
            _ => Place::Temporary,
        };
        let written = match place {
            Place::Final | Place::Special => target.to_owned(),
            Place::Temporary => {
                let mut name = target.as_os_str().to_owned();
                name.push(UNFINISHED);
                PathBuf::from(name)
            }
        };
        let opened = match place {
            Place::Special => File::options().write(true).open(&written),
            Place::Temporary | Place::Final => File::create(&written),
        };
        let file = opened.map_err(|error| Failure::local(&written, error))?;
        if place != Place::Special {
            lock().push(written.clone());
        }
        Ok((Self { written, target: target.to_owned(), place }, file))
    }

    /// The path under which messages name this file.
    pub fn path(&self) -> &Path {
        &self.written
    }

    /// All is written: the file gets its name.
    pub fn finish(self) -> Outcome {
        if self.place == Place::Temporary {
            std::fs::rename(&self.written, &self.target)
                .map_err(|error| Failure::local(&self.target, error))?;
        }
        lock().retain(|path| *path != self.written);
        Ok(())
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        let mut unfinished = lock();
        let Some(at) = unfinished.iter().position(|path| *path == self.written) else { return };
        unfinished.swap_remove(at);
        if self.place == Place::Temporary {
            let _ = std::fs::remove_file(&self.written);
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes what an interrupted command leaves behind.
pub fn clean_up() {
    for path in std::mem::take(&mut *lock()) {
        let _ = std::fs::remove_file(path);
    }
}
