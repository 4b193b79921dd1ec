//! The state that all parts of a running metadata server share: its configuration, its surroundings, the names it goes
//! by, and the partition of the namespace that it serves.
//!
//! Nothing here depends on a log or on a group: that is the partition's ([`crate::partition`]). There is one so far.

use crate::{
    admin_protocol::Challenges,
    allowances::Allowances,
    audit::AuditLog,
    clocks::Clocks,
    cluster::Cluster,
    config::MetaConfig,
    datanodes::Admission,
    doors::Doors,
    fatal::{Fatal, InHand},
    neighbours::Neighbours,
    partition::Partition,
    peers::Secret,
    post::Ways,
    racks::Racks,
    user_groups::UserGroups,
    walks::Walks,
    watch::Threads,
};
use base::Moment;
use env::Env;
use rpc::{Call, Replier};
use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};
use tokio::runtime::Handle;

/// Answers a call that came from a client.
pub type AnswerCall = fn(&Arc<Core>, Call, Replier);

/// A metadata server, from its recovery on.
pub struct Core {
    pub env: Env,
    pub config: Arc<MetaConfig>,
    pub cluster: Arc<Cluster>,
    /// The group in messages between its members.
    pub scope: String,
    /// The secret that members prove to each other: the configuration's, or else the cluster's own.
    pub secret: Option<Secret>,
    /// The part of the namespace that is served here.
    pub partition: Arc<Partition>,
    /// The ways to other groups. `None`: this server has no secret that would prove to them what it passes on.
    pub doors: Option<Doors>,
    /// The ways of questions about blocks to other groups. `None`: likewise.
    pub ways: Option<Arc<Ways>>,
    /// The data servers that may take part.
    pub admission: Admission,
    /// The racks of hosts, as a script tells them.
    pub racks: Racks,
    /// The groups of users.
    pub user_groups: Arc<UserGroups>,
    /// None: calls leave no trace.
    pub audit: Option<AuditLog>,
    /// The challenges with which operators' orders are proved.
    pub challenges: Challenges,
    /// Reads that look at a great deal, in slices.
    pub walks: Walks,
    /// The calls that wait for allowances of quotas.
    pub allowances: Allowances,
    /// Requests that have ended a server.
    pub fatal: Arc<Fatal>,
    /// The threads that this server's word rests on.
    pub threads: Arc<Threads>,
    /// All calls that come over connections, counted and timed.
    pub calls: Arc<measures::Calls>,
    /// A look at the RPC server's work under way, once there is a server.
    pub load: OnceLock<rpc::Load>,
    /// The clocks of the other members, while this one leads.
    pub clocks: Clocks,
    /// The address of the RPC server, once there is one.
    pub rpc_address: OnceLock<SocketAddr>,
    /// Answers a client's call, from the first question on: for calls that were held until this member serves.
    pub answer: AnswerCall,
}

/// The parts of a server, as recovery has made them.
pub struct Parts {
    pub env: Env,
    pub config: Arc<MetaConfig>,
    pub cluster: Arc<Cluster>,
    pub secret: Option<Secret>,
    pub partition: Arc<Partition>,
    pub fatal: Arc<Fatal>,
    pub threads: Arc<Threads>,
    pub answer: AnswerCall,
}

impl Core {
    pub fn new(parts: Parts) -> Self {
        let Parts { env, config, cluster, secret, partition, fatal, threads, answer } = parts;
        let doors = secret.as_ref().zip(Handle::try_current().ok()).map(|(secret, runtime)| {
            let neighbours = Neighbours::new(partition.member.coordinator().clone(), runtime.clone());
            Doors::new(&config, cluster.clone(), secret.as_bytes(), Arc::new(neighbours), runtime)
        });
        let ways = secret.as_ref().zip(doors.as_ref()).map(|(secret, doors)| {
            let me = config.group.member;
            Arc::new(Ways::new(
                me,
                cluster.group,
                cluster.cluster_id.clone(),
                secret.clone(),
                doors.neighbours().clone(),
            ))
        });
        Self {
            doors,
            ways,
            admission: Admission::new(
                config.data_servers_file.clone(),
                config.excluded_data_servers_file.clone(),
            ),
            racks: Racks::new(config.rack_script.clone()),
            user_groups: Arc::new(UserGroups::new(&config.user_groups)),
            audit: config.audit_log.clone().map(AuditLog::new),
            challenges: Challenges::new(&env),
            walks: Walks::default(),
            allowances: Allowances::default(),
            calls: Arc::default(),
            load: OnceLock::new(),
            clocks: Clocks::default(),
            rpc_address: OnceLock::new(),
            env,
            config,
            scope: cluster.scope(),
            cluster,
            secret,
            partition,
            fatal,
            threads,
            answer,
        }
    }

    /// The partition whose blocks are of this pool, for messages that name one. None if the pool is not served here.
    pub fn partition_of_pool(&self, pool: &str) -> Option<&Arc<Partition>> {
        Some(&self.partition).filter(|partition| partition.has_pool(pool))
    }

    pub fn moment(&self) -> Moment {
        self.env.clock.moment()
    }

    /// A handle of this call for the threads that work on it: each holds it while it does.
    pub fn in_hand(&self, call: &Call) -> InHand {
        self.fatal.in_hand(call)
    }
}
