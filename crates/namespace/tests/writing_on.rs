//! HDFS's promises to clients that change finished files: append, truncate and concat.

mod common;

use base::{Block, Caller, FsError, FsResult, GenerationStamp, InodeId, Moment};
use common::{ALL_FINISHED, HOLDER, World};
use namespace::{
    BlockChange, Edit, Planned, Reach, Renewals, Reply, RetryLookup,
    given_facts::GivenFacts,
    ops,
    ops::{
        append, commit_block_synchronization, concat, create,
        release_lease::{self, Recovery},
        truncate,
    },
    reads::get_file_info,
};

const OTHER: &str = "DFSClient_test_2";

fn file(world: &mut World, path: &str, lengths: &[u64]) -> InodeId {
    let inode = world.create(path, false).expect("a new file");
    let mut last = None;
    for length in lengths {
        let block = world.add_block(path, inode, last);
        last = Some(Block { length: *length, ..block });
    }
    world.complete(path, inode, last);
    inode
}

fn lengths(world: &World, path: &str) -> Vec<u64> {
    let status = get_file_info::get(&world.ns, &world.context(None), path).ok().flatten().expect("a file");
    let blocks = namespace::reads::get_block_locations::by_id(&world.ns, status.id).expect("its blocks");
    blocks.blocks.iter().map(|block| block.block.length).collect()
}

fn append_as(world: &mut World, path: &str, holder: &str) -> FsResult<Planned<append::AppendEdit>> {
    let request = append::Request {
        path: path.into(),
        holder: holder.into(),
        client_machine: "127.0.0.1".into(),
        new_block: false,
    };
    world.plan(|ns, ctx| append::plan(ns, ctx, &request, &ALL_FINISHED))
}

fn truncate_as(world: &mut World, path: &str, holder: &str, length: i64) -> FsResult<truncate::Plan> {
    let request = truncate::Request {
        path: path.into(),
        length,
        holder: holder.into(),
        client_machine: "127.0.0.1".into(),
    };
    world.plan(|ns, ctx| truncate::plan(ns, ctx, &request))
}

fn not_found(text: &str) -> FsError {
    FsError::NotFound(text.into())
}

#[test]
fn an_appended_block_with_room_is_written_on_under_the_stamp_that_it_has() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[700, 300]);
    let last = world.last_block("/f").expect("a block");
    let Planned::Edit(edit) = append_as(&mut world, "/f", HOLDER)? else { panic!("nothing to do") };
    let applied = world.apply(edit);
    assert_eq!(applied.reply, Reply::Appended(inode));
    assert_eq!(applied.block_changes, [BlockChange::Reopened { block: last }]);
    let status = get_file_info::get(&world.ns, &world.context(None), "/f")?.expect("a file");
    assert_eq!((status.under_construction, status.length), (true, 1_000));
    assert_eq!(world.ns.file_of_open_block(last.id), Some(inode));
    world.restart_from_image();
    // The writer gets a new stamp, writes, and closes.
    let request =
        ops::update_block_for_pipeline::Request { block: last, holder: HOLDER.into(), pool: String::new() };
    let stamped = world.run(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request))?;
    let Reply::Block { block: new, .. } = stamped else { panic!("{stamped:?}") };
    assert!(new.generation_stamp > last.generation_stamp);
    let request = ops::update_pipeline::Request { holder: HOLDER.into(), old: last, new };
    world.run(|ns, ctx| ops::update_pipeline::plan(ns, ctx, &request))?;
    world.complete("/f", inode, Some(Block { length: 450, ..new }));
    assert_eq!(lengths(&world, "/f"), [700, 450]);
    world.check_replay();
    Ok(())
}

/// The data servers may have taken up the append, and with it a stamp that they have not told of: finished under the
/// old one the block would have no good replica.
#[test]
fn a_block_that_an_append_reopened_is_recovered_though_it_is_finished_everywhere() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[700, 300]);
    let last = world.last_block("/f").expect("a block");
    let Planned::Edit(edit) = append_as(&mut world, "/f", HOLDER)? else { panic!("nothing to do") };
    world.apply(edit);
    let request =
        ops::update_block_for_pipeline::Request { block: last, holder: HOLDER.into(), pool: String::new() };
    let stamped = world.run(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request))?;
    let Reply::Block { block: new, .. } = stamped else { panic!("{stamped:?}") };
    let plan = release_lease::plan(&world.ns, &world.context(None), inode, &ALL_FINISHED);
    let release_lease::Plan::Recover(Recovery { edit, block, stamp, truncation, source }) = plan else {
        panic!("{plan:?}")
    };
    assert_eq!((block, truncation, source), (last, None, None));
    assert!(stamp > new.generation_stamp);
    world.apply(edit);
    world.check_replay();
    Ok(())
}

#[test]
fn a_full_last_block_is_left_alone_and_so_is_one_with_room_if_the_client_wants_another() -> FsResult<()> {
    let mut world = World::new(0);
    let size = 1 << 20;
    let full = file(&mut world, "/full", &[size]);
    assert_eq!(world.append("/full", false), Ok(full));
    assert!(world.last_file_block("/full").is_some_and(|last| last.committed));
    // Hadoop's client does not know of the full block and names none before the next.
    let next = world.add_block("/full", full, None);
    world.complete("/full", full, Some(Block { length: 5, ..next }));
    assert_eq!(lengths(&world, "/full"), [size, 5]);

    let short = file(&mut world, "/short", &[100]);
    let last = world.last_block("/short");
    assert_eq!(world.append("/short", true), Ok(short));
    assert!(world.last_file_block("/short").is_some_and(|last| last.committed));
    let next = world.add_block("/short", short, last);
    world.complete("/short", short, Some(Block { length: 7, ..next }));
    assert_eq!(lengths(&world, "/short"), [100, 7]);

    let empty = file(&mut world, "/empty", &[]);
    assert_eq!(world.append("/empty", false), Ok(empty));
    world.complete("/empty", empty, None);
    world.check_replay();
    Ok(())
}

#[test]
fn append_refuses_what_is_no_finished_file() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    assert_eq!(
        append_as(&mut world, "/d", HOLDER),
        Err(FsError::AlreadyExists("Cannot append to directory /d; already exists as a directory.".into()))
    );
    assert_eq!(
        append_as(&mut world, "/none", HOLDER),
        Err(not_found("Failed to append to non-existent file /none for client 127.0.0.1"))
    );
    file(&mut world, "/f", &[10]);
    let last = world.last_block("/f").expect("a block");
    let request = append::Request {
        path: "/f".into(),
        holder: HOLDER.into(),
        client_machine: "".into(),
        new_block: true,
    };
    assert_eq!(
        world.plan(|ns, ctx| append::plan(ns, ctx, &request, &GivenFacts::silence())),
        Err(FsError::Io(format!("append: lastBlock={last} of src=/f is not sufficiently replicated yet.")))
    );
    world.set_permission("/f", 0o444)?;
    world.caller = Caller::simple("ann", &[]);
    assert!(matches!(append_as(&mut world, "/f", HOLDER), Err(FsError::AccessDenied(_))));
    Ok(())
}

#[test]
fn one_writer_at_a_time_until_it_is_silent_for_too_long() -> FsResult<()> {
    let mut world = World::new(0);
    file(&mut world, "/f", &[10]);
    world.renewals = Some(Renewals::new(world.moment));
    world.append("/f", false)?;
    let failed = |operation: &str, holder: &str, why: &str| {
        format!("Failed to {operation} /f for {holder} on 127.0.0.1 because {why}")
    };
    let mine = "DFSClient_test_1 is already the current lease holder.";
    assert_eq!(
        append_as(&mut world, "/f", HOLDER),
        Err(FsError::AlreadyBeingCreated(failed("APPEND_FILE", HOLDER, mine)))
    );
    let owned = "this file lease is currently owned by DFSClient_test_1 on 127.0.0.1";
    assert_eq!(
        append_as(&mut world, "/f", OTHER),
        Err(FsError::AlreadyBeingCreated(failed("APPEND_FILE", OTHER, owned)))
    );
    assert_eq!(
        truncate_as(&mut world, "/f", OTHER, 3),
        Err(FsError::AlreadyBeingCreated(failed("TRUNCATE_FILE", OTHER, owned)))
    );
    world.moment = Moment::from_ms(60_001);
    let late = "lease recovery is in progress. Try again later.";
    assert_eq!(
        append_as(&mut world, "/f", OTHER),
        Err(FsError::RecoveryInProgress(failed("APPEND_FILE", OTHER, late)))
    );
    let inode = world.ns.files_of(HOLDER)[0];
    let plan = release_lease::plan(&world.ns, &world.context(None), inode, &ALL_FINISHED);
    let release_lease::Plan::Recover(Recovery { edit, block, stamp, .. }) = plan else { panic!("{plan:?}") };
    world.apply(edit);
    let request = commit_block_synchronization::Request {
        block: block.id,
        stamp,
        length: block.length,
        close_file: true,
        delete_block: false,
    };
    world.run(|ns, ctx| commit_block_synchronization::plan(ns, ctx, &request))?;
    assert_eq!(lengths(&world, "/f"), [10]);
    assert!(matches!(append_as(&mut world, "/f", OTHER)?, Planned::Edit(_)));
    world.check_replay();
    Ok(())
}

#[test]
fn truncate_at_the_end_of_a_block_is_done_at_once() -> FsResult<()> {
    let mut world = World::new(0);
    file(&mut world, "/f", &[100, 200, 300]);
    let last = world.last_block("/f").expect("a block");
    world.now.ms += 1_000;
    let truncate::Plan::AtOnce(edit) = truncate_as(&mut world, "/f", HOLDER, 300)? else {
        panic!("nothing to do")
    };
    let time = edit.time;
    let applied = world.apply(edit);
    assert_eq!(applied.reply, Reply::Bool(true));
    assert_eq!(applied.block_changes, [BlockChange::Removed(last)]);
    let status = get_file_info::get(&world.ns, &world.context(None), "/f")?.expect("a file");
    assert_eq!((status.length, status.under_construction, status.modified), (300, false, time));
    // The truncation to 300 bytes is asked for again and changes nothing; one to 0 bytes removes all blocks.
    assert_eq!(truncate_as(&mut world, "/f", HOLDER, 300), Ok(truncate::Plan::NoChange(Reply::Bool(true))));
    assert_eq!(world.truncate("/f", 0), Ok(true));
    assert_eq!(lengths(&world, "/f"), [0; 0]);
    world.check_replay();
    Ok(())
}

#[test]
fn truncate_inside_a_block_is_done_when_the_data_servers_have_cut_it() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[100, 200, 300]);
    assert_eq!(world.truncate("/f", 150), Ok(false));
    let call = world.origin();
    let (block, stamp, cut) = world.ns.truncation_of(inode).expect("it is being truncated");
    assert_eq!((block.length, cut), (200, 50));
    assert!(stamp > block.generation_stamp);
    world.restart_from_image();
    assert_eq!(world.ns.retry_lookup(&call, 42), RetryLookup::Hit(Reply::Bool(false)));
    assert_eq!(world.ns.truncations().collect::<Vec<_>>(), [inode]);
    // "Check if the file is already being truncated with the same length"
    assert_eq!(truncate_as(&mut world, "/f", OTHER, 150), Ok(truncate::Plan::NoChange(Reply::Bool(false))));
    assert_eq!(
        truncate_as(&mut world, "/f", OTHER, 140),
        Err(FsError::AlreadyBeingCreated(
            "Failed to TRUNCATE_FILE /f for DFSClient_test_2 on 127.0.0.1 because /f is being truncated."
                .into()
        ))
    );
    world.renewals = Some(Renewals::new(world.moment));
    assert_eq!(
        append_as(&mut world, "/f", OTHER),
        Err(FsError::RecoveryInProgress(
            "Failed to APPEND_FILE /f for DFSClient_test_2 on 127.0.0.1 because another recovery is in \
             progress by DFSClient_test_1 on 127.0.0.1"
                .into()
        ))
    );
    assert!(matches!(append_as(&mut world, "/f", HOLDER), Err(FsError::AlreadyBeingCreated(_))));
    assert!(!get_file_info::is_closed(&world.ns, &world.context(None), "/f")?);
    world.finish_truncation(inode, 50);
    assert_eq!(lengths(&world, "/f"), [100, 50]);
    assert_eq!(world.last_block("/f").map(|block| block.generation_stamp), Some(stamp));
    assert!(get_file_info::is_closed(&world.ns, &world.context(None), "/f")?);
    world.check_replay();
    Ok(())
}

/// The holder of the lease is the client that truncates, but it has nothing to write.
#[test]
fn nobody_writes_a_file_that_is_being_truncated() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[100]);
    world.truncate("/f", 40)?;
    let last = world.last_block("/f");
    let request = ops::complete::Request { path: "/f".into(), holder: HOLDER.into(), last, inode };
    let refused = world.plan(|ns, ctx| ops::complete::plan(ns, ctx, &request, &ALL_FINISHED));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    let request = ops::add_block::Request { path: "/f".into(), holder: HOLDER.into(), previous: last, inode };
    let refused = world.plan(|ns, ctx| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    let block = last.expect("a block");
    let request =
        ops::update_block_for_pipeline::Request { block, holder: HOLDER.into(), pool: String::new() };
    let refused = world.plan(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    // The length that the data servers agree on may not bring back bytes that were cut off.
    let (_, stamp, _) = world.ns.truncation_of(inode).expect("it is being truncated");
    let request = commit_block_synchronization::Request {
        block: block.id,
        stamp,
        length: 41,
        close_file: true,
        delete_block: false,
    };
    let refused = world.plan(|ns, ctx| commit_block_synchronization::plan(ns, ctx, &request));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    Ok(())
}

#[test]
fn a_truncation_that_led_to_nothing_is_begun_again() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[100]);
    world.truncate("/f", 40)?;
    let (block, first, _) = world.ns.truncation_of(inode).expect("it is being truncated");
    // All its replicas are finished, and that does not make it finished.
    let plan = release_lease::plan(&world.ns, &world.context(None), inode, &ALL_FINISHED);
    let release_lease::Plan::Recover(Recovery { edit, block: again, stamp, truncation, source }) = plan
    else {
        panic!("{plan:?}")
    };
    assert_eq!((again, truncation, source), (block, Some(40), None));
    assert!(stamp > first);
    world.apply(edit);
    world.restart_from_image();
    assert_eq!(world.ns.truncation_of(inode), Some((block, stamp, 40)));
    let late = commit_block_synchronization::Request {
        block: block.id,
        stamp: first,
        length: 40,
        close_file: true,
        delete_block: false,
    };
    let refused = world.plan(|ns, ctx| commit_block_synchronization::plan(ns, ctx, &late));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    world.finish_truncation(inode, 40);
    assert_eq!(lengths(&world, "/f"), [40]);
    world.check_replay();
    Ok(())
}

/// A data server that hears of no replica says that the block has no bytes. The namespace knows better, and a server that
/// is away may have them.
#[test]
fn a_recovery_does_not_delete_a_block_that_had_bytes() -> FsResult<()> {
    let mut world = World::new(0);
    let truncated = file(&mut world, "/truncated", &[100]);
    world.truncate("/truncated", 40)?;
    let (cut, cut_stamp, _) = world.ns.truncation_of(truncated).expect("it is being truncated");
    let appended = file(&mut world, "/appended", &[100]);
    world.append("/appended", false)?;
    let plan = release_lease::plan(&world.ns, &world.context(None), appended, &ALL_FINISHED);
    let release_lease::Plan::Recover(Recovery { edit, block: open, stamp: open_stamp, .. }) = plan else {
        panic!("{plan:?}")
    };
    world.apply(edit);
    for (block, stamp) in [(cut, cut_stamp), (open, open_stamp)] {
        let request = commit_block_synchronization::Request {
            block: block.id,
            stamp,
            length: 0,
            close_file: true,
            delete_block: true,
        };
        let refused = world.plan(|ns, ctx| commit_block_synchronization::plan(ns, ctx, &request));
        assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    }
    assert_eq!((lengths(&world, "/truncated"), lengths(&world, "/appended")), (vec![100], vec![100]));
    Ok(())
}

#[test]
fn truncate_refuses_what_is_no_file_and_no_shorter_length() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    file(&mut world, "/f", &[100]);
    let mut refused = |path: &str, length| truncate_as(&mut world, path, HOLDER, length).unwrap_err();
    assert_eq!(refused("/d", 0), not_found("Path is not a file: /d"));
    assert_eq!(refused("/none", 0), not_found("File does not exist: /none"));
    assert_eq!(
        refused("/f", -1),
        FsError::InvalidArgument("Cannot truncate to a negative file size: -1.".into())
    );
    assert_eq!(
        refused("/f", 101),
        FsError::InvalidArgument(
            "Cannot truncate to a larger file size. Current size: 100, truncate size: 101.".into()
        )
    );
    Ok(())
}

fn concat_of(world: &mut World, target: &str, sources: &[&str]) -> FsResult<Planned<concat::ConcatEdit>> {
    let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
    let request = concat::Request { target: target.into(), sources };
    world.plan(|ns, ctx| concat::plan(ns, ctx, &request))
}

#[test]
fn concat_moves_blocks_in_the_order_of_the_sources() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    let target = file(&mut world, "/d/t", &[100, 20]);
    let one = file(&mut world, "/d/a", &[3, 4]);
    file(&mut world, "/d/b", &[5]);
    world.set_replication("/d/b", 2)?;
    let moved = world.last_block("/d/b").expect("a block").id;
    world.now.ms += 1_000;
    let Planned::Edit(edit) = concat_of(&mut world, "/d/t", &["/d/b", "/d/a"])? else { panic!("no edit") };
    let time = edit.time;
    let applied = world.apply(edit);
    assert_eq!(applied.reply, Reply::Unit);
    assert_eq!(
        applied.block_changes[..2],
        [
            BlockChange::Moved { block: moved, inode: target },
            BlockChange::ReplicationChanged { block: moved, from: 2, to: 3 }
        ]
    );
    assert_eq!(applied.block_changes.len(), 4, "{:?}", applied.block_changes);
    assert_eq!(lengths(&world, "/d/t"), [100, 20, 5, 3, 4]);
    let ctx = world.context(None);
    let status = |path| get_file_info::get(&world.ns, &ctx, path);
    assert_eq!(status("/d/a")?, None);
    assert_eq!(namespace::reads::get_block_locations::by_id(&world.ns, one), None);
    assert_eq!(status("/d")?.map(|found| (found.modified, found.children_count)), Some((time, 1)));
    assert_eq!(status("/d/t")?.map(|found| found.modified), Some(time));
    world.check_replay();
    world.restart_from_image();
    Ok(())
}

#[test]
fn concat_joins_thousands_of_files_in_one_edit() -> FsResult<()> {
    const COUNT: u64 = 5_000;
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    file(&mut world, "/d/t", &[7]);
    file(&mut world, "/d/stays", &[8]);
    // Not in the order of their names.
    let name = |number: u64| format!("/d/{:04}", (number * 7) % COUNT);
    let sources: Vec<String> = (0..COUNT).map(name).collect();
    for (path, length) in sources.iter().zip(1..) {
        file(&mut world, path, &[length]);
    }
    let before = world.ns.counts();
    let paths: Vec<&str> = sources.iter().map(String::as_str).collect();
    let Planned::Edit(edit) = concat_of(&mut world, "/d/t", &paths)? else { panic!("no edit") };

    // A read of any of these paths waits for the commit.
    let mut footprint = Vec::new();
    let edit: Edit = edit.into();
    edit.footprint(&world.ns, &mut footprint);
    let rests = |path: &str| {
        let mut seen = Vec::new();
        !world.ns.seen_on(path, Reach::Itself, &mut seen) || seen.iter().any(|mark| footprint.contains(mark))
    };
    assert!(rests("/d/t") && rests("/d"), "the target and the directory");
    assert!(sources.iter().step_by(50).all(|source| rests(source)) && !rests("/d/stays"));
    assert_eq!(footprint.len() as u64, COUNT + 4, "each name once");

    world.apply(edit);
    let expected: Vec<u64> = std::iter::once(7).chain(1..=COUNT).collect();
    assert_eq!(lengths(&world, "/d/t"), expected);
    let after = world.ns.counts();
    assert_eq!((after.blocks, before.files - after.files), (before.blocks, COUNT));
    assert_eq!(lengths(&world, "/d/stays"), [8]);
    world.check_replay();
    world.restart_from_image();
    assert_eq!(lengths(&world, "/d/t"), expected);
    Ok(())
}

#[test]
fn concat_refuses_as_hdfs_does() -> FsResult<()> {
    let mut world = World::new(0);
    for directory in ["/d", "/e"] {
        world.mkdirs(directory, true)?;
    }
    for path in ["/d/t", "/d/a", "/e/a"] {
        file(&mut world, path, &[10]);
    }
    file(&mut world, "/d/empty", &[]);
    world.create("/d/open", false)?;
    let large = create::Request { block_size: 2 << 20, ..world.create_request("/d/large", HOLDER) };
    world.run(|ns, ctx| create::plan(ns, ctx, &large))?;
    let inode = world.ns.files_of(HOLDER).pop().expect("the file just made");
    let block = world.add_block("/d/large", inode, None);
    world.complete("/d/large", inode, Some(Block { length: 9, ..block }));

    let mut refused = |target: &str, sources: &[&str]| concat_of(&mut world, target, sources).unwrap_err();
    let illegal = |text: &str| FsError::InvalidArgument(text.into());
    assert_eq!(refused("", &["/d/a"]), illegal("Target file name is empty"));
    assert_eq!(refused("/d/t", &[]), illegal("No sources given"));
    assert_eq!(
        refused("/.reserved/.inodes/16387", &["/d/a"]),
        FsError::Io(
            "Concat operation doesn't support .reserved relative path : /.reserved/.inodes/16387".into()
        )
    );
    assert_eq!(refused("/d/none", &["/d/a"]), not_found("File does not exist: /d/none"));
    assert_eq!(refused("/d", &["/d/a"]), not_found("Path is not a file: /d"));
    assert_eq!(refused("/d/open", &["/d/a"]), illegal("concat: target file /d/open is under construction"));
    assert_eq!(refused("/d/t", &["/d/none"]), not_found("File does not exist: /d/none"));
    assert_eq!(
        refused("/d/t", &["/e/a"]),
        illegal("Source file /e/a is not in the same directory with the target /d/t")
    );
    assert_eq!(
        refused("/d/t", &["/d/t"]),
        illegal("concat: the src file /d/t is the same with the target file /d/t")
    );
    for path in ["/d/empty", "/d/open"] {
        assert_eq!(
            refused("/d/t", &["/d/a", path]),
            illegal(&format!("concat: source file {path} is invalid or empty or underConstruction"))
        );
    }
    assert_eq!(
        refused("/d/t", &["/d/large"]),
        illegal(
            "concat: source file /d/large has preferred block size 2097152 which is greater than the target \
             file's preferred block size 1048576"
        )
    );
    assert_eq!(
        refused("/d/t", &["/d/a", "/d/a"]),
        illegal("concat: at least two of the source files are the same")
    );
    assert_eq!(
        refused("/d/t", &vec!["/d/a"; 1_000]),
        illegal("concat: at least two of the source files are the same")
    );
    world.caller = Caller::simple("ann", &[]);
    assert!(matches!(concat_of(&mut world, "/d/t", &["/d/a"]), Err(FsError::AccessDenied(_))));
    Ok(())
}

#[test]
fn an_append_that_is_repeated_is_answered_like_the_first_time() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = file(&mut world, "/f", &[10]);
    world.append("/f", false)?;
    let call = world.origin();
    for _ in 0..2 {
        assert_eq!(world.ns.retry_lookup(&call, 42), RetryLookup::Hit(Reply::Appended(inode)));
        world.restart_from_image();
    }
    Ok(())
}

/// A client name that is longer than an image can hold is refused, and the refusal changes no stamp.
#[test]
fn texts_that_an_image_cannot_hold_are_refused() {
    let mut world = World::new(0);
    file(&mut world, "/f", &[10]);
    let long = "x".repeat(1_025);
    assert!(matches!(append_as(&mut world, "/f", &long), Err(FsError::InvalidArgument(_))));
    assert!(matches!(truncate_as(&mut world, "/f", &long, 1), Err(FsError::InvalidArgument(_))));
    assert_eq!(world.last_block("/f").map(|block| block.generation_stamp), Some(GenerationStamp(1_001)));
}
