//! Which files' storages fit their storage policies, as Hadoop's fsck sums it up.

use super::java;
use base::StorageType;
use client::KnownPolicy;
use std::{collections::BTreeMap, fmt::Write};

/// The id of the policy of files for which none is set.
const UNSPECIFIED: u8 = 0;
const DEFAULT: u8 = 7;

/// Counts blocks by the policy of their file and the types of the storages that have their replicas.
#[derive(Debug)]
pub struct Policies {
    known: Vec<KnownPolicy>,
    counts: BTreeMap<(u8, Vec<StorageType>), u64>,
}

impl Policies {
    pub fn new(mut known: Vec<KnownPolicy>) -> Self {
        known.sort_by_key(|policy| policy.id);
        Self { known, counts: BTreeMap::new() }
    }

    /// `policy`: the id of the file's. `types`: those of the storages with a replica.
    pub fn add(&mut self, policy: u8, mut types: Vec<StorageType>) {
        types.sort_unstable();
        let policy = if policy == UNSPECIFIED { DEFAULT } else { policy };
        *self.counts.entry((policy, types)).or_default() += 1;
    }

    /// Both tables: blocks that fit their policies and blocks that do not, the most frequent ones first.
    pub fn table(&self) -> String {
        let mut rows: Vec<_> = self.counts.iter().collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let total: u64 = self.counts.values().sum();
        let mut fitting = String::new();
        let mut others = String::new();
        for ((policy, types), count) in rows {
            let share = java::percent_of_four(*count, total);
            let actual = self.policy_of(types);
            let name = actual.map(|policy| format!("({})", policy.name)).unwrap_or_default();
            let described = format!("{}{name}", described(types));
            if actual.is_some_and(|actual| actual.id == *policy) {
                let _ = writeln!(fitting, "{described:<25} {count:>10}  {share:>20}");
            } else {
                let wanted = self.known.iter().find(|known| known.id == *policy);
                let wanted = wanted.map_or("", |wanted| &*wanted.name);
                let _ = writeln!(others, "{described:<35} {wanted:<20} {count:>10}  {share:>20}");
            }
        }
        let others = match others.is_empty() {
            true => "\nAll blocks satisfy specified storage policy.\n".to_owned(),
            false => format!(
                "\nBlocks NOT satisfying the specified storage policy:\nStorage Policy                  Specified \
                 Storage Policy      # of blocks       % of blocks\n{others}"
            ),
        };
        format!(
            "\nBlocks satisfying the specified storage policy:\nStorage Policy                  # of blocks       % of \
             blocks\n{fitting}{others}"
        )
    }

    /// The first policy that such storages fit: its types come first, and the last of them may repeat.
    fn policy_of(&self, types: &[StorageType]) -> Option<&KnownPolicy> {
        self.known.iter().find(|policy| {
            let mut wanted = policy.types.clone();
            wanted.sort_unstable();
            let Some(last) = wanted.last() else { return false };
            types.starts_with(&wanted) && types[wanted.len()..].iter().all(|kind| kind == last)
        })
    }
}

fn described(types: &[StorageType]) -> String {
    let mut counts: BTreeMap<StorageType, usize> = BTreeMap::new();
    for kind in types {
        *counts.entry(*kind).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(kind, count)| format!("{}:{count}", kind.name())).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use StorageType::{Archive, Disk, Ssd};

    fn policy(id: u8, name: &str, types: &[StorageType]) -> KnownPolicy {
        KnownPolicy {
            id,
            name: name.into(),
            types: types.to_vec(),
            creation_fallbacks: Vec::new(),
            replication_fallbacks: Vec::new(),
        }
    }

    fn policies() -> Policies {
        Policies::new(vec![
            policy(7, "HOT", &[Disk]),
            policy(2, "COLD", &[Archive]),
            policy(5, "WARM", &[Disk, Archive]),
            policy(10, "ONE_SSD", &[Ssd, Disk]),
        ])
    }

    #[test]
    fn blocks_that_fit_come_before_blocks_that_do_not() {
        let mut policies = policies();
        for _ in 0..2 {
            policies.add(0, vec![Disk, Disk, Disk]);
        }
        policies.add(10, vec![Disk, Ssd, Disk]);
        policies.add(2, vec![Disk, Archive, Ssd]);
        assert_eq!(
            policies.table(),
            "\nBlocks satisfying the specified storage policy:\n\
             Storage Policy                  # of blocks       % of blocks\n\
             DISK:3(HOT)                        2              50.0000%\n\
             SSD:1,DISK:2(ONE_SSD)              1              25.0000%\n\
             \nBlocks NOT satisfying the specified storage policy:\n\
             Storage Policy                  Specified Storage Policy      # of blocks       % of blocks\n\
             SSD:1,DISK:1,ARCHIVE:1              COLD                          1              25.0000%\n"
        );
    }

    #[test]
    fn a_tree_without_blocks_has_empty_tables() {
        let table = policies().table();
        assert!(table.ends_with("% of blocks\n\nAll blocks satisfy specified storage policy.\n"), "{table}");
    }
}
