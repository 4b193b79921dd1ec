//! The metadata servers behind a gateway, and the connections of users to them.

use crate::error::{Refusal, Result};
use client::{Config, FileSystem, Location, Settings};
use parking_lot::Mutex;
use std::{collections::HashMap, net::SocketAddr};

/// Users whose connections are kept.
const USERS_MAX: usize = 64;
/// Rounds of attempts of one call while no server serves it: seven seconds or so.
const ATTEMPTS_MAX: &str = "4";

/// Opens file systems in the name of users.
pub struct Servers {
    settings: Settings,
    /// `None` until the metadata server of this process has its address.
    location: Mutex<Option<Location>>,
    by_user: Mutex<HashMap<(String, String), Kept>>,
}

struct Kept {
    fs: FileSystem,
    /// Counts uses: the one with the lowest number has not been used for the longest time.
    used: u64,
}

impl Servers {
    /// `umask`: the bits that are taken away from the modes of what is made, as three octal digits.
    ///
    /// # Errors
    /// This process runs as a user who has no name.
    pub fn new(location: Option<Location>, umask: &str) -> client::Result<Self> {
        let mut config = Config::new();
        config.set("fs.permissions.umask-mode", umask);
        config.set("dfs.client.failover.max.attempts", ATTEMPTS_MAX);
        let settings = Settings::new(&config)?;
        Ok(Self { settings, location: Mutex::new(location), by_user: Mutex::default() })
    }

    /// The metadata server has its address.
    pub fn locate(&self, location: Location) {
        *self.location.lock() = Some(location);
        self.by_user.lock().clear();
    }

    /// The servers to ask; of those of a data server, the one that the request names is asked first.
    ///
    /// # Errors
    /// The metadata server of this process is not ready, or the request names one that is not known here.
    pub async fn location(&self, named: Option<&str>) -> Result<Location> {
        let Some(location) = self.location.lock().clone() else {
            return Err(Refusal::busy("the metadata server is not ready"));
        };
        let Some(named) = named else { return Ok(location) };
        let known = match location.servers.iter().position(|server| server == named) {
            Some(at) => Some(at),
            None => find_by_address(&location.servers, named).await,
        };
        let Some(at) = known else {
            let shown: String = named.chars().take(80).collect();
            let message =
                format!("namenoderpcaddress={shown} is none of the metadata servers of this data server");
            return Err(Refusal::illegal(message));
        };
        let mut servers = location.servers;
        servers.rotate_left(at);
        Ok(Location { authority: servers[0].clone(), servers })
    }

    /// The connection of a user, shared by all of the user's requests.
    pub fn shared(&self, location: &Location, user: &str) -> FileSystem {
        let mut by_user = self.by_user.lock();
        let now = by_user.values().map(|kept| kept.used).max().unwrap_or(0) + 1;
        let key = (user.to_owned(), location.authority.clone());
        if let Some(kept) = by_user.get_mut(&key) {
            kept.used = now;
            return kept.fs.clone();
        }
        if by_user.len() >= USERS_MAX
            && let Some(oldest) = by_user.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone())
        {
            by_user.remove(&oldest);
        }
        let settings = Settings { user: user.to_owned(), ..self.settings.clone() };
        let fs = FileSystem::connect_to(location.clone(), settings);
        by_user.insert(key, Kept { fs: fs.clone(), used: now });
        fs
    }
}

/// A server may have another name here than where the request was made, but not another port: a stranger's names are not even looked up.
async fn find_by_address(servers: &[String], named: &str) -> Option<usize> {
    let (_, port) = named.rsplit_once(':')?;
    if !servers.iter().any(|server| server.rsplit_once(':').is_some_and(|(_, known)| known == port)) {
        return None;
    }
    let addresses = resolve(named).await;
    for (at, server) in servers.iter().enumerate() {
        if resolve(server).await.iter().any(|address| addresses.contains(address)) {
            return Some(at);
        }
    }
    None
}

async fn resolve(server: &str) -> Vec<SocketAddr> {
    tokio::net::lookup_host(server).await.map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Servers {
        let location = Location {
            authority: "127.0.0.1:8020".into(),
            servers: vec!["127.0.0.1:8020".into(), "127.0.0.2:8020".into()],
        };
        Servers::new(Some(location), "000").unwrap()
    }

    #[tokio::test]
    async fn a_server_that_is_not_known_is_not_asked() {
        let servers = servers();
        assert_eq!(servers.location(Some("127.0.0.2:8020")).await.unwrap().servers[0], "127.0.0.2:8020");
        assert_eq!(servers.location(None).await.unwrap().servers[0], "127.0.0.1:8020");
        for named in ["127.0.0.1:22", "127.0.0.2:9870", "localhost:22", "127.0.0.3:8020", "nonsense", ""] {
            assert_eq!(servers.location(Some(named)).await.unwrap_err().status.as_u16(), 400, "{named}");
        }
    }

    #[tokio::test]
    async fn few_users_connections_are_kept() {
        let servers = servers();
        let location = servers.location(None).await.unwrap();
        for number in 0..USERS_MAX * 2 {
            servers.shared(&location, &format!("user-{number}"));
            servers.shared(&location, "frequent");
        }
        let by_user = servers.by_user.lock();
        assert_eq!(by_user.len(), USERS_MAX);
        assert!(by_user.contains_key(&("frequent".to_owned(), location.authority.clone())));
    }
}
