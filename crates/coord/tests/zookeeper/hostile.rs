//! Nodes that others have filled with nonsense: reading them gives an error that names the node, and no panic.

use crate::{GROUP, config, connect, server::Server};
use base::GroupId;
use coord::{ChangeError, Event, conformance, conformance::Told, wait};

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_view_that_cannot_be_read_is_an_error_that_names_its_node() {
    let server = Server::start();
    let coordinator = connect(config(server.address()));
    let version = conformance::create(&*coordinator, GROUP, &conformance::sample()).unwrap();
    let told = Told::watch(&*coordinator, GROUP);
    let state = "/clover/test/g/1/state";
    let good = server.plainly(async |client| client.get_data(state).await.unwrap().0);
    let newer = String::from_utf8(good.clone()).unwrap().replace("\"format\":1", "\"format\":7");
    let megabyte = vec![b'{'; 1_000_000];
    let truncated = &good[..good.len() / 2];
    for bad in
        [&b""[..], truncated, &megabyte, newer.as_bytes(), b"null", b"[1]", b"\xff\xfe", b"{\"format\":1}"]
    {
        server.write(state, Some(bad));
        told.wait(GROUP, Event::View);
        let error = wait(|done| coordinator.read(GROUP, done)).expect_err("it cannot be understood");
        assert!(error.reason.starts_with("/clover/test/g/1/state: "), "{error}");
        // A change that is based on the view before does not overwrite the damaged one.
        let changed = conformance::change(&*coordinator, GROUP, version, &conformance::sample());
        assert_eq!(changed, Err(ChangeError::BadVersion));
        assert_eq!(conformance::confirm(&*coordinator, GROUP, version), Err(ChangeError::BadVersion));
    }
    server.write(state, Some(&good));
    told.wait(GROUP, Event::View);
    assert_eq!(conformance::read(&*coordinator, GROUP).unwrap().view, conformance::sample());
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn a_member_that_cannot_be_read_is_an_error_that_names_its_node() {
    let server = Server::start();
    let coordinator = connect(config(server.address()));
    let record = conformance::record(1, 0, 1);
    let version = conformance::create(&*coordinator, GROUP, &conformance::sample()).unwrap();
    conformance::write_member(&*coordinator, GROUP, &record).unwrap();
    for (node, value) in [("1", &b"{}"[..]), ("1", b""), ("2", &[b' '; 100_000]), ("first", b"")] {
        let node = format!("/clover/test/g/1/m/{node}");
        server.write(&node, Some(value));
        let error = wait(|done| coordinator.read_members(GROUP, done)).expect_err("one cannot be understood");
        assert!(error.reason.starts_with(&format!("{node}: ")), "{error}");
        if node.ends_with("/1") {
            // It may have told of a later life, so it is not overwritten; an operator looks at it.
            let written = conformance::write_member(&*coordinator, GROUP, &record);
            assert!(
                matches!(&written, Err(ChangeError::Refused { reason }) if reason.starts_with(&node)),
                "{written:?}"
            );
            let changed = conformance::change_requiring(&*coordinator, GROUP, version, &[record.life]);
            assert!(changed.is_err(), "nothing proves that the member lives this life");
        }
        server.write(&node, None);
        conformance::write_member(&*coordinator, GROUP, &record).unwrap();
    }
    assert_eq!(conformance::members(&*coordinator, GROUP), [record]);
}

#[test]
#[ignore = "needs ZooKeeper's jars: run `make test-zookeeper`"]
fn nodes_that_others_made_do_no_harm() {
    let server = Server::start();
    server.write("/clover", Some(b"somebody's"));
    server.write("/clover/test", Some(b""));
    let coordinator = connect(config(server.address()));
    // A cluster's node without text was made by nobody of ours: it is not "no cluster".
    server.write("/clover/test/cluster", Some(b""));
    assert!(wait(|done| coordinator.read_cluster(done)).is_err());
    assert_eq!(wait(|done| coordinator.create_cluster(b"mine".into(), done)), Err(ChangeError::BadVersion));
    server.write("/clover/test/cluster", None);
    wait(|done| coordinator.create_cluster(b"mine".into(), done)).unwrap();
    conformance::create(&*coordinator, GROUP, &conformance::sample()).unwrap();
    // A lock that is no ephemeral node never goes; nothing waits for it.
    server.write("/clover/test/g/1/lock", Some(b"forged"));
    coordinator.hold_lock(GROUP, base::MemberId(1), base::Epoch(1));
    assert!(conformance::read(&*coordinator, GROUP).is_some());
    assert_eq!(conformance::read(&*coordinator, GroupId(2)), None);
}
