//! `clover admin upgrade`: which release each server runs, which formats the group writes, and the order that makes an upgrade final.

use super::{
    confirm::is_confirmed,
    group::show,
    secret,
    servers::{OfGroup, Servers},
};
use crate::table;
use anyhow::bail;
use base::{Level, level::RELEASE};
use client::{DataServer, FileSystem};
use jiff::Timestamp;
use proto::clover::admin::{
    GetGroupResponseProto, MemberProto, RaiseLevelRequestProto, RaiseLevelResponseProto as Answer,
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Look after an upgrade: who runs which release, and whether going back is still possible.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(flatten)]
    of: OfGroup,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the release of each server, the level that the group is at, and what would make the upgrade final.
    Status(Status),
    /// Make an upgrade final: from then on the new formats are written, and older releases are refused.
    Finalize(Finalize),
}

#[derive(Debug, clap::Args)]
struct Status {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Finalize {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Print JSON. Without --yes nothing is done.
    #[arg(long)]
    json: bool,
}

pub async fn run(
    servers: Servers,
    connect: impl FnOnce() -> anyhow::Result<FileSystem>,
    args: Args,
) -> anyhow::Result<ExitCode> {
    let mut servers = servers.of_group(args.of).await?;
    servers.prove_by(args.secret.secret_file, args.secret.config);
    match args.command {
        Command::Status(wanted) => status(&servers, connect()?, wanted).await,
        Command::Finalize(order) => finalize(&servers, order).await,
    }
}

/// All that a look at an upgrade tells.
struct Facts {
    group: GetGroupResponseProto,
    /// Each member's answer about itself, or the answering member's last news of it.
    members: Vec<MemberProto>,
    /// `None`: nobody serves, so it is not known.
    data_servers: Option<Vec<DataServer>>,
}

async fn status(servers: &Servers, fs: FileSystem, wanted: Status) -> anyhow::Result<ExitCode> {
    let (group, own) = group(servers).await?;
    let members = members(&group, &own);
    let data_servers = if show::is_served(&group) { fs.data_servers().await.ok() } else { None };
    let facts = Facts { group, members, data_servers };
    match wanted.json {
        true => println!("{}", serde_json::to_string_pretty(&facts.json())?),
        false => print!("{}", facts.text()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The group as one member tells it, and what each member says of itself. Each is asked itself: an active of an older
/// release would not pass on what the others say of theirs.
async fn group(servers: &Servers) -> anyhow::Result<(GetGroupResponseProto, Vec<GetGroupResponseProto>)> {
    let mut group = servers.group().await?;
    let known = |member: &MemberProto| member.rpc_address.clone().filter(|address| !address.is_empty());
    let addresses: Vec<String> = group.members.iter().filter_map(known).collect();
    let everybody = servers.everybody(&addresses, true).await;
    let own: Vec<_> = everybody.into_iter().filter_map(|(_, answer)| answer.ok()).collect();
    complete(&mut group, &own);
    Ok((group, own))
}

/// A member of an older release that was asked passes on the answer of the active, and leaves out what it does not know
/// itself. The active's own answer has it.
fn complete(group: &mut GetGroupResponseProto, own: &[GetGroupResponseProto]) {
    let Some(of_the_same) = own.iter().find(|one| one.answered_by == group.answered_by) else { return };
    if group.level.is_none() {
        (group.level, group.level_since, group.level_at_ms) =
            (of_the_same.level, of_the_same.level_since, of_the_same.level_at_ms);
    }
    if let (Some(view), Some(known)) = (&mut group.view, &of_the_same.view)
        && view.version == known.version
    {
        view.level = view.level.or(known.level);
    }
}

fn members(group: &GetGroupResponseProto, own: &[GetGroupResponseProto]) -> Vec<MemberProto> {
    let own: Vec<MemberProto> = own
        .iter()
        .flat_map(|answer| {
            let by = answer.answered_by;
            answer.members.iter().filter(move |one| one.member == by)
        })
        // A member that answers and says nothing of levels runs a release that knows of none.
        .map(|one| MemberProto {
            oldest_level: one.oldest_level.or(Some(Level::FIRST.0.into())),
            newest_level: one.newest_level.or(Some(Level::FIRST.0.into())),
            ..one.clone()
        })
        .collect();
    let mut members = group.members.clone();
    members.sort_by_key(|member| member.member);
    let mut seen = Vec::new();
    for member in members {
        match own.iter().find(|one| one.member == member.member) {
            Some(own) => seen.push(MemberProto { role: member.role.max(own.role), ..own.clone() }),
            // Other members may have heard of it earlier, but from another start of its process.
            None => {
                seen.push(MemberProto { release: None, oldest_level: None, newest_level: None, ..member })
            }
        }
    }
    seen
}

impl Facts {
    fn level(&self) -> u32 {
        self.group.level.unwrap_or(Level::FIRST.0.into())
    }

    /// The highest level that all members know, as far as they answer.
    fn wanted(&self) -> u32 {
        let newest = self.members.iter().filter_map(|member| member.newest_level).max();
        newest.unwrap_or(0).max(self.level())
    }

    /// The one who answers knows of levels, and has not said at which the group is: it waits to take part.
    fn is_level_unknown(&self) -> bool {
        let by = self.members.iter().find(|member| member.member == self.group.answered_by);
        self.group.level.is_none() && by.is_some_and(|member| member.release.is_some())
    }

    /// The coordinator has a higher level than the journal: an unclean election gave up the change that raised it.
    fn given_up(&self) -> Option<u32> {
        let view = self.group.view.as_ref()?.level?;
        (!self.is_level_unknown() && view > self.level()).then_some(view)
    }

    fn is_final(&self) -> bool {
        self.wanted() <= self.level() && !self.is_level_unknown()
    }

    /// The members that keep the group from the highest level that any member knows, a sentence each.
    fn obstacles(&self) -> Vec<String> {
        let wanted = self.wanted();
        let of = |member: &MemberProto| match member.newest_level {
            None => Some(format!("member {} does not answer", member.member)),
            Some(newest) if newest < wanted => {
                Some(format!("member {} runs {}", member.member, release(member)))
            }
            Some(_) => None,
        };
        self.members.iter().filter_map(of).collect()
    }

    fn text(&self) -> String {
        let (level, wanted) = (self.level(), self.wanted());
        let mut lines = vec![match self.group.level_at_ms {
            Some(at) => format!("The group is at level {level} since {}.", time(at)),
            None if self.is_level_unknown() => {
                "At which level the group is only a member that takes part can say.".to_owned()
            }
            None => format!("The group is at level {level}."),
        }];
        if self.is_level_unknown() {
            return lines.remove(0) + " Nobody does: `clover admin group` shows why.\n";
        }
        if self.is_final() {
            lines.push("No upgrade is under way.".to_owned());
        } else {
            lines.push(match self.given_up() {
                Some(view) => format!(
                    "It was at level {view} before: an unclean election gave up the change that raised it, and the coordinator still has it. \
                     Members cannot go back to a release that does not know level {view}: make it final again."
                ),
                None => format!(
                    "An upgrade is not final: members can go back to the release that they came from until the group is at level {wanted}."
                ),
            });
            lines
                .extend(what(level, wanted).into_iter().map(|what| format!("Level {}: {}.", what.0, what.1)));
        }
        lines.push(String::new());
        let mut rows = vec![["MEMBER", "ROLE", "RELEASE", "LEVELS", "ADDRESS"].map(str::to_owned).to_vec()];
        rows.extend(self.members.iter().map(|member| {
            vec![
                member.member.to_string(),
                show::role(member).to_owned(),
                release(member),
                levels(member),
                member.rpc_address.clone().unwrap_or_else(|| "-".into()),
            ]
        }));
        lines.extend(table::lines(&rows));
        lines.push(String::new());
        match &self.data_servers {
            None => lines.push("Nobody serves: data servers are not known.".to_owned()),
            Some(servers) if servers.is_empty() => lines.push("There are no data servers.".to_owned()),
            Some(servers) => {
                let mut rows = vec![["DATA SERVER", "RELEASE", "STATE"].map(str::to_owned).to_vec()];
                rows.extend(servers.iter().map(|server| {
                    let state = if server.is_alive { "live" } else { "dead" };
                    vec![server.address.clone(), data_release(&server.version), state.to_owned()]
                }));
                lines.extend(table::lines(&rows));
            }
        }
        if !self.is_final() {
            lines.push(String::new());
            let obstacles = self.obstacles();
            lines.push(match obstacles.is_empty() {
                true => {
                    "All members know that level: `clover admin upgrade finalize` makes it final.".to_owned()
                }
                false => format!("Not yet possible to make it final: {}.", obstacles.join("; ")),
            });
        }
        lines.join("\n") + "\n"
    }

    fn json(&self) -> Value {
        let members: Vec<Value> = self
            .members
            .iter()
            .map(|member| {
                json!({
                    "member": member.member,
                    "role": show::role(member),
                    "release": member.release,
                    "oldest_level": member.oldest_level,
                    "newest_level": member.newest_level,
                    "answers": member.newest_level.is_some(),
                    "rpc_address": member.rpc_address,
                })
            })
            .collect();
        let data_servers = self.data_servers.as_ref().map(|servers| {
            let one = |server: &DataServer| {
                json!({"address": server.address, "version": server.version, "alive": server.is_alive})
            };
            servers.iter().map(one).collect::<Vec<_>>()
        });
        let (level, wanted) = (self.level(), self.wanted());
        let switches_on =
            what(level, wanted).into_iter().map(|(level, what)| json!({"level": level, "what": what}));
        json!({
            "level": if self.is_level_unknown() { None } else { Some(level) },
            "level_at_ms": self.group.level_at_ms,
            "coordinator_level": self.group.view.as_ref().and_then(|view| view.level),
            "wanted": wanted,
            "final": self.is_final(),
            "can_finalize": !self.is_final() && !self.is_level_unknown() && self.obstacles().is_empty(),
            "obstacles": self.obstacles(),
            "switches_on": switches_on.collect::<Vec<_>>(),
            "members": members,
            "data_servers": data_servers,
        })
    }
}

/// For each level between the two, a sentence on what it switches on. Where this program does not know the level, the sentence says so.
fn what(level: u32, wanted: u32) -> Vec<(u32, String)> {
    let told = |number: u32| {
        let known = u16::try_from(number).ok().and_then(|number| Level(number).what());
        (
            number,
            known
                .map_or_else(|| format!("release {RELEASE} of this program does not know it"), str::to_owned),
        )
    };
    (level.saturating_add(1)..=wanted.min(level + 64)).map(told).collect()
}

fn release(member: &MemberProto) -> String {
    match (&member.release, member.newest_level) {
        (Some(release), _) => release.clone(),
        (None, Some(_)) => format!("before {}", Level::EPOCH_LEADERS.release().unwrap_or_default()),
        (None, None) => "does not answer".to_owned(),
    }
}

fn levels(member: &MemberProto) -> String {
    match (member.oldest_level, member.newest_level) {
        (Some(oldest), Some(newest)) if oldest == newest => newest.to_string(),
        (Some(oldest), Some(newest)) => format!("{oldest} to {newest}"),
        _ => "-".to_owned(),
    }
}

/// Data servers name the release of Hadoop whose protocols they speak, and behind it their own.
fn data_release(version: &str) -> String {
    match version.split_once("-clover-") {
        Some((_, release)) => release.to_owned(),
        None => format!("names none (protocols of Hadoop {version})"),
    }
}

fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    ms.map_or_else(|| "a time that cannot be".to_owned(), |time| format!("{time:.0}"))
}

async fn finalize(servers: &Servers, order: Finalize) -> anyhow::Result<ExitCode> {
    let (group, _) = group(servers).await?;
    let by = group.members.iter().find(|member| member.member == group.answered_by);
    if group.level.is_none() && by.is_some_and(|member| show::role(member) == "active") {
        bail!(
            "the active (member {}) runs a release before {}: nothing was done. `clover admin upgrade status` shows all members",
            group.answered_by,
            Level::EPOCH_LEADERS.release().unwrap_or_default()
        );
    }
    let asked: Answer = servers.order(&group, "raiseLevel", &RaiseLevelRequestProto::default()).await?;
    if !order.json {
        print!("{}", text(&asked));
    }
    let is_possible = asked.obstacles.is_empty();
    if asked.is_done()
        || !is_possible
        || !(order.yes || (!order.json && is_confirmed("No member can go back afterwards. Make it final?")?))
    {
        if order.json {
            println!("{}", serde_json::to_string_pretty(&as_json(&asked))?);
        }
        return Ok(if asked.is_done() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    // The very level that was asked about: another member may lead by now.
    let request = RaiseLevelRequestProto { is_confirmed: Some(true), level: asked.wanted };
    let done: Answer = servers.order(&group, "raiseLevel", &request).await?;
    if !done.is_done() {
        bail!("nothing was done: {}", done.obstacles.join("; "));
    }
    match order.json {
        true => println!("{}", serde_json::to_string_pretty(&as_json(&done))?),
        false => println!("The group is at level {} now. The upgrade is final.", done.level()),
    }
    Ok(ExitCode::SUCCESS)
}

fn text(answer: &Answer) -> String {
    if answer.is_done() {
        return format!("The group is at level {}: nothing is to be made final.\n", answer.level());
    }
    let mut text =
        format!("The group is at level {}, and would be at level {}.\n", answer.level(), answer.wanted());
    for what in &answer.switches_on {
        text += &format!("From then on: {what}.\n");
    }
    for obstacle in &answer.obstacles {
        text += &format!("In the way: {obstacle}.\n");
    }
    if answer.obstacles.is_empty() {
        text += &format!(
            "Releases before {} can then neither take part nor start on what their members hold.\n",
            answer.release()
        );
    } else {
        text += "Nothing was done.\n";
    }
    text
}

fn as_json(answer: &Answer) -> Value {
    json!({
        "done": answer.is_done(),
        "level": answer.level,
        "wanted": answer.wanted,
        "release": answer.release,
        "obstacles": answer.obstacles,
        "switches_on": answer.switches_on,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::clover::admin::{RoleProto, ViewProto};

    fn member(number: u32, role: RoleProto, release: Option<&str>, newest: Option<u32>) -> MemberProto {
        MemberProto {
            member: number,
            role: role as i32,
            release: release.map(str::to_owned),
            oldest_level: newest.map(|_| 1),
            newest_level: newest,
            ..MemberProto::default()
        }
    }

    fn facts(members: Vec<MemberProto>, level: u32) -> Facts {
        Facts {
            group: GetGroupResponseProto { level: Some(level), ..GetGroupResponseProto::default() },
            members,
            data_servers: None,
        }
    }

    #[test]
    fn a_mixed_group_says_who_is_older_and_that_going_back_is_possible() {
        let mixed = facts(
            vec![
                member(1, RoleProto::Active, Some("0.2.0"), Some(2)),
                member(2, RoleProto::Standby, None, Some(1)),
                member(3, RoleProto::Unknown, None, None),
            ],
            1,
        );
        let text = mixed.text();
        for words in [
            "The group is at level 1.",
            "can go back",
            "Level 2: the first entry of each epoch",
            "before 0.2.0",
            "member 2 runs before 0.2.0; member 3 does not answer",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(mixed.json()["can_finalize"], json!(false));
    }

    #[test]
    fn what_is_possible_and_what_is_final_are_told_apart() {
        let all = || vec![member(1, RoleProto::Active, Some("0.2.0"), Some(2))];
        let text = facts(all(), 1).text();
        assert!(text.contains("`clover admin upgrade finalize` makes it final"), "{text}");
        let text = facts(all(), 2).text();
        assert!(text.contains("level 2") && text.contains("No upgrade is under way."), "{text}");
        let later = facts(vec![member(1, RoleProto::Active, Some("0.9.0"), Some(6))], 5).text();
        assert!(later.contains("Level 6: release") && later.contains("does not know it"), "{later}");
    }

    #[test]
    fn a_level_that_was_given_up_is_told() {
        let mut lost = facts(vec![member(1, RoleProto::Active, Some("0.2.0"), Some(2))], 1);
        for (view, is_lost) in [(1, false), (2, true)] {
            lost.group.view = Some(ViewProto { level: Some(view), ..ViewProto::default() });
            let text = lost.text();
            assert_eq!(text.contains("an unclean election gave up"), is_lost, "{text}");
            assert_eq!(text.contains("can go back to the release that they came from"), !is_lost, "{text}");
            assert!(text.contains("`clover admin upgrade finalize` makes it final"), "{text}");
            assert_eq!(lost.json()["coordinator_level"], json!(view));
        }
    }

    #[test]
    fn a_member_that_waits_to_take_part_does_not_say_at_which_level_the_group_is() {
        let mut waits = facts(vec![member(1, RoleProto::Stopped, Some("0.2.0"), Some(2))], 1);
        (waits.group.level, waits.group.answered_by) = (None, 1);
        let text = waits.text();
        assert!(text.contains("only a member that takes part") && !text.contains("level 1"), "{text}");
        assert_eq!((&waits.json()["level"], &waits.json()["final"]), (&json!(null), &json!(false)));
        // An active of a release that knows of no levels is at the first.
        waits.members = vec![member(1, RoleProto::Active, None, Some(1))];
        assert!(waits.text().contains("The group is at level 1."));
    }

    #[test]
    fn an_older_member_that_passes_on_the_actives_answer_hides_no_level() {
        let view = |level| Some(ViewProto { version: 7, level, ..ViewProto::default() });
        let active = GetGroupResponseProto {
            answered_by: 2,
            level: Some(1),
            view: view(Some(1)),
            members: vec![member(2, RoleProto::Active, Some("0.2.0"), Some(2))],
            ..GetGroupResponseProto::default()
        };
        let older = GetGroupResponseProto {
            answered_by: 1,
            members: vec![member(1, RoleProto::Standby, None, None)],
            ..GetGroupResponseProto::default()
        };
        // The answer of the active, handed on by member 1.
        let mut passed_on = GetGroupResponseProto { level: None, view: view(None), ..active.clone() };
        let own = [older, active];
        complete(&mut passed_on, &own);
        let mixed = Facts { members: members(&passed_on, &own), group: passed_on, data_servers: None };
        assert!(!mixed.is_level_unknown());
        assert_eq!((&mixed.json()["level"], &mixed.json()["coordinator_level"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn data_servers_name_their_release_behind_hadoops() {
        assert_eq!(data_release("3.5.0-clover-0.2.0"), "0.2.0");
        assert!(data_release("3.4.1").contains("Hadoop 3.4.1"));
    }

    #[test]
    fn the_order_says_what_it_would_do_and_what_is_in_the_way() {
        let answer = Answer {
            level: Some(1),
            wanted: Some(2),
            release: Some("0.2.0".into()),
            switches_on: vec!["something new is written".into()],
            ..Answer::default()
        };
        let said = text(&answer);
        assert!(said.contains("would be at level 2") && said.contains("Releases before 0.2.0"), "{said}");
        let stopped = text(&Answer { obstacles: vec!["member 3 is away".into()], ..answer });
        assert!(
            stopped.contains("In the way: member 3 is away.") && stopped.ends_with("Nothing was done.\n")
        );
    }
}
