use super::*;
use crate::config::META;

/// The refusal of these settings by a start; empty if the start accepts them.
fn refusal(toml: &str) -> String {
    let mut settings = Settings::defaults(META);
    let read = settings.read_toml(toml, "meta.toml");
    let checked = read.and_then(|()| config(&settings)).and_then(|_| check_for_format(&settings));
    checked.err().map(|error| error.to_string()).unwrap_or_default()
}

const ZOOKEEPER: &str = "insecure_coordinator = true\ncoordinator = 'zookeeper://127.0.0.1:2181/c'\n";
const PEER: &str = "peer_address = '127.0.0.1:8021'\n";

#[test]
fn a_group_of_one_needs_no_key_and_a_group_of_three_needs_few() {
    assert_eq!(refusal(""), "");
    assert_eq!(refusal(&format!("member = 2\nmembers = [3, 1, 2]\n{ZOOKEEPER}{PEER}")), "");
    assert_eq!(refusal(&format!("in_sync_min = 3\nmembers = [3, 1, 2]\n{ZOOKEEPER}{PEER}")), "");
}

#[test]
fn what_is_set_is_what_a_server_is_started_with() {
    let mut settings = Settings::defaults(META);
    let toml = format!(
        "group_lease_ms = 800\nmember = 2\nin_sync_min = 3\nmembers = [3, 1, 2]\nhold_ms = '2s'\n{ZOOKEEPER}{PEER}"
    );
    settings.read_toml(&toml, "m").unwrap();
    settings.set("advertised_rpc_address=meta-2:8020").unwrap();
    let config = config(&settings).unwrap();
    assert_eq!((config.member, config.in_sync_min, config.hold_ms), (MemberId(2), Some(3), 2_000));
    assert_eq!(config.members, [1, 2, 3].map(MemberId));
    assert_eq!(config.timing.lease_ms, 800);
    assert_eq!(config.advertised.rpc.as_deref(), Some("meta-2:8020"));
    assert_eq!(config.peer_address, Some("127.0.0.1:8021".parse().unwrap()));
}

#[test]
fn values_are_refused_with_file_line_key_and_range() {
    for (toml, expected) in [
        ("\nmember = 0", "meta.toml:2: member: 0 is out of range: 1 to 10000"),
        ("members = [1, 0]", "meta.toml:1: members: 0 is out of range: 1 to 10000"),
        ("members = ['1', '2']", "meta.toml:1: members: a list of numbers has no string"),
        ("in_sync_min = 17", "meta.toml:1: in_sync_min: 17 is out of range: 0 to 16"),
        ("coordinator = 'etcd://h/x'", "meta.toml:1: coordinator: `etcd://h/x` is neither"),
        ("advertised_rpc_address = 'h'", "meta.toml:1: advertised_rpc_address: `h` is not an address"),
        ("group_lease_ms = 49", "meta.toml:1: group_lease_ms: 49 is out of range: 50 to 60000"),
    ] {
        let refusal = refusal(toml);
        assert!(refusal.starts_with(expected), "{toml}: {refusal}");
    }
}

#[test]
fn a_group_that_could_not_work_is_refused() {
    let three = format!("members = [1, 2, 3]\n{ZOOKEEPER}{PEER}");
    for (toml, expected) in [
        (
            format!("in_sync_min = 4\n{three}"),
            "in_sync_min = 4 is more than the 3 server(s) of members = [1, 2, 3]",
        ),
        (format!("member = 4\n{three}"), "member = 4, and members = [1, 2, 3]"),
        (format!("members = [1, 2, 2]\n{ZOOKEEPER}{PEER}"), "members names 2 twice"),
        ("members = [1, 2]".into(), "need a coordinator that all of them reach"),
        (ZOOKEEPER.into(), "peer_address is not set"),
        (format!("{ZOOKEEPER}{PEER}secret_file = '/nonexistent/s'"), "secret_file: /nonexistent/s"),
        (format!("{ZOOKEEPER}peer_address = '0.0.0.0:8021'"), "advertised_peer_address"),
        ("group_silence_ms = 400".into(), "do not fit together: silence_ms 400 is not under 340"),
        ("group_beacon_ms = 100".into(), "do not fit together: silence_ms 250 does not leave room"),
        (format!("{three}advertised_rpc_address = 'h:0'"), "nobody can connect to port 0"),
    ] {
        let refusal = refusal(&toml);
        assert!(refusal.contains(expected), "{toml}: {refusal}");
    }
}

#[test]
fn a_zookeeper_that_everybody_can_change_is_refused_unless_it_is_said_that_nobody_else_reaches_it() {
    let open = format!("members = [1, 2, 3]\ncoordinator = 'zookeeper://127.0.0.1:2181/c'\n{PEER}");
    let refused = refusal(&open);
    assert!(refused.starts_with("coordinator is a ZooKeeper whose records everybody"), "{refused}");
    for remedy in ["coordinator_auth_file", "user:password", "insecure_coordinator = true"] {
        assert!(refused.contains(remedy), "{refused}");
    }
    assert_eq!(refusal(&format!("{open}insecure_coordinator = true\n")), "");
    let missing = refusal(&format!("{open}coordinator_auth_file = '/nonexistent/user'\n"));
    assert!(missing.contains("/nonexistent/user"), "{missing}");
    assert_eq!(refusal("coordinator = 'embedded'"), "");
}

#[test]
fn secrets_are_nobody_elses_business() {
    let directory = std::env::temp_dir().join(format!("clover-secret-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("secret");
    let toml = format!("{ZOOKEEPER}{PEER}secret_file = '{}'", file.display());
    for (text, mode, expected) in [
        ("0123456789abcdef\n", 0o600, ""),
        ("0123456789abcdef\n", 0o640, "can be read by others (mode 640)"),
        ("short", 0o600, "at least 16 are needed"),
    ] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let refusal = refusal(&toml);
        assert!(refusal.contains(expected) && refusal.is_empty() == expected.is_empty(), "{text}: {refusal}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let toml = format!("{ZOOKEEPER}{PEER}coordinator_auth_file = '{}'", file.display());
    assert!(refusal(&toml).contains("is not one line of user:password"));
    fs::write(&file, "clover:pass:word\n").unwrap();
    assert_eq!(refusal(&toml), "");
    let mut settings = Settings::defaults(META);
    settings.read_toml(&toml, "m").unwrap();
    let config = config(&settings).unwrap();
    let CoordinatorConfig::ZooKeeper(zookeeper) = &config.coordinator else { panic!("{config:?}") };
    assert_eq!(zookeeper.auth, Some(("clover".into(), "pass:word".into())));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_secret_that_root_lends_to_a_group_is_private_to_the_user_of_a_container() {
    let (root, me) = (0, 10_001);
    for (mode, owner, reader, is_private_to_it) in [
        (0o400, me, me, true),
        (0o440, root, me, true),
        (0o440, me, me, false),
        (0o440, root, root, false),
        (0o444, root, me, false),
        (0o460, root, me, false),
        (0o600, root, root, true),
    ] {
        assert_eq!(is_private(mode, owner, reader), is_private_to_it, "{mode:o} {owner} {reader}");
    }
}
