//! The names of the cluster that this server belongs to.

pub mod text;

use crate::peers::Secret;
use base::{GroupId, Level, directory_log::Point};
use std::sync::Arc;

/// The names of this cluster, and of the group in it to which this server belongs.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub cluster_id: String,
    pub namespace_id: u32,
    pub group: GroupId,
    /// The group's own block pool.
    pub block_pool: Arc<str>,
    pub created_ms: u64,
    /// The level that the group began at.
    pub first_level: Level,
    /// The secret that its members prove to each other. A cluster made by an early version has none.
    pub secret: Option<Secret>,
    /// The root group was made from a backup of a namespace that several groups hold, as it was when it had just come to this place in the directory
    /// log. Further groups are put back to the same place.
    pub restored_at: Option<Point>,
}

impl Cluster {
    /// The names as another group of the cluster has them, by those of the root group. Its block pool follows from the root
    /// group's, so that every member of that group comes to the same one. `None`: these are not the root group's, or their
    /// block pool has a name that was not made here.
    pub fn of_group(&self, group: GroupId) -> Option<Self> {
        if self.group != GroupId::ROOT {
            return None;
        }
        Some(Self { group, block_pool: self.pool_of(group)?, restored_at: None, ..self.clone() })
    }

    /// The block pool of any group of the cluster. `None`: the own one has a name that was not made here. A cluster with such a pool has no other
    /// groups.
    pub fn pool_of(&self, group: GroupId) -> Option<Arc<str>> {
        let (number, rest) = self.block_pool.strip_prefix("BP-")?.split_once('-')?;
        let of_root = number.parse::<u32>().ok()?.wrapping_sub(self.group.number().into());
        let number = of_root.wrapping_add(group.number().into()) & 0x7fff_ffff;
        Some(format!("BP-{number}-{rest}").into())
    }

    /// The group in messages between its own members: see [`scope`].
    pub fn scope(&self) -> String {
        scope(&self.cluster_id, self.group)
    }
}

/// The name by which the members of one group say for which group a message is meant, where a proof goes with it. That of the
/// root group is the cluster's id alone, as it was when a cluster had one group.
pub fn scope(cluster_id: &str, group: GroupId) -> String {
    match group {
        GroupId::ROOT => cluster_id.to_owned(),
        // No cluster's id has a slash: it becomes part of directories' names on data servers.
        _ => format!("{cluster_id}/group-{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Cluster {
        Cluster {
            cluster_id: "CID-1".into(),
            namespace_id: 7,
            group: GroupId::ROOT,
            block_pool: "BP-2147483647-10.0.0.1-1700000000000".into(),
            created_ms: 1_700_000_000_000,
            first_level: Level::FIRST,
            secret: None,
            restored_at: None,
        }
    }

    #[test]
    fn each_group_has_a_block_pool_of_its_own_in_the_form_that_hadoop_demands() {
        let pool = |group| root().of_group(GroupId(group)).unwrap().block_pool.to_string();
        assert_eq!(pool(1), *root().block_pool, "the root group's is the cluster's");
        assert_eq!(pool(2), "BP-0-10.0.0.1-1700000000000", "a number of 31 bits");
        assert_eq!(pool(3), "BP-1-10.0.0.1-1700000000000");
        let strange = Cluster { block_pool: "BP-x-1".into(), ..root() };
        assert!(strange.of_group(GroupId(2)).is_none());
        let second = root().of_group(GroupId(2)).unwrap();
        assert!(second.of_group(GroupId(3)).is_none(), "only the root group's names tell those of others");
        for one in (1..4).map(GroupId) {
            let of_one = root().of_group(one).unwrap();
            assert!((1..4).all(|other| *of_one.pool_of(GroupId(other)).unwrap() == *pool(other)));
        }
    }

    #[test]
    fn messages_of_one_group_are_told_from_those_of_another() {
        assert_eq!(root().scope(), "CID-1", "as releases have it that know one group");
        assert_eq!(root().of_group(GroupId(2)).unwrap().scope(), "CID-1/group-2");
    }
}
