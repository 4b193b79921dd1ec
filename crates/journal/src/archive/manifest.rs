//! The manifest of a backup: a small text, written twice, that names the log which was archived and the ranges of it
//! that the backup holds.
//!
//! ```text
//! clover backup 1
//! writes=12
//! cluster=CID-…
//! namespace_id=123
//! block_pool=BP-…
//! created_ms=1763829600000
//! root_owner=hdfs
//! root_group=supergroup
//! group=1
//! first_level=2
//! epoch=7
//! span begin=5/1200/00c0… begin_ms=1763… image=01… end=7/4711/12ab… end_ms=1763… complete_ms=1763…
//! crc32c 1a2b3c4d
//! ```
//!
//! A point is epoch, sn and chain; what is not known is `-`; `image` is the payload of its CHECKPOINT entry in hex.

use super::ArchiveError;
use crate::Checkpoint;
use base::{Chain, Epoch, GroupId, Level, LogPoint, Sn, TxId};
use data_encoding::HEXLOWER;
use env::{Disk, OpenMode};
use std::{
    collections::BTreeMap,
    fmt::Write,
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

pub(super) const FILE_NAMES: [&str; 2] = ["manifest.0", "manifest.1"];
const TEMPORARY: &str = "manifest.tmp";
const TITLE: &str = "clover backup ";
const VERSION: &str = "1";
const SUM: &str = "crc32c ";
/// The most ranges that a manifest may have; each takes some 400 bytes.
pub(super) const SPANS_MAX: usize = 8_192;
const BYTES_MAX: u64 = 4 << 20;
const TEXT_BYTES_MAX: usize = 255;

/// Why the bytes of a manifest are refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("{0}")]
    Damaged(String),
    /// An intact text of another version.
    #[error("version {0} where {VERSION} is known")]
    Version(String),
    /// An intact text of a group that began at a later level.
    #[error("its group began at level {0}, which this release does not know")]
    Level(Level),
}

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

impl From<&str> for Refusal {
    fn from(what: &str) -> Self {
        Self::Damaged(what.to_owned())
    }
}

/// The identity of the log that was archived. All fields stay the same for as long as a cluster lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    pub cluster_id: String,
    pub namespace_id: u32,
    pub block_pool: String,
    pub created_ms: u64,
    /// The owner of the root directory, as the first start made it. A log without an image begins from that root.
    pub root_owner: String,
    pub root_group: String,
    pub group: GroupId,
    /// The level that the group began at.
    pub first_level: Level,
}

/// A stretch of the log without a gap. The state after each of its entries can be had again, and the one at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The last entry that its image contains; zero where it begins with the first entry of the log.
    pub begin: LogPoint,
    pub image: Option<Checkpoint>,
    /// The time of the last edit up to `begin`, where that is known.
    pub begin_ms: Option<u64>,
    /// The last entry that is archived.
    pub end: LogPoint,
    /// The time of the last edit up to `end`.
    pub end_ms: Option<u64>,
    /// Every edit that the active had begun by then is here.
    pub complete_ms: Option<u64>,
}

impl Span {
    pub fn new(begin: LogPoint, image: Option<Checkpoint>, begin_ms: Option<u64>) -> Self {
        Self { begin, image, begin_ms, end: begin, end_ms: begin_ms, complete_ms: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub whose: Whose,
    /// The highest epoch that the members had told of.
    pub epoch: Epoch,
    /// The ranges, in the order of the log.
    pub spans: Vec<Span>,
}

impl Manifest {
    pub fn encode(&self, writes: u64) -> String {
        let Whose {
            cluster_id,
            namespace_id,
            block_pool,
            created_ms,
            root_owner,
            root_group,
            group,
            first_level,
        } = &self.whose;
        let mut text = format!(
            "{TITLE}{VERSION}\nwrites={writes}\ncluster={cluster_id}\nnamespace_id={namespace_id}\nblock_pool={block_pool}\n\
             created_ms={created_ms}\nroot_owner={root_owner}\nroot_group={root_group}\ngroup={group}\n\
             first_level={first_level}\nepoch={}\n",
            self.epoch.0
        );
        let ms = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
        for span in &self.spans {
            let image = span.image.map_or_else(|| "-".to_owned(), |image| HEXLOWER.encode(&image.encode()));
            let _ = writeln!(
                text,
                "span begin={} begin_ms={} image={image} end={} end_ms={} complete_ms={}",
                point(span.begin),
                ms(span.begin_ms),
                point(span.end),
                ms(span.end_ms),
                ms(span.complete_ms),
            );
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "{SUM}{crc:08x}");
        text
    }

    /// The manifest and how often it was written, or what is wrong with the bytes.
    ///
    /// # Errors
    /// [`Refusal::Version`] or [`Refusal::Level`] if a later release wrote it. [`Refusal::Damaged`] if the bytes are not text,
    /// their checksum is wrong, a value is missing or makes no sense, there are too many spans, or the spans do not follow each
    /// other.
    pub fn decode(bytes: &[u8]) -> Result<(Self, u64), Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| "bytes that are no text".to_owned())?;
        let body = text.strip_suffix('\n').and_then(|text| text.rfind('\n')).map(|at| text.split_at(at + 1));
        let (body, sum) = body.ok_or("fewer than two lines")?;
        let written = sum.trim_end().strip_prefix(SUM).ok_or("no checksum in its last line")?;
        let found = format!("{:08x}", crc32c::crc32c(body.as_bytes()));
        if written != found {
            return Err(format!("checksum {found} where {written} is written").into());
        }
        match body.lines().next().and_then(|title| title.strip_prefix(TITLE)) {
            Some(VERSION) => {}
            Some(version) => return Err(Refusal::Version(version.to_owned())),
            None => return Err("another title than that of a backup".into()),
        }
        let mut values = BTreeMap::new();
        let mut spans = Vec::new();
        for line in body.lines().skip(1) {
            if let Some(span) = line.strip_prefix("span ") {
                if spans.len() == SPANS_MAX {
                    return Err(format!("more than {SPANS_MAX} spans").into());
                }
                spans.push(span_of(span).ok_or_else(|| format!("a span that makes no sense: {span}"))?);
            } else if let Some((key, value)) = line.split_once('=') {
                values.insert(key, value);
            }
        }
        let get = |key: &str| values.get(key).copied().ok_or_else(|| format!("{key} is missing"));
        let number = |key: &str| get(key)?.parse::<u64>().map_err(|_| format!("{key} is no number"));
        let small = |key: &str| u32::try_from(number(key)?).map_err(|_| format!("{key} is too large"));
        let word = |key: &str| {
            let word = get(key)?;
            let is_one = (1..=TEXT_BYTES_MAX).contains(&word.len()) && !word.contains(char::is_control);
            is_one.then(|| word.to_owned()).ok_or_else(|| format!("{key} is no word"))
        };
        let follows = |pair: &[Span]| pair[0].end.id.sn < pair[1].begin.id.sn;
        if !spans.windows(2).all(follows) || spans.iter().any(|span| span.end.id < span.begin.id) {
            return Err("spans that do not follow each other".into());
        }
        let whose = Whose {
            cluster_id: word("cluster")?,
            namespace_id: small("namespace_id")?,
            block_pool: word("block_pool")?,
            created_ms: number("created_ms")?,
            root_owner: word("root_owner")?,
            root_group: word("root_group")?,
            group: GroupId(small("group")?),
            first_level: match values.contains_key("first_level") {
                true => Level(u16::try_from(small("first_level")?).map_err(|_| "first_level is too large")?),
                false => Level::FIRST,
            },
        };
        if !whose.group.is_possible() {
            return Err(format!(
                "group {}, and groups are {} to {}",
                whose.group,
                GroupId::ROOT,
                GroupId::LAST
            )
            .into());
        }
        if whose.first_level > Level::NEWEST {
            return Err(Refusal::Level(whose.first_level));
        }
        if whose.first_level < Level::FIRST {
            return Err(
                format!("first_level {}, and the first one is {}", whose.first_level, Level::FIRST).into()
            );
        }
        Ok((Self { whose, epoch: Epoch(number("epoch")?), spans }, number("writes")?))
    }

    /// Whether a manifest can say this: nothing that is written cannot be read again.
    pub(super) fn check(whose: &Whose) -> Result<(), String> {
        let manifest = Self { whose: whose.clone(), epoch: Epoch(0), spans: Vec::new() };
        match Self::decode(manifest.encode(0).as_bytes()) {
            Ok((read, 0)) if read == manifest => Ok(()),
            Ok(_) => Err("names with line ends".into()),
            Err(refusal) => Err(refusal.to_string()),
        }
    }
}

fn span_of(line: &str) -> Option<Span> {
    let values: BTreeMap<&str, &str> = line.split(' ').filter_map(|word| word.split_once('=')).collect();
    let ms = |key: &str| match *values.get(key)? {
        "-" => Some(None),
        ms => ms.parse().ok().map(Some),
    };
    let image = match *values.get("image")? {
        "-" => None,
        text => Some(Checkpoint::decode(&HEXLOWER.decode(text.as_bytes()).ok()?)?),
    };
    let begin = point_of(values.get("begin")?)?;
    let is_its_image =
        image.is_none_or(|image| image.at == begin) && (image.is_some() || begin.id.sn == Sn(0));
    is_its_image.then_some(Span {
        begin,
        image,
        begin_ms: ms("begin_ms")?,
        end: point_of(values.get("end")?)?,
        end_ms: ms("end_ms")?,
        complete_ms: ms("complete_ms")?,
    })
}

fn point(point: LogPoint) -> String {
    format!("{}/{}/{:016x}", point.id.epoch.0, point.id.sn.0, point.chain.0)
}

fn point_of(text: &str) -> Option<LogPoint> {
    let mut parts = text.splitn(3, '/');
    let (epoch, sn) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let chain = u64::from_str_radix(parts.next()?, 16).ok()?;
    Some(LogPoint { id: TxId { epoch: Epoch(epoch), sn: Sn(sn) }, chain: Chain(chain) })
}

/// Reads both copies and believes the one that was written more often. `None`: there is no manifest. The text is what is
/// wrong with the other copy.
pub(super) fn load(
    disk: &dyn Disk,
    directory: &Path,
) -> Result<Option<(Manifest, u64, Option<String>)>, ArchiveError> {
    let mut copies = Vec::new();
    let mut missing = 0;
    for name in FILE_NAMES {
        let path = directory.join(name);
        copies.push(match read(disk, &path) {
            Ok(bytes) => match Manifest::decode(&bytes) {
                Ok(manifest) => Ok(manifest),
                Err(Refusal::Damaged(what)) => Err(format!("{}: {what}", path.display())),
                Err(Refusal::Version(found)) => {
                    return Err(ArchiveError::Version { file: path, found, known: VERSION.into() });
                }
                Err(Refusal::Level(level)) => return Err(ArchiveError::Level { file: path, level }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing += 1;
                Err(format!("{} is missing", path.display()))
            }
            Err(error) => return Err(ArchiveError::io(path)(error)),
        });
    }
    if missing == FILE_NAMES.len() {
        return Ok(None);
    }
    let second = copies.pop().expect("there are two");
    let first = copies.pop().expect("there are two");
    match (first, second) {
        (Ok(first), Ok(second)) => {
            let (manifest, writes) = if first.1 >= second.1 { first } else { second };
            Ok(Some((manifest, writes, None)))
        }
        (Ok((manifest, writes)), Err(what)) | (Err(what), Ok((manifest, writes))) => {
            Ok(Some((manifest, writes, Some(what))))
        }
        (Err(first), Err(second)) => Err(ArchiveError::Manifest { first, second }),
    }
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; file.length()?.min(BYTES_MAX) as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Writes both copies, one after the other.
pub(super) fn store(
    disk: &dyn Disk,
    directory: &Path,
    manifest: &Manifest,
    writes: u64,
) -> Result<(), ArchiveError> {
    let text = manifest.encode(writes);
    for name in FILE_NAMES {
        let path: PathBuf = directory.join(name);
        let temporary = directory.join(TEMPORARY);
        (|| {
            let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
            file.write_at(text.as_bytes(), 0)?;
            file.sync_data()?;
            disk.rename(&temporary, &path)?;
            disk.sync_directory(directory)
        })()
        .map_err(ArchiveError::io(path))?;
    }
    Ok(())
}
