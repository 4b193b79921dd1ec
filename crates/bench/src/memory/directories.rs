//! `clover bench memory --directories N`: what a directory costs each group of a namespace, for all groups have all
//! directories.
//!
//! The root group makes them, and a further group follows, through the plans and edits of a cluster: unique names of 24
//! bytes, a thousand directories in each, no files.

use crate::{
    allocator::allocated_by_this_thread,
    tree::{Caching, Tree},
};
use anyhow::{Context as _, ensure};
use base::{Chain, Epoch, GroupId, Level, Sn, TxId, directory_log::Point};
use namespace::{Edit, Namespace, Planned, ops};

const ABOVE: u64 = 1_000;
const SECOND: GroupId = GroupId(2);

/// Bytes of the directories, of each group that has them.
pub struct Report {
    directories: u64,
    root: i64,
    /// What a group has allocated that followed the root group while the directories were made.
    followed: i64,
    /// Of a group that has joined when they were there.
    joined: i64,
}

pub fn measure(directories: u64) -> anyhow::Result<Report> {
    let mut root = Tree::new(Caching::Nothing);
    let level = ops::raise_level::plan(&root.namespace, &root.context(), Level::NEWEST)?;
    root.carry_out(level)?;
    let added = ops::add_group::plan(&root.namespace, &root.context(), SECOND)?;
    root.carry_out(added)?;
    let given = ops::give_slots::plan(&root.namespace, &root.context(), SECOND)?;
    root.carry_out(given)?;
    let mut second = root.namespace.for_joining(2, SECOND)?;

    let (mut bytes, mut followed, mut entries) = (0, 0, 0);
    let before_all = root.namespace.counts().directories;
    for number in 0..directories {
        let request = ops::mkdirs::Request {
            path: format!("/bench/{:06}/directory-{number:014}", number / ABOVE),
            permission: 0o755,
            unmasked: None,
            create_parent: true,
        };
        let Planned::Edit(edit) = ops::mkdirs::plan(&root.namespace, &root.context(), &request)? else {
            anyhow::bail!("{} was there already", request.path);
        };
        let entry = Edit::from(edit);
        bytes += growth(|| root.apply_edit(&entry));
        entries += 1;
        followed += follow(&mut second, &root, &entry, entries)?;
    }
    let made = root.namespace.counts().directories - before_all;
    ensure!(second.counts().directories == root.namespace.counts().directories, "a group lacks directories");
    let before = allocated_by_this_thread();
    let joined = root.namespace.for_joining(3, SECOND)?;
    let report =
        Report { directories: made, root: bytes, followed, joined: allocated_by_this_thread() - before };
    drop(joined);
    Ok(report)
}

fn follow(second: &mut Namespace, root: &Tree, entry: &Edit, number: u64) -> anyhow::Result<i64> {
    let point = Point { dix: second.directory_log().dix.next(), chain: Chain(number) };
    let relay = second.follow(&root.context(), entry, point).map_err(|error| anyhow::anyhow!("{error}"));
    let relay = relay.context("following the root group")?;
    let at = TxId { epoch: Epoch(1), sn: Sn(number) };
    Ok(growth(|| second.apply(at, &relay)))
}

/// How many more bytes are allocated after the work than before it.
fn growth<T>(change: impl FnOnce() -> T) -> i64 {
    let before = allocated_by_this_thread();
    drop(change());
    allocated_by_this_thread() - before
}

impl Report {
    fn each(&self, bytes: i64) -> f64 {
        bytes as f64 / self.directories as f64
    }

    pub fn json(&self) -> serde_json::Value {
        let part = |bytes: i64| serde_json::json!({ "bytes": bytes, "bytes_a_directory": self.each(bytes) });
        serde_json::json!({
            "directories": self.directories,
            "name_bytes": 24,
            "root_group": part(self.root),
            "group_that_followed": part(self.followed),
            "group_that_joined": part(self.joined),
        })
    }

    pub fn text(&self) -> String {
        let line = |name: &str, bytes: i64| {
            format!("{name:<24}{bytes:>16} bytes{:>10.1} a directory\n", self.each(bytes))
        };
        [
            format!("{} directories of 24-byte names, {ABOVE} in each, no files\n", self.directories),
            line("root group", self.root),
            line("group that followed", self.followed),
            line("group that joined later", self.joined),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_pays_for_each_directory() -> anyhow::Result<()> {
        let report = measure(20_000)?;
        ensure!(report.directories == 20_021, "{}", report.text());
        for bytes in [report.root, report.followed, report.joined] {
            ensure!((50.0..400.0).contains(&report.each(bytes)), "{}", report.text());
        }
        Ok(())
    }
}
