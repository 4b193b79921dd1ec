//! The calls of this server: how often, how long, and for whom.

use crate::{
    asked::Asked,
    beans::Beans,
    page::{Frame, shown},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::response::Response;
use serde_json::Value;
use web::Facts;

/// The stage of a call that is its whole time, in the order of `measures::STAGES`.
pub const TOTAL: usize = 2;
/// Methods and users that are shown.
const METHODS_MAX: usize = 100;
const USERS_MAX: usize = 10;

/// Whether a protocol is that of clients: data servers and members speak others.
pub fn is_of_clients(protocol: &str) -> bool {
    protocol == proto::protocol::CLIENT_NAMENODE
}

#[derive(Template)]
#[template(path = "calls.html")]
pub struct Page {
    frame: Frame,
    windows: Vec<Window>,
    methods: Vec<Method>,
}

/// The busiest users of the last minutes.
pub struct Window {
    name: String,
    total: u64,
    users: Vec<(String, String)>,
    operations: Vec<(String, String)>,
}

pub struct Method {
    pub protocol: String,
    pub name: &'static str,
    pub calls: u64,
    pub refused: u64,
    pub mean: String,
    pub p50: String,
    pub p99: String,
    pub longest: String,
    longest_ns: u64,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("Calls", "/calls", &asked.visitor).refreshing(10);
    let windows = windows(&Beans::of(&asked.facts));
    Ok(shown(&Page { frame, windows, methods: methods(&asked.facts) }))
}

/// All methods, those with the slowest call first.
fn methods(facts: &Facts) -> Vec<Method> {
    let known = facts.sources.calls.as_ref().map(|calls| calls()).unwrap_or_default();
    let mut methods: Vec<Method> = known
        .iter()
        .map(|of| {
            let figures = &of.stages[TOTAL];
            let longest_ns = figures.quantile_ns(1.0);
            Method {
                protocol: of.protocol.rsplit('.').next().unwrap_or_default().to_owned(),
                name: of.method,
                calls: figures.count(),
                refused: of.refused,
                mean: text::latency(figures.mean_ns()),
                p50: text::latency(figures.quantile_ns(0.5)),
                p99: text::latency(figures.quantile_ns(0.99)),
                longest: text::latency(longest_ns),
                longest_ns,
            }
        })
        .collect();
    methods.sort_by_key(|method| std::cmp::Reverse(method.longest_ns));
    methods.truncate(METHODS_MAX);
    methods
}

fn windows(beans: &Beans) -> Vec<Window> {
    let told = beans.json("FSNamesystemState", "TopUserOpCounts").unwrap_or_default();
    let windows = told.get("windows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    windows.iter().filter_map(Window::of).collect()
}

impl Window {
    fn of(told: &Value) -> Option<Self> {
        let seconds = told.get("windowLenMs")?.as_u64()? / 1_000;
        let operations = told.get("ops")?.as_array()?;
        let kind = |of: &Value| of.get("opType").and_then(Value::as_str).unwrap_or_default().to_owned();
        let total = |of: &Value| of.get("totalCount").and_then(Value::as_u64).unwrap_or(0);
        let all = operations.iter().find(|of| kind(of) == "*");
        let users = all.and_then(|all| all.get("topUsers")).and_then(Value::as_array);
        let user = |of: &Value| {
            let calls = of.get("count").and_then(Value::as_u64).unwrap_or(0);
            Some((of.get("user")?.as_str()?.to_owned(), text::count(calls)))
        };
        let shown = operations.iter().filter(|of| kind(of) != "*").take(USERS_MAX);
        Some(Self {
            name: if seconds < 120 { format!("{seconds} s") } else { format!("{} minutes", seconds / 60) },
            total: all.map_or(0, total),
            users: users.into_iter().flatten().filter_map(user).take(USERS_MAX).collect(),
            operations: shown.map(|of| (kind(of), text::count(total(of)))).collect(),
        })
    }
}
