//! The pages of directories.

use crate::{
    asked::Asked,
    file,
    page::{self, Frame, shown},
    paths::{self, Crumb},
    refusal::Refusal,
    text, usage,
};
use askama::Template;
use axum::response::Response;
use client::{FileKind, FileStatus, FileSystem};

/// Entries on one page.
const ENTRIES_MAX: usize = 200;

#[derive(Template)]
#[template(path = "directory.html")]
pub struct Page {
    frame: Frame,
    path: String,
    crumbs: Vec<Crumb>,
    entries: Vec<Entry>,
    /// The address of the next page.
    next: Option<String>,
    /// Whether entries stand before the first of this page.
    is_continued: bool,
    details: String,
    usage: String,
    parent: Option<String>,
    /// The outcome of the change before, in a sentence.
    done: String,
    /// The way back from a deletion.
    undo: Option<Undo>,
    upload: String,
}

/// A deletion that can be taken back: the path, and its place in the trash.
struct Undo {
    path: String,
    trash: String,
}

/// An entry of a directory as a row of a table.
pub struct Entry {
    pub name: String,
    pub href: String,
    pub kind: &'static str,
    pub size: String,
    pub rights: String,
    pub owner: String,
    pub group: String,
    pub modified: String,
    pub replication: String,
}

/// Leads to the visitor's own directory, or to the root where there is none.
pub async fn home(asked: Asked) -> Result<Response, Refusal> {
    let home = format!("/user/{}", asked.visitor.user);
    let exists = asked.files().await?.exists(&home).await.unwrap_or(false);
    Ok(page::elsewhere(&paths::page(if exists { &home } else { "/" })))
}

/// The page of a directory or of a file.
pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let path = paths::decode("/files", asked.parts.uri.path())?;
    let fs = asked.files().await?;
    let status = fs.status(&path).await?;
    if !status.is_dir() || asked.parameter("details").is_some() {
        return file::page(&asked, &fs, status).await;
    }
    let after = asked.parameter("after").unwrap_or_default();
    let entries = list(&fs, &path, &after).await?;
    let frame = Frame::new(paths::title(&path), "/files", &asked.visitor);
    let mut page = Page::new(frame, path, entries, &after);
    if asked.visitor.is_signed_in {
        page.tell(&asked);
    }
    Ok(shown(&page))
}

/// One entry more than a page has, if there are so many.
async fn list(fs: &FileSystem, path: &str, after: &str) -> client::Result<Vec<FileStatus>> {
    let mut listing = fs.list_after(path, after);
    let mut entries = Vec::new();
    while entries.len() <= ENTRIES_MAX {
        let Some(entry) = listing.next().await? else { break };
        entries.push(entry);
    }
    Ok(entries)
}

impl Page {
    fn new(frame: Frame, path: String, mut statuses: Vec<FileStatus>, after: &str) -> Self {
        let has_more = statuses.len() > ENTRIES_MAX;
        statuses.truncate(ENTRIES_MAX);
        let next = statuses.last().filter(|_| has_more).map(|last| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("after", last.name());
            format!("{}?{}", paths::page(&path), query.finish())
        });
        Self {
            frame,
            crumbs: paths::crumbs(&path),
            entries: statuses.iter().map(|status| Entry::of(&path, status)).collect(),
            next,
            is_continued: !after.is_empty(),
            details: format!("{}?details", paths::page(&path)),
            usage: usage::address(&path),
            parent: paths::parent(&path).map(paths::page),
            done: String::new(),
            undo: None,
            upload: format!("/upload{}", gateway::path::encode(path.trim_end_matches('/'))),
            path,
        }
    }

    /// Tells the outcome of the change that led to this page.
    fn tell(&mut self, asked: &Asked) {
        let named = |name| asked.parameter(name);
        if let (Some(path), Some(trash)) = (named("deleted"), named("trash")) {
            self.done = format!("{path} is in the trash, at {trash}.");
            self.undo = Some(Undo { path, trash });
        } else if let (Some(from), Some(to)) = (named("renamed"), named("to")) {
            self.done = format!("{from} is now {to}.");
        } else if let Some(path) = named("made") {
            self.done = format!("{path} was made.");
        } else if let Some(path) = named("restored") {
            self.done = format!("{path} is back.");
        }
    }
}

impl Entry {
    fn of(directory: &str, status: &FileStatus) -> Self {
        let (kind, size) = match status.kind {
            FileKind::Directory => {
                let children = status.children.map(|count| text::of(count.into(), "entry", "entries"));
                ("directory", children.unwrap_or(text::UNKNOWN.to_owned()))
            }
            FileKind::File => ("file", text::size(status.length)),
            FileKind::Symlink => ("link", text::UNKNOWN.to_owned()),
        };
        let letter = match status.kind {
            FileKind::Directory => 'd',
            FileKind::File => '-',
            FileKind::Symlink => 'l',
        };
        let acl = if status.has_acl { "+" } else { "" };
        Self {
            name: status.name().to_owned(),
            href: paths::child(directory, status.name()),
            kind,
            size,
            rights: format!("{letter}{}{acl}", text::rights(status.mode)),
            owner: status.owner.clone(),
            group: status.group.clone(),
            modified: text::time(status.modified_ms),
            replication: if status.is_file() { status.replication.to_string() } else { String::new() },
        }
    }

    pub fn is_dir(&self) -> bool {
        self.kind == "directory"
    }
}

#[cfg(test)]
mod tests;
