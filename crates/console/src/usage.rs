//! Where the bytes and the names of a directory are.

use crate::{
    asked::Asked,
    page::{Frame, shown},
    paths::{self, Crumb},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::response::Response;
use client::{ContentSummary, FileStatus, FileSystem};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

/// Entries that are looked at for one page, in the order of their names, and the directories among them, each of which is summed up by a walk.
const ENTRIES_MAX: usize = 10_000;
const DIRECTORIES_MAX: usize = 1_000;
/// The largest of them that are shown.
const ROWS_MAX: usize = 100;
/// How long one sum may take, and all of them together: less than a page may.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_TOGETHER: Duration = Duration::from_secs(12);
/// Files of less than this on average are small: each costs the metadata server as much as a large one.
const SMALL_BYTES: u64 = 1 << 20;
/// The least number of files of which it is said.
const MANY: u64 = 100;

#[derive(Template)]
#[template(path = "usage.html")]
pub struct Page {
    frame: Frame,
    crumbs: Vec<Crumb>,
    rows: Vec<Row>,
    /// A sentence about the entries that are smaller than all that are shown; empty where there is none.
    others: String,
    /// A sentence about entries that were left out altogether; empty where there is none.
    left_out: String,
}

pub struct Row {
    name: String,
    /// The usage of the directory; empty for a file.
    href: String,
    known: Option<Known>,
}

pub struct Known {
    space: u64,
    space_text: String,
    /// In whole percent.
    percent: u64,
    length: String,
    files: String,
    directories: String,
    mean: String,
    is_small: bool,
    quotas: String,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let path = gateway::path::check(&asked.parameter("of").unwrap_or("/".to_owned()))?;
    let fs = asked.files().await?;
    let (entries, is_cut) = entries(&fs, &path).await?;
    let frame = Frame::new("Usage", "/usage", &asked.visitor);
    Ok(shown(&Page::new(frame, &path, sums(&fs, entries, &asked.shared.sums).await, is_cut)))
}

/// The entries to look at, and whether there are more.
async fn entries(fs: &FileSystem, path: &str) -> client::Result<(Vec<FileStatus>, bool)> {
    let mut listing = fs.list(path);
    let (mut entries, mut directories) = (Vec::new(), 0);
    while let Some(entry) = listing.next().await? {
        directories += usize::from(entry.is_dir());
        if entries.len() >= ENTRIES_MAX || directories > DIRECTORIES_MAX {
            return Ok((entries, true));
        }
        entries.push(entry);
    }
    Ok((entries, false))
}

/// The sum of each entry; absent where the visitor may not see all of it, or it takes too long. That of a file stands in its entry already.
async fn sums(
    fs: &FileSystem,
    entries: Vec<FileStatus>,
    places: &Arc<Semaphore>,
) -> Vec<(FileStatus, Option<ContentSummary>)> {
    let until = Instant::now() + PATIENCE_TOGETHER;
    let mut asking = JoinSet::new();
    let mut sums = Vec::new();
    for entry in entries {
        if !entry.is_dir() {
            let sum = of_file(&entry);
            sums.push((entry, Some(sum)));
            continue;
        }
        let (fs, places) = (fs.clone(), places.clone());
        asking.spawn(async move {
            let asked = async {
                let _place = places.acquire().await;
                tokio::time::timeout(PATIENCE, fs.content_summary(&entry.path)).await
            };
            let sum = tokio::time::timeout_at(until, asked).await;
            (entry, sum.ok().and_then(Result::ok).and_then(Result::ok))
        });
    }
    while let Some(sum) = asking.join_next().await {
        sums.extend(sum.ok());
    }
    sums
}

fn of_file(file: &FileStatus) -> ContentSummary {
    ContentSummary {
        length: file.length,
        files: 1,
        space_consumed: file.length.saturating_mul(file.replication.into()),
        ..ContentSummary::default()
    }
}

impl Page {
    fn new(frame: Frame, path: &str, sums: Vec<(FileStatus, Option<ContentSummary>)>, is_cut: bool) -> Self {
        let total = sums.iter().filter_map(|(_, sum)| sum.as_ref()).map(|sum| sum.space_consumed).sum();
        let mut rows: Vec<Row> =
            sums.iter().map(|(status, sum)| Row::of(status, sum.as_ref(), total)).collect();
        rows.sort_by(|one, other| {
            let space = |row: &Row| row.known.as_ref().map(|known| known.space);
            space(other).cmp(&space(one)).then_with(|| one.name.cmp(&other.name))
        });
        let rest = rows.split_off(rows.len().min(ROWS_MAX));
        let others = match rest.len() {
            0 => String::new(),
            count => {
                let space = rest.iter().filter_map(|row| row.known.as_ref()).map(|known| known.space).sum();
                let unknown = rest.iter().filter(|row| row.known.is_none()).count();
                let of_unknown = match unknown {
                    0 => String::new(),
                    count => format!(", {} of them not known", text::count(count as u64)),
                };
                format!(
                    "{} take {} together{of_unknown}.",
                    text::of(count as u64, "smaller entry", "smaller entries"),
                    text::size(space)
                )
            }
        };
        let mut crumbs = paths::crumbs(path);
        let mut so_far = String::new();
        for (at, crumb) in crumbs.iter_mut().enumerate() {
            if at > 0 {
                so_far = paths::join(&so_far, &crumb.name);
            }
            crumb.href = address(if at == 0 { "/" } else { &so_far });
        }
        let left_out = match is_cut {
            true => format!(
                "There are more entries than can be summed up for one page: those behind the first {}, or behind the first {} directories, are left out.",
                text::count(ENTRIES_MAX as u64),
                text::count(DIRECTORIES_MAX as u64)
            ),
            false => String::new(),
        };
        Self { frame, crumbs, rows, others, left_out }
    }
}

/// The address of the usage of a directory.
pub fn address(path: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("of", path);
    format!("/usage?{}", query.finish())
}

impl Row {
    fn of(status: &FileStatus, sum: Option<&ContentSummary>, total: u64) -> Self {
        let known = sum.map(|sum| {
            let mean = sum.length / sum.files.max(1);
            let share = |used: u64, quota: Option<u64>, of: &str| {
                quota.map(|quota| format!("{:.0} % of {of}", text::percent(used, quota)))
            };
            let quotas = [
                share(sum.space_consumed, sum.space_quota, "its bytes"),
                share(sum.files + sum.directories, sum.name_quota, "its names"),
            ];
            Known {
                space: sum.space_consumed,
                space_text: text::size(sum.space_consumed),
                percent: text::percent(sum.space_consumed, total).round() as u64,
                length: text::size(sum.length),
                files: text::count(sum.files),
                directories: text::count(sum.directories),
                mean: text::size(mean),
                is_small: sum.files >= MANY && mean < SMALL_BYTES,
                quotas: quotas.into_iter().flatten().collect::<Vec<_>>().join(", "),
            }
        });
        let href = if status.is_dir() { address(&status.path) } else { String::new() };
        Self { name: status.name().to_owned(), href, known }
    }
}

#[cfg(test)]
mod tests;
