//! The quota usage of inodes that snapshots keep, and the attributes that snapshots show of directories and files, as
//! Hadoop 3.5.0 has them.

mod common;

use base::{Block, Caller, FsError, FsResult, InodeId};
use common::World;
use namespace::{
    Limits, Walkable,
    ops::set_quota::{CLEAR, KEEP},
    reads::{
        get_content_summary::{ContentSummary, Walk},
        get_file_info, get_listing,
        get_snapshot_diff::{self, DiffCursor},
        get_storage_policy, list_open_files,
    },
};

/// Inodes, and bytes with their replicas.
fn used(world: &World, path: &str) -> (i64, i64) {
    let quota = world.quota(path).expect("a directory with a quota");
    (quota.used.inodes, quota.used.bytes)
}

fn summary(world: &World, path: &str) -> FsResult<ContentSummary> {
    let context = world.context(None);
    let mut walk = Walk::start(&world.ns, &context, path)?;
    loop {
        if let Some(summary) = walk.step(&world.ns, &context)? {
            return Ok(summary);
        }
    }
}

fn put(world: &mut World, path: &str, lengths: &[u64]) -> InodeId {
    let file = world.create(path, false).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut last = None;
    for length in lengths {
        last = Some(Block { length: *length, ..world.add_block(path, file, last) });
    }
    world.complete(path, file, last);
    file
}

/// A directory with a quota and a snapshot `s` of what `fill` puts into it.
fn with_snapshot(fill: impl FnOnce(&mut World)) -> FsResult<World> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.mkdirs("/other", true)?;
    fill(&mut world);
    world.set_quota("/q", 1_000, KEEP)?;
    world.allow_snapshot("/q")?;
    world.create_snapshot("/q", "s")?;
    Ok(world)
}

/// Checks that the usage kept by a directory, the sum found by a content summary, and the sum counted when its quota is
/// set anew are all `wanted`: inodes, and bytes.
fn check_used(world: &mut World, path: &str, wanted: (i64, i64)) -> FsResult<()> {
    assert_eq!(used(world, path), wanted);
    let found = summary(world, path)?;
    let found = ((found.file_count + found.directory_count) as i64, found.space_consumed as i64);
    assert_eq!(found, wanted, "the summary");
    world.set_quota(path, CLEAR, CLEAR)?;
    world.set_quota(path, 1_000, KEEP)?;
    assert_eq!(used(world, path), wanted, "counted when the quota is set");
    assert_eq!(world.ns.check_consistency(), Ok(()));
    Ok(())
}

#[test]
fn blocks_that_were_cut_off_count_until_no_snapshot_has_them() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/f", &[100, 100, 100]);
    })?;
    check_used(&mut world, "/q", (2, 900))?;
    assert_eq!(world.truncate("/q/f", 100), Ok(true));
    check_used(&mut world, "/q", (2, 900))?;
    world.restart_from_image();
    check_used(&mut world, "/q", (2, 900))?;
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (2, 300))?;
    world.check_replay();
    Ok(())
}

#[test]
fn a_block_that_is_copied_to_be_cut_counts_beside_the_old_one() -> FsResult<()> {
    let mut file = InodeId(0);
    let mut world = with_snapshot(|world| file = put(world, "/q/f", &[100, 100]))?;
    assert_eq!(world.truncate("/q/f", 150), Ok(false));
    let block_size = get_file_info::by_id(&world.ns, file).map_or(0, |status| status.block_size as i64);
    check_used(&mut world, "/q", (2, 600 + 3 * block_size))?;
    world.finish_truncation(file, 50);
    check_used(&mut world, "/q", (2, 600 + 150))?;
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (2, 450))
}

#[test]
fn a_file_counts_as_often_as_it_or_a_snapshot_of_it_wants() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/f", &[100]);
    })?;
    assert_eq!(world.set_replication("/q/f", 1), Ok(true));
    check_used(&mut world, "/q", (2, 300))?;
    assert_eq!(world.set_replication("/q/f", 5), Ok(true));
    check_used(&mut world, "/q", (2, 500))?;
    // A deleted file wants no room any more.
    assert_eq!(world.delete("/q/f", false), Ok(true));
    world.tidy_up();
    check_used(&mut world, "/q", (2, 300))?;
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (1, 0))?;
    world.check_replay();
    Ok(())
}

#[test]
fn what_was_moved_away_counts_where_it_was_as_it_was() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/d/f", &[100, 100]);
        put(world, "/q/g", &[10]);
    })?;
    world.set_quota("/other", 1_000, KEEP)?;
    assert_eq!(world.rename("/q/d", "/other/d"), Ok(true));
    check_used(&mut world, "/q", (4, 630))?;
    check_used(&mut world, "/other", (3, 600))?;
    // There it goes its own way, with all that snapshots have of it.
    assert_eq!(world.truncate("/other/d/f", 100), Ok(true));
    check_used(&mut world, "/other", (3, 600))?;
    assert_eq!(world.delete("/other/d", true), Ok(true));
    world.tidy_up();
    check_used(&mut world, "/q", (4, 630))?;
    check_used(&mut world, "/other", (1, 0))?;
    world.restart_from_image();
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (2, 30))?;
    assert!(world.ns.is_past_empty());
    world.check_replay();
    Ok(())
}

#[test]
fn what_left_before_there_was_a_quota_counts_as_well() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/gone", &[100]);
        put(world, "/q/moved", &[10]);
    })?;
    world.set_quota("/q", CLEAR, CLEAR)?;
    assert_eq!(world.delete("/q/gone", false), Ok(true));
    assert_eq!(world.rename("/q/moved", "/other/moved"), Ok(true));
    world.set_quota("/q", 1_000, KEEP)?;
    check_used(&mut world, "/q", (3, 330))?;
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (1, 0))?;
    world.check_replay();
    Ok(())
}

#[test]
fn what_was_deleted_counts_less_as_snapshots_go() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/d/f", &[100, 100]);
    })?;
    assert_eq!(world.truncate("/q/d/f", 100), Ok(true));
    world.create_snapshot("/q", "t")?;
    put(&mut world, "/q/d/new", &[7]);
    assert_eq!(world.delete("/q/d", true), Ok(true));
    world.tidy_up();
    check_used(&mut world, "/q", (3, 600))?;
    // The later one has one block of it.
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    check_used(&mut world, "/q", (3, 300))?;
    world.delete_snapshot("/q", "t")?;
    world.tidy_up();
    check_used(&mut world, "/q", (1, 0))?;
    world.check_replay();
    Ok(())
}

#[test]
fn a_deleted_file_that_was_being_written_is_closed_with_what_a_snapshot_shows_of_it() -> FsResult<()> {
    let mut file = InodeId(0);
    let mut world = with_snapshot(|world| {
        file = world.create("/q/f", false).unwrap_or(InodeId(0));
        let first = Block { length: 100, ..world.add_block("/q/f", file, None) };
        world.add_block("/q/f", file, Some(first));
    })?;
    assert_eq!(world.delete("/q/f", false), Ok(true));
    world.tidy_up();
    check_used(&mut world, "/q", (2, 300))?;
    assert!(world.ns.files_of(common::HOLDER).is_empty(), "nobody has a lease");
    let open = list_open_files::list(&world.ns, InodeId(0), "/", 10);
    assert!(open.files.is_empty(), "{open:?}");
    let status = get_file_info::get(&world.ns, &world.context(None), "/q/.snapshot/s/f")?;
    assert_eq!(status.map(|status| status.length), Some(100));
    world.delete_snapshot("/q", "s")?;
    world.tidy_up();
    assert!(world.ns.is_past_empty());
    world.check_replay();
    Ok(())
}

fn diff(world: &World, from: &str, to: &str) -> FsResult<Vec<String>> {
    let cursor = DiffCursor { path: Vec::new(), index: -1 };
    let request = get_snapshot_diff::Request { path: "/q".into(), from: from.into(), to: to.into(), cursor };
    let page = request.walk(&world.ns, &world.context(None))?.page;
    let modified = page.modified.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned());
    Ok(modified.collect())
}

/// HDFS's `getFullPathName`: what only a snapshot has is refused by the path that it had last.
#[test]
fn what_is_deleted_and_may_not_be_read_in_a_snapshot_is_refused_by_its_path() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        for path in ["/q/d", "/q/d/closed"] {
            assert_eq!(world.mkdirs(path, true), Ok(true));
        }
        assert!(world.set_permission("/q/d/closed", 0o700).is_ok());
    })?;
    let refused = |world: &World, path: &str| {
        let text = format!("user=bob, access=READ, inode=\"{path}\":hdfs:supergroup:drwx------");
        assert_eq!(diff(world, "s", ""), Err(FsError::AccessDenied(format!("Permission denied: {text}"))));
    };
    let as_user = |world: &mut World, user: &str| world.caller = Caller::simple(user, &[]);
    as_user(&mut world, "bob");
    refused(&world, "/q/d/closed");
    as_user(&mut world, "hdfs");
    world.delete("/q/d/closed", true)?;
    as_user(&mut world, "bob");
    refused(&world, "/q/d/closed");
    as_user(&mut world, "hdfs");
    world.delete("/q/d", true)?;
    as_user(&mut world, "bob");
    refused(&world, "/q/d/closed");
    Ok(())
}

/// HDFS copies the quota of a directory with the rest of its attributes. It shows the copy at the top of a snapshot only, and
/// what is set now below it.
#[test]
fn a_snapshot_has_the_limits_of_its_top_and_a_diff_tells_that_others_were_set() -> FsResult<()> {
    let mut world = with_snapshot(|world| drop(world.mkdirs("/q/d", true)))?;
    let limit = |world: &World, path: &str| summary(world, path).map(|summary| summary.limits.inodes);
    world.set_quota("/q", 7, KEEP)?;
    world.set_quota("/q/d", 5, KEEP)?;
    world.create_snapshot("/q", "t")?;
    world.set_quota("/q", CLEAR, KEEP)?;
    world.restart_from_image();
    assert_eq!(limit(&world, "/q"), Ok(-1));
    assert_eq!(limit(&world, "/q/.snapshot/s"), Ok(1_000));
    assert_eq!(limit(&world, "/q/.snapshot/t"), Ok(7));
    assert_eq!(limit(&world, "/q/.snapshot/s/d"), Ok(5));
    assert_eq!(diff(&world, "s", "t"), Ok(vec![String::new(), "d".into()]));
    assert_eq!(diff(&world, "t", ""), Ok(vec![String::new()]));
    world.check_replay();
    Ok(())
}

/// HDFS tells the policy that holds now; only the top of a snapshot has kept its own.
#[test]
fn a_snapshot_shows_the_policies_of_now() -> FsResult<()> {
    let mut world = with_snapshot(|world| {
        put(world, "/q/d/f", &[1]);
        put(world, "/q/gone", &[1]);
    })?;
    world.set_storage_policy("/q", Some("WARM"))?;
    world.set_storage_policy("/q/d", Some("COLD"))?;
    assert_eq!(world.delete("/q/gone", false), Ok(true));
    let shown = |world: &World, path: &str| {
        let status = get_file_info::get(&world.ns, &world.context(None), path);
        status.map(|status| status.map(|status| status.storage_policy))
    };
    assert_eq!(shown(&world, "/q/.snapshot/s"), Ok(Some(5)));
    assert_eq!(shown(&world, "/q/.snapshot/s/gone"), Ok(Some(5)));
    assert_eq!(shown(&world, "/q/.snapshot/s/d/f"), Ok(Some(2)));
    world.create_snapshot("/q", "t")?;
    world.set_storage_policy("/q", Some("ALL_SSD"))?;
    assert_eq!(shown(&world, "/q/.snapshot/t"), Ok(Some(5)));
    assert_eq!(shown(&world, "/q/.snapshot/s"), Ok(Some(12)));
    let policy = get_storage_policy::get(&world.ns, &world.context(None), "/q/.snapshot/t")?;
    assert_eq!(policy.name, "WARM");
    // A file that was moved elsewhere is listed with the policy of the directory that is listed.
    assert_eq!(world.rename("/q/d/f", "/other/f"), Ok(true));
    assert_eq!(shown(&world, "/q/.snapshot/s/d/f"), Ok(Some(0)));
    let listed = |path: &str| -> FsResult<Vec<u8>> {
        let page = get_listing::get(&world.ns, &world.context(None), path, b"", false)?;
        Ok(page.map_or(Vec::new(), |page| page.entries.iter().map(|entry| entry.storage_policy).collect()))
    };
    assert_eq!(listed("/q/.snapshot/s/d"), Ok(vec![2]));
    assert_eq!(listed("/q/.snapshot"), Ok(vec![0, 0]));
    Ok(())
}

/// HDFS's `computeContentSummary4Snapshot`: what was deleted counts on with the directory that had it, and what was moved away
/// counts there as the last snapshot saw it.
#[test]
fn a_summary_counts_what_only_snapshots_still_have() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d/gone/deeper", true), Ok(true));
    assert_eq!(world.mkdirs("/d/sub", true), Ok(true));
    for path in ["/d/gone/a", "/d/gone/deeper/b", "/d/sub/moved"] {
        let inode = world.create(path, false).unwrap_or_else(|error| panic!("{error}"));
        let block = Block { length: 10, ..world.add_block(path, inode, None) };
        world.complete(path, inode, Some(block));
    }
    let counts = |world: &World, path: &str, step: usize| -> ContentSummary {
        let limits = Limits { content_summary_step: step, ..world.limits.clone() };
        let ctx = namespace::Context { limits: &limits, ..world.context(None) };
        let mut walk = Walk::start(&world.ns, &ctx, path).unwrap_or_else(|error| panic!("{error}"));
        loop {
            if let Some(summary) = walk.step(&world.ns, &ctx).unwrap_or_else(|error| panic!("{error}")) {
                return summary;
            }
        }
    };
    let brief = |summary: &ContentSummary| (summary.directory_count, summary.file_count, summary.length);
    let snapshot = |summary: &ContentSummary| {
        (summary.snapshot.directory_count, summary.snapshot.file_count, summary.snapshot.length)
    };
    assert!(world.allow_snapshot("/d").is_ok());
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert_eq!(world.delete("/d/gone", true), Ok(true));
    assert_eq!(world.rename("/d/sub/moved", "/d/here"), Ok(true));
    world.tidy_up();
    for step in [1, 2, 3, 5_000] {
        let all = counts(&world, "/d", step);
        // Now `.`, `sub` and `here`; beside them `gone` with all below it, and `moved` where it was.
        assert_eq!((brief(&all), snapshot(&all)), ((4, 4, 40), (2, 3, 30)), "step {step}");
        let past = counts(&world, "/d/.snapshot/s", step);
        assert_eq!((brief(&past), snapshot(&past)), ((4, 3, 30), (0, 0, 0)), "step {step}");
    }
    // Inodes that no snapshot sees count no more, whether or not they were swept away.
    assert!(world.delete_snapshot("/d", "s").is_ok());
    let now = counts(&world, "/d", 5_000);
    assert_eq!((brief(&now), snapshot(&now)), ((2, 1, 10), (0, 0, 0)));
    world.tidy_up();
    assert_eq!(counts(&world, "/d", 5_000), now);
}

/// Hadoop 3.5.0's `hdfs dfs -count` said so of these very operations.
#[test]
fn a_summary_counts_what_only_snapshots_have_apart() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d/sub", true), Ok(true));
    put(&mut world, "/d/one", &[4_053]);
    put(&mut world, "/d/sub/two", &[7]);
    assert!(world.allow_snapshot("/d").is_ok());
    assert!(world.create_snapshot("/d", "s1").is_ok());
    assert_eq!(world.delete("/d/one", false), Ok(true));
    let appended = world.append("/d/sub/two", true).unwrap_or(InodeId(0));
    let last = world.last_block("/d/sub/two");
    let block = world.add_block("/d/sub/two", appended, last);
    world.complete("/d/sub/two", appended, Some(Block { length: 4_053, ..block }));
    assert_eq!(world.rename("/d/sub", "/d/moved"), Ok(true));
    put(&mut world, "/d/new", &[7]);
    assert!(world.create("/d/moved/empty", false).is_ok());
    assert!(world.create_snapshot("/d", "s2").is_ok());
    assert_eq!(world.rename("/d/new", "/out"), Ok(true));
    put(&mut world, "/d/new", &[4_053]);
    world.tidy_up();
    for step in [1, 3, 1_000] {
        world.limits.content_summary_step = step;
        let count = |path: &str| {
            let ctx = world.context(None);
            let mut walk = Walk::start(&world.ns, &ctx, path).unwrap_or_else(|error| panic!("{error}"));
            let summary = loop {
                if let Ok(Some(summary)) = walk.step(&world.ns, &ctx) {
                    break summary;
                }
            };
            let past = summary.snapshot;
            let all = (summary.directory_count, summary.file_count, summary.length);
            (all, (past.directory_count, past.file_count, past.length))
        };
        assert_eq!(count("/d"), ((3, 6, 12_180), (1, 3, 4_067)));
        assert_eq!(count("/d/.snapshot/s1"), ((2, 2, 4_060), (0, 0, 0)));
    }
}

/// HDFS: what a snapshot keeps of something deleted is charged until the last such snapshot is deleted, and what was
/// moved away is charged in both places.
#[test]
fn what_snapshots_keep_counts_on_in_the_quota_of_its_directory() {
    use namespace::reads::get_quota_usage::{self, Usage};
    let mut world = World::new(1);
    for path in ["/q", "/q/sub", "/other"] {
        assert_eq!(world.mkdirs(path, true), Ok(true));
    }
    for path in ["/q", "/other"] {
        assert!(world.set_quota(path, 100, 1 << 40).is_ok());
    }
    put(&mut world, "/q/deleted", &[100]);
    put(&mut world, "/q/sub/moved", &[10]);
    let used = |world: &World, path: &str| match get_quota_usage::get(&world.ns, &world.context(None), path) {
        Ok(Usage::Known(quota)) => (quota.used.inodes, quota.used.bytes),
        _ => panic!("{path} has a quota"),
    };
    assert_eq!((used(&world, "/q"), used(&world, "/other")), ((4, 330), (1, 0)));
    assert!(world.allow_snapshot("/q").is_ok());
    assert!(world.create_snapshot("/q", "s").is_ok());
    put(&mut world, "/q/sub/new", &[1_000]);
    assert_eq!(used(&world, "/q"), (5, 3_330));
    assert_eq!(world.delete("/q/deleted", false), Ok(true));
    assert_eq!(world.rename("/q/sub/moved", "/other/moved"), Ok(true));
    assert_eq!((used(&world, "/q"), used(&world, "/other")), ((5, 3_330), (2, 30)));
    // Inodes that came after the snapshot are given back.
    assert_eq!(world.delete("/q/sub", true), Ok(true));
    world.tidy_up();
    assert_eq!(used(&world, "/q"), (4, 330));
    world.restart_from_image();
    assert!(world.delete_snapshot("/q", "s").is_ok());
    world.tidy_up();
    assert_eq!((used(&world, "/q"), used(&world, "/other")), ((1, 0), (2, 30)));
    world.check_replay();
}

/// A snapshot goes on to count the name that it shows, so HDFS wants room for another one.
#[test]
fn a_rename_within_a_directory_that_a_snapshot_shows_needs_room() {
    let mut world = World::new(1);
    for path in ["/a", "/b"] {
        assert_eq!(world.mkdirs(path, true), Ok(true));
    }
    assert!(world.create("/a/f", false).is_ok());
    assert!(world.allow_snapshot("/a").is_ok());
    assert!(world.set_quota("/", 5, i64::MAX).is_ok());
    assert_eq!(world.rename("/a/f", "/a/g"), Ok(true));
    assert_eq!(world.mkdirs("/c", true), Ok(true));
    assert!(world.create_snapshot("/a", "s").is_ok());
    let refused = world.rename2("/a/g", "/a/h", false).unwrap_err().to_string();
    assert!(refused.contains("of directory / is exceeded: quota=5 file count=6"), "{refused}");
    assert!(world.set_quota("/", 6, i64::MAX).is_ok());
    assert!(world.rename2("/a/g", "/a/h", false).is_ok());
    world.check_replay();
}
