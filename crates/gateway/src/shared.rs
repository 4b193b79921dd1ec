//! The parts of a gateway that all its requests use.

use crate::{error::Result, identity::Identity, servers::Servers};
use base::Proxies;
use client::Location;
use std::{net::SocketAddr, sync::Arc};
use web::{Limit, origin::Origins};

/// The kind of server in whose process the gateway runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A metadata server; `redirects`: those who read or write bytes are sent to data servers.
    Metadata { redirects: bool },
    /// A data server: it moves bytes only.
    Data,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub role: Role,
    /// In this user's name the gateway asks which data servers there are.
    pub operator: String,
    pub origins: Origins,
    /// Users who may act in the place of others (`doas`).
    pub proxies: Proxies,
    /// HTTP connections at once; further ones wait for a place.
    pub connections_max: usize,
    /// Files that are read or written at once; further requests are told to try again.
    pub transfers_max: usize,
}

/// The state of a gateway.
pub struct Shared {
    pub config: Config,
    pub servers: Servers,
    /// Checks of the file system.
    pub checks: Limit,
    /// Files that are read or written.
    pub transfers: Limit,
}

impl Shared {
    /// A user who acts for another may do so, by the rule that holds for RPC as well. From here on only the other one counts.
    ///
    /// # Errors
    /// The user may not; or the groups of the other one are not told.
    pub async fn check_proxy(
        &self,
        identity: &Identity,
        client: SocketAddr,
        location: &Location,
    ) -> Result<()> {
        let Identity { user, effective } = identity;
        let allows =
            |groups: Vec<Arc<str>>| self.config.proxies.allows(user, effective, || groups, client.ip());
        if allows(Vec::new()) {
            return Ok(());
        }
        if !self.config.proxies.asks_for_groups(user) {
            return Err(identity.refuse());
        }
        let operator = self.servers.shared(location, &self.config.operator);
        let groups = operator.groups_of(effective).await?.into_iter().map(Arc::from).collect();
        if allows(groups) { Ok(()) } else { Err(identity.refuse()) }
    }
}
