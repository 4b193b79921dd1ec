//! The marks of entries that a server has received and that are not visible yet. They are in doubt.

use crate::{Dix, Entry, Mark};
use std::collections::{BTreeMap, VecDeque};

/// Entries whose effect may be known to some groups already, in order, and their marks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Doubt {
    entries: VecDeque<Entry>,
    /// The last entry in doubt that has the mark.
    marks: BTreeMap<Mark, Dix>,
}

impl Doubt {
    pub(crate) fn enter(&mut self, entry: Entry) {
        for mark in entry.marks.iter() {
            self.marks.insert(*mark, entry.dix);
        }
        self.entries.push_back(entry);
    }

    /// Takes the first entry out, if it is not behind `visible`.
    pub(crate) fn take_visible(&mut self, visible: Dix) -> Option<Entry> {
        let entry = self.entries.pop_front_if(|entry| entry.dix <= visible)?;
        for mark in entry.marks.iter() {
            if self.marks.get(mark).is_some_and(|last| *last <= entry.dix) {
                self.marks.remove(mark);
            }
        }
        Some(entry)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Nothing is in doubt: no call has to say what it saw.
    pub fn is_clear(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries are in doubt.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.is_clear()
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The marks of all entries in doubt.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        self.marks.keys().copied()
    }

    /// The last entry in doubt that touches one of these.
    pub fn touched_by(&self, seen: &[Mark]) -> Option<Dix> {
        if self.is_clear() {
            return None;
        }
        seen.iter().filter_map(|mark| self.marks.get(mark)).max().copied()
    }

    /// Every mark names an entry that has it, and no later one does.
    pub(crate) fn is_consistent(&self) -> Result<(), String> {
        let mut expected = BTreeMap::new();
        for entry in &self.entries {
            entry.marks.iter().for_each(|mark| _ = expected.insert(*mark, entry.dix));
        }
        if expected == self.marks { Ok(()) } else { Err("marks in doubt without their entries".to_owned()) }
    }
}
