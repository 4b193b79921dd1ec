//! The metadata servers of a cluster in one process, for stories about them: over real sockets and real disks.
//!
//! [`Cluster::start`] makes a group, [`Cluster::alone`] a group of one without a coordinator, and [`Plan`] says what a story wants
//! otherwise. From there on a story speaks of members by their numbers, from 1 on: it stops, kills and restarts them,
//! pulls their cables, spoils their disks, waits for what they come to, and asks them as a client or an operator does.
//!
//! - `plan`: how a cluster is made, and how its members are configured; `joining`: what a further group begins with.
//! - `life`: members begin and end; `process`: one that is run as its process runs it.
//! - `waits`: what members come to; `calls` and `orders`: what clients and operators ask.
//! - `cable`, `disks`, `failing_disk`, `way`: what lies between the members, below them, and between them and the coordinator.
//! - `files` and `spoken`: files, and data servers that a story speaks for.

#![allow(dead_code, reason = "each test program uses its own part of it")]

pub mod cable;
mod calls;
mod disks;
pub mod failing_disk;
pub mod files;
mod joining;
mod life;
mod orders;
mod plan;
mod process;
pub mod spoken;
pub mod two;
mod waits;
pub mod way;

#[allow(unused_imports, reason = "each test program uses its own part of it")]
pub use {
    calls::{
        be_patient, exists, mkdirs_request, page, page_with, refusal, refused, set_safe_mode, try_mkdirs,
    },
    disks::copy,
    life::{Starting, free_address},
    plan::Plan,
    process::Process,
    waits::{PATIENCE, until},
};

use base::{GroupId, Level};
use cable::Cables;
use env::Env;
use failing_disk::FailingDisk;
use metad::{LastResort, MetaConfig, MetaServer};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

/// May do everything. [`Cluster::client`] speaks for this user.
pub const SUPERUSER: &str = "alice";

/// The world around a member: its clocks, and the end of its process.
type WorldOf = Box<dyn Fn(u32) -> (Env, LastResort) + Send + Sync>;
/// Changes a member's configuration.
type Adjust = Box<dyn Fn(u32, &mut MetaConfig) + Send + Sync>;

/// Its directories go with it. Servers that still run then are dropped as they are: [`Cluster::end`] ends them.
pub struct Cluster {
    directory: tempfile::TempDir,
    /// `None`: the only member keeps its view for itself.
    coordinator: Option<coord::Embedded>,
    servers: BTreeMap<u32, MetaServer>,
    processes: BTreeMap<u32, Process>,
    count: u32,
    group: GroupId,
    first: u32,
    /// Between each member and the others.
    pub cables: Cables,
    disks: BTreeMap<u32, FailingDisk>,
    /// The address at which each member took calls last.
    addresses: Arc<Mutex<BTreeMap<u32, SocketAddr>>>,
    is_over: Arc<AtomicBool>,
    world_of: WorldOf,
    timing: group::Settings,
    first_level: Level,
    adjust: Adjust,
}

impl Cluster {
    /// A group of so many members, all of which have been started.
    pub async fn start(count: u32) -> Self {
        Plan::group(count).start().await
    }

    /// A group of so many members, all of them in sync; and the active.
    pub async fn in_sync(count: u32) -> (Self, u32) {
        Plan::group(count).in_sync().await
    }

    /// A group of one, member 1. It keeps its view in a file of its own.
    pub async fn alone() -> Self {
        Plan::alone().start().await
    }

    /// The numbers of all members, whether they run or not.
    pub fn members(&self) -> impl Iterator<Item = u32> + use<> {
        self.first..self.first + self.count
    }

    /// All but this one, lower numbers first.
    pub fn others(&self, member: u32) -> Vec<u32> {
        self.members().filter(|other| *other != member).collect()
    }

    /// Changes the configurations of members that begin from here on, in the place of the changes before.
    pub fn adjust(&mut self, adjust: impl Fn(u32, &mut MetaConfig) + Send + Sync + 'static) {
        self.adjust = Box::new(adjust);
    }

    pub fn name_directory(&self, member: u32) -> PathBuf {
        self.beside(&format!("name-{member}"))
    }

    /// A path for whatever else a story keeps. It goes with the cluster.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Ends all members at once, without a word to the others.
    pub async fn end(mut self) {
        self.kill_all().await;
    }
}
