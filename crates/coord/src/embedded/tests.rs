use super::*;
use crate::conformance;
use std::sync::Arc;

#[test]
fn it_behaves_like_every_coordinator() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    let open = || Embedded::open(&env, directory.path()).unwrap();
    conformance::all(
        || Arc::new(open()),
        || {
            let first = open();
            let second = first.session();
            [Arc::new(first), Arc::new(second)]
        },
    );
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    let coordinator = Embedded::open(&env, directory.path()).unwrap();
    conformance::create(&coordinator, GroupId(1), &conformance::sample()).unwrap();
    let path = directory.path().join("coordinator.json");
    let good = std::fs::read(&path).unwrap();
    for index in 0..good.len() {
        let mut bad = good.clone();
        bad[index] ^= 1 << (index % 8);
        std::fs::write(&path, &bad).unwrap();
        let error = Embedded::open(&env, directory.path()).err().expect("the file is damaged");
        assert!(matches!(error, OpenError::Damaged { .. }), "byte {index}: {error}");
    }
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).unwrap();
        assert!(Embedded::open(&env, directory.path()).is_err(), "cut to {length}");
    }
}

#[test]
fn a_file_of_format_1_opens() {
    let directory = tempfile::tempdir().unwrap();
    let json = concat!(
        r#"{"format":1,"groups":{"7":{"version":3,"epoch":4,"active":2,"in_sync":[[1,0],[2,7]],"exiles":[[3,1]],"#,
        r#""in_sync_min":3,"members":[1,2,3],"change_id":18446744073709551615,"commit_hint":[4,1099511627776]}}}"#
    );
    let text = format!("{json}\ncrc32c {:08x}\n", crc32c::crc32c(json.as_bytes()));
    std::fs::write(directory.path().join("coordinator.json"), text).unwrap();
    let coordinator = Embedded::open(&Env::production(), directory.path()).unwrap();
    let held = conformance::read(&coordinator, GroupId(7)).unwrap();
    let view = base::GroupView { unclean_epoch: base::Epoch(0), lease_ms: 0, ..conformance::sample() };
    assert_eq!(held, Versioned { version: Version(3), view }, "unclean elections were not told of then");
    assert_eq!(crate::wait(|done| coordinator.read_cluster(done)), Ok(None));
    assert_eq!(crate::wait(|done| coordinator.read_members(GroupId(7), done)), Ok(Vec::new()));
    let version = conformance::change(&coordinator, GroupId(7), held.basis(), &conformance::sample());
    assert_eq!(version.unwrap().version, Version(4));
}

#[test]
fn a_file_with_a_level_has_a_format_that_older_releases_refuse() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("coordinator.json");
    let coordinator = Embedded::open(&Env::production(), directory.path()).unwrap();
    conformance::create(&coordinator, GroupId(7), &conformance::sample()).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(r#"{"format":2,"#));
    let held = conformance::read(&coordinator, GroupId(7)).unwrap();
    let raised = base::GroupView { level: base::Level::NEWEST, change_id: 9, ..held.view.clone() };
    conformance::change(&coordinator, GroupId(7), held.basis(), &raised).unwrap();
    drop(coordinator);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(r#"{"format":3,"#));
    let coordinator = Embedded::open(&Env::production(), directory.path()).unwrap();
    assert_eq!(conformance::read(&coordinator, GroupId(7)).unwrap().view, raised);
}

#[test]
fn a_file_of_a_later_level_is_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("coordinator.json");
    let coordinator = Embedded::open(&Env::production(), directory.path()).unwrap();
    let raised = base::GroupView { level: base::Level::NEWEST, ..conformance::sample() };
    conformance::create(&coordinator, GroupId(7), &raised).unwrap();
    drop(coordinator);
    let text = std::fs::read_to_string(&path).unwrap();
    let (json, _) = text.split_once('\n').unwrap();
    let known = format!("\"level\":{}", base::Level::NEWEST.0);
    assert!(json.contains(&known), "{json}");
    let later = json.replace(&known, "\"level\":99");
    let checksum = crc32c::crc32c(later.as_bytes());
    std::fs::write(&path, format!("{later}\ncrc32c {checksum:08x}\n")).unwrap();
    let refused = Embedded::open(&Env::production(), directory.path()).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Level { .. }), "{refused:?}");
    assert!(refused.to_string().contains("the group is at level 99, which needs release"), "{refused}");
}
