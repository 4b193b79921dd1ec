//! Reading past the system's cache.
//!
//! After a failed sync Linux keeps the pages that could not be written, and calls them clean: an ordinary read shows them
//! although the medium does not have them. A read with O_DIRECT comes from the medium; what is still to be written is
//! written out first. POSIX_FADV_DONTNEED would only ask the system to drop pages, and it keeps those that are in use
//! elsewhere. So that is for file systems without O_DIRECT only. (tmpfs is one of them on older kernels; there is no
//! medium under it.)

use crate::disk::{File, WriteDone};
use bytes::Bytes;
use std::{
    fs, io,
    os::{
        fd::AsFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::Path,
    sync::Arc,
};

/// Every disk is content with buffers, offsets and lengths that are multiples of it.
const ALIGNMENT: usize = 4096;
/// Read at once.
const PIECE_BYTES: usize = 1 << 20;

pub struct MediumFile {
    /// Reads through the cache.
    file: fs::File,
    /// Reads past it, where the file system can.
    direct: Option<fs::File>,
}

impl MediumFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let direct = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(direct) => Some(direct),
            Err(error) if is_unsupported(&error) => None,
            Err(error) => return Err(error),
        };
        if direct.is_none() {
            forget_pages(&file)?;
        }
        Ok(Self { file, direct })
    }
}

/// The file system has no O_DIRECT, or wants another alignment.
pub fn is_unsupported(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::OPNOTSUPP].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn forget_pages(file: &fs::File) -> io::Result<()> {
    // Only clean pages are dropped. An error of this sync is no news: a failed sync is why the caller reads from the
    // medium.
    let _ = file.sync_data();
    Ok(rustix::fs::fadvise(file.as_fd(), 0, None, rustix::fs::Advice::DontNeed)?)
}

impl Drop for MediumFile {
    /// What was read through the cache pushes nothing else out of it.
    fn drop(&mut self) {
        if self.direct.is_none() {
            let _ = rustix::fs::fadvise(self.file.as_fd(), 0, None, rustix::fs::Advice::DontNeed);
        }
    }
}

impl File for MediumFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(direct) = &self.direct else { return read_full(&self.file, buffer, offset, 1) };
        match read_direct(direct, buffer, offset) {
            Err(error) if is_unsupported(&error) => {
                forget_pages(&self.file)?;
                read_full(&self.file, buffer, offset, 1)
            }
            read => read,
        }
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn submit_write_sync(self: Arc<Self>, _bytes: Bytes, _offset: u64, done: WriteDone) {
        done(Err(io::ErrorKind::PermissionDenied.into()));
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn allocate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Reads through an aligned buffer, as direct input requires.
fn read_direct(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut memory = vec![0; PIECE_BYTES + ALIGNMENT];
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let aligned = &mut memory[skip..skip + PIECE_BYTES];
    let mut filled = 0;
    while filled < buffer.len() {
        let at = offset + filled as u64;
        let begin = at - at % ALIGNMENT as u64;
        let before = (at - begin) as usize;
        let wanted = (before + buffer.len() - filled).next_multiple_of(ALIGNMENT).min(aligned.len());
        let read = read_full(file, &mut aligned[..wanted], begin, ALIGNMENT)?;
        let got = read.saturating_sub(before).min(buffer.len() - filled);
        buffer[filled..filled + got].copy_from_slice(&aligned[before..before + got]);
        filled += got;
        if read < wanted {
            break; // The end of the file.
        }
    }
    Ok(filled)
}

/// Fewer bytes only at the end of the file, where a read may end between two multiples of `unit`.
fn read_full(file: &fs::File, buffer: &mut [u8], offset: u64, unit: usize) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if !filled.is_multiple_of(unit) {
            break;
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, LocalDisk, OpenMode};

    #[test]
    fn what_was_synced_is_read_from_the_medium_at_any_offset() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let path = directory.path().join("file");
        let disk = LocalDisk::new();
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES as u32 + 777).map(|n| (n % 251) as u8).collect();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
        let medium = disk.open(&path, OpenMode::ReadMedium).unwrap();
        assert_eq!(medium.length().unwrap(), bytes.len() as u64);
        for (offset, length) in [(0, bytes.len()), (1, 5), (4095, 4098), (PIECE_BYTES - 3, 2 * PIECE_BYTES)] {
            let mut found = vec![0; length];
            assert_eq!(medium.read_at(&mut found, offset as u64).unwrap(), length);
            assert!(found == bytes[offset..offset + length], "{length} bytes at {offset}");
        }
        let mut beyond = vec![0; 100];
        assert_eq!(medium.read_at(&mut beyond, bytes.len() as u64 - 10).unwrap(), 10);
        assert_eq!(medium.read_at(&mut beyond, bytes.len() as u64 + 10).unwrap(), 0);
        assert!(medium.write_at(b"x", 0).is_err() && medium.set_length(0).is_err());
    }
}
