//! Facts as servers tell them: answers to `getFacts`, of one server or of many, become the facts of a group.

use crate::{
    Blocks, Clock, Contest, Data, DataServer, Disk, Group, Leader, Member, Presence, Role, SlowDisk,
    SlowServer, View,
};
use proto::clover::admin::{
    DataServerFactsProto, GetFactsResponseProto, GetGroupResponseProto, MemberProto, RoleProto,
    ServerFactsProto, SlowDiskProto, StoreProto,
};

/// Behind this stands the release of Clover in the version of a data server.
const RELEASE_MARK: &str = "-clover-";

/// An answer of a server about its group.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub facts: &'a GetFactsResponseProto,
    /// The server's clock, if the program that has asked has read it. If it has read none, those count that the active tells.
    pub clock: Option<Clock>,
}

/// The facts of a group by the answers of its members, of which there may be one only; `None` if there is none. `silent` are the addresses of servers
/// that were asked and gave no answer, with the reasons.
///
/// The active's word counts most, then that of the member that has seen most. What a member says of itself counts more than what others say
/// of it.
pub fn group(answers: &[Answer<'_>], silent: &[(String, String)]) -> Option<Group> {
    let best = answers.iter().max_by_key(|answer| worth(&answer.facts.group))?.facts;
    // Clocks are compared with each other: one program has to have read all of them.
    let is_read_here = answers.iter().any(|answer| answer.clock.is_some());
    let own = |number: u32| answers.iter().find(|answer| answer.facts.group.answered_by == number);
    let mut members: Vec<Member> = best
        .group
        .members
        .iter()
        .map(|seen| match own(seen.member) {
            Some(answer) => member_by_itself(&best.group, seen, answer),
            None => member_by_another(&best.group, seen, silent),
        })
        .collect();
    for read in best.clocks.iter().filter(|_| !is_read_here) {
        if let Some(member) = members.iter_mut().find(|member| member.number == read.member) {
            member.clock = Some(Clock { ahead_ms: read.ahead_ms, uncertain_ms: read.uncertain_ms });
        }
    }
    members.sort_by_key(|member| member.number);
    let leads = |member: &&Member| matches!(member.role, Role::Active | Role::Reading);
    let leader = match members.iter().find(leads) {
        Some(member) => Leader::Serves(member.number),
        None if answers.iter().any(|answer| answer.facts.hears_active()) => Leader::IsHeard,
        None => Leader::Nobody,
    };
    Some(Group {
        number: best.group.group,
        leader,
        view: best.group.view.as_ref().map(|view| View {
            epoch: view.epoch,
            in_sync: numbers(&view.in_sync),
            in_sync_min: view.in_sync_min,
        }),
        members,
        // A member that follows does not know it.
        is_writable: best.group.is_writable.filter(|_| is_by_active(&best.group) || leader == Leader::Nobody),
        safe_mode: best.group.safe_mode.clone(),
        directory_log_trouble: best.directory_log_trouble.clone(),
        data: data(best),
    })
}

fn is_by_active(answer: &GetGroupResponseProto) -> bool {
    let own = answer.members.iter().find(|member| member.member == answer.answered_by);
    own.is_some_and(|own| matches!(own.role(), RoleProto::Active | RoleProto::Reading))
}

fn worth(answer: &GetGroupResponseProto) -> (bool, u64, u64) {
    let version = answer.view.as_ref().map_or(0, |view| view.version);
    (is_by_active(answer), version, answer.committed.unwrap_or(0))
}

fn numbers(stores: &[StoreProto]) -> Vec<u32> {
    stores.iter().map(|store| store.member).collect()
}

fn member_by_itself(best: &GetGroupResponseProto, seen: &MemberProto, answer: &Answer<'_>) -> Member {
    let told = &answer.facts.group;
    let own = told.members.iter().find(|one| one.member == seen.member).unwrap_or(seen);
    let server = answer.facts.server.as_ref();
    let of = |number: fn(&ServerFactsProto) -> u64| server.map_or(0, number);
    Member {
        presence: Presence::Answers,
        role: role(own.role()),
        lag: own.end.as_ref().zip(best.committed).map(|(end, committed)| committed.saturating_sub(end.sn)),
        reason: own.reason.clone().filter(|reason| !reason.is_empty()),
        image: own.image_bytes_done.zip(own.image_bytes_total).filter(|(_, total)| *total > 0),
        has_disk_failed: own.disk_failed(),
        disk_free_bytes: own.disk_free_bytes,
        is_disk_low: own.is_disk_low(),
        is_disk_full: server.is_some_and(ServerFactsProto::is_disk_full),
        coordinator_away_ms: own.coordinator_away_ms,
        release: own.release.clone().or_else(|| seen.release.clone()),
        damaged_files: of(ServerFactsProto::damaged_files),
        hanging_thread: server.and_then(|server| server.hanging_thread.clone()),
        fatal_requests: of(ServerFactsProto::fatal_requests),
        flush_ms: server.and_then(|server| server.flush_ms),
        clock: answer.clock,
        ..common(best, seen)
    }
}

fn member_by_another(
    best: &GetGroupResponseProto,
    seen: &MemberProto,
    silent: &[(String, String)],
) -> Member {
    let refused = silent.iter().find(|(address, _)| Some(address) == seen.rpc_address.as_ref());
    Member {
        presence: match refused {
            Some((_, reason)) => Presence::Silent(Some(reason.clone())),
            // A member that has never told an address has never run.
            None if seen.rpc_address.is_some() && seen.is_connected == Some(false) => Presence::Silent(None),
            None => Presence::Unknown,
        },
        lag: seen.lag,
        release: seen.release.clone(),
        image: seen.image_bytes_done.zip(seen.image_bytes_total).filter(|(_, total)| *total > 0),
        ..common(best, seen)
    }
}

fn common(best: &GetGroupResponseProto, seen: &MemberProto) -> Member {
    let in_sync = best.view.as_ref().map(|view| numbers(&view.in_sync)).unwrap_or_default();
    Member {
        number: seen.member,
        address: seen.rpc_address.clone().filter(|address| !address.is_empty()),
        http_address: seen.http_address.clone().filter(|address| !address.is_empty()),
        is_in_sync: in_sync.contains(&seen.member),
        ..Member::default()
    }
}

fn role(role: RoleProto) -> Role {
    match role {
        RoleProto::Unknown => Role::Unknown,
        RoleProto::Active => Role::Active,
        RoleProto::Reading => Role::Reading,
        RoleProto::Claiming | RoleProto::Starting | RoleProto::HandingOver => Role::Between,
        RoleProto::Standby => Role::Standby,
        RoleProto::Junior => Role::Junior,
        RoleProto::Stopped | RoleProto::Repairing => Role::Stopped,
    }
}

fn data(facts: &GetFactsResponseProto) -> Option<Data> {
    let blocks = facts.blocks.as_ref()?;
    let group = &facts.group;
    Some(Data {
        blocks: Blocks {
            missing: blocks.missing,
            corrupt: blocks.corrupt,
            under_replicated: blocks.under_replicated,
            unknown_held: blocks.unknown_held(),
            are_deletions_held: blocks.are_deletions_held(),
            servers_over_share: blocks.servers_over_share(),
        },
        servers: facts.data_servers.iter().map(|server| data_server(group, server)).collect(),
        contested: group
            .contested
            .iter()
            .map(|contest| Contest { address: contest.address.clone(), uuids: contest.uuids.clone() })
            .collect(),
        stale_after_ms: group.stale_after_ms,
    })
}

fn data_server(group: &GetGroupResponseProto, told: &DataServerFactsProto) -> DataServer {
    let slow = group.slow_servers.iter().find(|slow| slow.uuid == told.uuid);
    let slow_disks = group.slow_disks.iter().filter(|disk| disk.uuid == told.uuid);
    DataServer {
        address: told.address.clone(),
        host_name: told.host_name().to_owned(),
        http_address: told.http_address.clone(),
        is_alive: told.is_alive,
        may_be_off: told.may_be_off(),
        is_in_service: told.is_in_service(),
        silent_ms: told.silent_ms,
        capacity: told.capacity(),
        remaining: told.remaining(),
        failed_volumes: told.failed_volumes(),
        fullest: told.fullest.as_ref().map(|disk| Disk {
            id: disk.id.clone(),
            capacity: disk.capacity,
            remaining: disk.remaining,
        }),
        release: told.version().split_once(RELEASE_MARK).map(|(_, release)| release.to_owned()),
        slow: slow.map(|slow| SlowServer {
            reporters: slow.reporters,
            latency_ms: slow.latency_ms,
            median_ms: slow.median_ms,
        }),
        slow_disks: slow_disks
            .map(|disk| SlowDisk { path: disk.path.clone(), latency_ms: worst_ms(disk) })
            .collect(),
    }
}

fn worst_ms(disk: &SlowDiskProto) -> f64 {
    [disk.metadata_ms, disk.read_ms, disk.write_ms].into_iter().flatten().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Facts, Severity, Verdict, judge};
    use proto::clover::admin::{BlockFactsProto, ClockProto, ViewProto};

    /// The answer of member `by` of a group of three, of which `active` leads.
    fn answer(by: u32, active: u32) -> GetFactsResponseProto {
        let store = |member| StoreProto { member, generation: 1 };
        let member = |number| MemberProto {
            member: number,
            role: match number {
                _ if number != by => RoleProto::Unknown,
                _ if number == active => RoleProto::Active,
                _ => RoleProto::Standby,
            } as i32,
            rpc_address: Some(format!("m{number}:8020")),
            is_connected: (number != by).then_some(true),
            release: Some("0.2.0".into()),
            ..MemberProto::default()
        };
        GetFactsResponseProto {
            group: GetGroupResponseProto {
                group: 1,
                cluster_id: "CID".into(),
                answered_by: by,
                view: Some(ViewProto {
                    version: 7,
                    epoch: 3,
                    active: Some(active),
                    in_sync: vec![store(1), store(2), store(3)],
                    in_sync_min: 2,
                    members: vec![1, 2, 3],
                    ..ViewProto::default()
                }),
                members: [by].into_iter().chain((1..=3).filter(|it| *it != by)).map(member).collect(),
                is_writable: Some(by == active),
                ..GetGroupResponseProto::default()
            },
            blocks: Some(BlockFactsProto::default()),
            data_servers: vec![DataServerFactsProto {
                uuid: "one".into(),
                address: "10.0.0.1:9866".into(),
                is_alive: true,
                version: Some("3.5.0-clover-0.2.0".into()),
                ..DataServerFactsProto::default()
            }],
            hears_active: Some(true),
            ..GetFactsResponseProto::default()
        }
    }

    fn judged(told: &[GetFactsResponseProto], silent: &[(String, String)]) -> crate::Judged {
        let answers: Vec<_> = told.iter().map(|facts| Answer { facts, clock: None }).collect();
        judge(&Facts { groups: group(&answers, silent).into_iter().collect(), ..Facts::default() })
    }

    #[test]
    fn clocks_are_those_that_the_active_has_read_unless_the_one_who_asks_has_read_some() {
        let clock = |member, ahead_ms| ClockProto { member, ahead_ms, uncertain_ms: 2 };
        let mut active = answer(1, 1);
        active.clocks = vec![clock(1, 0), clock(2, 30), clock(3, -5_000)];
        let said = judged(&[active.clone(), answer(2, 1)], &[]);
        assert!(said.has(Code::ClockApart, Severity::Warning), "{said:?}");
        let here = Answer { facts: &active, clock: Some(Clock::read_during(10, 1_000_000, 1_000_100)) };
        let group = group(&[here], &[]).unwrap();
        let clocks: Vec<_> =
            group.members.iter().filter_map(|member| Some((member.number, member.clock?))).collect();
        assert_eq!(clocks, [(1, Clock { ahead_ms: -95, uncertain_ms: 6 })]);
    }

    #[test]
    fn a_standby_that_is_asked_alone_knows_that_it_is_led() {
        let told = judged(&[answer(2, 1)], &[]);
        assert_eq!((told.verdict, &told.conditions[..]), (Verdict::Healthy, &[][..]));
        let mut alone = answer(2, 1);
        alone.hears_active = Some(false);
        assert!(judged(&[alone], &[]).has(Code::NoActive, Severity::Error));
    }

    #[test]
    fn the_word_of_the_active_counts_and_each_member_speaks_for_itself() {
        let mut standby = answer(2, 1);
        standby.blocks.as_mut().unwrap().missing = 9;
        standby.group.members[0].is_disk_low = Some(true);
        standby.group.members[0].disk_free_bytes = Some(5 << 20);
        let told = judged(&[standby, answer(1, 1)], &[]);
        let codes: Vec<_> = told.conditions.iter().map(|one| (one.code, one.subjects.clone())).collect();
        assert_eq!(codes, [(Code::MetadataDiskLow, vec!["member 2".to_owned()])]);
        assert!(told.conditions[0].text.contains("5.0 MiB"), "{:?}", told.conditions);
    }

    #[test]
    fn a_member_that_gives_no_answer_is_away_with_the_reason() {
        let silent = [("m3:8020".to_owned(), "connection refused".to_owned())];
        let told = judged(&[answer(1, 1), answer(2, 1)], &silent);
        assert_eq!(told.conditions.len(), 1, "{told:?}");
        assert_eq!(told.conditions[0].code, Code::GroupMemberAway);
        assert!(told.conditions[0].text.contains("Member 3 (m3:8020) does not answer: connection refused"));
    }

    #[test]
    fn the_release_of_a_data_server_stands_behind_that_of_hadoop() {
        let mut newer = answer(1, 1);
        newer.data_servers[0].version = Some("3.5.0-clover-0.3.0".into());
        let told = judged(&[newer], &[]);
        assert_eq!(told.conditions[0].code, Code::VersionsApart);
        let text = &told.conditions[0].text;
        assert!(text.contains("0.2.0 on member 1, member 2 and member 3; 0.3.0 on 10.0.0.1:9866"), "{text}");
        let mut stock = answer(1, 1);
        stock.data_servers[0].version = Some("3.4.1".into());
        assert_eq!(judged(&[stock], &[]).verdict, Verdict::Healthy);
    }
}
