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
