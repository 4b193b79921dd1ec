//! Sums up what one edit charges, and finds the first quota that it exceeds.

use super::{Charge, Found};
use crate::{
    Context, Namespace, SnapshotId,
    looks::Counted,
    questions::FileFact,
    quota::{Amounts, Quota},
    shares::{ByGroup, Lack, Room, Share, sum},
    store::NONE,
};
use base::{FsError, GroupId, InodeId, POLICY_UNSPECIFIED, StorageType};
use std::collections::BTreeMap;

pub(crate) struct Ledger<'ns> {
    ns: &'ns Namespace,
    ctx: &'ns Context<'ns>,
    charges: BTreeMap<InodeId, Amounts>,
    kept: Vec<(InodeId, Amounts)>,
    refusal: Option<FsError>,
}

impl<'ns> Ledger<'ns> {
    pub fn new(ns: &'ns Namespace, ctx: &'ns Context<'ns>) -> Self {
        Self { ns, ctx, charges: BTreeMap::new(), kept: Vec::new(), refusal: None }
    }

    /// In the order of the directories' ids, without those for which all comes to nothing.
    pub fn finish(mut self) -> Found {
        self.settle_all();
        let charges = self.charges.into_iter().filter(|(_, amounts)| !amounts.is_zero());
        let charges = charges.map(|(directory, amounts)| Charge { directory, amounts }).collect();
        (charges, self.kept, self.refusal)
    }

    /// The directories with a quota among this one and those above it, from the innermost. A directory that was
    /// deleted and is kept for a snapshot counts where it was.
    fn quotas_above(&self, directory: u32) -> impl Iterator<Item = (u32, InodeId, &'ns Quota)> + use<'ns> {
        let ns = self.ns;
        let up = std::iter::successors((directory != NONE).then_some(directory), |at| {
            Some(ns.counted_in(*at)).filter(|parent| *parent != NONE)
        });
        up.filter_map(|at| {
            let inode = ns.tree.inode(at);
            let quota = ns.tree.quotas.get(&inode.id()).filter(|_| inode.has_quota())?;
            Some((at, inode.id(), quota))
        })
    }

    /// What a whole subtree counts for under this policy. If that needs a look first the answer is of no use: see
    /// [`crate::Looks`].
    pub fn amounts(&self, top: u32, policy: u8, died: SnapshotId, anew: bool) -> Amounts {
        let top = self.ns.tree.inode(top).id();
        self.ns.amounts_for(self.ctx, Counted { top, policy, died, anew })
    }

    /// Whether a directory, or one above it, has a quota.
    pub fn is_charged(&self, directory: u32) -> bool {
        self.quotas_above(directory).next().is_some()
    }

    /// Notes that an inode which is moved away goes on to count, for these amounts, in the directory where it was,
    /// because a snapshot keeps it.
    pub fn keep(&mut self, inode: InodeId, amounts: Amounts) {
        self.kept.push((inode, amounts));
    }

    /// Adds to a directory and all above it.
    pub fn charge(&mut self, directory: u32, amounts: Amounts) {
        if amounts.is_zero() {
            return;
        }
        for (_, id, _) in self.quotas_above(directory) {
            *self.charges.entry(id).or_default() += amounts;
        }
    }

    /// Adds to one directory, if it has a quota.
    pub fn charge_only(&mut self, directory: u32, amounts: Amounts) {
        if self.ns.tree.inode(directory).has_quota() {
            *self.charges.entry(self.ns.tree.inode(directory).id()).or_default() += amounts;
        }
    }

    /// The quotas above a directory, up to the first directory that is `end` or above it.
    fn quotas_below(
        &self,
        directory: u32,
        end: Option<u32>,
    ) -> impl Iterator<Item = (u32, InodeId, &'ns Quota)> + use<'ns> {
        let ns = self.ns;
        self.quotas_above(directory).take_while(move |(at, _, _)| !is_from(ns, *at, end))
    }

    /// HDFS's `verifyQuota`: whether a directory and those above it, up to `end`, have room for so much more
    /// than was charged before. The innermost that has not is named.
    pub fn verify(&mut self, directory: u32, more: Amounts, end: Option<u32>) {
        if self.refusal.is_some() || more.adds_nothing() {
            return;
        }
        for (at, id, quota) in self.quotas_below(directory, end) {
            let charged = self.charges.get(&id).copied().unwrap_or_default();
            let refusal = match self.ns.tree.shares.get(&id) {
                None => {
                    let mut used = quota.used;
                    used += charged;
                    self.exceeded(at, &quota.limits, &used, &more)
                }
                Some(share) => self.of_share(at, quota, share, charged, &more),
            };
            if refusal.is_some() {
                self.refusal = refusal;
                return;
            }
        }
    }

    fn exceeded(&self, at: u32, limits: &Amounts, used: &Amounts, more: &Amounts) -> Option<FsError> {
        Some(exceeded(limits, used, more)?.error(&self.ns.tree.path_of(at)))
    }

    /// Whether this group may use so much more of a quota that it shares with others. It is refused by what all groups have told, if that is newer than the
    /// call and nothing has changed here since; otherwise the call lacks something, and the error reaches nobody.
    fn of_share(
        &self,
        at: u32,
        quota: &Quota,
        share: &Share,
        charged: Amounts,
        more: &Amounts,
    ) -> Option<FsError> {
        let own = self.ns.group();
        let mut used = quota.used;
        used += charged;
        let missing = quota.missing(&share.allowed_to(own), &used, more);
        if missing.is_zero() {
            return None;
        }
        // What the service does of itself no quota refuses.
        let room = self.ctx.room?;
        if share.is_news(room.since, own, &quota.used) {
            let mut all = share.told_sum();
            all += charged;
            if let Some(refusal) = self.exceeded(at, &quota.limits, &all, more) {
                return Some(refusal);
            }
        }
        let mut wanted = charged;
        wanted += *more;
        let directory = self.ns.tree.inode(at).id();
        let (wanted, missing) = ([(own, wanted)].into(), [(own, missing)].into());
        Some(lacking(room, Lack { directory, wanted, missing }))
    }

    /// As [`Self::verify`], for a directory that the root group moves together with the files that other groups have in it. `replaced`: a directory that goes away for it; other
    /// groups may have files of that one which snapshots keep.
    pub fn verify_with_others(
        &mut self,
        directory: u32,
        more: Amounts,
        moved: Counted,
        replaced: Option<u32>,
        end: Option<u32>,
    ) {
        let groups: Vec<GroupId> = self.ns.other_homes().collect();
        let (ns, ctx) = (self.ns, self.ctx);
        for (at, id, quota) in self.quotas_below(directory, end) {
            if self.refusal.is_some() {
                return;
            }
            let Some(share) = ns.tree.shares.get(&id) else { continue };
            let mut used = quota.used;
            used += self.charges.get(&id).copied().unwrap_or_default();
            let (mut wanted, mut missing) = (ByGroup::new(), ByGroup::new());
            let mut are_told = true;
            let mut note = |group: GroupId, used: &Amounts, more: Amounts| {
                are_told &= ctx.room.is_some_and(|room| share.is_news(room.since, group, used));
                wanted.insert(group, more);
                missing.insert(group, quota.missing(&share.allowed_to(group), used, &more));
            };
            note(GroupId::ROOT, &used, more);
            for group in &groups {
                let of_group = ctx.used(ns, id, *group);
                let mut more = ctx.amounts(ns, moved.top, *group, moved.policy);
                if let Some(replaced) = replaced {
                    let (id, policy) = (ns.tree.inode(replaced).id(), ns.tree.policy_of(replaced));
                    more -= ctx.amounts(ns, id, *group, policy);
                }
                note(*group, &of_group, more);
                used += of_group;
            }
            let together = sum(&wanted);
            if are_told {
                // Where all groups together come to use no more than before, no limit refuses it: one group may go beyond its allowance, as another one uses less.
                let of_more = |missing: &Amounts| {
                    missing.zip([&together], |missing, [together]| if together > 0 { missing } else { 0 })
                };
                missing.values_mut().for_each(|missing| *missing = of_more(missing));
            }
            if missing.values().all(Amounts::is_zero) {
                continue;
            }
            // What the others use is held until this is decided.
            let refusal = self.exceeded(at, &quota.limits, &used, &together);
            self.refusal =
                refusal.or_else(|| Some(lacking(ctx.room?, Lack { directory: id, wanted, missing })));
        }
    }

    /// What a file of another home counts for that has this name: a rename replaces it. A file that is being written counts without its bytes.
    pub fn told_amounts(&self, directory: u32, name: &str) -> Amounts {
        match self.ctx.file(self.ns, directory, name) {
            FileFact::None => Amounts::default(),
            FileFact::Busy { .. } => Amounts::ONE_INODE,
            FileFact::File(file) => {
                let inherited = self.ns.tree.policy_of(directory);
                let own = file.storage_policy;
                file.amounts(if own == POLICY_UNSPECIFIED { inherited } else { own })
            }
        }
    }

    /// As [`Self::verify`], for a file that comes to a home: room for so much more is needed in that group.
    pub fn verify_in(&mut self, directory: u32, group: GroupId, more: Amounts, end: Option<u32>) {
        if group == self.ns.group() {
            return self.verify(directory, more, end);
        }
        let (ns, ctx) = (self.ns, self.ctx);
        for (at, id, quota) in self.quotas_below(directory, end) {
            let Some((share, room)) = ns.tree.shares.get(&id).zip(ctx.room) else { continue };
            let used = ctx.used(ns, id, group);
            let missing = quota.missing(&share.allowed_to(group), &used, &more);
            if missing.is_zero() || self.refusal.is_some() {
                continue;
            }
            let is_news = share.is_news(room.since, group, &used);
            let refusal =
                is_news.then(|| self.exceeded(at, &quota.limits, &share.told_sum(), &more)).flatten();
            let lack =
                || Lack { directory: id, wanted: [(group, more)].into(), missing: [(group, missing)].into() };
            self.refusal = refusal.or_else(|| Some(lacking(room, lack())));
        }
    }

    /// A file that moves to another group counts there on other media than before, in this directory and those above it. No limit refuses that, but the
    /// other group needs an allowance for it: see [`Self::settle_one`]. What this group itself comes to use is settled at the end.
    pub fn settle_in(&mut self, directory: u32, group: GroupId, more: Amounts) {
        if group == self.ns.group() || more.adds_nothing() {
            return;
        }
        for (_, id, _) in self.quotas_above(directory) {
            let used = self.ctx.used(self.ns, id, group);
            self.settle_one(id, group, &used, more);
        }
    }

    /// Settles everything that the edit adds in this group. That includes amounts that no limit refuses, such as those of files that snapshots keep.
    fn settle_all(&mut self) {
        if self.ns.tree.shares.is_empty() {
            return;
        }
        let own = self.ns.group();
        for (id, more) in std::mem::take(&mut self.charges) {
            let used = self.ns.tree.quotas.get(&id).map(|quota| quota.used).unwrap_or_default();
            self.settle_one(id, own, &used, more);
            self.charges.insert(id, more);
        }
    }

    /// Where groups share a quota, a group needs an allowance for all that it comes to use. If there is none, all groups have to tell what they use, and may use
    /// no more than that before they ask.
    fn settle_one(&mut self, id: InodeId, group: GroupId, used: &Amounts, more: Amounts) {
        let tree = &self.ns.tree;
        let Some((share, quota)) = tree.shares.get(&id).zip(tree.quotas.get(&id)) else { return };
        let Some(room) = self.ctx.room.filter(|_| self.refusal.is_none()) else { return };
        let missing = quota.missing(&share.allowed_to(group), used, &more);
        if !missing.is_zero() && !share.is_news(room.since, group, used) {
            let (wanted, missing) = ([(group, more)].into(), [(group, missing)].into());
            self.refusal = Some(lacking(room, Lack { directory: id, wanted, missing }));
        }
    }
}

/// Whether a directory is `end` or above it.
fn is_from(ns: &Namespace, at: u32, end: Option<u32>) -> bool {
    let Some(mut up) = end else { return false };
    while up != NONE {
        if up == at {
            return true;
        }
        up = ns.tree.inode(up).parent;
    }
    false
}

/// Notes what is lacking, unless something else was found before.
fn lacking(room: &Room, lack: Lack) -> FsError {
    if !room.is_lacking() {
        room.lacks(lack);
    }
    FsError::Retry(
        "Another group of metadata servers has what is left of a quota; try again in a moment.".into(),
    )
}

/// A limit that would be exceeded: its kind, its value, and the usage.
struct Exceeded {
    what: What,
    limit: i64,
    used: i64,
}

enum What {
    Inodes,
    Bytes,
    BytesOn(StorageType),
}

fn exceeded(limits: &Amounts, used: &Amounts, more: &Amounts) -> Option<Exceeded> {
    let check = |what: What, limit: i64, used: i64, more: i64| {
        let is_exceeded = limit >= 0 && more > 0 && used > limit.saturating_sub(more);
        is_exceeded.then(|| Exceeded { what, limit, used: used.saturating_add(more) })
    };
    check(What::Inodes, limits.inodes, used.inodes, more.inodes)
        .or_else(|| check(What::Bytes, limits.bytes, used.bytes, more.bytes))
        .or_else(|| {
            let kinds = StorageType::WITH_QUOTA.into_iter();
            kinds.enumerate().find_map(|(at, kind)| {
                check(What::BytesOn(kind), limits.by_type[at], used.by_type[at], more.by_type[at])
            })
        })
}

impl Exceeded {
    /// The texts of Hadoop's three exceptions.
    fn error(&self, path: &str) -> FsError {
        let Self { what, limit, used } = self;
        let (limit_text, used_text) = (in_binary_units(*limit), in_binary_units(*used));
        match what {
            What::Inodes => FsError::NamespaceQuotaExceeded(format!(
                "The NameSpace quota (directories and files) of directory {path} is exceeded: \
                 quota={limit} file count={used}"
            )),
            What::Bytes => FsError::SpaceQuotaExceeded(format!(
                "The DiskSpace quota of {path} is exceeded: quota = {limit} B = {limit_text} \
                 but diskspace consumed = {used} B = {used_text}"
            )),
            What::BytesOn(kind) => FsError::TypeQuotaExceeded(format!(
                "Quota by storage type : {kind} on path : {path} is exceeded. quota = {limit_text} \
                 but space consumed = {used_text}"
            )),
        }
    }
}

/// Hadoop's `long2String` with the unit B and two decimals, of which the last is rounded half up: `1 KB`, `1.50 MB`.
/// Not for negative numbers.
fn in_binary_units(bytes: i64) -> String {
    const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut unit = (bytes.max(1).ilog2() / 10) as usize;
    let size = 1i64 << (10 * unit);
    if bytes % size == 0 {
        return format!("{} {}", bytes / size, UNITS[unit]);
    }
    let decimal = |size: i64| {
        let hundredths = (i128::from(bytes) * 100 + i128::from(size / 2)) / i128::from(size);
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    };
    let mut text = decimal(size);
    if text.starts_with("1024") {
        unit += 1;
        text = decimal(size << 10);
    }
    format!("{text} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_named_as_hadoop_names_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.50 KB"),
            (26_752, "26.13 KB"),
            (26_751, "26.12 KB"),
            (402_653_184, "384 MB"),
            ((1 << 20) - 1, "1.00 MB"),
            (i64::MAX, "8.00 EB"),
        ] {
            assert_eq!(in_binary_units(bytes), text);
        }
    }
}
