//! Data servers and disks that are reported as slow.

use super::cluster::*;
use crate::{outliers::Outlier, *};
use base::BlockId;

const INTERVAL_MS: u64 = 1_000;
const INFO_PORT: u16 = 9864;

fn avoiding() -> Config {
    Config { exclude_slow: true, read_slow_last: true, slow_report_interval_ms: INTERVAL_MS, ..config() }
}

fn slow(address: &str, latency_ms: f64) -> SlowPeer {
    let outlier = Outlier { latency_ms, median_ms: 1.0, deviation_ms: 0.5, limit_ms: 5.0 };
    SlowPeer { address: address.into(), outlier }
}

fn peer(server: u16) -> SlowPeer {
    slow(&format!("{}:{INFO_PORT}", ip(server)), 50.0)
}

impl Cluster {
    fn accuse(&mut self, by: u16, peers: &[SlowPeer]) {
        let heartbeat = Heartbeat { slow_peers: peers.to_vec(), ..heartbeat_of(by) };
        self.beat_with(by, &heartbeat);
    }

    fn slow(&self) -> Vec<(String, usize)> {
        let named = |slow: SlowServer| (slow.server.uuid().to_string(), slow.reporters);
        self.map.slow_servers(self.now).into_iter().map(named).collect()
    }

    /// The servers that get replicas in many placements of three.
    fn chosen(&mut self) -> Vec<u16> {
        // The mean of open connections is that of the last tick; without one all servers were busy.
        self.map.tick(self.now, &|_| 0);
        self.chosen_before_the_next_tick()
    }

    fn chosen_before_the_next_tick(&mut self) -> Vec<u16> {
        let mut chosen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let placement = Placement { replication: 3, block_size: 1 << 20, ..Placement::default() };
            let targets = self.map.choose_targets(&placement, self.now);
            assert_eq!(targets.len(), 3, "a placement is never refused for slowness");
            chosen.extend(targets.iter().map(|at| number(at.server.uuid())));
        }
        chosen.into_iter().collect()
    }

    fn readers_order(&self, id: u64, reader: u16, chance: u64) -> Vec<u16> {
        let host = ip(reader);
        let located = self.map.locations(BlockId(id), Reader { host: Some(&host) }, chance, self.now);
        located.unwrap().locations.iter().map(|at| number(at.server.uuid())).collect()
    }
}

fn number(uuid: &str) -> u16 {
    uuid.trim_start_matches("uuid-").parse().unwrap()
}

#[test]
fn reports_are_told_by_address_until_they_are_too_old() {
    let mut cluster = Cluster::with_servers(avoiding(), 4);
    cluster.accuse(2, &[peer(1), slow("10.9.9.9:9864", 70.0)]);
    cluster.accuse(3, &[peer(1)]);
    let told = |cluster: &Cluster| -> Vec<(String, Vec<u16>)> {
        let reporters = |suspicion: &Suspicion| {
            suspicion.reports.iter().map(|(by, _)| number(by.uuid())).collect::<Vec<_>>()
        };
        let suspicions = cluster.map.suspicions(cluster.now);
        suspicions.iter().map(|suspicion| (suspicion.address.clone(), reporters(suspicion))).collect()
    };
    let about_first = format!("{}:{INFO_PORT}", ip(1));
    assert_eq!(told(&cluster), [(about_first, vec![2, 3]), ("10.9.9.9:9864".to_owned(), vec![2])]);
    assert_eq!(cluster.map.suspicions(cluster.now)[1].reports[0].1.latency_ms, 70.0);
    cluster.pass(3 * INTERVAL_MS, &[1, 2, 3, 4]);
    assert_eq!(told(&cluster), []);
}

#[test]
fn a_slow_server_gets_no_new_replicas_and_is_read_last_until_it_is_well_again() {
    let mut cluster = Cluster::with_servers(avoiding(), 5);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    assert_eq!(cluster.chosen(), [1, 2, 3, 4, 5]);
    cluster.accuse(2, &[peer(1)]);
    cluster.accuse(3, &[peer(1)]);
    assert_eq!(cluster.slow(), [(uuid(1), 2)]);
    assert_eq!(cluster.chosen(), [2, 3, 4, 5]);
    for chance in 0..20 {
        assert_eq!(cluster.readers_order(1, 1, chance)[2], 1, "even a reader on its host reads elsewhere");
    }
    let stats = cluster.map.stats();
    assert_eq!((stats.slow_servers, stats.avoided_servers), (1, 1));

    cluster.pass(2 * INTERVAL_MS, &[1, 2, 3, 4, 5]);
    assert_eq!(cluster.chosen(), [2, 3, 4, 5], "a report or two may not come");
    cluster.pass(INTERVAL_MS, &[1, 2, 3, 4, 5]);
    assert!(cluster.slow().is_empty());
    assert_eq!(cluster.chosen(), [1, 2, 3, 4, 5]);
    assert_eq!(cluster.readers_order(1, 1, 0)[0], 1);
    assert_eq!(cluster.map.stats().avoided_servers, 0);
}

#[test]
fn by_default_slow_servers_are_told_and_used_as_before() {
    let mut cluster = Cluster::with_servers(config(), 5);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.accuse(2, &[peer(1)]);
    assert_eq!(cluster.slow(), [(uuid(1), 1)]);
    assert_eq!(cluster.chosen(), [1, 2, 3, 4, 5]);
    assert_eq!(cluster.readers_order(1, 1, 0)[0], 1);
}

#[test]
fn replicas_go_to_slow_servers_where_no_others_will_do() {
    let mut cluster = Cluster::with_servers(avoiding(), 3);
    cluster.accuse(2, &[peer(1)]);
    assert_eq!(cluster.chosen(), [1, 2, 3]);
}

/// Two of four servers have many more connections than the others, and one is slow.
#[test]
fn a_busy_server_is_better_than_a_slow_one_and_a_slow_one_better_than_none() {
    let mut cluster = Cluster::with_servers(avoiding(), 4);
    let busy = |server| Heartbeat { xceivers: 100, ..heartbeat_of(server) };
    for server in [3, 4] {
        cluster.beat_with(server, &busy(server));
    }
    cluster.map.tick(cluster.now, &|_| 0);
    cluster.beat_with(3, &Heartbeat { xceivers: 1_000, ..heartbeat_of(3) });
    cluster.beat_with(4, &Heartbeat { xceivers: 1_000, ..heartbeat_of(4) });
    cluster.accuse(2, &[peer(1)]);
    for _ in 0..100 {
        let placement = Placement { replication: 3, block_size: 1 << 20, ..Placement::default() };
        let targets = cluster.map.choose_targets(&placement, cluster.now);
        let mut chosen: Vec<_> = targets.iter().map(|at| number(at.server.uuid())).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, [2, 3, 4]);
    }
}

#[test]
fn at_most_half_of_the_servers_are_avoided_and_no_more_than_the_configuration_says() {
    let mut cluster = Cluster::with_servers(avoiding(), 6);
    let all: Vec<_> = (1..=6).map(peer).collect();
    cluster.accuse(1, &all);
    assert_eq!(cluster.slow().len(), 5, "no server is asked about itself");
    assert_eq!(cluster.chosen().len(), 3);
    // Of most servers counts the word, then the latency.
    cluster.accuse(2, &[peer(6), slow(&format!("{}:{INFO_PORT}", ip(5)), 900.0)]);
    cluster.accuse(3, &[peer(6)]);
    assert_eq!(cluster.slow()[..2], [(uuid(6), 3), (uuid(5), 2)]);

    let mut cluster = Cluster::with_servers(Config { slow_servers_max: 1, ..avoiding() }, 6);
    cluster.accuse(1, &[slow("10.0.0.2:1", 10.0), slow("10.0.0.3:1", 90.0)]);
    assert_eq!(cluster.chosen(), [1, 2, 4, 5, 6]);
}

#[test]
fn a_newcomers_word_is_told_and_changes_nothing() {
    let mut cluster = Cluster::with_newcomers(avoiding(), 5);
    (1..=4).for_each(|server| cluster.pass_trial(server));
    cluster.accuse(5, &[peer(1)]);
    assert_eq!(cluster.slow(), [(uuid(1), 1)]);
    assert_eq!(cluster.chosen(), [1, 2, 3, 4, 5]);
    cluster.pass_trial(5);
    // After a takeover all reporters are newcomers for a moment. New blocks come at once.
    assert_eq!(cluster.chosen_before_the_next_tick(), [2, 3, 4, 5]);
    assert_eq!(cluster.chosen(), [2, 3, 4, 5]);
}

/// Hadoop's data servers name each other by the port of their web pages, of which this map has not heard where they were
/// registered without; a host with two data servers is not guessed at.
#[test]
fn a_server_is_found_by_any_of_its_ports_and_by_its_host_alone_if_it_is_alone_there() {
    let mut cluster = Cluster::with_servers(avoiding(), 3);
    let twin = |uuid: &str, port: u16| Registration {
        uuid: uuid.into(),
        ip: "10.0.0.9".into(),
        host_name: "host9".into(),
        transfer_port: port,
        info_port: port + 1,
        ipc_port: port + 2,
        info_secure_port: port + 3,
        ..Registration::default()
    };
    for (name, port) in [("uuid-91", 1_000), ("uuid-92", 2_000)] {
        cluster.map.register(twin(name, port), session(9), cluster.now).unwrap();
    }
    for port in [2_000, 2_001, 2_002, 2_003] {
        cluster.accuse(1, &[slow(&format!("10.0.0.9:{port}"), 50.0)]);
    }
    cluster.accuse(1, &[slow("10.0.0.9:77", 50.0), slow("10.0.0.9:0", 50.0), slow("10.0.0.2:77", 50.0)]);
    assert_eq!(cluster.slow(), [("uuid-2".into(), 1), ("uuid-92".into(), 1)]);
}

#[test]
fn reports_that_make_no_sense_are_passed_over() {
    let mut cluster = Cluster::with_servers(avoiding(), 4);
    let good = format!("{}:{INFO_PORT}", ip(2));
    let wrong: Vec<_> = [f64::NAN, f64::INFINITY, -1.0].map(|latency| slow(&good, latency)).into();
    cluster.accuse(1, &wrong);
    let odd = ["", ":", "10.0.0.2", "10.0.0.2:port", "10.0.0.2:99999", "nobody:1", "[:1"];
    cluster.accuse(1, &odd.map(|address| slow(address, 50.0)));
    cluster.accuse(1, &[slow(&"1".repeat(100_000), 50.0)]);
    assert!(cluster.slow().is_empty());
    let disk = |path: &str, write_ms| SlowDisk { path: path.into(), write_ms, ..SlowDisk::default() };
    let disks = vec![
        disk("", Some(9.0)),
        disk("/a", None),
        disk("/e\u{1b}[2J", Some(9.0)),
        disk("/b", Some(f64::NAN)),
        disk("/c", Some(-1.0)),
        disk(&"d".repeat(2_000), Some(9.0)),
        disk("/good", Some(9.0)),
    ];
    cluster.beat_with(1, &Heartbeat { slow_disks: disks, ..heartbeat_of(1) });
    let told = cluster.map.slow_disks(cluster.now);
    assert_eq!(told.iter().map(|(_, disk)| &*disk.path).collect::<Vec<_>>(), ["/good"]);
}

#[test]
fn a_flood_of_reports_takes_a_bounded_place_and_leaves_room_for_others() {
    let mut cluster = Cluster::with_servers(avoiding(), 3);
    for round in 0..40 {
        let flood: Vec<_> = (0..200).map(|port| slow(&format!("10.{round}.0.1:{port}"), 50.0)).collect();
        cluster.accuse(1, &flood);
    }
    let disks = (0..1_000).map(|number| SlowDisk {
        path: format!("/disk{number}"),
        read_ms: Some(99.0),
        ..SlowDisk::default()
    });
    cluster.beat_with(1, &Heartbeat { slow_disks: disks.collect(), ..heartbeat_of(1) });
    assert_eq!(cluster.map.slow_disks(cluster.now).len(), 256);
    cluster.accuse(2, &[peer(3)]);
    assert_eq!(cluster.slow(), [(uuid(3), 1)]);
}

#[test]
fn newcomers_leave_room_for_the_reports_of_known_servers() {
    let mut cluster = Cluster::with_servers(avoiding(), 3);
    for newcomer in 4..=70 {
        cluster.start(newcomer);
        let flood: Vec<_> = (1..=256).map(|port| slow(&format!("10.9.0.1:{port}"), 50.0)).collect();
        let disk = |at| SlowDisk { path: format!("/disk{at}"), read_ms: Some(9.0), ..SlowDisk::default() };
        let disks = (0..256).map(disk).collect();
        let heartbeat = Heartbeat { slow_peers: flood, slow_disks: disks, ..heartbeat_of(newcomer) };
        cluster.beat_with(newcomer, &heartbeat);
    }
    cluster.accuse(2, &[peer(3)]);
    assert_eq!(cluster.slow(), [(uuid(3), 1)]);
    assert_eq!(cluster.map.stats().avoided_servers, 0, "with so many reports the next tick looks at them");
    cluster.map.tick(cluster.now, &|_| 0);
    assert_eq!(cluster.map.stats().avoided_servers, 1);
    let disk = SlowDisk { path: "/own".into(), read_ms: Some(99.0), ..SlowDisk::default() };
    cluster.beat_with(2, &Heartbeat { slow_disks: vec![disk], ..heartbeat_of(2) });
    assert_eq!(cluster.map.slow_disks(cluster.now)[0].1.path, "/own");
}

#[test]
fn a_disks_report_is_replaced_by_the_next_and_ends_with_time() {
    let mut cluster = Cluster::with_servers(avoiding(), 3);
    let report = |read_ms| {
        let disk = SlowDisk { path: "/data/1".into(), read_ms: Some(read_ms), ..SlowDisk::default() };
        Heartbeat { slow_disks: vec![disk], ..heartbeat_of(1) }
    };
    cluster.beat_with(1, &report(90.0));
    cluster.beat_with(1, &report(70.0));
    let told = cluster.map.slow_disks(cluster.now);
    assert_eq!((told.len(), told[0].1.worst_ms()), (1, 70.0));
    assert_eq!(&**told[0].0.uuid(), "uuid-1");
    assert_eq!(cluster.map.stats().slow_disks, 1);
    cluster.pass(3 * INTERVAL_MS, &[1, 2, 3]);
    assert!(cluster.map.slow_disks(cluster.now).is_empty());
}

/// A server that has just been told slow may die, and another may take its place in memory.
#[test]
fn a_server_that_is_dead_or_gone_takes_no_place_among_the_avoided() {
    let mut cluster = Cluster::with_servers(Config { slow_servers_max: 1, ..avoiding() }, 5);
    cluster.accuse(1, &[slow("10.0.0.2:1", 90.0), slow("10.0.0.3:1", 50.0)]);
    assert_eq!(cluster.chosen(), [1, 3, 4, 5]);
    // Reports go on; server 2 is silent for too long.
    for _ in 0..4 {
        cluster.pass(INTERVAL_MS, &[1, 3, 4, 5]);
        cluster.accuse(1, &[slow("10.0.0.2:1", 90.0), slow("10.0.0.3:1", 50.0)]);
    }
    assert!(!cluster.map.server(&uuid(2)).unwrap().alive);
    assert_eq!(cluster.chosen(), [1, 4, 5]);
}

/// Servers 1 and 2 are on one rack, 3 and 4 on the other, which is slow as a whole.
#[test]
fn a_rack_that_is_slow_as_a_whole_still_gets_its_replicas() {
    let mut cluster = Cluster::with_servers(Config { racks: racks(4).racks, ..avoiding() }, 4);
    cluster.accuse(1, &[peer(3), peer(4)]);
    cluster.map.tick(cluster.now, &|_| 0);
    assert_eq!(cluster.map.stats().avoided_servers, 2);
    for replication in [2, 3] {
        for _ in 0..50 {
            let placement = Placement { replication, block_size: 1 << 20, ..Placement::default() };
            let targets = cluster.map.choose_targets(&placement, cluster.now);
            let racks: std::collections::BTreeSet<&str> = targets.iter().map(|at| &*at.server.rack).collect();
            assert_eq!((targets.len(), racks.len()), (replication, 2));
        }
    }
}
