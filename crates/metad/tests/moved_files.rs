//! Files with blocks move between the homes of two groups, on real data servers.

mod cluster;

use base::GroupId;
use blockstore::VolumeConfig;
use client::{Config, CreateOptions, FileSystem};
use cluster::{Cluster, Plan, page, until};
use datad::{DataConfig, DataServer};
use env::Env;
use proto::hdfs as p;
use std::net::SocketAddr;
use tempfile::TempDir;

const SECOND: GroupId = GroupId(2);
const ELEVENTH: u32 = 11;

/// Two groups, two data servers, and a directory of each home.
struct Two {
    first: Cluster,
    second: Cluster,
    data: Vec<(DataServer, TempDir)>,
    /// Of the first group, and of the second.
    directories: [String; 2],
}

impl Two {
    async fn start(members: u32) -> Self {
        let (first, active) = Cluster::in_sync(members).await;
        let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, members).await.in_sync().await;
        first.give_slots(active, SECOND).await;
        let mut found = [None, None];
        for number in 0.. {
            let path = format!("/d{number}");
            first.mkdirs(active, &path).await;
            let open = p::SetPermissionRequestProto {
                src: path.clone(),
                permission: p::FsPermissionProto { perm: 0o777 },
            };
            let _: p::SetPermissionResponseProto =
                first.client(active).call("setPermission", &open).await.unwrap();
            let home = first.server(active).home_of(&path).expect("it is there");
            found[home.0 as usize - 1].get_or_insert(path);
            if found.iter().all(Option::is_some) {
                break;
            }
        }
        let mut two = Self { first, second, data: Vec::new(), directories: found.map(Option::unwrap) };
        for _ in 0..2 {
            two.add_data_server().await;
        }
        two
    }

    async fn add_data_server(&mut self) {
        let directory = tempfile::tempdir().unwrap();
        let volume: VolumeConfig = directory.path().to_str().unwrap().parse().unwrap();
        let addresses = self.doors().iter().map(SocketAddr::to_string).collect();
        let config = DataConfig { heartbeat_interval_ms: 100, ..DataConfig::new(vec![volume], addresses) };
        let server = DataServer::start(Env::production(), config).await.unwrap();
        let all = self.doors().len();
        let all = format!("\"metadata_servers\":\"{all} of {all}\"");
        until("both groups know the data server", async || {
            page(server.http_addr(), "/health").await.unwrap().contains(&all)
        })
        .await;
        self.data.push((server, directory));
    }

    fn doors(&self) -> Vec<SocketAddr> {
        let of = |cluster: &Cluster| -> Vec<SocketAddr> {
            cluster.running().into_iter().map(|member| cluster.address(member)).collect()
        };
        [of(&self.first), of(&self.second)].concat()
    }

    fn file_systems(&self) -> Vec<FileSystem> {
        let connect =
            |door: SocketAddr| FileSystem::connect(&format!("hdfs://{door}"), &Config::new()).unwrap();
        self.doors().into_iter().map(connect).collect()
    }

    fn replicas(&self) -> usize {
        self.data.iter().map(|(server, _)| server.state().replica_count()).sum()
    }

    async fn end(self) {
        for (server, _) in self.data {
            server.shutdown().await;
        }
        self.second.end().await;
        self.first.end().await;
    }
}

async fn write(fs: &FileSystem, path: &str, bytes: &[u8]) {
    let options =
        CreateOptions { replication: Some(1), block_size: Some(1 << 20), ..CreateOptions::default() };
    let mut writer = fs.create(path, &options).await.unwrap();
    writer.write(bytes).await.unwrap();
    writer.close().await.unwrap();
}

async fn append(fs: &FileSystem, path: &str, bytes: &[u8]) {
    let mut writer = fs.append(path, false).await.unwrap();
    writer.write(bytes).await.unwrap();
    writer.close().await.unwrap();
}

async fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    fs.open(path).await.unwrap().read_at(0, usize::MAX).await.unwrap().to_vec()
}

fn some_bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 7 + at / 1_000 + seed) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_is_read_written_on_and_deleted_wherever_it_has_moved() {
    let two = Two::start(2).await;
    let all = two.file_systems();
    for (number, from) in [0, 1].into_iter().enumerate() {
        let (home, away) = (&two.directories[from], &two.directories[1 - from]);
        let (here, there) = (format!("{home}/f"), format!("{away}/g"));
        let fs = &all[number];
        // A block and a half, and a file without any.
        let mut bytes = some_bytes(1_500_000, number);
        write(fs, &here, &bytes).await;
        write(fs, &format!("{home}/empty"), b"").await;
        fs.rename(&here, &there, false).await.unwrap();
        fs.rename(&format!("{home}/empty"), &format!("{away}/empty"), false).await.unwrap();
        for fs in &all {
            assert!(fs.open(&here).await.is_err(), "it is there no more");
            assert_eq!(read(fs, &format!("{away}/empty")).await, b"");
            assert!(read(fs, &there).await == bytes, "by each door");
            let listed: p::GetListingResponseProto = listing_with_places(&two, away).await;
            let files = listed.dir_list.unwrap().partial_listing;
            let blocks =
                &files.iter().find(|file| &*file.path == b"g").unwrap().locations.as_ref().unwrap().blocks;
            assert_eq!(blocks.len(), 2);
            assert!(blocks.iter().all(|block| block.locs.len() == 1 && !block.corrupt));
            let batched = batched_with_places(&two, &[home, away]).await;
            assert_eq!(places(&batched.listings[1].partial_listing), places(&files), "as by itself");
        }
        // It is written on in the pool of its new home; the blocks that it has stay where they are.
        append(&all[2], &there, b"and more").await;
        append(&all[1], &there, b" of it").await;
        bytes.extend_from_slice(b"and more of it");
        assert!(read(&all[0], &there).await == bytes);
        let pools: Vec<String> = all[0]
            .block_locations(&there, 0, u64::MAX >> 1)
            .await
            .unwrap()
            .blocks
            .into_iter()
            .map(|block| block.b.pool_id)
            .collect();
        assert_eq!(pools.len(), 3, "{pools:?}");
        assert!(pools[0] == pools[1] && pools[1] != pools[2], "{pools:?}");
        // More replicas, of blocks in both pools.
        let before = two.replicas();
        assert!(all[3].set_replication(&there, 2).await.unwrap());
        until("all blocks have two replicas", async || two.replicas() == before + 3).await;
        // And back, with a block of the other group this time.
        all[3].rename(&there, &here, false).await.unwrap();
        for fs in &all {
            assert!(read(fs, &here).await == bytes);
        }
        append(&all[0], &here, b"!").await;
        bytes.push(b'!');
        assert!(read(&all[2], &here).await == bytes);
        assert!(all[2].delete(&here, false).await.unwrap());
        assert!(all[2].delete(&format!("{away}/empty"), false).await.unwrap());
        until("the replicas in both pools are gone", async || two.replicas() == 0).await;
    }
    two.end().await;
}

/// Files with blocks in the pools of both groups become one file, in either home.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_from_other_homes_are_joined() {
    let two = Two::start(2).await;
    let all = two.file_systems();
    for (number, at) in [0, 1].into_iter().enumerate() {
        let (home, away) = (&two.directories[at], &two.directories[1 - at]);
        let fs = &all[3 * number];
        let parts: Vec<Vec<u8>> = (0..3).map(|part| some_bytes(300_000 + part, part)).collect();
        write(fs, &format!("{home}/target"), &parts[0]).await;
        write(fs, &format!("{away}/far"), &parts[1]).await;
        fs.rename(&format!("{away}/far"), &format!("{home}/far"), false).await.unwrap();
        write(fs, &format!("{home}/near"), &parts[2]).await;
        let (target, joined) = (format!("{home}/target"), format!("{away}/joined"));
        let sources = [format!("{home}/far"), format!("{home}/near")];
        let refused = fs.concat(&target, std::slice::from_ref(&joined)).await.unwrap_err().to_string();
        assert!(refused.contains("not in the same directory"), "{refused}");
        fs.concat(&target, &sources).await.unwrap();
        let mut bytes = parts.concat();
        for fs in &all {
            assert!(read(fs, &target).await == bytes, "by each door");
            assert!(fs.open(&sources[0]).await.is_err(), "it is in the target now");
        }
        append(&all[1], &target, b"and more").await;
        bytes.extend_from_slice(b"and more");
        // Both groups keep what the target wants of its blocks.
        assert_eq!(two.replicas(), 3);
        assert!(all[2].set_replication(&target, 2).await.unwrap());
        until("all blocks have two replicas", async || two.replicas() == 6).await;
        // The file may go once the other group has heard whose blocks it has.
        until("the file has moved", async || all[0].rename(&target, &joined, false).await.is_ok()).await;
        assert!(read(&all[3], &joined).await == bytes);
        assert!(all[2].delete(&joined, false).await.unwrap());
        until("the replicas in both pools are gone", async || two.replicas() == 0).await;
    }
    two.end().await;
}

/// The listing of a directory with the places of all blocks.
async fn listing_with_places(two: &Two, path: &str) -> p::GetListingResponseProto {
    let request =
        p::GetListingRequestProto { src: path.into(), start_after: b"".to_vec().into(), need_location: true };
    let member = two.second.running()[0];
    two.second.client(member).call("getListing", &request).await.unwrap()
}

/// The blocks of all files, and the servers that have them.
fn places(files: &[p::HdfsFileStatusProto]) -> Vec<(u64, Vec<String>)> {
    let of_block = |block: &p::LocatedBlockProto| {
        (block.b.block_id, block.locs.iter().map(|server| server.id.datanode_uuid.clone()).collect())
    };
    let of_file = |file: &p::HdfsFileStatusProto| -> Vec<(u64, Vec<String>)> {
        file.locations.as_ref().expect("they were asked for").blocks.iter().map(of_block).collect()
    };
    files.iter().flat_map(of_file).collect()
}

async fn batched_with_places(two: &Two, paths: &[&String]) -> p::GetBatchedListingResponseProto {
    let request = p::GetBatchedListingRequestProto {
        paths: paths.iter().map(|path| (*path).clone()).collect(),
        need_location: true,
        ..Default::default()
    };
    let member = two.second.running()[1];
    two.second.client(member).call("getBatchedListing", &request).await.unwrap()
}

/// Orders to another group wait while that group is away, and are carried out once when it is back, whoever leads then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_go_once_the_group_that_has_them_is_back() {
    let mut two = Two::start(3).await;
    let [home, away] = two.directories.clone();
    let fs = two.file_systems().remove(0);
    for number in 0..5 {
        write(&fs, &format!("{home}/f{number}"), &some_bytes(10_000, number)).await;
        write(&fs, &format!("{away}/f{number}"), &some_bytes(10_000, number)).await;
    }
    for number in 0..5 {
        fs.rename(&format!("{away}/f{number}"), &format!("{home}/g{number}"), false).await.unwrap();
    }
    // The active of the second group, which has the blocks, is killed, and then that of the first group, which has sent the orders perhaps.
    for number in 0..5 {
        if number == 1 {
            let active = two.second.wait_for_active(&[]).await;
            two.second.kill(active).await;
            // A member that is started again has another address, which the data servers are not told of: it must not lead.
            two.second.wait_for_active(&[active]).await;
            two.second.restart(active).await;
        }
        if number == 3 {
            let active = two.first.wait_for_active(&[]).await;
            two.first.kill(active).await;
            two.first.wait_for_active(&[active]).await;
            two.first.restart(active).await;
        }
        let fs = two.file_systems().remove(0);
        assert!(fs.delete(&format!("{home}/g{number}"), false).await.unwrap());
    }
    until("the replicas of the deleted files are gone", async || two.replicas() == 5).await;
    let fs = two.file_systems().pop().unwrap();
    for number in 0..5 {
        assert!(read(&fs, &format!("{home}/f{number}")).await == some_bytes(10_000, number));
    }
    two.end().await;
}
