//! Quotas as HDFS keeps them: what counts, what is refused and in which words; and after whatever sequence of
//! operations, what a directory believes to hold is what a recount finds.

mod common;

use base::{Block, Caller, FsError, FsResult, InodeId, StorageType};
use common::{Dice, World};
use namespace::{
    Amounts, Reply,
    ops::{
        add_block,
        set_quota::{CLEAR, KEEP},
    },
    reads::{
        get_content_summary::{ContentSummary, Walk},
        get_quota_usage,
    },
};

const MIB: i64 = 1 << 20;

fn used(world: &World, path: &str) -> (i64, i64) {
    let quota = world.quota(path).expect("a directory with a quota");
    (quota.used.inodes, quota.used.bytes)
}

fn on(world: &World, path: &str, kind: StorageType) -> i64 {
    world.quota(path).expect("a directory with a quota").used.of_type(kind)
}

/// A finished file, three replicas, blocks of 1 MiB.
fn write(world: &mut World, path: &str, lengths: &[u64]) -> InodeId {
    let inode = world.create(path, false).unwrap();
    let mut last = None;
    for length in lengths {
        let block = world.add_block(path, inode, last);
        last = Some(Block { length: *length, ..block });
    }
    world.complete(path, inode, last);
    inode
}

fn names_exceeded(path: &str, quota: u64, count: u64) -> FsError {
    FsError::NamespaceQuotaExceeded(format!(
        "The NameSpace quota (directories and files) of directory {path} is exceeded: quota={quota} file count={count}"
    ))
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

#[test]
fn a_quota_of_names_counts_the_directory_itself() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.set_quota("/q", 3, KEEP)?;
    assert_eq!(used(&world, "/q"), (1, 0));
    world.mkdirs("/q/a", true)?;
    world.create("/q/f", false)?;
    assert_eq!(used(&world, "/q"), (3, 0));
    assert_eq!(world.mkdirs("/q/b", true), Err(names_exceeded("/q", 3, 4)));
    assert_eq!(world.create("/q/a/g", false), Err(names_exceeded("/q", 3, 4)));
    // If several directories of a chain are too many, the error names the first of them.
    assert_eq!(world.mkdirs("/q/a/b/c/d", true), Err(names_exceeded("/q", 3, 4)));
    // A file that is replaced makes room.
    assert!(world.create("/q/f", true).is_ok());
    assert_eq!(world.delete("/q/f", false), Ok(true));
    assert_eq!(world.mkdirs("/q/b", true), Ok(true));
    // "A quota of 1 would force the directory to remain empty."
    world.mkdirs("/one", true)?;
    world.set_quota("/one", 1, KEEP)?;
    assert_eq!(world.mkdirs("/one/x", true), Err(names_exceeded("/one", 1, 2)));
    world.check_replay();
    Ok(())
}

#[test]
fn a_block_that_is_being_written_counts_as_a_full_one() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.set_quota("/q", KEEP, 7 * MIB)?;
    let inode = world.create("/q/f", false)?;
    let first = world.add_block("/q/f", inode, None);
    assert_eq!(used(&world, "/q"), (2, 3 * MIB));
    let first = Block { length: 1_000, ..first };
    let second = world.add_block("/q/f", inode, Some(first));
    assert_eq!(used(&world, "/q"), (2, 3 * MIB + 3_000));
    // An abandoned block gives everything back.
    let request = namespace::ops::abandon_block::Request {
        path: "/q/f".into(),
        holder: common::HOLDER.into(),
        pool: String::new(),
        block: second,
        inode,
    };
    world.run(|ns, ctx| namespace::ops::abandon_block::plan(ns, ctx, &request))?;
    assert_eq!(used(&world, "/q"), (2, 3_000));
    let second = world.add_block("/q/f", inode, Some(first));
    world.complete("/q/f", inode, Some(Block { length: 5, ..second }));
    assert_eq!(used(&world, "/q"), (2, 3_015));
    // There is room for one more block of 1 MiB three times over, and then for none.
    world.create("/q/g", false)?;
    world.try_add_block("/q/g", None)?;
    world.create("/q/h", false)?;
    world.try_add_block("/q/h", None)?;
    world.create("/q/i", false)?;
    assert_eq!(
        world.try_add_block("/q/i", None),
        Err(FsError::SpaceQuotaExceeded(
            "The DiskSpace quota of /q is exceeded: quota = 7340032 B = 7 MB but diskspace consumed = 9440199 B \
             = 9.00 MB"
                .into()
        ))
    );
    // A summary counts the reserved space as well, and only real bytes as content.
    let found = summary(&world, "/q")?;
    assert_eq!((found.length, found.space_consumed), (1_005, 6 * MIB as u64 + 3_015));
    assert_eq!((found.limits.inodes, found.limits.bytes), (-1, 7 * MIB));
    world.check_replay();
    Ok(())
}

/// HDFS, too, notes the length of the last block when a quota refuses the next one; otherwise the file would seem to be
/// empty until somebody recovers its lease.
#[test]
fn what_was_written_before_a_block_that_a_quota_refuses_is_known() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.set_quota("/q", KEEP, 4 * MIB)?;
    let inode = world.create("/q/f", false)?;
    let first = Block { length: 1 << 20, ..world.add_block("/q/f", inode, None) };
    assert!(matches!(world.try_add_block("/q/f", Some(first)), Err(FsError::SpaceQuotaExceeded(_))));
    let length = |world: &World| summary(world, "/q/f").map(|summary| summary.length);
    assert_eq!(length(&world), Ok(0));
    let request = add_block::Request {
        path: "/q/f".into(),
        holder: common::HOLDER.into(),
        previous: Some(first),
        inode,
    };
    let plan = world.plan(|ns, ctx| add_block::plan(ns, ctx, &request, &common::ALL_FINISHED))?;
    let add_block::Plan::Refused { edit, error } = plan else { panic!("{plan:?}") };
    assert!(matches!(error, FsError::SpaceQuotaExceeded(_)), "{error}");
    // The edit answers no call: one that is repeated when there is room gets its block.
    assert_eq!(edit.origin, None);
    world.apply(edit);
    assert_eq!(length(&world), Ok(1 << 20));
    assert_eq!(used(&world, "/q"), (2, 3 * MIB));
    world.complete("/q/f", inode, Some(first));
    world.check_replay();
    Ok(())
}

#[test]
fn replication_append_and_truncate_are_charged() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    let inode = write(&mut world, "/q/f", &[1 << 20, 1_000]);
    world.set_quota("/q", KEEP, 7 * MIB)?;
    assert_eq!(used(&world, "/q"), (2, 3 * (MIB + 1_000)));
    assert!(matches!(world.set_replication("/q/f", 8), Err(FsError::SpaceQuotaExceeded(_))));
    assert_eq!(world.set_replication("/q/f", 6), Ok(true));
    assert_eq!(used(&world, "/q"), (2, 6 * (MIB + 1_000)));
    // The rest of the last block does not fit with six replicas, but with three.
    assert!(matches!(world.append("/q/f", false), Err(FsError::SpaceQuotaExceeded(_))));
    assert_eq!(world.set_replication("/q/f", 3), Ok(true));
    world.append("/q/f", false)?;
    assert_eq!(used(&world, "/q"), (2, 6 * MIB));
    let last = world.last_block("/q/f").map(|last| Block { length: 3_000, ..last });
    world.complete("/q/f", inode, last);
    assert_eq!(used(&world, "/q"), (2, 3 * (MIB + 3_000)));
    // While a block is cut it counts as a full one.
    assert_eq!(world.truncate("/q/f", (1 << 20) + 10), Ok(false));
    assert_eq!(used(&world, "/q"), (2, 6 * MIB));
    world.finish_truncation(inode, 10);
    assert_eq!(used(&world, "/q"), (2, 3 * (MIB + 10)));
    assert_eq!(world.truncate("/q/f", 1 << 20), Ok(true));
    assert_eq!(used(&world, "/q"), (2, 3 * MIB));
    world.check_replay();
    Ok(())
}

#[test]
fn concat_charges_the_difference_of_replication() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    write(&mut world, "/q/t", &[100]);
    write(&mut world, "/q/s", &[1 << 20, 500]);
    world.set_replication("/q/s", 1)?;
    world.set_quota("/q", KEEP, 2 * MIB)?;
    assert_eq!(used(&world, "/q"), (3, 300 + MIB + 500));
    let sources = ["/q/s".to_owned()];
    assert!(matches!(world.concat("/q/t", &sources), Err(FsError::SpaceQuotaExceeded(_))));
    world.set_quota("/q", KEEP, 4 * MIB)?;
    world.concat("/q/t", &sources)?;
    assert_eq!(used(&world, "/q"), (2, 3 * (600 + MIB)));
    world.check_replay();
    Ok(())
}

#[test]
fn a_rename_needs_room_below_the_common_ancestor_only() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q/from/d", true)?;
    world.mkdirs("/q/to", true)?;
    write(&mut world, "/q/from/d/f", &[1_000]);
    world.set_quota("/q", 5, 3_000)?;
    world.set_quota("/q/from", KEEP, 1 << 40)?;
    world.set_quota("/q/to", 2, KEEP)?;
    // /q is full, and stays as full as it was.
    assert_eq!(used(&world, "/q"), (5, 3_000));
    assert_eq!(world.rename("/q/from/d", "/q/to"), Err(names_exceeded("/q/to", 2, 3)));
    assert_eq!(world.rename2("/q/from/d", "/q/to/d", false), Err(names_exceeded("/q/to", 2, 3)));
    world.set_quota("/q/to", 3, 3_000)?;
    assert_eq!(world.rename("/q/from/d", "/q/to"), Ok(true));
    assert_eq!(used(&world, "/q/to"), (3, 3_000));
    assert_eq!(used(&world, "/q/from"), (1, 0));
    assert_eq!(used(&world, "/q"), (5, 3_000));
    // From outside /q itself must have room; what is replaced makes it.
    world.mkdirs("/out", true)?;
    write(&mut world, "/out/f", &[900]);
    assert_eq!(world.rename("/out/f", "/q/g"), Err(names_exceeded("/q", 5, 6)));
    assert_eq!(world.rename2("/out/f", "/q/to/d/f", true), Ok(Reply::Unit));
    assert_eq!(used(&world, "/q"), (5, 2_700));
    assert_eq!(world.rename("/q/to/d", "/out"), Ok(true));
    assert_eq!(used(&world, "/q"), (3, 0));
    world.check_replay();
    Ok(())
}

#[test]
fn deleting_gives_back_at_once_however_much_it_is() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q/big/inner", true)?;
    world.set_quota("/q", 5_000, KEEP)?;
    world.set_quota("/q/big/inner", 9_000, KEEP)?;
    for file in 0..1_200 {
        write(&mut world, &format!("/q/big/inner/{file}"), &[10]);
    }
    assert_eq!(used(&world, "/q"), (1_203, 36_000));
    assert_eq!(world.delete("/q/big", true), Ok(true));
    assert_eq!(used(&world, "/q"), (1, 0));
    assert_eq!(world.ns.counts().orphans, 1);
    assert_eq!(world.ns.check_consistency(), Ok(()));
    while let Some(edit) = namespace::ops::cleanup::plan(&world.ns, &world.context(None)) {
        world.apply(edit);
    }
    assert_eq!(used(&world, "/q"), (1, 0));
    world.check_replay();
    Ok(())
}

#[test]
fn types_are_counted_where_a_policy_says_so() -> FsResult<()> {
    use StorageType::{Archive, Disk, Ssd};
    let mut world = World::new(0);
    world.mkdirs("/q/hot", true)?;
    world.mkdirs("/q/plain", true)?;
    world.set_type_quota("/q", Ssd, 3 * MIB)?;
    assert_eq!(
        world.quota("/q").map(|quota| quota.limits),
        Some(Amounts { by_type: [3 * MIB, -1, -1, -1, -1], ..Amounts::UNLIMITED })
    );
    world.set_storage_policy("/q/hot", Some("one_ssd"))?;
    write(&mut world, "/q/plain/f", &[1_000]);
    write(&mut world, "/q/hot/f", &[1_000]);
    let by_type = |world: &World| [Ssd, Disk, Archive].map(|kind| on(world, "/q", kind));
    assert_eq!(by_type(&world), [1_000, 2_000, 0]);
    // The policy of what has none of its own changes with its directory's.
    world.set_storage_policy("/q", Some("COLD"))?;
    assert_eq!(by_type(&world), [1_000, 2_000, 3_000]);
    world.set_storage_policy("/q/hot/f", Some("ALL_SSD"))?;
    assert_eq!(by_type(&world), [3_000, 0, 3_000]);
    assert_eq!(summary(&world, "/q")?.type_consumed, [3_000, 0, 3_000, 0, 0]);
    // A rename takes the policy of where it goes, unless it has its own.
    world.rename("/q/plain/f", "/q/hot/g")?;
    assert_eq!(by_type(&world), [4_000, 2_000, 0]);
    world.rename("/q/hot/f", "/q/plain")?;
    assert_eq!(by_type(&world), [4_000, 2_000, 0]);
    world.set_storage_policy("/q/plain/f", None)?;
    assert_eq!(by_type(&world), [1_000, 2_000, 3_000]);
    world.set_storage_policy("/q/hot", Some("ALL_SSD"))?;
    world.create("/q/hot/h", false)?;
    assert_eq!(
        world.try_add_block("/q/hot/h", None),
        Err(FsError::TypeQuotaExceeded(
            "Quota by storage type : SSD on path : /q is exceeded. quota = 3 MB but space consumed = 3.00 MB"
                .into()
        ))
    );
    world.set_type_quota("/q", Ssd, CLEAR)?;
    assert_eq!(world.quota("/q"), None);
    world.check_replay();
    Ok(())
}

fn type_exceeded(path: &str, kind: &str, limit: &str, used: &str) -> FsError {
    FsError::TypeQuotaExceeded(format!(
        "Quota by storage type : {kind} on path : {path} is exceeded. quota = {limit} but space consumed = {used}"
    ))
}

/// HDFS takes the default policy for the check, and counts by none.
#[test]
fn a_file_without_a_policy_must_have_room_on_disk_to_be_changed_and_counts_on_no_medium() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    write(&mut world, "/q/f", &[1 << 20, 1_024]);
    write(&mut world, "/q/g", &[1_024]);
    world.set_replication("/q/g", 1)?;
    world.set_type_quota("/q", StorageType::Disk, 3 * MIB - 3_073)?;
    let exceeded = type_exceeded("/q", "DISK", "3.00 MB", "3.00 MB");
    // Three times the rest of the last block, with a new block as well.
    assert_eq!(world.append("/q/f", false), Err(exceeded));
    assert!(matches!(world.append("/q/f", true), Err(FsError::TypeQuotaExceeded(_))));
    assert!(matches!(world.truncate("/q/f", (1 << 20) + 5), Err(FsError::TypeQuotaExceeded(_))));
    world.set_type_quota("/q", StorageType::Disk, 2_047)?;
    // Twice the length, for the replicas that are added.
    assert_eq!(world.concat("/q/f", &["/q/g".into()]), Err(type_exceeded("/q", "DISK", "2.00 KB", "2 KB")));
    world.set_type_quota("/q", StorageType::Disk, 2_048)?;
    world.concat("/q/f", &["/q/g".into()])?;
    world.set_type_quota("/q", StorageType::Disk, 3 * MIB)?;
    world.append("/q/f", false)?;
    assert_eq!(on(&world, "/q", StorageType::Disk), 0);
    world.check_replay();
    Ok(())
}

#[test]
fn a_concat_asks_for_no_room_where_only_the_policy_changes() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    write(&mut world, "/q/t", &[100]);
    write(&mut world, "/q/s", &[1_000]);
    world.set_storage_policy("/q/t", Some("ALL_SSD"))?;
    world.set_storage_policy("/q/s", Some("HOT"))?;
    world.set_type_quota("/q", StorageType::Ssd, 300)?;
    world.concat("/q/t", &["/q/s".into()])?;
    // Nothing is checked where a policy is set either, and the usage is what a recount finds.
    assert_eq!([StorageType::Ssd, StorageType::Disk].map(|kind| on(&world, "/q", kind)), [3_300, 0]);
    assert_eq!(world.ns.check_consistency(), Ok(()));
    world.check_replay();
    Ok(())
}

#[test]
fn a_quota_that_is_moved_under_another_policy_counts_other_media() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/fast/q", true)?;
    world.mkdirs("/slow", true)?;
    world.set_storage_policy("/fast", Some("ALL_SSD"))?;
    world.set_quota("/fast/q", 100, KEEP)?;
    write(&mut world, "/fast/q/f", &[1_000]);
    assert_eq!(on(&world, "/fast/q", StorageType::Ssd), 3_000);
    // No directory above has a quota, neither here nor there.
    assert_eq!(world.rename("/fast/q", "/slow"), Ok(true));
    assert_eq!(on(&world, "/slow/q", StorageType::Ssd), 0);
    assert_eq!(world.ns.check_consistency(), Ok(()));
    assert_eq!(world.rename("/slow/q", "/fast"), Ok(true));
    assert_eq!(on(&world, "/fast/q", StorageType::Ssd), 3_000);
    world.check_replay();
    Ok(())
}

#[test]
fn a_limit_of_a_medium_that_is_to_stay_becomes_that_of_all_bytes() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.set_type_quota("/q", StorageType::Disk, KEEP)?;
    assert_eq!(world.quota("/q"), None);
    world.set_quota("/q", KEEP, 5_000)?;
    world.set_type_quota("/q", StorageType::Disk, 100)?;
    world.set_type_quota("/q", StorageType::Disk, KEEP)?;
    let limits = world.quota("/q").map(|quota| quota.limits);
    assert_eq!(limits.map(|limits| limits.of_type(StorageType::Disk)), Some(5_000));
    Ok(())
}

/// Only the root's: it always has a quota in HDFS.
#[test]
fn what_the_root_uses_of_a_medium_is_what_a_quota_would_count() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    world.set_storage_policy("/d", Some("ALL_SSD"))?;
    let inode = world.create("/d/f", false)?;
    world.add_block("/d/f", inode, None);
    let used = |path: &str| -> FsResult<Amounts> {
        let context = world.context(None);
        let get_quota_usage::Usage::Counted(mut walk) = get_quota_usage::get(&world.ns, &context, path)?
        else {
            panic!("{path} has no quota");
        };
        let summary = walk.step(&world.ns, &context)?.expect("a small tree");
        Ok(Amounts { by_type: summary.type_consumed.map(|bytes| bytes as i64), ..Amounts::default() })
    };
    assert_eq!(used("/")?.of_type(StorageType::Ssd), 3 * MIB);
    assert_eq!(used("/d")?.of_type(StorageType::Ssd), 0);
    assert_eq!(used("/d/f")?.of_type(StorageType::Ssd), 0);
    Ok(())
}

#[test]
fn quotas_are_set_and_cleared_as_hdfs_does() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q", true)?;
    world.create("/f", false)?;
    for (inodes, bytes) in [(-5, KEEP), (KEEP, -5), (i64::MIN, i64::MIN)] {
        assert_eq!(
            world.set_quota("/q", inodes, bytes),
            Err(FsError::InvalidArgument(format!(
                "Illegal value for nsQuota or ssQuota : {inodes} and {bytes}"
            )))
        );
    }
    assert_eq!(world.set_quota("/f", 5, KEEP), Err(FsError::PathIsNotDirectory("/f".into())));
    assert_eq!(
        world.set_quota("/none", 5, KEEP),
        Err(FsError::NotFound("Directory does not exist: /none".into()))
    );
    assert!(matches!(world.set_type_quota("/q", StorageType::RamDisk, 5), Err(FsError::InvalidArgument(_))));
    // A quota may be lower than what is there, or nothing at all.
    world.mkdirs("/q/a", true)?;
    world.set_quota("/q", 1, 0)?;
    assert_eq!(world.mkdirs("/q/b", true), Err(names_exceeded("/q", 1, 3)));
    assert_eq!(world.delete("/q/a", true), Ok(true));
    world.set_quota("/q", CLEAR, KEEP)?;
    assert_eq!(world.quota("/q").map(|quota| (quota.limits.inodes, quota.limits.bytes)), Some((-1, 0)));
    world.set_quota("/q", KEEP, CLEAR)?;
    assert_eq!(world.quota("/q"), None);
    // The root has a quota of names that nobody exceeds, until it is given another one.
    assert_eq!(summary(&world, "/")?.limits, Amounts::UNLIMITED_ROOT);
    world.set_quota("/", 3, KEEP)?;
    assert_eq!(used(&world, "/"), (3, 0));
    assert_eq!(world.mkdirs("/x", true), Err(names_exceeded("/", 3, 4)));
    world.set_quota("/", CLEAR, KEEP)?;
    assert_eq!(world.mkdirs("/x", true), Ok(true));
    assert_eq!(summary(&world, "/")?.limits, Amounts::UNLIMITED_ROOT);
    world.caller = Caller::simple("alice", &["users"]);
    assert_eq!(
        world.set_quota("/q", KEEP, 5),
        Err(FsError::AccessDenied(
            "Access denied for user alice. Superuser privilege is required for operation setSpaceQuota"
                .into()
        ))
    );
    world.check_replay();
    Ok(())
}

#[test]
fn what_a_snapshot_still_has_counts_until_the_snapshot_goes() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/q/d", true)?;
    write(&mut world, "/q/d/f", &[1_000]);
    world.set_quota("/q", 5, KEEP)?;
    world.allow_snapshot("/q")?;
    world.create_snapshot("/q", "s")?;
    write(&mut world, "/q/d/new", &[500]);
    assert_eq!(used(&world, "/q"), (4, 4_500));
    world.delete("/q/d/f", false)?;
    assert_eq!(used(&world, "/q"), (4, 4_500), "the snapshot has it");
    world.delete("/q/d/new", false)?;
    assert_eq!(used(&world, "/q"), (3, 3_000), "no snapshot has it");
    world.delete("/q/d", true)?;
    assert_eq!(used(&world, "/q"), (3, 3_000));
    world.mkdirs("/q/a/b", true)?;
    assert_eq!(world.mkdirs("/q/c", true), Err(names_exceeded("/q", 5, 6)));
    world.delete_snapshot("/q", "s")?;
    while let Some(edit) = namespace::ops::cleanup::plan(&world.ns, &world.context(None)) {
        world.apply(edit);
    }
    assert_eq!(used(&world, "/q"), (3, 0));
    world.check_replay();
    Ok(())
}

#[test]
fn a_snapshots_summary_counts_on_media_the_replicas_and_policies_of_now() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    write(&mut world, "/d/f", &[1_000]);
    world.allow_snapshot("/d")?;
    world.create_snapshot("/d", "s")?;
    world.set_replication("/d/f", 2)?;
    world.set_storage_policy("/d", Some("HOT"))?;
    let found = summary(&world, "/d/.snapshot/s")?;
    assert_eq!((found.space_consumed, found.type_consumed), (3_000, [0, 2_000, 0, 0, 0]));
    Ok(())
}

/// All quotas in the tree, with their directories' paths.
fn quotas(world: &World) -> Vec<(String, namespace::Quota)> {
    let mut paths = vec![String::from("/")];
    for depth in 1..=3u32 {
        for number in 0..3u32.pow(depth) {
            let name = |at: u32| ["a", "b", "c"][(number / 3u32.pow(at) % 3) as usize];
            paths.push((0..depth).map(|at| format!("/{}", name(at))).collect());
        }
    }
    paths.into_iter().filter_map(|path| world.quota(&path).map(|quota| (path, quota))).collect()
}

struct Run {
    world: World,
    dice: Dice,
    has_snapshots: bool,
}

impl Run {
    fn path(&mut self) -> String {
        let depth = 1 + self.dice.below(4);
        (0..depth).map(|_| format!("/{}", ["a", "b", "c"][self.dice.below(3) as usize])).collect()
    }

    /// One operation, whatever comes of it; true if it may take a directory beyond its quotas.
    fn step(&mut self) -> bool {
        let (path, other) = (self.path(), self.path());
        let number = self.dice.below(12) as i64;
        let world = &mut self.world;
        match self.dice.below(22) {
            0 | 1 => drop(world.mkdirs(&path, true)),
            2..=4 => {
                let holder = world.holder.clone();
                let mut request = world.create_request(&path, &holder);
                request.flags |= if number > 5 { namespace::ops::create::flag::OVERWRITE } else { 0 };
                (request.block_size, request.replication) = (1_024, 1 + number as u32 % 3);
                request.storage_policy = (number == 0).then(|| "ALL_SSD".into());
                drop(world.run(|ns, ctx| namespace::ops::create::plan(ns, ctx, &request)));
            }
            5..=7 => {
                let last = world.last_block(&path);
                let last = last.map(|last| Block { length: last.length.max(number as u64 * 80), ..last });
                if world.last_file_block(&path).is_none_or(|last| !last.committed || number > 6) {
                    drop(world.try_add_block(&path, last));
                }
            }
            8 => {
                let last = world.last_block(&path);
                let last = last.map(|last| Block { length: last.length.max(number as u64 * 80), ..last });
                let holder = world.holder.clone();
                let request =
                    namespace::ops::complete::Request { path: path.clone(), holder, last, inode: InodeId(0) };
                let plan = world
                    .plan(|ns, ctx| namespace::ops::complete::plan(ns, ctx, &request, &common::ALL_FINISHED));
                if let Ok(namespace::ops::complete::Plan::Close(edit)) = plan {
                    world.apply(edit);
                }
            }
            9 => drop(world.append(&path, number > 8)),
            10 => drop(world.truncate(&path, number * 100)),
            11 => {
                drop(world.concat(&path, &[other]));
                return true;
            }
            12 => drop(world.rename(&path, &other)),
            13 => drop(world.rename2(&path, &other, number > 3)),
            14 => drop(world.set_replication(&path, 1 + number as u32 % 5)),
            15 => drop(world.delete(&path, number > 7)),
            16 if self.has_snapshots => {
                let path = &path[..2];
                drop(world.allow_snapshot(path));
                drop(world.create_snapshot(path, &format!("s{}", number % 4)));
            }
            17 => drop(world.delete_snapshot(&path[..2], &format!("s{}", number % 4))),
            18 | 19 => {
                // Subtrees are taken apart, and what no snapshot sees any more is swept.
                for _ in 0..number {
                    let Some(edit) = namespace::ops::cleanup::plan(&world.ns, &world.context(None)) else {
                        break;
                    };
                    world.apply(edit);
                    assert_eq!(world.ns.check_consistency(), Ok(()));
                }
            }
            20 => {
                let policies = [None, Some("HOT"), Some("COLD"), Some("ONE_SSD")];
                drop(world.set_storage_policy(&path, policies[number as usize % 4]));
                return true;
            }
            _ => {
                let kind = StorageType::WITH_QUOTA[number as usize % 3];
                match number % 4 {
                    0 => drop(world.set_quota(&path, 4 + number * 2, KEEP)),
                    1 => drop(world.set_quota(&path, KEEP, 4_000 + number * 2_000)),
                    2 => drop(world.set_type_quota(&path, kind, 3_000 + number * 1_500)),
                    _ if number > 7 => drop(world.set_quota(&path, CLEAR, CLEAR)),
                    _ => drop(world.set_quota("/", 30 + number * 3, CLEAR)),
                }
                return true;
            }
        }
        false
    }
}

#[test]
fn after_any_sequence_the_usages_equal_a_recount_and_no_quota_was_passed() {
    let mut charged = 0;
    for seed in 0..16 {
        let mut world = World::new(seed);
        world.limits.block_size_min = 512;
        // An inode that a snapshot has counts at its old place again once it is deleted elsewhere. That may pass a
        // quota.
        let has_snapshots = seed % 2 == 1;
        let mut run = Run { world, dice: Dice(seed), has_snapshots };
        for step in 0..400 {
            let before = quotas(&run.world);
            let may_pass = run.step() || has_snapshots;
            // A recount of every quota is part of it.
            assert_eq!(run.world.ns.check_consistency(), Ok(()), "seed {seed}, step {step}");
            for (path, quota) in quotas(&run.world) {
                let Some((_, old)) = before.iter().find(|(other, _)| *other == path) else { continue };
                charged += i32::from(quota.used != old.used);
                let numbers = |amounts: &Amounts| {
                    [amounts.inodes, amounts.bytes].into_iter().chain(amounts.by_type).collect::<Vec<_>>()
                };
                let limits = numbers(&quota.limits).into_iter().zip(numbers(&quota.used));
                for ((limit, now), old) in limits.zip(numbers(&old.used)) {
                    let is_fine = may_pass || limit < 0 || now <= limit || now <= old;
                    assert!(is_fine, "seed {seed}, step {step}: {path} has {quota:?}");
                }
            }
            if step % 100 == 99 {
                run.world.restart_from_image();
            }
        }
        run.world.check_replay();
    }
    assert!(charged > 400, "charged {charged} times only");
}

/// Each slice is one hold of the namespace's lock.
#[test]
fn a_look_at_a_large_tree_visits_so_many_inodes_and_lets_others_in_between() -> FsResult<()> {
    const STEP: usize = 10;
    let mut world = World::new(0);
    world.limits.content_summary_step = STEP;
    for wide in 0..200 {
        world.mkdirs(&format!("/d/wide/{wide}"), true)?;
    }
    world.mkdirs(&format!("/d{}", "/deep".repeat(200)), true)?;
    world.set_permission("/d", 0o777)?;
    world.set_quota("/d", 1_000, KEEP)?;
    let someone = base::Caller::simple("someone", &["them"]);
    let inodes = 402;
    for (path, is_known) in [("/d", true), ("/d/wide", false)] {
        let mut context = world.context(None);
        context.caller = &someone;
        let mut look = get_quota_usage::start(&world.ns, &context, path)?;
        let mut slices = 1;
        let usage = loop {
            match look.step(&world.ns, &context)? {
                Some(usage) => break usage,
                None => slices += 1,
            }
        };
        let visited = if is_known { inodes } else { 201 };
        // An inode is visited once as a child of its directory, and a directory once more to look into it.
        assert!((visited / STEP..=2 * visited / STEP + 2).contains(&slices), "{slices} slices of {path}");
        let get_quota_usage::Usage::Counted(mut walk) = usage else {
            assert!(is_known);
            continue;
        };
        let mut slices = 1;
        let summary = loop {
            match walk.step(&world.ns, &context)? {
                Some(summary) => break summary,
                None => slices += 1,
            }
        };
        assert_eq!(summary.directory_count, 201);
        assert!((200 / STEP..=200 / STEP + 2).contains(&slices), "{slices} slices of the count of {path}");
    }
    // A directory that may not be read is found in whatever slice it is.
    world.set_permission("/d/wide/77", 0o700)?;
    let mut context = world.context(None);
    context.caller = &someone;
    let refusal = get_quota_usage::get(&world.ns, &context, "/d").err();
    assert!(matches!(refusal, Some(FsError::AccessDenied(text)) if text.contains("\"/d/wide/77\"")));
    Ok(())
}
