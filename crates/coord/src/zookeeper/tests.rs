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
    // A request that is under way when the coordinator is dropped is answered as well.
    let answer = crate::wait(|done| {
        coordinator.confirm(group, Basis { version: Version(1), change_id: 0 }, MemberId(1), done);
        drop(coordinator);
    });
    assert!(matches!(answer, Err(ChangeError::Unknown { .. })), "{answer:?}");
}

/// A server that makes a session and then answers every request with nothing where a value should be.
fn speak_nonsense(mut stream: std::net::TcpStream) -> std::io::Result<()> {
    use std::io::{Read, Write};
    let mut is_greeted = false;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut request)?;
        let mut reply = Vec::new();
        if is_greeted {
            // The request's number, a transaction, no error; and no body.
            reply.extend_from_slice(&request[..4]);
            reply.extend_from_slice(&1u64.to_be_bytes());
            reply.extend_from_slice(&0u32.to_be_bytes());
        } else {
            // Protocol, session's time and number, a password of 16 bytes, not read-only.
            reply.extend_from_slice(&0u32.to_be_bytes());
            reply.extend_from_slice(&1000u32.to_be_bytes());
            reply.extend_from_slice(&77u64.to_be_bytes());
            reply.extend_from_slice(&16u32.to_be_bytes());
            reply.extend_from_slice(&[0; 17]);
            is_greeted = true;
        }
        stream.write_all(&(reply.len() as u32).to_be_bytes())?;
        stream.write_all(&reply)?;
    }
}

#[test]
fn a_server_that_speaks_nonsense_gets_every_question_answered_with_unknown() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || speak_nonsense(stream));
        }
    });
    let coordinator = ZooKeeper::connect(ZooKeeperConfig { servers, session_ms: 1000, ..config() }).unwrap();
    let group = GroupId(1);
    coordinator.watch(group, Arc::new(|_, _| {}));
    coordinator.hold_lock(group, MemberId(1), Epoch(1));
    for _ in 0..3 {
        assert!(crate::wait(|done| coordinator.read(group, done)).is_err());
        assert!(crate::wait(|done| coordinator.read_members(group, done)).is_err());
        assert!(crate::wait(|done| coordinator.read_cluster(done)).is_err());
        let view = crate::conformance::sample();
        let changed = crate::wait(|done| {
            coordinator.change(group, Basis { version: Version(1), change_id: 0 }, view, &[], done)
        });
        assert!(matches!(changed, Err(ChangeError::Unknown { .. })), "{changed:?}");
        let confirmed = crate::wait(|done| {
            coordinator.confirm(group, Basis { version: Version(1), change_id: 0 }, MemberId(1), done)
        });
        assert!(matches!(confirmed, Err(ChangeError::Unknown { .. })), "{confirmed:?}");
    }
}
