//! How much a file counts against quotas; [`crate::snapshots::count`] has whole subtrees, and what snapshots keep.

use crate::{
    Namespace,
    quota::{Amounts, Quota, TYPES},
    shares::{ByGroup, Share, is_limit},
    store::{NONE, block_list::Stored},
    tree::Tree,
};
use base::{GroupId, InodeId, POLICY_UNSPECIFIED, directory_log::Dix};

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
            None => {
                self.tree.quotas.remove(&id);
                self.set_share(id, None);
            }
        }
    }

    /// Notes how the groups share the quota of a directory. Keeps table and digest in step.
    pub(crate) fn set_share(&mut self, directory: InodeId, share: Option<Share>) {
        let digest_of = |share: &Share| share.digest(directory);
        let before = self.tree.shares.get(&directory).map_or(0, digest_of);
        let after = share.as_ref().map_or(0, digest_of);
        self.tree.sum = self.tree.sum.wrapping_sub(before).wrapping_add(after);
        match share {
            Some(share) => drop(self.tree.shares.insert(directory, share)),
            None => drop(self.tree.shares.remove(&directory)),
        }
    }

    /// What lies below a directory counts on other media from here on. The groups have told what they use of these before, so nothing of it may be
    /// used before they tell anew.
    pub(crate) fn recount_media(&mut self, changed: u32) {
        let tree = &self.tree;
        let is_touched = |directory: &InodeId| {
            let handle = self.handle(*directory);
            handle.is_some_and(|it| self.is_at_or_below(it, changed) || self.is_at_or_below(changed, it))
        };
        let touched = tree.shares.iter().filter(|(directory, _)| is_touched(directory));
        let none = <[i64; TYPES]>::default();
        let shares: Vec<(InodeId, Share)> = touched
            .map(|(directory, share)| {
                let mut share = Share { told_at: Dix(0), told: ByGroup::new(), ..share.clone() };
                share.allowed.values_mut().for_each(|allowed| allowed.by_type = none);
                share.free.by_type = none;
                (*directory, share)
            })
            .collect();
        for (directory, share) in shares {
            self.set_share(directory, Some(share));
        }
    }

    /// A snapshot goes on to count what has left this directory, in every group, and needs no room for that. What the groups have told is too little
    /// then for the quotas here and above, so nobody may use more before they tell anew.
    pub(crate) fn recount_kept(&mut self, directory: u32) {
        let mut at = directory;
        while at != NONE && !self.tree.shares.is_empty() {
            let inode = self.tree.inode(at);
            let (id, parent) = (inode.id(), inode.parent);
            if self.tree.shares.contains_key(&id) {
                self.set_share(id, Some(Share::default()));
            }
            at = parent;
        }
    }

    /// Lets several groups share the quotas that one group has had alone: it keeps what it uses, and the rest is free. Where it uses more than a limit allows
    /// already, nobody has an allowance.
    pub(crate) fn share_quotas(&mut self) {
        let (own, tree) = (self.group(), &self.tree);
        let alone = tree.quotas.iter().filter(|(directory, _)| !tree.shares.contains_key(directory));
        let shares: Vec<(InodeId, Share)> = alone
            .map(|(directory, quota)| {
                let within = |of: fn(i64, i64) -> i64| {
                    let of = |limit, [used]: [i64; 1]| {
                        if is_limit(limit) && used <= limit { of(limit, used) } else { 0 }
                    };
                    quota.limits.zip([&quota.used], of)
                };
                let (allowed, free) = (within(|_, used| used), within(i64::wrapping_sub));
                (*directory, Share { allowed: [(own, allowed)].into(), free, ..Share::default() })
            })
            .collect();
        for (directory, share) in shares {
            self.set_share(directory, Some(share));
        }
    }

    /// What a directory counts for in this group: one group of several counts directories, which all have.
    pub(crate) fn directory_amounts(&self) -> Amounts {
        if self.group() == GroupId::ROOT { Amounts::ONE_INODE } else { Amounts::default() }
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
