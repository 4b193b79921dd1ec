//! A disk at which a test looks over the store's shoulder: it sees what is asked, may do something first, and may answer
//! with an error instead.

use bytes::Bytes;
use env::{Disk, Env, File, Lock, OpenMode, WriteDone, disk::Space};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// A request to the disk, as a test sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Open(OpenMode),
    Read,
    List,
    Exists,
    Length,
    /// A file's bytes are to be on the medium: their write-out begins, or is awaited.
    BeginWriteOut,
    AwaitWriteOut,
}

type Hook = Arc<dyn Fn(Asked, &Path) -> io::Result<()> + Send + Sync>;

#[derive(Clone)]
pub struct HookedDisk {
    below: Arc<dyn Disk>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl HookedDisk {
    pub fn new() -> (Self, Env) {
        let env = Env::production();
        let disk = Self { below: env.disk.clone(), hook: Arc::default() };
        let env = Env { disk: Arc::new(disk.clone()), ..env };
        (disk, env)
    }

    pub fn set(&self, hook: impl Fn(Asked, &Path) -> io::Result<()> + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    pub fn clear(&self) {
        *self.hook.lock().unwrap() = None;
    }

    fn ask(&self, asked: Asked, path: &Path) -> io::Result<()> {
        // Not called under the lock: it may ask the store for something.
        let hook = self.hook.lock().unwrap().clone();
        hook.map_or(Ok(()), |hook| hook(asked, path))
    }
}

impl Disk for HookedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.ask(Asked::Open(mode), path)?;
        let file = self.below.open(path, mode)?;
        Ok(Arc::new(HookedFile { file, path: path.into(), disk: self.clone() }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.below.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.ask(Asked::List, path)?;
        self.below.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.below.remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.below.remove_directory(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.ask(Asked::Exists, path)?;
        self.below.exists(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.below.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.below.sync_directory(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.ask(Asked::Length, path)?;
        self.below.length(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.below.lock(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.below.space(path)
    }
}

struct HookedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    disk: HookedDisk,
}

impl File for HookedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(Asked::Read, &self.path)?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone) {
        self.file.clone().submit_write_sync(bytes, offset, done);
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        self.file.reserve(length)
    }

    fn give_back_room(&self) -> io::Result<()> {
        self.file.give_back_room()
    }

    fn begin_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.ask(Asked::BeginWriteOut, &self.path)?;
        self.file.begin_write_out(offset, length)
    }

    fn await_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        self.disk.ask(Asked::AwaitWriteOut, &self.path)?;
        self.file.await_write_out(offset, length)
    }

    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.forget_cached(offset, length)
    }
}
