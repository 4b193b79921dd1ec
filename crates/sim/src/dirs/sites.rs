//! The actives of the groups with what they have: machine, tree, log.

use super::tree::{Edit, Outcome, Planned, Tree, home};
use crate::model::hash_of;
use base::{Epoch, GroupId, Moment};
use dirlog::{Dix, Entry, Home, Point, Root, home::Permit, root, root::ReadLog};
use std::collections::BTreeMap;

/// An entry of the root group's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// Of the directory log. With the call that it carries out, and its answer.
    Dir { entry: Entry, call: u8 },
    /// A change of a file of the root group's own.
    Own { edit: Edit },
}

impl Record {
    pub fn edit(&self) -> Edit {
        match self {
            Self::Dir { entry, .. } => Edit::decode(&entry.payload),
            Self::Own { edit } => *edit,
        }
    }
}

/// The root group's log: what of it has committed is there for ever.
#[derive(Clone, Debug, Default, Hash)]
pub struct RootLog {
    pub records: Vec<Record>,
    pub committed: usize,
    /// Up to here the directory log was purged.
    pub purged: Dix,
}

impl RootLog {
    pub fn entries(&self, up_to: usize) -> impl Iterator<Item = &Entry> + Clone {
        self.records[..up_to].iter().filter_map(|record| match record {
            Record::Dir { entry, .. } => Some(entry),
            Record::Own { .. } => None,
        })
    }

    pub fn end(&self, up_to: usize) -> Dix {
        self.entries(up_to).last().map_or(Dix(0), |entry| entry.dix)
    }

    /// The entries that a root asks for, if what they follow has not been purged.
    pub fn read(&self, asked: ReadLog) -> Option<(Point, Vec<Entry>)> {
        if asked.after < self.purged {
            return None;
        }
        let all = self.entries(self.records.len());
        let before = all.clone().take_while(|entry| entry.dix <= asked.after).last();
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += entry.payload.len();
            bytes <= asked.bytes_max || bytes == entry.payload.len()
        };
        let entries = all.skip_while(|entry| entry.dix <= asked.after).take_while(fits).cloned().collect();
        Some((before.map_or(Point::default(), Entry::point), entries))
    }

    /// Everything behind what was purged.
    pub fn recovered(&self) -> root::Recovered {
        let mut base = Point::default();
        let mut entries = Vec::new();
        for entry in self.entries(self.records.len()) {
            if entry.dix <= self.purged { base = entry.point() } else { entries.push(entry.clone()) }
        }
        root::Recovered { base, entries, visible: Dix(0), purged: base.dix }
    }
}

/// The root group's active.
#[derive(Clone, Debug, Hash)]
pub struct RootSite {
    pub machine: Root,
    pub tree: Tree,
    /// The calls that the log carries out, and what they are answered.
    pub done: BTreeMap<u8, Dix>,
}

impl RootSite {
    pub fn new(machine: Root, outset: &Tree, homes: u8, log: &RootLog) -> Self {
        let mut tree = own_part(outset, GroupId::ROOT, homes);
        let mut done = BTreeMap::new();
        for record in &log.records {
            tree.apply(record.edit(), Some((GroupId::ROOT, homes)));
            if let Record::Dir { entry, call } = record {
                done.insert(*call, entry.dix);
            }
        }
        Self { machine, tree, done }
    }
}

/// An entry of a home's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HomeRecord {
    Own(Edit),
    Relay(Entry),
}

/// The active of another group.
#[derive(Clone, Debug, Hash)]
pub struct HomeSite {
    pub machine: Home,
    pub tree: Tree,
    pub log: Vec<HomeRecord>,
    pub committed: usize,
    pub epoch: Epoch,
}

impl HomeSite {
    /// Another member takes over with this much of the log.
    pub fn take_over(
        &self,
        keep: usize,
        outset: &Tree,
        homes: u8,
        settings: dirlog::Settings,
        now: Moment,
    ) -> Self {
        let group = self.machine.group();
        let epoch = Epoch(self.epoch.0 + 1);
        let mut tree = own_part(outset, group, homes);
        let mut applied = Point::default();
        for record in &self.log[..keep] {
            match record {
                HomeRecord::Own(edit) => tree.apply(*edit, Some((group, homes))),
                HomeRecord::Relay(entry) => {
                    tree.apply(Edit::decode(&entry.payload), Some((group, homes)));
                    applied = entry.point();
                }
            }
        }
        let machine = Home::new(settings, group, epoch, applied, keep as u64, now);
        Self { machine, tree, log: self.log[..keep].to_vec(), committed: keep, epoch }
    }

    pub fn new(group: GroupId, outset: &Tree, homes: u8, settings: dirlog::Settings) -> Self {
        let machine = Home::new(settings, group, Epoch(1), Point::default(), 0, Moment::default());
        let tree = own_part(outset, group, homes);
        Self { machine, tree, log: Vec::new(), committed: 0, epoch: Epoch(1) }
    }
}

/// All directories, and the files of this group.
pub fn own_part(tree: &Tree, group: GroupId, homes: u8) -> Tree {
    let mut tree = tree.clone();
    tree.files.retain(|(dir, _), _| home(*dir, homes) == group);
    tree
}

/// The digest of what all groups hold.
pub fn digest(tree: &Tree) -> u64 {
    hash_of(&(&tree.dirs, tree.closed_top))
}

/// Where a call is.
#[derive(Clone, Debug, Hash)]
pub enum Doing {
    /// Its client has not made it.
    NotYet,
    /// On its way to whoever decides it.
    Sent,
    /// Looked at by a home, to be judged.
    Looked {
        at: u8,
        permit: Permit,
        planned: Planned,
    },
    /// It waits in a home's machine.
    Parked {
        at: u8,
    },
    /// Decided by a home: the answer waits for this much of its log; `appended`: it has changed something.
    AtHome {
        at: u8,
        needs: usize,
        outcome: Outcome,
        appended: bool,
    },
    /// Decided by the root group: the answer waits for this much of its log, and for an entry to be visible.
    AtRoot {
        needs: usize,
        visible: Dix,
        outcome: Outcome,
        appended: bool,
    },
    /// An ordered operation of the current or the deposed root group's active, that asks homes.
    Ordered {
        by_deposed: bool,
    },
    /// It is an entry.
    Entry {
        dix: Dix,
        by_deposed: bool,
    },
    Told,
    /// Nobody will answer it.
    Lost,
}
