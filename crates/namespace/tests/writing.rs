//! HDFS's promises to clients that write files.

mod common;

use base::{Block, BlockId, FsError, FsResult, GenerationStamp, InodeId, Moment};
use common::{ALL_FINISHED, HOLDER, World};
use namespace::{
    BlockChange, BlockFacts, Planned, Renewals, Reply,
    given_facts::GivenFacts,
    ops,
    ops::{
        add_block, complete,
        release_lease::{self, Recovery},
    },
    reads::{get_block_locations, get_file_info, list_open_files::Look},
};

fn with_length(block: Block, length: u64) -> Option<Block> {
    Some(Block { length, ..block })
}

fn try_add(
    world: &mut World,
    inode: InodeId,
    holder: &str,
    previous: Option<Block>,
    facts: &dyn BlockFacts,
) -> FsResult<add_block::Plan> {
    let request = add_block::Request { path: "/f".into(), holder: holder.into(), previous, inode };
    world.plan(|ns, ctx| add_block::plan(ns, ctx, &request, facts))
}

#[test]
fn blocks_ids_and_stamps_begin_where_hdfs_begins() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    assert_eq!(inode, InodeId(16_386));
    let block = world.add_block("/f", inode, None);
    assert_eq!((block.id, block.generation_stamp), (BlockId(1_073_741_825), GenerationStamp(1_001)));
    Ok(())
}

#[test]
fn a_client_that_missed_the_answer_is_given_the_same_block() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let first = world.add_block("/f", inode, None);
    let digest = world.ns.digest();
    let again = try_add(&mut world, inode, HOLDER, None, &ALL_FINISHED)?;
    let reply = Reply::Block { inode, block: first, offset: 0 };
    assert_eq!(again, add_block::Plan::Again(reply));
    let second = world.add_block("/f", inode, with_length(first, 100));
    let again = try_add(&mut world, inode, HOLDER, with_length(first, 100), &ALL_FINISHED)?;
    let reply = Reply::Block { inode, block: second, offset: 100 };
    assert_eq!(again, add_block::Plan::Again(reply));
    assert_ne!(world.ns.digest(), digest);
    Ok(())
}

#[test]
fn a_stranger_or_a_stale_block_gets_no_new_one() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let other = world.create("/g", false)?;
    let first = world.add_block("/f", inode, None);
    let digest = world.ns.digest();
    let stranger = try_add(&mut world, inode, "somebody", None, &ALL_FINISHED);
    assert_eq!(
        stranger,
        Err(FsError::LeaseExpired(format!(
            "Client (=somebody) is not the lease owner (={HOLDER}: /f (inode {inode}) Holder somebody does \
             not have any open files."
        )))
    );
    let stale = Some(World::block(5));
    let refused = try_add(&mut world, inode, HOLDER, stale, &ALL_FINISHED);
    assert!(matches!(refused, Err(FsError::Io(text)) if text.starts_with("Cannot allocate block in /f:")));
    let foreign = try_add(&mut world, other, HOLDER, with_length(first, 9), &ALL_FINISHED);
    assert!(matches!(foreign, Err(FsError::Io(_))));
    let missing = try_add(&mut world, InodeId(99_999), HOLDER, None, &ALL_FINISHED);
    assert!(matches!(missing, Err(FsError::NotFound(text)) if text.starts_with("File does not exist: /f")));
    // A client that has sent -1 is told so.
    let negative = try_add(&mut world, InodeId(u64::MAX), HOLDER, None, &ALL_FINISHED);
    assert!(matches!(negative, Err(FsError::NotFound(text)) if text.contains("/f (inode -1) ")));
    assert_eq!(world.ns.digest(), digest);
    Ok(())
}

#[test]
fn a_third_block_waits_for_the_first() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let first = world.add_block("/f", inode, None);
    let second = world.add_block("/f", inode, with_length(first, 10));
    let refused = try_add(&mut world, inode, HOLDER, with_length(second, 10), &GivenFacts::silence());
    assert_eq!(refused, Err(FsError::NotReplicatedYet("Not replicated yet: /f".into())));
    let facts = GivenFacts::only_finished([first.id], 77);
    let plan = try_add(&mut world, inode, HOLDER, with_length(second, 10), &facts)?;
    assert!(matches!(plan, add_block::Plan::New { .. }));
    Ok(())
}

#[test]
fn a_file_is_closed_once_its_blocks_are_finished() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let block = world.add_block("/f", inode, None);
    let last = with_length(block, 42);
    let request = complete::Request { path: "/f".into(), holder: HOLDER.into(), last, inode };
    let waiting = world.plan(|ns, ctx| complete::plan(ns, ctx, &request, &GivenFacts::silence()))?;
    assert_eq!(Some(waiting), last.map(complete::Plan::Waiting));
    let plan = world.plan(|ns, ctx| complete::plan(ns, ctx, &request, &ALL_FINISHED))?;
    let complete::Plan::Close(edit) = plan else { panic!("{plan:?}") };
    let applied = world.apply(edit);
    let block = Block { length: 42, ..block };
    assert_eq!(applied.block_changes, [BlockChange::Committed { block }, BlockChange::Completed { block }]);
    // A client that missed the answer asks again.
    let again = world.plan(|ns, ctx| complete::plan(ns, ctx, &request, &ALL_FINISHED))?;
    assert_eq!(again, complete::Plan::Already);
    let other = complete::Request { last: Some(World::block(1)), ..request };
    let refused = world.plan(|ns, ctx| complete::plan(ns, ctx, &other, &ALL_FINISHED));
    assert!(matches!(refused, Err(FsError::LeaseExpired(text)) if text.starts_with("File is not open")));
    let ctx = world.context(None);
    assert!(get_file_info::is_closed(&world.ns, &ctx, "/f")?);
    assert_eq!(get_file_info::preferred_block_size(&world.ns, &ctx, "/f")?, 1 << 20);
    Ok(())
}

#[test]
fn a_file_is_written_on_after_it_was_renamed() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    assert_eq!(world.rename("/f", "/g"), Ok(true));
    let block = world.add_block("/f", inode, None);
    world.complete("/f", inode, with_length(block, 1));
    Ok(())
}

#[test]
fn an_abandoned_block_goes_away() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let first = world.add_block("/f", inode, None);
    let second = world.add_block("/f", inode, with_length(first, 10));
    let request = ops::abandon_block::Request {
        path: "/f".into(),
        holder: HOLDER.into(),
        pool: String::new(),
        block: second,
        inode,
    };
    let plan = world.plan(|ns, ctx| ops::abandon_block::plan(ns, ctx, &request))?;
    let Planned::Edit(edit) = plan else { panic!("{plan:?}") };
    assert_eq!(world.apply(edit).block_changes, [BlockChange::Removed(second)]);
    let again = world.run(|ns, ctx| ops::abandon_block::plan(ns, ctx, &request))?;
    assert_eq!(again, Reply::Unit);
    assert_eq!(world.ns.counts().blocks, 1);
    // The client tells again what the last block is.
    let third = world.add_block("/f", inode, with_length(first, 10));
    assert!(third.id > second.id);
    world.check_replay();
    Ok(())
}

#[test]
fn readers_see_the_blocks_of_their_range() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let mut last = None;
    for _ in 0..4 {
        last = with_length(world.add_block("/f", inode, last), 1 << 20);
    }
    let read = |world: &World, offset, length| {
        get_block_locations::get(&world.ns, &world.context(None), "/f", offset, length)
    };
    let open = read(&world, 0, 10 << 20)?;
    assert_eq!((open.length, open.blocks.len()), (3 << 20, 4));
    assert!(open.under_construction && open.last.is_some_and(|last| !last.committed));
    world.complete("/f", inode, last);
    let range = read(&world, 1 << 20, 1)?;
    assert_eq!((range.length, range.blocks.len(), range.blocks[0].offset), (4 << 20, 1, 1 << 20));
    assert_eq!(range.last.map(|block| block.offset), Some(3 << 20));
    assert_eq!(read(&world, 9 << 20, 1)?.blocks, []);
    assert_eq!(read(&world, i64::MAX as u64, i64::MAX as u64)?.blocks, []);
    let missing = get_block_locations::get(&world.ns, &world.context(None), "/nope", 0, 1);
    assert_eq!(missing, Err(FsError::NotFound("File does not exist: /nope".into())));
    assert!(!range.wants_access_time);
    world.now.ms += 3_600_001;
    assert!(read(&world, 0, 1)?.wants_access_time);
    let plan = ops::set_times::plan_access(&world.ns, &world.context(None), inode);
    let Planned::Edit(edit) = plan else { panic!("{plan:?}") };
    world.apply(edit);
    assert!(!read(&world, 0, 1)?.wants_access_time);
    Ok(())
}

#[test]
fn a_broken_pipeline_goes_on_under_a_new_stamp() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    let block = world.add_block("/f", inode, None);
    let request =
        ops::update_block_for_pipeline::Request { block, holder: HOLDER.into(), pool: String::new() };
    let reply = world.run(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request))?;
    let Reply::Block { block: new, .. } = reply else { panic!("{reply:?}") };
    assert!(new.generation_stamp > block.generation_stamp);
    let update = |new| ops::update_pipeline::Request { holder: HOLDER.into(), old: block, new };
    let good = update(Block { length: 512, ..new });
    let invented = update(Block { generation_stamp: GenerationStamp(1 << 40), ..new });
    let refused = world.run(|ns, ctx| ops::update_pipeline::plan(ns, ctx, &invented));
    assert!(matches!(refused, Err(FsError::Io(_))));
    assert_eq!(world.run(|ns, ctx| ops::update_pipeline::plan(ns, ctx, &good))?, Reply::Unit);
    let again = world.run(|ns, ctx| ops::update_pipeline::plan(ns, ctx, &good));
    assert!(matches!(again, Err(FsError::Io(_))));
    world.complete("/f", inode, with_length(new, 600));
    assert_eq!(world.last_block("/f"), with_length(new, 600));
    world.check_replay();

    // HDFS: "blk_1_2 does not exist", or "… is COMPLETE but not UNDER_CONSTRUCTION".
    let finished = world.run(|ns, ctx| ops::update_block_for_pipeline::plan(ns, ctx, &request));
    let Err(FsError::Io(message)) = finished else { panic!("{finished:?}") };
    assert!(message.contains("does not exist") && message.contains("not UNDER_CONSTRUCTION"), "{message}");
    Ok(())
}

#[test]
fn a_flushed_length_is_remembered() -> FsResult<()> {
    let mut world = World::new(0);
    let inode = world.create("/f", false)?;
    world.add_block("/f", inode, None);
    let request = |last_block_length| ops::fsync::Request {
        path: "/f".into(),
        holder: HOLDER.into(),
        last_block_length,
        inode,
    };
    for length in [700, 600, -1] {
        world.run(|ns, ctx| ops::fsync::plan(ns, ctx, &request(length)))?;
    }
    let status = get_file_info::get(&world.ns, &world.context(None), "/f")?;
    assert_eq!(status.map(|status| status.length), Some(700));
    world.restart_from_image();
    Ok(())
}

#[test]
fn a_second_writer_is_turned_away_until_the_first_is_silent() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/f", false)?;
    let attempt = |world: &mut World, holder: &str| {
        let request = world.create_request("/f", holder);
        world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))
    };
    let same = attempt(&mut world, HOLDER);
    assert_eq!(
        same,
        Err(FsError::AlreadyBeingCreated(format!(
            "Failed to CREATE_FILE /f for {HOLDER} on 127.0.0.1 because {HOLDER} is already the current \
             lease holder."
        )))
    );
    world.renewals = Some(Renewals::new(Moment::default()));
    world.moment = Moment::from_ms(59_000);
    assert!(matches!(attempt(&mut world, "other"), Err(FsError::AlreadyBeingCreated(_))));
    world.moment = Moment::from_ms(61_000);
    assert!(matches!(attempt(&mut world, "other"), Err(FsError::RecoveryInProgress(_))));
    Ok(())
}

#[test]
fn a_silent_writer_loses_its_files() -> FsResult<()> {
    let mut world = World::new(0);
    let empty = world.create("/empty", false)?;
    let unwritten = world.create("/unwritten", false)?;
    world.add_block("/unwritten", unwritten, None);
    let finished = world.create("/finished", false)?;
    let block = world.add_block("/finished", finished, None);
    let partial = world.create("/partial", false)?;
    let torn = world.add_block("/partial", partial, None);
    let mut renewals = Renewals::new(Moment::default());
    renewals.renew("another", Moment::from_ms(1));
    assert!(renewals.take_hard_expired(&world.ns, Moment::from_ms(1_200_000)).is_empty());
    let expired = renewals.take_hard_expired(&world.ns, Moment::from_ms(1_200_001));
    assert_eq!(expired.iter().map(|holder| &**holder).collect::<Vec<_>>(), [HOLDER]);
    assert_eq!(world.ns.files_of(HOLDER), [empty, unwritten, finished, partial]);
    let located = GivenFacts::only_finished([block.id], 77);
    let nowhere = GivenFacts::nowhere();
    let facts: [(InodeId, &dyn BlockFacts); 3] =
        [(empty, &nowhere), (unwritten, &nowhere), (finished, &located)];
    for (inode, facts) in facts {
        let plan = release_lease::plan(&world.ns, &world.context(None), inode, facts);
        let release_lease::Plan::Close(edit) = plan else { panic!("{plan:?}") };
        world.apply(edit);
    }
    assert_eq!(world.ns.files_of(HOLDER), [partial]);
    assert_eq!(world.last_block("/unwritten"), None);
    assert_eq!(world.last_block("/finished"), with_length(block, 77));
    // Some server has a part of it: the servers must agree first.
    let plan = release_lease::plan(&world.ns, &world.context(None), partial, &located);
    let release_lease::Plan::Recover(Recovery { edit, stamp, .. }) = plan else { panic!("{plan:?}") };
    world.apply(edit);
    assert!(world.ns.files_of(HOLDER).is_empty());
    let mut request = ops::commit_block_synchronization::Request {
        block: torn.id,
        stamp: GenerationStamp(5),
        length: 33,
        close_file: true,
        delete_block: false,
    };
    let refused = world.run(|ns, ctx| ops::commit_block_synchronization::plan(ns, ctx, &request));
    assert!(matches!(refused, Err(FsError::Io(_))));
    request.stamp = stamp;
    world.restart_from_image();
    world.run(|ns, ctx| ops::commit_block_synchronization::plan(ns, ctx, &request))?;
    let recovered = Block { length: 33, generation_stamp: stamp, ..torn };
    assert_eq!(world.last_block("/partial"), Some(recovered));
    assert_eq!(world.ns.leases().count(), 0);
    world.check_replay();
    Ok(())
}

/// The journal says which client holds which file, and not when that client was last heard of. So after a start each
/// writer has its full time again.
#[test]
fn a_start_gives_every_writer_its_time_again() -> FsResult<()> {
    let minutes = |count: u64| Moment::from_ms(count * 60_000);
    let mut world = World::new(0);
    world.create("/f", false)?;
    // Both limits are nearly over when the server ends, and when the next one does; the last one goes on.
    for (start, end) in [(0, 19), (20, 39), (40, 60)] {
        world.restart_from_image();
        let mut renewals = Renewals::new(minutes(start));
        assert!(!renewals.is_soft_expired(HOLDER, minutes(start + 1)));
        assert!(renewals.is_soft_expired(HOLDER, minutes(start + 1).plus_ms(1)));
        assert!(renewals.take_hard_expired(&world.ns, minutes(end)).is_empty());
    }
    let mut renewals = Renewals::new(minutes(40));
    let expired = renewals.take_hard_expired(&world.ns, minutes(60).plus_ms(1));
    assert_eq!(expired.iter().map(|holder| &**holder).collect::<Vec<_>>(), [HOLDER]);
    Ok(())
}

#[test]
fn open_files_of_many_holders_are_listed_in_steps() -> FsResult<()> {
    let mut world = World::new(0);
    let mut expected = Vec::new();
    for number in 0..60 {
        let holder = format!("DFSClient_{}", number * 7 % 20);
        let request = world.create_request("", &holder);
        let request = ops::create::Request { path: format!("/f{number}"), ..request };
        let Reply::Created(inode) = world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))? else {
            panic!("it is new")
        };
        expected.push(inode);
    }
    let mut look = Look::new(InodeId(0), "/", 100);
    let mut steps = 0;
    let page = loop {
        steps += 1;
        if let Some(page) = look.step(&world.ns, 10) {
            break page;
        }
    };
    assert_eq!(page.files.iter().map(|file| file.inode).collect::<Vec<_>>(), expected);
    assert!(steps >= 12, "80 holders and files, and 60 paths, took {steps} steps");
    Ok(())
}

#[test]
fn open_files_are_listed_a_page_at_a_time_below_a_path() -> FsResult<()> {
    let mut world = World::new(0);
    world.mkdirs("/d", true)?;
    for path in ["/d/b", "/d/a", "/dd"] {
        world.create(path, false)?;
    }
    let list = |world: &World, after, path: &str, limit| {
        let page = namespace::reads::list_open_files::list(&world.ns, InodeId(after), path, limit);
        assert!(page.files.iter().all(|file| file.holder == HOLDER));
        // It is the same however often others have their turn.
        for step in [1, 2, 3] {
            let mut look = Look::new(InodeId(after), path, limit);
            let stepped = std::iter::repeat_with(|| look.step(&world.ns, step)).find_map(|page| page);
            assert_eq!(stepped.as_ref(), Some(&page));
        }
        let last = page.files.last().map_or(0, |file| file.inode.0);
        (page.files.into_iter().map(|file| file.path).collect::<Vec<_>>(), page.has_more, last)
    };
    // In order of their ids, which is that of their creation.
    assert_eq!(list(&world, 0, "/", 10).0, ["/d/b", "/d/a", "/dd"]);
    assert_eq!(list(&world, 0, "/d", 10).0, ["/d/b", "/d/a"], "/dd is not below /d");
    assert_eq!(list(&world, 0, "/d/a", 10).0, ["/d/a"]);
    assert_eq!(list(&world, 0, "/nowhere", 10).0, [""; 0]);
    let (files, has_more, last) = list(&world, 0, "/", 2);
    assert_eq!((files, has_more), (vec!["/d/b".to_owned(), "/d/a".into()], true));
    let (files, has_more, _) = list(&world, last, "/", 2);
    assert_eq!((files, has_more), (vec!["/dd".to_owned()], false));
    Ok(())
}
