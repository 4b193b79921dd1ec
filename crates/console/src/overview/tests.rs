use super::*;
use crate::page::tests::{HOSTILE, frame, text};
use proto::clover::admin::{GetGroupResponseProto, MemberProto, RoleProto, StoreProto, ViewProto};
use web::{Facts, Health, Sources};

fn no_beans() -> Beans {
    Beans::of(&Facts { health: std::sync::Arc::new(Health::default), sources: Sources::default() })
}

fn group() -> GetGroupResponseProto {
    let member = |number, role: RoleProto| MemberProto {
        member: number,
        role: role as i32,
        http_address: Some(format!("meta-{number}:9870")),
        ..MemberProto::default()
    };
    let store = |member| StoreProto { member, generation: 1 };
    GetGroupResponseProto {
        group: 1,
        cluster_id: HOSTILE.into(),
        answered_by: 1,
        view: Some(ViewProto {
            epoch: 7,
            active: Some(1),
            in_sync: vec![store(1), store(2)],
            in_sync_min: 2,
            members: vec![1, 2, 3],
            ..ViewProto::default()
        }),
        members: vec![
            member(1, RoleProto::Active),
            member(2, RoleProto::Standby),
            member(3, RoleProto::Unknown),
        ],
        is_writable: Some(true),
        ..GetGroupResponseProto::default()
    }
}

#[test]
fn a_cluster_that_tells_nothing_has_a_page() {
    let silent = verdict::Unanswered { address: "meta-1:8020".into(), reason: HOSTILE.into() };
    let facts = verdict::Facts { unanswered: vec![silent], ..Default::default() };
    let cluster = Cluster { unanswered: vec![HOSTILE.into()], facts, ..Cluster::default() };
    let shown = text(&Overview::new(frame(), &cluster, &no_beans(), &[], 1_000));
    assert!(shown.contains("banner error") && shown.contains("NO_ANSWER"), "{shown}");
    assert!(shown.contains("The first figures come"), "{shown}");
}

#[test]
fn the_verdict_is_that_of_the_worst_condition() {
    let live = verdict::DataServer { is_alive: true, is_in_service: true, ..Default::default() };
    let data = |servers| Some(verdict::Data { servers, ..Default::default() });
    let known = verdict::Group { number: 1, leader: verdict::Leader::Serves(1), ..Default::default() };
    let facts = |group| verdict::Facts { groups: vec![group], ..Default::default() };
    let stats = FsStats { capacity: 1 << 40, used: 1 << 38, remaining: 1 << 39, ..FsStats::default() };
    let mut cluster = Cluster { group: Some(group()), stats: Some(stats), ..Cluster::default() };
    let blocks = verdict::Blocks { under_replicated: 3, ..Default::default() };
    let ill = verdict::Data { blocks, servers: vec![live.clone()], ..Default::default() };
    cluster.facts = facts(verdict::Group { data: Some(ill), ..known.clone() });
    let shown = text(&Overview::new(frame(), &cluster, &no_beans(), &[], 1_000));
    assert!(shown.contains("banner warning") && shown.contains("BLOCKS_UNDER_REPLICATED"), "{shown}");
    assert!(shown.contains("Member 1 is active in epoch 7."), "{shown}");
    assert!(shown.contains("href=\"http://meta-2:9870/\""), "{shown}");
    assert!(
        shown.contains("1.00 TiB") && shown.contains("25.00 %") && shown.contains("256.00 GiB"),
        "{shown}"
    );
    cluster.facts = facts(verdict::Group { data: data(vec![live]), ..known.clone() });
    let shown = text(&Overview::new(frame(), &cluster, &no_beans(), &[], 1_000));
    assert!(shown.contains("banner well") && shown.contains("The cluster is well."), "{shown}");
    cluster.facts = facts(verdict::Group { data: data(Vec::new()), ..known });
    let shown = text(&Overview::new(frame(), &cluster, &no_beans(), &[], 1_000));
    assert!(shown.contains("banner error") && shown.contains("NO_DATA_SERVER"), "{shown}");
}

#[test]
fn charts_show_what_was_measured() {
    let sample =
        |at_ms, per_second| Sample { at_ms, per_second, p50_ns: Some(85_000), p99_ns: Some(1_250_000) };
    let samples = [sample(1_000_000, 12.0), sample(1_005_000, 240.0)];
    let shown = text(&Overview::new(frame(), &Cluster::default(), &no_beans(), &samples, 1_006_000));
    assert!(shown.contains("240.0 a second") && shown.contains("p50 85 µs, p99 1.25 ms"), "{shown}");
    assert_eq!(shown.matches("<svg class=\"chart\"").count(), 2, "{shown}");
    assert!(!shown.contains("NaN"), "{shown}");
}
