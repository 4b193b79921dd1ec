//! Broken connections, expired sessions, servers that end, freeze and come back.

use crate::{GROUP, config, connect, proxy::Proxy, server::Server};
use base::{Epoch, GroupView, MemberId};
use coord::{
    Basis, ChangeError, Coordinator, Event, Version, ZooKeeperConfig,
    conformance::{self, Told},
    wait,
};
use std::time::{Duration, Instant};

/// A view that its author knows again.
fn named(change_id: u64) -> GroupView {
    GroupView { change_id, ..conformance::sample() }
}

/// Repeats the identical change for as long as its outcome is unknown, then looks whose the view is: the rule
/// of the group's members.
fn change_for_sure(coordinator: &dyn Coordinator, expected: Basis, view: &GroupView) -> Option<Basis> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "the outcome stays unknown");
        match conformance::change(coordinator, GROUP, expected, view) {
            Ok(version) => return Some(version),
            Err(ChangeError::Unknown { .. }) => std::thread::sleep(Duration::from_millis(20)),
            Err(ChangeError::BadVersion) => {
                let Ok(found) = wait(|done| coordinator.read(GROUP, done)) else { continue };
                let found = found.expect("the group is there");
                return (found.view.change_id == view.change_id).then_some(found.basis());
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_broken_connection_is_told_and_made_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let coordinator = connect(config(proxy.address()));
    let other = connect(config(server.address()));
    let mut version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    coordinator.hold_lock(GROUP, MemberId(1), Epoch(1));
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":1,"epoch":1}"#);
    let (told, told_other) = (Told::watch(&*coordinator, GROUP), Told::watch(&*other, GROUP));
    std::thread::sleep(Duration::from_millis(200));
    for round in 1..=3 {
        proxy.cut();
        told.wait(GROUP, Event::Disconnected);
        // The coordinator tells of changes made during a lost connection afterwards, on every new connection.
        version = conformance::change(&*other, GROUP, version, &named(round)).unwrap();
        proxy.mend();
        told.wait(GROUP, Event::Connected);
        told.wait(GROUP, Event::View);
        assert_eq!(conformance::read(&*coordinator, GROUP).unwrap().view, named(round));
        version = conformance::change(&*other, GROUP, version, &named(round)).unwrap();
        told.wait(GROUP, Event::View);
    }
    assert!(!told.rest().contains(&Event::Expired));
    assert!(!told_other.rest().contains(&Event::LockGone), "the session lived on, and its lock with it");
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn an_expired_session_is_replaced_and_its_lock_made_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let coordinator = connect(ZooKeeperConfig { session_ms: 600, ..config(proxy.address()) });
    let other = connect(config(server.address()));
    let version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    coordinator.hold_lock(GROUP, MemberId(1), Epoch(1));
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":1,"epoch":1}"#);
    let (told, told_other) = (Told::watch(&*coordinator, GROUP), Told::watch(&*other, GROUP));
    std::thread::sleep(Duration::from_millis(200));
    proxy.cut();
    told_other.wait(GROUP, Event::LockGone);
    let next = conformance::change(&*other, GROUP, version, &named(1)).unwrap();
    // Well past the time after which the client gives its session up by itself.
    std::thread::sleep(Duration::from_secs(2));
    proxy.mend();
    told.wait(GROUP, Event::Expired);
    told.wait(GROUP, Event::Connected);
    told.wait(GROUP, Event::View);
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":1,"epoch":1}"#);
    assert_eq!(conformance::read(&*coordinator, GROUP).unwrap().basis(), next);
    let next = conformance::change(&*coordinator, GROUP, next, &named(2)).unwrap();
    conformance::change(&*other, GROUP, next, &named(3)).unwrap();
    told.wait(GROUP, Event::View);
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_server_that_is_killed_and_started_again_keeps_everything() {
    let server = Server::start();
    let coordinator = connect(ZooKeeperConfig { session_ms: 20_000, ..config(server.address()) });
    let mut version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    coordinator.hold_lock(GROUP, MemberId(1), Epoch(1));
    let told = Told::watch(&*coordinator, GROUP);
    for round in 1..=2 {
        version = conformance::change(&*coordinator, GROUP, version, &named(round)).unwrap();
        server.kill();
        told.wait(GROUP, Event::Disconnected);
        server.start_again();
        told.wait(GROUP, Event::Connected);
        let found = conformance::read(&*coordinator, GROUP).unwrap();
        assert_eq!((found.version, found.view), (version.version, named(round)));
    }
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":1,"epoch":1}"#);
    assert!(!told.rest().contains(&Event::Expired), "a restart is shorter than the session");
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn while_the_server_is_away_answers_are_unknown_and_afterwards_they_are_not() {
    let server = Server::start();
    let coordinator = connect(ZooKeeperConfig { session_ms: 800, ..config(server.address()) });
    let version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    let told = Told::watch(&*coordinator, GROUP);
    server.stop();
    told.wait(GROUP, Event::Disconnected);
    let away = Instant::now();
    while away.elapsed() < Duration::from_secs(4) {
        let begun = Instant::now();
        let changed = conformance::change(&*coordinator, GROUP, version, &named(1));
        assert!(matches!(changed, Err(ChangeError::Unknown { .. })), "{changed:?}");
        assert!(wait(|done| coordinator.read(GROUP, done)).is_err());
        assert!(begun.elapsed() < Duration::from_secs(3), "an answer comes within the session's time");
    }
    server.start_again();
    let next = change_for_sure(&*coordinator, version, &named(1)).expect("nobody else changes it");
    assert_eq!(next.version, Version(version.version.0 + 1));
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_frozen_server_is_noticed_by_its_silence() {
    let server = Server::start();
    let coordinator = connect(ZooKeeperConfig { session_ms: 1000, ..config(server.address()) });
    let version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    let told = Told::watch(&*coordinator, GROUP);
    server.signal("-STOP");
    told.wait(GROUP, Event::Disconnected);
    std::thread::sleep(Duration::from_secs(2));
    server.signal("-CONT");
    told.wait(GROUP, Event::Connected);
    let next = change_for_sure(&*coordinator, version, &named(1)).expect("nobody else changes it");
    assert_eq!(next.version, Version(version.version.0 + 1));
}

/// The answer is lost, the change is made: it is repeated, and found to be one's own.
#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_change_whose_answer_was_lost_is_found_made() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let coordinator = connect(ZooKeeperConfig { session_ms: 3000, ..config(proxy.address()) });
    let other = connect(config(server.address()));
    let mut version = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    for round in 1..=3 {
        proxy.deafen_to_writes();
        let (sender, answer) = std::sync::mpsc::channel();
        coordinator.change(
            GROUP,
            version,
            named(round),
            &[],
            Box::new(move |said| sender.send(said).unwrap()),
        );
        let deadline = Instant::now() + Duration::from_secs(10);
        while conformance::read(&*other, GROUP).unwrap().view != named(round) {
            assert!(Instant::now() < deadline, "the request came through");
            std::thread::sleep(Duration::from_millis(10));
        }
        proxy.break_all();
        proxy.mend();
        let lost = answer.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(matches!(lost, Err(ChangeError::Unknown { .. })), "{lost:?}");
        version = change_for_sure(&*coordinator, version, &named(round)).expect("it was made");
        assert_eq!(version.version, Version(1 + round), "it was made once");
    }
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn an_ensemble_that_is_rolled_and_loses_its_leader_loses_no_change() {
    let ensemble = Server::ensemble();
    let coordinator = connect(ZooKeeperConfig { session_ms: 6000, ..config(ensemble.address()) });
    let first = conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    let told = Told::watch(&*coordinator, GROUP);
    let is_rolled = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let roller = scope.spawn(|| {
            for id in 1..=3 {
                ensemble.roll(id, "stop");
            }
            let leader = (1..=3).find(|id| ensemble.mode(*id) == "leader").expect("one leads");
            ensemble.roll(leader, "kill");
            is_rolled.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let (mut version, mut round, mut longest) = (first, 0, Duration::ZERO);
        while !is_rolled.load(std::sync::atomic::Ordering::SeqCst) {
            round += 1;
            let begun = Instant::now();
            let next =
                change_for_sure(&*coordinator, version, &named(round)).expect("nobody else changes it");
            longest = longest.max(begun.elapsed());
            assert_eq!(next.version, Version(version.version.0 + 1), "each change was made once");
            version = next;
            std::thread::sleep(Duration::from_millis(5));
        }
        roller.join().unwrap();
        println!(
            "{round} changes while three servers were rolled and the leader was killed; the slowest took {longest:?}"
        );
        assert!(round > 50, "{round}");
    });
    assert!(!told.rest().contains(&Event::Expired));
    let modes: Vec<String> = (1..=3).map(|id| ensemble.mode(id)).collect();
    assert!(modes.contains(&"leader".into()), "{modes:?}");
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_coordinator_may_be_opened_before_its_server_is_up() {
    let server = Server::start();
    server.stop();
    let coordinator = connect(ZooKeeperConfig { session_ms: 2000, ..config(server.address()) });
    let told = Told::watch(&*coordinator, GROUP);
    coordinator.hold_lock(GROUP, MemberId(1), Epoch(3));
    told.wait(GROUP, Event::Disconnected);
    assert!(wait(|done| coordinator.read(GROUP, done)).is_err());
    server.start_again();
    told.wait(GROUP, Event::Connected);
    conformance::create(&*coordinator, GROUP, &named(0)).unwrap();
    server.wait_for_lock("/clover/test", GROUP, r#"{"format":1,"member":1,"epoch":3}"#);
}
