//! A survey of a data directory, or of one replica, tells their faults, and no file in them makes it panic.

mod common;

use base::BlockId;
use blockstore::{
    checksum::STORED_CHUNK_BYTES_MAX,
    layout::Place,
    survey::{Depth, DirectorySurvey, ReplicaSurvey, Severity, is_data_directory, survey, survey_replica},
};
use common::copy;
use env::Env;
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

const POOL: &str = "BP-1897328119-127.0.0.1-1795248668531";
const BLOCK: &str = "blk_1073741825";
const META: &str = "blk_1073741825_1001.meta";

/// A directory that a Hadoop 3.5.0 DataNode has written: two replicas of 3,000 bytes.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hadoop-3.5.0-datanode"), root.path());
        let pool = root.path().join("current").join(POOL);
        fs::create_dir_all(pool.join("current/rbw")).unwrap();
        fs::create_dir_all(pool.join("tmp")).unwrap();
        Self(root)
    }

    fn pool(&self, below: &str) -> PathBuf {
        self.0.path().join("current").join(POOL).join(below)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.pool("current/finalized/subdir0/subdir0").join(name)
    }

    fn flip(&self, name: &str, offset: usize) {
        let mut bytes = fs::read(self.file(name)).unwrap();
        bytes[offset] ^= 1;
        fs::write(self.file(name), bytes).unwrap();
    }

    fn cut(&self, name: &str, length: usize) {
        let bytes = fs::read(self.file(name)).unwrap();
        fs::write(self.file(name), &bytes[..length]).unwrap();
    }

    fn replica(&self) -> ReplicaSurvey {
        look(&self.file(BLOCK)).unwrap()
    }

    fn look(&self, depth: Depth) -> DirectorySurvey {
        survey(&*Env::production().disk, self.0.path(), depth, &mut |_| true).unwrap()
    }

    /// What is found, each as severity, name and words.
    fn findings(&self, depth: Depth) -> Vec<(Severity, String, String)> {
        let kept = self.look(depth).findings.kept.into_iter();
        kept.map(|found| (found.severity, name_of(&found.path), found.what)).collect()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn look(path: &Path) -> io::Result<ReplicaSurvey> {
    survey_replica(&*Env::production().disk, path, &mut |_| true)
}

/// The damage of a replica: offset and words.
fn damage(replica: &ReplicaSurvey) -> Vec<(Option<u64>, &str)> {
    replica.damage.iter().map(|damage| (damage.offset, damage.what.as_str())).collect()
}

#[test]
fn a_whole_replica_tells_all_of_itself() {
    let directory = Directory::new();
    for name in [BLOCK, META] {
        let found = look(&directory.file(name)).unwrap();
        assert_eq!(damage(&found), []);
        assert_eq!((found.id, found.place), (BlockId(1_073_741_825), Some(Place::Finalized)));
        assert_eq!(found.generation_stamp.map(|stamp| stamp.0), Some(1001));
        assert_eq!((found.length, found.meta_length), (Some(3_000), Some(31)));
        assert_eq!((found.chunk_count(), found.matching_chunk_count), (Some(6), 6));
    }
}

#[test]
fn the_first_damaged_chunk_is_named() {
    let directory = Directory::new();
    directory.flip(BLOCK, 1_100);
    directory.flip(BLOCK, 2_000);
    let found = directory.replica();
    assert_eq!(damage(&found), [(Some(1_024), "the chunk at offset 1024 does not match its checksum")]);
    assert_eq!(found.matching_chunk_count, 2);
}

#[test]
fn files_that_are_cut_off_or_too_long_are_told_with_both_lengths() {
    let directory = Directory::new();
    directory.cut(META, 31 - 5);
    let found = directory.replica();
    let what = "its meta file has 26 bytes, and 31 belong to a block file of 3000: the bytes from offset 2048 on have no checksum";
    assert_eq!(damage(&found), [(Some(2_048), what)]);
    assert_eq!(found.matching_chunk_count, 4, "what has a sum is compared all the same");

    let directory = Directory::new();
    directory.cut(BLOCK, 1_024);
    let what = "its meta file has 31 bytes, and 15 belong to a block file of 1024: the block file has been cut off, or the meta file is too long";
    assert_eq!(damage(&directory.replica()), [(None, what)]);

    // Inside a chunk, the rest of the chunk does not match either.
    directory.cut(BLOCK, 1_000);
    let found = directory.replica();
    assert_eq!(found.damage[0].offset, Some(512));
    assert_eq!(found.damage.len(), 2);
}

#[test]
fn a_partner_that_is_missing_is_told() {
    let directory = Directory::new();
    fs::remove_file(directory.file(META)).unwrap();
    assert_eq!(damage(&directory.replica()), [(None, "there is no meta file beside its block file")]);
    let directory = Directory::new();
    fs::remove_file(directory.file(BLOCK)).unwrap();
    let found = look(&directory.file(META)).unwrap();
    assert_eq!(damage(&found), [(None, "there is no block file beside its meta file")]);
}

#[test]
fn no_header_of_a_meta_file_makes_it_panic() {
    let header = |version: u16, kind: u8, chunk: i32| {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(chunk.to_be_bytes());
        bytes.extend([0; 24]);
        bytes
    };
    let limit = STORED_CHUNK_BYTES_MAX as i32;
    let cases = [
        (Vec::new(), "its meta file has 0 bytes, fewer than the 7 of its header".to_owned()),
        (vec![0, 1, 2], "its meta file has 3 bytes, fewer than the 7 of its header".to_owned()),
        (header(2, 2, 512), "its meta file: meta file version 2, expected 1".to_owned()),
        (
            header(1, 7, 512),
            "its meta file: checksum type 7 is unknown; 0 (NULL), 1 (CRC32) and 2 (CRC32C) are served"
                .to_owned(),
        ),
        (header(1, 2, 0), format!("its meta file: 0 bytes per checksum; 1 to {limit} are stored")),
        (header(1, 2, -1), format!("its meta file: -1 bytes per checksum; 1 to {limit} are stored")),
        (
            header(1, 2, i32::MAX),
            format!("its meta file: {} bytes per checksum; 1 to {limit} are stored", i32::MAX),
        ),
    ];
    for (bytes, what) in cases {
        let directory = Directory::new();
        fs::write(directory.file(META), bytes).unwrap();
        assert_eq!(damage(&directory.replica()), [(None, what.as_str())]);
    }
    // As large as may be: one chunk for all, with a sum that is not its own.
    let directory = Directory::new();
    fs::write(directory.file(META), &header(1, 2, limit)[..11]).unwrap();
    let found = directory.replica();
    assert_eq!(damage(&found), [(Some(0), "the chunk at offset 0 does not match its checksum")]);
}

#[test]
fn links_directories_and_pipes_with_the_name_of_a_block_are_refused() {
    let directory = Directory::new();
    let refused = |path: &Path| look(path).unwrap_err().to_string();
    symlink("/dev/zero", directory.file("blk_1")).unwrap();
    fs::create_dir(directory.file("blk_2")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.file("blk_3")).unwrap();
    assert_eq!(
        refused(&directory.file("blk_1")),
        "it has the name of a replica's file, and is a symbolic link"
    );
    assert_eq!(refused(&directory.file("blk_2")), "it has the name of a replica's file, and is a directory");
    assert!(refused(&directory.file("blk_3")).ends_with("is a pipe, a socket or a device"));
    assert!(refused(&directory.file("VERSION")).contains("neither a block file's nor a meta file's"));
    assert_eq!(look(&directory.file("blk_9")).unwrap_err().kind(), io::ErrorKind::NotFound);
    // The other half may be such a thing as well.
    fs::remove_file(directory.file(META)).unwrap();
    symlink("/dev/zero", directory.file(META)).unwrap();
    assert_eq!(damage(&directory.replica()), [(None, "its meta file is a symbolic link")]);
}

#[test]
fn of_a_replica_that_was_being_written_what_its_sums_vouch_for_is_compared() {
    let directory = Directory::new();
    let rbw = directory.pool("current/rbw");
    for name in [BLOCK, META] {
        fs::rename(directory.file(name), rbw.join(name)).unwrap();
    }
    let path = rbw.join(BLOCK);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([7; 5_000]);
    fs::write(&path, &bytes).unwrap();
    let found = look(&path).unwrap();
    assert_eq!(damage(&found), [], "data comes before its sums");
    assert_eq!(
        (found.place, found.length, found.vouched_length),
        (Some(Place::BeingWritten), Some(8_000), 3_000)
    );
    bytes[600] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(look(&path).unwrap().damage[0].offset, Some(512));
}

#[test]
fn a_directory_is_counted_and_its_replicas_are_read_only_if_that_is_asked_for() {
    let directory = Directory::new();
    let found = directory.look(Depth::Names);
    assert_eq!(found.replicas(), (2, 6_000));
    assert_eq!((found.pools.len(), found.findings.kept.len()), (1, 0));
    assert_eq!(found.pools[0].finalized.meta_bytes, 62);
    assert_eq!(found.version.unwrap().get("storageID"), Some("DS-296626d9-75d9-4175-96c7-839038ace8c4"));
    directory.flip(BLOCK, 0);
    assert_eq!(directory.findings(Depth::Names), []);
    let what = "the chunk at offset 0 does not match its checksum".to_owned();
    assert_eq!(directory.findings(Depth::Bytes), [(Severity::Damage, BLOCK.to_owned(), what)]);
}

#[test]
fn a_survey_that_is_stopped_reads_no_further() {
    let directory = Directory::new();
    let mut asked = 0;
    let disk = Env::production().disk;
    survey(&*disk, directory.0.path(), Depth::Bytes, &mut |_| {
        asked += 1;
        false
    })
    .unwrap();
    assert_eq!(asked, 1);
}

#[test]
fn what_does_not_belong_is_told_from_what_is_damaged() {
    use Severity::{Damage, Stranger};
    let directory = Directory::new();
    let write = |path: PathBuf| fs::write(path, "x").unwrap();
    write(directory.0.path().join("notes"));
    write(directory.0.path().join("current/BP-a-file"));
    write(directory.pool("current/finalized/blk_5"));
    write(directory.file("blk_65537"));
    write(directory.file("blk_6_1001.meta"));
    write(directory.file("blk_1073741825_900.meta"));
    write(directory.file("blk_7"));
    write(directory.pool("current/rbw/blk_1073741826"));
    write(directory.pool("tmp/blk_8"));
    fs::create_dir(directory.pool("current/finalized/subdir01")).unwrap();
    symlink(directory.file(""), directory.pool("current/finalized/subdir1")).unwrap();
    fs::create_dir(directory.file("blk_9")).unwrap();
    let mut found: Vec<_> = directory.findings(Depth::Names);
    found.sort_by(|a, b| a.1.cmp(&b.1));
    let found: Vec<_> = found.iter().map(|(severity, name, what)| (*severity, &**name, &**what)).collect();
    assert_eq!(
        found,
        [
            (Stranger, "BP-a-file", "is a file that no server uses"),
            (Stranger, "blk_1073741825_900.meta", "is a meta file of an older stamp"),
            (Stranger, "blk_1073741826", "is a second block file: a finished replica is there as well"),
            (Damage, "blk_1073741826", "there is no meta file beside its block file"),
            (Damage, "blk_5", "lies in the wrong directory, and belongs in finalized/subdir0/subdir0"),
            (Damage, "blk_65537", "lies in the wrong directory, and belongs in finalized/subdir1/subdir0"),
            (Stranger, "blk_6_1001.meta", "is a meta file without a block file"),
            (Damage, "blk_7", "there is no meta file beside its block file"),
            (Damage, "blk_9", "its block file is a directory"),
            (Damage, "blk_9", "there is no meta file beside its block file"),
            (Stranger, "notes", "is a file that no server uses"),
            (Stranger, "subdir01", "is a directory that no server uses"),
            (Stranger, "subdir1", "is a symbolic link that no server uses"),
        ]
    );
}

#[test]
fn what_a_datanode_keeps_beside_its_replicas_belongs_there() {
    let directory = Directory::new();
    for name in
        ["scanner.cursor", "current/dfsUsed", "current/replicas", "current/dncp_block_verification.log.curr"]
    {
        fs::write(directory.pool(name), "x").unwrap();
    }
    fs::create_dir_all(directory.pool("current/lazypersist")).unwrap();
    fs::write(directory.0.path().join("in_use.lock"), "1").unwrap();
    let found = directory.look(Depth::Bytes);
    assert_eq!(found.findings.kept, []);
    // What an upgrade has put aside is counted, and keeps a server from starting.
    fs::create_dir_all(directory.pool("trash/finalized/subdir0/subdir0")).unwrap();
    fs::write(directory.pool("trash/finalized/subdir0/subdir0/blk_1"), "four").unwrap();
    let found = directory.look(Depth::Names);
    let aside = &found.pools[0].put_aside[0];
    assert_eq!((aside.file_count, aside.bytes), (1, 4));
    assert_eq!(found.findings.damage_count, 1);
    assert!(found.findings.kept[0].what.starts_with("keeps a server from starting: "));
}

#[test]
fn version_files_are_held_against_what_this_release_reads() {
    let directory = Directory::new();
    let version = directory.0.path().join("current/VERSION");
    let text = fs::read_to_string(&version).unwrap();
    fs::write(&version, text.replace("-57", "-56").replace("storageID", "other")).unwrap();
    let pool = directory.pool("current/VERSION");
    let pool_text = fs::read_to_string(&pool).unwrap();
    fs::write(&pool, pool_text.replace(POOL, "BP-2")).unwrap();
    let found: Vec<_> = directory.findings(Depth::Names).into_iter().map(|found| found.2).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "has no storageID");
    assert!(found[1].starts_with("says layoutVersion -56; this release reads -57"), "{found:?}");
    assert_eq!(found[2], format!("says blockpoolID BP-2, and lies in {POOL}"));
    fs::remove_file(&pool).unwrap();
    symlink("/dev/zero", &pool).unwrap();
    assert_eq!(directory.findings(Depth::Names).last().unwrap().2, "is a symbolic link");
    fs::write(&version, "x".repeat(1 << 20)).unwrap();
    assert!(directory.findings(Depth::Names)[0].2.contains("a VERSION file has at most"));
}

#[test]
fn only_a_data_servers_directory_is_taken_for_one() {
    let disk = Env::production().disk;
    let directory = Directory::new();
    let root = directory.0.path();
    assert!(is_data_directory(&*disk, root).unwrap());
    fs::remove_file(root.join("current/VERSION")).unwrap();
    assert!(is_data_directory(&*disk, root).unwrap(), "by the pool that it has");
    assert!(!is_data_directory(&*disk, &root.join("current")).unwrap());
    fs::write(root.join("current/VERSION"), "storageType=NAME_NODE\n").unwrap();
    let error = is_data_directory(&*disk, root).unwrap_err().to_string();
    assert!(error.ends_with("storageType is NAME_NODE: this is no data server's"), "{error}");
}
