//! The slots that an image's directories have in their ids, until the section comes that says which slots there are.

use crate::slots::Slots;
use base::{InodeId, InodeOrigin};
use std::collections::BTreeSet;

/// The slots of the directories that were read.
#[derive(Default)]
pub(super) struct SlotsSeen {
    slots: BTreeSet<u16>,
    last: u64,
}

impl SlotsSeen {
    pub fn note(&mut self, id: InodeId) {
        if let InodeOrigin::Slot { slot, count } = id.origin() {
            self.slots.insert(slot);
            self.last = self.last.max(count);
        }
    }

    pub fn are_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the directory log has given them out. Only the root group knows the last number.
    pub fn are_given(&self, slots: &Slots, last_directory: u64, is_root: bool) -> bool {
        let have_group = self.slots.iter().all(|slot| slots.have_group_for(InodeId::of_slot(*slot, 0)));
        let are_counted = match is_root {
            true => self.last <= last_directory && (last_directory == 0 || slots.are_used()),
            false => last_directory == 0,
        };
        have_group && are_counted
    }
}
