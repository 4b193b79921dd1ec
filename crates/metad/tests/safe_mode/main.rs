//! Safe mode refuses changes in HDFS's words. And where the blocks of a file are while nobody has said so yet.

#[path = "../cluster/mod.rs"]
mod cluster;
mod table;

use cluster::{
    Cluster,
    files::{self, DataServer, HOLDER, finished, numbered, replica},
    refused, set_safe_mode, until,
};
use proto::{
    exception::{self, IO, SAFE_MODE},
    hdfs as p, protocol,
};
use rpc::{CallError, Client};
use std::collections::BTreeMap;
use table::Row;

async fn told(client: &Client, row: &Row) -> (String, String) {
    match client.call_encoded(row.method, &row.request).await {
        Ok(_) => Default::default(),
        Err(CallError::Remote { class, message, .. }) => (class, message),
        Err(other) => panic!("{}: {other}", row.method),
    }
}

async fn check_table(cluster: &Cluster, active: u32) {
    let alice = files::files(cluster, active);
    let bob = cluster.client_as(active, protocol::CLIENT_NAMENODE, "bob");
    set_safe_mode(&alice, p::SafeModeActionProto::SafemodeEnter).await;
    for row in table::rows() {
        assert_eq!(told(&alice, &row).await, row.superuser.words(), "{} by a superuser", row.method);
        assert_eq!(told(&bob, &row).await, row.other.words(), "{} by another", row.method);
    }
    set_safe_mode(&alice, p::SafeModeActionProto::SafemodeLeave).await;
    assert!(cluster::try_mkdirs(&alice, "/d").await.unwrap(), "and nothing is left of it");
}

/// The sentences of a group, and which of them ask for patience, are told in `serving::admission`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn safe_mode_by_an_operator_refuses_in_hdfs_s_words() {
    let (cluster, active) = Cluster::in_sync(1).await;
    check_table(&cluster, active).await;
    cluster.end().await;
}

async fn locate(client: &Client, path: &str) -> Result<p::GetBlockLocationsResponseProto, CallError> {
    let request = p::GetBlockLocationsRequestProto { src: path.into(), offset: 0, length: 100 };
    client.call("getBlockLocations", &request).await
}

/// The replicas that a listing names of the one file in the root: it is not refused for having none.
async fn listed(client: &Client) -> usize {
    let request =
        p::GetListingRequestProto { src: "/".into(), start_after: Default::default(), need_location: true };
    let listing: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
    let entries = listing.dir_list.unwrap().partial_listing;
    let file = entries.iter().find(|entry| entry.path == "whole").unwrap();
    file.locations.as_ref().unwrap().blocks[0].locs.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_reads_a_block_in_safe_mode_before_a_replica_is_reported() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let server = DataServer::register(&cluster, 3).await;
    finished(&cluster, &server, &files::files(&cluster, active), "/whole", 5).await;
    // There are two blocks: with one, safe mode would wait for none, because the share is rounded down.
    finished(&cluster, &server, &files::files(&cluster, active), "/another", 20).await;
    let block = {
        let found = locate(&files::files(&cluster, active), "/whole").await.unwrap();
        found.locations.unwrap().blocks[0].b.clone()
    };
    let empty = files::create_request("/empty", HOLDER);
    let _: p::CreateResponseProto =
        files::files(&cluster, active).call_as(numbered(40), "create", &empty).await.unwrap();
    cluster.wait_until_equal().await;

    // All members begin anew. The one that leads then knows of the block, and of no replica.
    cluster.stop_all().await;
    cluster.restart_all().await;
    let active = cluster.wait_for_active(&[]).await;
    let reader = files::files(&cluster, active);
    let text = refused(locate(&reader, "/whole").await, exception::RETRIABLE);
    let begin = format!(
        "{SAFE_MODE}: Zero blocklocations for /whole. Name node is in safe mode.\nThe reported blocks 0 "
    );
    assert!(text.starts_with(&begin), "{text}");
    assert_eq!(listed(&reader).await, 0);
    // Nor does anybody know yet which blocks are lost: an empty list would say that none is.
    let corrupt = p::ListCorruptFileBlocksRequestProto { path: "/".into(), cookie: None };
    let lost: Result<p::ListCorruptFileBlocksResponseProto, CallError> =
        reader.call_as(numbered(41), "listCorruptFileBlocks", &corrupt).await;
    let text = refused(lost, IO);
    assert!(text.contains("replication queues have not been initialized"), "{text}");
    // An empty file has no places, and a file that does not exist is told of as missing.
    locate(&reader, "/empty").await.unwrap();
    refused(locate(&reader, "/none").await, exception::FILE_NOT_FOUND);

    // An operator's safe mode does not hide what is known.
    set_safe_mode(&reader, p::SafeModeActionProto::SafemodeEnter).await;
    let again = DataServer::register(&cluster, 3).await;
    again.received(&cluster, &[active], replica(&block)).await;
    let found = locate(&reader, "/whole").await.unwrap();
    assert_eq!(found.locations.unwrap().blocks[0].locs.len(), 1);
    assert_eq!(listed(&reader).await, 1);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_active_hands_over_to_a_member_that_knows_the_places_of_blocks() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let server = DataServer::register(&cluster, 3).await;
    finished(&cluster, &server, &files::files(&cluster, active), "/one", 5).await;
    finished(&cluster, &server, &files::files(&cluster, active), "/two", 20).await;
    cluster.wait_until_equal().await;

    // Of two standbys that are alike, the one with the higher number would be chosen. That one has just begun anew, and
    // no data server has found it yet.
    let [other, unready] = cluster.others(active)[..] else { panic!("they are three") };
    cluster.stop(unready).await;
    cluster.restart(unready).await;
    cluster.wait_in_sync(active, 3).await;
    assert!(cluster.server(unready).in_safe_mode());
    let said = || {
        let peers = cluster.replica(active).status().peers;
        peers.into_iter().map(|peer| (peer.member.0, peer.is_ready)).collect::<BTreeMap<_, _>>()
    };
    let expected = BTreeMap::from([(other, true), (unready, false)]);
    until("the active has heard who is ready", async || said() == expected).await;
    cluster.stop(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    assert_eq!(next, other);
    let reader = files::files(&cluster, next);
    assert_eq!(locate(&reader, "/one").await.unwrap().locations.unwrap().blocks[0].locs.len(), 1);
    cluster.end().await;
}
