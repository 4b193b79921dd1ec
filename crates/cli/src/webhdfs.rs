//! Puts a gateway for WebHDFS beside a server, where the configuration has one.

use crate::{
    client_config::HTTP_PORT,
    config::{self, settings::Settings},
    http_hosts, pages,
};
use anyhow::Context;
use base::Proxies;
use datad::DataConfig;
use env::Env;
use gateway::{Config, Gateway, Role};
use metad::MetaConfig;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use web::{
    Pages,
    origin::{Origins, host_of},
};

/// A gateway may have a quarter of the descriptors that its server keeps back from its clients. A request takes up to
/// three: its own, one to a metadata server and one to a data server.
const DESCRIPTORS_SHARE: usize = 4;

/// The gateway of the metadata server that is about to start with `config`, which gets all pages that the program adds to its own.
///
/// # Errors
/// The system starts no thread, or `http_hosts` has a text that is no name.
pub fn beside_metadata(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &mut MetaConfig,
) -> anyhow::Result<Option<Gateway>> {
    let gateway = gateway_of_metadata(settings, user, env, config)?;
    config.pages = gateway.as_ref().map(Gateway::pages).unwrap_or_default();
    pages::put(
        &mut config.pages,
        settings,
        config::META,
        origins(settings, &[]),
        http_hosts::of_metadata(settings)?,
    );
    Ok(gateway)
}

fn gateway_of_metadata(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &MetaConfig,
) -> anyhow::Result<Option<Gateway>> {
    if !settings.flag("webhdfs") || config.http_address.is_none() {
        return Ok(None);
    }
    let operator = operator(settings, user);
    let role = Role::Metadata { redirects: settings.flag("webhdfs_redirects") };
    start(settings, role, operator, env, &[], Vec::new()).map(Some)
}

/// The user in whose name a server asks itself.
pub fn operator<'a>(settings: &'a Settings, user: &'a str) -> &'a str {
    match settings.text("superuser") {
        "" => user,
        named => named,
    }
}

/// The address at which this process reaches a port that it listens on.
pub fn reached(bound: SocketAddr) -> SocketAddr {
    match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), bound.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), bound.port()),
        _ => bound,
    }
}

/// The HTTP connections that a server may have.
pub fn connections_max(env: &Env) -> usize {
    env.descriptors.kept_back() / DESCRIPTORS_SHARE
}

/// Tells a gateway the metadata server beside which it stands, once that has its address.
pub fn locate(gateway: &Gateway, advertised: Option<&str>, bound: SocketAddr) {
    let name = match advertised {
        Some(name) => name.to_owned(),
        // Without a name that others know, data servers ask those in their own configuration.
        None if bound.ip().is_unspecified() => String::new(),
        None => bound.to_string(),
    };
    gateway.locate(name, reached(bound).to_string());
}

/// A gateway for the data server that is about to start with `config`, and all pages that the program adds to its own.
///
/// # Errors
/// The system starts no thread, or `http_hosts` has a text that is no name.
pub fn beside_data(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &DataConfig,
) -> anyhow::Result<(Option<Gateway>, Pages)> {
    let servers = config.metadata_servers.clone();
    let beside = pages_of(&servers);
    let gateway = match settings.flag("webhdfs") {
        true => Some(start(settings, Role::Data, user, env, &beside, servers)?),
        false => None,
    };
    let mut pages = gateway.as_ref().map(Gateway::pages).unwrap_or_default();
    pages::put(
        &mut pages,
        settings,
        config::DATA,
        origins(settings, &beside),
        http_hosts::of_data(settings)?,
    );
    Ok((gateway, pages))
}

/// The origins whose pages may change something. `beside`: those of the cluster whose pages lead here.
fn origins(settings: &Settings, beside: &[String]) -> Origins {
    Origins::new(&[settings.texts("cors_origins"), beside].concat())
}

/// The origins of the pages of metadata servers. A data server knows the ports of their calls only, so they are those of the usual HTTP port: other programs on
/// these hosts have their own pages at other ports.
fn pages_of(servers: &[String]) -> Vec<String> {
    let host = |server: &String| match host_of(server) {
        ip if ip.contains(':') => format!("[{ip}]"),
        name => name.to_owned(),
    };
    servers.iter().map(|server| format!("http://{}:{HTTP_PORT}", host(server))).collect()
}

fn start(
    settings: &Settings,
    role: Role,
    operator: &str,
    env: &Env,
    beside: &[String],
    servers: Vec<String>,
) -> anyhow::Result<Gateway> {
    let connections_max = connections_max(env);
    let config = Config {
        role,
        operator: operator.to_owned(),
        origins: origins(settings, beside),
        proxies: Proxies::parse(settings.table("proxy_users"))
            .map_err(|reason| anyhow::anyhow!("proxy_users: {reason}"))?,
        connections_max,
        transfers_max: (settings.number("max_webhdfs_transfers") as usize).min(connections_max),
    };
    Gateway::start(config, servers).context("starting the threads of WebHDFS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use web::{
        http::{HeaderMap, HeaderValue, header},
        origin::Origin,
    };

    /// Another program on the host of a metadata server has pages of its own, and may have users who write them.
    #[test]
    fn of_a_metadata_servers_host_only_the_pages_of_the_metadata_server_may_change_files() {
        let mut settings = Settings::defaults(config::DATA);
        settings.set("cors_origins=https://console.example").unwrap();
        let beside = pages_of(&["meta-1.example:8020".to_owned(), "[::1]:8020".to_owned()]);
        let origins = origins(&settings, &beside);
        for (origin, is_allowed) in [
            ("http://meta-1.example:9870", true),
            ("http://[::1]:9870", true),
            ("https://console.example", true),
            ("http://meta-1.example", false),
            ("http://meta-1.example:8080", false),
            ("https://meta-1.example:9870", false),
            ("http://meta-1.example:98700", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("data-1:9864"));
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(matches!(origins.judge(&headers), Origin::Allowed(_)), is_allowed, "{origin}");
        }
    }
}
