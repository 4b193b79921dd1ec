//! The last lines of this server's log, for superusers: lines have paths and names of users.

use crate::{
    asked::Asked,
    page::{Frame, shown},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::response::Response;
use std::sync::Arc;
use web::{LogLine, log_levels::Level};

/// Lines on the page, the newest first.
const LINES_MAX: usize = 500;
const FILTER_CHARS_MAX: usize = 200;
/// The words for the levels that can be asked for.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

#[derive(Template)]
#[template(path = "logs.html")]
pub struct Page {
    frame: Frame,
    filter: String,
    level: String,
    levels: &'static [&'static str],
    /// `None`: the visitor may not see the log.
    lines: Option<Lines>,
}

struct Lines {
    rows: Vec<Row>,
    /// How many match, and how many are kept.
    matching: usize,
    all: usize,
}

struct Row {
    time: String,
    level: String,
    /// Colours the level: `well`, `warning` or `error`.
    class: &'static str,
    log: String,
    text: String,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let parameter = |name| asked.parameter(name).unwrap_or_default().chars().take(FILTER_CHARS_MAX).collect();
    let (filter, level): (String, String) = (parameter("filter"), parameter("level"));
    let source = asked.shared.program().log.clone();
    let kept = match asked.is_superuser().await {
        true => Some(source.map(|lines| lines()).unwrap_or_default()),
        false => None,
    };
    let frame = Frame::new("Logs", "/logs", &asked.visitor);
    let frame = if kept.is_some() { frame.refreshing(5) } else { frame };
    Ok(shown(&Page::new(frame, kept, filter, level)))
}

impl Page {
    /// `kept`: all lines, the oldest first, if the visitor may see them. `level`: lines of no more detail; all if it is no level.
    fn new(frame: Frame, kept: Option<Vec<Arc<LogLine>>>, filter: String, level: String) -> Self {
        let level = if LEVELS.contains(&&*level) { level } else { String::new() };
        let most = level.parse().unwrap_or(Level::Trace);
        let needle = filter.trim().to_lowercase();
        let has = |field: &str| field.to_lowercase().contains(&needle);
        let lines = kept.map(|kept| {
            let all = kept.len();
            let mut matching = 0;
            let mut rows = Vec::new();
            for line in kept.iter().rev().filter(|line| line.level <= most) {
                if needle.is_empty() || has(&line.text) || has(&line.log) {
                    matching += 1;
                    if rows.len() < LINES_MAX {
                        rows.push(Row::of(line));
                    }
                }
            }
            Lines { rows, matching, all }
        });
        Self { frame, filter, level, levels: &LEVELS, lines }
    }
}

impl Row {
    fn of(line: &LogLine) -> Self {
        Self {
            time: text::time(line.time_ms),
            level: line.level.to_string().to_lowercase(),
            class: match line.level {
                Level::Error => "error",
                Level::Warn => "warning",
                _ => "",
            },
            log: line.log.clone(),
            text: line.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
