//! The data servers: which there are, how full they are, and how long ago each was heard.

use crate::{
    asked::Asked,
    chart,
    cluster::Cluster,
    page::{Frame, shown},
    refusal::Refusal,
    text::{self, UNKNOWN},
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use client::{AdminState, DataServer, DataServerState, Volume};

/// Servers on one page.
const ROWS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "data_servers.html")]
pub struct Page {
    frame: Frame,
    /// The text by which the visitor filters the table.
    filter: String,
    state: String,
    states: Vec<(&'static str, usize)>,
    rows: Vec<Row>,
    /// How many match, and how many there are.
    matching: usize,
    all: usize,
    histogram: String,
    /// The address of the next page.
    next: Option<String>,
    volumes_known: bool,
}

/// A data server as a row of a table. Nothing in it has to be known.
pub struct Row {
    pub address: String,
    pub host: String,
    pub rack: String,
    pub state: &'static str,
    pub service: &'static str,
    pub class: &'static str,
    pub capacity: String,
    pub used: String,
    pub other: String,
    pub remaining: String,
    /// `None`: its capacity is not known.
    pub used_percent: Option<f64>,
    pub blocks: String,
    pub heard: String,
    pub reported: String,
    pub version: String,
    pub uuid: String,
    pub volumes: Vec<VolumeRow>,
    pub volumes_text: String,
    pub notes: Vec<String>,
}

pub struct VolumeRow {
    pub id: String,
    pub state: &'static str,
    pub capacity: String,
    pub used: String,
    pub remaining: String,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let cluster = asked.cluster().await?;
    if cluster.servers.is_none() {
        let reason = cluster.unanswered.join(" ");
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "The data servers are not known", reason));
    }
    let frame = Frame::new("Data servers", "/data-servers", &asked.visitor).refreshing(10);
    let text = |name| asked.parameter(name).unwrap_or_default().chars().take(200).collect::<String>();
    let skip = asked.parameter("skip").and_then(|skip| skip.parse().ok()).unwrap_or(0);
    Ok(shown(&Page::new(frame, &cluster, text("filter"), text("state"), skip)))
}

impl Page {
    pub fn new(frame: Frame, cluster: &Cluster, filter: String, state: String, skip: usize) -> Self {
        let servers = cluster.servers.as_deref().unwrap_or_default();
        let mut rows: Vec<Row> = servers.iter().map(|server| Row::of(cluster, server)).collect();
        use DataServerState::{Dead, Full, Live, Slow, Stale};
        let states = [Live, Slow, Full, Stale, Dead].map(DataServerState::word);
        let states = states.map(|state| (state, rows.iter().filter(|row| row.state == state).count()));
        let needle = filter.to_lowercase();
        rows.retain(|row| {
            let fields = [&row.address, &row.host, &row.rack, &row.version, &row.uuid];
            (state.is_empty() || row.state == state)
                && (needle.is_empty() || fields.iter().any(|field| field.to_lowercase().contains(&needle)))
        });
        let matching = rows.len();
        let next = (matching > skip.saturating_add(ROWS_MAX)).then(|| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("filter", &filter).append_pair("state", &state);
            query.append_pair("skip", &(skip + ROWS_MAX).to_string());
            format!("/data-servers?{}", query.finish())
        });
        Self {
            frame,
            filter,
            state,
            states: states.to_vec(),
            rows: rows.into_iter().skip(skip).take(ROWS_MAX).collect(),
            matching,
            all: servers.len(),
            histogram: histogram(servers),
            next,
            volumes_known: !cluster.volumes.is_empty(),
        }
    }
}

/// How many living servers are how full, in steps of a tenth.
fn histogram(servers: &[DataServer]) -> String {
    let mut counts = [0_u64; 10];
    for server in servers.iter().filter(|server| server.is_alive && server.capacity > 0) {
        let share = text::percent(server.used, server.capacity);
        counts[((share / 10.0) as usize).min(9)] += 1;
    }
    let columns: Vec<_> = counts
        .iter()
        .enumerate()
        .map(|(at, count)| (format!("{}–{} %", at * 10, at * 10 + 10), *count))
        .collect();
    chart::columns("How many data servers are how full", &columns)
}

fn service(state: AdminState) -> &'static str {
    match state {
        AdminState::InService => "in service",
        AdminState::DecommissionInProgress => "being decommissioned",
        AdminState::Decommissioned => "decommissioned",
        AdminState::EnteringMaintenance => "entering maintenance",
        AdminState::InMaintenance => "in maintenance",
    }
}

fn known(text: &str) -> String {
    if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() }
}

impl Row {
    pub fn of(cluster: &Cluster, server: &DataServer) -> Self {
        let silent_ms = server.silent_ms(cluster.now_ms());
        let ago = |ms: Option<u64>| ms.map_or(UNKNOWN.to_owned(), |ms| format!("{} ago", text::duration(ms)));
        let group = cluster.group.as_ref();
        let slow = server.slowness(group);
        let state = server.state(group, cluster.now_ms());
        let mut notes = Vec::new();
        if let Some(slow) = slow {
            let reporters = text::of(slow.reporters.into(), "data server says", "data servers say");
            notes.push(format!(
                "{reporters} that it is slow: a packet takes {:.1} ms, to most others {:.1} ms.",
                slow.latency_ms, slow.median_ms
            ));
        }
        for disk in group.iter().flat_map(|group| &group.slow_disks).filter(|disk| disk.uuid == server.uuid) {
            notes.push(format!("Its disk {} is slow.", disk.path));
        }
        for leaving in group.iter().flat_map(|group| &group.leaving).filter(|one| one.uuid == server.uuid) {
            notes.push(format!(
                "It is to leave service, and {} need it.",
                text::of(leaving.blocks_in_need, "block", "blocks")
            ));
        }
        let volumes = cluster.volumes.get(&server.uuid).map(Vec::as_slice).unwrap_or_default();
        let report_ms = (server.last_block_report_ms > 0)
            .then(|| cluster.now_ms().saturating_sub(server.last_block_report_ms));
        Self {
            address: known(&server.address),
            host: known(&server.host_name),
            rack: known(&server.rack),
            state: state.word(),
            service: service(server.admin_state),
            class: match state {
                DataServerState::Live => "well",
                DataServerState::Dead => "error",
                _ => "warning",
            },
            capacity: text::size(server.capacity),
            used: text::size(server.used),
            other: text::size(server.non_dfs_used),
            remaining: text::size(server.remaining),
            used_percent: (server.capacity > 0)
                .then(|| text::percent(server.used, server.capacity).min(100.0)),
            blocks: text::count(server.blocks),
            heard: ago(silent_ms),
            reported: ago(report_ms),
            version: known(&server.version),
            uuid: known(&server.uuid),
            volumes_text: volumes_text(volumes),
            volumes: volumes.iter().map(VolumeRow::of).collect(),
            notes,
        }
    }

    pub fn used_text(&self) -> String {
        self.used_percent.map_or(UNKNOWN.to_owned(), |percent| format!("{percent:.1} %"))
    }
}

fn volumes_text(volumes: &[Volume]) -> String {
    if volumes.is_empty() {
        return UNKNOWN.to_owned();
    }
    let failed = volumes.iter().filter(|volume| volume.is_failed).count();
    match failed {
        0 => volumes.len().to_string(),
        _ => format!("{}, {failed} failed", volumes.len()),
    }
}

impl VolumeRow {
    fn of(volume: &Volume) -> Self {
        Self {
            id: known(&volume.storage_id),
            state: match volume {
                Volume { is_failed: true, .. } => "failed",
                _ if volume.is_full() => "full",
                _ => "in use",
            },
            capacity: text::size(volume.capacity),
            used: text::size(volume.used),
            remaining: text::size(volume.remaining),
        }
    }
}

#[cfg(test)]
mod tests;
