//! What all groups say of themselves, asked at the same time.

use crate::admin::servers::{Servers, active_address};
use proto::clover::admin::{
    DirectoryLogFollowerProto, GetDirectoryLogRequestProto, GetDirectoryLogResponseProto,
    GetGroupResponseProto, NamespaceGroupProto,
};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// The groups of a namespace, the root group first.
pub struct Look {
    pub cluster_id: String,
    pub groups: Vec<Group>,
}

pub struct Group {
    pub known: NamespaceGroupProto,
    /// Its own word. `None`: nobody of it answers.
    pub itself: Option<GetGroupResponseProto>,
    /// What its active tells of the directory log. `None`: it has no active, or that does not answer.
    pub log: Option<GetDirectoryLogResponseProto>,
}

impl Look {
    /// Asks a server for the groups, and then each group.
    ///
    /// # Errors
    /// No server tells the groups.
    pub async fn at(servers: &Servers) -> anyhow::Result<Self> {
        let known = servers.groups().await?;
        let asked = known.groups.into_iter().map(|known| {
            let user = servers.user().to_owned();
            tokio::spawn(Group::ask(user, known))
        });
        let asked: Vec<_> = asked.collect();
        let mut groups = Vec::new();
        for one in asked {
            groups.push(one.await.expect("a question does not panic"));
        }
        Ok(Self { cluster_id: known.cluster_id, groups })
    }

    /// What the root group's active tells of the directory log.
    pub fn root_log(&self) -> Option<&GetDirectoryLogResponseProto> {
        self.groups.first()?.log.as_ref().filter(|log| log.leads)
    }

    /// How the root group sees a further group.
    pub fn follower(&self, group: u32) -> Option<&DirectoryLogFollowerProto> {
        self.root_log()?.groups.iter().find(|follower| follower.group == group)
    }

    pub fn group(&self, number: u32) -> Option<&Group> {
        self.groups.iter().find(|group| group.known.group == number)
    }
}

impl Group {
    async fn ask(user: String, known: NamespaceGroupProto) -> Self {
        let addresses: Vec<String> =
            known.members.iter().filter_map(|member| member.rpc_address.clone()).collect();
        let servers = Servers::of(user, addresses);
        let itself = servers.group().await.ok();
        let active = itself.as_ref().and_then(active_address);
        let log = match active {
            Some(address) => {
                servers.ask(&address, "getDirectoryLog", &GetDirectoryLogRequestProto {}, PATIENCE).await.ok()
            }
            None => None,
        };
        Self { known, itself, log }
    }

    /// The member that leads, by its own word or by the coordinator's.
    pub fn active(&self) -> Option<u32> {
        let view = self.itself.as_ref().and_then(|itself| itself.view.as_ref());
        view.map_or(self.known.active, |view| view.active)
    }

    /// The members that have everything.
    pub fn in_sync(&self) -> Vec<u32> {
        let view = self.itself.as_ref().and_then(|itself| itself.view.as_ref());
        let mut members: Vec<u32> = match view {
            Some(view) => view.in_sync.iter().map(|store| store.member).collect(),
            None => {
                let in_sync = self.known.members.iter().filter(|member| member.is_in_sync());
                in_sync.map(|member| member.member).collect()
            }
        };
        members.sort_unstable();
        members
    }

    /// Data servers that have told the active of this group what they hold.
    pub fn data_servers(&self) -> Option<u32> {
        let (itself, active) = (self.itself.as_ref()?, self.active()?);
        itself.members.iter().find(|member| member.member == active)?.data_servers
    }
}
