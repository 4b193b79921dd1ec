//! Each code has a state in which it holds, and none holds where a cluster is well.

use super::*;
use crate::{
    Blocks, Clock, Contest, Data, DataServer, Disk, Leader, Member, Role, SlowDisk, SlowServer, Unanswered,
    Verdict, View,
};
use std::collections::BTreeSet;

const GIB: u64 = 1 << 30;

fn member(number: u32) -> Member {
    Member {
        number,
        address: Some(format!("m{number}:8020")),
        presence: Presence::Answers,
        role: if number == 1 { Role::Active } else { Role::Standby },
        is_in_sync: true,
        release: Some("0.2.0".into()),
        ..Member::default()
    }
}

fn data_server(number: u32) -> DataServer {
    DataServer {
        address: format!("10.0.0.{number}:9866"),
        is_alive: true,
        is_in_service: true,
        silent_ms: Some(1_000),
        capacity: 100 * GIB,
        remaining: 50 * GIB,
        fullest: Some(Disk { id: "DS-1".into(), capacity: 100 * GIB, remaining: 50 * GIB }),
        release: Some("0.2.0".into()),
        ..DataServer::default()
    }
}

fn well() -> Facts {
    let data = Data {
        blocks: Blocks::default(),
        servers: (1..=3).map(data_server).collect(),
        contested: Vec::new(),
        stale_after_ms: Some(30_000),
    };
    let group = Group {
        number: 1,
        leader: Leader::Serves(1),
        view: Some(View { epoch: 4, in_sync: vec![1, 2, 3], in_sync_min: 2 }),
        members: (1..=3).map(member).collect(),
        is_writable: Some(true),
        data: Some(data),
        ..Group::default()
    };
    Facts { unanswered: Vec::new(), groups: vec![group] }
}

type Change = fn(&mut Group, &mut Data);

/// A change of a cluster that is well, the one condition that follows, and words of its sentence.
const CASES: &[(Change, Code, Severity, &str)] = {
    use Code::*;
    use Severity::{Error, Warning};
    &[
        (
            |g, _| {
                g.leader = Leader::Nobody;
                g.members[0].role = Role::Standby;
            },
            NoActive,
            Error,
            "member 1 waits to take over, member 2 waits to take over",
        ),
        (
            |g, _| {
                g.is_writable = Some(false);
                g.view.as_mut().unwrap().in_sync = vec![1];
            },
            GroupBelowMinimum,
            Error,
            "1 of 3 members of group 1 has everything, and a change needs 2",
        ),
        (
            |g, _| g.members[2].presence = Presence::Silent(Some("refused".into())),
            GroupMemberAway,
            Warning,
            "Member 3 (m3:8020) does not answer: refused.",
        ),
        (
            |g, _| (g.members[2].address, g.members[2].presence) = (None, Presence::Unknown),
            GroupMemberAway,
            Warning,
            "has never run",
        ),
        (
            |g, _| (g.members[1].role, g.members[1].reason) = (Role::Stopped, Some("its disk".into())),
            MemberStopped,
            Warning,
            "takes no part in the group: its disk",
        ),
        (
            |g, _| (g.members[1].is_in_sync, g.members[1].lag) = (false, Some(12)),
            MemberBehind,
            Warning,
            "It lacks 12 entries.",
        ),
        (|g, _| g.view.as_mut().unwrap().in_sync_min = 1, GroupMinimumOne, Warning, "a single member"),
        (
            |g, _| g.members[1].coordinator_away_ms = Some(42_000),
            CoordinatorAway,
            Warning,
            "does not answer member 2 for 42 s",
        ),
        (
            |g, _| g.directory_log_trouble = Some("it is another log.".into()),
            DirectoryLogStopped,
            Error,
            "it is another log.",
        ),
        (|g, _| g.safe_mode = Some("7 blocks are lacking.".into()), SafeMode, Error, "7 blocks are lacking."),
        (
            |g, _| (g.members[1].is_disk_low, g.members[1].disk_free_bytes) = (true, Some(150 << 20)),
            MetadataDiskLow,
            Warning,
            "member 2 has 150.0 MiB free",
        ),
        (|g, _| g.members[0].is_disk_full = true, MetadataDiskLow, Error, "refuses changes"),
        (|g, _| g.members[0].damaged_files = 2, StoreDamaged, Warning, "2 files are damaged"),
        (|g, _| g.members[0].flush_ms = Some(FLUSH_SLOW_MS + 1), JournalSlow, Warning, "takes 501 ms"),
        (|g, _| g.members[0].hanging_thread = Some("the scrub".into()), ThreadHangs, Warning, "the scrub"),
        (|g, _| g.members[0].fatal_requests = 1, FatalRequests, Warning, "1 request is refused on member 1"),
        (|_, d| d.blocks.missing = 3, BlocksMissing, Error, "3 blocks are lost"),
        (|_, d| d.blocks.corrupt = 1, BlocksCorrupt, Warning, "1 block has a damaged replica"),
        (|_, d| d.blocks.under_replicated = 4, BlocksUnderReplicated, Warning, "4 blocks have too few"),
        (
            |_, d| (d.blocks.are_deletions_held, d.blocks.unknown_held) = (true, 8),
            DeletionsHeld,
            Warning,
            "8 replicas are kept after an unclean election",
        ),
        (|_, d| d.servers.clear(), NoDataServer, Error, "No data server has registered"),
        (
            |_, d| (d.servers[1].is_alive, d.servers[1].silent_ms) = (false, Some(700_000)),
            DataServerDead,
            Warning,
            "1 of 3 data servers is dead: 10.0.0.2:9866 (silent for 11 min).",
        ),
        (|_, d| d.servers[1].silent_ms = Some(45_000), DataServerStale, Warning, "silent for 45 s"),
        (
            |_, d| d.servers[0].slow = Some(SlowServer { reporters: 2, latency_ms: 90.0, median_ms: 2.0 }),
            DataServerSlow,
            Warning,
            "a packet takes 90.0 ms, to most others 2.0 ms; reported by 2",
        ),
        (
            |_, d| d.servers[0].slow_disks.push(SlowDisk { path: "/data/7".into(), latency_ms: 80.0 }),
            DiskSlow,
            Warning,
            "1 disk is slow: /data/7 of 10.0.0.1:9866 (80.0 ms)",
        ),
        (
            |_, d| {
                let uuids = vec!["a".into(), "b".into()];
                d.contested.push(Contest { address: "10.0.0.9:9866".into(), uuids });
            },
            AddressContested,
            Warning,
            "2 data servers take the address 10.0.0.9:9866 from each other: a and b",
        ),
        (|_, d| d.servers[0].failed_volumes = 2, VolumeFailed, Warning, "2 of 10.0.0.1:9866"),
        (
            |_, d| d.servers[0].fullest.as_mut().unwrap().remaining = 4 * GIB,
            DiskNearlyFull,
            Warning,
            "10.0.0.1:9866 with 4.0 GiB of 100.0 GiB (4.0 %)",
        ),
        (
            |_, d| d.servers.iter_mut().for_each(|server| server.remaining = 9 * GIB),
            CapacityNearlyFull,
            Warning,
            "27.0 GiB of 300.0 GiB (9.0 %) are free",
        ),
        (
            |_, d| d.servers.iter_mut().for_each(|server| server.remaining = 0),
            CapacityNearlyFull,
            Error,
            "0 B of 300.0 GiB",
        ),
        (
            |g, _| {
                let clock = |ahead_ms| Some(Clock { ahead_ms, uncertain_ms: 20 });
                (g.members[0].clock, g.members[1].clock) = (clock(-1_500), clock(1_500));
            },
            ClockApart,
            Warning,
            "The clock of member 2 is 3000 ms ahead of that of member 1.",
        ),
        (|g, _| g.members[2].release = Some("0.1.0".into()), VersionsApart, Warning, "0.1.0 on member 3"),
    ]
};

fn changed(change: Change) -> Facts {
    let mut facts = well();
    let mut data = facts.groups[0].data.take().unwrap();
    change(&mut facts.groups[0], &mut data);
    facts.groups[0].data = Some(data);
    facts
}

#[test]
fn a_cluster_without_a_fault_is_healthy() {
    let judged = judge(&well());
    assert_eq!((judged.verdict, &judged.conditions[..]), (Verdict::Healthy, &[][..]));
}

#[test]
fn each_fault_gives_its_own_condition_and_no_other() {
    for (change, code, severity, words) in CASES {
        let judged = judge(&changed(*change));
        let [condition] = &judged.conditions[..] else { panic!("{code}: {judged:#?}") };
        assert_eq!((condition.code, condition.severity), (*code, *severity), "{condition:?}");
        assert!(condition.text.contains(words), "{code}: {}", condition.text);
        assert!(condition.text.ends_with('.'), "{}", condition.text);
        assert!(condition.remedy.ends_with('.'), "{code}: {}", condition.remedy);
        let verdict = if *severity == Severity::Error { Verdict::Error } else { Verdict::Warning };
        assert_eq!(judged.verdict, verdict);
        assert!(code.severities().contains(severity), "{code} is never {severity}");
    }
}

#[test]
fn every_code_with_each_of_its_severities_has_a_case() {
    let seen: BTreeSet<_> = CASES.iter().map(|(_, code, severity, _)| (*code, *severity)).collect();
    let all = Code::ALL.iter().flat_map(|code| code.severities().iter().map(|severity| (*code, *severity)));
    let missing: Vec<_> = all.filter(|pair| !seen.contains(pair)).collect();
    // Its own test is below.
    assert_eq!(missing, [(Code::NoAnswer, Severity::Error)]);
}

#[test]
fn where_nobody_answers_that_is_all_that_is_told() {
    let mut facts = Facts::default();
    let refused = |address: &str| Unanswered { address: address.into(), reason: "refused".into() };
    facts.unanswered = vec![refused("m1:8020"), refused("m2:8020")];
    let judged = judge(&facts);
    assert_eq!((judged.verdict, judged.conditions.len()), (Verdict::Error, 1));
    let condition = &judged.conditions[0];
    assert_eq!(condition.code, Code::NoAnswer);
    assert_eq!(condition.text, "No metadata server answers: m1:8020 (refused) and m2:8020 (refused).");
    assert!(condition.groups.is_empty());
}

#[test]
fn a_server_that_does_not_answer_is_no_condition_of_the_cluster_while_others_do() {
    let facts = Facts {
        unanswered: vec![Unanswered { address: "other:8020".into(), reason: "off".into() }],
        ..well()
    };
    assert_eq!(judge(&facts).verdict, Verdict::Healthy);
}

#[test]
fn two_groups_that_say_the_same_of_a_data_server_say_it_once() {
    let mut facts = changed(|_, data| data.servers[1].is_alive = false);
    let mut second = Group { number: 2, ..facts.groups[0].clone() };
    // The groups were asked one after the other.
    let silent = &mut second.data.as_mut().unwrap().servers[1].silent_ms;
    *silent = silent.map(|ms| ms + 1_100).or(Some(46_100));
    facts.groups.push(second);
    let judged = judge(&facts);
    assert_eq!(judged.conditions.len(), 1, "{judged:#?}");
    assert_eq!(judged.conditions[0].groups, [1, 2]);
}

#[test]
fn commands_name_the_group_that_they_mean_where_there_are_several() {
    let mut facts = changed(|group, _| group.view.as_mut().unwrap().in_sync_min = 1);
    assert!(judge(&facts).conditions[0].remedy.contains("`clover admin group minimum 2`"));
    facts.groups[0].number = 2;
    facts.groups.push(well().groups[0].clone());
    let remedy = &judge(&facts).conditions[0].remedy;
    assert!(remedy.contains("`clover admin group --group 2 minimum 2`"), "{remedy}");
}

#[test]
fn errors_stand_first_and_a_lone_member_wants_no_second() {
    let mut facts = changed(|group, data| {
        data.blocks.corrupt = 1;
        data.blocks.missing = 1;
        group.members.truncate(1);
        group.view = Some(View { epoch: 1, in_sync: vec![1], in_sync_min: 1 });
    });
    let codes = |facts: &Facts| judge(facts).conditions.iter().map(|one| one.code).collect::<Vec<_>>();
    assert_eq!(codes(&facts), [Code::BlocksMissing, Code::BlocksCorrupt]);
    // Before the data servers have reported, only that is told.
    facts.groups[0].safe_mode = Some(String::new());
    assert_eq!(codes(&facts), [Code::SafeMode]);
}

#[test]
fn a_data_server_that_may_be_off_is_not_missed() {
    let facts = changed(|_, data| {
        (data.servers[2].is_alive, data.servers[2].may_be_off) = (false, true);
        data.servers[2].is_in_service = false;
    });
    assert_eq!(judge(&facts).verdict, Verdict::Healthy);
}

#[test]
fn the_serialized_form_has_the_names_that_programs_compare() {
    let judged = judge(&changed(|_, data| data.blocks.missing = 1));
    let json = serde_json::to_value(&judged).unwrap();
    assert_eq!(json["verdict"], "error");
    let condition = &json["conditions"][0];
    assert_eq!((&condition["code"], &condition["severity"]), (&"BLOCKS_MISSING".into(), &"error".into()));
    assert_eq!(condition["groups"], serde_json::json!([1]));
    assert!(condition["text"].is_string() && condition["remedy"].is_string());
}
