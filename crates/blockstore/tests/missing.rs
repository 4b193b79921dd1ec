//! A data directory that is not there: made for a new cluster, and for no other.

mod common;

use blockstore::{BlockStore, OpenError, PoolInfo};
use common::{config, pool};
use env::Env;

/// Long ago.
fn old() -> PoolInfo {
    PoolInfo { created_ms: 1_700_000_000_000, ..pool() }
}

#[test]
fn it_is_made_while_the_cluster_is_new_and_refused_later() {
    let root = tempfile::tempdir().unwrap();
    let open = || BlockStore::open(Env::production(), config(root.path(), 1)).unwrap();
    // Twice, for the first start has left its lock.
    for _ in 0..2 {
        let refused = open().serve_pool(&old()).unwrap_err();
        assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
        assert!(refused.to_string().contains("is its disk mounted?"), "{refused}");
        assert!(!root.path().join("d0/current").exists());
    }
    open().serve_pool(&pool()).unwrap();
    // It is this server's from now on, however old the cluster is.
    open().serve_pool(&old()).unwrap();
}

#[test]
fn one_that_somebody_has_made_may_be_new() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("d0")).unwrap();
    BlockStore::open(Env::production(), config(root.path(), 1)).unwrap().serve_pool(&old()).unwrap();
}

#[test]
fn of_several_one_may_be_missing_where_that_is_tolerated() {
    let root = tempfile::tempdir().unwrap();
    BlockStore::open(Env::production(), config(root.path(), 2)).unwrap().serve_pool(&pool()).unwrap();
    std::fs::remove_dir_all(root.path().join("d1")).unwrap();
    let mut config = config(root.path(), 2);
    let refused =
        BlockStore::open(Env::production(), config.clone()).unwrap().serve_pool(&old()).unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
    config.failed_volumes_tolerated = 1;
    let store = BlockStore::open(Env::production(), config).unwrap();
    let store = store.serve_pool(&old()).unwrap();
    assert_eq!(store.volumes().failed_volumes().len(), 1, "{:?}", store.volumes().failed_volumes());
}
