//! Orders that change who is in a group and who leads it.

use super::watch;
use crate::{
    admin::servers::Servers,
    config::{self, settings::Settings},
};
use anyhow::{Context, bail};
use proto::{
    SyncState,
    clover::admin::{
        AddMemberRequestProto, AddMemberResponseProto, HandOverRequestProto, HandOverResponseProto,
        RemoveMemberRequestProto, RemoveMemberResponseProto,
    },
};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode, str::FromStr};

#[derive(Debug, clap::Args)]
pub struct Add {
    /// The `member` of that server's configuration.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    member: u32,
    /// How many servers must hold a change from now on before it is acknowledged.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    in_sync_min: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct Remove {
    /// The number of the member that is to go; never the active.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    member: u32,
    /// How many servers must hold a change from now on before it is acknowledged.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    in_sync_min: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct Minimum {
    /// How many servers must hold a change before it is acknowledged; two keep it when a disk is lost.
    #[arg(value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    count: u32,
}

#[derive(Debug, clap::Args)]
pub struct HandOver {
    /// The server that becomes active; without it, one in sync that knows where the blocks are.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    to: Option<u32>,
    /// Only if this server is the active; else nothing is done, and that is no failure. `self` is the `member` of the file that --config
    /// names. For what stops servers: a hook that runs before any of them stops.
    #[arg(long, value_name = "ID")]
    from: Option<From>,
}

/// The server that is to be active no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Member(u32),
    /// The server whose configuration is named.
    This,
}

impl FromStr for From {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.parse() {
            Ok(member) if (1..=10_000).contains(&member) => Ok(Self::Member(member)),
            Err(_) if word == "self" => Ok(Self::This),
            _ => Err("the number of a member, 1 to 10000, or `self`".to_owned()),
        }
    }
}

pub async fn add(servers: &Servers, order: Add) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    if view.members.contains(&order.member) {
        bail!("member {} is in the group already: its members are {:?}", order.member, view.members);
    }
    let request = AddMemberRequestProto { member: order.member, in_sync_min: order.in_sync_min };
    let answer: AddMemberResponseProto = servers.order(&group, "addMember", &request).await?;
    say(answer.message, || format!("Member {} is in the group.", order.member));
    println!(
        "Next, on its machine: `clover meta format --join --config FILE` with member = {} and the same coordinator, \
         then `clover meta --config FILE`. It is renewed by the others; `clover admin group` shows how far it is. Then \
         tell the clients: `clover client-config`, and metadata_servers of the data servers.",
        order.member
    );
    Ok(ExitCode::SUCCESS)
}

pub async fn remove(servers: &Servers, order: Remove) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    if !view.members.contains(&order.member) {
        bail!("member {} is not in the group: its members are {:?}", order.member, view.members);
    }
    if view.active == Some(order.member) {
        bail!(
            "member {} is active, and an active is never removed. Let another member become active first: \
             `clover admin group hand-over`",
            order.member
        );
    }
    let request = RemoveMemberRequestProto { member: order.member, in_sync_min: order.in_sync_min };
    let answer: RemoveMemberResponseProto = servers.order(&group, "removeMember", &request).await?;
    say(answer.message, || format!("Member {} is not in the group any more.", order.member));
    println!(
        "Next: stop its server, and take its address out of the clients' configuration and of the data servers' \
         metadata_servers. Its directory is of no further use."
    );
    Ok(ExitCode::SUCCESS)
}

pub async fn minimum(servers: &Servers, order: Minimum) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    let Some(active) = view.active else {
        bail!("no member is active, so nobody can change the group: `clover admin group` shows the members");
    };
    if order.count as usize > view.members.len() {
        bail!(
            "the group has {} members, so no change could ever be on {}; nothing was done",
            view.members.len(),
            order.count
        );
    }
    if order.count as usize > view.in_sync.len() {
        bail!(
            "{} members are in sync: with a minimum of {} every change would be refused. Bring others in sync first; nothing was \
             done",
            view.in_sync.len(),
            order.count
        );
    }
    // The members stay as they are: the active is one of them.
    let request = AddMemberRequestProto { member: active, in_sync_min: Some(order.count) };
    let answer: AddMemberResponseProto = servers.order(&group, "addMember", &request).await?;
    say(answer.message, || format!("A change is acknowledged when {} members have it.", order.count));
    Ok(ExitCode::SUCCESS)
}

/// A hand-over that was carried out, and what a client saw of it.
pub struct HandedOver {
    from: u32,
    successor: watch::Successor,
    noticed: watch::Noticed,
    warning: Option<String>,
}

impl HandedOver {
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub fn sentences(&self) -> String {
        format!(
            "Member {} is active in epoch {}, {} ms after the order; before it was member {}.\n{}",
            self.successor.member,
            self.successor.epoch,
            self.successor.after.as_millis(),
            self.from,
            self.noticed.sentence()
        )
    }

    fn json(&self) -> Value {
        json!({"from": self.from, "to": self.successor.member, "epoch": self.successor.epoch,
            "after_ms": self.successor.after.as_millis() as u64, "client_longest_ms": self.noticed.longest.as_millis() as u64,
            "client_failed": self.noticed.failed, "warning": self.warning})
    }
}

/// Has the active hand over, and waits until another member serves. `to`: the member that follows; without it the active chooses.
///
/// # Errors
/// The order would not be carried out, or was refused; or no member has followed. The text says which.
pub async fn have_handed_over(servers: &Servers, to: Option<u32>) -> anyhow::Result<HandedOver> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    let Some(active) = view.active else {
        bail!("no member is active: there is nothing to hand over. `clover admin group` shows the members");
    };
    if to == Some(active) {
        bail!("member {active} is active already");
    }
    if let Some(to) = to.filter(|to| group.sync_of(*to) != SyncState::InSync) {
        bail!(
            "member {to} is not in sync, so it cannot become active: `clover admin group` shows which members are"
        );
    }
    // Before anything is said of what follows.
    servers.secret()?;
    let bystander = watch::Bystander::start(&group).await?;
    let order = async {
        let request = HandOverRequestProto { to };
        servers.order::<_, HandOverResponseProto>(&group, "handOver", &request).await
    };
    // If the order is refused, no member takes over, and the wait for a successor ends as well.
    let outcome = tokio::try_join!(order, watch::successor(servers, &group, view.epoch));
    let noticed = bystander.stop().await;
    let (answer, successor) = outcome?;
    let warning = answer.warning.as_deref().or_else(|| warning_of_older(answer.message.as_deref()?));
    Ok(HandedOver { from: active, successor, noticed, warning: warning.map(str::to_owned) })
}

/// `config`: the configuration of the server that `--from self` means.
pub async fn hand_over(
    servers: &Servers,
    order: HandOver,
    config: Option<&Path>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    if let Some(from) = order.from {
        let from = match from {
            From::Member(member) => member,
            From::This => this_member(config)?,
        };
        let group = servers.group().await?;
        let view = group.view.as_ref().context("the group's view is not known to any member")?;
        if !view.members.contains(&from) {
            bail!("member {from} is not in the group: its members are {:?}", view.members);
        }
        if view.active != Some(from) {
            nothing_to_hand_over(from, view.active, is_json);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let done = have_handed_over(servers, order.to).await?;
    if is_json {
        println!("{}", done.json());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(warning) = done.warning() {
        eprintln!("WARNING: {warning}.");
    }
    println!("{}", done.sentences());
    Ok(ExitCode::SUCCESS)
}

/// The member whose configuration this is.
fn this_member(config: Option<&Path>) -> anyhow::Result<u32> {
    let file =
        config.context("--from self wants the configuration of that server: name it with --config FILE")?;
    let mut settings = Settings::defaults(config::META);
    settings.read_file(file)?;
    Ok(settings.number("member") as u32)
}

fn nothing_to_hand_over(from: u32, active: Option<u32>, is_json: bool) {
    if is_json {
        return println!("{}", json!({"from": from, "active": active, "done": false}));
    }
    let who = active.map_or("no member is".to_owned(), |active| format!("member {active} is"));
    println!("Member {from} is not active ({who}): there is nothing to hand over.");
}

/// The warning in the answer of a release that says it in its sentence only.
fn warning_of_older(message: &str) -> Option<&str> {
    Some(message.split_once("WARNING: ")?.1)
}

/// The server's own words, else ours.
fn say(message: Option<String>, otherwise: impl FnOnce() -> String) {
    match message.filter(|message| !message.is_empty()) {
        Some(message) => println!("Done: {message}."),
        None => println!("{}", otherwise()),
    }
}
