//! The volumes that a store has had since its start, each in a place of its own.

use crate::volume::{Volume, VolumeIndex};
use std::{ops::Index, sync::OnceLock};

/// The number of directories that one process opens in its life: those of the start, and each that is added later. A directory
/// that is removed and added again counts twice, because its place is not given to another.
pub const VOLUME_COUNT_MAX: usize = 1_024;

/// The list grows, and is read without a lock. A removed volume keeps its place: code that still has its index finds that the volume
/// is lost.
pub(crate) struct VolumeList {
    places: Box<[OnceLock<Volume>]>,
}

impl VolumeList {
    /// The volumes of the start, at most [`VOLUME_COUNT_MAX`].
    pub fn new(volumes: Vec<Volume>) -> Self {
        let empty = VOLUME_COUNT_MAX.saturating_sub(volumes.len());
        let places = volumes.into_iter().map(OnceLock::from);
        Self { places: places.chain((0..empty).map(|_| OnceLock::new())).collect() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Volume> {
        self.places.iter().map_while(OnceLock::get)
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn get(&self, index: VolumeIndex) -> &Volume {
        self.places[usize::from(index.0)].get().expect("an index is given with its volume")
    }

    /// The index of the next volume; `None` if there were too many since the start.
    pub fn next_index(&self) -> Option<VolumeIndex> {
        let count = self.len();
        (count < self.places.len()).then_some(VolumeIndex(count as u16))
    }

    /// Adds the volume with the index that [`VolumeList::next_index`] has given. One caller at a time.
    pub fn push(&self, volume: Volume) {
        let place = usize::from(volume.index.0);
        assert!(self.places[place].set(volume).is_ok(), "one adds volumes at a time");
    }
}

impl Index<usize> for VolumeList {
    type Output = Volume;

    fn index(&self, place: usize) -> &Volume {
        self.get(VolumeIndex(place as u16))
    }
}
