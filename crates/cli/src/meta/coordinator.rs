//! Asks the coordinator before a directory is made, so that a `format` that could not go well leaves nothing behind.

use anyhow::{Context, bail};
use base::{GroupId, MemberId};
use coord::{Coordinator, MemberRecord, ZooKeeperConfig};
use std::sync::Arc;

/// There is no cluster yet. One that no server was made for is none: the order that began it came no further, and this one goes on with it.
pub fn check_before_format(zookeeper: &ZooKeeperConfig) -> anyhow::Result<()> {
    let coordinator = reach(zookeeper)?;
    let text = coord::wait(|done| coordinator.read_cluster(done))?;
    let is_made = coord::wait(|done| coordinator.read(GroupId::ROOT, done))?.is_some();
    match text.filter(|_| is_made) {
        None => Ok(()),
        Some(text) => bail!(
            "there is a cluster already below {} of ZooKeeper {}{}: join it with --join, or name a path of its own for \
             the new one in `coordinator`",
            zookeeper.root,
            zookeeper.servers,
            id_of(&text).map(|id| format!(" ({id})")).unwrap_or_default()
        ),
    }
}

/// The group that a member is to join, and whether the cluster has it. Without `wanted` it is the group that has the member on its list, and
/// the root group if none has.
pub fn group_of(
    zookeeper: &ZooKeeperConfig,
    member: MemberId,
    wanted: Option<u32>,
) -> anyhow::Result<(GroupId, bool)> {
    let coordinator = reach(zookeeper)?;
    let mut groups = coord::wait(|done| coordinator.groups(done))?;
    groups.sort();
    if !groups.contains(&GroupId::ROOT) {
        bail!(
            "there is no cluster below {} of ZooKeeper {}: make one on its first server with `clover meta format`, or \
             check the path in `coordinator`",
            zookeeper.root,
            zookeeper.servers
        );
    }
    if let Some(wanted) = wanted.map(GroupId) {
        return Ok((wanted, groups.contains(&wanted)));
    }
    for group in groups {
        let view = coord::wait(|done| coordinator.read(group, done))?.map(|versioned| versioned.view);
        if view.is_some_and(|view| view.members.contains(&member)) {
            return Ok((group, true));
        }
    }
    Ok((GroupId::ROOT, true))
}

/// The group has this member on its list, and nobody else has its number.
pub fn check_before_join(
    zookeeper: &ZooKeeperConfig,
    group: GroupId,
    member: MemberId,
    is_replacement: bool,
) -> anyhow::Result<()> {
    let coordinator = reach(zookeeper)?;
    let view = coord::wait(|done| coordinator.read(group, done))?.map(|versioned| versioned.view);
    let view = view.with_context(|| format!("the cluster has no group {group}"))?;
    if !view.members.contains(&member) {
        let members: Vec<_> = view.members.iter().map(ToString::to_string).collect();
        let of = if group == GroupId::ROOT { String::new() } else { format!(" --group {group}") };
        bail!(
            "member {member} is not in the group, whose members are {}: an operator takes it in first, with `clover \
             admin group add {member}{of}`",
            members.join(", ")
        );
    }
    let records = coord::wait(|done| coordinator.read_members(group, done))?;
    let is_known = view.in_sync.iter().chain(&view.exiles).any(|store| store.member == member);
    let record = records.iter().find(|record| record.life.store.member == member);
    if (is_known || record.is_some()) && !is_replacement {
        bail!("{}", taken(member, record));
    }
    Ok(())
}

fn taken(member: MemberId, record: Option<&MemberRecord>) -> String {
    let place = record.map(|record| format!(": it last ran at {}", record.rpc_address)).unwrap_or_default();
    format!(
        "there is a member {member} already{place}. Give this server a number of its own; or, if what that member had \
         is lost for good, say --replace, which makes its old directory void"
    )
}

/// The coordinator, which answers.
pub fn reach(zookeeper: &ZooKeeperConfig) -> anyhow::Result<Arc<dyn Coordinator>> {
    let coordinator = coord::ZooKeeper::connect(zookeeper.clone())?;
    let answer = coord::wait(|done| coordinator.read_cluster(done));
    answer.with_context(|| {
        format!(
            "nothing was made: ZooKeeper {} does not answer; is it running, and is this its address?",
            zookeeper.servers
        )
    })?;
    Ok(coordinator)
}

fn id_of(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().find_map(|line| line.strip_prefix("clusterID=")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_taken_is_told_with_its_place() {
        let record = MemberRecord {
            life: base::MemberLife {
                store: base::MemberStore { member: MemberId(2), generation: 0 },
                boot: 1,
            },
            peer_address: "h:1".into(),
            rpc_address: "h:2".into(),
            http_address: String::new(),
        };
        let text = taken(MemberId(2), Some(&record));
        assert!(text.starts_with("there is a member 2 already: it last ran at h:2."), "{text}");
        assert!(taken(MemberId(2), None).starts_with("there is a member 2 already. Give"));
    }

    #[test]
    fn the_cluster_is_named() {
        assert_eq!(id_of(b"layout=1\nclusterID=CID-x\n").as_deref(), Some("CID-x"));
        assert_eq!(id_of(&[0xff]), None);
    }
}
