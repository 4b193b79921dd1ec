//! The blocks that are lost, page by page: `hdfs fsck -list-corruptfileblocks`.

use super::{
    block::Block,
    out::Out,
    reason::End,
    sums::File,
    walk::{Step, Walk},
};
use client::{Error, FileSystem};
use proto::hdfs::{
    ListCorruptFileBlocksRequestProto, ListCorruptFileBlocksResponseProto, LocatedBlocksProto,
};
use std::collections::{BTreeSet, HashSet};

/// Tells one page of lost blocks behind those that were told before. `snapshottable`: directories of whose snapshots the names are told as well.
///
/// Blocks that only snapshots have come last. The service names no files for them, so the snapshots are walked over, and told in one page.
///
/// # Errors
/// The user is no superuser, or a call fails; or the client has gone.
pub async fn tell(
    fs: &FileSystem,
    path: &str,
    told_before: u64,
    snapshottable: Option<&[String]>,
    out: &mut Out,
) -> Result<(), End> {
    let page = page(fs, path, told_before).await?;
    let snapshottable = snapshottable.unwrap_or_default();
    let is_last = page.blocks.is_empty() && page.told == told_before && !snapshottable.is_empty();
    out.say(&format!("Cookie:\t{}\n", page.told + u64::from(is_last))).await?;
    let mut lines = 0_u64;
    for Lost { block, replication, file } in &page.blocks {
        out.say(&format!("blk_{block}\t{replication}\t{file}\n")).await?;
        lines += 1;
        for directory in snapshottable {
            lines += tell_snapshots(fs, directory, *block, file, out).await?;
        }
    }
    if is_last {
        for directory in snapshottable.iter().filter(|directory| is_below(directory, path)) {
            lines += tell_kept(fs, directory, out).await?;
        }
    }
    let count = match lines {
        0 if told_before == 0 => "no".to_owned(),
        0 => "no more".to_owned(),
        lines => lines.to_string(),
    };
    out.say(&format!("\n\nThe filesystem under path '{path}' has {count} CORRUPT files\n\n")).await
}

fn is_below(directory: &str, path: &str) -> bool {
    let base = path.trim_end_matches('/');
    directory.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[derive(Debug)]
struct Page {
    /// Blocks that were told with this page and the ones before it.
    told: u64,
    /// In the order of their ids.
    blocks: Vec<Lost>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lost {
    block: u64,
    /// The replicas that its file wants.
    replication: u16,
    file: String,
}

async fn page(fs: &FileSystem, path: &str, told_before: u64) -> Result<Page, End> {
    let (mut told, mut cookie) = (0, None::<String>);
    loop {
        let request = ListCorruptFileBlocksRequestProto { path: path.to_owned(), cookie: cookie.clone() };
        let answer: ListCorruptFileBlocksResponseProto = fs.call("listCorruptFileBlocks", &request).await?;
        let (files, next) = (answer.corrupt.files, answer.corrupt.cookie);
        let count = files.len() as u64;
        if count == 0 {
            return Ok(Page { told, blocks: Vec::new() });
        }
        told += count;
        if told > told_before {
            // The cookies are the last blocks that were looked at.
            let number = |text: &str| text.parse::<u64>().unwrap_or(0);
            let (after, last) = (number(cookie.as_deref().unwrap_or_default()), number(&next));
            let mut blocks = blocks(fs, files, after, last).await?;
            let known = usize::try_from(count - (told - told_before).min(count)).unwrap_or(usize::MAX);
            blocks.drain(..known.min(blocks.len()));
            // A page without a line would tell the client that this is all.
            if !blocks.is_empty() {
                return Ok(Page { told, blocks });
            }
        }
        cookie = Some(next);
    }
}

/// The lost blocks of these files with ids above `after` and up to `last`.
async fn blocks(fs: &FileSystem, files: Vec<String>, after: u64, last: u64) -> Result<Vec<Lost>, End> {
    let files: BTreeSet<String> = files.into_iter().collect();
    let mut blocks = Vec::new();
    for file in files {
        let (status, located) = match fs.list_located(&file).next_located().await {
            // It was deleted meanwhile.
            Err(Error::Fs(base::FsError::NotFound(_))) | Ok(None) => continue,
            Ok(Some(entry)) => entry,
            Err(error) => return Err(error.into()),
        };
        let ids = lost_ids(&located.unwrap_or_default());
        let ids = ids.into_iter().filter(|id| *id > after && *id <= last);
        blocks.extend(ids.map(|block| Lost { block, replication: status.replication, file: file.clone() }));
    }
    blocks.sort();
    Ok(blocks)
}

fn lost_ids(located: &LocatedBlocksProto) -> Vec<u64> {
    let file = File::from_wire("", 0, 0, located);
    let is_lost = |block: &&Block| block.is_corrupt || block.is_missing();
    file.blocks.iter().filter(is_lost).map(|block| block.id).collect()
}

/// Tells the lost blocks of files that are only in snapshots of a directory, or have another name by now.
async fn tell_kept(fs: &FileSystem, directory: &str, out: &mut Out) -> Result<u64, End> {
    let base = directory.trim_end_matches('/');
    let mut lines = 0;
    for snapshot in fs.snapshots(directory).await? {
        let mut walk = Walk::new(fs.clone(), &snapshot.status, HashSet::new());
        while let Some(step) = walk.next().await? {
            out.say("").await?;
            let Step::File(found) = step else { continue };
            let (status, located) = *found;
            let ids = lost_ids(&located);
            if ids.is_empty() {
                continue;
            }
            let rest = status.path.strip_prefix(&*snapshot.status.path).unwrap_or_default();
            let now = fs.find(&format!("{base}{rest}")).await?;
            if now.is_some_and(|now| now.file_id == status.file_id) {
                continue;
            }
            for block in ids {
                out.say(&format!("blk_{block}\t{}\n", status.path)).await?;
                lines += 1;
            }
        }
    }
    Ok(lines)
}

/// Tells under which names the snapshots of a directory show the file.
async fn tell_snapshots(
    fs: &FileSystem,
    directory: &str,
    block: u64,
    file: &str,
    out: &mut Out,
) -> Result<u64, End> {
    let base = directory.trim_end_matches('/');
    let Some(rest) = file.strip_prefix(base).filter(|rest| rest.starts_with('/')) else { return Ok(0) };
    let mut lines = 0;
    for snapshot in fs.snapshots(directory).await? {
        let shown = format!("{}{rest}", snapshot.status.path);
        if fs.exists(&shown).await? {
            out.say(&format!("blk_{block}\t{shown}\n")).await?;
            lines += 1;
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn a_directory_is_below_itself_and_the_root() {
        for (directory, path) in [("/a", "/"), ("/a", "/a"), ("/a/b", "/a"), ("/", "/"), ("/a/b", "/a/")] {
            assert!(is_below(directory, path), "{directory} {path}");
        }
        for (directory, path) in [("/ab", "/a"), ("/a", "/a/b"), ("/", "/a")] {
            assert!(!is_below(directory, path), "{directory} {path}");
        }
    }
}
