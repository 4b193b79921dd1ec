//! A member whose store is damaged, before it takes part, and the answers of those whose stores are sound.

use super::{Host, LogDisk, stored::Rot};
use base::{Entry, Epoch, LogPoint, Sn};
use group::repair::Standing;
use journal::Repair;

impl Host {
    pub fn is_damaged(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_damaged())
    }

    /// The process ends, and bytes of its log rot. `None`: no rot was found that is bearable, and the store is what it was.
    pub fn rot(&mut self, is_bearable: impl Fn(&Rot) -> bool) -> Option<Rot> {
        let journal = self.journal.as_mut()?;
        self.member = None;
        self.waiting.clear();
        let (disk, rot) = journal.rot(&self.disk, is_bearable);
        self.disk = disk;
        rot
    }

    pub fn begin_repair(&mut self) {
        self.journal.as_mut().expect("a damaged store is a journal").begin_repair();
    }

    /// Does something with the repair of a damaged store, if its process is at it.
    pub fn with_repair<T>(&self, work: impl FnOnce(&mut Repair) -> T) -> Option<T> {
        self.journal.as_ref()?.with_repair(work)
    }

    /// Writes what was repaired. False: that was cut off, and the process ends.
    pub fn mend(&mut self, is_continued: bool) -> bool {
        let journal = self.journal.as_mut().expect("a damaged store is a journal");
        let mended = journal.mend(&self.disk, is_continued);
        let is_done = mended.is_ok();
        let (Ok(disk) | Err(disk)) = mended;
        if !journal.is_damaged() {
            self.store.generation = journal.generation();
        }
        self.disk = disk;
        is_done
    }

    /// A damaged store is given up: an empty one of the next generation takes its place.
    pub fn give_up(&mut self) {
        let journal = self.journal.as_mut().expect("a damaged store is a journal");
        let disk: LogDisk = journal.give_up(&self.disk);
        (self.disk, self.applied) = (disk, LogPoint::default());
        self.store.generation = journal.generation();
    }

    /// Entries for a member whose store is damaged.
    pub fn entries_for(&self, after: Sn, up_to: Sn) -> Option<(LogPoint, Vec<Entry>)> {
        self.journal.as_ref()?.entries_for(after, up_to)
    }

    /// The answer about this store to a member whose store is damaged, as a server gives it; `None` while its process looks at nothing
    /// yet. `serves`: the epoch in which it leads, under a lease that holds.
    pub fn standing(&self, committed: Sn, serves: Option<Epoch>) -> Option<Standing> {
        let journal = self.journal.as_ref()?;
        if journal.is_damaged() {
            return self.with_repair(|repair| Standing {
                store: self.store,
                promised: repair.state().promised,
                begins_after: Sn(0),
                end: repair.end(),
                is_end_certain: repair.is_end_certain(),
                is_damaged: true,
                written: repair.written(),
                serves: None,
                at_commit: repair.point_of(committed),
            });
        }
        self.member.as_ref()?;
        let (end, at_commit) = journal.points(committed);
        Some(Standing {
            store: self.store,
            promised: self.disk.promised,
            begins_after: journal.begins_after(),
            end,
            is_end_certain: !self.disk.is_suspect,
            is_damaged: false,
            written: end.id.sn,
            serves,
            at_commit,
        })
    }
}
