//! Members begin and end.

use super::{Cluster, PATIENCE, Process};
use metad::{Ended, GroupMember, MetaServer, StartError};
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    time::{Duration, Instant},
};

/// Members whose servers are on their way.
pub type Starting = BTreeMap<u32, tokio::task::JoinHandle<Result<MetaServer, StartError>>>;

/// A call of a member's life before may still be on its way out.
const LETS_GO: Duration = Duration::from_secs(60);

/// A port on which nobody listens.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Cluster {
    /// Starts a member that does not run.
    pub async fn restart(&mut self, member: u32) {
        let began = Instant::now();
        while let Err(error) = self.try_restart(member).await {
            assert!(began.elapsed() < LETS_GO, "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// One attempt, and why it has failed.
    pub async fn try_restart(&mut self, member: u32) -> Result<(), StartError> {
        let server = MetaServer::start(self.env_of(member), self.config(member)).await?;
        self.note(member, server);
        Ok(())
    }

    fn note(&mut self, member: u32, server: MetaServer) {
        self.addresses.lock().unwrap().insert(member, server.rpc_address());
        self.servers.insert(member, server);
    }

    /// Starts all, one after the other.
    pub async fn restart_all(&mut self) {
        for member in self.members() {
            self.restart(member).await;
        }
    }

    /// Starts these at the same time: none of them may be able to take part before another one is there.
    pub async fn restart_together(&mut self, members: &[u32]) {
        let mut starting = self.begin_together(members);
        for member in members {
            self.await_start(&mut starting, *member).await;
        }
    }

    /// Begins to start these, and waits for none of them.
    pub fn begin_together(&self, members: &[u32]) -> Starting {
        let begin = |member: &u32| {
            let (config, env) = (self.config(*member), self.env_of(*member));
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

    /// Waits for one of those that [`Cluster::begin_together`] has begun to start.
    pub async fn await_start(&mut self, starting: &mut Starting, member: u32) {
        let start = starting.remove(&member).expect("it was begun");
        let started = tokio::time::timeout(PATIENCE, start).await;
        let server = started.unwrap_or_else(|_| panic!("member {member} does not come up")).unwrap();
        let server = server.unwrap_or_else(|error| panic!("member {member}: {error:?}"));
        self.note(member, server);
    }

    /// Runs a member as its process does, and waits until its server is there.
    pub async fn run(&mut self, member: u32) {
        let process = Process::begin(self.env_of(member), self.config(member));
        process.wait_for_start(1).await;
        self.processes.insert(member, process);
    }

    /// Stops the member in an orderly way, as an operator does.
    pub async fn stop(&mut self, member: u32) {
        if let Some(process) = self.processes.remove(&member) {
            return process.stop().await;
        }
        self.servers.remove(&member).expect("it runs").shutdown().await;
    }

    /// Stops all that run, one after the other.
    pub async fn stop_all(&mut self) {
        for member in self.running() {
            self.stop(member).await;
        }
    }

    /// Kills the member: it says nothing to the others.
    pub async fn kill(&mut self, member: u32) {
        self.servers.remove(&member).expect("it runs").stop_at_once().await;
    }

    /// Kills two at the same moment: neither has the time to take over from the other.
    pub async fn kill_both(&mut self, one: u32, other: u32) {
        let [one, other] = [one, other].map(|member| self.servers.remove(&member).expect("it runs"));
        tokio::join!(one.stop_at_once(), other.stop_at_once());
    }

    /// Kills all that run, one after the other.
    pub async fn kill_all(&mut self) {
        for member in self.running() {
            match self.processes.contains_key(&member) {
                true => self.stop(member).await,
                false => self.kill(member).await,
            }
        }
    }

    /// Starts servers again that ask for it, as a process does. Says which.
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

    /// Starts servers again that ask for it, until `is_so`.
    pub async fn tend_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) && began.elapsed() < PATIENCE {
            self.tend().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.wait_until(what, |cluster| is_so(cluster).then_some(())).await;
    }

    /// Starts servers again that ask for it, until one serves: a server may ask for it as late as when it leads, if what it had
    /// applied was cut off.
    pub async fn tend_until_active(&mut self) -> u32 {
        self.tend_until("a member serves", |cluster| cluster.active(&[]).is_some()).await;
        self.wait_for_active(&[]).await
    }

    pub fn runs(&self, member: u32) -> bool {
        self.servers.contains_key(&member) || self.processes.contains_key(&member)
    }

    pub fn running(&self) -> Vec<u32> {
        self.members().filter(|member| self.runs(*member)).collect()
    }

    pub fn server(&self, member: u32) -> &MetaServer {
        &self.servers[&member]
    }

    pub fn process(&self, member: u32) -> &Process {
        &self.processes[&member]
    }

    /// `None` while its process starts it again. As long as it is kept, the member's store cannot be opened again.
    pub fn look_at(&self, member: u32) -> Option<GroupMember> {
        match self.processes.get(&member) {
            Some(process) => process.replica(),
            None => self.servers.get(&member).map(|server| server.replica().clone()),
        }
    }

    /// The group member of a server that runs; fails the test if the server does not run.
    pub fn replica(&self, member: u32) -> GroupMember {
        self.look_at(member).unwrap_or_else(|| panic!("member {member} runs"))
    }

    /// The address at which a member that runs takes calls.
    pub fn address(&self, member: u32) -> SocketAddr {
        match self.processes.get(&member) {
            Some(process) => process.rpc_address(),
            None => self.server(member).rpc_address(),
        }
    }

    /// The address for calls that a member has told the coordinator. It is there before the member takes part in the
    /// group.
    pub fn told_address(&self, member: u32) -> String {
        let session = self.coordinator.as_ref().expect("it is in a group").session();
        let records =
            coord::wait(|done| coord::Coordinator::read_members(&session, base::GroupId::ROOT, done));
        let record = records.unwrap().into_iter().find(|record| record.life.store.member.0 == member);
        record.expect("it was up before").rpc_address
    }
}
