//! Requests that take more than one step, or whose step is more than an edit.

mod common;

use base::{Block, FsError, FsResult, InodeId, Moment};
use common::{ALL_FINISHED, HOLDER, World};
use namespace::{
    BlockFacts, Edit, Plannable, Renewals, Reply, Request, Step,
    given_facts::GivenFacts,
    ops::{add_block, append, complete, recover_lease, release_lease::Recovery, set_quota, truncate},
    renewals::SOFT_LIMIT_MS,
};

const OTHER: &str = "DFSClient_other_2";

fn next(world: &mut World, request: &Request, facts: &dyn BlockFacts) -> FsResult<Step> {
    world.plan(|ns, ctx| request.plan(ns, ctx, facts))
}

fn create(world: &World) -> Request {
    world.create_request("/f", OTHER).into()
}

fn append() -> Request {
    let (path, holder, client_machine) = ("/f".into(), OTHER.into(), "127.0.0.1".into());
    append::Request { path, holder, client_machine, new_block: false }.into()
}

fn truncate(holder: &str, length: i64) -> Request {
    let (path, holder, client_machine) = ("/f".into(), holder.into(), "127.0.0.1".into());
    truncate::Request { path, length, holder, client_machine }.into()
}

fn recover_lease() -> Request {
    recover_lease::Request { path: "/f".into(), holder: OTHER.into() }.into()
}

fn complete(inode: InodeId, last: Option<Block>) -> Request {
    complete::Request { path: "/f".into(), holder: HOLDER.into(), last, inode }.into()
}

fn add_block(inode: InodeId, previous: Option<Block>) -> Request {
    add_block::Request { path: "/f".into(), holder: HOLDER.into(), previous, inode }.into()
}

/// A file with one block that its writer has not finished.
fn open_file() -> (World, InodeId, Block) {
    let mut world = World::new(0);
    world.renewals = Some(Renewals::new(world.moment));
    let inode = world.create("/f", false).expect("a file");
    let block = world.add_block("/f", inode, None);
    (world, inode, block)
}

/// As long as a client is waited for, and a moment longer.
fn time_passes(world: &mut World) {
    world.moment = Moment::from_ms(SOFT_LIMIT_MS + 1);
}

/// The edit by which the file of a silent writer is closed before anything else. It answers no call.
fn first(step: FsResult<Step>) -> Edit {
    match step {
        Ok(Step::First(edit)) => {
            assert_eq!(edit.origin, None);
            edit
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_of_a_silent_writer_is_closed_before_another_client_appends() {
    let (mut world, inode, block) = open_file();
    let facts = GivenFacts::only_finished([block.id], 77);
    let refused = next(&mut world, &append(), &facts);
    assert!(matches!(refused, Err(FsError::AlreadyBeingCreated(_))), "{refused:?}");
    time_passes(&mut world);
    let edit = first(next(&mut world, &append(), &facts));
    world.apply(edit);
    assert_eq!(world.last_block("/f"), Some(Block { length: 77, ..block }));
    match next(&mut world, &append(), &facts) {
        Ok(Step::Edit(edit)) => assert_eq!(world.apply(edit).reply, Reply::Appended(inode)),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.ns.files_of(OTHER), [inode]);
    world.check_replay();
}

#[test]
fn a_file_of_a_silent_writer_is_in_the_way_as_any_other_once_it_is_closed() {
    let (mut world, _, block) = open_file();
    let facts = GivenFacts::only_finished([block.id], 77);
    time_passes(&mut world);
    let request = create(&world);
    let edit = first(next(&mut world, &request, &facts));
    world.apply(edit);
    let refused = next(&mut world, &request, &facts);
    assert!(matches!(refused, Err(FsError::AlreadyExists(_))), "{refused:?}");
}

/// A user who may write into the directory may have a lease released, whatever the permission of the file.
#[test]
fn a_file_is_closed_for_one_who_may_not_write_it() {
    let (mut world, _, block) = open_file();
    world.set_permission("/", 0o777).expect("the superuser may");
    world.set_permission("/f", 0o600).expect("the superuser may");
    world.caller = base::Caller::simple("ann", &[]);
    time_passes(&mut world);
    let request = create(&world);
    let facts = GivenFacts::only_finished([block.id], 77);
    first(next(&mut world, &request, &facts));
    let refused = next(&mut world, &recover_lease(), &facts);
    assert!(matches!(refused, Err(FsError::AccessDenied(_))), "{refused:?}");
}

#[test]
fn a_block_of_a_silent_writer_is_recovered_first_and_the_client_is_refused_meanwhile() {
    let (mut world, inode, torn) = open_file();
    time_passes(&mut world);
    for request in [create(&world), append(), truncate(OTHER, 1)] {
        let step = next(&mut world, &request, &GivenFacts::silence());
        let Ok(Step::Recover(Recovery { edit, block, .. }, refusal)) = step else { panic!("{step:?}") };
        assert!(matches!(refusal, Err(FsError::RecoveryInProgress(_))), "{refusal:?}");
        assert_eq!((edit.origin, block), (None, torn));
    }
    let step = next(&mut world, &append(), &GivenFacts::silence());
    let Ok(Step::Recover(recovery, _)) = step else { panic!("{step:?}") };
    world.apply(recovery.edit);
    assert_eq!(world.ns.files_of(HOLDER), []);
    // It may have led to nothing: who asks again has it begun anew, unless it is under way.
    let step = next(&mut world, &append(), &GivenFacts::silence());
    let Ok(Step::Recover(again, Err(FsError::RecoveryInProgress(_)))) = step else { panic!("{step:?}") };
    assert!(again.stamp > recovery.stamp);
    assert_eq!(world.ns.file_of_open_block(torn.id), Some(inode));
}

/// Replicas of a finished block are still to be reported, so that nothing can be done for the client that asks.
#[test]
fn a_file_that_waits_for_reports_is_not_taken_from_its_silent_writer() {
    let (mut world, inode, block) = open_file();
    let last = Some(Block { length: 9, ..block });
    world.add_block("/f", inode, last);
    time_passes(&mut world);
    let refused = next(&mut world, &append(), &GivenFacts::silence());
    assert!(matches!(refused, Err(FsError::RecoveryInProgress(_))), "{refused:?}");
    let asked = next(&mut world, &recover_lease(), &GivenFacts::silence());
    assert_eq!(asked, Ok(Step::NoChange(Reply::Bool(false))));
}

#[test]
fn a_client_that_has_a_lease_recovered_is_told_whether_the_file_is_closed() {
    let (mut world, _, block) = open_file();
    let step = next(&mut world, &recover_lease(), &GivenFacts::silence());
    assert!(matches!(step, Ok(Step::Recover(_, Ok(Reply::Bool(false))))), "{step:?}");
    match next(&mut world, &recover_lease(), &GivenFacts::only_finished([block.id], 77)) {
        Ok(Step::Edit(edit)) => assert_eq!(world.apply(edit).reply, Reply::Bool(true)),
        other => panic!("{other:?}"),
    }
    let step = next(&mut world, &recover_lease(), &ALL_FINISHED);
    assert_eq!(step, Ok(Step::NoChange(Reply::Bool(true))));
}

#[test]
fn a_new_block_says_what_its_file_wants() {
    let (mut world, inode, block) = open_file();
    let last = Some(Block { length: 9, ..block });
    match next(&mut world, &add_block(inode, last), &ALL_FINISHED) {
        Ok(Step::Allocate(edit, wanted)) => {
            let block_size = 1 << 20;
            assert_eq!(wanted, add_block::NewBlock { inode, replication: 3, block_size });
            world.apply(edit);
        }
        other => panic!("{other:?}"),
    }
    // One edit commits the block before it, and adds the next.
    let blocks = namespace::reads::get_block_locations::by_id(&world.ns, inode).expect("a file").blocks;
    assert_eq!(blocks.iter().map(|block| block.block.length).collect::<Vec<_>>(), [9, 0]);
    assert!(matches!(
        next(&mut world, &add_block(inode, last), &ALL_FINISHED),
        Ok(Step::NoChange(Reply::Block { .. }))
    ));
}

#[test]
fn a_quota_refuses_a_block_and_the_length_before_it_is_kept() {
    let (mut world, inode, block) = open_file();
    world.set_quota("/", set_quota::KEEP, 3 << 20).expect("the superuser may");
    let request = add_block(inode, Some(Block { length: 9, ..block }));
    let step = next(&mut world, &request, &ALL_FINISHED);
    let Ok(Step::Refused(edit, FsError::SpaceQuotaExceeded(_))) = step else { panic!("{step:?}") };
    world.apply(edit);
    assert_eq!(world.last_block("/f"), Some(Block { length: 9, ..block }));
    // The second time nothing is news.
    let refused = next(&mut world, &request, &ALL_FINISHED);
    assert!(matches!(refused, Err(FsError::SpaceQuotaExceeded(_))), "{refused:?}");
}

#[test]
fn a_writer_that_closes_its_file_waits_for_the_reports() {
    let (mut world, inode, block) = open_file();
    let last = Block { length: 42, ..block };
    let request = complete(inode, Some(last));
    assert_eq!(next(&mut world, &request, &GivenFacts::silence()), Ok(Step::Wait(last)));
    match next(&mut world, &request, &ALL_FINISHED) {
        Ok(Step::Edit(edit)) => assert_eq!(world.apply(edit).reply, Reply::Bool(true)),
        other => panic!("{other:?}"),
    }
    assert_eq!(next(&mut world, &request, &GivenFacts::silence()), Ok(Step::NoChange(Reply::Bool(true))));
}

#[test]
fn data_servers_cut_a_block_only_where_a_length_lies_inside_of_it() {
    let (mut world, inode, block) = open_file();
    world.complete("/f", inode, Some(Block { length: 100, ..block }));
    let step = next(&mut world, &truncate(OTHER, 40), &ALL_FINISHED);
    let Ok(Step::Cut(_, cutting)) = step else { panic!("{step:?}") };
    assert_eq!((cutting.inode, &*cutting.holder), (inode, OTHER));
    let step = next(&mut world, &truncate(OTHER, 0), &ALL_FINISHED);
    assert!(matches!(step, Ok(Step::Edit(_))), "{step:?}");
    let step = next(&mut world, &truncate(OTHER, 100), &ALL_FINISHED);
    assert_eq!(step, Ok(Step::NoChange(Reply::Bool(true))));
}
