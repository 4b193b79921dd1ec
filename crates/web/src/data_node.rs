//! The page of a data server at `/`: who it is, its volumes, and where its other pages are.
//!
//! Hadoop's data servers have such a page at `/datanode.html`, so that address leads here. The addresses of a NameNode's pages lead here too: a
//! person who has noted the port of a data server for that of a metadata server sees which server this is.

use crate::{
    amounts::{duration, size},
    guard::guard,
    settings::escaped,
};
use axum::{
    Router,
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use std::{fmt::Write, sync::Arc};

/// Addresses of Hadoop's pages that are noted somewhere.
const OLD: [&str; 6] =
    ["/index.html", "/datanode.html", "/dfshealth.html", "/explorer.html", "/logs", "/logs/"];

/// The other pages of a data server, and what they are.
const PAGES: [(&str, &str); 8] = [
    ("/health", "whether this server is well"),
    ("/ready", "whether it has a metadata server"),
    ("/metrics", "figures for Prometheus"),
    ("/prom", "figures under Hadoop's names"),
    ("/jmx", "the beans of a DataNode"),
    ("/conf", "all settings and where they come from"),
    ("/logLevel", "the levels of the log"),
    ("/stacks", "the threads of the process"),
];

const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const STYLE: &str = ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
    table{border-collapse:collapse}th,td{border-bottom:1px solid #8888;padding:.25rem 1rem .25rem 0;text-align:left}\
    div{overflow-x:auto}dt{font-weight:600}code{overflow-wrap:anywhere}";

/// The facts of the page.
#[derive(Clone, Debug, Default)]
pub struct DataNode {
    /// `host:port` of the transfer port, under which clients and operators know the server.
    pub name: String,
    pub uuid: String,
    pub version: String,
    /// How long it has been up, in milliseconds.
    pub uptime_ms: u64,
    pub volumes: Vec<Volume>,
    /// Directories that are not in use any more.
    pub failed: Vec<String>,
    /// The metadata servers, and how far this server has come with each.
    pub metadata_servers: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
pub struct Volume {
    pub directory: String,
    pub storage_type: &'static str,
    pub replicas: u64,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub free_bytes: u64,
}

/// Asked at each request. It may read the room of the disks.
pub type DataNodeSource = Arc<dyn Fn() -> DataNode + Send + Sync>;

/// The page `/`, and what leads to it.
pub fn data_node(source: DataNodeSource) -> Router {
    let router = Router::new().route("/", get(show));
    let router = OLD.iter().fold(router, |router, old| router.route(old, get(to_page)));
    router.with_state(source)
}

async fn to_page() -> Redirect {
    Redirect::to("/")
}

async fn show(State(source): State<DataNodeSource>) -> Response {
    let facts = tokio::task::spawn_blocking(move || source()).await.unwrap_or_default();
    let mut response = Html(html(&facts)).into_response();
    guard(response.headers_mut(), POLICY);
    response
}

fn html(facts: &DataNode) -> String {
    let name = escaped(&facts.name);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <link rel=\"icon\" href=\"data:,\"><title>Data server {name}</title><style>{STYLE}</style></head>\n<body><h1>Data server {name}</h1>\n\
         <dl><dt>UUID</dt><dd><code>{}</code></dd><dt>Release</dt><dd>{}</dd><dt>Up for</dt><dd>{}</dd></dl>\n",
        escaped(&facts.uuid),
        escaped(&facts.version),
        duration(facts.uptime_ms)
    );
    page += "<h2>Volumes</h2>\n<div><table><thead><tr><th>Directory</th><th>Type</th><th>Replicas</th><th>Used</th><th>Free</th><th>Capacity</th></tr></thead><tbody>\n";
    for volume in &facts.volumes {
        let [used, free, capacity] = [volume.used_bytes, volume.free_bytes, volume.capacity_bytes].map(size);
        let _ = writeln!(
            page,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{used}</td><td>{free}</td><td>{capacity}</td></tr>",
            escaped(&volume.directory),
            volume.storage_type,
            volume.replicas
        );
    }
    page += "</tbody></table></div>\n";
    for directory in &facts.failed {
        let _ = writeln!(page, "<p><strong>Not in use:</strong> <code>{}</code></p>", escaped(directory));
    }
    page += "<h2>Metadata servers</h2>\n<ul>\n";
    for (address, standing) in &facts.metadata_servers {
        let _ = writeln!(page, "<li><code>{}</code>: {}</li>", escaped(address), escaped(standing));
    }
    page += "</ul>\n<p>Files are shown by the web console of a metadata server.</p>\n<h2>Pages</h2>\n<ul>\n";
    for (path, what) in PAGES {
        let _ = writeln!(page, "<li><a href=\"{path}\">{path}</a>: {what}</li>");
    }
    page += "</ul>\n<p>The log goes to the standard error of the process.</p>\n</body></html>\n";
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_no_harm() {
        let hostile = "<img src=x onerror=alert(1)>\"'&";
        let facts = DataNode {
            name: hostile.into(),
            uuid: hostile.into(),
            version: hostile.into(),
            volumes: vec![Volume { directory: hostile.into(), ..Volume::default() }],
            failed: vec![hostile.into()],
            metadata_servers: vec![(hostile.into(), hostile.into())],
            ..DataNode::default()
        };
        let page = html(&facts);
        assert!(!page.contains("<img"), "{page}");
        assert_eq!(page.matches("&lt;img").count(), 8, "{page}");
    }
}
