//! A group of members in one process, for stories about it.

pub mod cable;
pub mod failing_disk;

#[path = "../lone/mod.rs"]
pub mod lone;

use base::Level;
use cable::Cables;
use coord::Coordinator;
use env::Env;
use failing_disk::FailingDisk;
use metad::{
    Advertised, CoordinatorConfig, Ended, GroupConfig, LastResort, MetaConfig, MetaServer, StartError,
};
use proto::hdfs as p;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const SUPERUSER: &str = "alice";
const PATIENCE: Duration = Duration::from_secs(30);

/// Members whose servers are on their way.
#[allow(dead_code, reason = "not every story needs it")]
pub type Starting = BTreeMap<u32, tokio::task::JoinHandle<Result<MetaServer, metad::StartError>>>;

pub struct Cluster {
    directory: tempfile::TempDir,
    coordinator: coord::Embedded,
    servers: BTreeMap<u32, MetaServer>,
    count: u32,
    pub cables: Cables,
    /// What each member writes to.
    disks: BTreeMap<u32, FailingDisk>,
    /// Where each member takes calls at the moment.
    addresses: Arc<Mutex<BTreeMap<u32, SocketAddr>>>,
    is_over: Arc<AtomicBool>,
    world_of: Box<dyn Fn(u32) -> (Env, LastResort) + Send + Sync>,
    timing: group::Settings,
    first_level: Level,
    /// What the story wants otherwise of members that are started from here on.
    pub adjust: Box<dyn Fn(u32, MetaConfig) -> MetaConfig + Send + Sync>,
}

impl Cluster {
    /// Makes a group of so many members and starts all of them.
    pub async fn start(count: u32) -> Self {
        Self::start_with(count, group::Settings::default()).await
    }

    /// The same with other times than the usual ones.
    pub async fn start_with(count: u32, timing: group::Settings) -> Self {
        Self::start_all(count, timing, Level::NEWEST, usual_world, as_it_is).await
    }

    /// The same, each member in a world of its own.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn start_in(
        count: u32,
        world_of: impl Fn(u32) -> (Env, LastResort) + Send + Sync + 'static,
    ) -> Self {
        Self::start_all(count, group::Settings::default(), Level::NEWEST, world_of, as_it_is).await
    }

    /// The same with configurations that the story wants otherwise.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn start_adjusted(
        count: u32,
        world_of: impl Fn(u32) -> (Env, LastResort) + Send + Sync + 'static,
        adjust: impl Fn(u32, MetaConfig) -> MetaConfig + Send + Sync + 'static,
    ) -> Self {
        Self::start_all(count, group::Settings::default(), Level::NEWEST, world_of, adjust).await
    }

    /// A group that began at this level, as an older release made it.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn start_at(count: u32, first_level: Level) -> Self {
        Self::start_all(count, group::Settings::default(), first_level, usual_world, as_it_is).await
    }

    async fn start_all(
        count: u32,
        timing: group::Settings,
        first_level: Level,
        world_of: impl Fn(u32) -> (Env, LastResort) + Send + Sync + 'static,
        adjust: impl Fn(u32, MetaConfig) -> MetaConfig + Send + Sync + 'static,
    ) -> Self {
        // RUST_LOG=metad=debug shows what the members say of themselves.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).try_init();
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        let coordinator = coord::Embedded::open(&env, &directory.path().join("coordinator")).unwrap();
        let mut cluster = Self {
            directory,
            coordinator,
            servers: BTreeMap::new(),
            count,
            cables: Cables::default(),
            disks: (1..=count).map(|member| (member, FailingDisk::default())).collect(),
            addresses: Default::default(),
            is_over: Default::default(),
            world_of: Box::new(world_of),
            timing,
            first_level,
            adjust: Box::new(adjust),
        };
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

    /// Gives a member an order as `clover admin group` does, with what its directory says is the secret.
    #[allow(dead_code, reason = "not every story gives orders")]
    pub async fn give_order<Q, A>(
        &self,
        address: String,
        member: u32,
        order: &str,
        request: &Q,
    ) -> Result<A, rpc::CallError>
    where
        Q: prost::Message,
        A: prost::Message + Default + prost::Name,
    {
        let known = metad::read_cluster(&Env::production(), &self.name_directory(member)).unwrap();
        // By somebody whose name means nothing.
        let client =
            rpc::Client::connect(address, proto::protocol::ADMIN, "bob", rpc::ClientOptions::default());
        let challenge: proto::clover::admin::ChallengeResponseProto =
            client.call("challenge", &proto::clover::admin::ChallengeRequestProto {}).await?;
        let request = request.encode_to_vec().into();
        let order = metad::prove_order(&known.secret.unwrap(), &challenge, order, request);
        client.call("order", &order).await
    }

    pub fn name_directory(&self, member: u32) -> PathBuf {
        self.directory.path().join(format!("name-{member}"))
    }

    /// Each member has a door of its own to the coordinator, as a process would.
    pub fn config(&self, member: u32) -> MetaConfig {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = lone::config(&self.name_directory(member));
        let listening = TcpListener::bind(any).unwrap().local_addr().unwrap();
        let config = MetaConfig {
            group: GroupConfig {
                member: base::MemberId(member),
                members: (1..=self.count).map(base::MemberId).collect(),
                peer_address: Some(listening),
                advertised: Advertised {
                    peer: Some(self.cables.lay(member, listening).to_string()),
                    ..Advertised::default()
                },
                coordinator: CoordinatorConfig::Shared(
                    Arc::new(self.coordinator.session()) as Arc<dyn Coordinator>
                ),
                timing: self.timing,
                first_level: self.first_level,
                ..GroupConfig::default()
            },
            ..config
        };
        (self.adjust)(member, config)
    }

    pub async fn restart(&mut self, member: u32) {
        let began = Instant::now();
        loop {
            match self.try_restart(member).await {
                Ok(()) => return,
                // A call of its life before may still be on its way out.
                Err(error) => assert!(began.elapsed() < Duration::from_secs(5), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[allow(dead_code, reason = "not every story needs it")]
    pub fn disk_of(&self, member: u32) -> FailingDisk {
        self.disks[&member].clone()
    }

    pub fn env_of(&self, member: u32) -> Env {
        Env { disk: Arc::new(self.disk_of(member)), ..(self.world_of)(member).0 }
    }

    /// One attempt, and why it has failed.
    pub async fn try_restart(&mut self, member: u32) -> Result<(), StartError> {
        let mut config = self.config(member);
        config.group.last_resort = (self.world_of)(member).1;
        let server = MetaServer::start(self.env_of(member), config).await?;
        self.addresses.lock().unwrap().insert(member, server.rpc_address());
        self.servers.insert(member, server);
        Ok(())
    }

    /// Starts these at the same time: none of them may be able to take part before another one is there.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn restart_together(&mut self, members: &[u32]) {
        let mut starting = self.begin_together(members);
        for member in members {
            self.await_start(&mut starting, *member).await;
        }
    }

    /// The same without waiting for any of them.
    #[allow(dead_code, reason = "not every story needs it")]
    pub fn begin_together(&self, members: &[u32]) -> Starting {
        let begin = |member: &u32| {
            let (mut config, env) = (self.config(*member), self.env_of(*member));
            config.group.last_resort = (self.world_of)(*member).1;
            let start = async move {
                loop {
                    match MetaServer::start(env.clone(), config.clone()).await {
                        // A call of its life before may still be on its way out.
                        Err(error) if format!("{error:?}").contains("InUse") => {}
                        started => return started,
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            (*member, tokio::spawn(start))
        };
        members.iter().map(begin).collect()
    }

    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn await_start(&mut self, starting: &mut Starting, member: u32) {
        let start = starting.remove(&member).expect("it was begun");
        let started = tokio::time::timeout(PATIENCE, start).await;
        let server = started.unwrap_or_else(|_| panic!("member {member} does not come up")).unwrap();
        let server = server.unwrap_or_else(|error| panic!("member {member}: {error:?}"));
        self.addresses.lock().unwrap().insert(member, server.rpc_address());
        self.servers.insert(member, server);
    }

    /// Where a member takes calls, as it has told the coordinator: also before it takes part.
    #[allow(dead_code, reason = "not every story needs it")]
    pub fn told_address(&self, member: u32) -> String {
        let session = self.coordinator.session();
        let records = coord::wait(|done| session.read_members(metad::format::GROUP, done)).unwrap();
        let record = records.into_iter().find(|record| record.life.store.member.0 == member);
        record.expect("it was up before").rpc_address
    }

    /// Starts servers again that ask for it, as a process does.
    pub async fn tend(&mut self) -> Vec<u32> {
        let is_ended = |server: &MetaServer| server.replica().ended().borrow().clone();
        let ended: Vec<_> =
            self.servers.iter().filter_map(|(m, server)| Some((*m, is_ended(server)?))).collect();
        for (member, ended) in &ended {
            assert!(matches!(ended, Ended::Restart(_)), "member {member}: {ended:?}");
            self.kill(*member).await;
            self.restart(*member).await;
        }
        ended.into_iter().map(|(member, _)| member).collect()
    }

    /// Starts servers again that ask for it, until one serves: a server may ask for it as late as when it leads, if what it had
    /// applied was cut off.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn tend_until_active(&mut self) -> u32 {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.tend().await;
            if let Some(active) = self.active(&[]) {
                return active;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.wait_for_active(&[]).await
    }

    /// As an operator stops it.
    pub async fn stop(&mut self, member: u32) {
        self.servers.remove(&member).expect("it runs").shutdown().await;
    }

    /// Without a word to the others.
    pub async fn kill(&mut self, member: u32) {
        self.servers.remove(&member).expect("it runs").stop_at_once().await;
    }

    #[allow(dead_code, reason = "not every story needs it")]
    pub fn runs(&self, member: u32) -> bool {
        self.servers.contains_key(&member)
    }

    pub fn server(&self, member: u32) -> &MetaServer {
        &self.servers[&member]
    }

    /// The member that serves, if it is not one of these.
    pub async fn wait_for_active(&self, but: &[u32]) -> u32 {
        self.wait_until("a member serves", |cluster| cluster.active(but)).await
    }

    fn active(&self, but: &[u32]) -> Option<u32> {
        let mut serving = self.servers.iter().filter(|(member, server)| {
            !but.contains(member) && server.replica().is_serving() && server.replica().may_answer()
        });
        serving.next().map(|(member, _)| *member)
    }

    /// The member leads with too few in sync, and answers what is certain.
    #[allow(dead_code, reason = "not every story needs it")]
    pub async fn wait_for_reading(&self, member: u32) {
        self.wait_until("it answers below the minimum", |cluster| {
            cluster.server(member).replica().is_reading().then_some(())
        })
        .await;
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
                    let ended = server.replica().ended().borrow().clone();
                    eprintln!(
                        "{member}: {:#?} {:?}, ended: {ended:?}",
                        server.replica().status(),
                        server.digest()
                    );
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
        let (client, began) = (self.client(member), Instant::now());
        loop {
            match try_mkdirs(&client, path).await {
                Ok(made) => return assert!(made),
                // Too few in sync at the moment, on a busy machine.
                Err(error) if error.contains("RetriableException") => {
                    assert!(began.elapsed() < PATIENCE, "{error}");
                }
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn names(&self, member: u32, path: &str) -> Vec<String> {
        let (client, began) = (self.client(member), Instant::now());
        let mut names: Vec<String> = Vec::new();
        loop {
            let start_after = names.last().cloned().unwrap_or_default().into();
            let request = p::GetListingRequestProto { src: path.into(), start_after, need_location: false };
            let response: Result<p::GetListingResponseProto, _> = client.call("getListing", &request).await;
            let response = match response {
                Ok(response) => response,
                // Too few in sync at the moment, on a busy machine.
                Err(error) if error.to_string().contains("RetriableException") => {
                    assert!(began.elapsed() < PATIENCE, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let listing = response.dir_list.unwrap();
            let name = |status: p::HdfsFileStatusProto| String::from_utf8(status.path.to_vec()).unwrap();
            names.extend(listing.partial_listing.into_iter().map(name));
            if listing.remaining_entries == 0 {
                return names;
            }
        }
    }

    /// Where the members take calls, also after they were started again.
    #[allow(dead_code, reason = "not every story needs it")]
    pub fn addresses(&self) -> Arc<Mutex<BTreeMap<u32, SocketAddr>>> {
        self.addresses.clone()
    }

    #[allow(dead_code, reason = "not every story needs it")]
    pub fn is_gone(&self, member: u32) -> bool {
        !self.servers.contains_key(&member)
    }

    pub fn say_stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// A client that makes directories one after the other, at whichever member takes them, until it is told
    /// to stop. Those that were acknowledged.
    pub fn write_until_told(&self, writer: u32) -> tokio::task::JoinHandle<Vec<String>> {
        let (addresses, is_over) = (self.addresses.clone(), self.is_over.clone());
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            let (mut at, mut number) = (writer, 0);
            while !is_over.load(Ordering::Acquire) {
                let all: Vec<_> = addresses.lock().unwrap().values().copied().collect();
                let options = rpc::ClientOptions::default();
                let address = all[at as usize % all.len()];
                let client =
                    rpc::Client::connect(address, proto::protocol::CLIENT_NAMENODE, SUPERUSER, options);
                while !is_over.load(Ordering::Acquire) {
                    let path = format!("/{writer}/{number:06}");
                    let call = tokio::time::timeout(Duration::from_millis(1_500), try_mkdirs(&client, &path));
                    match call.await {
                        Ok(Ok(true)) => acknowledged.push(path),
                        _ => break,
                    }
                    number += 1;
                }
                // It may have happened or not; the next one has a name of its own.
                number += 1;
                at += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            acknowledged
        })
    }

    pub async fn end(self) {
        for server in self.servers.into_values() {
            server.stop_at_once().await;
        }
    }
}

/// The machine's own clocks and disks.
fn usual_world(_member: u32) -> (Env, LastResort) {
    (Env::production(), LastResort::default())
}

fn as_it_is(_member: u32, config: MetaConfig) -> MetaConfig {
    config
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

/// A directory and all below it.
#[allow(dead_code, reason = "not every story needs it")]
pub fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
