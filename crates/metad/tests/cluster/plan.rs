//! How a cluster is made, and how its members are configured.

use super::{Adjust, Cluster, SUPERUSER, WorldOf, disks, free_address};
use base::{GroupId, Level, MemberId};
use coord::Coordinator;
use env::Env;
use metad::{Advertised, CoordinatorConfig, GroupConfig, LastResort, MetaConfig};
use namespace::{AccessPolicy, Limits};
use std::{path::Path, sync::Arc};

/// How the directory of the first member comes to be.
type Make = Box<dyn FnOnce(&MetaConfig) + Send>;

/// The making of a cluster, with all that a story wants otherwise than usual. It ends with [`Plan::start`], [`Plan::in_sync`] or [`Plan::made`].
pub struct Plan {
    count: u32,
    group: GroupId,
    /// The number of the first member.
    first: u32,
    /// Another group's coordinator. `None`: it is made.
    coordinator: Option<coord::Embedded>,
    is_alone: bool,
    timing: group::Settings,
    first_level: Level,
    world_of: WorldOf,
    adjust: Adjust,
    make: Make,
    are_processes: bool,
}

impl Plan {
    /// The plan of a group of `count` members with one coordinator.
    pub fn group(count: u32) -> Self {
        Self {
            count,
            group: GroupId::ROOT,
            first: 1,
            coordinator: None,
            is_alone: false,
            timing: group::Settings::default(),
            first_level: Level::NEWEST,
            world_of: Box::new(|_| (Env::production(), LastResort::default())),
            adjust: Box::new(|_, _| ()),
            make: Box::new(|config| make(config, None)),
            are_processes: false,
        }
    }

    /// A further group of this cluster, whose members are numbered from `first`. The root group is told of it, and its directories are
    /// those with which the group begins.
    pub async fn further_group(of: &Cluster, group: GroupId, first: u32, count: u32) -> Self {
        let root = of.tree_with(group).await;
        Self::beside(of, group, first, count).made_by(move |config| {
            metad::found_group(&Env::production(), &config.name_directory, &config.group, &root).unwrap();
        })
    }

    /// A further group beside this root group, which is made by [`Plan::made_by`].
    pub fn beside(root: &Cluster, group: GroupId, first: u32, count: u32) -> Self {
        let coordinator = root.coordinator.as_ref().map(coord::Embedded::session);
        Self { group, first, coordinator, ..Self::group(count) }
    }

    /// A group of one, which keeps its view in a file of its own.
    pub fn alone() -> Self {
        Self { is_alone: true, ..Self::group(1) }
    }

    /// Sets other times than the usual ones.
    pub fn timed(self, timing: group::Settings) -> Self {
        Self { timing, ..self }
    }

    /// A group that began at this level, as an older release made it.
    pub fn at_level(self, first_level: Level) -> Self {
        Self { first_level, ..self }
    }

    /// Each member in a world of its own. Its disk is the cluster's: see [`Cluster::disk_of`].
    pub fn in_worlds(self, world_of: impl Fn(u32) -> (Env, LastResort) + Send + Sync + 'static) -> Self {
        Self { world_of: Box::new(world_of), ..self }
    }

    /// The members' configurations are changed so, each time that they begin.
    pub fn adjusted(self, adjust: impl Fn(u32, &mut MetaConfig) + Send + Sync + 'static) -> Self {
        Self { adjust: Box::new(adjust), ..self }
    }

    /// The cluster has this id.
    pub fn named(self, cluster_id: &'static str) -> Self {
        self.made_by(move |config| make(config, Some(cluster_id.to_owned())))
    }

    /// The first member's directory is a copy of this one.
    pub fn found_at(self, name_directory: &Path) -> Self {
        let found = name_directory.to_owned();
        self.made_by(move |config| disks::copy(&found, &config.name_directory))
    }

    /// The first member's directory, and what the coordinator knows, are made so.
    pub fn made_by(self, make: impl FnOnce(&MetaConfig) + Send + 'static) -> Self {
        Self { make: Box::new(make), ..self }
    }

    /// Each member is run as its process runs it: a member that asks to be started again is started again at once.
    pub fn run_as_processes(self) -> Self {
        Self { are_processes: true, ..self }
    }

    /// The directories are there, and nobody runs.
    pub fn made(self) -> Cluster {
        // RUST_LOG=metad=debug shows what the members say of themselves.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).try_init();
        let (directory, env) = (tempfile::tempdir().unwrap(), Env::production());
        let coordinator = self.coordinator.or_else(|| {
            (!self.is_alone)
                .then(|| coord::Embedded::open(&env, &directory.path().join("coordinator")).unwrap())
        });
        let members = self.first..self.first + self.count;
        let cluster = Cluster {
            directory,
            coordinator,
            servers: Default::default(),
            processes: Default::default(),
            count: self.count,
            group: self.group,
            first: self.first,
            cables: Default::default(),
            disks: members.clone().map(|member| (member, Default::default())).collect(),
            addresses: Default::default(),
            is_over: Default::default(),
            world_of: self.world_of,
            timing: self.timing,
            first_level: self.first_level,
            adjust: self.adjust,
        };
        (self.make)(&cluster.config(self.first));
        for member in members.skip(1) {
            cluster.join(member);
        }
        cluster
    }

    /// All members have been started, one after the other.
    pub async fn start(self) -> Cluster {
        let are_processes = self.are_processes;
        let mut cluster = self.made();
        for member in cluster.members() {
            match are_processes {
                true => cluster.run(member).await,
                false => cluster.restart(member).await,
            }
        }
        cluster
    }

    /// All members are in sync; and the active.
    pub async fn in_sync(self) -> (Cluster, u32) {
        let mut cluster = self.start().await;
        if cluster.group != GroupId::ROOT {
            // Those that join a further group fetch its first image, and begin again.
            let all = cluster.count as usize;
            let are_in_sync = |cluster: &Cluster| cluster.is_in_sync(all);
            cluster.tend_until("all members have the first image", are_in_sync).await;
        }
        let active = cluster.wait_until_in_sync().await;
        (cluster, active)
    }
}

fn make(config: &MetaConfig, cluster_id: Option<String>) {
    let (env, address) = (Env::production(), config.rpc_address.ip());
    metad::format(&env, &config.name_directory, cluster_id, address, &config.group).unwrap();
}

impl Cluster {
    /// Makes an empty directory for a member.
    pub fn join(&self, member: u32) {
        let config = self.config(member);
        metad::join(&Env::production(), &config.name_directory, &config.group).unwrap();
    }
}

/// Alone, on any port, without safe mode, and without images as long as nobody asks for one.
fn usual(name_directory: &Path) -> MetaConfig {
    let access = AccessPolicy { superuser: SUPERUSER.into(), ..AccessPolicy::default() };
    let safe_mode = blocks::SafeModeConfig { extension_ms: 0, ..Default::default() };
    MetaConfig {
        limits: Limits { access, ..Limits::default() },
        blocks: blocks::Config { safe_mode, ..Default::default() },
        ..MetaConfig::new(name_directory.to_owned())
    }
}

impl Cluster {
    /// The configuration with which this member would begin now. In a group each member has its own session with the
    /// coordinator, as a process would, and the others reach the member by its cable.
    pub fn config(&self, member: u32) -> MetaConfig {
        let mut config = usual(&self.name_directory(member));
        config.group.timing = self.timing;
        config.group.first_level = self.first_level;
        if let Some(coordinator) = &self.coordinator {
            let listening = free_address();
            config.group = GroupConfig {
                id: self.group,
                member: MemberId(member),
                members: self.members().map(MemberId).collect(),
                peer_address: Some(listening),
                advertised: Advertised {
                    peer: Some(self.cables.lay(member, listening).to_string()),
                    ..Advertised::default()
                },
                coordinator: CoordinatorConfig::Shared(
                    Arc::new(coordinator.session()) as Arc<dyn Coordinator>
                ),
                ..config.group
            };
        }
        config.group.last_resort = (self.world_of)(member).1;
        (self.adjust)(member, &mut config);
        config
    }
}
