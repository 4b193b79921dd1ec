//! The machine's disk, until it is told to fail, or to take its time.

use bytes::Bytes;
use env::{
    Disk, File, LocalDisk, OpenMode, WriteDone,
    disk::{Lock, Space},
    pulse::{self, Pulse, Pulses},
};
use std::{
    io,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Cheap to clone; all clones are the same disk.
#[derive(Clone, Default)]
pub struct FailingDisk {
    local: Arc<LocalDisk>,
    syncs_fail: Arc<AtomicBool>,
    is_full: Arc<AtomicBool>,
    /// Bytes that writes may still take, where that is limited.
    room: Arc<Mutex<Option<u64>>>,
    slowness: Slowness,
    before_each_write: Hook,
    held: Arc<Held>,
}

/// A part of the paths of files that cannot be opened for a while.
#[derive(Default)]
struct Held {
    part: Mutex<Option<&'static str>>,
    changed: Condvar,
}

impl Held {
    fn pass(&self, path: &Path) {
        let is_held =
            |part: &mut Option<&str>| part.is_some_and(|part| path.to_string_lossy().contains(part));
        drop(self.changed.wait_while(self.part.lock().unwrap(), is_held).unwrap());
    }
}

/// Runs on the thread that gives a write to the disk.
type Hook = Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>;

/// How long each operation takes at least that changes what the disk holds, or opens a file.
#[derive(Clone, Default)]
struct Slowness {
    ms: Arc<AtomicU64>,
    /// The threads of writes that were submitted meanwhile.
    writers: Pulses,
}

impl Slowness {
    /// Takes its time: whoever calls waits for the disk.
    fn pass(&self) {
        let _rest = pulse::rest();
        thread::sleep(Duration::from_millis(self.ms.load(Ordering::SeqCst)));
    }
}

impl FailingDisk {
    /// How long each write, sync, open, rename and removal takes at least.
    pub fn set_slow(&self, ms: u64) {
        self.slowness.ms.store(ms, Ordering::SeqCst);
    }

    /// Opening a file with this in its path takes until [`FailingDisk::let_go`] is called.
    pub fn hold(&self, part: &'static str) {
        *self.held.part.lock().unwrap() = Some(part);
    }

    pub fn let_go(&self) {
        *self.held.part.lock().unwrap() = None;
        self.held.changed.notify_all();
    }

    /// Each thread that gives a write of the log to the disk calls this first. It does not wait for the disk yet.
    pub fn before_each_write(&self, call: impl Fn() + Send + Sync + 'static) {
        assert!(self.before_each_write.set(Box::new(call)).is_ok(), "said before");
    }

    /// Whether the disk says that nothing is free on it.
    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// How many bytes can still be written; what does not fit is an error.
    pub fn set_room(&self, bytes: Option<u64>) {
        *self.room.lock().unwrap() = bytes;
    }

    /// Whether the sync of each batch of the journal is an error.
    pub fn set_failing(&self, fails: bool) {
        self.syncs_fail.store(fails, Ordering::SeqCst);
    }
}

impl Disk for FailingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.slowness.pass();
        self.held.pass(path);
        let file = self.local.open(path, mode)?;
        let (syncs_fail, slowness) = (self.syncs_fail.clone(), self.slowness.clone());
        let (room, before_each_write) = (self.room.clone(), self.before_each_write.clone());
        Ok(Arc::new(FailingFile { file, syncs_fail, room, slowness, before_each_write }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.slowness.pass();
        self.local.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.local.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.slowness.pass();
        self.local.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.slowness.pass();
        self.local.remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.slowness.pass();
        self.local.remove_directory(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.local.exists(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.local.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.slowness.pass();
        self.local.sync_directory(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.local.length(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.local.lock(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let space = self.local.space(path)?;
        let is_full = self.is_full.load(Ordering::SeqCst);
        Ok(if is_full { Space { free_bytes: 0, ..space } } else { space })
    }

    fn pulses(&self) -> Vec<Arc<Pulse>> {
        let mut pulses = self.local.pulses();
        pulses.extend(self.slowness.writers.all());
        pulses
    }
}

struct FailingFile {
    file: Arc<dyn File>,
    syncs_fail: Arc<AtomicBool>,
    room: Arc<Mutex<Option<u64>>>,
    slowness: Slowness,
    before_each_write: Hook,
}

impl File for FailingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.slowness.pass();
        if let Some(room) = self.room.lock().unwrap().as_mut() {
            *room = room
                .checked_sub(bytes.len() as u64)
                .ok_or_else(|| io::Error::new(io::ErrorKind::StorageFull, "no room is left"))?;
        }
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.slowness.pass();
        self.file.sync_data()
    }

    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone) {
        if let Some(call) = self.before_each_write.get() {
            call();
        }
        if self.syncs_fail.load(Ordering::SeqCst) {
            let written = self.file.write_at(&bytes, offset);
            return done(written.and(Err(io::Error::other("the array is gone"))));
        }
        if self.slowness.ms.load(Ordering::SeqCst) == 0 {
            return self.file.clone().submit_write_sync(bytes, offset, done);
        }
        // The write is done on a thread that is watched, as the machine's disk does it.
        thread::spawn(move || {
            let _watched = self.slowness.writers.begin("disk-write-slow");
            done(self.write_at(&bytes, offset).and_then(|()| self.sync_data()));
        });
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.slowness.pass();
        self.file.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.slowness.pass();
        self.file.allocate(length)
    }

    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.file.descriptor()
    }
}
