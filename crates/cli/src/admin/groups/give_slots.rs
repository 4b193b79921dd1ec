//! `clover admin groups give-slots`: a further group becomes the home of files.

use super::look::{Group, Look};
use crate::admin::{confirm::is_confirmed, servers::Servers};
use anyhow::{Context, bail};
use base::GroupId;
use proto::clover::admin::{GiveSlotsRequestProto, GiveSlotsResponseProto};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The number of the group.
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(2..=128))]
    group: u32,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

pub async fn run(servers: &Servers, args: Args, is_json: bool) -> anyhow::Result<ExitCode> {
    let look = Look::at(servers).await?;
    let root = look.group(GroupId::ROOT.0).context("no server tells of the root group")?;
    let group = look.group(args.group).with_context(|| {
        format!(
            "the namespace has no group {0}: its first member makes it, with `clover meta format --group {0} --join --config FILE`",
            args.group
        )
    })?;
    if group.known.slots > 0 {
        return tell(args.group, group.known.slots, false, is_json);
    }
    if let Some(obstacle) = obstacle(&look, root, group) {
        bail!("{obstacle}. Nothing was done");
    }
    for warning in warnings(root, group) {
        eprintln!("WARNING: {warning}.");
    }
    // Before anybody is asked.
    servers.secret()?;
    let question = format!(
        "Files of new directories will be in group {} as well, and there is no way back yet. Go on?",
        args.group
    );
    if !args.yes && (is_json || !is_confirmed(&question)?) {
        return Ok(ExitCode::FAILURE);
    }
    let root = root.itself.as_ref().context("nobody of the root group answers; nothing was done")?;
    let request = GiveSlotsRequestProto { group: args.group };
    let done: GiveSlotsResponseProto = servers.order(root, "giveSlots", &request).await?;
    tell(args.group, done.slots, true, is_json)
}

fn tell(group: u32, slots: u32, is_new: bool, is_json: bool) -> anyhow::Result<ExitCode> {
    match (is_json, is_new) {
        (true, _) => println!("{}", json!({"group": group, "slots": slots, "is_new": is_new})),
        (false, false) => println!("Group {group} has {slots} slots already; nothing was done."),
        (false, true) => {
            println!("Group {group} has {slots} slots: new directories have their files there from here on.");
            println!(
                "`clover admin where PATH` tells the group of a directory. Older directories stay where they are."
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the group cannot hold files now.
fn obstacle(look: &Look, root: &Group, group: &Group) -> Option<String> {
    let number = group.known.group;
    if !group.known.is_made {
        return Some(format!(
            "group {number} was added, and no member of it was made: `clover meta format --group {number} --join --config FILE` \
             on its first server"
        ));
    }
    let Some(active) = group.active() else { return Some(format!("group {number} has no active")) };
    let Some(log) = &group.log else {
        return Some(format!("member {active}, the active of group {number}, does not answer"));
    };
    if let Some(trouble) = &log.trouble {
        return Some(format!("group {number} cannot follow the directory log: {trouble}"));
    }
    if look.root_log().is_none() {
        return Some("the root group, which takes this order, has no active that answers".to_owned());
    }
    if !look.follower(number).is_some_and(|follower| follower.has_session && follower.is_leased) {
        return Some(format!("group {number} does not follow the root group's directories yet"));
    }
    if group.data_servers() == Some(0) && root.data_servers() != Some(0) {
        return Some(format!(
            "no data server knows group {number}, so that no file could be written there: name its members in \
             metadata_servers of all data servers, and start these again"
        ));
    }
    None
}

/// What an operator should know before files are there.
fn warnings(root: &Group, group: &Group) -> Vec<String> {
    let (number, in_sync) = (group.known.group, group.in_sync());
    let mut warnings = Vec::new();
    if in_sync.len() < 2 {
        warnings.push(format!(
            "only one member of group {number} is in sync: if its disk is lost, the names of the group's files are lost"
        ));
    }
    if let (Some(here), Some(there)) = (group.data_servers(), root.data_servers())
        && here < there
    {
        warnings.push(format!(
            "{here} data servers know group {number}, and {there} the root group: blocks of its files are on the former only"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::clover::admin::{
        DirectoryLogFollowerProto, GetDirectoryLogResponseProto, GetGroupResponseProto, MemberProto,
        NamespaceGroupProto, StoreProto, ViewProto,
    };

    /// A group that leads itself, with so many members in sync and so many data servers.
    fn group(number: u32, in_sync: u32, data_servers: u32) -> Group {
        let active = number * 10;
        let store = |member| StoreProto { member, generation: 0 };
        let view = ViewProto {
            active: Some(active),
            in_sync: (active..active + in_sync).map(store).collect(),
            ..ViewProto::default()
        };
        let member =
            MemberProto { member: active, data_servers: Some(data_servers), ..MemberProto::default() };
        Group {
            known: NamespaceGroupProto { group: number, is_made: true, ..NamespaceGroupProto::default() },
            itself: Some(GetGroupResponseProto {
                group: number,
                view: Some(view),
                members: vec![member],
                ..GetGroupResponseProto::default()
            }),
            log: Some(GetDirectoryLogResponseProto {
                group: number,
                leads: true,
                ..GetDirectoryLogResponseProto::default()
            }),
        }
    }

    fn two(change: impl FnOnce(&mut Group, &mut Group)) -> Look {
        let (mut root, mut second) = (group(1, 2, 3), group(2, 2, 3));
        let follower =
            DirectoryLogFollowerProto { group: 2, has_session: true, is_leased: true, ..Default::default() };
        root.log.as_mut().unwrap().groups.push(follower);
        change(&mut root, &mut second);
        Look { cluster_id: "CID".into(), groups: vec![root, second] }
    }

    fn said(look: &Look) -> String {
        obstacle(look, &look.groups[0], &look.groups[1]).unwrap_or_default()
    }

    #[test]
    fn a_group_that_follows_and_has_data_servers_can_hold_files() {
        let look = two(|_, _| ());
        assert_eq!(said(&look), "");
        assert!(warnings(&look.groups[0], &look.groups[1]).is_empty());
    }

    #[test]
    fn what_stands_in_the_way_is_told_with_its_remedy() {
        type Change = fn(&mut Group, &mut Group);
        let cases: [(Change, &str); 7] = [
            (|_, second| second.known.is_made = false, "clover meta format --group 2 --join"),
            (|_, second| second.itself.as_mut().unwrap().view.as_mut().unwrap().active = None, "no active"),
            (|_, second| second.log = None, "member 20, the active of group 2, does not answer"),
            (|_, second| second.log.as_mut().unwrap().trouble = Some("another log".into()), "another log"),
            (|root, _| root.log = None, "the root group, which takes this order"),
            (|root, _| root.log.as_mut().unwrap().groups[0].is_leased = false, "does not follow"),
            (
                |_, second| second.itself.as_mut().unwrap().members[0].data_servers = Some(0),
                "metadata_servers",
            ),
        ];
        for (change, expected) in cases {
            let said = said(&two(change));
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_lone_copy_and_missing_data_servers_are_told() {
        let look = two(|_, second| *second = group(2, 1, 2));
        let warnings = warnings(&look.groups[0], &look.groups[1]);
        assert!(warnings[0].contains("only one member of group 2"), "{warnings:?}");
        assert!(warnings[1].contains("2 data servers know group 2, and 3 the root group"), "{warnings:?}");
        assert_eq!(said(&look), "");
    }
}
