//! The 48 bits of an inode's id.
//!
//! ```text
//! a file, and a directory of a release that knew one group only:
//!   bit 47: 0 | bits 40-46: the group that made it, counted from 0 | bits 0-39: that group's counter
//! a directory of a namespace with several groups:
//!   bit 47: 1 | bits 35-46: its slot | bits 0-34: the counter of directories
//! ```
//!
//! An id stays with its inode for ever, also when another group takes over the file. The number of a group in ids is
//! [`GroupId::number`](super::GroupId::number).

use std::fmt;

/// An inode of the namespace. Ids are never used twice, and those that one counter gives out rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId(pub u64);

/// The counter that has given out an id, and what else the id tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeOrigin {
    /// The counter of a group, by the group's number counted from 0.
    Group { number: u8, count: u64 },
    /// The counter of directories, and the slot of the directory.
    Slot { slot: u16, count: u64 },
}

const IS_DIRECTORY_AT: u32 = 47;
const GROUP_AT: u32 = 40;
const SLOT_AT: u32 = 35;
pub(super) const GROUP_BITS: u32 = IS_DIRECTORY_AT - GROUP_AT;

impl InodeId {
    /// The root directory, as in HDFS.
    pub const ROOT: InodeId = InodeId(16_385);
    /// All ids are below it.
    pub const LIMIT: u64 = 1 << 48;
    /// A group gives out fewer ids than this: 34 years at a thousand a second.
    pub const GROUP_COUNT_LIMIT: u64 = 1 << GROUP_AT;
    /// The counter of directories gives out fewer ids than this.
    pub const DIRECTORY_COUNT_LIMIT: u64 = 1 << SLOT_AT;
    /// The number of slots for directories.
    pub const SLOTS: u16 = 1 << (IS_DIRECTORY_AT - SLOT_AT);

    /// The id that the counter of a group, by its number counted from 0, gives out.
    ///
    /// # Panics
    ///
    /// If the group's number has more than seven bits, or the count is used up: two inodes would get one id.
    pub fn of_group(number: u8, count: u64) -> Self {
        assert!(number < 1 << GROUP_BITS, "the group number {number} has more than seven bits");
        assert!(count < Self::GROUP_COUNT_LIMIT, "inode count {count} of group {number}: it has no more ids");
        Self(u64::from(number) << GROUP_AT | count)
    }

    /// The id of a directory in a slot.
    ///
    /// # Panics
    ///
    /// If there is no such slot, or the count is used up.
    pub fn of_slot(slot: u16, count: u64) -> Self {
        assert!(slot < Self::SLOTS, "slot {slot} is none of {}", Self::SLOTS);
        assert!(count < Self::DIRECTORY_COUNT_LIMIT, "directory count {count}: there are no more ids");
        Self(1 << IS_DIRECTORY_AT | u64::from(slot) << SLOT_AT | count)
    }

    /// The counter that has given out this id.
    pub fn origin(self) -> InodeOrigin {
        if self.0 >> IS_DIRECTORY_AT & 1 == 0 {
            let number = (self.0 >> GROUP_AT & ((1 << GROUP_BITS) - 1)) as u8;
            InodeOrigin::Group { number, count: self.0 & (Self::GROUP_COUNT_LIMIT - 1) }
        } else {
            let slot = (self.0 >> SLOT_AT) as u16 & (Self::SLOTS - 1);
            InodeOrigin::Slot { slot, count: self.0 & ((1 << SLOT_AT) - 1) }
        }
    }
}

impl fmt::Display for InodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<u64> for InodeId {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_which_counter_gave_it_out() {
        assert_eq!(InodeId::ROOT.origin(), InodeOrigin::Group { number: 0, count: 16_385 });
        assert_eq!(
            InodeId::of_group(0, 16_386),
            InodeId(16_386),
            "the first group's ids are what they always were"
        );
        for (number, count) in [(0, 0), (1, 7), (127, InodeId::GROUP_COUNT_LIMIT - 1)] {
            let id = InodeId::of_group(number, count);
            assert!(id.0 < InodeId::LIMIT);
            assert_eq!(id.origin(), InodeOrigin::Group { number, count });
        }
        for (slot, count) in [(0, 0), (64, 7), (4_095, (1 << 35) - 1)] {
            let id = InodeId::of_slot(slot, count);
            assert!(id.0 < InodeId::LIMIT);
            assert_eq!(id.origin(), InodeOrigin::Slot { slot, count });
        }
    }

    #[test]
    #[should_panic(expected = "it has no more ids")]
    fn a_group_that_has_used_up_its_ids_does_not_take_those_of_the_next() {
        InodeId::of_group(3, InodeId::GROUP_COUNT_LIMIT);
    }
}
