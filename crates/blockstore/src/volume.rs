//! One data directory of a running store.

pub use crate::volume_index::VolumeIndex;
use crate::{
    active::Active,
    error::OpenError,
    layout::{PoolPaths, VolumePaths},
    schedule::turns::Turns,
    usage::{Uses, VolumeUse},
};
use base::StorageType;
use env::{Disk, Lock, disk::LockFile};
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

pub(crate) struct Volume {
    pub index: VolumeIndex,
    pub paths: VolumePaths,
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    /// Never used for replicas.
    pub reserved_bytes: u64,
    /// Bytes promised to replicas being written and not yet written.
    promised: AtomicU64,
    /// Why it is no longer used: the first failure.
    failure: OnceLock<String>,
    /// When that was, in milliseconds since 1970.
    failed_ms: AtomicU64,
    /// The room that it had when it was last asked.
    last_capacity_bytes: AtomicU64,
    lock: Mutex<Option<Arc<dyn Lock>>>,
    /// The directory was not there, has been made at this start, and has not been taken for new yet.
    is_missing: AtomicBool,
    /// An operator has taken it out of the configuration, or has had a failed one opened anew.
    is_removed: AtomicBool,
    /// The users of its files, without the writers of replicas: a writer holds the files of its replica.
    uses: Arc<Uses>,
    /// The replicas that were being written here when it was lost. Their writers may still use the files.
    cut_off: Mutex<Vec<Weak<Active>>>,
    /// The turns of its streams, if they take turns.
    pub turns: Option<Turns>,
}

impl Volume {
    pub fn new(
        index: VolumeIndex,
        paths: VolumePaths,
        storage: (Arc<str>, StorageType),
        reserved_bytes: u64,
        lock: Box<dyn Lock>,
        is_missing: bool,
    ) -> Self {
        Self {
            index,
            paths,
            storage_id: storage.0,
            storage_type: storage.1,
            reserved_bytes,
            promised: AtomicU64::new(0),
            failure: OnceLock::new(),
            failed_ms: AtomicU64::new(0),
            last_capacity_bytes: AtomicU64::new(0),
            lock: Mutex::new(Some(lock.into())),
            is_missing: AtomicBool::new(is_missing),
            is_removed: AtomicBool::new(false),
            uses: Arc::default(),
            cut_off: Mutex::default(),
            turns: None,
        }
    }

    /// Counts one more user of the volume's files, until the answer is dropped. `None`: the volume is lost.
    pub fn enter(&self) -> Option<VolumeUse> {
        let entered = Uses::enter(&self.uses);
        // The user is counted first, and the volume looked at second. A thread that takes the volume away marks it as lost first, and
        // looks at the count second.
        self.is_alive().then_some(entered)
    }

    /// Whether its files have users.
    pub fn is_used(&self) -> bool {
        self.uses.count() > 0
    }

    pub fn note_cut_off(&self, active: &Arc<Active>) {
        self.cut_off.lock().push(Arc::downgrade(active));
    }

    /// Hands over the replicas whose writers may still use files here.
    pub fn take_cut_off(&self) -> Vec<Weak<Active>> {
        std::mem::take(&mut self.cut_off.lock())
    }

    pub fn set_removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    /// Whether an operator has removed it. A removed volume is not reported as failed.
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    pub fn is_locked(&self) -> bool {
        self.lock.lock().is_some()
    }

    pub fn pool(&self, pool: &str) -> PoolPaths {
        self.paths.pool(pool)
    }

    /// Whether this is rather the place of a disk that is not mounted.
    pub fn is_missing(&self) -> bool {
        self.is_alive() && self.is_missing.load(Ordering::Relaxed)
    }

    /// The directory has been made for a pool: it is this server's from now on, for other pools as well.
    pub fn set_made(&self) {
        self.is_missing.store(false, Ordering::Relaxed);
    }

    pub fn is_alive(&self) -> bool {
        self.failure.get().is_none()
    }

    /// `true` for the first failure.
    pub fn fail(&self, why: String, now_ms: u64) -> bool {
        let is_first = self.failure.set(why).is_ok();
        if is_first {
            self.failed_ms.store(now_ms, Ordering::Relaxed);
        }
        is_first
    }

    /// When it failed, and the room that went with it, as far as that is known.
    pub fn loss(&self) -> (u64, u64) {
        (self.failed_ms.load(Ordering::Relaxed), self.last_capacity_bytes.load(Ordering::Relaxed))
    }

    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Lets another process take the directory.
    pub fn unlock(&self) {
        *self.lock.lock() = None;
    }

    /// The file that is now where this process has locked one; `None` if it holds no lock any more.
    pub fn look_at_lock(&self) -> io::Result<Option<LockFile>> {
        // The disk may hang: others do not wait for that.
        let lock = self.lock.lock().clone();
        lock.map(|lock| lock.look(&self.paths.lock())).transpose()
    }

    pub fn promise(&self, bytes: u64) {
        self.promised.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn release(&self, bytes: u64) {
        self.promised.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The volume's figures; `used_bytes` is what the pools have there.
    pub fn figures(&self, disk: &dyn Disk, used_bytes: u64) -> io::Result<Figures> {
        let space = disk.space(&self.paths.root)?;
        let capacity_bytes = space.total_bytes.saturating_sub(self.reserved_bytes);
        self.last_capacity_bytes.store(capacity_bytes, Ordering::Relaxed);
        let remaining_bytes = space
            .free_bytes
            .saturating_sub(self.reserved_bytes)
            .min(capacity_bytes.saturating_sub(used_bytes))
            .saturating_sub(self.promised.load(Ordering::Relaxed));
        let non_dfs_used_bytes =
            space.total_bytes.saturating_sub(space.free_bytes).saturating_sub(used_bytes);
        Ok(Figures { capacity_bytes, used_bytes, remaining_bytes, non_dfs_used_bytes })
    }
}

pub(crate) struct Figures {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub remaining_bytes: u64,
    pub non_dfs_used_bytes: u64,
}

/// Whether an error says that the disk is broken, rather than that it is full or a file is missing.
pub(crate) fn is_broken(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    const EROFS: i32 = 30;
    const ESTALE: i32 = 116;
    const EUCLEAN: i32 = 117;
    matches!(error.raw_os_error(), Some(EIO | ENXIO | ENODEV | EROFS | ESTALE | EUCLEAN))
}

impl OpenError {
    pub(crate) fn io(path: &std::path::Path) -> impl Fn(io::Error) -> OpenError {
        move |error| OpenError::Io { path: path.into(), error }
    }
}
