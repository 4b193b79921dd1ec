//! Which group is the home of a directory: the group that holds its files.
//!
//! A directory has a slot for ever, in its id. A map, which is part of the directory log, says which group has each slot. The root group begins with
//! [`SHARE`] slots; directories of before the first further group, whose ids have no slot, are spread over these. No other slot has a group before a
//! further group is given some.

use crate::{codec::Writer, digest::Digester};
use base::{FsError, FsResult, GroupId, InodeId, InodeOrigin};
use rapidhash::v3::rapidhash_v3;
use std::{ops::Range, sync::Arc};

/// The slots that a group is given at a time.
pub const SHARE: u16 = 64;

/// The group of each slot. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    /// `None`: no further group has slots, and the root group is the home of all directories.
    map: Option<Arc<Map>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Map {
    /// By slot.
    groups: Vec<Option<GroupId>>,
    /// The slots that have a group: of these new directories draw theirs.
    given: Vec<u16>,
}

impl Map {
    fn of(groups: Vec<Option<GroupId>>) -> Self {
        let given = (0..InodeId::SLOTS).filter(|slot| groups[usize::from(*slot)].is_some()).collect();
        Self { groups, given }
    }
}

impl Slots {
    /// Whether directories draw slots: some further group has been given slots.
    pub fn are_used(&self) -> bool {
        self.map.is_some()
    }

    /// The slot of a directory.
    pub fn slot_of(directory: InodeId) -> u16 {
        match directory.origin() {
            InodeOrigin::Slot { slot, .. } => slot,
            InodeOrigin::Group { count, .. } => {
                (rapidhash_v3(&count.to_le_bytes()) % u64::from(SHARE)) as u16
            }
        }
    }

    /// Whether the group has slots.
    pub fn are_of(&self, group: GroupId) -> bool {
        self.map.as_ref().is_some_and(|map| map.groups.contains(&Some(group)))
    }

    /// The home of a directory's files.
    pub fn home_of(&self, directory: InodeId) -> GroupId {
        let group = self.map.as_ref().and_then(|map| map.groups[usize::from(Self::slot_of(directory))]);
        // Every directory of a sound tree has a slot with a group. Images with others are refused.
        group.unwrap_or(GroupId::ROOT)
    }

    /// Whether a directory with this id can be in the tree.
    pub fn have_group_for(&self, directory: InodeId) -> bool {
        match (directory.origin(), &self.map) {
            (InodeOrigin::Group { .. }, _) => true,
            (InodeOrigin::Slot { .. }, None) => false,
            (InodeOrigin::Slot { slot, .. }, Some(map)) => map.groups[usize::from(slot)].is_some(),
        }
    }

    /// A slot for a new directory: all slots that have a group are as likely. `seed` should differ from directory to directory.
    pub fn draw(&self, seed: u64) -> Option<u16> {
        let given = &self.map.as_ref()?.given;
        Some(given[(rapidhash_v3(&seed.to_le_bytes()) % given.len() as u64) as usize])
    }

    /// The first slots that no group has, for a group that is to be given some.
    ///
    /// # Errors
    /// [`FsError::Unsupported`] if there are fewer.
    pub fn free(&self) -> FsResult<Range<u16>> {
        // Groups are given slots from the lowest on, so that the rest is one range.
        let begin = self.map.as_ref().map_or(SHARE, |map| map.given.last().map_or(SHARE, |last| last + 1));
        match begin + SHARE <= InodeId::SLOTS {
            true => Ok(begin..begin + SHARE),
            false => Err(FsError::Unsupported(format!(
                "All {} slots of directories have a group; slots cannot be moved yet.",
                InodeId::SLOTS
            ))),
        }
    }

    /// Gives these slots to a group. The root group has its own from then on.
    pub fn give(&mut self, group: GroupId, slots: Range<u16>) {
        let mut groups = match &self.map {
            Some(map) => map.groups.clone(),
            None => {
                let mut groups = vec![None; usize::from(InodeId::SLOTS)];
                groups[..usize::from(SHARE)].fill(Some(GroupId::ROOT));
                groups
            }
        };
        groups[usize::from(slots.start)..usize::from(slots.end)].fill(Some(group));
        self.map = Some(Arc::new(Map::of(groups)));
    }

    /// Ranges of slots and their groups, rising; empty while no further group has slots.
    pub fn ranges(&self) -> Vec<(Range<u16>, GroupId)> {
        let mut ranges: Vec<(Range<u16>, GroupId)> = Vec::new();
        let groups = self.map.iter().flat_map(|map| (0..InodeId::SLOTS).zip(&map.groups));
        for (slot, group) in groups.filter_map(|(slot, group)| Some((slot, (*group)?))) {
            match ranges.last_mut() {
                Some((range, last)) if *last == group && range.end == slot => range.end += 1,
                _ => ranges.push((slot..slot + 1, group)),
            }
        }
        ranges
    }

    /// Those of these ranges. `None`: no tree has such ranges.
    pub fn of_ranges(ranges: &[(Range<u16>, GroupId)], is_known: impl Fn(GroupId) -> bool) -> Option<Self> {
        if ranges.is_empty() {
            return Some(Self::default());
        }
        let mut groups = vec![None; usize::from(InodeId::SLOTS)];
        let mut end = 0;
        for (range, group) in ranges {
            if range.is_empty() || range.start < end || range.end > InodeId::SLOTS || !is_known(*group) {
                return None;
            }
            groups[usize::from(range.start)..usize::from(range.end)].fill(Some(*group));
            end = range.end;
        }
        let slots = Self { map: Some(Arc::new(Map::of(groups))) };
        let has_own = (0..SHARE)
            .all(|slot| slots.map.as_ref().is_some_and(|map| map.groups[usize::from(slot)].is_some()));
        // The same ranges come out of it again: no two neighbours are one range.
        (has_own && slots.ranges() == ranges).then_some(slots)
    }

    pub fn encode(&self, out: &mut Writer<'_>) {
        let ranges = self.ranges();
        out.number(ranges.len() as u64);
        for (range, group) in ranges {
            for number in [range.start.into(), range.len() as u64, group.0.into()] {
                out.number(number);
            }
        }
    }

    pub fn digest(&self, digester: &mut Digester) {
        for (range, group) in self.ranges() {
            for number in [range.start.into(), range.end.into(), u64::from(group.0)] {
                digester.number(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: GroupId = GroupId(2);
    const THIRD: GroupId = GroupId(3);

    fn three() -> Slots {
        let mut slots = Slots::default();
        for group in [SECOND, THIRD] {
            let free = slots.free().unwrap();
            slots.give(group, free);
        }
        slots
    }

    #[test]
    fn slots_are_given_to_groups_and_old_directories_stay_with_the_root_group() {
        let slots = Slots::default();
        assert!(!slots.are_used() && slots.draw(1).is_none() && slots.ranges().is_empty());
        let old = (0..1_000).map(|count| InodeId::of_group(0, 16_385 + count));
        assert!(old.clone().all(|id| slots.home_of(id) == GroupId::ROOT));

        let slots = three();
        assert!(old.clone().all(|id| slots.home_of(id) == GroupId::ROOT && slots.have_group_for(id)));
        let mut drawn = [0; SHARE as usize];
        old.for_each(|id| drawn[usize::from(Slots::slot_of(id))] += 1);
        assert!(drawn.iter().all(|count| *count > 0), "they can be moved in parts one day: {drawn:?}");
        assert_eq!(slots.ranges(), [(0..64, GroupId::ROOT), (64..128, SECOND), (128..192, THIRD)]);
        for (slot, home) in [(0, GroupId::ROOT), (64, SECOND), (127, SECOND), (191, THIRD)] {
            assert_eq!(slots.home_of(InodeId::of_slot(slot, 7)), home);
        }
        assert!(!slots.have_group_for(InodeId::of_slot(192, 7)));
    }

    #[test]
    fn new_directories_are_spread_evenly_over_groups() {
        let slots = three();
        let mut of_group = [0; 4];
        for seed in 0..30_000 {
            let slot = slots.draw(seed).unwrap();
            of_group[slots.home_of(InodeId::of_slot(slot, seed)).0 as usize] += 1;
        }
        assert!(of_group[1..].iter().all(|count| (9_700..10_300).contains(count)), "{of_group:?}");
    }

    #[test]
    fn slots_end() {
        let mut slots = Slots::default();
        for group in 2..=64 {
            let free = slots.free().unwrap();
            slots.give(GroupId(group), free);
        }
        let said = slots.free().unwrap_err().to_string();
        assert!(said.contains("All 4096 slots"), "{said}");
    }

    #[test]
    fn ranges_that_no_tree_has_are_refused() {
        let known = |group: GroupId| group.0 <= 3;
        let slots = three();
        assert_eq!(Slots::of_ranges(&slots.ranges(), known), Some(slots));
        assert_eq!(Slots::of_ranges(&[], known), Some(Slots::default()));
        let root = (0..64, GroupId::ROOT);
        for (what, ranges) in [
            ("an unknown group", vec![root.clone(), (64..128, GroupId(4))]),
            ("twice", vec![root.clone(), (63..128, SECOND)]),
            ("behind the end", vec![root.clone(), (4_090..4_097, SECOND)]),
            ("empty", vec![root.clone(), (64..64, SECOND)]),
            ("one range as two", vec![root, (64..70, SECOND), (70..80, SECOND)]),
            ("old directories without a home", vec![(1..64, GroupId::ROOT)]),
        ] {
            assert_eq!(Slots::of_ranges(&ranges, known), None, "{what}");
        }
    }
}
