//! Sums up what one edit charges, and finds the first quota that it exceeds.

use super::{Charge, Found};
use crate::{
    Context, Namespace,
    looks::Counted,
    quota::{Amounts, Quota},
    store::NONE,
};
use base::{FsError, InodeId, StorageType};
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
    pub fn finish(self) -> Found {
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
    pub fn amounts(&self, top: u32, policy: u8, is_attached: bool, anew: bool) -> Amounts {
        let top = self.ns.tree.inode(top).id();
        self.ns.amounts_for(self.ctx, Counted { top, policy, is_attached, anew })
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

    /// HDFS's `verifyQuota`: whether a directory and those above it, up to `end`, have room for so much more
    /// than was charged before. The innermost that has not is named.
    pub fn verify(&mut self, directory: u32, more: Amounts, end: Option<u32>) {
        if self.refusal.is_some() || more.adds_nothing() {
            return;
        }
        let below_end = self.quotas_above(directory).take_while(|(at, _, _)| !self.is_from(*at, end));
        for (at, id, quota) in below_end {
            let mut used = quota.used;
            used += self.charges.get(&id).copied().unwrap_or_default();
            if let Some(exceeded) = exceeded(&quota.limits, &used, &more) {
                self.refusal = Some(exceeded.error(&self.ns.tree.path_of(at)));
                return;
            }
        }
    }

    /// Whether a directory is `end` or above it.
    fn is_from(&self, at: u32, end: Option<u32>) -> bool {
        let Some(mut up) = end else { return false };
        while up != NONE {
            if up == at {
                return true;
            }
            up = self.ns.tree.inode(up).parent;
        }
        false
    }
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
