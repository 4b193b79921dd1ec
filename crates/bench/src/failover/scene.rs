//! A group of real processes under load: what `bench failover` and `bench renew` have in common.

use super::{
    group::Group,
    hadoop,
    history::{self, Operation, Verdict},
    native,
    network::Network,
};
use anyhow::{Context, bail, ensure};
use cli::runtime;
use client::FileSystem;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

/// The group, its files and its client.
#[derive(Debug, clap::Args)]
pub struct Scene {
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    pub members: u16,
    #[arg(long, value_enum, default_value_t = Client::Native)]
    pub client: Client,
    /// Files in the namespace beside those of the load.
    #[arg(long, default_value_t = 0)]
    pub files: u64,
    /// Threads of the client.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// A coordinator that runs already, as zookeeper://host:2181/clover/bench.
    #[arg(long, value_name = "PLACE")]
    pub coordinator: Option<String>,
    /// The script that starts a ZooKeeper where none is given.
    #[arg(long, value_name = "FILE", default_value = "scripts/zookeeper")]
    pub zookeeper: PathBuf,
    /// Hadoop's client jars, for `--client hadoop`.
    #[arg(long, value_name = "DIR", default_value = "target/clients/hadoop-3.5.0")]
    pub hadoop: PathBuf,
    /// The sources of the Java load.
    #[arg(long, value_name = "DIR", default_value = "tests/faults/java")]
    pub java: PathBuf,
    /// The directory for all files; by default a new temporary one, which is removed in the end.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A further line for the members' settings, as "group_lease_ms = 400".
    #[arg(long, value_name = "LINE")]
    pub set: Vec<String>,
    /// The program that the members run, if it is not this one.
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// A stock Hadoop client, with the settings that `clover client-config` writes.
    Hadoop,
    Native,
}

impl Client {
    pub fn name(self) -> &'static str {
        match self {
            Self::Hadoop => "hadoop",
            Self::Native => "native",
        }
    }
}

const ROOT: &str = "/failover";
const NAMESERVICE: &str = "bench";

impl Scene {
    /// Runs a bench in a directory of its own, and removes that if all went well: of a failure the logs are worth more.
    pub fn play(
        &self,
        name: &str,
        bench: impl AsyncFnOnce(PathBuf) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let (directory, is_ours) = match &self.dir {
            Some(dir) => (std::path::absolute(dir)?, false),
            None => (std::env::temp_dir().join(format!("clover-{name}-{}", std::process::id())), true),
        };
        ensure!(
            !directory.exists(),
            "{} is there already; the bench wants a new directory",
            directory.display()
        );
        let outcome = runtime::block_on(bench(directory.clone()));
        match &outcome {
            Ok(code) if is_ours && *code == ExitCode::SUCCESS => std::fs::remove_dir_all(&directory)?,
            _ => eprintln!("logs and settings of the members are in {}", directory.display()),
        }
        outcome
    }

    /// Lays the group out, waits until it is whole, and begins to load it. `pause` is the rest of a thread between two
    /// operations.
    pub async fn start(&self, network: Network, directory: &Path, pause: Duration) -> anyhow::Result<Stage> {
        let group = Group::lay_out(self, network, directory)?;
        let conf = directory.join("conf");
        cli::client_config::write_for_group(&conf, NAMESERVICE, &group.addresses(), &[], None)?;
        let fs = FileSystem::connect(&format!("hdfs://{NAMESERVICE}/"), &client::Config::from_dir(&conf)?)?;
        group.wait_whole().await?;
        fs.mkdirs(ROOT).await?;
        let load = match self.client {
            Client::Native => Load::Native(native::Load::start(&fs, ROOT, self.threads.into(), pause)),
            Client::Hadoop => Load::Hadoop(hadoop::Load::start(self, &conf, directory, ROOT, pause)?),
        };
        load.wait_for(u64::from(self.threads) * 20).await?;
        Ok(Stage { group, fs, load })
    }
}

/// A group under load.
pub struct Stage {
    pub group: Group,
    pub load: Load,
    fs: FileSystem,
}

impl Stage {
    /// Ends the load, and holds what it was told against the tree.
    pub async fn judge(self) -> anyhow::Result<(Vec<Operation>, Verdict)> {
        let operations = self.load.end().await?;
        let there = tree(&self.fs, ROOT).await?;
        let verdict = history::judge(&operations, &|name| there.contains(name));
        Ok((operations, verdict))
    }
}

/// A client at work.
pub enum Load {
    Native(native::Load),
    Hadoop(hadoop::Load),
}

impl Load {
    pub fn done(&self) -> u64 {
        match self {
            Self::Native(load) => load.done(),
            Self::Hadoop(load) => load.done(),
        }
    }

    /// Until so many operations were acknowledged in all.
    pub async fn wait_for(&self, count: u64) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.done() < count {
            if Instant::now() > deadline {
                bail!("the client got {} operations done in two minutes; {count} were expected", self.done());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn end(self) -> anyhow::Result<Vec<Operation>> {
        match self {
            Self::Native(load) => load.end().await,
            Self::Hadoop(load) => load.end(),
        }
    }
}

/// Every name below `root`, relative to it.
async fn tree(fs: &FileSystem, root: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut waiting = vec![String::new()];
    while let Some(directory) = waiting.pop() {
        let path = format!("{root}/{directory}");
        let entries = fs.list(path.trim_end_matches('/')).collect().await;
        for entry in entries.with_context(|| format!("listing {path}"))? {
            let name = entry.name();
            let name = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
            if entry.is_dir() {
                waiting.push(name.clone());
            }
            names.insert(name);
        }
    }
    Ok(names)
}
