//! Two groups that hold one namespace together.

use super::{Cluster, Plan, until};
use base::GroupId;
use rpc::Client;
use std::{net::SocketAddr, time::Duration};

pub const SECOND: GroupId = GroupId(2);
/// The first member of the second group.
pub const ELEVENTH: u32 = 11;

/// Two groups, and a directory with one of each home below it.
pub struct Two {
    pub first: Cluster,
    pub second: Cluster,
    pub homes: [String; 2],
    /// How many directories there are, the upper one included.
    pub directories: u64,
}

impl Two {
    /// `above`: the path of the directory.
    pub async fn start(members: u32, above: &str) -> Self {
        let (first, active) = Cluster::in_sync(members).await;
        let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, members).await.in_sync().await;
        first.give_slots(active, SECOND).await;
        first.mkdirs(active, above).await;
        let mut homes = [None, None];
        let mut directories = 1;
        while homes.iter().any(Option::is_none) {
            let path = format!("{above}/d{directories}");
            first.mkdirs(active, &path).await;
            directories += 1;
            let home =
                first.wait_until("the directory is there", |first| first.server(active).home_of(&path)).await;
            homes[home.0 as usize - 1].get_or_insert(path);
        }
        Self { first, second, homes: homes.map(Option::unwrap), directories }
    }

    pub fn clients(&self) -> Vec<Client> {
        let clients = |cluster: &Cluster| -> Vec<Client> {
            cluster.running().into_iter().map(|member| cluster.client(member)).collect()
        };
        [clients(&self.first), clients(&self.second)].concat()
    }

    /// Both groups have the same directories, quotas and allowances.
    pub async fn wait_until_same(&self) {
        until("both groups have the same directories", async || {
            let digest = |cluster: &Cluster| {
                let active = cluster.active(&[])?;
                Some(cluster.server(active).directories_digest())
            };
            digest(&self.first).is_some() && digest(&self.first) == digest(&self.second)
        })
        .await;
    }

    /// The addresses of all servers that run, one after the other, also while servers come and go.
    pub fn door(&self) -> impl Fn(usize) -> SocketAddr + Send + use<> {
        let (first, second) = (self.first.addresses(), self.second.addresses());
        move |at: usize| {
            let mut doors: Vec<SocketAddr> = first.lock().unwrap().values().copied().collect();
            doors.extend(second.lock().unwrap().values().copied());
            doors[at % doors.len()]
        }
    }

    /// Kills the actives of these groups, and starts them again a little later.
    pub async fn kill_actives(&mut self, groups: &[u32]) {
        let mut killed = Vec::new();
        for group in groups {
            let cluster = if *group == 1 { &mut self.first } else { &mut self.second };
            let active = cluster.wait_for_active(&[]).await;
            cluster.kill(active).await;
            killed.push((*group, active));
        }
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for (group, member) in killed {
            let cluster = if group == 1 { &mut self.first } else { &mut self.second };
            cluster.restart(member).await;
            let active = cluster.wait_for_active(&[]).await;
            cluster.wait_in_sync(active, 3).await;
        }
    }

    pub async fn end(self) {
        self.second.end().await;
        self.first.end().await;
    }
}
