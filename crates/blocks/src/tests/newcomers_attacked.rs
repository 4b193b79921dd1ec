//! Data servers that store nothing, and what real ones do at the same time that could pass for their proof.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, GenerationStamp, InodeId};

const STRANGER: u16 = 9;

/// A made-up server registers, and claims these blocks.
fn claim(cluster: &mut Cluster, blocks: &[Block]) {
    cluster.start(STRANGER);
    cluster.report(STRANGER, &blocks.iter().copied().map(finalized).collect::<Vec<_>>());
}

fn passed(cluster: &mut Cluster) -> Vec<String> {
    cluster.map.take_events().passed
}

fn samples(commands: &[(u16, Command)]) -> Vec<(u16, u64, Vec<String>)> {
    transfers(commands).into_iter().filter(|(source, ..)| *source == STRANGER).collect()
}

/// With the opened block goes each server that claims it; a client that closes the file at once has written through none of them.
#[test]
fn a_claim_is_no_proof_because_a_file_was_opened_and_closed() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    claim(&mut cluster, &[block(1, 5)]);
    cluster.map.reopen(block(1, 5), &[]);
    cluster.map.commit(block(1, 5), cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    assert_eq!(passed(&mut cluster), [] as [String; 0]);
    // Nor is it when it is said once more.
    cluster.map.reopen(block(1, 5), &[]);
    cluster.map.commit(block(1, 7), cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    cluster.tell(STRANGER, &[received(block(1, 7))]);
    assert_eq!(passed(&mut cluster), [] as [String; 0]);
}

/// A block with a known server and a newcomer that says it is being written there, and whose writer is gone.
fn left_open() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.start(STRANGER);
    cluster.report(STRANGER, &[]);
    let targets = [cluster.place(1)];
    let under = BlockState::UnderConstruction;
    cluster.map.add_block(block(1, 0), InodeId(16_386), 2, under, &targets, cluster.now);
    for server in [1, STRANGER] {
        cluster.tell(server, &[Increment::Receiving(block(1, 5))]);
    }
    cluster.now = cluster.now.plus_ms(10);
    cluster.heartbeat(1);
    cluster.now = cluster.now.plus_ms(10);
    cluster.heartbeat(STRANGER);
    cluster
}

/// The leader of a recovery names the servers that have answered it. No client has written through them.
#[test]
fn a_server_that_took_part_in_a_recovery_has_shown_nothing() {
    for is_known_here in [true, false] {
        let mut cluster = left_open();
        if is_known_here {
            assert!(cluster.map.begin_recovery(BlockId(1), None, cluster.now));
            assert!(cluster.map.recover(BlockId(1), GenerationStamp(1002), None, None));
        }
        let agreed = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
        let places = [cluster.place(1), cluster.place(STRANGER)];
        cluster.map.end_recovery(BlockId(1));
        cluster.map.set_last_allocated(BlockId(1), agreed.generation_stamp);
        cluster.map.set_pipeline(agreed, &places);
        cluster.map.commit(agreed, cluster.now);
        cluster.map.complete(BlockId(1), cluster.now);
        cluster.map.recovered(agreed, &places, cluster.now);
        cluster.tell(STRANGER, &[received(agreed)]);
        assert_eq!(passed(&mut cluster), [] as [String; 0], "known here: {is_known_here}");
        assert_eq!(cluster.holders(1), [1, STRANGER]);
    }
}

/// The leader says how long the block is. A newcomer that is heard most often is not the first to be asked.
#[test]
fn a_known_server_leads_a_recovery_rather_than_a_newcomer() {
    let mut cluster = left_open();
    assert!(cluster.map.begin_recovery(BlockId(1), None, cluster.now));
    assert!(cluster.map.recover(BlockId(1), GenerationStamp(1002), None, None));
    assert!(!cluster.map.may_end_recovery(BlockId(1), &ip(STRANGER)));
    assert!(cluster.map.may_end_recovery(BlockId(1), &ip(1)));

    // An active that has taken over does not know which server was told to.
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(base::Epoch(2), cluster.now);
    let may_end = [2, STRANGER].map(|server| cluster.map.may_end_recovery(BlockId(1), &ip(server)));
    assert_eq!(may_end, [true, false]);
}

/// A server that has just come back may hold anything that it has not reported yet.
#[test]
fn a_server_that_has_not_reported_yet_receives_no_sample() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.start(4);
    claim(&mut cluster, &[block(1, 5)]);
    let everybody = [1, 2, 3, 4, STRANGER];
    assert_eq!(samples(&cluster.pass(700, &everybody)), []);
    let index = cluster.map.servers.find(&uuid(STRANGER)).unwrap();
    assert!(!cluster.map.servers.get(index).trial.is_believed(), "it can be asked later");
    cluster.report(4, &[finalized(block(1, 5))]);
    assert_eq!(passed(&mut cluster), [] as [String; 0]);

    // When it has reported that it lacks the block, it may receive it.
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.start(4);
    claim(&mut cluster, &[block(1, 5)]);
    cluster.report(4, &[]);
    assert_eq!(samples(&cluster.pass(700, &everybody)), [(STRANGER, 1, vec![uuid(4)])]);
}

/// A disk comes into a server where a sample is awaited, and has the block.
#[test]
fn a_disk_that_comes_while_a_sample_is_awaited_brings_no_proof() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    claim(&mut cluster, &[block(1, 5)]);
    let everybody = [1, 2, 3, 4, STRANGER];
    assert_eq!(samples(&cluster.pass(700, &everybody)), [(STRANGER, 1, vec![uuid(4)])]);
    cluster.beat_with(4, &two_storages(4));
    cluster.report_of(4, SECOND, &[finalized(block(1, 5))]);
    assert_eq!(passed(&mut cluster), [] as [String; 0]);
}

/// A server that is no newcomer sends a block to another one, and is slow.
#[test]
fn a_real_copy_that_comes_late_is_not_taken_for_a_sample() {
    for is_lost in [false, true] {
        let mut cluster = Cluster::with_servers(config(), 2);
        cluster.add_stored(block(1, 5), 2, &[1]);
        cluster.pass(600, &[1, 2]);
        let timeout_ms = config().pending_timeout_ms;
        claim(&mut cluster, &[block(1, 5)]);
        if is_lost {
            // The copy has come, and nothing was told of it yet.
            cluster.pass(config().dead_after_ms() + 2_000, &[1, STRANGER]);
            cluster.start(2);
            cluster.report(2, &[]);
        } else {
            cluster.pass(timeout_ms + 1_000, &[1, 2, STRANGER]);
        }
        cluster.pass(1_000, &[1, 2, STRANGER]);
        cluster.tell(2, &[received(block(1, 5))]);
        assert_eq!(passed(&mut cluster), [] as [String; 0], "lost: {is_lost}");
    }
}

/// A newcomer of which no sample is taken for the time being is not believed: a real server is not let go for it.
#[test]
fn a_newcomer_that_waits_for_others_copies_is_asked_later() {
    let timeout_ms = 500;
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: timeout_ms, ..config() }, 2);
    cluster.add_stored(block(1, 5), 2, &[1]);
    cluster.pass(600, &[1, 2]);
    claim(&mut cluster, &[block(1, 5)]);
    let everybody = [1, 2, STRANGER];
    assert_eq!(samples(&cluster.pass(2 * timeout_ms, &everybody)), []);
    cluster.map.order_admin_state(&uuid(1), AdminOrder::Decommission, cluster.now);
    assert_eq!(samples(&cluster.pass(2 * timeout_ms, &everybody)), []);
    assert_eq!(cluster.map.server(&uuid(1)).unwrap().admin_state, base::AdminState::DecommissionInProgress);
    cluster.map.order_admin_state(&uuid(1), AdminOrder::InService, cluster.now);
    assert_eq!(samples(&cluster.pass(60 * timeout_ms, &everybody))[0], (STRANGER, 1, vec![uuid(2)]));
}

/// A sample of one newcomer that comes late says nothing of another one.
#[test]
fn a_newcomers_late_sample_is_not_taken_for_anothers() {
    const SLOW: u16 = 8;
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.start(SLOW);
    cluster.report(SLOW, &[finalized(block(1, 5))]);
    let commands = cluster.pass(700, &[1, 2, SLOW]);
    assert_eq!(transfers(&commands), [(SLOW, 1, vec![uuid(2)])]);
    claim(&mut cluster, &[block(1, 5)]);
    // The real newcomer is away from now on; its copy is still under way.
    cluster.pass(config().pending_timeout_ms + 2_000, &[1, 2, STRANGER]);
    cluster.tell(2, &[received(block(1, 5))]);
    assert!(!passed(&mut cluster).contains(&format!("{}:9866", ip(STRANGER))));
}

/// While the sample was under way the real replicas were lost. Made-up ones do not make up for them, so the copy that has come stays.
#[test]
fn a_sample_that_is_needed_stays() {
    const REAL_NEWCOMER: u16 = 8;
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.start(REAL_NEWCOMER);
    cluster.report(REAL_NEWCOMER, &[finalized(block(1, 5))]);
    assert_eq!(transfers(&cluster.pass(600, &[1, 2, REAL_NEWCOMER])), [(REAL_NEWCOMER, 1, vec![uuid(2)])]);
    claim(&mut cluster, &[block(1, 5)]);
    for server in [1, REAL_NEWCOMER] {
        cluster.tell(server, &[Increment::Deleted(block(1, 5))]);
    }
    cluster.tell(2, &[received(block(1, 5))]);
    let commands = cluster.pass(3_000, &[1, 2, REAL_NEWCOMER, STRANGER]);
    assert!(!deletions(&commands).contains(&(2, 1)), "the only replica: {commands:?}");
}
