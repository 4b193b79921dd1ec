//! Puts a gateway for WebHDFS beside a server, where the configuration has one.

use crate::config::settings::Settings;
use anyhow::Context;
use base::Proxies;
use datad::DataConfig;
use env::Env;
use gateway::{Config, Gateway, Origins, Role, origin::host_of};
use metad::MetaConfig;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A gateway may have a quarter of the descriptors that its server keeps back from its clients. A request takes up to
/// three: its own, one to a metadata server and one to a data server.
const DESCRIPTORS_SHARE: usize = 4;

/// The gateway of the metadata server that is about to start with `config`.
///
/// # Errors
/// The system starts no thread.
pub fn beside_metadata(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &mut MetaConfig,
) -> anyhow::Result<Option<Gateway>> {
    if !settings.flag("webhdfs") || config.http_address.is_none() {
        return Ok(None);
    }
    let operator = match settings.text("superuser") {
        "" => user,
        named => named,
    };
    let role = Role::Metadata { redirects: settings.flag("webhdfs_redirects") };
    let gateway = start(settings, role, operator, env, &[], Vec::new())?;
    config.pages = gateway.pages();
    Ok(Some(gateway))
}

/// Tells a gateway the metadata server beside which it stands, once that has its address.
pub fn locate(gateway: &Gateway, advertised: Option<&str>, bound: SocketAddr) {
    let reached = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), bound.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), bound.port()),
        _ => bound,
    };
    let name = match advertised {
        Some(name) => name.to_owned(),
        // Without a name that others know, data servers ask those in their own configuration.
        None if bound.ip().is_unspecified() => String::new(),
        None => bound.to_string(),
    };
    gateway.locate(name, reached.to_string());
}

/// A gateway for the data server that is about to start with `config`.
///
/// # Errors
/// The system starts no thread.
pub fn beside_data(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &DataConfig,
) -> anyhow::Result<Option<Gateway>> {
    if !settings.flag("webhdfs") {
        return Ok(None);
    }
    let servers = config.metadata_servers.clone();
    let hosts: Vec<String> = servers.iter().map(|server| host_of(server).to_owned()).collect();
    start(settings, Role::Data, user, env, &hosts, servers).map(Some)
}

fn start(
    settings: &Settings,
    role: Role,
    operator: &str,
    env: &Env,
    hosts: &[String],
    servers: Vec<String>,
) -> anyhow::Result<Gateway> {
    let connections_max = env.descriptors.kept_back() / DESCRIPTORS_SHARE;
    let config = Config {
        role,
        operator: operator.to_owned(),
        origins: Origins::new(settings.texts("cors_origins"), hosts),
        proxies: Proxies::parse(settings.table("proxy_users"))
            .map_err(|reason| anyhow::anyhow!("proxy_users: {reason}"))?,
        connections_max,
        transfers_max: (settings.number("max_webhdfs_transfers") as usize).min(connections_max),
    };
    Gateway::start(config, servers).context("starting the threads of WebHDFS")
}
