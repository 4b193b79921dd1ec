use super::*;

fn epochs(chronicle: &Chronicle) -> Vec<u64> {
    chronicle.takeovers().iter().map(|takeover| takeover.epoch).collect()
}

fn own(epoch: u64) -> Takeover {
    Takeover { epoch: Epoch(epoch), trigger: "lease over", ..Takeover::default() }
}

fn told(epoch: u64) -> TakeoverProto {
    TakeoverProto {
        epoch,
        member: Some(7),
        trigger: "start".into(),
        ended_at_ms: Some(5),
        ..TakeoverProto::default()
    }
}

#[test]
fn each_takeover_is_remembered_once_and_the_oldest_forgotten() {
    let chronicle = Chronicle::default();
    for epoch in [1, 1, 2] {
        chronicle.add_own(1, own(epoch), 1000 + epoch);
    }
    assert_eq!(epochs(&chronicle), [1, 2]);
    for epoch in 3..=30 {
        chronicle.add_own(1, own(epoch), 1000);
    }
    assert_eq!(epochs(&chronicle), (11..=30).collect::<Vec<_>>());
    // The member tells of all of this life each time.
    (1..=30).for_each(|epoch| chronicle.add_own(1, own(epoch), 2000));
    assert_eq!(epochs(&chronicle), (11..=30).collect::<Vec<_>>());
    assert_eq!(chronicle.takeover_count(), 30);
}

#[test]
fn what_others_tell_is_remembered_beside_the_own_unless_it_cannot_be() {
    let chronicle = Chronicle::default();
    chronicle.add_own(1, own(5), 1000);
    let long = TakeoverProto { trigger: "x".repeat(65), ..told(3) };
    chronicle.learn(&[told(2), long, told(5), told(9), told(0)], Epoch(8));
    assert_eq!(epochs(&chronicle), [2, 5], "epoch 9 has not begun");
    assert_eq!(chronicle.takeovers()[1].trigger, "lease over", "the own word on the own takeover stays");
    assert_eq!(chronicle.takeover_count(), 1, "those of others are not this member's");
    assert!(chronicle.knows(Epoch(5)) && !chronicle.knows(Epoch(8)));
}

#[test]
fn a_restart_remembers_and_a_damaged_file_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (env, path) = (Env::production(), directory.path());
    let chronicle = Chronicle::open(&env, path).unwrap();
    chronicle.add_own(1, own(3), 1000);
    chronicle.learn(&[told(2)], Epoch(3));
    chronicle.save(&env, path);
    let again = Chronicle::open(&env, path).unwrap();
    assert_eq!(again.takeovers(), chronicle.takeovers());
    assert_eq!(again.takeover_count(), 0, "none since the start");

    let file = path.join(file::FILE_NAME);
    let good = std::fs::read(&file).unwrap();
    let mut flipped = good.clone();
    flipped[30] ^= 1;
    for bad in [&b""[..], &good[..25], &flipped, &vec![7; 100_000]] {
        std::fs::write(&file, bad).unwrap();
        let forgetful = Chronicle::open(&env, path).unwrap();
        assert!(forgetful.takeovers().is_empty());
        forgetful.add_own(1, own(4), 1000);
        forgetful.save(&env, path);
        assert_eq!(epochs(&Chronicle::open(&env, path).unwrap()), [4], "the next takeover replaces it");
    }
}

#[test]
fn nothing_is_written_where_nothing_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let (env, path) = (Env::production(), directory.path());
    let chronicle = Chronicle::open(&env, path).unwrap();
    (1..=20).for_each(|epoch| chronicle.add_own(1, own(epoch + 10), 1000));
    chronicle.save(&env, path);
    std::fs::remove_file(path.join(file::FILE_NAME)).unwrap();
    chronicle.learn(&[told(4), told(12)], Epoch(30));
    chronicle.save(&env, path);
    assert!(!path.join(file::FILE_NAME).exists(), "older than all that are kept, and one that is known");
}
