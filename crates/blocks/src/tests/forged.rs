//! Somebody speaks as a data server that is another, or none.

use super::cluster::*;
use crate::*;
use base::{Epoch, Moment};

/// The known server of that number, as it would register from `ip`.
fn registration(cluster: &Cluster, server: u16, ip: &str) -> Registration {
    let known = cluster.map.server(&uuid(server)).unwrap();
    Registration { ip: ip.into(), ..(*known.registration).clone() }
}

#[test]
pub fn what_carries_another_key_changes_nothing() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let (uuid, ip) = (uuid(1), ip(1));
    for key in [&session(2).0[..], &[0; 16], &[]] {
        let forger = ServerId { uuid: &uuid, ip: &ip, transfer_port: 9866, session: key, connection: 0 };
        let (map, now) = (&mut cluster.map, cluster.now);
        let gone = [Increment::Deleted(block(1, 5))];
        let told = map.incremental_report(forger, "DS-1", StorageType::Disk, &gone, now);
        assert!(matches!(told, Err(ServerError::NotRegistered(_))), "{told:?}");
        assert!(map.begin_report(forger, "DS-1", StorageType::Disk, 0, now).is_err());
        assert!(map.take_lifeline(forger, &Heartbeat::default(), now).is_err());
        assert!(map.give_up_server(forger).is_err());
        assert_eq!(map.grant_report_lease(forger, now), 0);
        let commands = map.heartbeat(forger, &Heartbeat::default(), now).unwrap();
        assert!(matches!(commands[..], [Command::Register]), "{commands:?}");
        cluster.check();
        assert_eq!(cluster.holders(1), [1, 2]);
    }
}

#[test]
fn a_server_that_is_heard_is_nowhere_else() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let elsewhere = registration(&cluster, 1, "10.9.9.9");
    let refused = cluster.map.register(elsewhere.clone(), session(9), cluster.now).unwrap_err();
    assert!(
        refused.to_string().starts_with("data server uuid-1 is registered from 10.0.0.1:9866"),
        "{refused}"
    );
    assert!(cluster.heartbeat(1).is_empty(), "its session goes on");
    assert_eq!(cluster.holders(1), [1, 2]);

    // Nothing is heard from where it was, though it is not taken for dead yet: it has moved.
    cluster.now = cluster.now.plus_ms(1_001);
    cluster.heartbeat(2);
    cluster.map.register(elsewhere, session(9), cluster.now).unwrap();
    assert_eq!(cluster.map.server(&uuid(1)).unwrap().registration.transfer_address(), "10.9.9.9:9866");
    cluster.check();
}

#[test]
fn who_took_the_place_of_a_silent_server_gives_way_when_it_is_back() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let (here, elsewhere) = (registration(&cluster, 1, &ip(1)), registration(&cluster, 1, "10.9.9.9"));
    cluster.now = cluster.now.plus_ms(1_001);
    cluster.heartbeat(2);
    cluster.map.register(elsewhere, session(9), cluster.now).unwrap();
    // Hadoop's data servers end when they are told that another holds their uuid.
    let answer = cluster.speak(1, |map, id, now| map.heartbeat(id, &Heartbeat::default(), now)).unwrap();
    assert!(matches!(answer[..], [Command::Register]), "{answer:?}");
    cluster.map.register(here, session(1), cluster.now).unwrap();
    assert!(cluster.heartbeat(1).is_empty());
    cluster.report(1, &[finalized(block(1, 5))]);
    assert_eq!(cluster.holders(1), [1, 2]);
}

#[test]
fn a_process_that_starts_again_on_its_host_ends_the_session_before() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let again = Registration { transfer_port: 9999, ..registration(&cluster, 1, &ip(1)) };
    cluster.map.register(again, session(9), cluster.now).unwrap();
    let (uuid, ip) = (uuid(1), ip(1));
    let speak = |map: &mut BlockMap, transfer_port, session: SessionKey, now: Moment| {
        let id = ServerId { uuid: &uuid, ip: &ip, transfer_port, session: &session.0, connection: 0 };
        map.heartbeat(id, &Heartbeat::default(), now).map(|commands| commands.len())
    };
    assert!(speak(&mut cluster.map, 9866, session(1), cluster.now).is_err());
    assert_eq!(speak(&mut cluster.map, 9999, session(9), cluster.now), Ok(0));
}

#[test]
fn nobody_is_found_under_the_host_name_of_another() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let named = Registration { uuid: "another".into(), ..registration(&cluster, 1, "10.9.9.9") };
    let known = cluster.map.register(named.clone(), session(9), cluster.now).unwrap();
    assert_eq!(&*known.registration.host_name, "10.9.9.9");
    assert_eq!(&*cluster.map.server(&uuid(1)).unwrap().registration.host_name, "host1");
    cluster.pass(5_000, &[]);
    let known = cluster.map.register(named, session(9), cluster.now).unwrap();
    assert_eq!(&*known.registration.host_name, "host1", "the other one is dead");
}

#[test]
fn a_recovery_is_ended_by_the_server_that_was_told_to() {
    let mut cluster = Cluster::with_servers(config(), 3);
    let targets = [cluster.place(1), cluster.place(2)];
    let (open, under) = (block(1, 0), BlockState::UnderConstruction);
    cluster.map.add_block(open, base::InodeId(16_386), 2, under, &targets, cluster.now);
    let may = |cluster: &Cluster| [1, 2, 3].map(|server| cluster.map.may_end_recovery(open.id, &ip(server)));
    assert!(cluster.map.begin_recovery(open.id, None, cluster.now));
    assert!(cluster.map.recover(open.id, base::GenerationStamp(1002), None, None));
    let told = may(&cluster);
    assert_eq!((told.iter().filter(|may| **may).count(), told[2]), (1, false));

    // An active that has taken over does not know which server the active before it has ordered to recover.
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert_eq!(may(&cluster), [true; 3]);
    assert!(!cluster.map.may_end_recovery(open.id, "10.9.9.9"));
}
