//! The page of one file, or of the facts about a directory; and downloads.

use crate::{
    asked::Asked,
    page::{Frame, shown},
    paths::{self, Crumb},
    refusal::Refusal,
    snapshots, text,
};
use askama::Template;
use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use client::{FileKind, FileStatus, FileSystem, QuotaUsage};
use gateway::{operation::Transfer, transfer};
use proto::hdfs::LocatedBlockProto;
use std::time::Duration;
use web::Connection;

/// The beginning of a file that its page shows.
const PREVIEW_BYTES: usize = 8 << 10;
/// A file whose bytes are on a server that does not answer still has a page.
const PREVIEW_PATIENCE: Duration = Duration::from_secs(5);
/// Blocks that a page shows.
const BLOCKS_MAX: u64 = 100;
/// Bytes in a line of a preview of bytes, and such lines.
const BYTES_A_LINE: usize = 16;
const LINES_MAX: usize = 64;

#[derive(Template)]
#[template(path = "file.html")]
pub struct Page {
    frame: Frame,
    path: String,
    crumbs: Vec<Crumb>,
    is_dir: bool,
    facts: Vec<(&'static str, String)>,
    acl: Vec<String>,
    quota: Option<Quota>,
    preview: Preview,
    download: Option<String>,
    blocks: Vec<Block>,
    blocks_note: String,
    next_blocks: Option<String>,
    /// The page of its snapshots.
    snapshots: String,
}

pub struct Quota {
    lines: Vec<QuotaLine>,
}

pub struct QuotaLine {
    pub what: String,
    pub used: String,
    pub limit: String,
    /// In whole percent.
    pub percent: Option<u64>,
}

/// The beginning of a file.
pub enum Preview {
    None,
    Text {
        text: String,
        is_cut: bool,
    },
    /// Lines of offset, hexadecimal digits and letters.
    Bytes {
        lines: Vec<(String, String, String)>,
        is_cut: bool,
    },
    Refused(String),
}

pub struct Block {
    id: u64,
    stamp: u64,
    offset: String,
    size: String,
    is_corrupt: bool,
    places: Vec<String>,
}

/// Where the next page of blocks begins. `ends`: of the blocks in the window that was asked for, which may be more than a page shows, since blocks may
/// be short. `None`: there is no further block.
fn next_page(ends: &[u64], window_end: u64, file_length: u64) -> Option<u64> {
    let next = match ends.get(BLOCKS_MAX as usize - 1) {
        Some(end) if ends.len() > BLOCKS_MAX as usize => *end,
        _ => window_end,
    };
    (next < file_length).then_some(next)
}

pub async fn page(asked: &Asked, fs: &FileSystem, status: FileStatus) -> Result<Response, Refusal> {
    let path = status.path.clone();
    let from = asked.parameter("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let acl = fs.acl_status(&path);
    let quota = async { if status.is_dir() { fs.quota_usage(&path).await.ok() } else { None } };
    let policies = fs.storage_policies();
    let (acl, quota, policies) = tokio::join!(acl, quota, policies);
    let policy = policies.ok().into_iter().flatten().find(|policy| policy.id == status.storage_policy);
    let (mut blocks, mut next_blocks, mut note, mut preview) =
        (Vec::new(), None, String::new(), Preview::None);
    if status.is_file() {
        let window = BLOCKS_MAX.saturating_mul(status.block_size.max(1));
        match fs.block_locations(&path, from, window).await {
            Ok(located) => {
                blocks = located.blocks.iter().take(BLOCKS_MAX as usize).map(Block::of).collect();
                let ends: Vec<u64> =
                    located.blocks.iter().map(|block| block.offset + block.b.num_bytes()).collect();
                let next = next_page(&ends, from.saturating_add(window), located.file_length);
                next_blocks = next.map(|next| format!("{}?from={next}#blocks", paths::page(&path)));
                if located.under_construction {
                    note = "The file is being written.".to_owned();
                }
            }
            Err(error) => note = Refusal::from(error).reason,
        }
        preview = match tokio::time::timeout(PREVIEW_PATIENCE, beginning(fs, &path)).await {
            Ok(Ok((bytes, length))) => Preview::of(&bytes, length > bytes.len() as u64),
            Ok(Err(error)) => Preview::Refused(Refusal::from(error).reason),
            Err(_) => Preview::Refused(format!(
                "no data server has answered within {} s",
                PREVIEW_PATIENCE.as_secs()
            )),
        };
    }
    let acl = acl.map(|acl| acl.whole().iter().map(ToString::to_string).collect()).unwrap_or_default();
    let policy = policy.map(|policy| policy.name).unwrap_or("none of its own".to_owned());
    let frame = Frame::new(paths::title(&path), "/files", &asked.visitor);
    Ok(shown(&Page {
        frame,
        crumbs: paths::crumbs(&path),
        is_dir: status.is_dir(),
        facts: facts(&status, &policy),
        acl,
        quota: quota.map(|usage| Quota::of(&usage)),
        preview,
        download: status.is_file().then(|| format!("/download{}", gateway::path::encode(&path))),
        blocks,
        blocks_note: note,
        next_blocks,
        snapshots: snapshots::address(&path),
        path,
    }))
}

fn facts(status: &FileStatus, policy: &str) -> Vec<(&'static str, String)> {
    let kind = match status.kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "link",
    };
    let mut facts = vec![
        ("Kind", kind.to_owned()),
        ("Owner", status.owner.clone()),
        ("Group", status.group.clone()),
        ("Rights", format!("{} ({:04o})", text::rights(status.mode), status.mode)),
        ("Changed", format!("{} UTC", text::time(status.modified_ms))),
        ("Storage policy", policy.to_owned()),
        ("Id", status.file_id.to_string()),
    ];
    match status.kind {
        FileKind::File => facts.extend([
            ("Length", format!("{} ({} bytes)", text::size(status.length), text::count(status.length))),
            ("Replication", status.replication.to_string()),
            ("Block size", text::size(status.block_size)),
            ("Read", format!("{} UTC", text::time(status.accessed_ms))),
        ]),
        _ => facts.extend(status.children.map(|count| ("Entries", text::count(count.into())))),
    }
    facts
}

async fn beginning(fs: &FileSystem, path: &str) -> client::Result<(Vec<u8>, u64)> {
    let mut reader = fs.open(path).await?;
    let mut bytes = Vec::new();
    while bytes.len() < PREVIEW_BYTES {
        let Some(piece) = reader.read(PREVIEW_BYTES - bytes.len()).await? else { break };
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, reader.length()))
}

impl Preview {
    pub fn of(bytes: &[u8], is_cut: bool) -> Self {
        if bytes.is_empty() {
            return Self::None;
        }
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            // The cut may have gone through a letter.
            Err(error) if is_cut && error.valid_up_to() + 3 >= bytes.len() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        if let Some(text) = valid.filter(|text| text.chars().all(is_shown)) {
            return Self::Text { text: text.to_owned(), is_cut };
        }
        let shown = bytes.chunks(BYTES_A_LINE).take(LINES_MAX).enumerate().map(|(at, line)| {
            let digits: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let letters =
                line.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' });
            (format!("{:06x}", at * BYTES_A_LINE), digits.join(" "), letters.collect())
        });
        Self::Bytes { lines: shown.collect(), is_cut: is_cut || bytes.len() > BYTES_A_LINE * LINES_MAX }
    }
}

impl Block {
    fn of(located: &LocatedBlockProto) -> Self {
        let kinds: Vec<_> = located.storage_types().collect();
        let places = located.locs.iter().enumerate().map(|(at, server)| {
            let id = &server.id;
            let kind = kinds.get(at).map(|kind| format!(" on {}", kind.as_str_name())).unwrap_or_default();
            format!("{} ({}:{}){kind}", id.host_name, id.ip_addr, id.xfer_port)
        });
        Self {
            id: located.b.block_id,
            stamp: located.b.generation_stamp,
            offset: text::count(located.offset),
            size: text::size(located.b.num_bytes()),
            is_corrupt: located.corrupt,
            places: places.collect(),
        }
    }
}

impl Quota {
    fn of(usage: &QuotaUsage) -> Self {
        let line = |what: String, used: u64, limit: Option<u64>, shown: fn(u64) -> String| QuotaLine {
            what,
            used: shown(used),
            limit: limit.map_or("no quota".to_owned(), shown),
            percent: limit.map(|limit| text::percent(used, limit).min(100.0).round() as u64),
        };
        let mut lines = vec![
            line("Names".to_owned(), usage.files_and_directories, usage.name_quota, text::count),
            line("Bytes of all copies".to_owned(), usage.space_consumed, usage.space_quota, text::size),
        ];
        let types = usage.types.iter().filter(|of| of.quota.is_some() || of.consumed > 0);
        lines.extend(
            types.map(|of| line(format!("Bytes on {}", of.storage_type), of.consumed, of.quota, text::size)),
        );
        Self { lines }
    }
}

/// Streams a file through this server.
pub async fn download(asked: Asked, connection: &Connection) -> Result<Response, Refusal> {
    let path = paths::decode("/download", asked.parts.uri.path())?;
    let place = asked.place(&asked.shared.downloads, connection).await?;
    let fs = asked.files().await?;
    let name = paths::name(&path).to_owned();
    let open = Transfer::Open { offset: 0, length: None };
    let mut response = transfer::carry_out(fs, path, open, Body::empty(), place).await?;
    if let Ok(disposition) = HeaderValue::from_str(&disposition(&name)) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// The browser stores the file under its name, and shows nothing of it.
fn disposition(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-+".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", gateway::path::encode(name))
}

#[cfg(test)]
mod tests;
