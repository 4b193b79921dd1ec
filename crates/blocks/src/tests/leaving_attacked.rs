//! Histories in which the rules for servers that leave service are wrong.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, GenerationStamp, InodeId};

const FIVE: [u16; 5] = [1, 2, 3, 4, 5];

/// Server 1 leaves, and its place is taken by server 2, which is known under another address. Records still name the storage of 1.
#[test]
fn a_server_that_takes_the_address_of_one_that_leaves_does_not_end_the_process() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.order(3, AdminOrder::Decommission);
    // 2 is stopped, and started at the address of 1, which is switched off.
    cluster.now = cluster.now.plus_ms(1_001);
    let moved = Registration { ip: ip(1).as_str().into(), ..registration(2) };
    cluster.map.register(moved, session(2), cluster.now).unwrap();
    // Something happens to the block before the broom has passed.
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.check();
}

/// The other group's view of the same: the index of the removed server was given to another one, and blocks are noted there.
#[test]
fn a_new_server_at_the_address_of_one_that_leaves_is_needed_by_no_block_that_it_does_not_hold() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.order(3, AdminOrder::Decommission);
    let other = Registration { uuid: "uuid-other".into(), ..registration(1) };
    cluster.map.register(other, session(1), cluster.now).unwrap();
    cluster.map.order_admin_state("uuid-other", AdminOrder::Decommission, cluster.now);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.map.tick(cluster.now, &|_| 0);
    let face = cluster.map.server("uuid-other").unwrap();
    assert_eq!(face.blocks_in_need, 0);
}

/// Copies are made until the replicas in service and those in maintenance are as many as are wanted; the decommissioned server waits for
/// as many in service.
#[test]
fn a_decommission_ends_while_another_server_is_in_maintenance() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 1_000, ..config() }, 5);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass_with_copies(1_000, &FIVE);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    cluster.order(2, AdminOrder::Decommission);
    cluster.pass_with_copies(20_000, &FIVE);
    assert_eq!((cluster.need(2), cluster.state(2)), (0, AdminState::Decommissioned));
}

/// `maintenance_replication` may be set above `default_replication`.
#[test]
fn maintenance_waits_for_its_own_number_of_replicas_whatever_new_files_have() {
    let config = Config { maintenance_replication: 2, default_replication: 1, ..config() };
    let mut cluster = Cluster::with_servers(config, 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(1_000, &[1, 2]);
    assert_eq!(cluster.state(1), AdminState::EnteringMaintenance, "one other is in service, and two must be");
}

/// Blocks without a source fill the first level of the queue: nothing else is copied any more.
#[test]
fn blocks_that_are_away_do_not_keep_others_from_being_copied() {
    let mut cluster = Cluster::with_servers(config(), 5);
    for id in 1..=60 {
        cluster.add_stored(block(id, 5), 1, &[1]);
    }
    cluster.order(1, AdminOrder::Maintenance);
    // It is switched off too early, or fails.
    cluster.pass(2_500, &[2, 3, 4, 5]);
    assert!(!cluster.map.server(&uuid(1)).unwrap().alive);
    cluster.add_stored(block(100, 5), 3, &[2, 3, 4]);
    cluster.tell(4, &[Increment::Deleted(block(100, 5))]);
    let commands = cluster.pass(10_000, &[2, 3, 4, 5]);
    assert!(transfers(&commands).iter().any(|(_, id, _)| *id == 100), "a hundred ticks have passed");
}

/// Blocks whose only source is one living server fill the first level of the queue. The server sends two at a time. Blocks of other levels are
/// copied meanwhile.
#[test]
fn blocks_of_one_slow_source_do_not_keep_others_from_being_copied() {
    let mut cluster = Cluster::with_servers(config(), 5);
    for id in 1..=60 {
        cluster.add_stored(block(id, 5), 1, &[1]);
    }
    cluster.order(1, AdminOrder::Decommission);
    // 1 is busy, and says so.
    let mut busy = heartbeat_of(1);
    busy.transfers_in_progress = 2;
    cluster.beat_with(1, &busy);
    cluster.pass(300, &[2, 3, 4, 5]);
    cluster.add_stored(block(100, 5), 3, &[2, 3, 4]);
    cluster.tell(4, &[Increment::Deleted(block(100, 5))]);
    let mut commands = Vec::new();
    for _ in 0..100 {
        cluster.beat_with(1, &busy);
        commands.extend(cluster.pass(100, &[2, 3, 4, 5]));
    }
    assert!(transfers(&commands).iter().any(|(_, id, _)| *id == 100), "a hundred ticks have passed");
}

#[test]
fn an_empty_server_that_has_never_stored_a_block_is_decommissioned() {
    let mut cluster = Cluster::with_newcomers(config(), 3);
    cluster.pass_trial(1);
    cluster.order(3, AdminOrder::Decommission);
    cluster.pass(5_000, &[1, 2, 3]);
    assert_eq!(cluster.state(3), AdminState::Decommissioned, "it holds nothing");
}

/// After a restart of the metadata server all data servers are newcomers, and without new files they stay so.
#[test]
fn a_decommission_ends_in_a_cluster_that_is_only_read_since_the_metadata_server_was_started() {
    let mut cluster = Cluster::empty(config());
    cluster.add_complete(block(1, 5), 2);
    cluster.map.activate(cluster.now);
    for server in [1, 2, 3] {
        cluster.start(server);
    }
    for server in [1, 2] {
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    cluster.report(3, &[]);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    assert!(!cluster.map.in_safe_mode());
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(20_000, &[1, 2, 3]);
    assert_eq!((cluster.need(1), cluster.state(1)), (0, AdminState::Decommissioned));
}

/// A client has nobody else to write to than a server that was told that it may go, and cannot close its file; nobody copies the block.
#[test]
fn a_file_that_is_written_on_a_decommissioned_server_alone_can_be_closed_and_is_copied() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    let again = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    // The others fail while the client writes, and it goes on with the one that is left.
    let once_more = Block { generation_stamp: GenerationStamp(1003), ..block(1, 5) };
    let left = [cluster.place(1)];
    cluster.map.set_pipeline(once_more, &left);
    let written = Block { length: 9, ..once_more };
    cluster.tell(1, &[received(written)]);
    cluster.map.commit(written, cluster.now);
    let commands = cluster.pass(5_000, &[1, 2, 3]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().state, BlockState::Complete);
    assert!(transfers(&commands).iter().any(|(_, id, _)| *id == 1));
}

/// A client's data are on a server that has been let go, while it was writing there.
#[test]
fn a_server_in_the_pipeline_of_a_writer_does_not_become_the_only_one_behind_its_back() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let again = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    let once_more = Block { generation_stamp: GenerationStamp(1003), ..block(1, 5) };
    let left = [cluster.place(1)];
    cluster.map.set_pipeline(once_more, &left);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_ne!(
        cluster.state(1),
        AdminState::Decommissioned,
        "all that the client has written is there alone"
    );
}

/// An append or a recovery is not led through servers that may be off at any moment, where others are there.
#[test]
fn an_append_does_not_use_a_server_in_maintenance() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!((cluster.state(1), cluster.holders(1)), (AdminState::InMaintenance, vec![2, 3]));
    let again = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    assert_eq!(cluster.holders(1), [2, 3]);
}

/// The only good replica is in maintenance and its server is up: nobody copies it and nobody may read it.
#[test]
fn the_last_good_replica_is_copied_from_a_server_in_maintenance_that_is_still_there() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 4);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(1_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    // 2 dies, and 1 has not been switched off.
    let commands = cluster.pass(5_000, &[1, 3, 4]);
    assert!(transfers(&commands).iter().any(|(source, id, _)| (*source, *id) == (1, 1)));
}

/// Damaged replicas are shown as "corrupt" although a good one is in maintenance.
#[test]
fn a_block_with_a_good_replica_in_maintenance_is_not_told_to_be_corrupt() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(1_000, &[1, 2]);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    cluster.map.report_bad(block(1, 5), &uuid(2), None, cluster.now);
    cluster.pass(300, &[1, 2]);
    let located = cluster.map.locations(BlockId(1), Reader::default(), 0, cluster.now).unwrap();
    assert!(!located.corrupt, "1 has a good one, and is there");
}

/// What a newcomer claims does not prove that a block is elsewhere: neither where the server that leaves has died.
#[test]
fn a_dead_server_is_not_decommissioned_because_of_what_a_newcomer_claims() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.start(3);
    cluster.report(3, &[finalized(block(1, 5))]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(300, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
    cluster.pass(2_500, &[2, 3]);
    assert!(!cluster.map.server(&uuid(1)).unwrap().alive);
    assert_eq!(
        cluster.state(1),
        AdminState::DecommissionInProgress,
        "it may be the only one that has the block"
    );
}

/// A place on a server that has proved nothing keeps no writer's bytes.
#[test]
fn a_block_that_is_written_is_not_kept_by_a_server_whose_word_nobody_believes() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let (open, targets) = (block(1, 0), [cluster.place(1)]);
    let now = cluster.now;
    cluster.map.add_block(open, InodeId(16_386), 1, BlockState::UnderConstruction, &targets, now);
    cluster.start(3);
    cluster.report(3, &[ReportedReplica { block: open, state: ReplicaState::BeingWritten }]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "3 is a newcomer");
}

/// A block that needs the server for a moment only, once in each lap, keeps it for ever.
#[test]
fn appends_that_are_over_in_a_moment_do_not_keep_a_server_for_ever() {
    let mut cluster = Cluster::with_servers(config(), 4);
    for id in 1..=50 {
        cluster.add_stored(block(id, 5), 3, &[2, 3, 4]);
    }
    cluster.add_stored(block(60, 5), 3, &[2, 3, 4]);
    let mut stored = block(60, 5);
    // A fourth replica on server 1, as an append through four servers has left it.
    cluster.order(1, AdminOrder::Decommission);
    let mut left = false;
    for round in 0..60 {
        // An append through all that have the block, and one that is to leave.
        let again = Block { generation_stamp: GenerationStamp(1002 + round), ..stored };
        let targets = [1, 2, 3, 4].map(|server| cluster.place(server));
        cluster.map.reopen(again, &targets);
        stored = Block { length: stored.length + 1, ..again };
        for server in [1, 2, 3, 4] {
            cluster.tell(server, &[received(stored)]);
            if server == 1 {
                cluster.map.commit(stored, cluster.now);
            }
        }
        assert_eq!(cluster.map.facts(BlockId(60)).unwrap().state, BlockState::Complete);
        cluster.now = cluster.now.plus_ms(100);
        for server in [1, 2, 3, 4] {
            cluster.heartbeat(server);
        }
        cluster.map.tick(cluster.now, &|_| 0);
        while cluster.map.sweep(10, cluster.now) {}
        left |= cluster.state(1) == AdminState::Decommissioned;
    }
    assert!(left, "after every append three others had the block");
}

/// Nothing is known of a dead server's blocks: a file that wants more replicas than there are servers does not keep it.
#[test]
fn a_dead_server_is_not_kept_by_blocks_that_it_never_had() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 5);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    // A job's file with ten replicas, which no cluster of this size can have.
    cluster.add_stored(block(2, 5), 10, &[2, 3, 4, 5]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(5_000, &[2, 3, 4, 5]);
    assert!(!cluster.map.server(&uuid(1)).unwrap().alive);
    assert_eq!(cluster.live(1), 2);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}

/// The broom is never idle in a large cluster, where some server always begins anew or reports less than was known.
#[test]
fn a_server_that_begins_anew_again_and_again_does_not_keep_another_for_ever() {
    let mut cluster = Cluster::with_servers(config(), 4);
    for id in 1..=40 {
        cluster.add_stored(block(id, 5), 2, &[2, 3]);
    }
    cluster.sweep();
    cluster.order(1, AdminOrder::Decommission);
    for _ in 0..300 {
        cluster.now = cluster.now.plus_ms(100);
        cluster.map.register(registration(4), session(4), cluster.now).unwrap();
        for server in [1, 2, 3, 4] {
            cluster.heartbeat(server);
        }
        cluster.map.tick(cluster.now, &|_| 0);
        // In 300 ticks the broom goes round 75 times.
        cluster.map.sweep(10, cluster.now);
    }
    assert_eq!(cluster.state(1), AdminState::Decommissioned, "it holds nothing, and neither does 4");
}

/// A server that is to leave does not wait for ever while another server sends one report after the other that lacks a replica.
#[test]
fn reports_that_lack_a_replica_do_not_keep_a_server_for_ever() {
    let mut cluster = Cluster::with_servers(config(), 4);
    for id in 1..=40 {
        cluster.add_stored(block(id, 5), 2, &[2, 3]);
    }
    cluster.sweep();
    cluster.order(1, AdminOrder::Decommission);
    let mut left = false;
    for _ in 0..150 {
        for rows in [vec![finalized(block(40, 5))], vec![]] {
            cluster.now = cluster.now.plus_ms(100);
            for server in [1, 2, 3, 4] {
                cluster.heartbeat(server);
            }
            cluster.report(4, &rows);
            cluster.map.tick(cluster.now, &|_| 0);
            cluster.map.sweep(10, cluster.now);
            left |= cluster.state(1) == AdminState::Decommissioned;
        }
    }
    assert!(left, "it holds nothing");
}

/// A block's only replica is finished on a server in maintenance, which is up: nobody can read it, and nobody copies it.
#[test]
fn a_recovery_that_ends_on_a_server_in_maintenance_alone_leaves_a_block_that_is_copied() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 4);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(1_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    let again = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    // 2 does not answer in time, and the recovery goes on without it.
    assert!(cluster.map.begin_recovery(BlockId(1), None, cluster.now));
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(1003), None, None));
    let left = [cluster.place(1)];
    let recovered = Block { generation_stamp: GenerationStamp(1003), ..again };
    cluster.map.set_pipeline(recovered, &left);
    cluster.map.recovered(recovered, &left, cluster.now);
    cluster.map.commit(recovered, cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    let commands = cluster.pass(5_000, &[1, 2, 3, 4]);
    assert!(transfers(&commands).iter().any(|(source, id, _)| (*source, *id) == (1, 1)));
}

/// 1 is switched off when it is in maintenance. The order that ends its maintenance comes while it is off; then it comes back.
#[test]
fn a_server_that_comes_back_under_any_other_order_keeps_the_map_right() {
    let orders = [AdminOrder::InService, AdminOrder::Decommission, AdminOrder::Maintenance];
    for before in orders {
        for while_off in orders {
            for after in orders {
                for waits_ms in [0, 100, 1_000] {
                    let config = Config { pending_timeout_ms: 500, ..config() };
                    let mut cluster = Cluster::with_servers(config, 4);
                    for id in 1..=6 {
                        cluster.add_stored(block(id, 5), 1 + (id % 3) as u16, &[1, 2, 3]);
                    }
                    cluster.order(1, before);
                    cluster.pass_with_copies(waits_ms, &[1, 2, 3, 4]);
                    cluster.pass_with_copies(2_500, &[2, 3, 4]);
                    cluster.order(1, while_off);
                    cluster.pass_with_copies(waits_ms, &[2, 3, 4]);
                    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
                    cluster.order(1, after);
                    // It begins anew where it is asked to.
                    if cluster.heartbeat(1).iter().any(|command| matches!(command, Command::Register)) {
                        cluster.map.register(registration(1), session(1), cluster.now).unwrap();
                        cluster.heartbeat(1);
                    }
                    cluster.pass_with_copies(waits_ms, &[1, 2, 3, 4]);
                    let rows: Vec<_> = (1..=6).map(|id| finalized(block(id, 5))).collect();
                    cluster.report(1, &rows);
                    cluster.pass_with_copies(4_000, &[1, 2, 3, 4]);
                    let expected = match after {
                        AdminOrder::InService => AdminState::InService,
                        AdminOrder::Decommission => AdminState::Decommissioned,
                        AdminOrder::Maintenance => AdminState::InMaintenance,
                    };
                    assert_eq!(cluster.state(1), expected, "{before:?} {while_off:?} {after:?} {waits_ms}");
                    for id in 1..=6 {
                        let live = cluster.live(id);
                        let needed = if after == AdminOrder::Maintenance { 1 } else { 1 + (id % 3) as usize };
                        assert!(
                            live >= needed,
                            "{before:?} {while_off:?} {after:?} {waits_ms}: {id} has {live}"
                        );
                    }
                }
            }
        }
    }
}

/// The server that leaves is dead, and its replicas are remembered; another one has begun anew, and has not said yet what it has.
#[test]
fn a_dead_server_is_not_in_maintenance_because_of_a_replica_that_nobody_has_seen_since_its_server_began_anew()
{
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.tell(2, &[received(block(1, 5))]);
    // 2 begins anew with an empty disk before anything is decided, and 1 dies.
    cluster.map.register(registration(2), session(2), cluster.now).unwrap();
    cluster.pass(3_000, &[2, 3]);
    assert!(!cluster.map.server(&uuid(1)).unwrap().alive);
    assert_eq!(
        cluster.state(1),
        AdminState::EnteringMaintenance,
        "it may be the only one that has the block"
    );
}

/// An append begins while the other server has not said yet what it has since it began anew. It has lost the block.
#[test]
fn a_block_that_is_opened_again_is_not_kept_by_a_server_that_has_not_reported() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.map.register(registration(2), session(2), cluster.now).unwrap();
    cluster.heartbeat(2);
    let again = Block { generation_stamp: GenerationStamp(1001), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "2 may have lost it");
    cluster.report(2, &[]);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "it is the only one");
}

/// The servers that took over for the one that was let go are lost later. An operator must not be told any more that it may be switched off.
#[test]
fn a_server_that_was_let_go_is_needed_again_when_the_replicas_in_service_are_lost_later() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(2_000, &[1, 2, 3]);
    assert_eq!((cluster.state(1), cluster.live(1)), (AdminState::Decommissioned, 2));
    cluster.pass(3_000, &[1]);
    assert_eq!((cluster.state(1), cluster.need(1)), (AdminState::DecommissionInProgress, 1));
    cluster.map.register(registration(4), session(4), cluster.now).unwrap();
    cluster.map.register(registration(3), session(3), cluster.now).unwrap();
    cluster.heartbeat(4);
    cluster.heartbeat(3);
    cluster.report(4, &[]);
    cluster.report(3, &[]);
    cluster.pass_with_copies(3_000, &[1, 3, 4]);
    assert_eq!((cluster.state(1), cluster.live(1)), (AdminState::Decommissioned, 2));
}

/// A replica on a server that has not shown that it stores blocks is not the reason to do without one that was let go.
#[test]
fn a_server_that_was_let_go_is_needed_again_when_only_a_newcomer_claims_the_block() {
    let mut cluster = Cluster::with_newcomers(config(), 4);
    (1..=3).for_each(|server| cluster.pass_trial(server));
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.tell(2, &[received(block(1, 5))]);
    cluster.pass(1_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    cluster.tell(4, &[received(block(1, 5))]);
    cluster.tell(2, &[Increment::Deleted(block(1, 5))]);
    cluster.pass(200, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
}

/// The number of wanted replicas falls to what is in maintenance, so that the server may go. What lets it go must not call it back.
#[test]
fn a_server_that_was_let_go_for_the_sake_of_one_in_maintenance_stays_so() {
    let config = Config { maintenance_replication: 0, ..config() };
    let mut cluster = Cluster::with_servers(config, 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(2, AdminOrder::Maintenance);
    cluster.pass(500, &[1, 2]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(2_000, &[1, 2]);
    assert_eq!((cluster.state(1), cluster.state(2)), (AdminState::Decommissioned, AdminState::InMaintenance));
    // Whatever has all blocks looked at again.
    cluster.map.register(registration(3), session(3), cluster.now).unwrap();
    cluster.sweep();
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}

/// An append begins on a server in service and on one that was let go; the first one dies before the file is closed.
#[test]
fn a_server_that_was_let_go_is_needed_by_a_writer_whose_other_server_dies() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(2_000, &[1, 2, 3]);
    assert_eq!((cluster.state(1), cluster.live(1)), (AdminState::Decommissioned, 1));
    let again = Block { generation_stamp: GenerationStamp(1001), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned, "another one in service has it");
    cluster.pass(8_000, &[1]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
}

/// No server had shown that it stores blocks when one was let go. Now others have, and a claim counts no more.
#[test]
fn a_claim_lets_go_no_longer_once_servers_have_shown_that_they_store_blocks() {
    let mut cluster = Cluster::with_newcomers(config(), 4);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.tell(2, &[received(block(1, 5))]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(2_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned, "all are believed as long as none has shown it");
    cluster.pass_trial(3);
    cluster.pass(300, &[1, 2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "2 may not have it");
}

/// An operator has put safe mode on, in which nothing is copied and nobody is called back.
#[test]
fn nobody_is_told_in_safe_mode_that_a_server_may_be_switched_off() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    cluster.map.enter_safe_mode();
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
    // The others die. Server 1 has the last replica.
    cluster.pass(40_000, &[1]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
    assert!(cluster.map.leave_safe_mode(false, cluster.now));
    cluster.pass(5_000, &[1]);
    assert_eq!((cluster.need(1), cluster.state(1)), (1, AdminState::DecommissionInProgress));
    // One is there again, and a new one.
    cluster.start(2);
    cluster.report(2, &[finalized(block(1, 5))]);
    cluster.start(4);
    cluster.report(4, &[]);
    cluster.pass_with_copies(20_000, &[1, 2, 4]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}
