use super::*;
use crate::conformance;
use std::sync::Arc;

#[test]
fn it_behaves_like_every_coordinator() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    conformance::all(|| Arc::new(Embedded::open(&env, directory.path()).unwrap()));
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
