//! How much a file counts against quotas; [`crate::snapshots::count`] has whole subtrees, and what snapshots keep.

use crate::{
    Namespace,
    quota::{Amounts, Quota},
    store::block_list::Stored,
    tree::Tree,
};
use base::{InodeId, POLICY_UNSPECIFIED, StoragePolicy};

/// Bytes with so many replicas, on the media that the policy names. Where no policy is set, none is counted by
/// its medium, as in HDFS.
pub(crate) fn replicated(bytes: i64, replication: u16, policy: u8) -> Amounts {
    let mut amounts = Amounts { bytes: bytes.wrapping_mul(i64::from(replication)), ..Amounts::default() };
    if policy != POLICY_UNSPECIFIED && bytes != 0 {
        for kind in StoragePolicy::in_force(policy).types_for(replication.into()) {
            if let Some(at) = kind.quota_index() {
                amounts.by_type[at] = amounts.by_type[at].wrapping_add(bytes);
            }
        }
    }
    amounts
}

/// The bytes for which a block counts: its length, or a whole block as long as it may still grow.
pub(crate) fn block_bytes(stored: Stored, block_size: u64) -> i64 {
    (if stored.committed { stored.block.length } else { block_size }) as i64
}

impl Tree {
    /// The storage policy that is set on this very file or directory.
    pub fn own_policy(&self, handle: u32) -> u8 {
        self.attributes.get(self.inode(handle).attributes).storage_policy
    }

    /// The storage policy of the inode or of its closest ancestor that has one.
    pub fn policy_of(&self, handle: u32) -> u8 {
        let mut at = handle;
        // In most trees no inode has a policy of its own.
        while self.policies > 0 && at != crate::store::NONE {
            match self.own_policy(at) {
                POLICY_UNSPECIFIED => at = self.inode(at).parent,
                policy => return policy,
            }
        }
        POLICY_UNSPECIFIED
    }

    /// The policy in force for a child of a directory whose own policy in force is `inherited`.
    pub fn policy_below(&self, handle: u32, inherited: u8) -> u8 {
        match self.own_policy(handle) {
            POLICY_UNSPECIFIED => inherited,
            policy => policy,
        }
    }

    /// Bytes of all blocks of a file, each as it counts.
    pub fn file_bytes(&self, file: u32) -> i64 {
        let block_size = self.attributes.get(self.inode(file).attributes).block_size;
        self.blocks_of(file).map(|stored| block_bytes(stored, block_size)).sum()
    }
}

impl Namespace {
    /// Gives a directory a quota, another one, or none. Keeps record, table and digest in step.
    pub(crate) fn set_quota(&mut self, directory: u32, quota: Option<Quota>) {
        let id = self.tree.inode(directory).id();
        let digest_of = |quota: &Quota| quota.digest(id);
        let before = self.tree.quotas.get(&id).map_or(0, digest_of);
        let after = quota.as_ref().map_or(0, digest_of);
        self.tree.sum = self.tree.sum.wrapping_sub(before).wrapping_add(after);
        self.tree.inodes.get_mut(directory).set_has_quota(quota.is_some());
        match quota {
            Some(quota) => drop(self.tree.quotas.insert(id, quota)),
            None => drop(self.tree.quotas.remove(&id)),
        }
    }

    /// Adds to what is used below a directory.
    pub(crate) fn charge(&mut self, directory: InodeId, amounts: Amounts) {
        let quota = self.tree.quotas.get_mut(&directory);
        let quota = quota.unwrap_or_else(|| panic!("an edit charges inode {directory}, which has no quota"));
        let before = quota.digest(directory);
        quota.used += amounts;
        let after = quota.digest(directory);
        self.tree.sum = self.tree.sum.wrapping_sub(before).wrapping_add(after);
    }
}
