//! `clover admin group repair`: a coordinator that has lost history learns from the members what it knew.

use crate::admin::servers::{Servers, address_of, reason};
use anyhow::{Context, bail};
use proto::clover::admin::{
    GetGroupResponseProto, RepairViewRequestProto, RepairViewResponseProto, RoleProto,
};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Servers that are lost for good, as 1,3: what only they hold is given up.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    without: Vec<u32>,
    /// Write it. Otherwise the command only says what it would write.
    #[arg(long)]
    yes: bool,
}

pub async fn run(servers: &Servers, args: Args, is_json: bool) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let member = who_writes(&group).context("no member of the group answers")?;
    let address = address_of(&group, member)
        .with_context(|| format!("where member {member} listens is not known; is it running?"))?;
    let secret = &servers.secret()?;
    let ask = |is_confirmed: bool| {
        let request =
            RepairViewRequestProto { is_confirmed: Some(is_confirmed), without: args.without.clone() };
        let address = address.clone();
        async move {
            let answer = servers.give::<_, RepairViewResponseProto>(secret, &address, "repairView", &request);
            answer.await.map_err(|error| anyhow::anyhow!("member {member} ({address}): {}", reason(&error)))
        }
    };
    let plan = ask(false).await?.message.unwrap_or_default();
    let done = match args.yes {
        true => Some(ask(true).await?.message.unwrap_or_default()),
        false => None,
    };
    if is_json {
        let json =
            serde_json::json!({ "member": member, "plan": plan, "is_done": done.is_some(), "message": done });
        println!("{}", serde_json::to_string_pretty(&json)?);
    } else if let Some(done) = &done {
        println!("Member {member} has written the view: {done}.");
        println!(
            "Look at the group with `clover admin group`. No replica that belongs to no file is deleted before `clover admin blocks allow-deletions`."
        );
    } else {
        println!("Nothing has been done. By what the members hold, {plan}.");
        println!("`clover admin group repair --yes` writes it.");
    }
    if !args.yes && !args.without.is_empty() {
        bail!("members {:?} would be left out: what only they hold would be lost", args.without);
    }
    Ok(ExitCode::SUCCESS)
}

/// The active, or else the one whose log goes furthest: the others would only name it.
fn who_writes(group: &GetGroupResponseProto) -> Option<u32> {
    let answers = |member: u32| !group.silent.contains(&member);
    let active = group.members.iter().find(|one| one.role == RoleProto::Active as i32);
    let furthest = group
        .members
        .iter()
        .filter(|one| answers(one.member))
        .max_by_key(|one| (one.end.map(|end| (end.epoch, end.sn)), std::cmp::Reverse(one.member)));
    active.or(furthest).map(|one| one.member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::clover::admin::{LogPlaceProto, MemberProto};

    fn member(member: u32, role: RoleProto, sn: u64) -> MemberProto {
        let end = Some(LogPlaceProto { epoch: 2, sn });
        MemberProto { member, role: role as i32, end, ..MemberProto::default() }
    }

    #[test]
    fn the_one_whose_log_goes_furthest_is_asked_unless_somebody_leads() {
        let mut group = GetGroupResponseProto {
            members: vec![
                member(1, RoleProto::Junior, 5),
                member(2, RoleProto::Standby, 9),
                member(3, RoleProto::Standby, 9),
            ],
            ..GetGroupResponseProto::default()
        };
        assert_eq!(who_writes(&group), Some(2));
        group.silent = vec![2];
        assert_eq!(who_writes(&group), Some(3));
        group.members[0].role = RoleProto::Active as i32;
        assert_eq!(who_writes(&group), Some(1));
    }
}
