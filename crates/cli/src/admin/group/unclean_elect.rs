//! `clover admin group unclean-elect`: going on with what is left, by an operator's explicit word.

use crate::admin::servers::{ORDER_TIMEOUT, Servers, address_of, reason};
use anyhow::{Context, bail};
use proto::clover::admin::{
    GetGroupRequestProto, GetGroupResponseProto, MemberProto, RoleProto, UncleanElectRequestProto,
    UncleanElectResponseProto,
};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server to make active: the one whose last entry is the latest.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    member: u32,
    /// The servers that you have made sure are off and stay off, as 1,3: every complete one must be among them.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    off: Vec<u32>,
    /// Accept that acknowledged changes may be lost for ever.
    #[arg(long)]
    yes_lose_data: bool,
}

pub async fn run(servers: &Servers, args: Args) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    if !view.members.contains(&args.member) {
        bail!("member {} is not in the group: its members are {:?}", args.member, view.members);
    }
    if let Some(active) = serving(&group) {
        bail!(
            "member {active} is active and serves: there is no need for an election, and nothing need be lost"
        );
    }
    let address = address_of(&group, args.member)
        .with_context(|| format!("where member {} listens is not known; is it running?", args.member))?;
    let mut complete: Vec<u32> = view.in_sync.iter().chain(&view.exiles).map(|store| store.member).collect();
    let is_damaged = is_damaged(servers, &address, args.member).await;
    if is_damaged {
        // No member has the entries that this damaged store has lost, so the order may take its place among the complete ones, too.
        complete.retain(|member| *member != args.member);
    }
    // A complete member that says what it waits for may be let go on without that. A store that was restored from a copy is not
    // the one that the view means.
    let own = group.members.iter().find(|one| one.member == args.member);
    let waits = own.is_some_and(|one| {
        one.role() == RoleProto::Junior || one.reason.as_ref().is_some_and(|reason| !reason.is_empty())
    });
    if complete.contains(&args.member) && waits {
        complete.retain(|member| *member != args.member);
    }
    if complete.contains(&args.member) {
        bail!(
            "member {} is complete: it takes over by itself, without loss, as soon as it reaches the coordinator. \
             `clover admin group` shows what it waits for",
            args.member
        );
    }
    let secret = &servers.secret()?;
    let ask = |is_accepted: bool| {
        let request = UncleanElectRequestProto { i_accept_loss: Some(is_accepted), off: args.off.clone() };
        let address = address.clone();
        async move {
            let answer =
                servers.give::<_, UncleanElectResponseProto>(secret, &address, "uncleanElect", &request);
            answer.await.map_err(|error| anyhow::anyhow!("{address}: {}", reason(&error)))
        }
    };
    let missing: Vec<u32> = complete.iter().copied().filter(|member| !args.off.contains(member)).collect();
    if !args.yes_lose_data || !missing.is_empty() {
        let answer = ask(false).await;
        eprintln!("Nothing has been done. {}", loss(args.member, answer.as_ref().ok()));
        for line in others_know(&group, args.member) {
            eprintln!("{line}");
        }
        eprintln!(
            "Members {complete:?} have everything: if one of them can come back, start it instead, and nothing is lost."
        );
        if !missing.is_empty() {
            eprintln!(
                "Make sure that members {missing:?} are off and stay off, and say so with --off {}.",
                complete.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
            );
        }
        if !args.yes_lose_data {
            eprintln!("Then --yes-lose-data makes member {} active all the same.", args.member);
        }
        return Ok(ExitCode::FAILURE);
    }
    let answer = ask(true).await?;
    if answer.is_done != Some(true) {
        bail!("member {} has not become active; nothing was decided", args.member);
    }
    println!("Member {} goes on. {}", args.member, loss(args.member, Some(&answer)));
    if is_damaged {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "Members {complete:?} must not come back with their old directories: empty them, and `clover meta format \
         --join --replace` each. Changes are refused until {} members are in sync. This election is counted, and noted \
         in the log.",
        view.in_sync_min
    );
    println!(
        "Then look for what is lost (`clover admin list-corrupt-files` names files whose blocks are missing). No replica that \
         belongs to no file is deleted before `clover admin blocks allow-deletions`, which says first how many there are: give \
         that order only when nothing of the old servers will be brought back."
    );
    Ok(ExitCode::SUCCESS)
}

/// Lines about entries that answering members have and the one to be elected has not.
fn others_know(group: &GetGroupResponseProto, elected: u32) -> Vec<String> {
    let end = |id: u32| group.members.iter().find(|one| one.member == id)?.end;
    let Some(mine) = end(elected) else { return Vec::new() };
    let others =
        group.members.iter().filter(|one| one.member != elected && !group.silent.contains(&one.member));
    let ahead = others.filter_map(|one| Some((one.member, one.end?)));
    let mut lines: Vec<String> = ahead
        .filter(|(_, end)| (end.epoch, end.sn) > (mine.epoch, mine.sn))
        .map(|(member, end)| {
            format!(
                "Member {member} answers and has more: its log ends at epoch {}, sn {}, and that of member {elected} at epoch {}, \
                 sn {}, {} entries behind. Elect it rather than member {elected}.",
                end.epoch,
                end.sn,
                mine.epoch,
                mine.sn,
                end.sn.saturating_sub(mine.sn)
            )
        })
        .collect();
    if let Some(view) = group.view.as_ref().filter(|view| view.epoch > mine.epoch) {
        lines.push(format!(
            "{} epochs have begun since the last entry of member {elected}: what was written in them is lost.",
            view.epoch - mine.epoch
        ));
    }
    lines
}

/// Whether its store is being repaired, as it says itself.
async fn is_damaged(servers: &Servers, address: &str, member: u32) -> bool {
    let request = GetGroupRequestProto { is_local: Some(true) };
    let asked = servers.ask::<_, GetGroupResponseProto>(address, "getGroup", &request, ORDER_TIMEOUT);
    let is_it = |one: &MemberProto| one.member == member && one.role() == RoleProto::Repairing;
    asked.await.is_ok_and(|own| own.members.iter().any(is_it))
}

/// The changes that would be lost, in the words of the member; if it says nothing, in this program's words.
fn loss(member: u32, answer: Option<&UncleanElectResponseProto>) -> String {
    let message = answer.and_then(|answer| answer.message.clone()).filter(|message| !message.is_empty());
    message.unwrap_or_else(|| {
        format!("Acknowledged changes that member {member} does not have would be lost for ever.")
    })
}

fn serving(group: &GetGroupResponseProto) -> Option<u32> {
    group.members.iter().find(|member| member.role == RoleProto::Active as i32).map(|member| member.member)
}
