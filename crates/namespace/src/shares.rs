//! What each group may use of a directory's quota.
//!
//! The limits of a quota hold for all groups together. So each group has an *allowance* of every quota, and charges its own files against that; the
//! root group counts directories as well. The entries of the directory log that hand out allowances ([`crate::ops::allot`]) are the same in every group, so all groups know all
//! allowances. A group that lacks one asks the root group, which gives from what is free, or takes back what nobody uses first.

use crate::{
    codec::{DecodeError, Field, Reader, Writer, record_fields},
    digest::Digester,
    quota::{Amounts, Quota},
};
use base::{GroupId, InodeId, directory_log::Dix};
use std::{cell::RefCell, collections::BTreeMap};

/// Amounts of several groups.
pub type ByGroup = BTreeMap<GroupId, Amounts>;

/// How the groups share a directory's quota. An amount that has no limit means nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// What each group may use. A group that is not here may use nothing.
    pub allowed: ByGroup,
    /// The part of the limits that no group is allowed to use yet. The root group gives from it.
    pub free: Amounts,
    /// The entry of the directory log with which all groups told what they use, and nothing unused was left to any group but those that were given
    /// something then. `Dix(0)`: there was none.
    pub told_at: Dix,
    /// What they used then.
    pub told: ByGroup,
}

record_fields! { Share { allowed, free, told_at, told } }

/// A call that needs more of a quota than groups may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    pub directory: InodeId,
    /// By how much each group's usage is to rise.
    pub wanted: ByGroup,
    /// By how much each group's allowance has to rise for that.
    pub missing: ByGroup,
}

record_fields! { Lack { directory, wanted, missing } }

/// Whether a call has asked the root group for an allowance of a quota that groups share, and what the last plan of this call lacked.
#[derive(Debug, Default)]
pub struct Room {
    /// The call has asked for allowances, and the first answer came with this entry of the directory log. An older word of the groups refuses nothing. A later
    /// answer, which may be about another quota, does not make the word about this one old.
    pub since: Option<Dix>,
    lack: RefCell<Option<Lack>>,
}

impl Room {
    pub fn since(since: Option<Dix>) -> Self {
        Self { since, lack: RefCell::default() }
    }

    /// What the last plan lacks. Whatever that plan came to is of no use.
    pub fn take_lack(&self) -> Option<Lack> {
        self.lack.take()
    }

    pub(crate) fn is_lacking(&self) -> bool {
        self.lack.borrow().is_some()
    }

    pub(crate) fn lacks(&self, lack: Lack) {
        self.lack.replace(Some(lack));
    }
}

impl Share {
    pub fn allowed_to(&self, group: GroupId) -> Amounts {
        self.allowed.get(&group).copied().unwrap_or_default()
    }

    /// What all groups together used when they told it last.
    pub fn told_sum(&self) -> Amounts {
        sum(&self.told)
    }

    /// Whether what groups told with that entry, or later, is how it still is in this group.
    pub fn is_news(&self, since: Option<Dix>, group: GroupId, used: &Amounts) -> bool {
        since.is_some_and(|since| since > Dix(0) && self.told_at >= since)
            && self.told.get(&group) == Some(used)
    }

    pub(crate) fn digest(&self, directory: InodeId) -> u64 {
        let mut digester = Digester::new(b'h');
        digester.number(directory.0);
        let mut bytes = Vec::new();
        self.encode(&mut Writer(&mut bytes));
        digester.bytes(&bytes);
        digester.finish()
    }
}

pub(crate) fn sum(of: &ByGroup) -> Amounts {
    let mut sum = Amounts::default();
    of.values().for_each(|amounts| sum.add_saturating(*amounts));
    sum
}

/// Whether something limits this amount. The root of a tree has a limit of names that nobody reaches.
pub(crate) fn is_limit(limit: i64) -> bool {
    (0..i64::MAX).contains(&limit)
}

impl Quota {
    /// By how much an allowance has to rise so that so much more may be used; zero where nothing is limited.
    pub(crate) fn missing(&self, allowed: &Amounts, used: &Amounts, more: &Amounts) -> Amounts {
        self.limits.zip([allowed, used, more], |limit, [allowed, used, more]| {
            let is_asked = is_limit(limit) && more > 0;
            if is_asked { used.saturating_add(more).saturating_sub(allowed).max(0) } else { 0 }
        })
    }
}

impl Field for Dix {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.0);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.number()?))
    }
}

/// The number of groups, and each with its amounts, rising.
impl Field for ByGroup {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.len() as u64);
        for (group, amounts) in self {
            out.number(group.0.into());
            amounts.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut by_group = Self::new();
        for _ in 0..input.number()? {
            let group = GroupId(input.number()?.try_into().unwrap_or(0));
            if !group.is_possible() || by_group.last_key_value().is_some_and(|(last, _)| *last >= group) {
                return Err(input.malformed("groups that are not in their order"));
            }
            by_group.insert(group, Amounts::decode(input)?);
        }
        Ok(by_group)
    }
}

/// The bytes of a lack, for the root group.
pub fn encode(lack: &Lack) -> Vec<u8> {
    let mut bytes = Vec::new();
    lack.encode(&mut Writer(&mut bytes));
    bytes
}

/// # Errors
/// These are not the bytes of a lack.
pub fn decode(bytes: &[u8]) -> Result<Lack, DecodeError> {
    let mut input = Reader::new(bytes);
    let lack = Lack::decode(&mut input)?;
    input.finish()?;
    Ok(lack)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lack() -> Lack {
        let amounts = |bytes| Amounts { inodes: 1, bytes, ..Amounts::default() };
        Lack {
            directory: InodeId::of_slot(64, 7),
            wanted: [(GroupId(1), amounts(5)), (GroupId(3), amounts(7))].into(),
            missing: [(GroupId(3), amounts(2))].into(),
        }
    }

    /// The bytes come from other servers.
    #[test]
    fn a_lack_comes_back_and_other_bytes_are_refused() {
        let good = encode(&lack());
        assert_eq!(decode(&good), Ok(lack()));
        for at in 0..good.len() {
            assert!(decode(&good[..at]).is_err(), "{at} bytes of {}", good.len());
            for byte in [0, 5, 0x7f, 0x80, 0xff] {
                let mut other = good.clone();
                other[at] = byte;
                // An error, or another lack; never a panic.
                let _ = decode(&other);
            }
        }
    }

    #[test]
    fn only_what_is_limited_can_be_missing() {
        let limits = Amounts { inodes: 10, ..Amounts::UNLIMITED };
        let quota = Quota { limits, used: Amounts::default() };
        let of = |inodes, bytes| Amounts { inodes, bytes, ..Amounts::default() };
        let missing = |more: Amounts| quota.missing(&of(4, 0), &of(3, 50), &more);
        assert_eq!(missing(of(1, 100)), of(0, 0));
        assert_eq!(missing(of(3, 100)), of(2, 0));
        assert_eq!(missing(of(-1, 100)), of(0, 0), "who needs no more lacks nothing");
        let root = Quota { limits: Amounts::UNLIMITED_ROOT, used: Amounts::default() };
        assert_eq!(root.missing(&of(0, 0), &of(3, 0), &of(1, 0)), of(0, 0), "a limit that nobody reaches");
    }
}
