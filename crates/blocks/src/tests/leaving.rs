//! Data servers that an operator takes out of service, for good or for a while.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, Epoch, GenerationStamp, InodeId};

const ALL: [u16; 4] = [1, 2, 3, 4];

impl Cluster {
    pub fn order(&mut self, server: u16, order: AdminOrder) {
        self.map.order_admin_state(&uuid(server), order, self.now);
        self.check();
    }

    pub fn state(&self, server: u16) -> AdminState {
        self.map.server(&uuid(server)).unwrap().admin_state
    }

    pub fn need(&self, server: u16) -> u64 {
        self.map.server(&uuid(server)).unwrap().blocks_in_need
    }

    /// Time passes, and each copy that is ordered arrives.
    pub fn pass_with_copies(&mut self, ms: u64, servers: &[u16]) {
        for _ in 0..ms / 100 {
            let commands = self.pass(100, servers);
            for (_, id, targets) in transfers(&commands) {
                let slot_block = self.map.facts(BlockId(id)).unwrap().block;
                for target in targets {
                    let target = target.trim_start_matches("uuid-").parse().unwrap();
                    self.tell(target, &[received(slot_block)]);
                }
            }
            for (server, id) in deletions(&commands) {
                if let Some(facts) = self.map.facts(BlockId(id)) {
                    self.tell(server, &[Increment::Deleted(facts.block)]);
                }
            }
        }
    }
}

#[test]
fn a_server_is_decommissioned_once_its_blocks_are_elsewhere() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.add_stored(block(2, 5), 1, &[1]);
    cluster.add_stored(block(3, 5), 2, &[2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    let commands = cluster.pass(400, &ALL);
    let mut copied: Vec<u64> = transfers(&commands).into_iter().map(|(_, id, _)| id).collect();
    copied.sort_unstable();
    assert_eq!(copied, [1, 2], "the blocks of the server are copied, and no others");
    assert_eq!((cluster.state(1), cluster.need(1)), (AdminState::DecommissionInProgress, 2));
    assert_eq!(cluster.holders(1), [1, 2, 3], "until then it is read as before");
    for (_, id, targets) in transfers(&commands) {
        assert!(!targets.contains(&uuid(1)));
        let target = targets[0].trim_start_matches("uuid-").parse().unwrap();
        cluster.tell(target, &[received(block(id, 5))]);
    }
    cluster.pass(300, &ALL);
    assert_eq!((cluster.state(1), cluster.need(1)), (AdminState::Decommissioned, 0));
    assert_eq!(cluster.map.take_events().left_service.len(), 1);
    assert_eq!(cluster.holders(1).len(), 4, "its replicas stay where they are");
    let stats = cluster.map.stats();
    assert_eq!((stats.decommissioned_live, stats.under_replicated, stats.blocks_in_need), (1, 0, 0));
    assert_eq!(stats.capacity, 3 * 100 * GIB, "its room is not counted, because nothing is written there");
}

#[test]
fn the_blocks_that_need_a_leaving_server_and_since_when_it_leaves_are_told() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.add_stored(block(2, 5), 2, &[1, 2]);
    assert_eq!(cluster.map.needed_from(&uuid(1), 10), Some(vec![]), "it does not leave");
    cluster.pass(300, &[1, 2]);
    let ordered = cluster.now;
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(1_000, &[1, 2]);
    let mut needed: Vec<_> = cluster.map.needed_from(&uuid(1), 10).unwrap();
    needed.sort_by_key(|(_, has_others)| *has_others);
    let files = [1, 2].map(|id| cluster.map.inode_of(BlockId(id)));
    assert_eq!(needed, [(files[0], false), (files[1], true)], "nobody else in service has the first block");
    assert_eq!(cluster.map.needed_from(&uuid(1), 1), None, "there are more than one");
    assert_eq!(cluster.map.needed_from("nobody", 10), None);
    let since = |cluster: &Cluster| cluster.map.server(&uuid(1)).unwrap().admin_state_since;
    assert_eq!(since(&cluster), ordered);
    cluster.order(1, AdminOrder::InService);
    assert_eq!(since(&cluster), cluster.now);
    assert_eq!(cluster.map.needed_from(&uuid(1), 10), Some(vec![]));
}

#[test]
pub fn a_server_is_not_let_go_while_a_block_needs_it() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    // The copy is ordered again and again, and never arrives.
    cluster.pass(3_000, &[1, 2]);
    assert_eq!((cluster.state(1), cluster.need(1)), (AdminState::DecommissionInProgress, 1));
    cluster.tell(2, &[received(block(1, 5))]);
    cluster.pass(300, &[1, 2]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}

#[test]
pub fn replicas_that_leave_are_no_reason_to_delete_others() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let commands = cluster.pass(500, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [], "two are in service, and two are wanted");
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    cluster.order(1, AdminOrder::InService);
    let commands = cluster.pass(500, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [], "the server has not yet said what it holds now");
    cluster.start(1);
    cluster.report(1, &[finalized(block(1, 5))]);
    let commands = cluster.pass(500, &[1, 2, 3]);
    only_one_told(&commands);
}

/// The operator took back an order that was over, while the map still took the server to be there.
#[test]
fn a_server_that_was_let_go_and_is_back_in_service_says_anew_what_it_holds_before_its_replicas_cost_others() {
    for order in [AdminOrder::Decommission, AdminOrder::Maintenance] {
        let mut cluster = Cluster::with_servers(config(), 3);
        cluster.add_stored(block(1, 5), 1, &[1]);
        cluster.order(1, order);
        cluster.tell(2, &[received(block(1, 5))]);
        cluster.pass(300, &[1, 2, 3]);
        assert!(matches!(cluster.state(1), AdminState::Decommissioned | AdminState::InMaintenance));
        // Its disks are given away, and nothing is heard of it.
        cluster.order(1, AdminOrder::InService);
        let commands = cluster.pass(500, &[2, 3]);
        assert_eq!(deletions(&commands), [], "the only replica that is left stays, {order:?}");
        // Another machine comes in its place: empty, with its name.
        cluster.start(1);
        cluster.report(1, &[]);
        let commands = cluster.pass(1_000, &[1, 2, 3]);
        assert_eq!(deletions(&commands), [], "the only replica that is left stays, {order:?}");
        assert_eq!(cluster.holders(1), [2]);
    }
}

#[test]
fn a_server_that_is_back_in_service_is_asked_to_register() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(300, &ALL[..3]);
    cluster.order(1, AdminOrder::InService);
    assert!(cluster.heartbeat(1).iter().any(|command| matches!(command, Command::Register)));
}

#[test]
fn a_block_that_wants_more_than_there_are_servers_keeps_a_server_as_long_as_new_files_would() {
    let mut cluster = Cluster::with_servers(Config { default_replication: 2, ..config() }, 3);
    cluster.add_stored(block(1, 5), 10, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(500, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}

#[test]
fn nothing_new_is_placed_on_a_server_that_leaves_even_by_its_own_writer() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.order(2, AdminOrder::Decommission);
    let host = ip(2);
    let placement = Placement {
        writer: Reader { host: Some(&host) },
        replication: 3,
        block_size: 5,
        ..Placement::default()
    };
    let chosen = cluster.map.choose_targets(&placement, cluster.now);
    let mut chosen: Vec<String> = chosen.iter().map(|at| at.server.uuid().to_string()).collect();
    chosen.sort_unstable();
    assert_eq!(chosen, [uuid(1), uuid(3)]);
}

#[test]
fn a_block_that_is_written_through_leaving_servers_alone_keeps_them() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let (open, targets) = (block(1, 0), [cluster.place(1)]);
    let now = cluster.now;
    cluster.map.add_block(open, InodeId(16_386), 1, BlockState::UnderConstruction, &targets, now);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(500, &[1, 2]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "the writer has nobody else");
    cluster.tell(1, &[received(block(1, 5))]);
    cluster.map.commit(block(1, 5), cluster.now);
    assert!(cluster.map.facts(BlockId(1)).unwrap().state == BlockState::Complete, "the file can be closed");
    cluster.pass_with_copies(1_000, &[1, 2]);
    assert_eq!((cluster.state(1), cluster.holders(1)), (AdminState::Decommissioned, vec![1, 2]));
}

/// The copy was told, and then its server lost its power and its disk. It is not dead yet.
#[test]
fn a_server_is_not_let_go_for_a_replica_on_a_silent_server() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.pass(200, &ALL[..3]);
    cluster.tell(2, &[received(block(1, 5))]);
    cluster.pass(config().stale_interval_ms + 100, &[1, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(300, &[1, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "the other replica may be lost");
    cluster.pass_with_copies(10_000, &[1, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    assert!(cluster.holders(1).contains(&3));
}

#[test]
fn a_server_that_is_to_be_in_maintenance_and_no_more_decommissioned_says_anew_what_it_holds() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(300, &ALL[..3]);
    cluster.order(1, AdminOrder::Maintenance);
    assert!(cluster.heartbeat(1).iter().any(|command| matches!(command, Command::Register)));
}

/// The server in service failed behind the moment in which the leaving one was let go for its sake, and the writer went on without it.
#[test]
fn a_server_that_was_let_go_is_called_back_when_a_writer_ends_with_its_replica_alone() {
    for order in [AdminOrder::Decommission, AdminOrder::Maintenance] {
        let mut cluster = Cluster::with_servers(config(), 4);
        let (open, targets) = (block(1, 0), [cluster.place(1), cluster.place(2)]);
        let now = cluster.now;
        cluster.map.add_block(open, InodeId(16_386), 2, BlockState::UnderConstruction, &targets, now);
        cluster.order(1, order);
        cluster.tell(2, &[Increment::Receiving(open)]);
        cluster.pass(500, &ALL);
        assert!(!cluster.state(1).is_leaving() && cluster.state(1) != AdminState::InService, "{order:?}");
        cluster.tell(1, &[received(block(1, 5))]);
        cluster.map.commit(block(1, 5), cluster.now);
        assert_eq!(
            cluster.map.facts(BlockId(1)).unwrap().state,
            BlockState::Complete,
            "the file can be closed"
        );
        assert!(cluster.state(1).is_leaving(), "it has the only replica of a file, {order:?}");
        cluster.pass_with_copies(400_000, &[1, 3, 4]);
        assert!(!cluster.state(1).is_leaving() && cluster.state(1) != AdminState::InService, "{order:?}");
        assert!(cluster.holders(1).contains(&3));
    }
}

#[test]
fn an_append_to_a_block_on_a_leaving_server_finds_it() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    let again = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.reopen(again, &[]);
    assert_eq!(cluster.holders(1), [1]);
    cluster.tell(1, &[received(Block { length: 9, ..again })]);
    cluster.map.commit(Block { length: 9, ..again }, cluster.now);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().state, BlockState::Complete);
    cluster.check();
}

#[test]
fn readers_are_sent_to_a_decommissioned_server_last() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(500, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    let host = ip(1);
    for chance in 0..8 {
        let reader = Reader { host: Some(&host) };
        let located = cluster.map.locations(BlockId(1), reader, chance, cluster.now).unwrap();
        assert_eq!(**located.locations.last().unwrap().server.uuid(), *uuid(1));
    }
}

#[test]
fn the_only_replica_on_a_decommissioned_server_is_copied_from_there() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass_with_copies(500, &ALL[..3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    let other = *cluster.holders(1).iter().find(|server| **server != 1).unwrap();
    cluster.tell(other, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(cluster.map.stats().missing, 0);
    let commands = cluster.pass(200, &ALL[..3]);
    let orders = transfers(&commands);
    assert!(
        orders.iter().all(|(source, id, _)| (*source, *id) == (1, 1)) && !orders.is_empty(),
        "{orders:?}"
    );
}

#[test]
fn a_server_that_died_on_its_way_out_goes_when_everything_is_whole_again() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(3_000, &[2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress, "a copy is missing yet");
    cluster.tell(4, &[received(block(1, 5))]);
    cluster.pass(300, &[2, 3, 4]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
}

#[test]
fn a_server_that_has_not_reported_is_not_let_go() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Decommission);
    // It begins anew: its storages are not known until they have reported in full.
    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    assert_eq!(cluster.holders(1).len(), 2);
}

#[test]
fn a_new_active_finds_out_anew_whether_a_server_may_go() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 1, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(500, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::Decommissioned);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(5), cluster.now);
    cluster.pass(500, &[1, 2, 3]);
    assert_eq!(
        cluster.state(1),
        AdminState::DecommissionInProgress,
        "the other replica may have been deleted by the active before"
    );
    let report = |cluster: &mut Cluster, server, replicas: &[ReportedReplica]| {
        cluster.connection += 1;
        cluster.heartbeat(server);
        cluster.report(server, replicas);
    };
    report(&mut cluster, 1, &[finalized(block(1, 5))]);
    report(&mut cluster, 2, &[]);
    report(&mut cluster, 3, &[]);
    cluster.pass_with_copies(1_000, &[1, 2, 3]);
    assert_eq!((cluster.state(1), cluster.holders(1).len()), (AdminState::Decommissioned, 2));
}

#[test]
fn a_server_in_maintenance_may_be_away_without_its_blocks_being_copied() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Maintenance);
    let commands = cluster.pass(500, &ALL);
    assert_eq!(transfers(&commands), []);
    assert_eq!((cluster.state(1), cluster.holders(1)), (AdminState::InMaintenance, vec![2, 3]));
    let commands = cluster.pass(5_000, &[2, 3, 4]);
    assert_eq!(transfers(&commands), [], "it is dead, and will be back");
    assert_eq!((cluster.map.stats().in_maintenance_dead, cluster.map.stats().under_replicated), (1, 0));
    // It is back in time.
    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
    cluster.heartbeat(1);
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.order(1, AdminOrder::InService);
    let commands = cluster.pass(500, &ALL);
    assert_eq!((transfers(&commands), deletions(&commands)), (vec![], vec![]));
    assert_eq!(cluster.holders(1), [1, 2, 3]);
}

#[test]
fn a_maintenance_that_ends_while_the_server_is_away_makes_it_a_dead_server() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(500, &ALL);
    cluster.pass(3_000, &[2, 3, 4]);
    cluster.order(1, AdminOrder::InService);
    let commands = cluster.pass(500, &[2, 3, 4]);
    assert_eq!(transfers(&commands).len(), 1);
}

#[test]
fn the_last_replica_in_service_is_made_before_maintenance_begins() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 1_000, ..config() }, 3);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.order(1, AdminOrder::Maintenance);
    let commands = cluster.pass(600, &ALL[..3]);
    assert_eq!(transfers(&commands).len(), 1);
    assert_eq!((cluster.state(1), cluster.holders(1)), (AdminState::EnteringMaintenance, vec![1]));
    // The first copy never arrives; the second one does.
    cluster.pass_with_copies(2_000, &ALL[..3]);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    assert!(!cluster.holders(1).contains(&1) && cluster.holders(1).len() == 1, "the other one is shown");
}

#[test]
fn replicas_in_maintenance_are_made_up_for_when_too_few_others_are_left() {
    let config = Config { maintenance_replication: 2, ..config() };
    let mut cluster = Cluster::with_servers(config, 5);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(500, &[1, 2, 3, 4, 5]);
    assert_eq!(cluster.state(1), AdminState::InMaintenance);
    let commands = cluster.pass(3_000, &[3, 4, 5]);
    let [(3, 1, targets)] = &transfers(&commands)[..] else { panic!("{commands:?}") };
    assert_eq!(targets.len(), 1, "one of the two that are missing");
}

#[test]
fn another_server_at_the_address_of_one_that_is_away_ends_its_maintenance() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(500, &ALL[..3]);
    cluster.pass(3_000, &[2, 3]);
    let other = Registration { uuid: "uuid-other".into(), ..registration(1) };
    cluster.map.register(other, session(1), cluster.now).unwrap();
    cluster.sweep();
    assert!(cluster.map.server(&uuid(1)).is_none());
    let commands = cluster.pass(300, &[2, 3]);
    assert!(!transfers(&commands).is_empty());
}

#[test]
fn a_file_that_is_deleted_meanwhile_is_deleted_on_the_server_that_comes_back() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.order(1, AdminOrder::Maintenance);
    cluster.pass(500, &ALL[..3]);
    cluster.pass(3_000, &[2, 3]);
    cluster.map.remove(&[BlockId(1)]);
    cluster.pass(300, &[2, 3]);
    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
    cluster.heartbeat(1);
    cluster.report(1, &[finalized(block(1, 5))]);
    let commands = cluster.pass(300, &ALL[..3]);
    assert_eq!(deletions(&commands), [(1, 1)]);
}

/// All servers that could receive a sample from the new one have its blocks already, so it cannot show that it stores them.
#[test]
fn a_copy_on_a_newcomer_that_cannot_prove_itself_lets_a_server_go() {
    for servers in [vec![1, 2, 3, 4], vec![1, 2]] {
        let all = servers.len() as u16;
        let mut cluster = Cluster::with_newcomers(config(), all);
        (1..all).for_each(|server| cluster.pass_trial(server));
        let holders: Vec<u16> = (1..all).collect();
        cluster.add_stored(block(1, 5), all - 1, &holders);
        cluster.order(1, AdminOrder::Decommission);
        cluster.pass_with_copies(3_000, &servers);
        assert_eq!((cluster.need(1), cluster.state(1)), (0, AdminState::Decommissioned), "of {all} servers");
    }
}

/// The claim of a newcomer that could be asked for a sample, and has not sent one yet, lets nobody go.
#[test]
fn a_newcomer_that_can_prove_itself_has_to() {
    let mut cluster = Cluster::with_newcomers(config(), 3);
    (1..=2).for_each(|server| cluster.pass_trial(server));
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.tell(3, &[received(block(1, 5))]);
    cluster.order(1, AdminOrder::Decommission);
    cluster.pass(3_000, &[1, 2, 3]);
    assert_eq!(cluster.state(1), AdminState::DecommissionInProgress);
}
