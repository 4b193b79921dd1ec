//! A group as it was at some time, and what it is when it comes back to that: after an unclean election, or from a backup.

use super::{cluster::Cluster, image_of};
use base::{BlockId, Epoch, GroupId, Sn, TxId};
use namespace::{Namespace, NewEpoch};
use std::collections::BTreeMap;

/// What the first entry of an epoch says of a loss with no other loss behind it.
pub const LOSS: NewEpoch = NewEpoch {
    inodes: 1 << 30,
    blocks: 1 << 30,
    generation_stamps: 1 << 30,
    keeps_skipped: true,
    holds_deletions: true,
};

/// A group as it was at some time, with the blocks that its block map knew.
pub struct Then {
    pub group: GroupId,
    image: Vec<u8>,
    digest: u64,
    map: BTreeMap<BlockId, u16>,
}

impl Then {
    pub fn of(cluster: &Cluster, group: GroupId) -> Self {
        let ns = &cluster.groups[&group].ns;
        Self { group, image: image_of(&ns.freeze()), digest: ns.digest(), map: cluster.maps[&group].clone() }
    }

    /// The group is again as it was, and an epoch begins that says so.
    pub fn comes_back(self, cluster: &mut Cluster) {
        let length = self.image.len() as u64;
        let mut ns = Namespace::read_image(self.digest, &mut &self.image[..], length).unwrap();
        let sn = Sn(ns.applied().sn.0 + 1);
        ns.start_epoch(TxId { epoch: Epoch(65), sn }, LOSS);
        ns.check_consistency().unwrap();
        cluster.world(self.group).ns = ns;
        cluster.world(self.group).restart_from_image();
        cluster.world(self.group).removed.clear();
        cluster.maps.insert(self.group, self.map);
    }
}
