//! Blocks that need care.

use crate::{
    asked::Asked,
    beans::Beans,
    page::{Frame, shown},
    paths,
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::response::Response;
use serde_json::Value;

/// The bean with most of the figures.
const NAMESYSTEM: &str = "FSNamesystem";
const INFO: &str = "NameNodeInfo";
/// Files with too few replicas that are named.
const FILES_MAX: usize = 100;

#[derive(Template)]
#[template(path = "blocks.html")]
pub struct Page {
    frame: Frame,
    counts: Vec<Count>,
    /// How many files that have lost a block are known by name.
    lost_count: usize,
    /// Those files, with the addresses of their pages. A stranger is not told names.
    lost: Vec<(String, String)>,
    /// The files with too few replicas, likewise; `None`: their names are not for this visitor.
    endangered: Option<Vec<(String, String)>>,
    is_active: bool,
}

pub struct Count {
    pub name: &'static str,
    pub value: String,
    /// `well`, `warning` or `error`.
    pub class: &'static str,
    pub meaning: &'static str,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("Blocks", "/blocks", &asked.visitor).refreshing(10);
    Ok(shown(&Page::new(frame, &Beans::of(&asked.facts), endangered(&asked).await)))
}

/// The first files with too few replicas, for superusers: names of directories that others may not read are among them.
async fn endangered(asked: &Asked) -> Option<Vec<String>> {
    let files = asked.facts.sources.endangered.clone()?;
    // It waits for the locks of the server.
    match asked.is_superuser().await {
        true => tokio::task::spawn_blocking(move || files(FILES_MAX)).await.ok(),
        false => None,
    }
}

fn linked(path: &str) -> (String, String) {
    (path.to_owned(), paths::page(path))
}

impl Page {
    pub fn new(frame: Frame, beans: &Beans, endangered: Option<Vec<String>>) -> Self {
        let count = |name, attribute, alarm, meaning| {
            let number = beans.number(NAMESYSTEM, attribute);
            let class = if number.is_some_and(|number| number > 0) { alarm } else { "well" };
            Count { name, value: number.map_or(text::UNKNOWN.to_owned(), text::count), class, meaning }
        };
        let counts = vec![
            count("Blocks", "BlocksTotal", "well", "of all files"),
            count("Lost", "MissingBlocks", "error", "no data server that is there has a sound replica"),
            count(
                "Lost, of one copy",
                "MissingReplOneBlocks",
                "error",
                "of them, those of files that wanted a single copy",
            ),
            count("Damaged", "CorruptBlocks", "warning", "have a damaged replica"),
            count(
                "Under-replicated",
                "UnderReplicatedBlocks",
                "warning",
                "have too few replicas, or all of them on one rack",
            ),
            count(
                "On one rack",
                "BadlyDistBlocks",
                "warning",
                "of them, those with enough replicas on one rack only",
            ),
            count(
                "Being copied",
                "PendingReplicationBlocks",
                "well",
                "copies between data servers that are under way",
            ),
            count(
                "Being deleted",
                "PendingDeletionBlocks",
                "well",
                "replicas that data servers are to delete",
            ),
            count("Too many replicas", "ExcessBlocks", "well", "replicas that go once the others are sure"),
            count(
                "Held back",
                "PostponedMisreplicatedBlocks",
                "well",
                "wait for the full report of a data server",
            ),
        ];
        let names = beans.json(INFO, "CorruptFiles");
        let names = names.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let shown = if frame.visitor.is_signed_in { names } else { &[] };
        let lost = shown.iter().filter_map(Value::as_str).map(linked).collect();
        let endangered = endangered.map(|paths| paths.iter().map(|path| linked(path)).collect());
        let lost_count = names.len();
        let is_active = beans.text("NameNodeStatus", "State") == Some("active");
        Self { frame, counts, lost_count, lost, endangered, is_active }
    }
}

#[cfg(test)]
mod tests;
