//! The first page: one verdict, and why.

use crate::{
    asked::Asked,
    beans::Beans,
    chart::{self, Line},
    cluster::Cluster,
    conditions::{self, Condition},
    group::Row,
    history::Sample,
    page::{Frame, shown},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::response::Response;
use client::FsStats;
use verdict::{Facts, Severity, Unanswered};

/// The time that charts show, in milliseconds.
const CHART_MS: u64 = 3_600_000;

#[derive(Template)]
#[template(path = "overview.html")]
pub struct Overview {
    pub frame: Frame,
    /// `well`, `warning` or `error`.
    pub verdict: &'static str,
    pub sentence: String,
    pub conditions: Vec<Condition>,
    /// Questions that were not answered in time, each in a sentence.
    pub unanswered: Vec<String>,
    pub headline: String,
    pub members: Vec<Row>,
    pub room: Option<Room>,
    /// Name, value and the page that shows more.
    pub counts: Vec<(&'static str, String, &'static str)>,
    pub rate: String,
    pub rate_chart: String,
    pub latency: String,
    pub latency_chart: String,
}

/// The capacity of the data servers, and its use.
pub struct Room {
    pub capacity: String,
    pub used: String,
    pub other: String,
    pub remaining: String,
    pub used_percent: f64,
    pub other_percent: f64,
    pub used_text: String,
}

impl Room {
    fn of(stats: &FsStats) -> Self {
        let other = stats.capacity.saturating_sub(stats.used).saturating_sub(stats.remaining);
        let used_percent = text::percent(stats.used, stats.capacity);
        Self {
            capacity: text::size(stats.capacity),
            used: text::size(stats.used),
            other: text::size(other),
            remaining: text::size(stats.remaining),
            used_percent: used_percent.min(100.0),
            other_percent: text::percent(other, stats.capacity).min(100.0),
            used_text: format!("{used_percent:.2} %"),
        }
    }
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("Overview", "/", &asked.visitor).refreshing(5);
    // A server that waits has no address yet, and says itself why.
    let cluster = match asked.cluster().await {
        Ok(cluster) => cluster,
        Err(refusal) => std::sync::Arc::new(waiting(&asked, &refusal)),
    };
    let beans = Beans::of(&asked.facts);
    let samples = asked.shared.history.samples();
    Ok(shown(&Overview::new(frame, &cluster, &beans, &samples, text::now_ms())))
}

fn waiting(asked: &Asked, refusal: &Refusal) -> Cluster {
    let health = (asked.facts.health)();
    let reason = health.details.get("reason").unwrap_or(&refusal.reason);
    let silent = Unanswered { address: "this one".to_owned(), reason: format!("{}: {reason}", health.state) };
    Cluster { facts: Facts { unanswered: vec![silent], ..Facts::default() }, ..Cluster::default() }
}

impl Overview {
    pub fn new(frame: Frame, cluster: &Cluster, beans: &Beans, samples: &[Sample], now_ms: u64) -> Self {
        let conditions = conditions::of(cluster);
        let (verdict, sentence) = match conditions.first() {
            None => ("well", "The cluster is well.".to_owned()),
            Some(worst) => {
                let count =
                    |severity| conditions.iter().filter(|one| one.severity == severity).count() as u64;
                let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
                let mut parts = Vec::new();
                if errors > 0 {
                    parts.push(text::of(errors, "error", "errors"));
                }
                if warnings > 0 {
                    parts.push(text::of(warnings, "warning", "warnings"));
                }
                (worst.severity.as_str(), format!("{} to look into.", parts.join(" and ")))
            }
        };
        let (headline, members) = match &cluster.group {
            Some(known) => (
                text::sentence(&known.headline()),
                known.members.iter().map(|member| Row::of(known, member)).collect(),
            ),
            None => (String::new(), Vec::new()),
        };
        let last = samples.last();
        let rate =
            last.map_or(text::UNKNOWN.to_owned(), |sample| format!("{:.1} a second", sample.per_second));
        let latency = match last.and_then(|sample| Some((sample.p50_ns?, sample.p99_ns?))) {
            Some((p50, p99)) => format!("p50 {}, p99 {}", text::latency(p50), text::latency(p99)),
            None => "no calls in the last seconds".to_owned(),
        };
        Self {
            frame,
            verdict,
            sentence,
            conditions,
            unanswered: cluster.unanswered.clone(),
            headline,
            members,
            room: cluster.stats.as_ref().map(Room::of),
            counts: counts(cluster, beans),
            rate,
            rate_chart: rate_chart(samples, now_ms),
            latency,
            latency_chart: latency_chart(samples, now_ms),
        }
    }
}

fn counts(cluster: &Cluster, beans: &Beans) -> Vec<(&'static str, String, &'static str)> {
    let number = |number: Option<u64>| number.map_or(text::UNKNOWN.to_owned(), text::count);
    let of = |attribute| beans.number("FSNamesystem", attribute);
    let servers = cluster.servers.as_ref().map(|servers| {
        let live = servers.iter().filter(|server| server.is_alive).count();
        format!("{live} of {}", servers.len())
    });
    let stats = cluster.stats.as_ref();
    vec![
        ("Files and directories", number(of("FilesTotal")), "/files"),
        ("Blocks", number(of("BlocksTotal")), "/blocks"),
        ("Data servers alive", servers.unwrap_or(text::UNKNOWN.to_owned()), "/data-servers"),
        ("Lost blocks", number(stats.map(|stats| stats.missing_blocks)), "/blocks"),
        ("Under-replicated blocks", number(stats.map(|stats| stats.under_replicated_blocks)), "/blocks"),
        ("Files being written", number(of("NumFilesUnderConstruction")), "/open-files"),
        ("Snapshots", number(of("Snapshots")), "/snapshots"),
    ]
}

fn from_ms(samples: &[Sample], now_ms: u64) -> u64 {
    // A server that began lately has its few minutes over the whole width, but at least five.
    let first = samples.first().map_or(now_ms, |sample| sample.at_ms);
    first.min(now_ms.saturating_sub(300_000)).max(now_ms.saturating_sub(CHART_MS))
}

fn rate_chart(samples: &[Sample], now_ms: u64) -> String {
    let points = samples.iter().map(|sample| (sample.at_ms, sample.per_second)).collect();
    let line = Line { class: "rate", points };
    chart::lines("Calls of clients a second over time", &[line], from_ms(samples, now_ms), now_ms, |value| {
        if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
    })
}

fn latency_chart(samples: &[Sample], now_ms: u64) -> String {
    let line = |class, of: fn(&Sample) -> Option<u64>| Line {
        class,
        points: samples.iter().filter_map(|sample| Some((sample.at_ms, of(sample)? as f64))).collect(),
    };
    let lines = [line("p99", |sample| sample.p99_ns), line("p50", |sample| sample.p50_ns)];
    let label = "How long calls took over time: half of them, and 99 of 100";
    chart::lines(label, &lines, from_ms(samples, now_ms), now_ms, |value| text::latency(value as u64))
}

#[cfg(test)]
mod tests;
