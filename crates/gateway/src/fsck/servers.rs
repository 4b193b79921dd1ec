//! The data servers of a cluster, by their uuids.

use super::block::Server;
use client::{FileSystem, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The data servers, as they were told when one was first met.
pub struct DataServers {
    /// It is asked in the name of a superuser.
    operator: FileSystem,
    by_uuid: BTreeMap<String, Server>,
    alive: usize,
    racks: usize,
}

impl DataServers {
    /// # Errors
    /// The user of `operator` is no superuser; or the call fails: see [`FileSystem::call`].
    pub async fn ask(operator: FileSystem) -> Result<Self> {
        let mut servers = Self { operator, by_uuid: BTreeMap::new(), alive: 0, racks: 0 };
        servers.refresh().await?;
        Ok(servers)
    }

    /// Asks again, if one of these is not known.
    ///
    /// # Errors
    /// Those of [`Self::ask`].
    pub async fn know<'a>(&mut self, mut uuids: impl Iterator<Item = &'a str>) -> Result<()> {
        match uuids.any(|uuid| !self.by_uuid.contains_key(uuid)) {
            true => self.refresh().await,
            false => Ok(()),
        }
    }

    pub fn by_uuid(&self) -> &BTreeMap<String, Server> {
        &self.by_uuid
    }

    pub fn alive(&self) -> usize {
        self.alive
    }

    /// The racks with servers that are alive.
    pub fn racks(&self) -> usize {
        self.racks
    }

    async fn refresh(&mut self) -> Result<()> {
        let told = self.operator.data_servers().await?;
        let alive = told.iter().filter(|server| server.is_alive);
        self.alive = alive.clone().count();
        self.racks = alive.map(|server| &*server.rack).collect::<BTreeSet<_>>().len();
        let known = told.into_iter().map(|server| {
            let known = Server {
                address: server.address,
                host_name: server.host_name,
                rack: server.rack,
                state: server.admin_state,
                ..Server::default()
            };
            (server.uuid, known)
        });
        self.by_uuid = known.collect();
        Ok(())
    }
}
