//! `fsck`: looks at every file below a path, and tells the faults.
//!
//! [`walk`] finds all files; [`block`] and [`sums`] judge them, also for `clover fsck`. [`text`] words the result as Hadoop does: the stock
//! `hdfs fsck` reads `/fsck` of a metadata server, and takes its exit code from the last line.
//!
//! A check asks in the name of its user what every client may ask; what clients are not told of replicas it asks in the name of the
//! operator. It holds a few pages of listings and a few hundred blocks, and ends when its client has gone.

pub mod block;
mod java;
mod lost_blocks;
mod lost_found;
mod out;
pub mod page;
mod policies;
mod reason;
mod request;
mod servers;
mod single_blocks;
pub mod sums;
mod text;
pub mod walk;

use client::{FileStatus, FileSystem, ReplicaRegister};
use lost_found::LostFound;
use out::Out;
use policies::Policies;
use reason::End;
use request::Request;
use servers::DataServers;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use sums::{Cluster, File};
use text::Text;
use walk::{Step, Walk};
use web::body::Sender;

/// Checks at once. Each keeps the metadata server busy with listings, and further ones make none of them faster.
pub const CHECKS_MAX: usize = 4;

/// Blocks whose replicas are asked for at once.
const BLOCKS_AT_ONCE: usize = 500;
/// Steps of a walk that wait for the replicas of the blocks among them.
const STEPS_AT_ONCE: usize = 1_000;

/// A check that a client wants.
pub struct Check {
    pub request: Request,
    /// Asked in the name of the client's user.
    pub fs: FileSystem,
    /// Asked in the name of a superuser.
    pub operator: FileSystem,
    /// The user, in Hadoop's words.
    pub user: String,
    pub client: IpAddr,
}

impl Check {
    /// Carries the check out, and sends its words meanwhile.
    pub async fn run(self, sender: Sender) {
        let begun = Instant::now();
        let mut out = Out::new(sender);
        match self.say_all(begun, &mut out).await {
            Ok(()) => out.end().await,
            Err(End::Gone) => tracing::info!(path = self.request.path, "the client of a check has gone"),
            Err(End::Failed(reason)) => {
                let path = &self.request.path;
                tracing::info!(path, reason, user = self.user, "a check failed");
                let words = format!("{}{reason}\n\n\nFsck on path '{path}' FAILED", ended(begun));
                if out.say(&words).await.is_ok() {
                    out.end().await;
                }
            }
        }
    }

    async fn say_all(&self, begun: Instant, out: &mut Out) -> Result<(), End> {
        let Request { path, .. } = &self.request;
        if self.request.asks_for_progress {
            out.say(
                "The fsck switch -showprogress is deprecated and no longer has any effect. Progress is now shown by \
                 default.\n",
            )
            .await?;
        }
        let begin = format!("FSCK started by {} from {}", self.user, java::address(self.client));
        if let Some(blocks) = &self.request.blocks {
            // Others than superusers hear nothing but the refusal.
            let register = ReplicaRegister::open(&self.fs).await?;
            register.min_replication().await?;
            out.say(&format!("{begin} at {}\n", now())).await?;
            let mut servers = DataServers::ask(self.operator.clone()).await?;
            return single_blocks::tell(&register, blocks, self.request.show.maintenance, &mut servers, out)
                .await;
        }
        out.say(&format!("{begin} for path {path} at {}\n", now())).await?;
        let snapshottable = match self.request.snapshots {
            true => Some(self.snapshottable().await?),
            false => None,
        };
        let Some(root) = self.fs.find(path).await? else {
            return out.say(&format!("\n\nPath '{path}' does not exist")).await;
        };
        if self.request.lists_lost_blocks {
            let before = self.request.told_before;
            return lost_blocks::tell(&self.fs, path, before, snapshottable.as_deref(), out).await;
        }
        self.say_files(&root, snapshottable.unwrap_or_default(), begun, out).await
    }

    async fn snapshottable(&self) -> Result<Vec<String>, End> {
        let directories = self.fs.snapshottable_directories().await?;
        Ok(directories.into_iter().map(|directory| directory.status.path).collect())
    }

    async fn say_files(
        &self,
        root: &FileStatus,
        snapshottable: Vec<String>,
        begun: Instant,
        out: &mut Out,
    ) -> Result<(), End> {
        let path = &self.request.path;
        let mut checked = Checked::begin(self).await?;
        let mut walk = Walk::new(self.fs.clone(), root, snapshottable.into_iter().collect());
        let mut waiting = Vec::new();
        let mut blocks = 0;
        loop {
            let step = match walk.next().await {
                Ok(Some(step)) => step,
                Ok(None) => break,
                Err(error) => {
                    // What was found before is told first.
                    checked.look_at(waiting, out).await?;
                    return Err(error.into());
                }
            };
            if let Step::File(found) = &step {
                blocks += found.1.blocks.len();
            }
            waiting.push(step);
            if blocks >= BLOCKS_AT_ONCE || waiting.len() >= STEPS_AT_ONCE {
                checked.look_at(std::mem::take(&mut waiting), out).await?;
                blocks = 0;
            }
        }
        checked.look_at(waiting, out).await?;
        let Checked { mut text, servers, policies, is_failed, .. } = checked;
        let defaults = self.operator.defaults().await?;
        text.totals(servers.alive(), defaults.replication.into());
        out.say(&text.said).await?;
        if let Some(policies) = policies {
            out.say(&policies.table()).await?;
        }
        out.say(&ended(begun)).await?;
        if is_failed {
            return Err(End::Failed("fsck encountered internal errors!".to_owned()));
        }
        let verdict = if text.sums.is_healthy() { "HEALTHY" } else { "CORRUPT" };
        out.say(&format!("\n\nThe filesystem under path '{path}' is {verdict}")).await
    }
}

/// A check under way: the servers that it asks, and its text and counts so far.
struct Checked<'a> {
    check: &'a Check,
    register: ReplicaRegister,
    servers: DataServers,
    text: Text,
    policies: Option<Policies>,
    lost_found: LostFound,
    /// A file with lost blocks could not be copied or deleted.
    is_failed: bool,
}

impl<'a> Checked<'a> {
    async fn begin(check: &'a Check) -> Result<Self, End> {
        let register = ReplicaRegister::open(&check.operator).await?;
        let servers = DataServers::ask(check.operator.clone()).await?;
        let min_replication = register.min_replication().await? as usize;
        let cluster = Cluster { racks: Some(servers.racks()), min_replication };
        let policies = match check.request.show.storage_policies {
            true => Some(Policies::new(check.fs.storage_policies().await?)),
            false => None,
        };
        Ok(Self {
            check,
            register,
            servers,
            text: Text::new(check.request.show, cluster),
            policies,
            lost_found: LostFound::new(&check.fs),
            is_failed: false,
        })
    }

    async fn look_at(&mut self, steps: Vec<Step>, out: &mut Out) -> Result<(), End> {
        let mut files: Vec<(FileStatus, File)> = Vec::new();
        let mut others = Vec::new();
        for step in steps {
            match step {
                Step::File(found) => {
                    let (status, located) = *found;
                    let file = File::from_wire(&status.path, status.length, status.replication, &located);
                    files.push((status, file));
                    others.push(None);
                }
                other => others.push(Some(other)),
            }
        }
        self.learn(&mut files).await?;
        let mut files = files.into_iter();
        for step in others {
            match step {
                Some(Step::Look) => self.text.look(),
                Some(Step::Directory(path)) => self.text.directory(&path),
                Some(Step::Symlink(path)) => self.text.symlink(&path),
                Some(Step::File(..)) | None => {
                    if let Some((status, file)) = files.next() {
                        self.look_at_file(&status, &file, out).await;
                    }
                }
            }
            out.say(&std::mem::take(&mut self.text.said)).await?;
        }
        Ok(())
    }

    /// Asks for all replicas of these files' blocks.
    async fn learn(&mut self, files: &mut [(FileStatus, File)]) -> Result<(), End> {
        let mut by_pool: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for block in files.iter_mut().flat_map(|(_, file)| file.all_blocks_mut()) {
            by_pool.entry(block.pool.clone()).or_default().push(block.id);
        }
        let mut told = BTreeMap::new();
        for (pool, ids) in by_pool {
            let blocks = self.register.of_pool(&pool, &ids).await?;
            let replicas = blocks.iter().flat_map(|block| &block.replicas);
            self.servers.know(replicas.map(|replica| &*replica.server_uuid)).await?;
            told.extend(blocks.into_iter().map(|block| ((pool.clone(), block.block_id), block)));
        }
        for block in files.iter_mut().flat_map(|(_, file)| file.all_blocks_mut()) {
            if let Some(told) = told.get(&(block.pool.clone(), block.id)) {
                block.learn(told, self.servers.by_uuid());
            }
        }
        Ok(())
    }

    async fn look_at_file(&mut self, status: &FileStatus, file: &File, out: &mut Out) {
        let is_lost = self.text.file(file);
        if file.is_open && !self.check.request.show.open_files {
            return;
        }
        if let Some(policies) = &mut self.policies {
            for block in &file.blocks {
                let types = block.servers.iter().filter_map(|server| server.storage_type);
                policies.add(status.storage_policy, types.collect());
            }
        }
        if self.check.request.replicates {
            let is_queued = |block: &&block::Block| {
                block.is_queued && block.racks_lacking(file.wanted, Some(self.servers.racks())) > 0
            };
            self.text.queued += file.blocks.iter().filter(is_queued).count() as u64;
        }
        // A file that is being written may only lack what has not been reported yet.
        if is_lost && !file.is_open {
            self.rescue(status, file, out).await;
        }
    }

    async fn rescue(&mut self, status: &FileStatus, file: &File, out: &mut Out) {
        let Check { request, fs, user, .. } = self.check;
        if request.moves
            && let Err(error) = self.lost_found.take(file, status.mode, out).await
        {
            tracing::warn!(file = file.path, user, %error, "fsck could not copy all that is left of a file");
            self.is_failed = true;
        }
        if request.deletes {
            match fs.delete(&file.path, false).await {
                Ok(_) => tracing::info!(file = file.path, user, "fsck deleted a file with lost blocks"),
                Err(error) => {
                    tracing::warn!(file = file.path, user, %error, "fsck could not delete a file");
                    self.is_failed = true;
                }
            }
        }
    }
}

fn now() -> String {
    java::date(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

fn ended(begun: Instant) -> String {
    format!("FSCK ended at {} in {} milliseconds\n", now(), begun.elapsed().as_millis())
}
