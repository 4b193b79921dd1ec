//! The media of storages, and the policies that say which of them a file's replicas shall be on.
//!
//! Names, numbers and types are those of Hadoop 3.5.0's default suite (`BlockStoragePolicySuite`).

use std::fmt;

/// The medium of a storage, in Hadoop's words and order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageType {
    RamDisk,
    Ssd,
    #[default]
    Disk,
    Archive,
    Provided,
    Nvdimm,
}

impl StorageType {
    pub const ALL: [Self; 6] =
        [Self::RamDisk, Self::Ssd, Self::Disk, Self::Archive, Self::Provided, Self::Nvdimm];

    /// The types that a quota can limit. A replica on RAM disk is on its way to another medium, so it is not counted.
    pub const WITH_QUOTA: [Self; 5] = [Self::Ssd, Self::Disk, Self::Archive, Self::Provided, Self::Nvdimm];

    /// The place among [`Self::WITH_QUOTA`].
    pub fn quota_index(self) -> Option<usize> {
        Self::WITH_QUOTA.iter().position(|other| *other == self)
    }

    pub fn is_transient(self) -> bool {
        self == Self::RamDisk
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::RamDisk => "RAM_DISK",
            Self::Ssd => "SSD",
            Self::Disk => "DISK",
            Self::Archive => "ARCHIVE",
            Self::Provided => "PROVIDED",
            Self::Nvdimm => "NVDIMM",
        }
    }

    /// The medium of this name, in letters of any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for StorageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A storage policy: the media for the replicas of a block, and the media to fall back on if those are full or
/// missing.
#[derive(Debug, PartialEq, Eq)]
pub struct StoragePolicy {
    pub id: u8,
    pub name: &'static str,
    /// The replicas get one of these each; those beyond the last get the last.
    pub types: &'static [StorageType],
    /// The media to fall back on for a new block.
    pub creation_fallbacks: &'static [StorageType],
    /// The media to fall back on for a further copy of an existing block.
    pub replication_fallbacks: &'static [StorageType],
    /// A file takes it from its directory when it is created, and keeps it for ever.
    pub is_copied_on_create: bool,
}

/// No policy is set: the closest ancestor's counts, or else [`StoragePolicy::DEFAULT`].
pub const POLICY_UNSPECIFIED: u8 = 0;

use StorageType::{Archive, Disk, Nvdimm, Provided, RamDisk, Ssd};

const fn policy(
    id: u8,
    name: &'static str,
    types: &'static [StorageType],
    creation_fallbacks: &'static [StorageType],
    replication_fallbacks: &'static [StorageType],
) -> StoragePolicy {
    StoragePolicy { id, name, types, creation_fallbacks, replication_fallbacks, is_copied_on_create: false }
}

const fn with_disk(id: u8, name: &'static str, types: &'static [StorageType]) -> StoragePolicy {
    policy(id, name, types, &[Disk], &[Disk])
}

const fn mixed(id: u8, name: &'static str, types: &'static [StorageType]) -> StoragePolicy {
    policy(id, name, types, types, types)
}

static POLICIES: [StoragePolicy; 8] = [
    mixed(1, "PROVIDED", &[Provided, Disk]),
    policy(2, "COLD", &[Archive], &[], &[]),
    mixed(5, "WARM", &[Disk, Archive]),
    policy(7, "HOT", &[Disk], &[], &[Archive]),
    mixed(10, "ONE_SSD", &[Ssd, Disk]),
    with_disk(12, "ALL_SSD", &[Ssd]),
    with_disk(14, "ALL_NVDIMM", &[Nvdimm]),
    StoragePolicy { is_copied_on_create: true, ..with_disk(15, "LAZY_PERSIST", &[RamDisk, Disk]) },
];

impl StoragePolicy {
    /// HOT.
    pub const DEFAULT: u8 = 7;

    /// All policies, sorted by id.
    pub fn all() -> &'static [StoragePolicy] {
        &POLICIES
    }

    pub fn with_id(id: u8) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.id == id)
    }

    /// The policy of this name, in letters of any case.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.name.eq_ignore_ascii_case(name))
    }

    /// The policy that blocks follow whose file has this one: the default one for no policy, and for one
    /// that this version does not know.
    pub fn in_force(id: u8) -> &'static Self {
        let default = || Self::with_id(Self::DEFAULT).expect("the default policy is in the suite");
        Self::with_id(id).unwrap_or_else(default)
    }

    /// The media for so many replicas. Transient media are left out, because a replica there may be lost at any time.
    pub fn types_for(&self, replication: usize) -> Vec<StorageType> {
        let kinds = self.types.iter().copied();
        let mut chosen: Vec<_> = kinds.filter(|kind| !kind.is_transient()).take(replication).collect();
        if let Some(last) = self.types.last().filter(|last| !last.is_transient()) {
            chosen.resize(replication, *last);
        }
        chosen
    }

    /// The media of `held` beyond those for so many replicas. Hadoop: `chooseExcess`.
    pub fn types_too_many(&self, replication: usize, held: &[StorageType]) -> Vec<StorageType> {
        types_beyond(held, self.types_for(replication))
    }

    /// The media for the replicas that are still missing where some are on `held`, without those that are
    /// `unavailable`. May be fewer than are missing: then no medium is left that would do.
    pub fn types_missing(
        &self,
        replication: usize,
        held: &[StorageType],
        unavailable: &[StorageType],
        is_new_block: bool,
    ) -> Vec<StorageType> {
        let mut wanted = self.types_for(replication);
        let mut excess = Vec::new();
        for kind in held {
            match wanted.iter().position(|other| other == kind) {
                Some(at) => drop(wanted.remove(at)),
                None => excess.push(*kind),
            }
        }
        let fallbacks = if is_new_block { self.creation_fallbacks } else { self.replication_fallbacks };
        let fallback = fallbacks.iter().find(|kind| !unavailable.contains(kind));
        // From the end: what excess replicas make up for is found from the front.
        for at in (0..wanted.len()).rev() {
            if !unavailable.contains(&wanted[at]) {
                continue;
            }
            match fallback {
                Some(kind) => wanted[at] = *kind,
                None => drop(wanted.remove(at)),
            }
        }
        for kind in excess {
            if let Some(at) = wanted.iter().position(|other| *other == kind) {
                wanted.remove(at);
            }
        }
        wanted
    }
}

impl StoragePolicy {
    /// The text by which Hadoop's tools print a policy. It takes the policy's parts, because a server may know
    /// policies that this release does not.
    pub fn describe(
        id: u8,
        name: &str,
        types: &[StorageType],
        creation_fallbacks: &[StorageType],
        replication_fallbacks: &[StorageType],
    ) -> String {
        let list =
            |kinds: &[StorageType]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        format!(
            "BlockStoragePolicy{{{name}:{id}, storageTypes=[{}], creationFallbacks=[{}], replicationFallbacks=[{}]}}",
            list(types),
            list(creation_fallbacks),
            list(replication_fallbacks)
        )
    }
}

impl fmt::Display for StoragePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, types, creation_fallbacks, replication_fallbacks, .. } = self;
        f.write_str(&Self::describe(*id, name, types, creation_fallbacks, replication_fallbacks))
    }
}

/// The media of `kinds` without those of `others`, one for one.
pub fn types_beyond(kinds: &[StorageType], mut others: Vec<StorageType>) -> Vec<StorageType> {
    let mut beyond = kinds.to_vec();
    beyond.retain(|kind| match others.iter().position(|other| other == kind) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    });
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static StoragePolicy {
        StoragePolicy::named(name).expect(name)
    }

    #[test]
    fn replicas_beyond_the_list_get_its_last_type() {
        assert_eq!(named("one_ssd").types_for(3), [Ssd, Disk, Disk]);
        assert_eq!(named("WARM").types_for(1), [Disk]);
        assert_eq!(named("ALL_SSD").types_for(2), [Ssd, Ssd]);
        // "Do not return transient storage types."
        assert_eq!(named("LAZY_PERSIST").types_for(3), [Disk, Disk, Disk]);
        assert_eq!(named("HOT").types_for(0), []);
    }

    /// Cases of Hadoop's `TestBlockStoragePolicy`.
    #[test]
    fn what_is_missing_takes_a_fallback_where_its_medium_is_full() {
        let warm = named("WARM");
        assert_eq!(warm.types_missing(3, &[], &[], true), [Disk, Archive, Archive]);
        assert_eq!(warm.types_missing(3, &[], &[Archive], true), [Disk, Disk, Disk]);
        assert_eq!(warm.types_missing(3, &[], &[Disk], true), [Archive, Archive, Archive]);
        assert_eq!(warm.types_missing(3, &[], &[Disk, Archive], true), []);
        assert_eq!(warm.types_missing(3, &[Disk], &[], false), [Archive, Archive]);
        assert_eq!(warm.types_missing(3, &[Disk, Disk], &[], false), [Archive, Archive]);
        assert_eq!(warm.types_missing(3, &[Disk, Disk], &[Archive], false), [Disk]);
        let (hot, cold) = (named("HOT"), named("COLD"));
        assert_eq!(hot.types_missing(3, &[], &[Disk], true), []);
        assert_eq!(hot.types_missing(3, &[Disk], &[Disk], false), [Archive, Archive]);
        assert_eq!(hot.types_missing(3, &[Disk, Archive], &[Disk], false), [Archive]);
        assert_eq!(cold.types_missing(3, &[], &[Archive], false), []);
        assert_eq!(named("ALL_SSD").types_missing(3, &[], &[Ssd], true), [Disk, Disk, Disk]);
    }

    /// Cases of Hadoop's `TestBlockStoragePolicy`.
    #[test]
    fn what_is_too_much_is_on_media_that_the_policy_does_not_want() {
        let (hot, cold, warm) = (named("HOT"), named("COLD"), named("WARM"));
        assert_eq!(hot.types_too_many(3, &[Archive, Disk, Disk, Disk]), [Archive]);
        assert_eq!(hot.types_too_many(3, &[Disk, Disk, Disk, Disk]), [Disk]);
        assert_eq!(cold.types_too_many(3, &[Disk, Archive, Ssd]), [Disk, Ssd]);
        assert_eq!(warm.types_too_many(3, &[Disk, Archive, Disk, Archive, Archive]), [Disk, Archive]);
        assert_eq!(warm.types_too_many(1, &[Archive]), [Archive]);
        assert_eq!(named("LAZY_PERSIST").types_too_many(1, &[RamDisk, Disk]), [RamDisk]);
        assert_eq!(hot.types_too_many(2, &[]), []);
    }

    #[test]
    fn policies_print_as_hadoop_prints_them() {
        assert_eq!(
            named("HOT").to_string(),
            "BlockStoragePolicy{HOT:7, storageTypes=[DISK], creationFallbacks=[], replicationFallbacks=[ARCHIVE]}"
        );
        assert_eq!(StoragePolicy::in_force(POLICY_UNSPECIFIED), named("HOT"));
        assert_eq!(StoragePolicy::in_force(9), named("HOT"));
        let ids: Vec<u8> = StoragePolicy::all().iter().map(|policy| policy.id).collect();
        assert_eq!(ids, [1, 2, 5, 7, 10, 12, 14, 15]);
    }
}
