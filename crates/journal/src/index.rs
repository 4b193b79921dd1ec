//! The index of the log: which segment holds which entries, and at which offsets batches begin.

use crate::block;
use base::{Epoch, LogPoint, Sn};
use std::path::{Path, PathBuf};

/// Bytes between two marks: what a reader may have to pass over before it reaches the entry that it wants.
const MARK_DISTANCE_BYTES: u64 = 256 << 10;

/// The segments of a log, in the order of their entries. Kept beside the disk, so that a reader need not list
/// the directory.
#[derive(Default)]
pub(crate) struct Index {
    places: Vec<Place>,
    /// The end of a log without segments: its beginning, or the entry of an image.
    floor: LogPoint,
}

/// A segment, and the marks known in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub epoch: Epoch,
    /// The number of its first entry.
    pub start: Sn,
    pub is_open: bool,
    /// Offsets at which batches begin, in order. Not all are known: they are learnt while writing and while reading.
    marks: Vec<Mark>,
    /// How often its file was replaced, times two; odd while that is under way. A mark is true for one of these only.
    life: u64,
}

/// A batch begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The entry before its first one.
    pub previous: LogPoint,
    pub offset: u64,
}

impl Place {
    pub fn new(epoch: Epoch, start: Sn, is_open: bool) -> Self {
        Self { epoch, start, is_open, marks: Vec::new(), life: Self::FIRST_LIFE }
    }

    /// The life of a segment whose file was never replaced. The open segment has it, for example.
    pub const FIRST_LIFE: u64 = 0;

    /// The place without its marks, so that the segment is read from its header on.
    pub fn without_marks(&self) -> Self {
        Self { marks: Vec::new(), ..self.clone() }
    }

    /// Counts the files that the segment has had. The marks belong to the file of this number.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// The place of the segment under the name that it gets when it is sealed.
    pub fn sealed(mut self) -> Self {
        self.is_open = false;
        self
    }

    pub fn path(&self, log: &Path) -> PathBuf {
        log.join(block::file_name(self.epoch, self.start, self.is_open))
    }

    /// The last known place from which a reader finds the entry after `after`.
    pub fn mark_before(&self, after: Sn) -> Option<Mark> {
        let count = self.marks.partition_point(|mark| mark.previous.id.sn <= after);
        count.checked_sub(1).map(|index| self.marks[index])
    }
}

impl Index {
    pub fn new(places: Vec<Place>, floor: LogPoint) -> Self {
        debug_assert!(places.is_sorted_by_key(|place| place.start));
        Self { places, floor }
    }

    /// The entry after which a log without segments begins.
    pub fn floor(&self) -> Option<LogPoint> {
        self.places.is_empty().then_some(self.floor)
    }

    /// The segment that holds `sn`, or is to hold it, if any does.
    pub fn place_of(&self, sn: Sn) -> Option<&Place> {
        let count = self.places.partition_point(|place| place.start <= sn);
        count.checked_sub(1).map(|index| &self.places[index])
    }

    /// All segments, oldest first.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The segment's file is about to be replaced, or has been: its batches begin elsewhere. In between nobody learns marks,
    /// for which of the two files a reader has is not known.
    pub fn turn_life(&mut self, start: Sn) {
        if let Some(place) = self.places.iter_mut().find(|place| place.start == start) {
            place.marks.clear();
            place.life += 1;
        }
    }

    /// Whether marks learnt in this life of the segment still hold.
    pub fn is_alive(&self, start: Sn, life: u64) -> bool {
        let found = self.places.binary_search_by_key(&start, |place| place.start);
        life.is_multiple_of(2) && found.is_ok_and(|index| self.places[index].life == life)
    }

    pub fn first(&self) -> Option<&Place> {
        self.places.first()
    }

    pub fn last(&self) -> Option<&Place> {
        self.places.last()
    }

    /// A segment was begun; an empty one before it that begins with the same entry is gone.
    pub fn begin(&mut self, epoch: Epoch, start: Sn) {
        self.places.retain(|place| place.start < start);
        for place in &mut self.places {
            place.is_open = false;
        }
        self.places.push(Place::new(epoch, start, true));
    }

    /// A batch begins there, in this life of the segment.
    pub fn mark(&mut self, start: Sn, life: u64, mark: Mark) {
        if !self.is_alive(start, life) {
            return;
        }
        let Ok(index) = self.places.binary_search_by_key(&start, |place| place.start) else { return };
        let marks = &mut self.places[index].marks;
        let at = marks.partition_point(|known| known.offset < mark.offset);
        let is_far = |known: &Mark| known.offset.abs_diff(mark.offset) >= MARK_DISTANCE_BYTES;
        let is_news =
            at.checked_sub(1).is_none_or(|before| is_far(&marks[before])) && marks.get(at).is_none_or(is_far);
        if is_news {
            marks.insert(at, mark);
        }
    }

    pub fn forget(&mut self, start: Sn) {
        self.places.retain(|place| place.start != start);
    }

    /// The log was cut off after this entry.
    pub fn cut(&mut self, after: LogPoint) {
        if self.places.is_empty() {
            self.floor = after;
        }
    }

    /// Notes that the open segment that begins with `start` is sealed now, and ends with `last`.
    pub fn sealed_at(&mut self, start: Sn, last: Sn) {
        if let Some(place) = self.places.iter_mut().find(|place| place.start == start) {
            place.is_open = false;
            place.marks.retain(|mark| mark.previous.id.sn < last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Chain, TxId};

    fn mark(sn: u64, offset: u64) -> Mark {
        Mark { previous: LogPoint { id: TxId { epoch: Epoch(1), sn: Sn(sn) }, chain: Chain(sn) }, offset }
    }

    #[test]
    fn the_place_of_an_entry_is_the_last_segment_that_begins_before_it() {
        let mut index = Index::new(
            vec![Place::new(Epoch(1), Sn(5), false), Place::new(Epoch(2), Sn(9), true)],
            LogPoint::default(),
        );
        let start_of = |index: &Index, sn| index.place_of(Sn(sn)).map(|place| place.start.0);
        assert_eq!(
            [4, 5, 8, 9, 100].map(|sn| start_of(&index, sn)),
            [None, Some(5), Some(5), Some(9), Some(9)]
        );
        index.begin(Epoch(3), Sn(9));
        assert_eq!(index.place_of(Sn(9)).unwrap().epoch, Epoch(3));
        assert_eq!(index.place_of(Sn(8)).unwrap().start, Sn(5));
    }

    #[test]
    fn marks_are_far_from_each_other_in_whichever_order_they_come() {
        let mut index = Index::new(vec![Place::new(Epoch(1), Sn(1), true)], LogPoint::default());
        for (sn, offset) in [(50, 2 << 20), (0, 4096), (1, 8192), (60, (2 << 20) + 4096), (20, 1 << 20)] {
            index.mark(Sn(1), Place::FIRST_LIFE, mark(sn, offset));
        }
        let place = index.place_of(Sn(1)).unwrap();
        assert_eq!(place.marks, [mark(0, 4096), mark(20, 1 << 20), mark(50, 2 << 20)]);
        assert_eq!(place.mark_before(Sn(49)), Some(mark(20, 1 << 20)));
        assert_eq!(place.mark_before(Sn(50)), Some(mark(50, 2 << 20)));
        index.sealed_at(Sn(1), Sn(50));
        assert_eq!(index.place_of(Sn(1)).unwrap().mark_before(Sn(99)), Some(mark(20, 1 << 20)));
    }
    #[test]
    fn marks_of_a_file_that_is_being_replaced_are_not_taken() {
        let mut index = Index::new(vec![Place::new(Epoch(1), Sn(1), false)], LogPoint::default());
        let marks = |index: &Index| index.place_of(Sn(1)).unwrap().marks.len();
        index.mark(Sn(1), 0, mark(50, 2 << 20));
        assert_eq!(marks(&index), 1);
        index.turn_life(Sn(1));
        for life in 0..3 {
            index.mark(Sn(1), life, mark(50, 2 << 20));
        }
        assert_eq!(marks(&index), 0, "a reader may have either file");
        index.turn_life(Sn(1));
        for life in [0, 1, 3, u64::MAX] {
            index.mark(Sn(1), life, mark(50, 2 << 20));
        }
        assert_eq!(marks(&index), 0, "a reader of the old file goes on with it");
        index.mark(Sn(1), 2, mark(50, 1 << 20));
        assert_eq!(marks(&index), 1);
    }
}
