//! One real data server that serves several block pools: those of two independent namespaces of one cluster, as in a
//! federation of HDFS, and those of two groups of one namespace.

mod cluster;

use base::GroupId;
use blockstore::VolumeConfig;
use client::{Config, CreateOptions, FileSystem, Settings};
use cluster::{Cluster, Plan, free_address, page, until};
use datad::{DataConfig, DataServer};
use env::Env;
use proto::hdfs::ExtendedBlockProto;
use std::{net::SocketAddr, path::Path};

/// A namespace of its own with one metadata server, which keeps its address when it comes back.
async fn namespace(cluster_id: &'static str) -> Cluster {
    let address = free_address();
    let user = Settings::new(&Config::new()).unwrap().user;
    let plan = Plan::alone().named(cluster_id).adjusted(move |_, config| {
        config.rpc_address = address;
        config.limits.access.superuser = user.as_str().into();
    });
    plan.start().await
}

fn files(of: &Cluster) -> FileSystem {
    FileSystem::connect(&format!("hdfs://{}", of.address(1)), &Config::new()).unwrap()
}

async fn data_server(directory: &Path, metadata_servers: Vec<SocketAddr>) -> DataServer {
    let volume: VolumeConfig = directory.to_str().unwrap().parse().unwrap();
    let addresses = metadata_servers.iter().map(ToString::to_string).collect();
    let config = DataConfig { heartbeat_interval_ms: 100, ..DataConfig::new(vec![volume], addresses) };
    DataServer::start(Env::production(), config).await.unwrap()
}

/// Waits until the data server says this of itself.
async fn wait_for_health(server: &DataServer, parts: &[&str]) {
    until(&format!("the health says {parts:?}"), async || {
        let health = page(server.http_addr(), "/health").await.unwrap();
        parts.iter().all(|part| health.contains(part))
    })
    .await;
}

async fn write(fs: &FileSystem, path: &str, bytes: &[u8]) {
    let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
    let mut writer = fs.create(path, &options).await.unwrap();
    writer.write(bytes).await.unwrap();
    writer.close().await.unwrap();
}

async fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    fs.open(path).await.unwrap().read_at(0, usize::MAX).await.unwrap().to_vec()
}

async fn first_block(fs: &FileSystem, path: &str) -> ExtendedBlockProto {
    fs.block_locations(path, 0, 1).await.unwrap().blocks.remove(0).b
}

/// Bytes that say where in the file they are, and of which file.
fn some_bytes(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|at| (at / 251 + at % 251 * 7) as u8 ^ seed).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_namespaces_keep_their_files_on_one_data_server() {
    let (red, blue) = (namespace("CID-federated").await, namespace("CID-federated").await);
    let directory = tempfile::tempdir().unwrap();
    let addresses = vec![red.address(1), blue.address(1)];
    let server = data_server(directory.path(), addresses.clone()).await;
    wait_for_health(&server, &["200 OK", "\"metadata_servers\":\"2 of 2\"", "\"pools\":\"2 of 2\""]).await;

    let (in_red, in_blue) = (files(&red), files(&blue));
    let (red_bytes, blue_bytes) = (some_bytes(300_000, 1), some_bytes(500_000, 2));
    write(&in_red, "/f", &red_bytes).await;
    write(&in_blue, "/f", &blue_bytes).await;
    // The first blocks of two new namespaces have one number and one stamp. Only the pool tells them apart.
    let (of_red, of_blue) = (first_block(&in_red, "/f").await, first_block(&in_blue, "/f").await);
    assert_eq!((of_red.block_id, of_red.generation_stamp), (of_blue.block_id, of_blue.generation_stamp));
    assert_ne!(of_red.pool_id, of_blue.pool_id);
    assert!(read(&in_red, "/f").await == red_bytes && read(&in_blue, "/f").await == blue_bytes);

    // Both grow, under new stamps that are equal again.
    for (fs, tail) in [(&in_red, b"red"), (&in_blue, b"blu")] {
        let mut writer = fs.append("/f", false).await.unwrap();
        writer.write(tail).await.unwrap();
        writer.close().await.unwrap();
    }
    assert!(read(&in_red, "/f").await == [&red_bytes[..], b"red"].concat());
    assert!(read(&in_blue, "/f").await == [&blue_bytes[..], b"blu"].concat());

    // A restart finds both pools.
    server.shutdown().await;
    let server = data_server(directory.path(), addresses).await;
    wait_for_health(&server, &["\"pools\":\"2 of 2\"", "\"replicas\":\"2\""]).await;
    let (in_red, in_blue) = (files(&red), files(&blue));
    assert!(read(&in_red, "/f").await == [&red_bytes[..], b"red"].concat());
    assert!(read(&in_blue, "/f").await == [&blue_bytes[..], b"blu"].concat());

    // What is deleted in the one stays in the other.
    assert!(in_red.delete("/f", false).await.unwrap());
    let replicas = |pool: &str| server.state().pool(pool).unwrap().store.replica_count();
    until("the replica of the one is gone", async || replicas(&of_red.pool_id) == 0).await;
    assert_eq!(replicas(&of_blue.pool_id), 1);
    assert!(read(&in_blue, "/f").await == [&blue_bytes[..], b"blu"].concat());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_namespace_goes_on_while_the_metadata_server_of_the_other_is_away() {
    let (mut red, blue) = (namespace("CID-federated").await, namespace("CID-federated").await);
    let directory = tempfile::tempdir().unwrap();
    let addresses = vec![red.address(1), blue.address(1)];
    let server = data_server(directory.path(), addresses.clone()).await;
    wait_for_health(&server, &["\"pools\":\"2 of 2\""]).await;
    let (red_bytes, blue_bytes) = (some_bytes(100_000, 1), some_bytes(200_000, 2));
    write(&files(&red), "/f", &red_bytes).await;
    let red_pool = first_block(&files(&red), "/f").await.pool_id;

    red.stop(1).await;
    let alone = format!("\"pools_alone\":\"{red_pool}\"");
    wait_for_health(&server, &["200 OK", "\"state\":\"serving in part\"", "\"pools\":\"1 of 2\"", &alone])
        .await;
    let metrics = page(server.http_addr(), "/metrics").await.unwrap();
    assert!(
        metrics.contains("clover_data_pools 2") && metrics.contains("clover_data_pools_alone 1"),
        "{metrics}"
    );
    write(&files(&blue), "/f", &blue_bytes).await;
    assert!(read(&files(&blue), "/f").await == blue_bytes);

    // Nor does it matter to the other at a start.
    server.shutdown().await;
    let server = data_server(directory.path(), addresses).await;
    server.wait_registered().await.unwrap();
    assert!(read(&files(&blue), "/f").await == blue_bytes);
    assert!(server.state().pool(&red_pool).is_err(), "nobody has asked for it yet");

    red.restart(1).await;
    wait_for_health(&server, &["200 OK", "\"pools\":\"2 of 2\"", "\"replicas\":\"2\""]).await;
    assert!(read(&files(&red), "/f").await == red_bytes);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_namespace_of_another_cluster_is_refused_and_the_others_go_on() {
    let (red, blue) = (namespace("CID-federated").await, namespace("CID-federated").await);
    let foreign = namespace("CID-foreign").await;
    let directory = tempfile::tempdir().unwrap();
    // It is red's from here on.
    let server = data_server(directory.path(), vec![red.address(1)]).await;
    server.wait_registered().await.unwrap();
    server.shutdown().await;
    let addresses = vec![foreign.address(1), red.address(1), blue.address(1)];
    let server = data_server(directory.path(), addresses).await;
    let refused = format!("refused_by_{}", foreign.address(1));
    let why = "clusterID is CID-federated, but the metadata server's is CID-foreign";
    wait_for_health(&server, &["200 OK", "\"pools\":\"2 of 2\"", &refused, why]).await;
    for of in [&red, &blue] {
        let bytes = some_bytes(100_000, 3);
        write(&files(of), "/f", &bytes).await;
        assert!(read(&files(of), "/f").await == bytes);
        assert_eq!(of.server(1).live_data_servers(), 1);
    }
    assert_eq!(foreign.server(1).live_data_servers(), 0);
    server.shutdown().await;
}

/// The further group holds no files yet. Its members know the data server, and have its report, in a pool of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_data_server_serves_the_pools_of_two_groups_of_one_namespace() {
    let (first, active) = Cluster::in_sync(2).await;
    let (mut second, active_of_second) = Plan::further_group(&first, GroupId(2), 11, 3).await.in_sync().await;
    let directory = tempfile::tempdir().unwrap();
    let members = |of: &Cluster| of.members().map(|member| of.address(member)).collect::<Vec<_>>();
    let addresses = [members(&second), members(&first)].concat();
    let server = data_server(directory.path(), addresses).await;
    wait_for_health(&server, &["200 OK", "\"metadata_servers\":\"5 of 5\"", "\"pools\":\"2 of 2\""]).await;
    for of in [&first, &second] {
        for member in of.members() {
            assert_eq!(of.server(member).live_data_servers(), 1);
        }
    }
    let led_by = |cluster: &Cluster, member: u32| {
        let pool = server.state().pool(&cluster.server(member).cluster().block_pool).ok()?;
        let obeyed = pool.member(pool.leadership.active()?);
        (obeyed.client.address() == cluster.address(member).to_string()).then_some(())
    };
    until("each group's active is obeyed in its pool", async || {
        led_by(&first, active).and(led_by(&second, active_of_second)).is_some()
    })
    .await;

    // A takeover in the one group is none in the other.
    second.kill(active_of_second).await;
    let next = second.wait_for_active(&[active_of_second]).await;
    until("the new active is obeyed", async || led_by(&second, next).is_some()).await;
    assert!(led_by(&first, active).is_some());
    wait_for_health(&server, &["200 OK", "\"metadata_servers\":\"4 of 5\"", "\"pools\":\"2 of 2\""]).await;
    server.shutdown().await;
    second.end().await;
    first.end().await;
}
