//! The settings of this server: each value, its default, where it comes from, and Hadoop's name of it.

use crate::{
    asked::Asked,
    group,
    page::{Frame, shown},
    refusal::Refusal,
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use proto::clover::admin::{GetGroupResponseProto, MemberProto};
use web::settings::{Setting, Source};

/// A longer text is no part of any setting's name.
const FILTER_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "configuration.html")]
pub struct Page {
    frame: Frame,
    /// The text by which the visitor filters the table.
    filter: String,
    /// Only settings that a file or the command line has set.
    is_set_only: bool,
    rows: Vec<Row>,
    /// How many there are in all.
    all: usize,
    /// The members of a group of several, with the addresses of their pages.
    members: Vec<(u32, String)>,
}

/// A setting as a row of a table.
pub struct Row {
    key: String,
    value: String,
    default: String,
    source: String,
    is_set: bool,
    hadoop: Option<String>,
    range: String,
    help: String,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let Some(settings) = asked.shared.program().settings.clone() else {
        let reason = "The program that started this server does not tell its settings.";
        return Err(Refusal::new(StatusCode::NOT_FOUND, "The settings are not known", reason));
    };
    let frame = Frame::new("Configuration", "/configuration", &asked.visitor);
    let filter: String =
        asked.parameter("filter").unwrap_or_default().chars().take(FILTER_CHARS_MAX).collect();
    let is_set_only = asked.parameter("set").is_some();
    // Without the others the page is still of use: a server that is not ready has settings as well.
    let cluster = asked.cluster().await.ok();
    let members =
        cluster.as_ref().and_then(|cluster| cluster.group.as_ref()).map(members).unwrap_or_default();
    Ok(shown(&Page::new(frame, settings(), filter, is_set_only, members)))
}

fn members(known: &GetGroupResponseProto) -> Vec<(u32, String)> {
    let address = |member: &MemberProto| Some((member.member, group::console(member)? + "configuration"));
    match &known.members[..] {
        [] | [_] => Vec::new(),
        several => several.iter().filter_map(address).collect(),
    }
}

impl Page {
    pub fn new(
        frame: Frame,
        settings: Vec<Setting>,
        filter: String,
        is_set_only: bool,
        members: Vec<(u32, String)>,
    ) -> Self {
        let all = settings.len();
        let needle = filter.trim().to_lowercase();
        // Secrets are hidden before anything is looked for: a filter must not tell whether it was right about one.
        let rows = settings.into_iter().map(|setting| Row::of(setting.for_pages()));
        let rows = rows.filter(|row| (row.is_set || !is_set_only) && row.has(&needle)).collect();
        Self { frame, filter, is_set_only, rows, all, members }
    }
}

impl Row {
    fn of(setting: Setting) -> Self {
        Self {
            is_set: setting.source != Source::Default,
            source: setting.source.to_string(),
            hadoop: setting.hadoop.map(|hadoop| hadoop.key),
            key: setting.key,
            value: setting.value,
            default: setting.default,
            range: setting.range,
            help: setting.help,
        }
    }

    /// Whether the row has a text, which is in small letters, in one of its fields.
    fn has(&self, needle: &str) -> bool {
        let hadoop = self.hadoop.iter();
        let mut fields = [&self.key, &self.value, &self.source, &self.help].into_iter().chain(hadoop);
        needle.is_empty() || fields.any(|field| field.to_lowercase().contains(needle))
    }
}

#[cfg(test)]
mod tests;
