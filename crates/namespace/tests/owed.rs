//! The answers that HDFS owes to its clients, with the exact texts that clients and scripts know.

mod common;

use base::{Block, CallId, Caller, FsError, FsResult, InodeId};
use common::{HOLDER, World};
use namespace::{
    Limits, Planned, Reply, RetryLookup, ops,
    ops::create::flag,
    reads::{check_access, get_block_locations, get_erasure_coding_policy, get_file_info, get_listing},
};

fn create_with(world: &mut World, change: impl FnOnce(&mut ops::create::Request)) -> FsResult<Reply> {
    let mut request = world.create_request("/d/f", "client");
    change(&mut request);
    world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))
}

/// `FSNamesystem` looks at the minimum only; that checksums divide a block is the client's business.
#[test]
fn any_block_size_from_the_minimum_on_is_taken() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    for size in [512, 513, 1_000_001] {
        let flags = flag::CREATE | flag::OVERWRITE;
        create_with(&mut world, |request| (request.block_size, request.flags) = (size, flags))?;
    }
    Ok(())
}

#[test]
fn create_refuses_what_cannot_be_a_file() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d/dir", true)?;
    let io = |text: &str| Err(FsError::Io(text.into()));
    assert_eq!(
        create_with(&mut world, |request| request.replication = 0),
        io("Requested replication factor of 0 is less than the required minimum of 1 for /d/f, \
            clientName=127.0.0.1")
    );
    assert_eq!(
        create_with(&mut world, |request| request.replication = 513),
        io("Requested replication factor of 513 exceeds maximum of 512 for /d/f, clientName=127.0.0.1")
    );
    let negative = create_with(&mut world, |request| request.replication = -1i32 as u32);
    assert!(matches!(negative, Err(FsError::Io(text)) if text.contains("of -1 is less")));
    for size in [0, 511, -1i64 as u64] {
        let refused = create_with(&mut world, |request| request.block_size = size);
        assert!(matches!(refused, Err(FsError::Io(text)) if text.contains("min-block-size=512")), "{size}");
    }
    let refused = create_with(&mut world, |request| request.block_size = 1 << 62);
    assert!(matches!(refused, Err(FsError::InvalidArgument(_))));
    assert_eq!(
        create_with(&mut world, |request| request.path = "/d/dir".into()),
        Err(FsError::AlreadyExists("/d/dir already exists as a directory".into()))
    );
    assert_eq!(
        create_with(&mut world, |request| request.flags = flag::OVERWRITE),
        Err(FsError::NotFound("Can't overwrite non-existent /d/f".into()))
    );
    // HDFS's server does not look at APPEND: clients that mean it call append.
    assert_eq!(
        create_with(&mut world, |request| request.flags = flag::APPEND),
        Err(FsError::NotFound("Can't overwrite non-existent /d/f".into()))
    );
    let orphan = create_with(&mut world, |request| {
        (request.path, request.create_parent) = ("/no/f".into(), false);
    });
    assert_eq!(orphan, Err(FsError::NotFound("Parent directory doesn't exist: /no".into())));
    assert_eq!(world.ns.counts().files, 0);
    Ok(())
}

#[test]
fn create_tolerates_the_flags_that_ask_for_placement() -> FsResult<()> {
    let mut world = World::new(0);
    let flags = flag::LAZY_PERSIST
        | flag::NEW_BLOCK
        | flag::NO_LOCAL_WRITE
        | flag::SHOULD_REPLICATE
        | flag::IGNORE_CLIENT_LOCALITY;
    let reply = create_with(&mut world, |request| request.flags |= flags)?;
    assert!(matches!(reply, Reply::Created(_)));
    Ok(())
}

#[test]
fn an_overwritten_file_is_another_inode_and_its_blocks_go_away() -> FsResult<()> {
    let mut world = World::new(0);
    let old = world.create("/f", false)?;
    let block = world.add_block("/f", old, None);
    let mut request = world.create_request("/f", "another");
    request.flags |= flag::OVERWRITE;
    let plan = world.plan(|ns, ctx| ops::create::plan(ns, ctx, &request))?;
    let Planned::Edit(edit) = plan else { panic!("{plan:?}") };
    let applied = world.apply(edit);
    assert_eq!(applied.block_changes, [namespace::BlockChange::Removed(block)]);
    assert_ne!(applied.reply, Reply::Created(old));
    assert!(world.ns.leases().eq([("another", 1)]));
    Ok(())
}

#[test]
fn new_directories_belong_to_the_caller_and_the_group_above() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    world.set_owner("/d", None, Some("staff"))?;
    world.set_permission("/d", 0o1777)?;
    world.caller = Caller::simple("ann", &[]);
    let request =
        ops::mkdirs::Request { path: "/d/a/b".into(), permission: 0o50, unmasked: None, create_parent: true };
    world.run(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request))?;
    world.caller = Caller::simple("hdfs", &[]);
    for (path, mode) in [("/d/a", 0o350), ("/d/a/b", 0o50)] {
        let ctx = world.context(None);
        let status = get_file_info::get(&world.ns, &ctx, path)?.unwrap_or_else(|| panic!("{path}"));
        assert_eq!((status.owner, status.group, status.permission), ("ann", "staff", mode));
    }
    Ok(())
}

#[test]
fn the_limits_on_names_are_named() -> FsResult<()> {
    let mut world = World::new(0);
    let long = format!("/d/{}", "x".repeat(256));
    assert_eq!(
        world.mkdirs(&long, true),
        Err(FsError::ComponentTooLong(format!(
            "The maximum path component name limit of {} in directory /d is exceeded: limit=255 length=256",
            "x".repeat(256)
        )))
    );
    assert_eq!(world.mkdirs(&format!("/{}", "é".repeat(127)), true), Ok(true));
    let too_long = |operation: &str| {
        Err(FsError::Io(format!("{operation}: Pathname too long.  Limit 8000 characters, 1000 levels.")))
    };
    let deep = "/a".repeat(1_001);
    assert_eq!(world.mkdirs(&deep, true), too_long("mkdirs"));
    assert_eq!(world.create(&format!("/{}", "ab/".repeat(2_700)), false).err(), too_long("create").err());
    assert_eq!(world.rename("/a", &deep), too_long("rename"));
    assert_eq!(world.mkdirs(&"/a".repeat(1_000), true), Ok(true));
    world.create("/full/1", false)?;
    world.create("/full/2", false)?;
    world.limits = Limits { directory_items_max: 2, ..world.limits };
    let full = "The directory item limit of /full is exceeded: limit=2 items=2";
    assert_eq!(world.create("/full/3", false), Err(FsError::DirectoryFull(full.into())));
    assert_eq!(world.create("/full/2", true).map(|_| ()), Ok(()));
    assert_eq!(world.mkdirs("/full/3/4", true), Err(FsError::DirectoryFull(full.into())));
    assert!(matches!(world.rename("/a", "/full"), Err(FsError::DirectoryFull(_))));
    assert_eq!(world.rename("/full/2", "/full/3"), Ok(true));
    Ok(())
}

#[test]
fn rename_answers_false_and_rename2_says_why() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/a/b", true)?;
    world.create("/f", false)?;
    for (from, to) in [("/", "/x"), ("/a", "/a/b/c"), ("/none", "/x"), ("/f", "/no/x"), ("/a", "/f")] {
        assert_eq!(world.rename(from, to), Ok(false), "{from} to {to}");
    }
    // Into the root: it is there already.
    assert_eq!(world.rename("/f", "/"), Ok(true));
    assert_eq!(world.rename("/f", "/f"), Ok(true));
    let cases: [(&str, &str, FsError); 8] = [
        ("/none", "/x", FsError::NotFound("rename source /none is not found.".into())),
        ("/", "/x", FsError::Io("rename source cannot be the root".into())),
        ("/a", "/a", FsError::AlreadyExists("The source /a and destination /a are the same".into())),
        ("/a", "/a/c", FsError::Io("Rename destination /a/c is a directory or file under source /a".into())),
        ("/a", "/", FsError::Io("rename destination cannot be the root".into())),
        ("/a", "/f", FsError::Io("Source /a and destination /f must both be directories".into())),
        ("/f", "/no/x", FsError::NotFound("rename destination parent /no/x not found.".into())),
        ("/f", "/f/x", FsError::ParentNotDirectory("/f (is not a directory)".into())),
    ];
    for (from, to, error) in cases {
        assert_eq!(world.rename2(from, to, true), Err(error), "{from} to {to}");
    }
    world.create("/g", false)?;
    assert_eq!(
        world.rename2("/f", "/g", false),
        Err(FsError::AlreadyExists("rename destination /g already exists".into()))
    );
    world.mkdirs("/e", true)?;
    assert_eq!(
        world.rename2("/e", "/a", true),
        Err(FsError::Io("rename destination directory is not empty: /a".into()))
    );
    assert_eq!(world.rename2("/a", "/e", true), Ok(Reply::Unit));
    Ok(())
}

#[test]
fn the_root_is_not_deleted() {
    let mut world = World::new(0);
    assert_eq!(world.delete("/", true), Ok(false));
    assert_eq!(world.mkdirs("/a/b", true), Ok(true));
    assert_eq!(
        world.delete("/a", false),
        Err(FsError::NotEmpty("`/a is non empty': Directory is not empty".into()))
    );
    assert!(matches!(world.delete("/", false), Err(FsError::NotEmpty(_))));
}

#[test]
fn paths_that_are_not_canonical_are_refused_by_every_operation() {
    let mut world = World::new(0);
    assert_eq!(world.mkdirs("/a/b", true), Ok(true));
    let digest = world.ns.digest();
    for path in ["", "a", "/a//b", "/a/./b", "/a/../a", "/a\0"] {
        let ctx = world.context(None);
        let reads = [
            get_file_info::get(&world.ns, &ctx, path).err(),
            get_listing::get(&world.ns, &ctx, path, b"", false).err(),
            check_access::check(&world.ns, &ctx, path, 4).err(),
            world.mkdirs(path, true).err(),
            world.create(path, true).err(),
            world.delete(path, true).err(),
            world.rename(path, "/x").err(),
            world.rename2("/a", path, true).err(),
            world.set_permission(path, 0o777).err(),
        ];
        for error in reads {
            assert_eq!(error, Some(FsError::InvalidPath(path.into())), "{path:?}");
        }
    }
    assert_eq!(world.ns.digest(), digest);
}

#[test]
fn the_sticky_bit_protects_what_others_put_there() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/tmp", true)?;
    world.set_permission("/tmp", 0o1777)?;
    world.caller = Caller::simple("ann", &[]);
    world.create("/tmp/hers", false)?;
    world.mkdirs("/tmp/dir/sub", true)?;
    world.caller = Caller::simple("bob", &[]);
    assert_eq!(
        world.delete("/tmp/hers", false),
        Err(FsError::AccessDenied(
            "Permission denied by sticky bit: user=bob, path=\"/tmp/hers\":ann:supergroup:-rw-r--r--, \
             parent=\"/tmp\":hdfs:supergroup:drwxrwxrwt"
                .into()
        ))
    );
    assert!(matches!(world.rename("/tmp/hers", "/tmp/mine"), Err(FsError::AccessDenied(_))));
    world.caller = Caller::simple("ann", &[]);
    assert_eq!(world.delete("/tmp/hers", false), Ok(true));
    assert_eq!(world.delete("/tmp/dir", true), Ok(true));
    Ok(())
}

/// Hadoop's `addImplicitUwx` makes the permission of such directories anew, of the three rights alone.
#[test]
fn directories_made_on_the_way_are_never_sticky() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/tmp", true)?;
    world.set_permission("/tmp", 0o1577)?;
    world.create("/tmp/made/f", false)?;
    let made =
        get_file_info::get(&world.ns, &world.context(None), "/tmp/made")?.map(|status| status.permission);
    assert_eq!(made, Some(0o777));
    Ok(())
}

#[test]
fn a_negative_range_of_blocks_is_refused_before_the_path_is_looked_at() {
    let world = World::new(0);
    let refused = |offset, length, what: &str| {
        let message = format!("Negative {what} is not supported. File: /none");
        let found = get_block_locations::get(&world.ns, &world.context(None), "/none", offset, length).err();
        assert_eq!(found, Some(FsError::InvalidArgument(message)));
    };
    refused(u64::MAX, 1, "offset");
    refused(0, u64::MAX, "length");
}

#[test]
fn nothing_of_a_file_from_somewhere_on_is_the_block_that_is_there() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let mut first = world.add_block("/f", inode, None);
    first.length = 1 << 20;
    world.complete("/f", inode, Some(first));
    let found = get_block_locations::get(&world.ns, &world.context(None), "/f", 1, 0)?;
    assert_eq!(found.blocks.len(), 1);
    assert_eq!(get_block_locations::get(&world.ns, &world.context(None), "/f", 1 << 20, 0)?.blocks, []);
    Ok(())
}

#[test]
fn a_block_that_is_written_reaches_as_far_as_was_told() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let block = world.add_block("/f", inode, None);
    let found = |world: &World, offset| {
        let found = get_block_locations::get(&world.ns, &world.context(None), "/f", offset, 1);
        found.map(|found| (found.blocks.len(), found.last.is_some()))
    };
    // Nothing was told: a client gets it wherever it looks.
    assert_eq!([found(&world, 0), found(&world, 5_000)], [Ok((1, true)), Ok((1, true))]);
    let request =
        ops::fsync::Request { path: "/f".into(), holder: HOLDER.into(), last_block_length: 1_023, inode };
    world.run(|ns, ctx| ops::fsync::plan(ns, ctx, &request))?;
    assert_eq!([found(&world, 1_022), found(&world, 1_023)], [Ok((1, true)), Ok((0, true))]);
    // No length was told of a further block.
    world.add_block("/f", inode, Some(Block { length: 1 << 20, ..block }));
    assert_eq!([found(&world, 1 << 20), found(&world, (1 << 20) - 1)], [Ok((0, true)), Ok((1, true))]);
    Ok(())
}

/// HDFS refuses the name when it would be added, after all that may be wrong with the rest.
#[test]
fn the_reserved_name_is_refused_where_it_would_be_made() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/a", true)?;
    assert!(matches!(world.mkdirs("/.reserved/x/y", true), Err(FsError::InvalidArgument(_))));
    assert_eq!(world.rename("/a", "/.reserved/x"), Ok(false));
    assert_eq!(
        world.rename2("/a", "/.reserved/x", false),
        Err(FsError::NotFound("rename destination parent /.reserved/x not found.".into()))
    );
    let to_top = || FsError::InvalidPath("Cannot rename to or from /.reserved".into());
    assert_eq!(world.rename("/a", "/.reserved"), Err(to_top()));
    assert_eq!(world.rename2("/a", "/.reserved", false), Err(to_top()));
    world.caller = Caller::simple("bob", &[]);
    assert!(matches!(world.mkdirs("/.reserved/x", true), Err(FsError::AccessDenied(_))));
    Ok(())
}

#[test]
fn a_recursive_delete_must_be_allowed_all_the_way_down() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d/closed", true)?;
    world.create("/d/closed/f", false)?;
    world.set_permission("/d", 0o777)?;
    world.set_permission("/", 0o777)?;
    world.caller = Caller::simple("bob", &[]);
    assert_eq!(
        world.delete("/d", true),
        Err(FsError::AccessDenied(
            "Permission denied: user=bob, access=ALL, inode=\"/d/closed\":hdfs:supergroup:drwxr-xr-x".into()
        ))
    );
    let request = ops::rename2::Request {
        source: "/d".into(),
        destination: "/t".into(),
        overwrite: false,
        to_trash: true,
    };
    let trashed = world.run(|ns, ctx| ops::rename2::plan(ns, ctx, &request));
    assert!(matches!(trashed, Err(FsError::AccessDenied(_))));
    assert_eq!(world.rename2("/d", "/t", false), Ok(Reply::Unit));
    Ok(())
}

#[test]
fn only_the_superuser_gives_files_away() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/h", true)?;
    world.set_owner("/h", Some("ann"), Some("staff"))?;
    world.caller = Caller::simple("ann", &["staff", "club"]);
    assert_eq!(world.set_owner("/h", None, Some("club")), Ok(Reply::Unit));
    let denied = |text: &str| Err(FsError::AccessDenied(text.into()));
    assert_eq!(world.set_owner("/h", None, Some("wheel")), denied("User ann does not belong to wheel"));
    assert_eq!(
        world.set_owner("/h", Some("bob"), None),
        denied("User ann is not a super user (non-super user cannot change owner).")
    );
    world.caller = Caller::simple("bob", &[]);
    assert_eq!(
        world.set_permission("/h", 0o777),
        denied("Permission denied. user=bob is not the owner of inode=/h")
    );
    assert_eq!(
        world.set_permission("/x", 0o777),
        Err(FsError::NotFound("Directory/File does not exist /x".into()))
    );
    world.caller = Caller::simple("eve", &["supergroup"]);
    assert_eq!(world.set_owner("/h", Some("bob"), None), Ok(Reply::Unit));
    Ok(())
}

#[test]
fn times_and_replication_are_bounded() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/f", false)?;
    world.set_times("/f", 5, 6)?;
    let status = get_file_info::get(&world.ns, &world.context(None), "/f")?;
    assert_eq!(status.map(|status| (status.modified.ms, status.accessed.ms)), Some((5, 6)));
    for bad in [-2, i64::MIN, i64::MAX] {
        assert!(matches!(world.set_times("/f", bad, -1), Err(FsError::InvalidArgument(_))));
    }
    assert_eq!(
        world.set_times("/x", 1, 1),
        Err(FsError::NotFound("File/Directory /x does not exist.".into()))
    );
    assert_eq!(
        world.set_replication("/f", 0),
        Err(FsError::Io(
            "Requested replication factor of 0 is less than the required minimum of 1 for /f".into()
        ))
    );
    assert_eq!(world.set_replication("/", 2), Ok(false));
    Ok(())
}

#[test]
fn a_file_lists_itself_and_a_batch_lists_many() -> FsResult<()> {
    let mut world = World::new(0);
    for path in ["/d/1", "/d/2", "/d/3", "/e/4"] {
        world.create(path, false)?;
    }
    let ctx = world.context(None);
    let listing = get_listing::get(&world.ns, &ctx, "/d/1", b"", false)?;
    let listing = listing.unwrap_or_else(|| panic!("/d/1 lists itself"));
    assert_eq!((listing.entries.len(), listing.entries[0].name, listing.remaining), (1, &b""[..], 0));
    assert_eq!(get_listing::get(&world.ns, &ctx, "/none", b"", false)?, None);
    let limits = Limits { listing_max: 2, ..world.limits.clone() };
    let ctx = namespace::Context { limits: &limits, ..ctx };
    let paths = ["/none", "/d", "/e"];
    let first = get_listing::get_batched(&world.ns, &ctx, &paths, (0, b""), false)?;
    assert_eq!(first.listings.len(), 2);
    assert!(matches!(first.listings[0].listing, Err(FsError::NotFound(_))));
    assert_eq!((first.has_more, &first.next), (true, &(1, b"2".to_vec())));
    let (index, after) = &first.next;
    let second = get_listing::get_batched(&world.ns, &ctx, &paths, (*index, after), false)?;
    assert_eq!((second.listings.len(), second.has_more), (2, false));
    Ok(())
}

#[test]
fn a_file_above_hides_the_path_from_the_superuser_alone() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/f", false)?;
    assert_eq!(get_file_info::get(&world.ns, &world.context(None), "/f/x")?, None);
    world.caller = Caller::simple("ann", &[]);
    let refused = get_file_info::get(&world.ns, &world.context(None), "/f/x");
    assert_eq!(refused, Err(FsError::AccessDenied("/f (is not a directory)".into())));
    assert!(check_access::check(&world.ns, &world.context(None), "/f", 4).is_ok());
    assert!(check_access::check(&world.ns, &world.context(None), "/f", 2).is_err());
    Ok(())
}

#[test]
fn a_repeated_call_is_answered_like_the_first_time() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    let mkdirs = world.origin();
    let inode = world.create("/f", false)?;
    let create = world.origin();
    for restarted in [false, true] {
        assert_eq!(world.ns.retry_lookup(&mkdirs, 42), RetryLookup::Hit(Reply::Bool(true)), "{restarted}");
        assert_eq!(world.ns.retry_lookup(&create, 42), RetryLookup::Hit(Reply::Created(inode)));
        assert_eq!(world.ns.retry_lookup(&create, 43), RetryLookup::Mismatch);
        let unseen = base::CallOrigin { call_id: CallId(77), ..create };
        assert_eq!(world.ns.retry_lookup(&unseen, 42), RetryLookup::Miss);
        world.restart_from_image();
    }
    // A clock that jumps makes nobody's call happen twice.
    world.now.ms += 3_600_000;
    world.mkdirs("/e", true)?;
    world.now.ms -= 3_599_990;
    world.mkdirs("/g", true)?;
    assert_eq!(world.ns.retry_lookup(&create, 42), RetryLookup::Hit(Reply::Created(inode)));
    assert_eq!(world.ns.counts().retry_entries, 4);
    world.check_replay();
    Ok(())
}

#[test]
fn many_repeated_calls_find_their_own_answers() {
    let mut world = World::new(0);
    for n in 0..3_000 {
        world.now.ms += 400;
        let path = format!("/d{n}");
        assert_eq!(world.mkdirs(&path, true), Ok(true));
        let origin = world.origin();
        assert_eq!(world.ns.retry_lookup(&origin, 42), RetryLookup::Hit(Reply::Bool(true)));
        let old = base::CallOrigin { call_id: CallId(origin.call_id.0 - 1_400), ..origin };
        let expected = if n >= 1_400 { RetryLookup::Hit(Reply::Bool(true)) } else { RetryLookup::Miss };
        assert_eq!(world.ns.retry_lookup(&old, 42), expected, "{n}");
    }
    assert_eq!(world.ns.counts().retry_entries, 3_000);
}

#[test]
fn a_directory_of_many_children_is_listed_in_order() -> FsResult<()> {
    let mut world = World::new(0);
    let mut dice = common::Dice(3);
    for _ in 0..20_000 {
        world.create(&format!("/d/{}", dice.below(1 << 30)), true)?;
    }
    let ctx = world.context(None);
    let mut last: Vec<u8> = Vec::new();
    let mut count = 0;
    loop {
        let page = get_listing::get(&world.ns, &ctx, "/d", &last, false)?;
        let page = page.unwrap_or_else(|| panic!("/d is listed"));
        for entry in &page.entries {
            assert!(entry.name > &last[..]);
            last = entry.name.to_vec();
        }
        count += page.entries.len() as u64;
        if page.remaining == 0 {
            break;
        }
    }
    assert_eq!(count, world.ns.counts().files);
    assert_eq!(world.delete("/d/none", false), Ok(false));
    assert_eq!(world.ns.path_of(InodeId::ROOT).as_deref(), Some("/"));
    Ok(())
}

#[test]
fn what_a_record_cannot_hold_is_refused_before_it_is_journaled() -> FsResult<()> {
    let mut world = World::new(0);
    let long = "x".repeat(1_025);
    let mut request = world.create_request("/g", &long);
    assert!(matches!(
        world.run(|ns, ctx| ops::create::plan(ns, ctx, &request)),
        Err(FsError::InvalidArgument(_))
    ));
    request.holder = "h".into();
    world.now.ms = u64::MAX - 5;
    world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))?;
    assert!(matches!(world.set_owner("/g", Some(&long), None), Err(FsError::InvalidArgument(_))));
    let block = base::Block { length: u64::MAX, ..world.add_block_as("h", "/g") };
    let request = ops::update_block_for_pipeline::Request { block, holder: "h".into(), pool: String::new() };
    assert!(world.run(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request)).is_err());
    world.restart_from_image();
    world.check_replay();
    Ok(())
}

#[test]
fn a_tree_has_at_most_so_many_objects() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/f", false)?;
    // "The maximum number of files, directories and blocks": the root, the file, and one more.
    world.limits.objects_max = 3;
    world.mkdirs("/d", true)?;
    let full = FsError::Io("Exceeded the configured number of objects 3 in the filesystem.".into());
    assert_eq!(world.mkdirs("/e", true), Err(full.clone()));
    assert_eq!(world.create("/g", false).err(), Some(full.clone()));
    assert_eq!(world.try_add_block("/f", None).err(), Some(full));
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    Ok(())
}

#[test]
fn a_question_about_the_policy_of_dot_snapshot_has_an_answer() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    let asked =
        |world: &World, path: &str| get_erasure_coding_policy::check(&world.ns, &world.context(None), path);
    // HDFS looks at the last name of the path, and not whether the directory has snapshots.
    for path in ["/d", "/d/.snapshot", "/d/none/.snapshot"] {
        assert_eq!(asked(&world, path), Ok(()), "{path}");
    }
    assert_eq!(asked(&world, "/d/none"), Err(FsError::NotFound("Path not found: /d/none".into())));
}
