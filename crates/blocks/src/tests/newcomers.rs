//! Servers that have not shown yet that they store anything, and what becomes of what they claim.

use super::cluster::*;
use crate::*;
use base::BlockId;

const REAL: [u16; 3] = [1, 2, 3];

/// Every server that is named claims these blocks.
fn claim(cluster: &mut Cluster, servers: &[u16], ids: std::ops::RangeInclusive<u64>) {
    let rows: Vec<_> = ids.map(|id| finalized(block(id, 5))).collect();
    for server in servers {
        cluster.start(*server);
        cluster.report(*server, &rows);
    }
}

/// Deletions that were ordered of servers up to `last`.
fn of_real(commands: &[(u16, Command)], last: u16) -> Vec<(u16, u64)> {
    deletions(commands).into_iter().filter(|(server, _)| *server <= last).collect()
}

#[test]
fn made_up_servers_that_claim_every_block_have_no_real_replica_deleted() {
    let mut cluster = Cluster::with_newcomers(config(), 3);
    for id in 1..=40 {
        cluster.add_stored(block(id, 5), 3, &REAL);
    }
    claim(&mut cluster, &[4, 5, 6], 1..=40);
    let commands = cluster.pass(3_000, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(of_real(&commands, 3), []);
    assert_eq!(deletions(&commands).len(), 120, "nobody could prove what they say: theirs go");
}

#[test]
fn after_a_restart_nobody_is_known_and_nothing_goes() {
    let mut cluster = Cluster::empty(config());
    for id in 1..=40 {
        cluster.add_complete(block(id, 5), 3);
    }
    cluster.map.activate(cluster.now);
    claim(&mut cluster, &[4, 5, 6, 1, 2, 3], 1..=40);
    assert!(!cluster.map.in_safe_mode());
    let everybody = [1, 2, 3, 4, 5, 6];
    assert_eq!(deletions(&cluster.pass(3_000, &everybody)), []);

    // Clients write: those that store what they write are known again. The others never are.
    cluster.add_stored(block(50, 5), 3, &REAL);
    let commands = cluster.pass(3_000, &everybody);
    assert_eq!(of_real(&commands, 3), []);
    assert_eq!(deletions(&commands).len(), 120);
}

#[test]
fn a_server_is_known_by_what_a_client_wrote_through_it_in_any_order_of_reports() {
    let mut cluster = Cluster::with_newcomers(config(), 4);
    let targets = [cluster.place(1), cluster.place(2)];
    let open = block(1, 0);
    let under = BlockState::UnderConstruction;
    cluster.map.add_block(open, base::InodeId(16_386), 2, under, &targets, cluster.now);
    cluster.tell(1, &[received(block(1, 5))]);
    // It was not in the pipeline, but says that it has the block.
    cluster.tell(3, &[received(block(1, 5))]);
    cluster.map.commit(block(1, 5), cluster.now);
    assert_eq!(cluster.map.take_events().passed, ["10.0.0.1:9866"]);
    cluster.tell(2, &[received(block(1, 5))]);
    assert_eq!(cluster.map.take_events().passed, ["10.0.0.2:9866"]);
    cluster.tell(4, &[received(block(1, 5))]);
    assert!(cluster.map.take_events().passed.is_empty());
}

#[test]
fn a_newcomer_passes_by_a_sample_which_goes_again() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &REAL);
    claim(&mut cluster, &[5], 1..=1);
    let all = [1, 2, 3, 4, 5];
    let commands = cluster.pass(200, &all);
    assert_eq!(
        transfers(&commands),
        [(5, 1, vec![uuid(4)])],
        "a server that lacks it shall have it from there"
    );
    assert_eq!(deletions(&commands), [], "nothing is decided meanwhile");
    cluster.tell(4, &[received(block(1, 5))]);
    assert_eq!(cluster.map.take_events().passed, ["10.0.0.5:9866"]);
    let gone = deletions(&cluster.pass(500, &all));
    assert!(gone.contains(&(4, 1)) && gone.len() == 2, "the sample, and one that is too much: {gone:?}");

    // It is known at its address from now on, whatever becomes of it.
    cluster.pass(4_000, &[1, 2, 3, 4]);
    claim(&mut cluster, &[5], 1..=1);
    assert!(transfers(&cluster.pass(500, &all)).is_empty());
}

/// The owner of the file asks for more copies, which real servers send. One that goes where the sample is awaited would pass for it.
#[test]
fn a_copy_that_a_real_server_sends_is_not_taken_for_a_sample() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &REAL);
    claim(&mut cluster, &[5], 1..=1);
    let all = [1, 2, 3, 4, 5];
    assert_eq!(transfers(&cluster.pass(200, &all)), [(5, 1, vec![uuid(4)])]);
    cluster.map.set_replication(BlockId(1), 5, cluster.now);
    let copies = transfers(&cluster.pass(700, &all));
    assert!(copies.iter().all(|(_, _, targets)| !targets.contains(&uuid(4))), "{copies:?}");
}

/// The owner writes the file on, through the server where the sample is awaited.
#[test]
fn what_a_client_writes_is_not_taken_for_a_sample() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &REAL);
    claim(&mut cluster, &[5], 1..=1);
    let all = [1, 2, 3, 4, 5];
    assert_eq!(transfers(&cluster.pass(200, &all)), [(5, 1, vec![uuid(4)])]);
    cluster.map.reopen(block(1, 5), &[]);
    cluster.tell(4, &[received(block(1, 5))]);
    assert_eq!(cluster.map.take_events().passed, [] as [String; 0]);
}

#[test]
fn what_a_newcomer_cannot_send_counts_for_nothing() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 1_000, ..config() }, 5);
    for id in 1..=9 {
        cluster.add_stored(block(id, 5), 3, &REAL);
    }
    claim(&mut cluster, &[6], 1..=9);
    // Server 1 is lost: with the newcomer's there seem to be three replicas.
    let all = [2, 3, 4, 5, 6];
    let commands = cluster.pass(2_900, &all);
    assert!(transfers(&commands).iter().all(|(source, ..)| *source == 6), "{commands:?}");
    assert_eq!(of_real(&commands, 5), []);
    let commands = cluster.pass(3_000, &all);
    assert_eq!(cluster.map.take_events().doubted, ["10.0.0.6:9866"]);
    let mut copied: Vec<u64> = transfers(&commands).iter().map(|(_, id, _)| *id).collect();
    copied.sort_unstable();
    copied.dedup();
    assert_eq!(copied, (1..=9).collect::<Vec<_>>(), "they are copied from those that have them");
    assert!(transfers(&commands).iter().filter(|(source, ..)| [2, 3].contains(source)).count() >= 9);
}

#[test]
fn real_replicas_said_to_be_rotten_stay_while_newcomers_claim_good_ones() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &REAL);
    claim(&mut cluster, &[4, 5, 6], 1..=1);
    for server in REAL {
        cluster.map.report_bad(block(1, 5), &uuid(server), None, cluster.now);
    }
    assert_eq!(of_real(&cluster.pass(3_000, &[1, 2, 3, 4, 5, 6]), 3), []);
    assert!(cluster.map.facts(BlockId(1)).is_some());
}

#[test]
fn readers_are_sent_to_newcomers_last() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    claim(&mut cluster, &[3], 1..=1);
    let reader = Reader { host: Some("10.0.0.3") };
    for chance in 0..20 {
        let located = cluster.map.locations(BlockId(1), reader, chance, cluster.now).unwrap();
        assert_eq!(&**located.locations[2].server.uuid(), "uuid-3");
    }
}

/// A newcomer claims one block, and the sample of it does not come. It is asked for again until the newcomer is doubted, so that the block does not
/// stay undecided for ever.
#[test]
fn a_newcomer_without_candidates_is_not_on_trial_for_ever() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 500, ..config() }, 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.start(5);
    cluster.report(5, &[finalized(block(1, 5))]);
    // The sample is ordered, and does not arrive.
    let asked = transfers(&cluster.pass(2_000, &[1, 2, 3, 5]));
    assert!(!asked.is_empty());
    let later = cluster.pass(20_000, &[1, 2, 3, 5]);
    cluster.start(5); // not even a restart helps
    cluster.report(5, &[finalized(block(1, 5))]);
    let still_later = cluster.pass(20_000, &[1, 2, 3, 5]);
    let nothing = [later, still_later].iter().all(|it| deletions(it).is_empty() && transfers(it).is_empty());
    assert!(!nothing, "it is never asked again, and what is too much never goes");
}

/// A data server chooses the disk itself: the plan names one of them, and a newcomer has shown what it stores on any.
#[test]
fn a_server_of_a_pipeline_is_known_whichever_of_its_disks_has_the_block() {
    for late in [false, true] {
        let mut cluster = Cluster::with_newcomers(config(), 3);
        for server in 1..=3 {
            cluster.beat_with(server, &two_storages(server));
        }
        let targets = [cluster.place(1), cluster.place(2)];
        let under = BlockState::UnderConstruction;
        cluster.map.add_block(block(1, 0), base::InodeId(16_386), 2, under, &targets, cluster.now);
        cluster.tell(1, &[received(block(1, 5))]);
        // It was not in the pipeline, but says that it has the block.
        cluster.tell_of(3, SECOND, &[received(block(1, 5))]);
        if !late {
            cluster.tell_of(2, SECOND, &[received(block(1, 5))]);
        }
        cluster.map.commit(block(1, 5), cluster.now);
        if late {
            cluster.tell_of(2, SECOND, &[received(block(1, 5))]);
        }
        assert_eq!(cluster.map.take_events().passed, ["10.0.0.1:9866", "10.0.0.2:9866"], "late: {late}");
    }
}
