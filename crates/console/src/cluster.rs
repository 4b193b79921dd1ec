//! The cluster's own word on how it is, asked over the native client library.

use client::{DataServer, FileSystem, FsStats, Volume};
use proto::clover::admin::{GetFactsResponseProto, GetGroupResponseProto};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Mutex, task::JoinSet};

/// How long one question may take. The server beside the console answers from memory, and asks the active at most.
const PATIENCE: Duration = Duration::from_secs(4);
/// Members that are asked for their facts; a group has seven at most.
const MEMBERS_MAX: usize = 16;
/// Pages that are asked for within this time share one look.
const FRESH: Duration = Duration::from_secs(2);

/// One look at the cluster. Facts that are not known are absent, and `unanswered` says why.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub group: Option<GetGroupResponseProto>,
    pub stats: Option<FsStats>,
    pub servers: Option<Vec<DataServer>>,
    /// By the uuid of the data server; empty where nobody tells.
    pub volumes: BTreeMap<String, Vec<Volume>>,
    pub unanswered: Vec<String>,
    /// The facts for a verdict.
    pub facts: verdict::Facts,
}

impl Cluster {
    /// The clock of the server that told the times of the data servers.
    pub fn now_ms(&self) -> u64 {
        self.group.as_ref().and_then(|group| group.now_ms).unwrap_or_else(crate::text::now_ms)
    }
}

async fn look(fs: &FileSystem, open: impl Fn(&str) -> FileSystem) -> Cluster {
    let group = tokio::time::timeout(PATIENCE, fs.group());
    let stats = tokio::time::timeout(PATIENCE, fs.stats());
    let servers = tokio::time::timeout(PATIENCE, fs.data_servers());
    let volumes = tokio::time::timeout(PATIENCE, fs.volumes());
    let (group, stats, servers, volumes) = tokio::join!(group, stats, servers, volumes);
    let mut cluster = Cluster::default();
    cluster.group = told(group, "its group", &mut cluster.unanswered);
    cluster.stats = told(stats, "the use of the disks", &mut cluster.unanswered);
    cluster.servers = told(servers, "the data servers", &mut cluster.unanswered);
    cluster.volumes = told(volumes, "the volumes", &mut cluster.unanswered).unwrap_or_default();
    cluster.facts = facts(fs, cluster.group.as_ref(), open).await;
    cluster
}

/// The facts that each member of the group tells of itself.
async fn facts(
    fs: &FileSystem,
    group: Option<&GetGroupResponseProto>,
    open: impl Fn(&str) -> FileSystem,
) -> verdict::Facts {
    let members = group.map(|group| group.members.as_slice()).unwrap_or_default();
    let addresses = members.iter().filter_map(|member| member.rpc_address.clone());
    let mut asked: Vec<(String, FileSystem)> = addresses
        .filter(|address| !address.is_empty())
        .take(MEMBERS_MAX)
        .map(|address| (address.clone(), open(&address)))
        .collect();
    if asked.is_empty() {
        asked.push((fs.uri(), fs.clone()));
    }
    let mut asking = JoinSet::new();
    for (address, member) in asked {
        asking.spawn(async move { (address, tokio::time::timeout(PATIENCE, member.facts()).await) });
    }
    let (mut answers, mut silent): (Vec<GetFactsResponseProto>, Vec<(String, String)>) = Default::default();
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok((_, Ok(Ok(facts)))) => answers.push(facts),
            Ok((address, Ok(Err(error)))) => silent.push((address, first_line(&error))),
            Ok((address, Err(_))) => {
                silent.push((address, format!("no answer within {} s", PATIENCE.as_secs())))
            }
            Err(error) => tracing::warn!(%error, "a member was not asked"),
        }
    }
    let told: Vec<_> = answers.iter().map(|facts| verdict::told::Answer { facts, clock: None }).collect();
    let known = verdict::told::group(&told, &silent);
    let unanswered = silent.into_iter().map(|(address, reason)| verdict::Unanswered { address, reason });
    verdict::Facts { unanswered: unanswered.collect(), groups: known.into_iter().collect() }
}

fn first_line(error: &client::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn told<T>(
    answer: Result<client::Result<T>, tokio::time::error::Elapsed>,
    what: &str,
    unanswered: &mut Vec<String>,
) -> Option<T> {
    let reason = match answer {
        Ok(Ok(told)) => return Some(told),
        Ok(Err(error)) => first_line(&error),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    unanswered.push(format!("The metadata server does not tell {what}: {reason}."));
    None
}

/// The last look, for all who ask soon after it.
#[derive(Default)]
pub struct Looks {
    last: Mutex<Option<(Instant, Arc<Cluster>)>>,
}

impl Looks {
    /// A look that is not older than [`FRESH`]. `open` connects to a member by its address.
    pub async fn cluster(&self, fs: &FileSystem, open: impl Fn(&str) -> FileSystem) -> Arc<Cluster> {
        let mut last = self.last.lock().await;
        if let Some((at, cluster)) = &*last
            && at.elapsed() < FRESH
        {
            return cluster.clone();
        }
        let cluster = Arc::new(look(fs, open).await);
        *last = Some((Instant::now(), cluster.clone()));
        cluster
    }
}
