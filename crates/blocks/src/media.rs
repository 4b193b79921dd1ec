//! The media of a block's replicas, and the media that the policy of its file wants.
//!
//! A block does not know its file's policy: only the time ([`BlockMap::tick`]) brings it along. So where a block has too many replicas and they
//! are on several media, the tick decides which go. Where they are all on one medium the policy makes no difference, and it is never asked for.

use crate::{map::BlockMap, server::StorageType};
use base::StoragePolicy;

impl BlockMap {
    pub(crate) fn medium(&self, place: u32) -> StorageType {
        self.storages.get(place).report.storage_type
    }

    /// Whether it depends on the file's policy which of these replicas goes.
    pub(crate) fn is_on_several_media(&self, places: &[u32]) -> bool {
        let mut media = places.iter().map(|place| self.medium(*place));
        let first = media.next();
        media.any(|medium| Some(medium) != first)
    }

    /// The indices of those replicas that are on media of which the policy wants fewer replicas, or none. Hadoop:
    /// `BlockStoragePolicy.chooseExcess`. They may be more than are too many. Where no policy is told, the replicas are on one medium, and none
    /// is named.
    pub(crate) fn on_unwanted_media(
        &self,
        places: &[u32],
        wanted: usize,
        policy: Option<&StoragePolicy>,
    ) -> Vec<usize> {
        let Some(policy) = policy else { return Vec::new() };
        let held: Vec<StorageType> = places.iter().map(|place| self.medium(*place)).collect();
        let excess = policy.types_too_many(wanted, &held);
        (0..held.len()).filter(|at| excess.contains(&held[*at])).collect()
    }
}
