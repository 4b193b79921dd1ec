//! Seeing a group through a change of its active: who follows, and what a client notices meanwhile.

use crate::admin::servers::Servers;
use anyhow::bail;
use client::{Config, FileSystem};
use proto::clover::admin::{GetGroupResponseProto, RoleProto, TakeoverProto};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often the members are asked who leads.
const ASK_PAUSE: Duration = Duration::from_millis(20);
/// How often the client asks.
const CLIENT_PAUSE: Duration = Duration::from_millis(10);
/// The client settles before anything happens, and goes on for as long afterwards.
const LULL: Duration = Duration::from_millis(300);
/// No group takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The new active.
pub struct Successor {
    pub member: u32,
    pub epoch: u64,
    /// Since the watch began.
    pub after: Duration,
    /// Its own account, where it gives one.
    pub takeover: Option<TakeoverProto>,
}

/// Waits until a member serves an epoch above `epoch`.
pub async fn successor(
    servers: &Servers,
    group: &GetGroupResponseProto,
    epoch: u64,
) -> anyhow::Result<Successor> {
    let begun = Instant::now();
    let addresses = addresses(group);
    while begun.elapsed() < PATIENCE {
        for (_, answer) in servers.everybody(&addresses, true).await {
            let Ok(answer) = answer else { continue };
            let serves = answer
                .members
                .iter()
                .any(|member| member.member == answer.answered_by && member.role == RoleProto::Active as i32);
            if let Some(view) = answer.view.as_ref().filter(|view| serves && view.epoch > epoch) {
                let takeover = answer.takeovers.iter().rev().find(|takeover| takeover.epoch == view.epoch);
                return Ok(Successor {
                    member: answer.answered_by,
                    epoch: view.epoch,
                    after: begun.elapsed(),
                    takeover: takeover.cloned(),
                });
            }
        }
        tokio::time::sleep(ASK_PAUSE).await;
    }
    bail!(
        "no member has become active within {} s; `clover admin group` shows what the members wait for",
        PATIENCE.as_secs()
    )
}

fn addresses(group: &GetGroupResponseProto) -> Vec<String> {
    group
        .members
        .iter()
        .filter_map(|member| member.rpc_address.clone())
        .filter(|address| !address.is_empty())
        .collect()
}

/// A client that asks for the status of `/` again and again, at whichever member.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Noticed>,
}

/// The calls that the watch has made, and their outcome.
#[derive(Debug, Default)]
pub struct Noticed {
    pub calls: u64,
    pub failed: u64,
    pub longest: Duration,
    pub first_error: Option<String>,
}

impl Bystander {
    pub async fn start(group: &GetGroupResponseProto) -> anyhow::Result<Self> {
        let fs = connect(&addresses(group))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut noticed = Noticed::default();
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                if let Err(error) = fs.status("/").await {
                    noticed.failed += 1;
                    noticed.first_error.get_or_insert(error.to_string());
                }
                noticed.calls += 1;
                noticed.longest = noticed.longest.max(begun.elapsed());
                tokio::time::sleep(CLIENT_PAUSE).await;
            }
            noticed
        });
        tokio::time::sleep(LULL).await;
        Ok(Self { stop, task })
    }

    pub async fn stop(self) -> Noticed {
        tokio::time::sleep(LULL).await;
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}

impl Noticed {
    pub fn sentence(&self) -> String {
        let mut sentence = format!(
            "A client that asked for / every {} ms waited {} ms at the longest; {} of its {} calls failed",
            CLIENT_PAUSE.as_millis(),
            self.longest.as_millis(),
            self.failed,
            self.calls
        );
        match &self.first_error {
            Some(error) => sentence += &format!(": {}", error.lines().next().unwrap_or_default()),
            None => sentence += ".",
        }
        sentence
    }
}

/// A client of all members that moves on at once from one that does not answer.
fn connect(addresses: &[String]) -> anyhow::Result<FileSystem> {
    const NAME: &str = "watched";
    let mut config = Config::new();
    let names: Vec<String> = (1..=addresses.len()).map(|number| format!("n{number}")).collect();
    config.set("dfs.nameservices", NAME);
    config.set(&format!("dfs.ha.namenodes.{NAME}"), &names.join(","));
    for (name, address) in names.iter().zip(addresses) {
        config.set(&format!("dfs.namenode.rpc-address.{NAME}.{name}"), address);
    }
    config.set("dfs.client.failover.max.attempts", "1000");
    config.set("dfs.client.failover.sleep.base.millis", "10");
    config.set("dfs.client.failover.sleep.max.millis", "50");
    config.set("ipc.client.connect.timeout", "1000");
    Ok(FileSystem::connect(&format!("hdfs://{NAME}"), &config)?)
}
