//! The limits and the usage of a directory with a quota.
//!
//! Few directories have one: quotas live in a table of their own, behind a flag in the directory's record. The
//! charges of edits keep the usage up to date (see [`crate::charge`]); nothing else changes it.

use crate::{
    codec::{DecodeError, Field, Reader, Writer, record_fields},
    digest::Digester,
};
use base::{InodeId, POLICY_UNSPECIFIED, StoragePolicy, StorageType};
use std::ops::{AddAssign, SubAssign};

/// Storage types that a quota can limit.
pub const TYPES: usize = StorageType::WITH_QUOTA.len();

/// No quota is set.
pub const NO_LIMIT: i64 = -1;

/// A number of inodes and of bytes: limits, a usage, or a difference of usages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Files and directories, the directory itself included.
    pub inodes: i64,
    /// Bytes times replication. A block that is being written counts as a full one.
    pub bytes: i64,
    /// Bytes on each of [`StorageType::WITH_QUOTA`], as far as storage policies are set that say so.
    pub by_type: [i64; TYPES],
}

/// A directory's limits and what lies below it. A limit below 0 is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub limits: Amounts,
    pub used: Amounts,
}

record_fields! { Quota { limits, used } }

impl Amounts {
    /// The limits of a directory without a quota.
    pub const UNLIMITED: Self = Self { inodes: NO_LIMIT, bytes: NO_LIMIT, by_type: [NO_LIMIT; TYPES] };

    /// The limits of the root as long as no others are set: HDFS gives it a name quota that cannot be exceeded.
    pub const UNLIMITED_ROOT: Self = Self { inodes: i64::MAX, ..Self::UNLIMITED };

    /// One file or directory without bytes.
    pub const ONE_INODE: Self = Self { inodes: 1, bytes: 0, by_type: [0; TYPES] };

    pub fn of_type(&self, kind: StorageType) -> i64 {
        kind.quota_index().map_or(0, |at| self.by_type[at])
    }

    /// The limits of a directory for which none was ever set.
    pub fn default_limits(is_root: bool) -> Self {
        if is_root { Self::UNLIMITED_ROOT } else { Self::UNLIMITED }
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        [self.inodes, self.bytes].into_iter().chain(self.by_type)
    }

    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Whether no amount rises.
    pub(crate) fn adds_nothing(&self) -> bool {
        self.numbers().all(|number| number <= 0)
    }

    pub(crate) fn no_less_than_zero(&self) -> Self {
        self.zip([], |number, []| number.max(0))
    }

    /// Adds; what is too much for a number is the greatest one.
    pub fn add_saturating(&mut self, other: Self) {
        self.each(other, i64::saturating_add);
    }

    /// For each amount: what `of` makes of it and of the same amount of the others.
    pub(crate) fn zip<const N: usize>(&self, others: [&Self; N], of: impl Fn(i64, [i64; N]) -> i64) -> Self {
        Self {
            inodes: of(self.inodes, others.map(|other| other.inodes)),
            bytes: of(self.bytes, others.map(|other| other.bytes)),
            by_type: std::array::from_fn(|at| of(self.by_type[at], others.map(|other| other.by_type[at]))),
        }
    }

    fn each(&mut self, other: Self, change: fn(i64, i64) -> i64) {
        self.inodes = change(self.inodes, other.inodes);
        self.bytes = change(self.bytes, other.bytes);
        for (mine, other) in self.by_type.iter_mut().zip(other.by_type) {
            *mine = change(*mine, other);
        }
    }
}

/// Wrapping: `apply` must carry out whatever a journal says.
impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.each(other, i64::wrapping_add);
    }
}

impl SubAssign for Amounts {
    fn sub_assign(&mut self, other: Self) {
        self.each(other, i64::wrapping_sub);
    }
}

impl std::ops::Neg for Amounts {
    type Output = Self;

    fn neg(self) -> Self {
        let mut negated = Self::default();
        negated -= self;
        negated
    }
}

/// Inodes and bytes; then a byte that says which storage types follow, and theirs: mostly none.
impl Field for Amounts {
    fn encode(&self, out: &mut Writer<'_>) {
        self.inodes.encode(out);
        self.bytes.encode(out);
        let bit = |(at, number): (usize, &i64)| u8::from(*number != 0) << at;
        out.byte(self.by_type.iter().enumerate().map(bit).sum());
        self.by_type.iter().filter(|number| **number != 0).for_each(|number| number.encode(out));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut amounts =
            Self { inodes: i64::decode(input)?, bytes: i64::decode(input)?, by_type: [0; TYPES] };
        let which = input.byte()?;
        if which >> TYPES != 0 {
            return Err(input.malformed("a storage type that is not known"));
        }
        for at in (0..TYPES).filter(|at| which >> at & 1 == 1) {
            amounts.by_type[at] = i64::decode(input)?;
        }
        Ok(amounts)
    }
}

impl Quota {
    /// Part of the tree's digest.
    pub(crate) fn digest(&self, directory: InodeId) -> u64 {
        let mut digester = Digester::new(b'q');
        digester.number(directory.0);
        let numbers = self.limits.numbers().chain(self.used.numbers());
        numbers.for_each(|number| digester.number(number as u64));
        digester.finish()
    }
}

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
