//! The machine's file system.

mod medium;
mod page_cache;
mod rotation;

use crate::{
    disk::{Disk, File, FileKind, Lock, LockFile, OpenMode, Space, WriteDone},
    pulse::{self, Pulse, rest},
};
use base::Timestamp;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
    sync::Arc,
};

/// Threads that carry out submitted writes. Two keep one flush on the device while the next is written;
/// more did not help on one virtual disk (by eye, not sacred).
const WRITE_THREAD_COUNT: usize = 2;

/// Room that files keep beyond their ends: to give less back is not worth an operation, and file systems count their own blocks
/// for a file as well.
const ROOM_BYTES_LEFT: u64 = 1 << 20;

pub struct LocalDisk {
    queue: Arc<WriteQueue>,
    /// Signs of life of the threads that write.
    pulses: Vec<Arc<Pulse>>,
}

impl LocalDisk {
    /// # Panics
    /// The system cannot start the threads that write.
    pub fn new() -> Self {
        let queue = Arc::new(WriteQueue::default());
        let mut pulses = Vec::new();
        for index in 0..WRITE_THREAD_COUNT {
            let name = format!("disk-write-{index}");
            let (queue, pulse) = (queue.clone(), Pulse::new(&name));
            pulses.push(pulse.clone());
            std::thread::Builder::new()
                .name(name)
                .spawn(move || {
                    let _carried = pulse::carry(pulse);
                    queue.work();
                })
                .expect("a thread for disk writes can be started");
        }
        Self { queue, pulses }
    }
}

impl Default for LocalDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for LocalDisk {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.wake.notify_all();
    }
}

impl Disk for LocalDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let _rest = rest();
        let mut options = fs::OpenOptions::new();
        match mode {
            OpenMode::ReadMedium => {
                return Ok(Arc::new(medium::MediumFile::open(path)?));
            }
            OpenMode::Read => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
            OpenMode::CreateOrTruncate => options.read(true).write(true).create(true).truncate(true),
        };
        Ok(Arc::new(LocalFile { file: options.open(path)?, queue: self.queue.clone() }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let _rest = rest();
        fs::create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let _rest = rest();
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            // A name that is not UTF-8 is not one of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _rest = rest();
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _rest = rest();
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let _rest = rest();
        fs::remove_dir_all(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let _rest = rest();
        path.try_exists()
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        let _rest = rest();
        match fs::metadata(path) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        let _rest = rest();
        match fs::symlink_metadata(path).map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_file() => Ok(Some(FileKind::File)),
            Ok(kind) if kind.is_dir() => Ok(Some(FileKind::Directory)),
            Ok(kind) if kind.is_symlink() => Ok(Some(FileKind::SymbolicLink)),
            Ok(_) => Ok(Some(FileKind::Special)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let _rest = rest();
        fs::File::open(path)?.sync_all()
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let _rest = rest();
        Ok(fs::metadata(path)?.len())
    }

    fn modified(&self, path: &Path) -> io::Result<Timestamp> {
        let _rest = rest();
        let since_1970 = fs::metadata(path)?.modified()?.duration_since(std::time::UNIX_EPOCH);
        Ok(Timestamp::from_ms(since_1970.map_or(0, |time| time.as_millis() as u64)))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let _rest = rest();
        use rustix::fs::{FlockOperation, fcntl_lock, flock};
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        // Two kinds of lock that do not see each other: `flock` also holds between two stores of one
        // process, `fcntl` is what a Java process takes.
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            // The kernel may say either when another process has the lock.
            rustix::io::Errno::ACCESS => io::ErrorKind::WouldBlock.into(),
            other => io::Error::from(other),
        })?;
        file.set_len(0)?;
        file.write_all_at(std::process::id().to_string().as_bytes(), 0)?;
        Ok(Box::new(LocalLock { file }))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let _rest = rest();
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space { total_bytes: stat.f_blocks * stat.f_frsize, free_bytes: stat.f_bavail * stat.f_frsize })
    }

    fn seeks(&self, path: &Path) -> Option<bool> {
        let _rest = rest();
        rotation::seeks(path)
    }

    fn pulses(&self) -> Vec<Arc<Pulse>> {
        self.pulses.clone()
    }
}

/// Closing the file gives the lock back.
struct LocalLock {
    file: fs::File,
}

impl Lock for LocalLock {
    fn look(&self, path: &Path) -> io::Result<LockFile> {
        let _rest = rest();
        let held = self.file.metadata()?;
        match fs::metadata(path) {
            Ok(found) if (found.dev(), found.ino()) == (held.dev(), held.ino()) => Ok(LockFile::Held),
            Ok(_) => Ok(LockFile::Another),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Where the directory is on another file system now, it is another directory.
                let above = fs::metadata(path.parent().unwrap_or(Path::new("/")));
                let is_moved = above.is_ok_and(|above| above.dev() != held.dev());
                Ok(if is_moved { LockFile::Another } else { LockFile::Missing })
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_that_of_the_name_and_not_of_the_file_behind_a_link() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let kind = |name: &str| LocalDisk::new().kind(&at(name)).unwrap();
        assert_eq!(kind("file"), Some(FileKind::File));
        assert_eq!(kind("."), Some(FileKind::Directory));
        assert_eq!(kind("link"), Some(FileKind::SymbolicLink));
        assert_eq!(kind("socket"), Some(FileKind::Special));
        assert_eq!(kind("gone"), None);
    }

    #[test]
    fn a_lock_knows_its_own_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("in_use.lock");
        let lock = LocalDisk::new().lock(&path).unwrap();
        assert_eq!(lock.look(&path).unwrap(), LockFile::Held);
        fs::remove_file(&path).unwrap();
        assert_eq!(lock.look(&path).unwrap(), LockFile::Missing);
        fs::write(&path, "7").unwrap();
        assert_eq!(lock.look(&path).unwrap(), LockFile::Another);
        // As if the disk were not mounted any more: the place of the file is on another file system.
        assert_eq!(lock.look(Path::new("/proc/in_use.lock")).unwrap(), LockFile::Another);
    }
}

struct LocalFile {
    file: fs::File,
    queue: Arc<WriteQueue>,
}

impl File for LocalFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let _rest = rest();
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _rest = rest();
        self.file.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let _rest = rest();
        self.file.sync_data()
    }

    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone) {
        let queue = self.queue.clone();
        queue.push(Submitted { file: self, bytes, offset, done });
    }

    fn length(&self) -> io::Result<u64> {
        let _rest = rest();
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let _rest = rest();
        self.file.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let _rest = rest();
        match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), 0, length) {
            // tmpfs on old kernels and some network file systems: a longer file serves, only less well.
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(length),
            result => Ok(result?),
        }
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let _rest = rest();
        match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            result => Ok(result?),
        }
    }

    fn give_back_room(&self) -> io::Result<()> {
        let _rest = rest();
        let metadata = self.file.metadata()?;
        let taken = metadata.blocks().saturating_mul(512);
        match taken > metadata.len().saturating_add(ROOM_BYTES_LEFT) {
            true => self.file.set_len(metadata.len()),
            false => Ok(()),
        }
    }

    fn begin_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let _rest = rest();
        page_cache::begin_write_out(&self.file, offset, length)
    }

    fn await_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let _rest = rest();
        page_cache::await_write_out(&self.file, offset, length)
    }

    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        let _rest = rest();
        page_cache::forget(&self.file, offset, length)
    }

    fn is_cached(&self, offset: u64) -> bool {
        page_cache::has(&self.file, offset)
    }

    fn begin_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        let _rest = rest();
        page_cache::begin_read_ahead(&self.file, offset, length)
    }

    fn await_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        let _rest = rest();
        page_cache::await_read_ahead(&self.file, offset, length)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

struct Submitted {
    file: Arc<LocalFile>,
    bytes: Bytes,
    offset: u64,
    done: WriteDone,
}

#[derive(Default)]
struct WriteQueue {
    state: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Submitted>,
    closed: bool,
}

impl WriteQueue {
    fn push(&self, write: Submitted) {
        self.state.lock().waiting.push_back(write);
        self.wake.notify_one();
    }

    /// Runs on each write thread until the disk is dropped and the queue is empty.
    fn work(&self) {
        loop {
            let write = {
                let mut state = self.state.lock();
                loop {
                    if let Some(write) = state.waiting.pop_front() {
                        break write;
                    }
                    if state.closed {
                        return;
                    }
                    self.wake.wait_for(&mut state, pulse::IDLE);
                    pulse::step();
                }
            };
            let result =
                write.file.write_at(&write.bytes, write.offset).and_then(|()| write.file.sync_data());
            (write.done)(result);
            pulse::step();
        }
    }
}
