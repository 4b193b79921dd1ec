//! The servers that the bench measures: groups of Clover's, or Hadoop's. Each server has a role, and each home has directories for the load.

use super::{
    cluster::Cluster,
    hadoop::Hadoop,
    load::Stream,
    servers::{Home, Role, Server},
    work::Work,
};
use crate::{
    launch::Plan,
    meta::{Op, requests::make_directories},
};
use std::{
    any::Any,
    fmt,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Clover {
        groups: u32,
        members: u32,
    },
    /// One NameNode.
    Hadoop,
    /// Two NameNodes and three JournalNodes.
    HadoopHa,
}

impl Kind {
    /// Groups of one member.
    pub fn one(groups: u32) -> Self {
        Self::Clover { groups, members: 1 }
    }

    pub fn homes(self) -> u32 {
        match self {
            Self::Clover { groups, .. } => groups,
            Self::Hadoop | Self::HadoopHa => 1,
        }
    }

    pub fn is_clover(self) -> bool {
        matches!(self, Self::Clover { .. })
    }

    /// Whether the operation can be made there.
    pub fn knows(self, op: Op) -> bool {
        match op {
            Op::RenameAcross => self.homes() > 1,
            // Their directories, or what they make in them, would be of any home.
            Op::List | Op::Mix => self.homes() == 1,
            _ => true,
        }
    }
}

/// As the figures of papers have it: actives and standbys.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Clover { groups, members: 1 } => format!("{groups}A"),
            Self::Clover { groups, members } => format!("{groups}A{}S", groups * (members - 1)),
            Self::Hadoop => "Hadoop".to_owned(),
            Self::HadoopHa => "Hadoop HA".to_owned(),
        };
        f.pad(&text)
    }
}

pub struct Stage {
    pub kind: Kind,
    pub servers: Vec<Server>,
    pub homes: Vec<Home>,
    /// Its processes, which end when this is dropped.
    _processes: Box<dyn Any + Send>,
}

/// Who carries an operation out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The home of the directory that it works in.
    Home,
    /// The root group.
    Root,
}

impl Decider {
    pub fn of(op: Op) -> Self {
        match op {
            Op::Mkdir | Op::RenameAcross => Self::Root,
            _ => Self::Home,
        }
    }
}

/// The directories in each home in which the load works.
pub const DIRECTORIES: usize = 32;
const ABOVE: &str = "/bench";

impl Stage {
    /// `root`: the plan of the first group, which the other groups are like.
    pub async fn clover(groups: u32, root: Plan<'_>) -> anyhow::Result<Self> {
        let cluster = Cluster::start(groups, root).await?;
        let servers = cluster.roles().await?;
        let actives: Vec<&Server> =
            servers.iter().filter(|server| matches!(server.role, Role::Root | Role::Home)).collect();
        let homes = cluster.make_homes(&actives, ABOVE, DIRECTORIES).await?;
        let kind = Kind::Clover { groups, members: root.members };
        Ok(Self { kind, servers, homes, _processes: Box::new(cluster) })
    }

    pub async fn hadoop(kind: Kind, jars: &Path, dir: &Path, user: &str) -> anyhow::Result<Self> {
        let (hadoop, servers) = Hadoop::start(jars, dir, kind == Kind::HadoopHa, user).await?;
        let directories: Vec<String> = (0..DIRECTORIES).map(|number| format!("{ABOVE}/{number}")).collect();
        let address = servers[0].address;
        make_directories(&address.to_string(), user, &directories).await?;
        let homes = vec![Home { group: 1, address, directories }];
        Ok(Self { kind, servers, homes, _processes: Box::new(hadoop) })
    }

    /// The load of an operation, a stream for each server that decides it.
    pub fn streams(&self, op: Op, files: u64) -> Vec<(Stream, Work)> {
        let stream = |address, work: Work| {
            let next = Arc::new(AtomicU64::new(0));
            (Stream { address, work: Arc::new(work.clone()), next, bound: u64::MAX }, work)
        };
        let directories = || self.homes.iter().map(|home| home.directories.as_slice());
        let root = self.homes[0].address;
        match (op, Decider::of(op)) {
            (Op::RenameAcross, _) => {
                vec![stream(root, Work::across(op, &directories().collect::<Vec<_>>(), files))]
            }
            (_, Decider::Root) => {
                // One of each home in turn.
                let all: Vec<String> = (0..DIRECTORIES)
                    .flat_map(|number| directories().map(move |home| home[number].clone()))
                    .collect();
                vec![stream(root, Work::within(op, &all, files))]
            }
            (_, Decider::Home) => {
                let homes = self.homes.iter();
                homes.map(|home| stream(home.address, Work::within(op, &home.directories, files))).collect()
            }
        }
    }
}
