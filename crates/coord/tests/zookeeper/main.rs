//! The ZooKeeper coordinator against real servers. `make test-zookeeper` installs their jars and runs this; a
//! plain `cargo test` shows the tests as ignored.

mod faults;
mod hostile;
mod proxy;
mod server;

use base::{GroupId, MemberId};
use conformance::Told;
use coord::{Basis, ChangeError, Coordinator, Event, Version, ZooKeeper, ZooKeeperConfig, conformance, wait};
use server::Server;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const GROUP: GroupId = GroupId(1);

fn config(servers: &str) -> ZooKeeperConfig {
    ZooKeeperConfig { servers: servers.into(), root: "/clover/test".into(), session_ms: 4000, auth: None }
}

fn connect(config: ZooKeeperConfig) -> Arc<dyn Coordinator> {
    ZooKeeper::connect(config).expect("the settings are good")
}

fn user(name: &str) -> Option<(String, String)> {
    Some((name.into(), format!("password of {name}")))
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn it_behaves_like_every_coordinator() {
    let server = Server::start();
    for (root, auth) in [("/open", None), ("/clover/closed", user("clover"))] {
        let config = ZooKeeperConfig { root: root.into(), auth, ..config(server.address()) };
        let open = || connect(config.clone());
        conformance::all(open, || [open(), open()]);
    }
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn nodes_of_one_user_are_closed_to_others() {
    let server = Server::start();
    let open = |auth| connect(ZooKeeperConfig { auth, ..config(server.address()) });
    let owner = open(user("owner"));
    let version = conformance::create(&*owner, GROUP, &conformance::sample()).unwrap();
    conformance::write_member(&*owner, GROUP, &conformance::record(1, 0, 1)).unwrap();
    wait(|done| owner.create_cluster(b"the owner's".into(), done)).unwrap();
    for stranger in [open(None), open(user("stranger"))] {
        let refused = |answer: Result<(), ChangeError>, node: &str| {
            let error = answer.expect_err("it belongs to the owner");
            assert!(matches!(&error, ChangeError::Refused { reason } if reason.contains(node)), "{error}");
        };
        let read = wait(|done| stranger.read(GROUP, done)).expect_err("not to be read by others");
        assert!(read.reason.contains("/clover/test/g/1/state: not authorized"), "{read}");
        assert!(wait(|done| stranger.read_cluster(done)).is_err());
        assert!(wait(|done| stranger.read_members(GROUP, done)).is_err());
        let changed = conformance::change(&*stranger, GROUP, version, &conformance::sample());
        refused(changed.map(drop), "/clover/test/g/1/state");
        let written = conformance::write_member(&*stranger, GROUP, &conformance::record(1, 0, 2));
        refused(written, "/clover/test/g/1/m/1");
        refused(conformance::confirm(&*stranger, GROUP, version), "/clover/test/g/1");
        let made = conformance::create(&*stranger, GroupId(2), &conformance::sample());
        refused(made.map(drop), "/clover/test");
    }
    // Another cluster of another user has room beside it.
    let beside =
        ZooKeeperConfig { root: "/clover/beside".into(), auth: user("stranger"), ..config(server.address()) };
    conformance::create(&*connect(beside), GROUP, &conformance::sample()).unwrap();
    assert_eq!(conformance::read(&*owner, GROUP).unwrap().basis(), version);
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn two_clients_racing_never_both_win() {
    let server = Server::start();
    let pair = [connect(config(server.address())), connect(config(server.address()))];
    let first = conformance::create(&*pair[0], GROUP, &conformance::sample()).unwrap();
    let mut won: Vec<Version> = std::thread::scope(|scope| {
        let racers: Vec<_> = pair.iter().map(|racer| scope.spawn(|| race(&**racer, first, 100))).collect();
        racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect()
    });
    won.sort();
    let all: Vec<Version> = (first.version.0 + 1..=first.version.0 + 200).map(Version).collect();
    assert_eq!(won, all, "each version was won once");
}

/// Changes the view until it has won so many times.
fn race(coordinator: &dyn Coordinator, mut basis: Basis, wins: usize) -> Vec<Version> {
    let mut won = Vec::new();
    while won.len() < wins {
        match conformance::change(coordinator, GROUP, basis, &conformance::sample()) {
            Ok(next) => {
                won.push(next.version);
                basis = next;
            }
            Err(ChangeError::BadVersion) => {
                basis = conformance::read(coordinator, GROUP).unwrap().basis();
            }
            Err(error) => panic!("{error}"),
        }
    }
    won
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_confirmation_takes_one_round_trip_and_a_change_two() {
    const ROUNDS: u64 = 300;
    let server = Server::start();
    let coordinator = connect(ZooKeeperConfig { session_ms: 60_000, ..config(server.address()) });
    let mut version = conformance::create(&*coordinator, GROUP, &conformance::sample()).unwrap();
    conformance::confirm(&*coordinator, GROUP, version).unwrap();
    conformance::write_member(&*coordinator, GROUP, &conformance::record(1, 0, 1)).unwrap();
    let life = conformance::record(1, 0, 1).life;

    let requests = |what: &str, packets_max: u64, mut ask: Box<dyn FnMut() + '_>| {
        let before = server.packets_received();
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                ask();
                begun.elapsed()
            })
            .collect();
        let packets = server.packets_received() - before;
        times.sort();
        println!(
            "{what}: median {:?}, p99 {:?}, {packets} packets for {ROUNDS}",
            times[times.len() / 2],
            times[times.len() * 99 / 100]
        );
        // The commands that count are packets, and pings may be.
        assert!(packets <= packets_max * ROUNDS + 20, "{what}: {packets} packets");
    };
    requests("read", 2, Box::new(|| drop(conformance::read(&*coordinator, GROUP))));
    requests(
        "change",
        2,
        Box::new(|| {
            version = conformance::change(&*coordinator, GROUP, version, &conformance::sample()).unwrap();
        }),
    );
    requests("confirm", 2, Box::new(|| conformance::confirm(&*coordinator, GROUP, version).unwrap()));
    requests(
        "change that requires a member",
        4,
        Box::new(|| {
            version = conformance::change_requiring(&*coordinator, GROUP, version, &[life]).unwrap();
        }),
    );

    // For comparison, on a server that has warmed up.
    let plain = server.plainly(async |client| {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            client.set_data("/clover/test/g/1/m", b"", None).await.unwrap();
            times.push(begun.elapsed());
        }
        times.sort();
        times[times.len() / 2]
    });
    println!("a plain client's set: median {plain:?}");
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_process_that_ends_well_leaves_no_lock() {
    let server = Server::start();
    let patient = ZooKeeperConfig { session_ms: 60_000, ..config(server.address()) };
    let [one, two] = [connect(patient.clone()), connect(patient)];
    conformance::create(&*one, GROUP, &conformance::sample()).unwrap();
    let told = Told::watch(&*one, GROUP);
    two.hold_lock(GROUP, MemberId(2), base::Epoch(5));
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":2,"epoch":5}"#);
    two.hold_lock(GROUP, MemberId(2), base::Epoch(6));
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":2,"epoch":6}"#);
    let begun = Instant::now();
    drop(two);
    told.wait(GROUP, Event::LockGone);
    assert!(begun.elapsed() < Duration::from_secs(3), "the session was closed, not left to expire");
}
