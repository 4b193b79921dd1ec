//! A group of members in one process, for stories about it.

use coord::Coordinator;
use env::Env;
use metad::{CoordinatorConfig, FileDefaults, GroupConfig, MetaConfig, MetaServer};
use namespace::{AccessPolicy, Limits};
use proto::hdfs as p;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

const SUPERUSER: &str = "alice";
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Cluster {
    directory: tempfile::TempDir,
    coordinator: coord::Embedded,
    servers: BTreeMap<u32, MetaServer>,
    count: u32,
}

impl Cluster {
    /// Makes a group of so many members and starts all of them.
    pub async fn start(count: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        let coordinator = coord::Embedded::open(&env, &directory.path().join("coordinator")).unwrap();
        let mut cluster = Self { directory, coordinator, servers: BTreeMap::new(), count };
        let first = cluster.config(1);
        let address = "127.0.0.1".parse().unwrap();
        metad::format(&env, &first.name_directory, None, address, &first.group).unwrap();
        for member in 2..=count {
            let config = cluster.config(member);
            metad::join(&env, &config.name_directory, &config.group).unwrap();
        }
        for member in 1..=count {
            cluster.restart(member).await;
        }
        cluster
    }

    pub fn name_directory(&self, member: u32) -> PathBuf {
        self.directory.path().join(format!("name-{member}"))
    }

    /// Each member has a door of its own to the coordinator, as a process would.
    pub fn config(&self, member: u32) -> MetaConfig {
        let any = "127.0.0.1:0".parse().unwrap();
        MetaConfig {
            name_directory: self.name_directory(member),
            rpc_address: any,
            http_address: None,
            limits: Limits {
                access: AccessPolicy { superuser: SUPERUSER.into(), ..AccessPolicy::default() },
                ..Limits::default()
            },
            defaults: FileDefaults::default(),
            blocks: blocks::Config {
                safe_mode: blocks::SafeModeConfig { extension_ms: 0, ..Default::default() },
                ..Default::default()
            },
            complete_wait_ms: 200,
            edits_per_image: 1_000_000,
            image_period_ms: 3_600_000,
            call_queue: Default::default(),
            racks: Vec::new(),
            group: GroupConfig {
                member: base::MemberId(member),
                members: (1..=self.count).map(base::MemberId).collect(),
                peer_address: Some(any),
                coordinator: CoordinatorConfig::Shared(
                    Arc::new(self.coordinator.session()) as Arc<dyn Coordinator>
                ),
                ..GroupConfig::default()
            },
        }
    }

    pub async fn restart(&mut self, member: u32) {
        let server = MetaServer::start(Env::production(), self.config(member)).await.unwrap();
        self.servers.insert(member, server);
    }

    pub async fn stop(&mut self, member: u32) {
        self.servers.remove(&member).expect("it runs").shutdown().await;
    }

    pub fn server(&self, member: u32) -> &MetaServer {
        &self.servers[&member]
    }

    /// The member that serves, if it is not one of these.
    pub async fn wait_for_active(&self, but: &[u32]) -> u32 {
        self.wait_until("a member serves", |cluster| {
            let mut serving = cluster
                .servers
                .iter()
                .filter(|(member, server)| !but.contains(member) && server.replica().may_answer());
            serving.next().map(|(member, _)| *member)
        })
        .await
    }

    /// So many members are in sync, as the active sees it.
    pub async fn wait_in_sync(&self, active: u32, count: usize) {
        self.wait_until("enough members are in sync", |cluster| {
            let status = cluster.server(active).replica().status();
            let (view, _) = status.view?;
            (view.in_sync.len() == count).then_some(())
        })
        .await;
    }

    /// All members that run have the same namespace.
    pub async fn wait_until_equal(&self) {
        self.wait_until("all members have applied the same", |cluster| {
            let mut digests: Vec<_> = cluster.servers.values().map(MetaServer::digest).collect();
            digests.dedup();
            (digests.len() == 1).then_some(())
        })
        .await;
    }

    async fn wait_until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            if began.elapsed() > PATIENCE {
                for (member, server) in &self.servers {
                    eprintln!("{member}: {:#?} {:?}", server.replica().status(), server.digest());
                }
                panic!("not within {PATIENCE:?}: {what}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn client(&self, member: u32) -> rpc::Client {
        rpc::Client::connect(
            self.server(member).rpc_address(),
            proto::protocol::CLIENT_NAMENODE,
            SUPERUSER,
            rpc::ClientOptions::default(),
        )
    }

    pub async fn mkdirs(&self, member: u32, path: &str) {
        assert!(try_mkdirs(&self.client(member), path).await.unwrap());
    }

    pub async fn names(&self, member: u32, path: &str) -> Vec<String> {
        let request = p::GetListingRequestProto {
            src: path.into(),
            start_after: bytes::Bytes::new(),
            need_location: false,
        };
        let response: p::GetListingResponseProto =
            self.client(member).call("getListing", &request).await.unwrap();
        let listing = response.dir_list.unwrap();
        let name = |status: p::HdfsFileStatusProto| String::from_utf8(status.path.to_vec()).unwrap();
        listing.partial_listing.into_iter().map(name).collect()
    }

    pub async fn end(self) {
        for server in self.servers.into_values() {
            server.shutdown().await;
        }
    }
}

pub async fn try_mkdirs(client: &rpc::Client, path: &str) -> Result<bool, String> {
    let request = p::MkdirsRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    };
    let response: Result<p::MkdirsResponseProto, _> = client.call("mkdirs", &request).await;
    response.map(|response| response.result).map_err(|error| error.to_string())
}
