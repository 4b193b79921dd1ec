//! How far the server is since its start: safe mode, what it waits for, what it has loaded.

use crate::{
    asked::Asked,
    beans::Beans,
    page::{Frame, shown},
    refusal::Refusal,
    text::{self, UNKNOWN},
};
use askama::Template;
use axum::response::Response;
use serde_json::Value;
use web::Health;

#[derive(Template)]
#[template(path = "start.html")]
pub struct Page {
    frame: Frame,
    state: String,
    is_ok: bool,
    not_ready: String,
    safe_mode: String,
    facts: Vec<(&'static str, String)>,
    details: Vec<(String, String)>,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("Start", "/start", &asked.visitor).refreshing(3);
    let health = (asked.facts.health)();
    Ok(shown(&Page::new(frame, &health, &Beans::of(&asked.facts), text::now_ms())))
}

impl Page {
    pub fn new(frame: Frame, health: &Health, beans: &Beans, now_ms: u64) -> Self {
        let info = |attribute| beans.number("NameNodeInfo", attribute);
        let journal = beans.json("NameNodeInfo", "JournalTransactionInfo").unwrap_or_default();
        let journal = |name: &str| journal.get(name).and_then(Value::as_str).unwrap_or(UNKNOWN).to_owned();
        let number = |number: Option<u64>| number.map_or(UNKNOWN.to_owned(), text::count);
        let namesystem = |attribute| number(beans.number("FSNamesystem", attribute));
        let started = info("NNStartedTimeInMillis");
        let since = started
            .map(|ms| format!("{} UTC, {} ago", text::time(ms), text::duration(now_ms.saturating_sub(ms))));
        let facts = vec![
            ("Started", since.unwrap_or(UNKNOWN.to_owned())),
            ("Release", beans.text("NameNodeInfo", "SoftwareVersion").unwrap_or(UNKNOWN).to_owned()),
            ("Newest image at entry", journal("MostRecentCheckpointTxId")),
            ("Journal read up to entry", journal("LastAppliedOrWrittenTxId")),
            ("Blocks that files have", namesystem("BlocksTotal")),
            ("Lost blocks so far", namesystem("MissingBlocks")),
            ("Data servers that have reported", namesystem("NumLiveDataNodes")),
            ("Volumes whose full report is missing", namesystem("NumStaleStorages")),
        ];
        Self {
            frame,
            state: health.state.clone(),
            is_ok: health.ok,
            not_ready: health.not_ready.clone().unwrap_or_default(),
            safe_mode: beans.text("NameNodeInfo", "Safemode").unwrap_or_default().to_owned(),
            facts,
            details: health.details.clone().into_iter().collect(),
        }
    }
}
