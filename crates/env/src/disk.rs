//! A disk as a value: the operations that a store may ask for, and what each of them promises.
//!
//! Rare operations block. The one that is not rare, a write that must be durable before anything else is
//! said, is submitted and completes later: production runs it on its own threads, a simulation completes it
//! when its schedule says so.
//!
//! A store may rely on this: after `sync_data` or a completed [`File::submit_write_sync`] the bytes survive a
//! loss of power; a new, renamed or removed name survives it after `sync_directory` of its parent. Nothing
//! else survives, and what was not synced may be there in part.

use crate::pulse::Pulse;
use base::Timestamp;
use bytes::Bytes;
use std::{io, path::Path, sync::Arc};

/// Called once, on any thread, when a submitted write is durable or has failed.
pub type WriteDone = Box<dyn FnOnce(io::Result<()>) + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    Read,
    /// Reads the bytes that the medium holds, past the copy that the system keeps of the file in memory: after a
    /// failed sync that may be what was never written, and will not be.
    ReadMedium,
    ReadWrite,
    /// Fails when the file exists.
    CreateNew,
    /// Creates the file or empties it.
    CreateOrTruncate,
}

pub trait Disk: Send + Sync {
    /// # Errors
    /// `NotFound` if there is no file at `path` and the mode does not create one; `AlreadyExists` for
    /// [`OpenMode::CreateNew`] if there is one. Other errors are those of the system: no permission, no descriptor
    /// left, a broken disk.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Creates a directory and those above it.
    ///
    /// # Errors
    /// A file stands where a directory is wanted, or the system cannot create a directory (no room, no permission).
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted, without `.` and `..`.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory; `NotADirectory` if `path` is a file; or the system cannot read the
    /// directory.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Replaces `to` when it exists.
    ///
    /// # Errors
    /// `NotFound` if nothing is at `from`; or the system cannot rename it: `to` is a directory that is not empty, for
    /// example, or on another file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// # Errors
    /// `NotFound` if there is no such file; or the system cannot remove it.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// A directory with all below it.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory; or the system cannot remove it, in which case some of what was below
    /// may be gone.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// # Errors
    /// The system cannot tell, because a directory on the way may not be searched or the disk is broken. A path that
    /// is not there is no error.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// # Errors
    /// The system cannot tell, as for [`Disk::exists`]. A path that is not there is no error.
    fn is_directory(&self, path: &Path) -> io::Result<bool>;
    /// The kind of thing that is at `path`; a symbolic link is not followed. `None` if there is nothing. A disk without links and
    /// devices need not look further than [`Disk::is_directory`] does.
    ///
    /// # Errors
    /// The system cannot tell, as for [`Disk::exists`].
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        Ok(match self.is_directory(path)? {
            true => Some(FileKind::Directory),
            false => self.exists(path)?.then_some(FileKind::File),
        })
    }
    /// Makes names created, renamed or removed in this directory durable.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory; or the sync failed, and the names may be lost with the power.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Bytes in a file, without opening it where that is cheaper.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; or the system cannot ask for its length.
    fn length(&self, path: &Path) -> io::Result<u64> {
        self.open(path, OpenMode::Read)?.length()
    }
    /// When a file was written last.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Unsupported` if this disk does not keep the time; or the system cannot ask for it.
    fn modified(&self, path: &Path) -> io::Result<Timestamp> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Takes the lock that the file at `path` stands for, creating the file; `WouldBlock` when someone else
    /// has it. Lasts until the answer is dropped or the process ends. A disk that only one process can see
    /// may answer without looking.
    ///
    /// # Errors
    /// `WouldBlock` if another store or process holds the lock; or the file cannot be created or written.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.open(path, OpenMode::CreateOrTruncate)?;
        Ok(Box::new(()))
    }
    /// Bytes free for use and bytes in all of the file system that holds `path`.
    ///
    /// # Errors
    /// `path` does not exist, or its file system does not answer.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// Whether the device below `path` takes long to go from one place to another; `None` if that is not known.
    fn seeks(&self, path: &Path) -> Option<bool> {
        let _ = path;
        None
    }
    /// Signs of life of the threads that carry out submitted writes; none where there are no such threads.
    fn pulses(&self) -> Vec<Arc<Pulse>> {
        Vec::new()
    }
}

/// A lock that is held: see [`Disk::lock`].
pub trait Lock: Send + Sync {
    /// What is now at the path at which the lock was taken: a disk may be taken away, or another one put over it, while the
    /// lock is held. A disk that nobody can take away need not look.
    ///
    /// # Errors
    /// The system cannot tell, because a directory on the way may not be searched or the disk is broken.
    fn look(&self, path: &Path) -> io::Result<LockFile> {
        let _ = path;
        Ok(LockFile::Held)
    }
}

/// The file that is at the path of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFile {
    /// The one that is locked.
    Held,
    Missing,
    /// Another one, of this file system or another.
    Another,
}

impl Lock for () {}

/// The kind of thing that a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    SymbolicLink,
    /// A device, a pipe or a socket. To open a pipe may wait for ever.
    Special,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

pub trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    /// The medium cannot be read. The end of the file is no error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// The disk is full, a quota is exceeded, or the medium fails. Part of `bytes` may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all completed writes durable (data and length).
    ///
    /// # Errors
    /// The medium failed. It is unknown which of the writes since the last successful sync are durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Writes, then syncs, then calls `done`. Several may be under way; they complete in any order.
    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone);
    /// # Errors
    /// The system cannot ask for the length.
    fn length(&self) -> io::Result<u64>;
    /// # Errors
    /// The disk is full, the length is beyond what the file system allows, or the medium fails.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Reserves space up to `length` and makes the file that long, zero-filled, so that later writes change
    /// no metadata.
    ///
    /// # Errors
    /// The disk has no room for so many bytes, or the medium fails.
    fn allocate(&self, length: u64) -> io::Result<()>;
    /// Takes room for the file up to `length`, in one piece if there is one, without making the file longer. A disk that cannot
    /// does nothing.
    ///
    /// # Errors
    /// The disk has no room for so many bytes, or the medium fails.
    fn reserve(&self, length: u64) -> io::Result<()> {
        let _ = length;
        Ok(())
    }
    /// Gives back the room that the file has beyond its end, if there is any that is worth while.
    ///
    /// # Errors
    /// The system cannot tell what the file has, or the medium fails.
    fn give_back_room(&self) -> io::Result<()> {
        Ok(())
    }
    /// Begins to write these bytes out of the system's memory to the medium, where the system keeps bytes in memory. They stay in
    /// memory. This makes nothing durable.
    ///
    /// # Errors
    /// The system cannot begin.
    fn begin_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// Waits until the medium has the last of these bytes, whose write-out has begun. The medium may still keep them in a cache of
    /// its own, and the file's length may not be on it yet: this makes nothing durable.
    ///
    /// # Errors
    /// The medium failed, now or before.
    fn await_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// Lets the system forget these bytes as far as the medium has them: nobody will read them soon.
    ///
    /// # Errors
    /// The system refuses.
    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// Whether the byte at `offset` can be read without asking the medium.
    fn is_cached(&self, offset: u64) -> bool {
        let _ = offset;
        true
    }
    /// Begins to read these bytes into the system's memory.
    ///
    /// # Errors
    /// The system cannot begin.
    fn begin_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// Waits until the last of these bytes, whose reading has begun, is in memory.
    ///
    /// # Errors
    /// The medium failed.
    fn await_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// The descriptor, where there is one (for sendfile and read-ahead); none in a simulation.
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// Whether an operation failed for want of something that can be had again: room, memory, descriptors. Such an error says
/// nothing of what the disk holds.
pub fn is_want(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT];
    match error.raw_os_error() {
        Some(number) => wants.iter().any(|want| want.raw_os_error() == number),
        None => matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory
        ),
    }
}

/// Reads exactly `buffer.len()` bytes.
///
/// # Errors
/// `UnexpectedEof` if the file ends before the buffer is full; otherwise the error of [`File::read_at`].
pub fn read_exact_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let read = file.read_at(buffer, offset)?;
    if read < buffer.len() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("wanted {} bytes at offset {offset}, the file ends after {read}", buffer.len()),
        ));
    }
    Ok(())
}
