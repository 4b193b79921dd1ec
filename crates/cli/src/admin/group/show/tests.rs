use super::*;
use proto::clover::admin::RoleProto;

fn member(member: u32, role: RoleProto) -> MemberProto {
    MemberProto {
        member,
        role: role as i32,
        end: Some(LogPlaceProto { epoch: 3, sn: 4711 }),
        lag: Some(0),
        heard_ms_ago: Some(12),
        rpc_address: Some(format!("meta-{member}:8020")),
        peer_address: Some(format!("meta-{member}:8021")),
        ..Default::default()
    }
}

/// Three members: one leads, one is in sync, one is being renewed.
fn group() -> GetGroupResponseProto {
    let store = |member| StoreProto { member, generation: 0 };
    GetGroupResponseProto {
        group: 1,
        cluster_id: "CID-x".into(),
        answered_by: 1,
        view: Some(ViewProto {
            version: 9,
            epoch: 3,
            active: Some(1),
            in_sync: vec![store(1), store(2)],
            in_sync_min: 2,
            members: vec![1, 2, 3],
            ..Default::default()
        }),
        members: vec![
            member(1, RoleProto::Active),
            member(2, RoleProto::Standby),
            MemberProto {
                lag: Some(4_700),
                end: None,
                image_bytes_done: Some(1 << 20),
                image_bytes_total: Some(5 << 19),
                ..member(3, RoleProto::Junior)
            },
        ],
        takeovers: vec![
            TakeoverProto { epoch: 2, member: Some(3), trigger: "start".into(), ..Default::default() },
            TakeoverProto {
                epoch: 3,
                member: Some(1),
                trigger: "process gone".into(),
                detect_ms: 350,
                claim_ms: 5,
                promise_ms: 7,
                fence_ms: 9,
                adopt_ms: 9,
                sync_ms: 14,
                ended_at_ms: None,
            },
        ],
        is_writable: Some(true),
        committed: Some(4_711),
        ..Default::default()
    }
}

#[test]
fn a_group_is_told_in_a_table() {
    let expected = "\
Group 1 of CID-x: member 1 is active in epoch 3.
2 of 3 members in sync; a change is acknowledged when 2 or more have it. Committed up to sn 4711.

MEMBER  ROLE     IN SYNC  LAST ENTRY   LAG  HEARD      CLIENTS      PEERS        HTTP  STATE
     1  active   yes          3/4711     0  itself     meta-1:8020  meta-1:8021     -
     2  standby  yes          3/4711     0  12 ms ago  meta-2:8020  meta-2:8021     -
     3  junior   no                -  4700  12 ms ago  meta-3:8020  meta-3:8021     -  renewing: 1.0 MiB of 2.5 MiB of the image

Takeovers, the latest first; stages in ms since the old active was given up:
ENDED  EPOCH  MEMBER  BECAUSE       NOTICED  CLAIMED  PROMISED  FENCED  ADOPTED  SERVING
    -      3       1  process gone      350        5         7       9        9       14
    -      2       3  start               0        0         0       0        0        0
";
    assert_eq!(text(&group()), expected);
}

#[test]
fn what_an_operator_must_know_stands_above() {
    let mut group = group();
    group.is_writable = Some(false);
    group.unclean_elections = Some(1);
    group.answered_by = 2;
    group.active_unreachable = Some("refused".into());
    group.members[2].role = RoleProto::Stopped as i32;
    group.members[2].reason = Some("the journal has failed".into());
    let view = group.view.as_mut().unwrap();
    view.exiles = vec![view.in_sync.pop().unwrap()];
    view.active = None;
    let text = text(&group);
    for part in [
        "no member is active; the last epoch was 3",
        "CHANGES ARE REFUSED: 1 in sync, 2 needed",
        "Member 2 tells what it knows; the active cannot be asked: refused",
        "UNCLEAN ELECTIONS: 1",
        "exile",
        "Member 3 has stopped: the journal has failed",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    group.view.as_mut().unwrap().active = Some(3);
    assert!(super::text(&group).contains("no member serves; member 3 has epoch 3: stopped"));
    group.members[2].role = RoleProto::Unknown as i32;
    assert!(super::text(&group).contains("no member serves; member 3 had epoch 3, and is not heard of"));
    group.view = None;
    assert!(super::text(&group).contains("has not reached the coordinator yet"));
}

#[test]
fn who_does_not_answer_is_said() {
    let mut group = group();
    group.silent = vec![3];
    let said = "Member 3 does not answer: a takeover that only it knows of is not shown.\n";
    assert!(text(&group).ends_with(said));
    assert_eq!(json(&group)["silent"], serde_json::json!([3]));
}

#[test]
fn a_program_finds_the_same() {
    let json = json(&group());
    assert_eq!(json["view"]["active"], 1);
    assert_eq!(json["members"][2]["in_sync"], "no");
    assert_eq!(json["members"][2]["image_bytes_total"], 5 << 19);
    assert_eq!(json["takeovers"][1]["sync_ms"], 14);
}

#[test]
fn a_new_group_whose_others_are_yet_to_come_is_told_what_to_do_and_nothing_else() {
    let mut group = group();
    group.view.as_mut().unwrap().in_sync.truncate(1);
    group.is_writable = Some(false);
    group.active_unreachable = Some("no other member leads".into());
    group.members.truncate(1);
    group.members.push(MemberProto { member: 2, ..Default::default() });
    group.silent = vec![2];
    let text = text(&group);
    assert!(text.contains("CHANGES ARE REFUSED: 1 in sync, 2 needed. Start the others"), "{text}");
    assert!(!text.contains("cannot be asked") && !text.contains("does not answer"), "{text}");
}

#[test]
fn a_coordinator_that_is_away_is_told_before_the_members() {
    let mut group = group();
    group.coordinator_away_ms = Some(12_300);
    let text = text(&group);
    let line = text.lines().nth(2).unwrap();
    assert!(line.starts_with("THE COORDINATOR IS OUT OF REACH of member 1 for 12 s:"), "{text}");
    assert_eq!(json(&group)["coordinator_away_ms"], 12_300);
}

/// A member whose disk has failed, with a log that ends there.
fn failed(number: u32, end: Option<u64>) -> MemberProto {
    MemberProto {
        end: end.map(|sn| LogPlaceProto { epoch: 3, sn }),
        disk_failed: Some(true),
        reason: Some("its disk has failed".into()),
        ..member(number, RoleProto::Stopped)
    }
}

#[test]
fn where_all_disks_have_failed_the_order_is_named_that_is_needed_and_what_it_risks() {
    let mut group = group();
    group.members = vec![failed(1, Some(20)), failed(2, Some(22)), failed(3, Some(90))];
    let told = text(&group);
    assert!(told.contains("THE DISKS OF MEMBERS 1, 2, 3 HAVE FAILED"), "{told}");
    // Member 3 is neither in sync nor an exile: what it has counts for nothing.
    assert!(told.contains("member 2, whose log goes furthest (3/22)"), "{told}");
    assert!(told.contains("clover meta accept-disk") && told.contains("lost for ever"), "{told}");

    group.members[2] = member(3, RoleProto::Unknown);
    let told = text(&group);
    assert!(told.contains("Start or bring back 3 first"), "{told}");

    group.members[2] = member(3, RoleProto::Active);
    let told = text(&group);
    assert!(told.contains("(1, 2) goes on by itself") && !told.contains("accept-disk"), "{told}");

    group.members = vec![failed(1, None), failed(2, None)];
    let told = text(&group);
    assert!(told.contains("clover inspect") && !told.contains("accept-disk"), "{told}");
}
