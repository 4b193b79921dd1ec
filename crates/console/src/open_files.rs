//! Files that are being written, and who writes them.

use crate::{
    asked::Asked,
    beans::Beans,
    page::{Frame, shown},
    paths,
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use proto::hdfs;

#[derive(Template)]
#[template(path = "open_files.html")]
pub struct Page {
    frame: Frame,
    /// How many files are being written, which every visitor may know.
    count: String,
    rows: Vec<Row>,
    /// The address of the next page.
    next: Option<String>,
    /// Why the names are not shown.
    refusal: Option<String>,
}

pub struct Row {
    path: String,
    href: String,
    client: String,
    machine: String,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let after: i64 = asked.parameter("after").and_then(|after| after.parse().ok()).unwrap_or(0);
    let request = hdfs::ListOpenFilesRequestProto {
        id: after,
        types: vec![hdfs::OpenFilesTypeProto::AllOpenFiles as i32],
        path: Some("/".to_owned()),
    };
    // One answer has so many files as the server sends at once; all of them may be millions.
    let answer: client::Result<hdfs::ListOpenFilesResponseProto> =
        asked.files().await?.call("listOpenFiles", &request).await;
    let (answer, refusal) = match answer.map_err(Refusal::from) {
        Ok(answer) => (answer, None),
        Err(refusal) if refusal.status == StatusCode::FORBIDDEN => (Default::default(), Some(refusal.reason)),
        Err(refusal) => return Err(refusal),
    };
    let last = answer.entries.last().map(|entry| entry.id).filter(|_| answer.has_more);
    let count = Beans::of(&asked.facts).number("FSNamesystem", "NumFilesUnderConstruction");
    let row = |entry: &hdfs::OpenFilesBatchResponseProto| Row {
        path: entry.path.clone(),
        href: paths::page(&entry.path),
        client: entry.client_name.clone(),
        machine: entry.client_machine.clone(),
    };
    Ok(shown(&Page {
        frame: Frame::new("Open files", "/open-files", &asked.visitor).refreshing(10),
        count: count.map_or(text::UNKNOWN.to_owned(), text::count),
        rows: answer.entries.iter().map(row).collect(),
        next: last.map(|last| format!("/open-files?after={last}")),
        refusal,
    }))
}
