//! How a start of this server went: which parts of the store were read, and how long each part took.

use base::Moment;
use parking_lot::Mutex;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

/// How far a start is. The start writes it, and pages read it meanwhile.
#[derive(Debug)]
pub struct Progress {
    pub began: Moment,
    parts: Mutex<Parts>,
    /// Bytes of the image that were read, and entries of the journal that were applied: counted without the lock.
    image_bytes_read: AtomicU64,
    entries_replayed: AtomicU64,
}

/// What a server does at the moment to come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The coordinator is asked for the group. It is asked again for a while if it does not answer.
    Coordinator,
    Opening,
    Image,
    Journal,
    /// The store is damaged, and the other members are asked for what it lacks.
    Repair,
    /// The map of blocks is made from the tree.
    Blocks,
    Joining,
}

impl Stage {
    /// A phrase for people that follows the words "this server".
    pub fn about(self) -> &'static str {
        match self {
            Self::Coordinator => "asks the coordinator for its group",
            Self::Opening => "opens its store",
            Self::Image => "reads the image of the namespace",
            Self::Journal => "applies the changes behind the image",
            Self::Repair => "has its damaged store repaired by the other members",
            Self::Blocks => "makes the map of blocks",
            Self::Joining => "opens its ports and joins its group",
        }
    }
}

/// The parts of the start that have begun.
#[derive(Clone, Debug)]
struct Parts {
    stage: Stage,
    image_began: Option<Moment>,
    /// Of the whole image.
    image_bytes: u64,
    journal_began: Option<Moment>,
    entries_expected: u64,
}

/// How far a start was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    pub stage: Stage,
    pub image_began: Option<Moment>,
    pub image_bytes: u64,
    pub image_bytes_read: u64,
    pub journal_began: Option<Moment>,
    pub entries_expected: u64,
    pub entries_replayed: u64,
}

impl Progress {
    pub fn new(began: Moment) -> Self {
        let parts = Parts {
            stage: Stage::Opening,
            image_began: None,
            image_bytes: 0,
            journal_began: None,
            entries_expected: 0,
        };
        Self {
            began,
            parts: Mutex::new(parts),
            image_bytes_read: AtomicU64::new(0),
            entries_replayed: AtomicU64::new(0),
        }
    }

    /// A stage that needs no further facts begins.
    pub fn at(&self, stage: Stage) {
        self.parts.lock().stage = stage;
    }

    /// The image is looked for. A store that was repaired is read a second time.
    pub fn image_begins(&self, now: Moment) {
        let mut parts = self.parts.lock();
        (parts.stage, parts.image_began, parts.image_bytes) = (Stage::Image, Some(now), 0);
        (parts.journal_began, parts.entries_expected) = (None, 0);
        self.image_bytes_read.store(0, Ordering::Relaxed);
        self.entries_replayed.store(0, Ordering::Relaxed);
    }

    /// An image was found, and has so many bytes.
    pub fn image_has(&self, bytes: u64) {
        self.parts.lock().image_bytes = bytes;
        // The image before it was not whole.
        self.image_bytes_read.store(0, Ordering::Relaxed);
    }

    pub fn image_was_read(&self, bytes: u64) {
        self.image_bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn journal_begins(&self, now: Moment, entries_expected: u64) {
        let mut parts = self.parts.lock();
        (parts.stage, parts.journal_began) = (Stage::Journal, Some(now));
        parts.entries_expected = entries_expected;
    }

    pub fn entry_was_applied(&self) {
        self.entries_replayed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn reached(&self) -> Reached {
        let Parts { stage, image_began, image_bytes, journal_began, entries_expected } =
            self.parts.lock().clone();
        let entries_replayed = self.entries_replayed.load(Ordering::Relaxed);
        Reached {
            stage,
            image_began,
            image_bytes,
            image_bytes_read: self.image_bytes_read.load(Ordering::Relaxed).min(image_bytes),
            journal_began,
            // The newest part of the journal may have more than its name tells.
            entries_expected: entries_expected.max(entries_replayed),
            entries_replayed,
        }
    }
}

impl Reached {
    /// The share of the image that was read, from 0 to 1.
    pub fn image_share(&self) -> f64 {
        share(self.journal_began.is_some(), self.image_bytes_read, self.image_bytes)
    }

    /// The share of the journal behind the image that was applied, from 0 to 1.
    pub fn journal_share(&self) -> f64 {
        let is_over = matches!(self.stage, Stage::Blocks | Stage::Joining);
        share(is_over, self.entries_replayed, self.entries_expected)
    }
}

/// The share of `count` in `total`, from 0 to 1.
pub(crate) fn share(is_over: bool, count: u64, total: u64) -> f64 {
    match total {
        _ if is_over => 1.0,
        0 => 0.0,
        total => (count as f64 / total as f64).min(1.0),
    }
}

/// The parts that were loaded at a start, and when each began. Data servers' reports come after it; the block map knows how far they are.
#[derive(Clone, Debug)]
pub struct Start {
    pub began: Moment,
    /// The image was looked for from here on.
    pub image_began: Moment,
    /// `None`: the store had no image.
    pub image: Option<ImageRead>,
    /// The image was read, and the journal behind it was begun.
    pub journal_began: Moment,
    /// The directories of the journal and of the images.
    pub journal: PathBuf,
    pub images: PathBuf,
    /// Entries of the journal that were applied.
    pub replayed: u64,
    /// The member was ready to take part, and waited for reports of blocks.
    pub loaded: Moment,
}

/// The image that a start has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRead {
    pub file: PathBuf,
    pub bytes: u64,
    /// Files and directories in it.
    pub inodes: u64,
}

impl Start {
    pub fn image_ms(&self) -> u64 {
        self.journal_began.ms_since(self.image_began)
    }

    pub fn journal_ms(&self) -> u64 {
        self.loaded.ms_since(self.journal_began)
    }
}
