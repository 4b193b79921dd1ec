//! Directories of which snapshots are made, and their snapshots.

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
use client::Snapshot;
use serde_json::Value;

/// Directories, and snapshots of one, that are shown.
const ROWS_MAX: usize = 500;

#[derive(Template)]
#[template(path = "snapshots.html")]
pub struct Page {
    frame: Frame,
    /// How many directories there are.
    count: usize,
    /// A stranger is not told names.
    directories: Vec<Directory>,
    /// The directory whose snapshots are shown.
    chosen: Option<String>,
    snapshots: Vec<Row>,
    is_cut: bool,
}

pub struct Directory {
    path: String,
    href: String,
    snapshots_href: String,
    owner: String,
    snapshots: u64,
    quota: u64,
    modified: String,
}

pub struct Row {
    name: String,
    href: String,
    made: String,
    is_deleted: bool,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let chosen = asked.parameter("of");
    let mut snapshots = Vec::new();
    if let Some(path) = &chosen {
        let path = gateway::path::check(path)?;
        snapshots = asked.files().await?.snapshots(&path).await?;
    }
    let frame = Frame::new("Snapshots", "/snapshots", &asked.visitor);
    Ok(shown(&Page::new(frame, &Beans::of(&asked.facts), chosen, &snapshots)))
}

impl Page {
    pub fn new(frame: Frame, beans: &Beans, chosen: Option<String>, snapshots: &[Snapshot]) -> Self {
        let told = beans.value("SnapshotInfo", "SnapshottableDirectories").and_then(Value::as_array);
        let told = told.map(Vec::as_slice).unwrap_or_default();
        let shown = if frame.visitor.is_signed_in { told } else { &[] };
        let directories = shown.iter().take(ROWS_MAX).filter_map(Directory::of).collect();
        let row = |snapshot: &Snapshot| Row {
            name: snapshot.status.name().to_owned(),
            href: paths::page(&snapshot.status.path),
            made: text::time(snapshot.status.modified_ms),
            is_deleted: snapshot.is_deleted,
        };
        let is_cut = shown.len() > ROWS_MAX || snapshots.len() > ROWS_MAX;
        Self {
            frame,
            count: told.len(),
            directories,
            chosen,
            snapshots: snapshots.iter().take(ROWS_MAX).map(row).collect(),
            is_cut,
        }
    }
}

/// The address of the snapshots of a directory.
pub fn address(path: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("of", path);
    format!("/snapshots?{}", query.finish())
}

impl Directory {
    fn of(told: &Value) -> Option<Self> {
        let path = told.get("path")?.as_str()?.to_owned();
        let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            href: paths::page(&path),
            snapshots_href: address(&path),
            owner: told.get("owner").and_then(Value::as_str).unwrap_or(text::UNKNOWN).to_owned(),
            snapshots: number("snapshotNumber"),
            quota: number("snapshotQuota"),
            modified: text::time(number("modificationTime")),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{HOSTILE, frame, text as shown_text};
    use serde_json::json;
    use std::sync::Arc;
    use web::{Facts, Health, Sources};

    fn shown(is_signed_in: bool, paths: &[&str]) -> String {
        let directory = |path: &&str| json!({ "path": path, "owner": "ann", "snapshotNumber": 3 });
        let told = json!({ "SnapshottableDirectories": paths.iter().map(directory).collect::<Vec<_>>() });
        let put = move |beans: &mut web::jmx::Beans<'_>| {
            beans.put("Hadoop:service=NameNode,name=SnapshotInfo".to_owned(), "x", || told.clone());
        };
        let sources = Sources { beans: Some(Arc::new(put)), ..Sources::default() };
        let mut frame = frame();
        frame.visitor.is_signed_in = is_signed_in;
        let beans = Beans::of(&Facts { health: Arc::new(Health::default), sources });
        shown_text(&Page::new(frame, &beans, None, &[]))
    }

    #[test]
    fn directories_are_named_to_users_who_have_signed_in() {
        let told = shown(true, &["/projects/secret one", HOSTILE]);
        assert!(told.contains("/projects/secret one") && told.contains(">3</a>"), "{told}");
        let stranger = shown(false, &["/projects/secret one", HOSTILE]);
        assert!(!stranger.contains("secret") && !stranger.contains("ann"), "{stranger}");
        assert!(stranger.contains("<p>2. Their names are for users who have signed in."), "{stranger}");
        for is_signed_in in [true, false] {
            assert!(shown(is_signed_in, &[]).contains("There is none."));
        }
    }
}
