//! A disk that remembers only what was synced.
//!
//! Every file has the content that programs see and the content that a loss of power leaves. A write changes
//! the first; a sync of the file makes the second equal to it. [`SimDisk::crash`] throws the dice for all that
//! was not synced: each 512-byte sector of each write, and each change of a directory, may be there or not.
//! Names live in directories and are durable after a sync of the directory; a change of a name is whole or
//! not there.
//!
//! A write submitted with `submit_write_sync` is carried out when the scenario says so, in any order. Faults
//! come by number: the n-th sync or write from now fails. A failed sync loses what it should have synced while
//! programs go on seeing it, as on Linux.

mod content;
mod names;

use crate::dice::Dice;
use bytes::Bytes;
use content::Content;
use env::{
    Disk, File, OpenMode, WriteDone,
    disk::{Lock, Space},
};
use names::{Names, Node};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The error of a sync or a write that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO.
    Io,
    /// ENOSPC.
    Full,
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::Io => io::Error::other("simulated I/O error"),
            Fault::Full => io::Error::new(io::ErrorKind::StorageFull, "simulated full disk"),
        }
    }
}

/// How a loss of power treats what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing of it is there.
    All,
    /// All of it is there: the system had just written it out.
    Nothing,
    /// Only the process has died: everything that programs see stays, synced or not, and syncs that had failed
    /// are forgotten.
    ProcessOnly,
    /// Each sector and each name for itself.
    Random,
}

/// Cheap to clone; all clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    dice: Dice,
    /// Rises with each crash: what was opened before is dead.
    life: u64,
    names: Names,
    files: BTreeMap<u64, Content>,
    next_file: u64,
    submitted: Vec<Submitted>,
    locks: BTreeSet<PathBuf>,
    /// Counted down by each sync; the fault strikes at 0.
    sync_fault: Option<(u64, Fault)>,
    write_fault: Option<(u64, Fault)>,
    free_bytes: u64,
    /// Syncs of files answer without doing anything.
    lies: bool,
    syncs: u64,
    /// A hash over all that was asked of this disk.
    trace: u64,
}

struct Submitted {
    file: u64,
    bytes: Bytes,
    offset: u64,
    done: WriteDone,
}

impl SimDisk {
    pub fn new(dice: Dice) -> Self {
        let state = State {
            dice,
            life: 0,
            names: Names::default(),
            files: BTreeMap::new(),
            next_file: 0,
            submitted: Vec::new(),
            locks: BTreeSet::new(),
            sync_fault: None,
            write_fault: None,
            free_bytes: 1 << 40,
            lies: false,
            syncs: 0,
            trace: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Power is lost and comes back. Open files and submitted writes are gone.
    pub fn crash(&self, loss: Loss) {
        let mut state = self.state.lock();
        let submitted = std::mem::take(&mut state.submitted);
        for write in &submitted {
            if let Some(content) = state.files.get_mut(&write.file) {
                content.write(&write.bytes, write.offset);
            }
        }
        let State { dice, names, files, locks, life, sync_fault, write_fault, .. } = &mut *state;
        for content in files.values_mut() {
            content.crash(loss, dice);
        }
        names.crash(loss, dice);
        let alive = names.files();
        files.retain(|file, _| alive.contains(file));
        locks.clear();
        *life += 1;
        (*sync_fault, *write_fault) = (None, None);
        state.note(b"crash", &[]);
        drop(state);
        // The callbacks of writes that will never complete are dropped, outside the lock.
        drop(submitted);
    }

    /// Submitted writes that were not carried out yet.
    pub fn submitted_count(&self) -> usize {
        self.state.lock().submitted.len()
    }

    /// Carries out one submitted write and calls back.
    pub fn complete(&self, index: usize) {
        let (write, result) = {
            let mut state = self.state.lock();
            let write = state.submitted.remove(index);
            let result = state
                .write(write.file, &write.bytes, write.offset)
                .and_then(|()| state.sync_file(write.file));
            (write, result)
        };
        (write.done)(result);
    }

    /// Carries out all that is and will be submitted.
    pub fn complete_all(&self) {
        while self.submitted_count() > 0 {
            self.complete(0);
        }
    }

    /// The `n`-th sync from now (0: the next one) fails, once.
    pub fn fail_sync(&self, n: u64, fault: Fault) {
        self.state.lock().sync_fault = Some((n, fault));
    }

    /// The `n`-th write from now (0: the next one) fails, once.
    pub fn fail_write(&self, n: u64, fault: Fault) {
        self.state.lock().write_fault = Some((n, fault));
    }

    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.state.lock().free_bytes = free_bytes;
    }

    /// From now on syncs of files succeed and do nothing: a world in which every checker must raise its voice.
    pub fn lie_about_syncs(&self) {
        self.state.lock().lies = true;
    }

    /// Syncs of files and directories so far.
    pub fn sync_count(&self) -> u64 {
        self.state.lock().syncs
    }

    /// A hash over everything that was asked of this disk, in its order.
    pub fn trace(&self) -> u64 {
        self.state.lock().trace
    }

    /// All files with their content, for comparison and for keeping.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.state.lock();
        state
            .names
            .walk()
            .into_iter()
            .map(|(path, file)| (path, state.files[&file].live().to_vec()))
            .collect()
    }

    /// The medium changes a bit by itself.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) {
        let mut state = self.state.lock();
        let file = state.names.file(path).expect("the file to be damaged is there");
        state.files.get_mut(&file).expect("named files have content").flip(offset, bit);
    }

    /// Sets a file's content, synced, for scripted disasters.
    pub fn put(&self, path: &Path, content: &[u8]) {
        let mut state = self.state.lock();
        if let Some(parent) = path.parent() {
            state.names.create_directory(parent);
        }
        let file = state.names.file(path).unwrap_or_else(|_| {
            let file = state.new_file();
            state.names.insert(path, Node::File(file)).expect("its directory was just made");
            file
        });
        state.files.insert(file, Content::synced(content.to_vec()));
        state.names.sync_all();
    }

    /// A disk of its own with the same files, all synced.
    pub fn copy(&self) -> SimDisk {
        self.copy_with(Dice::new(0))
    }

    /// A copy like [`SimDisk::copy`], with dice of its own for its losses.
    pub fn copy_with(&self, dice: Dice) -> SimDisk {
        let copy = SimDisk::new(dice);
        for (path, content) in self.files() {
            copy.put(&path, &content);
        }
        let directories = self.state.lock().names.directories();
        for path in directories {
            copy.state.lock().names.create_directory(&path);
        }
        copy.state.lock().names.sync_all();
        copy
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn note(&mut self, what: &[u8], bytes: &[u8]) {
        let mut link = self.trace.to_le_bytes().to_vec();
        link.extend_from_slice(what);
        link.extend_from_slice(&rapidhash::v3::rapidhash_v3(bytes).to_le_bytes());
        self.trace = rapidhash::v3::rapidhash_v3(&link);
    }

    fn new_file(&mut self) -> u64 {
        self.next_file += 1;
        self.files.insert(self.next_file, Content::default());
        self.next_file
    }

    fn content(&mut self, file: u64) -> &mut Content {
        self.files.get_mut(&file).expect("an open file has content")
    }

    fn write(&mut self, file: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.note(b"write", bytes);
        if let Some(fault) = strike(&mut self.write_fault) {
            // Part of it may have been written.
            let half = bytes.len() / 2;
            self.content(file).write(&bytes[..half], offset);
            return Err(fault.error());
        }
        self.content(file).write(bytes, offset);
        Ok(())
    }

    fn sync_file(&mut self, file: u64) -> io::Result<()> {
        self.note(b"sync", &file.to_le_bytes());
        self.syncs += 1;
        if let Some(fault) = strike(&mut self.sync_fault) {
            // The bytes that were to be synced count as clean from now on, and are not on the medium.
            self.content(file).forget_pending();
            return Err(fault.error());
        }
        if !self.lies {
            self.content(file).sync();
        }
        Ok(())
    }
}

fn strike(fault: &mut Option<(u64, Fault)>) -> Option<Fault> {
    let (left, what) = fault.as_mut()?;
    if *left > 0 {
        *left -= 1;
        return None;
    }
    let what = *what;
    *fault = None;
    Some(what)
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.lock();
        let found = state.names.file(path);
        let file = match (mode, found) {
            (OpenMode::Read | OpenMode::ReadMedium | OpenMode::ReadWrite, found) => found?,
            (OpenMode::CreateNew, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (OpenMode::CreateOrTruncate, Ok(file)) => {
                state.content(file).set_length(0);
                file
            }
            (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            (_, Err(_)) => {
                let file = state.new_file();
                state.names.insert(path, Node::File(file))?;
                file
            }
        };
        let of_medium = mode == OpenMode::ReadMedium;
        Ok(Arc::new(SimFile { disk: self.clone(), file, life: state.life, of_medium }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.lock().names.create_directory(path);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.lock().names.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.note(b"rename", to.as_os_str().as_encoded_bytes());
        state.names.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.note(b"remove", path.as_os_str().as_encoded_bytes());
        state.names.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.lock().names.remove_tree(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.lock().names.exists(path))
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        Ok(self.lock().names.is_directory(path))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.note(b"sync directory", path.as_os_str().as_encoded_bytes());
        state.syncs += 1;
        if let Some(fault) = strike(&mut state.sync_fault) {
            return Err(fault.error());
        }
        state.names.sync(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut state = self.lock();
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.clone(), path: path.to_owned(), life: state.life }))
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        let free_bytes = self.lock().free_bytes;
        Ok(Space { total_bytes: 1 << 41, free_bytes })
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}

struct SimFile {
    disk: SimDisk,
    file: u64,
    life: u64,
    /// Reads what the medium holds.
    of_medium: bool,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.lock();
        if state.life != self.life {
            return Err(io::Error::other("this file was opened before the crash"));
        }
        Ok(state)
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state()?;
        let content = state.content(self.file);
        Ok(if self.of_medium { content.read_medium(buffer, offset) } else { content.read(buffer, offset) })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.state()?.write(self.file, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state()?.sync_file(self.file)
    }

    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone) {
        match self.state() {
            Ok(mut state) => {
                state.submitted.push(Submitted { file: self.file, bytes, offset, done });
            }
            Err(error) => done(Err(error)),
        };
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.state()?;
        let content = state.content(self.file);
        Ok(if self.of_medium { content.medium().len() } else { content.live().len() } as u64)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.state()?.content(self.file).set_length(length);
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let content = state.content(self.file);
        if (content.live().len() as u64) < length {
            content.set_length(length);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
