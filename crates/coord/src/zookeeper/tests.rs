use super::*;

fn config() -> ZooKeeperConfig {
    ZooKeeperConfig {
        servers: "127.0.0.1:1,[::1]:2181,zk.example:2181".into(),
        root: "/clover/one".into(),
        session_ms: 200,
        auth: Some(("clover".into(), "a:b".into())),
    }
}

#[test]
fn settings_that_cannot_be_are_named() {
    assert_eq!(config().check(), Ok(()));
    for servers in
        ["", "host", "host:", "host:0", "host:65536", ":2181", "a:1,,b:1", "a:1/path", "tcp+tls://a:1"]
    {
        let bad = ZooKeeperConfig { servers: servers.into(), ..config() };
        assert!(bad.check().is_err_and(|what| what.contains("host:port")), "{servers:?}");
    }
    for root in ["", "/", "clover", "/clover/", "//clover", "/clover/../x", "/a b", "/zookeeper/x"] {
        let bad = ZooKeeperConfig { root: root.into(), ..config() };
        assert!(bad.check().is_err_and(|what| what.contains("root")), "{root:?}");
    }
    for session_ms in [0, 99, 600_001, u64::MAX] {
        assert!(ZooKeeperConfig { session_ms, ..config() }.check().is_err(), "{session_ms}");
    }
    for user in ["", "a:b"] {
        let auth = Some((user.to_owned(), "secret".to_owned()));
        assert!(ZooKeeperConfig { auth, ..config() }.check().is_err(), "{user:?}");
    }
}

#[test]
fn the_password_is_not_shown() {
    let config = ZooKeeperConfig { auth: Some(("clover".into(), "hush".into())), ..config() };
    let shown = format!("{config:?}");
    assert!(shown.contains("clover") && !shown.contains("hush"), "{shown}");
}

#[test]
fn without_an_ensemble_every_answer_comes_and_is_unknown() {
    let config = ZooKeeperConfig { servers: "127.0.0.1:1".into(), ..config() };
    let coordinator = ZooKeeper::connect(config).unwrap();
    let group = GroupId(1);
    let read = crate::wait(|done| coordinator.read(group, done));
    assert!(read.is_err_and(|error| error.reason.contains("200 ms")));
    let named = crate::wait(|done| coordinator.create_cluster(b"x".into(), done));
    assert!(matches!(named, Err(ChangeError::Unknown { .. })), "{named:?}");
    // One that is under way when the coordinator goes is answered as well.
    let answer = crate::wait(|done| {
        coordinator.confirm(group, Version(1), MemberId(1), done);
        drop(coordinator);
    });
    assert!(matches!(answer, Err(ChangeError::Unknown { .. })), "{answer:?}");
}
