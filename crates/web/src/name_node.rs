//! The small pages of a NameNode: whether it is active, which data servers are on which rack, and how its start went.

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Live data servers by rack.
pub type Racks = BTreeMap<String, BTreeSet<RackServer>>;

/// A data server on a rack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RackServer {
    /// `ip:port` of the transfer port.
    pub address: String,
    /// Its name; empty if it has none.
    pub name: String,
}

/// The facts that the pages tell. Each is asked at each request, and must be quick.
#[derive(Clone)]
pub struct NameNode {
    pub is_active: IsActive,
    pub racks: RackSource,
    pub start: StartSource,
}

/// Tells the racks.
pub type RackSource = Arc<dyn Fn() -> Racks + Send + Sync>;
/// Tells whether the server is active.
pub type IsActive = Arc<dyn Fn() -> bool + Send + Sync>;
/// Tells of the start of the server, in the shape of Hadoop's page.
pub type StartSource = Arc<dyn Fn() -> Value + Send + Sync>;

/// The pages `/isActive`, `/topology` and `/startupProgress`.
pub fn name_node(source: NameNode) -> Router {
    let NameNode { is_active, racks, start } = source;
    let topology = Router::new().route("/topology", get(topology)).with_state(racks);
    topology.merge(start_of_name_node(is_active, start))
}

/// Those of the pages that a server has before it knows its data servers.
pub fn start_of_name_node(active: IsActive, told: StartSource) -> Router {
    let router = Router::new().route("/isActive", get(is_active)).with_state(active);
    router.merge(Router::new().route("/startupProgress", get(start)).with_state(told))
}

/// The question of a load balancer that wants the active alone. A standby answers 405, as in Hadoop.
async fn is_active(State(source): State<IsActive>) -> impl IntoResponse {
    let (status, text) = match source() {
        true => (StatusCode::OK, "I am Active!"),
        false => (StatusCode::METHOD_NOT_ALLOWED, "I am not Active!"),
    };
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONNECTION, "close"),
    ];
    (status, headers, text)
}

async fn topology(State(source): State<RackSource>, headers: HeaderMap) -> impl IntoResponse {
    let racks = source();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let (kind, text) = match accept.is_some_and(|accept| accept.contains("json")) {
        true => ("application/json; charset=utf-8", topology_json(&racks)),
        false => ("text/plain; charset=utf-8", topology_text(&racks)),
    };
    ([(header::CONTENT_TYPE, kind)], text)
}

async fn start(State(source): State<StartSource>) -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "application/json; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (headers, source().to_string())
}

/// Hadoop's text for a cluster without live data servers, in either format.
const NONE: &str = "No DataNodes";

fn topology_text(racks: &Racks) -> String {
    if racks.is_empty() {
        return NONE.to_owned();
    }
    let mut text = String::new();
    for (rack, servers) in racks {
        text += &format!("Rack: {rack}\n");
        for RackServer { address, name } in servers {
            let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
            text += &format!("   {address}{name}\n");
        }
        text.push('\n');
    }
    text
}

fn topology_json(racks: &Racks) -> String {
    if racks.is_empty() {
        return NONE.to_owned();
    }
    let server = |RackServer { address, name }: &RackServer| match name.is_empty() {
        true => json!({ "ip": address }),
        false => json!({ "ip": address, "hostname": name }),
    };
    let rack = |(rack, servers): (&String, &BTreeSet<_>)| {
        let servers: Vec<Value> = servers.iter().map(server).collect();
        json!({ &**rack: servers })
    };
    Value::Array(racks.iter().map(rack).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn racks() -> Racks {
        let server =
            |(address, name): &(&str, &str)| RackServer { address: (*address).into(), name: (*name).into() };
        let servers = |of: &[(&str, &str)]| of.iter().map(server).collect();
        Racks::from([
            ("/r2".to_owned(), servers(&[("10.0.0.3:9866", "data-3")])),
            ("/r1".to_owned(), servers(&[("10.0.0.2:9866", ""), ("10.0.0.1:9866", "data-1")])),
        ])
    }

    #[test]
    fn a_topology_is_told_by_rack() {
        let expected = "Rack: /r1\n   10.0.0.1:9866 (data-1)\n   10.0.0.2:9866\n\nRack: /r2\n   10.0.0.3:9866 (data-3)\n\n";
        assert_eq!(topology_text(&racks()), expected);
        let expected = json!([
            { "/r1": [{ "ip": "10.0.0.1:9866", "hostname": "data-1" }, { "ip": "10.0.0.2:9866" }] },
            { "/r2": [{ "ip": "10.0.0.3:9866", "hostname": "data-3" }] },
        ]);
        assert_eq!(serde_json::from_str::<Value>(&topology_json(&racks())).unwrap(), expected);
        assert_eq!((topology_text(&Racks::new()), topology_json(&Racks::new())), (NONE.into(), NONE.into()));
    }
}
