//! Whether a client watches the namespace's changes (HDFS's inotify), so that the events of entries are kept.
//!
//! An event has paths, and only the tree right before an edit has them: nothing can make the events later, out of the journal. To make them always
//! would cost every edit something, so they are made from the first question on, and for [`KEPT_MS`] after the last one. The active tells the other
//! members, so that the member that takes over has them as well.

use base::Moment;
use env::{Disk, OpenMode};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The file in the metadata directory that is there while events are kept. It is empty. A start that finds it keeps the events of the entries that it
/// replays, so that a stream goes on behind a restart as well.
const FILE_NAME: &str = "watched";

/// How long events are kept after a client has asked for them: a watcher may be away so long, and go on where it was.
pub const KEPT_MS: u64 = 3_600_000;
/// The other members are told once in such a time, while clients ask.
const TOLD_EVERY_MS: u64 = 10_000;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Watchers {
    /// Events are kept until this moment. 0: no client has asked.
    until_ns: AtomicU64,
    told_ns: AtomicU64,
    /// The file is there, as far as this process knows.
    is_noted: AtomicBool,
    /// The file could not be made or removed, and that was logged.
    fails: AtomicBool,
}

/// Whether events were kept when this directory's server ran last. Where that cannot be found out, no client loses more than the events of before.
pub fn were_there(disk: &dyn Disk, directory: &Path) -> bool {
    disk.exists(&directory.join(FILE_NAME)).unwrap_or(false)
}

impl Watchers {
    /// Whether events are kept now.
    pub fn are_there(&self, now: Moment) -> bool {
        self.until_ns.load(Ordering::Acquire) > now.ns
    }

    /// How many milliseconds longer events are kept, if they are.
    pub fn left_ms(&self, now: Moment) -> Option<u64> {
        let left_ns = self.until_ns.load(Ordering::Acquire).saturating_sub(now.ns);
        (left_ns > 0).then_some(left_ns.div_ceil(1_000_000))
    }

    /// A client asks. True: the other members have to be told.
    pub fn ask(&self, now: Moment) -> bool {
        let were_there = self.are_there(now);
        self.learn(KEPT_MS, now);
        let told = self.told_ns.load(Ordering::Relaxed);
        let is_due = !were_there || now.ns.saturating_sub(told) >= TOLD_EVERY_MS * 1_000_000;
        is_due && self.told_ns.compare_exchange(told, now.ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Makes or removes the file, if that is due.
    pub fn note(&self, disk: &dyn Disk, directory: &Path, now: Moment) {
        let are_there = self.are_there(now);
        if are_there == self.is_noted.load(Ordering::Relaxed) {
            return;
        }
        match write(disk, directory, are_there) {
            Ok(()) => {
                self.is_noted.store(are_there, Ordering::Relaxed);
                self.fails.store(false, Ordering::Relaxed);
            }
            Err(error) if !self.fails.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, directory = %directory.display(), "a restart may not know that a client watches");
            }
            Err(_) => {}
        }
    }

    /// The server runs again, and the file is there.
    pub fn go_on(&self, now: Moment) {
        self.is_noted.store(true, Ordering::Relaxed);
        self.learn(KEPT_MS, now);
    }

    /// Another member keeps events for so many milliseconds. No word of another keeps them for longer than a client's question does.
    pub fn learn(&self, left_ms: u64, now: Moment) {
        let until = now.ns.saturating_add(left_ms.min(KEPT_MS) * 1_000_000);
        self.until_ns.fetch_max(until, Ordering::AcqRel);
    }
}

fn write(disk: &dyn Disk, directory: &Path, are_there: bool) -> io::Result<()> {
    let path = directory.join(FILE_NAME);
    if are_there {
        disk.open(&path, OpenMode::CreateOrTruncate)?;
    } else if disk.exists(&path)? {
        disk.remove_file(&path)?;
    }
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::Env;

    fn at(ms: u64) -> Moment {
        Moment { ns: ms * 1_000_000 }
    }

    #[test]
    fn events_are_kept_for_a_time_after_the_last_question() {
        let watchers = Watchers::default();
        assert!(!watchers.are_there(at(5)));
        watchers.ask(at(5));
        assert!(watchers.are_there(at(6)));
        watchers.ask(at(1_000));
        assert!(watchers.are_there(at(KEPT_MS + 999)));
        assert!(!watchers.are_there(at(KEPT_MS + 1_000)));
    }

    #[test]
    fn the_others_are_told_of_the_first_question_at_once_and_now_and_then() {
        let watchers = Watchers::default();
        assert!(watchers.ask(at(5)), "the first");
        assert!(!watchers.ask(at(6)));
        assert!(watchers.ask(at(5 + TOLD_EVERY_MS)));
        assert!(watchers.ask(at(3 * KEPT_MS)), "the first after a long time");
    }

    #[test]
    fn the_file_is_there_while_events_are_kept_and_a_start_goes_on_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Env::production().disk;
        let watchers = Watchers::default();
        watchers.note(&*disk, directory.path(), at(5));
        assert!(!were_there(&*disk, directory.path()));
        watchers.ask(at(5));
        watchers.note(&*disk, directory.path(), at(5));
        assert!(were_there(&*disk, directory.path()));
        let next = Watchers::default();
        next.go_on(at(100));
        next.note(&*disk, directory.path(), at(100));
        assert!(were_there(&*disk, directory.path()));
        next.note(&*disk, directory.path(), at(100 + KEPT_MS));
        assert!(!were_there(&*disk, directory.path()), "no client has come back");
    }

    #[test]
    fn what_is_left_is_handed_on_and_members_do_not_prolong_it_among_themselves() {
        let (one, other) = (Watchers::default(), Watchers::default());
        assert_eq!(one.left_ms(at(5)), None);
        one.ask(at(5));
        other.learn(one.left_ms(at(1_005)).unwrap(), at(77));
        assert_eq!(other.left_ms(at(77)), Some(KEPT_MS - 1_000));
        other.learn(u64::MAX, at(77));
        assert_eq!(other.left_ms(at(77)), Some(KEPT_MS));
    }
}
