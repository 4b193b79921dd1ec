//! Directories as Hadoop's DataNodes leave them: what is refused, and what must not outlive our first change.

mod common;

use blockstore::{BlockStore, OpenError, StorageType, StoreConfig, VolumeConfig};
use common::{POOL, open, pool};
use env::Env;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A directory that was served before, with nothing in it; `d0` is its name.
fn served_before() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    open(root.path(), 1).volumes().close();
    root
}

fn at(root: &tempfile::TempDir, below: &str) -> PathBuf {
    let path = root.path().join("d0").join(below.replace("POOL", &format!("current/{POOL}")));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn serve(root: &Path) -> Result<(), OpenError> {
    let volume = VolumeConfig { path: root.join("d0"), storage_type: StorageType::Disk };
    let store = BlockStore::open(Env::production(), StoreConfig::new(vec![volume]))?;
    let served = store.serve_pool(&pool()).map(drop);
    store.close();
    served
}

/// All files below a directory, with their bytes. The lock's file has the number of the process.
fn all(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn a_directory_in_the_midst_of_an_upgrade_is_refused_and_stays_as_it_is() {
    for (name, words) in [
        ("previous/current/VERSION", "is not final"),
        ("previous.tmp/VERSION", "was interrupted"),
        ("removed.tmp/VERSION", "was interrupted"),
        ("POOL/previous/finalized/subdir0/subdir0/blk_1", "is not final"),
        ("POOL/previous.tmp/VERSION", "was interrupted"),
        ("POOL/removed.tmp/VERSION", "was interrupted"),
        ("POOL/RollingUpgradeInProgress", "a rolling upgrade is under way"),
        ("POOL/trash/finalized/subdir0/subdir0/blk_1", "were deleted in a rolling upgrade"),
        ("POOL/current/lazypersist/subdir0/subdir0/blk_1", "replicas of a RAM disk"),
    ] {
        let root = served_before();
        fs::write(at(&root, name), "x").unwrap();
        // Files that a start would delete if it did not refuse the directory.
        fs::write(at(&root, "POOL/tmp/blk_7"), "x").unwrap();
        fs::write(at(&root, "POOL/current/replicas"), "x").unwrap();
        let before = all(root.path());
        let error = serve(root.path()).unwrap_err();
        assert!(matches!(error, OpenError::Unfinished { .. }), "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains(words) && text.ends_with("nothing was changed"), "{name}: {text}");
        assert_eq!(all(root.path()), before, "{name}");
    }
}

#[test]
fn what_is_left_of_an_upgrade_that_has_become_final_is_no_hindrance() {
    let root = served_before();
    fs::create_dir_all(at(&root, "POOL/trash/finalized")).unwrap();
    fs::create_dir_all(at(&root, "POOL/current/lazypersist")).unwrap();
    fs::create_dir_all(at(&root, "POOL/finalized.tmp")).unwrap();
    serve(root.path()).unwrap();
}

#[test]
fn a_datanode_that_comes_back_believes_no_list_of_before() {
    let root = served_before();
    for name in ["replicas", "dfsUsed"] {
        fs::write(at(&root, &format!("POOL/current/{name}")), "6230 1795822890223").unwrap();
    }
    fs::write(at(&root, "POOL/scanner.cursor"), "{}").unwrap();
    serve(root.path()).unwrap();
    assert!(!at(&root, "POOL/current/replicas").exists());
    assert!(!at(&root, "POOL/current/dfsUsed").exists());
    assert!(
        at(&root, "POOL/scanner.cursor").exists(),
        "the cursor says nothing of replicas, and is Hadoop's own"
    );
}
