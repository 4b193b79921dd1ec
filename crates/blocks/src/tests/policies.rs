//! Storage policies: on which media replicas go, and where else when those are full.

use super::cluster::*;
use crate::*;
use StorageType::{Archive, Disk, Ssd};

const COLD: u8 = 2;
const WARM: u8 = 5;
const HOT: u8 = 7;
const ONE_SSD: u8 = 10;
const ALL_SSD: u8 = 12;

/// The disk is the storage that every server of a cluster has.
fn id(server: u16, medium: StorageType) -> String {
    if medium == Disk { storage(server) } else { format!("DS-{server}-{medium}") }
}

/// Gives a server one storage of each of these media, with room or without.
fn equip(cluster: &mut Cluster, server: u16, media: &[(StorageType, bool)]) -> Vec<Command> {
    let storages = media
        .iter()
        .map(|(medium, has_room)| StorageReport {
            id: id(server, *medium).as_str().into(),
            storage_type: *medium,
            capacity: 100 * GIB,
            remaining: if *has_room { 50 * GIB } else { 0 },
            ..StorageReport::default()
        })
        .collect();
    let heartbeat = Heartbeat { storages, xceivers: 1, ..Heartbeat::default() };
    cluster.speak(server, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap()
}

fn cluster_of(media: &[(StorageType, bool)]) -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 5);
    for server in 1..=5 {
        equip(&mut cluster, server, media);
    }
    cluster
}

fn media(cluster: &mut Cluster, storage_policy: u8, replication: usize) -> Vec<StorageType> {
    let placement = Placement { block_size: 1 << 20, storage_policy, replication, ..Placement::default() };
    let targets = cluster.map.choose_targets(&placement, cluster.now);
    let mut media: Vec<_> = targets.iter().map(|at| at.storage_type).collect();
    media.sort();
    media
}

#[test]
fn replicas_go_on_the_media_that_the_policy_names() {
    let mut cluster = cluster_of(&[(Disk, true), (Ssd, true), (Archive, true)]);
    for _ in 0..20 {
        assert_eq!(media(&mut cluster, 0, 3), [Disk, Disk, Disk]);
        assert_eq!(media(&mut cluster, HOT, 3), [Disk, Disk, Disk]);
        assert_eq!(media(&mut cluster, COLD, 3), [Archive, Archive, Archive]);
        assert_eq!(media(&mut cluster, WARM, 3), [Disk, Archive, Archive]);
        assert_eq!(media(&mut cluster, ONE_SSD, 3), [Ssd, Disk, Disk]);
        assert_eq!(media(&mut cluster, ALL_SSD, 2), [Ssd, Ssd]);
    }
}

#[test]
fn the_fallback_serves_where_a_medium_is_full() {
    let mut cluster = cluster_of(&[(Disk, true), (Ssd, false), (Archive, true)]);
    assert_eq!(media(&mut cluster, ALL_SSD, 3), [Disk, Disk, Disk]);
    assert_eq!(media(&mut cluster, ONE_SSD, 3), [Disk, Disk, Disk]);
    let mut cluster = cluster_of(&[(Disk, false), (Ssd, true), (Archive, true)]);
    assert_eq!(media(&mut cluster, ONE_SSD, 3), [Ssd, Ssd, Ssd]);
    assert_eq!(media(&mut cluster, WARM, 3), [Archive, Archive, Archive]);
    // HOT has no fallback for what is being created, COLD none at all.
    assert_eq!(media(&mut cluster, HOT, 3), []);
    let mut cluster = cluster_of(&[(Disk, true), (Ssd, true)]);
    assert_eq!(media(&mut cluster, COLD, 3), [], "there are no archives");
}

#[test]
fn one_server_with_an_ssd_serves_one_replica_and_the_rest_fall_back() {
    let mut cluster = Cluster::with_servers(config(), 5);
    equip(&mut cluster, 1, &[(Disk, true), (Ssd, true)]);
    for server in 2..=5 {
        equip(&mut cluster, server, &[(Disk, true)]);
    }
    for _ in 0..20 {
        assert_eq!(media(&mut cluster, ALL_SSD, 3), [Ssd, Disk, Disk]);
        assert_eq!(media(&mut cluster, ONE_SSD, 3), [Ssd, Disk, Disk]);
    }
}

#[test]
fn a_copy_follows_the_policy_of_its_file() {
    let all = [(Disk, true), (Ssd, true), (Archive, true)];
    let mut cluster = cluster_of(&all);
    let (held, file) = (block(1, 100), base::InodeId(77));
    cluster.map.add_block(held, file, 3, BlockState::Complete, &[], cluster.now);
    let tell = |map: &mut BlockMap, id: ServerId<'_>, now| {
        map.incremental_report(id, "DS-1-SSD", Ssd, &[received(held)], now)
    };
    cluster.speak(1, tell).unwrap();
    cluster.map.tick(cluster.now, &|inode| if inode == file { ALL_SSD } else { 0 });
    let commands = equip(&mut cluster, 1, &all);
    let Some(Command::Transfer(transfers)) = commands.first() else { panic!("{commands:?}") };
    let media: Vec<_> = transfers[0].targets.iter().map(|at| at.storage_type).collect();
    assert_eq!(media, [Ssd, Ssd]);
}

#[test]
fn another_server_for_a_pipeline_takes_the_fallback_of_copies() {
    let mut cluster = cluster_of(&[(Disk, false), (Archive, true)]);
    assert_eq!(media(&mut cluster, HOT, 3), [], "for a new block HOT has none");
    let existing = [cluster.map.location(&uuid(1), &storage(1)).unwrap()];
    let placement =
        Placement { existing: &existing, storage_policy: HOT, replication: 1, ..Placement::default() };
    let targets = cluster.map.choose_targets(&Placement { block_size: 1 << 20, ..placement }, cluster.now);
    assert_eq!(targets.iter().map(|at| at.storage_type).collect::<Vec<_>>(), [Archive]);
}

const FILE: base::InodeId = base::InodeId(77);

/// One tick under this policy of the file. Then the servers are asked what they are told.
fn tick(cluster: &mut Cluster, policy: u8) {
    cluster.now = cluster.now.plus_ms(500);
    cluster.map.tick(cluster.now, &|inode| if inode == FILE { policy } else { 0 });
    cluster.check();
}

fn tell_on(cluster: &mut Cluster, server: u16, medium: StorageType, increments: &[Increment]) {
    let tell = |map: &mut BlockMap, by: ServerId<'_>, now| {
        map.incremental_report(by, &id(server, medium), medium, increments, now)
    };
    cluster.speak(server, tell).unwrap();
    cluster.check();
}

/// All servers have a storage of each medium, which has reported that it is empty. Then the block comes to each of these places.
fn stored(config: Config, replication: u16, places: &[(u16, StorageType)]) -> Cluster {
    let mut cluster = Cluster::with_servers(config, 6);
    for server in 1..=6 {
        equip(&mut cluster, server, &[(Disk, true), (Ssd, true), (Archive, true)]);
        for medium in [Ssd, Archive] {
            let report = |map: &mut BlockMap, by: ServerId<'_>, now| {
                let report = map.begin_report(by, &id(server, medium), medium, 0, now)?;
                map.finish_report(report, now)
            };
            cluster.speak(server, report).unwrap();
        }
    }
    cluster.map.add_block(block(1, 5), FILE, replication, BlockState::Complete, &[], cluster.now);
    for (server, medium) in places {
        tell_on(&mut cluster, *server, *medium, &[received(block(1, 5))]);
    }
    cluster
}

/// The servers whose replicas are to be deleted.
fn goes(cluster: &Cluster) -> Vec<String> {
    let mut gone: Vec<_> =
        cluster.map.deletions().iter().map(|(server, _)| server.uuid().to_string()).collect();
    gone.sort();
    gone
}

fn racks_of(table: &[(u16, &str)]) -> Config {
    let table = table.iter().map(|(server, rack)| (ip(*server), (*rack).to_owned())).collect();
    Config { racks: table, ..config() }
}

#[test]
fn the_replica_on_a_medium_that_the_policy_does_not_want_goes_first() {
    for (policy, gone) in [(COLD, 2), (HOT, 3), (0, 3)] {
        let mut cluster = stored(config(), 1, &[(2, Disk), (3, Archive)]);
        assert!(goes(&cluster).is_empty(), "the policy is not known before the tick");
        tick(&mut cluster, policy);
        assert_eq!(goes(&cluster), [uuid(gone)], "policy {policy}");
    }
    // As many as the policy has on each medium stay.
    let places = [(1, Disk), (2, Disk), (3, Archive), (4, Archive), (5, Ssd)];
    let mut cluster = stored(config(), 3, &places);
    tick(&mut cluster, WARM);
    let gone = goes(&cluster);
    assert!(gone.len() == 2 && gone[1] == uuid(5) && [uuid(1), uuid(2)].contains(&gone[0]), "{gone:?}");
}

#[test]
fn replicas_on_one_medium_do_not_wait_for_the_tick() {
    let cluster = stored(config(), 1, &[(2, Ssd), (3, Ssd)]);
    assert_eq!(goes(&cluster).len(), 1);
}

#[test]
fn the_only_replicas_on_a_second_rack_stay_whatever_their_medium() {
    let racks = racks_of(&[(1, "/a"), (2, "/b"), (3, "/b"), (4, "/c"), (5, "/c"), (6, "/c")]);
    // Without server 1 all would be on one rack.
    let mut cluster = stored(racks.clone(), 2, &[(1, Disk), (2, Archive), (3, Archive)]);
    tick(&mut cluster, COLD);
    let gone = goes(&cluster);
    assert!(gone == [uuid(2)] || gone == [uuid(3)], "{gone:?}");
    // A third rack makes server 1 dispensable, though it is alone on its own.
    let mut cluster = stored(racks, 2, &[(1, Disk), (2, Archive), (4, Archive)]);
    tick(&mut cluster, COLD);
    assert_eq!(goes(&cluster), [uuid(1)]);
}

#[test]
fn nothing_goes_while_a_storage_is_not_surely_known() {
    let mut cluster = stored(config(), 1, &[(2, Disk), (3, Archive)]);
    cluster.start(3);
    tick(&mut cluster, COLD);
    assert!(goes(&cluster).is_empty(), "what the third has is not known");
}

#[test]
fn a_hint_counts_only_for_a_replica_on_a_medium_with_too_many() {
    let moved =
        |from: u16| Increment::Received { block: block(1, 5), delete_hint: Some(uuid(from).as_str().into()) };
    for (hinted, gone) in [(1, 1), (2, 2), (3, 1)] {
        let mut cluster = stored(config(), 3, &[(1, Disk), (2, Disk), (3, Archive)]);
        tell_on(&mut cluster, 4, Archive, &[moved(hinted)]);
        tick(&mut cluster, WARM);
        let told = goes(&cluster);
        match hinted {
            3 => assert!(told == [uuid(1)] || told == [uuid(2)], "{told:?}"),
            _ => assert_eq!(told, [uuid(gone)]),
        }
    }
}
