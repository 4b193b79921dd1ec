//! The standing of replicas, as it is told to those who check the file system.

use super::cluster::*;
use crate::*;
use base::BlockId;

fn standings(cluster: &Cluster, id: u64) -> Vec<(String, Standing)> {
    let block = cluster.map.standings(BlockId(id), cluster.now).unwrap();
    let mut found: Vec<_> = block
        .replicas
        .iter()
        .map(|replica| (replica.location.server.uuid().to_string(), replica.standing))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[test]
fn each_replica_is_told_with_what_it_counts_for() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    assert!(standings(&cluster, 1).iter().all(|(_, standing)| *standing == Standing::Live));
    cluster.map.report_bad(block(1, 5), &uuid(2), Some(&storage(2)), cluster.now);
    cluster.map.order_admin_state(&uuid(3), AdminOrder::Decommission, cluster.now);
    let leaving = Standing::OutOfService(AdminState::DecommissionInProgress);
    let damaged = Standing::Corrupt(CorruptReason::CorruptionReported);
    assert_eq!(standings(&cluster, 1), [(uuid(1), Standing::Live), (uuid(2), damaged), (uuid(3), leaving)]);
    let told = cluster.map.standings(BlockId(1), cluster.now).unwrap();
    assert!(told.is_queued && told.replication == 3 && told.state == BlockState::Complete);
    assert!(cluster.map.standings(BlockId(2), cluster.now).is_none());
}

#[test]
fn a_superfluous_replica_is_told_as_such_until_it_is_gone() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.tell(3, &[received(block(1, 5))]);
    let excess = |cluster: &Cluster| {
        let found = standings(cluster, 1);
        found.iter().filter(|(_, standing)| *standing == Standing::Excess).count()
    };
    assert_eq!((standings(&cluster, 1).len(), excess(&cluster)), (3, 1));
    let deleted = deletions(&cluster.pass(500, &[1, 2, 3]));
    for (server, _) in &deleted {
        cluster.tell(*server, &[Increment::Deleted(block(1, 5))]);
    }
    assert_eq!((deleted.len(), standings(&cluster, 1).len(), excess(&cluster)), (1, 2, 0));
}
