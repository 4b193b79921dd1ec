//! Whole data servers whose scanners find what has happened to their replicas, and a metadata server that has it healed.

mod cluster;

use base::{Block, BlockId, GenerationStamp};
use blockstore::{
    Checksum, ScanConfig, VolumeConfig,
    layout::{Place, VolumePaths},
    meta_file,
};
use client::{Config, CreateOptions, FileSystem, Settings};
use cluster::{Cluster, Plan, page, until};
use datad::{DataConfig, DataServer};
use env::Env;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

struct Story {
    cluster: Cluster,
    files: FileSystem,
    directory: tempfile::TempDir,
    servers: Vec<DataServer>,
}

/// A file of one block.
struct Stored {
    path: String,
    bytes: Vec<u8>,
    pool: String,
    block: Block,
}

impl Story {
    /// Data servers whose scanners begin anew all the time.
    async fn start(server_count: usize) -> Self {
        let user = Settings::new(&Config::new()).unwrap().user;
        let plan = Plan::alone().adjusted(move |_, config| {
            config.limits.access.superuser = user.as_str().into();
            config.blocks.heartbeat_interval_ms = 100;
        });
        let cluster = plan.start().await;
        let directory = tempfile::tempdir().unwrap();
        let mut servers = Vec::new();
        for index in 0..server_count {
            let path = directory.path().join(format!("data-{index}"));
            let volume: VolumeConfig = path.to_str().unwrap().parse().unwrap();
            let mut config = DataConfig::new(vec![volume], vec![cluster.address(1).to_string()]);
            config.heartbeat_interval_ms = 100;
            config.scan = ScanConfig {
                block_period_ms: 200,
                block_bytes_per_second: u64::MAX,
                directory_interval_ms: 200,
                ..ScanConfig::default()
            };
            let server = DataServer::start(Env::production(), config).await.unwrap();
            server.wait_registered().await.unwrap();
            servers.push(server);
        }
        let files = FileSystem::connect(&format!("hdfs://{}", cluster.address(1)), &Config::new()).unwrap();
        let story = Self { cluster, files, directory, servers };
        story.meet_all_servers().await;
        story
    }

    /// A data server's replicas count against others only once a client has written a block there.
    async fn meet_all_servers(&self) {
        let mut met = BTreeSet::new();
        for number in 0..100 {
            let stored = self.store(&format!("/first-{number}"), 9).await;
            met.extend(self.holders(&stored));
            if met.len() == self.servers.len() {
                return;
            }
        }
        panic!("only {met:?} were written to");
    }

    async fn store(&self, path: &str, seed: u8) -> Stored {
        let bytes: Vec<u8> = (0..700_000).map(|at| (at / 251 + at % 251 * 7) as u8 ^ seed).collect();
        let options = CreateOptions { replication: Some(3), ..CreateOptions::default() };
        let mut writer = self.files.create(path, &options).await.unwrap();
        writer.write(&bytes).await.unwrap();
        writer.close().await.unwrap();
        let found = self.files.block_locations(path, 0, 1).await.unwrap().blocks.remove(0).b;
        let block = Block {
            id: BlockId(found.block_id),
            generation_stamp: GenerationStamp(found.generation_stamp),
            length: bytes.len() as u64,
        };
        let stored = Stored { path: path.into(), bytes, pool: found.pool_id, block };
        until("all replicas are there", async || self.holders(&stored).len() == 3).await;
        stored
    }

    /// The two files of a replica on a data server.
    fn at(&self, server: usize, stored: &Stored) -> (PathBuf, PathBuf) {
        let paths =
            VolumePaths { root: self.directory.path().join(format!("data-{server}")) }.pool(&stored.pool);
        let Block { id, generation_stamp, .. } = stored.block;
        (paths.block(Place::Finalized, id), paths.meta(Place::Finalized, id, generation_stamp))
    }

    /// The data servers with a replica of which every byte is right, in both files.
    fn holders(&self, stored: &Stored) -> Vec<usize> {
        let sums = stored.bytes.chunks(512).flat_map(|chunk| Checksum::DEFAULT.sum(chunk));
        let header = meta_file::encode_header(Checksum::DEFAULT);
        let sums: Vec<u8> = header.into_iter().chain(sums).collect();
        let is = |path: &Path, wanted: &[u8]| fs::read(path).is_ok_and(|found| found == wanted);
        (0..self.servers.len())
            .filter(|server| {
                let (block, meta) = self.at(*server, stored);
                is(&block, &stored.bytes) && is(&meta, &sums)
            })
            .collect()
    }

    async fn healed(&self, what: &str, stored: &Stored) {
        until(&format!("{what}: three replicas are good and there are no others"), async || {
            let there = (0..self.servers.len()).filter(|server| self.at(*server, stored).0.exists()).count();
            self.holders(stored).len() == 3 && there == 3
        })
        .await;
        let mut reader = self.files.open(&stored.path).await.unwrap();
        assert_eq!(reader.read_at(0, usize::MAX).await.unwrap().to_vec(), stored.bytes, "{what}");
    }

    /// A metric of all data servers together.
    async fn counted(&self, metric: &str) -> u64 {
        let mut sum = 0;
        for server in &self.servers {
            let page = page(server.http_addr(), "/metrics").await.unwrap();
            let line = page.lines().find_map(|line| line.strip_prefix(metric)).expect("the metric is there");
            sum += line.trim().parse::<u64>().unwrap();
        }
        sum
    }

    async fn end(self) {
        for server in self.servers {
            server.shutdown().await;
        }
        self.cluster.end().await;
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn cut(path: &Path, length: u64) {
    fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_happened_to_a_replica_is_found_and_healed_from_the_others() {
    let story = Story::start(4).await;
    type Spoil = fn(&(PathBuf, PathBuf));
    let ways: [(&str, Spoil); 5] = [
        ("a byte of the data", |files| flip(&files.0, 345_678)),
        ("a byte of a sum", |files| flip(&files.1, 3_000)),
        ("a block file that is cut", |files| cut(&files.0, 512 * 1_000)),
        ("a block file that is gone", |files| fs::remove_file(&files.0).unwrap()),
        ("a meta file that is gone", |files| fs::remove_file(&files.1).unwrap()),
    ];
    for (number, (what, spoil)) in ways.into_iter().enumerate() {
        let stored = story.store(&format!("/one-{number}"), number as u8).await;
        spoil(&story.at(story.holders(&stored)[1], &stored));
        story.healed(what, &stored).await;
    }
    let stored = story.store("/two", 77).await;
    let holders = story.holders(&stored);
    flip(&story.at(holders[0], &stored).0, 0);
    flip(&story.at(holders[2], &stored).1, 2_000);
    story.healed("two of three replicas", &stored).await;
    assert!(story.counted("clover_data_scan_damaged_total").await >= 4);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_that_was_copied_in_is_found_and_told() {
    let story = Story::start(4).await;
    let stored = story.store("/copied", 5).await;
    let holders = story.holders(&stored);
    let other = (0..4).find(|server| !holders.contains(server)).unwrap();
    let (from, to) = (story.at(holders[0], &stored), story.at(other, &stored));
    fs::create_dir_all(to.0.parent().unwrap()).unwrap();
    fs::copy(&from.1, &to.1).unwrap();
    fs::copy(&from.0, &to.0).unwrap();
    until("it is counted", async || {
        story.counted("clover_data_directory_differences_total{kind=\"unknown\"}").await >= 1
    })
    .await;
    // There is one too many now.
    story.healed("a copied replica", &stored).await;
    story.end().await;
}
