//! The groups of metadata servers, each asked at its active.

use crate::admin::servers::{ORDER_TIMEOUT, Servers, active_address, reason};
use prost::{Message, Name};
use proto::{
    clover::admin::NamespaceGroupProto,
    exception::{RETRIABLE, SERVICE_FAILED, STANDBY},
};
use rpc::CallError;
use std::time::Duration;
use tokio::time::Instant;

/// How long a group may be without an active before the caller is told. A takeover takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(300);

pub struct Groups(pub Vec<Group>);

pub struct Group {
    pub number: u32,
    servers: Servers,
}

/// Why a group has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It has refused.
    Refused(String),
    /// The group's leader was not reached. The group may still carry the request out.
    Silent(String),
}

impl Groups {
    /// # Errors
    /// No server tells the groups.
    pub async fn find(servers: &Servers) -> anyhow::Result<Self> {
        let known = servers.groups().await?;
        // A group that was added and never made has no blocks yet. One of which the coordinator does not tell is there.
        let made: Vec<_> =
            known.groups.into_iter().filter(|group| group.is_made || group.trouble.is_some()).collect();
        let is_alone = made.len() == 1;
        let of = |group: NamespaceGroupProto| {
            let mut addresses: Vec<String> =
                group.members.iter().filter_map(|member| member.rpc_address.clone()).collect();
            if addresses.is_empty() && is_alone {
                addresses = servers.addresses().to_vec();
            }
            Group { number: group.group, servers: Servers::of(servers.user().to_owned(), addresses) }
        };
        Ok(Self(made.into_iter().map(of).collect()))
    }
}

impl Group {
    /// Asks the active, or any member that passes it on. As long as no member leads it asks again, for a while.
    ///
    /// # Errors
    /// [`Unanswered`], with the sentence for people.
    pub async fn ask<Q, A>(&self, method: &str, request: &Q) -> Result<A, Unanswered>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let silent = match self.ask_once(method, request).await {
                Err(Unanswered::Silent(why)) => why,
                answered => return answered,
            };
            if Instant::now() >= deadline || self.servers.addresses().is_empty() {
                return Err(Unanswered::Silent(silent));
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn ask_once<Q, A>(&self, method: &str, request: &Q) -> Result<A, Unanswered>
    where
        Q: Message,
        A: Message + Default + Name,
    {
        let told = self.servers.group().await.ok();
        let mut addresses: Vec<String> = told.as_ref().and_then(active_address).into_iter().collect();
        let others = self.servers.addresses().iter().filter(|address| !addresses.contains(address)).cloned();
        addresses.extend(others.collect::<Vec<_>>());
        let mut silent =
            vec![format!("group {} has {} members that can be asked", self.number, addresses.len())];
        for address in addresses {
            match self.servers.ask(&address, method, request, ORDER_TIMEOUT).await {
                Ok(answer) => return Ok(answer),
                Err(error) if is_refusal(&error) => {
                    return Err(Unanswered::Refused(format!("{address}: {}", reason(&error))));
                }
                Err(error) => silent.push(format!("{address}: {}", reason(&error))),
            }
        }
        Err(Unanswered::Silent(silent.join("; ")))
    }
}

/// Another member, or a later call, would say nothing else.
fn is_refusal(error: &CallError) -> bool {
    match error {
        CallError::Remote { class, .. } => ![SERVICE_FAILED, STANDBY, RETRIABLE].contains(&class.as_str()),
        _ => false,
    }
}
