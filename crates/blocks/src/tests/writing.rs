//! A block from its allocation to its removal.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, GenerationStamp, InodeId};

fn allocate(cluster: &mut Cluster, id: u64) -> Vec<Location> {
    let placement = Placement { replication: 3, block_size: 1 << 20, ..Placement::default() };
    let targets = cluster.map.choose_targets(&placement, cluster.now);
    let state = BlockState::UnderConstruction;
    cluster.map.add_block(block(id, 0), InodeId(16_386), 3, state, &targets, cluster.now);
    targets
}

#[test]
fn a_block_is_read_from_its_pipeline_while_it_is_written() {
    let mut cluster = Cluster::with_servers(config(), 3);
    assert_eq!(allocate(&mut cluster, 1).len(), 3);
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    let facts = cluster.map.facts(BlockId(1)).unwrap();
    assert_eq!((facts.live, facts.state, facts.inode), (0, BlockState::UnderConstruction, InodeId(16_386)));
}

#[test]
fn the_first_report_wakes_whoever_waits_to_close_the_file() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    cluster.tell(2, &[Increment::Receiving(block(1, 0))]);
    assert!(cluster.map.take_events().is_empty());
    cluster.tell(2, &[received(block(1, 77))]);
    assert_eq!(cluster.map.take_events().newly_safe, [BlockId(1)]);
    let facts = cluster.map.facts(BlockId(1)).unwrap();
    assert_eq!((facts.finalized_as(block(1, 77)), facts.finalized_as(block(1, 78))), (1, 0));
    cluster.map.commit(block(1, 77), cluster.now);
    let facts = cluster.map.facts(BlockId(1)).unwrap();
    assert_eq!((facts.state, facts.live, facts.finalized_as(block(1, 77))), (BlockState::Complete, 1, 1));
    cluster.check();
}

#[test]
fn a_committed_block_is_complete_once_reported() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    cluster.map.commit(block(1, 77), cluster.now);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().state, BlockState::Committed);
    cluster.tell(1, &[received(block(1, 77))]);
    assert_eq!(cluster.map.take_events().newly_safe, [BlockId(1)]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().state, BlockState::Complete);
}

#[test]
fn nobody_copies_a_block_whose_pipeline_has_just_finished() {
    let mut cluster = Cluster::with_servers(config(), 4);
    allocate(&mut cluster, 1);
    let first: u16 = cluster.holders(1)[0];
    cluster.tell(first, &[received(block(1, 77))]);
    cluster.map.commit(block(1, 77), cluster.now);
    assert_eq!(cluster.map.stats().under_replicated, 0);
    assert!(transfers(&cluster.pass(1_000, &[1, 2, 3, 4])).is_empty());
}

#[test]
fn a_replica_of_another_length_is_damaged_at_commit() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    cluster.tell(1, &[received(block(1, 70))]);
    cluster.tell(2, &[received(block(1, 77))]);
    cluster.map.commit(block(1, 77), cluster.now);
    cluster.check();
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 1);
    assert_eq!(cluster.holders(1), [2]);
    assert_eq!(cluster.map.stats().corrupt, 1);
}

#[test]
fn a_new_pipeline_leaves_older_replicas_behind() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    let newer = Block { generation_stamp: GenerationStamp(1002), ..block(1, 50) };
    cluster.map.set_last_allocated(BlockId(1), newer.generation_stamp);
    // A server finalizes the new one before the namespace tells of it.
    cluster.tell(1, &[received(newer)]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 0);
    let targets = [cluster.place(1), cluster.place(2)];
    cluster.map.set_pipeline(Block { length: 0, ..newer }, &targets);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 1);
    assert_eq!(cluster.holders(1), [1, 2]);
    cluster.tell(3, &[received(block(1, 50))]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 1, "the old stamp does not count");
    cluster.map.commit(newer, cluster.now);
    cluster.check();
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().state, BlockState::Complete);
}

#[test]
fn the_servers_of_an_abandoned_block_are_told_in_turn_to_recover_it() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    let mut leaders = Vec::new();
    for stamp in 2001..2005 {
        assert!(cluster.map.recover(BlockId(1), GenerationStamp(stamp), None, None));
        let commands = cluster.pass(100, &[1, 2, 3]);
        let [(leader, Command::Recover(recoveries))] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!((recoveries[0].block, recoveries[0].stamp), (block(1, 0), GenerationStamp(stamp)));
        assert_eq!(recoveries[0].places.len(), 3);
        leaders.push(*leader);
    }
    leaders[..3].sort_unstable();
    assert_eq!(leaders[..3], [1, 2, 3], "each once before any twice");

    let agreed = Block { generation_stamp: GenerationStamp(2004), ..block(1, 9) };
    cluster.tell(2, &[received(agreed)]);
    cluster.map.set_pipeline(agreed, &[cluster.place(2)]);
    cluster.map.commit(agreed, cluster.now);
    cluster.check();
    let facts = cluster.map.facts(BlockId(1)).unwrap();
    assert_eq!((facts.state, facts.live), (BlockState::Complete, 1));
    assert!(!cluster.map.recover(BlockId(1), GenerationStamp(2006), None, None));
    assert!(!cluster.map.recover(BlockId(9), GenerationStamp(2006), None, None));
}

/// HDFS's `addReplicaIfNotPresent`: a data server may choose another of its storages than the one it was given. A
/// recovery that names it twice asks it twice, and it refuses the second time.
#[test]
fn a_server_that_writes_to_another_of_its_storages_is_named_once() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    cluster
        .speak(2, |map, id, now| {
            map.incremental_report(
                id,
                "another",
                StorageType::Disk,
                &[Increment::Receiving(block(1, 0))],
                now,
            )
        })
        .unwrap();
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(2001), None, None));
    let commands = cluster.pass(100, &[1, 2, 3]);
    let [(_, Command::Recover(recoveries))] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(recoveries[0].places.len(), 3);
    assert!(recoveries[0].places.iter().any(|at| &*at.storage == "another"), "what it has said counts");
}

#[test]
fn a_recovery_under_way_is_not_begun_again() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    let begin = |cluster: &mut Cluster| cluster.map.begin_recovery(BlockId(1), None, cluster.now);
    assert!(begin(&mut cluster));
    assert!(!begin(&mut cluster));
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(2001), None, None));
    // Nobody fetched the order: it is given anew soon.
    cluster.now = cluster.now.plus_ms(500);
    assert!(begin(&mut cluster));
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(2002), None, None));
    let [(leader, Command::Recover(_))] = cluster.pass(100, &[1, 2, 3])[..] else { panic!("not ordered") };
    // It was fetched, and has its time.
    cluster.pass(2_000, &[1, 2, 3]);
    assert!(!begin(&mut cluster));
    cluster.speak(leader, |map, id, _| map.give_up_server(id)).unwrap();
    assert!(begin(&mut cluster), "its leader is lost");
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(2003), None, None));

    // The length that the other servers have agreed on is known before they report it.
    let agreed = Block { generation_stamp: GenerationStamp(2003), ..block(1, 9) };
    let others: Vec<u16> = [1, 2, 3].into_iter().filter(|server| *server != leader).collect();
    let places: Vec<Location> = others.iter().map(|server| cluster.place(*server)).collect();
    cluster.map.set_pipeline(agreed, &places);
    cluster.map.commit(agreed, cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    cluster.map.recovered(agreed, &places, cluster.now);
    cluster.check();
    assert_eq!(cluster.holders(1), others);
    assert!(!begin(&mut cluster));
}

#[test]
fn a_block_whose_servers_are_all_lost_is_not_taken_for_one_never_written() {
    let mut cluster = Cluster::with_servers(config(), 3);
    allocate(&mut cluster, 1);
    for server in 1..=3 {
        cluster.speak(server, |map, id, _| map.give_up_server(id)).unwrap();
    }
    assert!(cluster.map.was_placed(BlockId(1)));
    assert!(!cluster.map.begin_recovery(BlockId(1), None, cluster.now), "nobody could be told");
    cluster.map.add_block(block(2, 0), InodeId(16_386), 3, BlockState::UnderConstruction, &[], cluster.now);
    assert!(!cluster.map.was_placed(BlockId(2)));
}

#[test]
fn an_appended_block_is_written_where_it_is() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.reopen(block(1, 50), &[]);
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 50)), 3);
    let newer = Block { generation_stamp: GenerationStamp(1002), ..block(1, 60) };
    cluster.map.set_pipeline(newer, &[cluster.place(1), cluster.place(2)]);
    cluster.tell(1, &[received(newer)]);
    cluster.map.commit(newer, cluster.now);
    cluster.check();
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 1);
}

/// A file is closed as soon as one server has reported its last block. A writer that goes on at once must not be sent to the others for a copy: they
/// have the block, and refuse it.
#[test]
fn an_append_right_after_the_close_goes_through_the_whole_pipeline() {
    let mut cluster = Cluster::with_servers(config(), 4);
    let targets: Vec<_> = [1, 2, 3].map(|server| cluster.place(server)).into();
    cluster.map.add_block(block(1, 0), InodeId(1), 3, BlockState::UnderConstruction, &targets, cluster.now);
    cluster.tell(1, &[received(block(1, 50))]);
    cluster.map.commit(block(1, 50), cluster.now);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().live, 1, "the file can be closed");
    cluster.map.reopen(block(1, 50), &[]);
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    assert_eq!(
        cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 50)),
        1,
        "only one has told of it"
    );
    // The second tells of it late, and the third has died meanwhile.
    cluster.tell(2, &[received(block(1, 50))]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 50)), 2);
    cluster.pass(40_000, &[1, 2, 4]);
    assert_eq!(cluster.holders(1), [1, 2]);
    cluster.map.commit(block(1, 50), cluster.now);
    cluster.check();
    assert_eq!(transfers(&cluster.pass(2_000, &[1, 2, 4])).len(), 1, "the third replica is made anew");
}

/// A truncation right after the close has all servers of the pipeline take part.
#[test]
fn a_truncation_right_after_the_close_takes_the_whole_pipeline_along() {
    let mut cluster = Cluster::with_servers(config(), 3);
    let targets: Vec<_> = [1, 2, 3].map(|server| cluster.place(server)).into();
    cluster.map.add_block(block(1, 0), InodeId(1), 3, BlockState::UnderConstruction, &targets, cluster.now);
    cluster.tell(1, &[received(block(1, 50))]);
    cluster.map.commit(block(1, 50), cluster.now);
    cluster.map.reopen(block(1, 20), &[]);
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(1002), Some(20), None));
    let commands = cluster.pass(1_000, &[1, 2, 3]);
    let told = commands.iter().find_map(|(_, command)| match command {
        Command::Recover(orders) => Some(orders[0].places.len()),
        _ => None,
    });
    assert_eq!(told, Some(3), "{commands:?}");
}

/// Clients that append without asking for a new stamp: only the length tells what was there before.
#[test]
fn an_appended_block_may_keep_its_stamp() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.reopen(block(1, 50), &[]);
    for server in [1, 2] {
        cluster.tell(server, &[Increment::Receiving(block(1, 0))]);
    }
    assert_eq!(cluster.holders(1), [1, 2, 3], "it is read from its pipeline");
    cluster.tell(1, &[received(block(1, 60))]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 60)), 1);
    cluster.map.commit(block(1, 60), cluster.now);
    cluster.check();
    let stats = cluster.map.stats();
    assert_eq!((cluster.holders(1), stats.corrupt, stats.under_replicated), (vec![1], 0, 0));
    cluster.tell(2, &[received(block(1, 60))]);
    assert!(transfers(&cluster.pass(1_000, &[1, 2, 3, 4])).is_empty(), "the third is awaited");
    cluster.tell(3, &[received(block(1, 60))]);
    assert_eq!(cluster.holders(1), [1, 2, 3]);
}

#[test]
fn a_replica_that_missed_an_append_is_told_by_its_length() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.reopen(block(1, 50), &[]);
    for server in [1, 2] {
        cluster.tell(server, &[Increment::Receiving(block(1, 0)), received(block(1, 60))]);
    }
    cluster.map.commit(block(1, 60), cluster.now);
    assert_eq!(cluster.holders(1), [1, 2], "the third may have it or not");
    assert_eq!(cluster.report(3, &[finalized(block(1, 50))]).corrupt, 1);
    assert_eq!(cluster.holders(1), [1, 2]);
}

/// Reports of finished replicas from before count no more once somebody appends to the block under the same stamp.
#[test]
fn a_block_that_is_written_on_is_not_complete_as_it_was() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.reopen(block(1, 50), &[]);
    let finished = |cluster: &Cluster| cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 50));
    assert_eq!(finished(&cluster), 3, "its writer may close it without having written");
    cluster.tell(1, &[Increment::Receiving(block(1, 0))]);
    assert_eq!((finished(&cluster), cluster.holders(1)), (0, vec![1, 2, 3]));
    // Its pipeline could not be set up, and the server took back what it had begun.
    cluster.tell(1, &[received(block(1, 50))]);
    assert_eq!(finished(&cluster), 1);
}

#[test]
fn an_appended_block_keeps_the_replicas_that_were_to_go() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.map.stats().pending_deletions, 2);
    cluster.map.reopen(block(1, 50), &[]);
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    assert!(deletions(&cluster.pass(100, &[1, 2, 3])).is_empty());
}

#[test]
fn an_appended_block_does_without_the_replicas_that_are_being_deleted() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(deletions(&cluster.pass(100, &[1, 2, 3])).len(), 2);
    cluster.map.reopen(block(1, 50), &[]);
    cluster.check();
    let located = cluster.map.locations(BlockId(1), Reader { host: None }, 0, cluster.now).unwrap();
    assert_eq!(located.locations.len(), 1, "those who were told to delete theirs are no place to write on");
}

#[test]
fn a_block_that_is_cut_has_its_new_length_with_its_new_stamp() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.reopen(block(1, 50), &[]);
    assert!(cluster.map.begin_recovery(BlockId(1), None, cluster.now));
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(2001), Some(7), None));
    let commands = cluster.pass(100, &[1, 2, 3]);
    let [(_, Command::Recover(recoveries))] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(
        (recoveries[0].block, recoveries[0].truncation),
        (block(1, 50), Some(Block { generation_stamp: GenerationStamp(2001), ..block(1, 7) }))
    );
    assert_eq!(recoveries[0].places.len(), 3);
    let cut = Block { generation_stamp: GenerationStamp(2001), ..block(1, 7) };
    let places: Vec<Location> = [1, 2].map(|server| cluster.place(server)).into();
    cluster.map.set_pipeline(cut, &places);
    cluster.map.commit(cut, cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    cluster.map.recovered(cut, &places, cluster.now);
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 2]);
    // The third was away meanwhile: what it has is of yesterday.
    assert_eq!(cluster.report(3, &[finalized(block(1, 50))]).corrupt, 1);
}

#[test]
fn a_block_moves_to_another_file() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.set_inode(BlockId(1), InodeId(17_000));
    cluster.map.set_inode(BlockId(99), InodeId(17_000));
    assert_eq!(cluster.map.inode_of(BlockId(1)), Some(InodeId(17_000)));
    assert_eq!(cluster.holders(1), [1, 2, 3]);
}

#[test]
fn a_removed_block_is_deleted_everywhere_and_stays_unknown() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 3, &[1, 2, 3]);
    cluster.map.remove(&[BlockId(1), BlockId(99)]);
    cluster.check();
    assert!(cluster.map.facts(BlockId(1)).is_none());
    assert_eq!(deletions(&cluster.pass(100, &[1, 2, 3])), [(1, 1), (2, 1), (3, 1)]);
    // One of them had not done it yet when it reported.
    assert_eq!(cluster.report(2, &[finalized(block(1, 50))]).unknown, 1);
    assert_eq!(deletions(&cluster.pass(100, &[1, 2, 3])), [(2, 1)]);
}

#[test]
fn a_block_that_is_copied_is_recovered_by_the_servers_of_the_other() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 50), 2, &[1, 2]);
    let state = BlockState::UnderConstruction;
    cluster.map.add_block(block(2, 7), InodeId(16_386), 2, state, &[], cluster.now);
    let source = Some(BlockId(1));
    assert!(!cluster.map.begin_recovery(BlockId(2), None, cluster.now), "nobody has any of it");
    assert!(cluster.map.begin_recovery(BlockId(2), source, cluster.now));
    assert!(cluster.map.recover(BlockId(2), GenerationStamp(2001), Some(7), source));
    let commands = cluster.pass(100, &[1, 2, 3]);
    let [(leader @ (1 | 2), Command::Recover(recoveries))] = &commands[..] else { panic!("{commands:?}") };
    let copy = Block { generation_stamp: GenerationStamp(2001), ..block(2, 7) };
    assert_eq!((recoveries[0].block, recoveries[0].truncation), (block(1, 50), Some(copy)));
    assert_eq!(recoveries[0].places.len(), 2);
    // It was fetched, and has its time.
    cluster.now = cluster.now.plus_ms(1_000);
    assert!(!cluster.map.begin_recovery(BlockId(2), source, cluster.now));
    let places = [cluster.place(*leader)];
    cluster.map.set_pipeline(copy, &places);
    cluster.map.commit(copy, cluster.now);
    cluster.map.recovered(copy, &places, cluster.now);
    cluster.check();
    let facts = |id| cluster.map.facts(BlockId(id)).map(|facts| (facts.state, facts.live));
    assert_eq!((facts(1), facts(2)), (Some((BlockState::Complete, 2)), Some((BlockState::Complete, 1))));
}
