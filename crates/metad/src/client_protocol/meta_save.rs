//! `dfsadmin -metasave`: a file on the server with every block that waits for copying or deletion, in HDFS's lines.

use super::{decode, require_superuser};
use crate::{core::Core, partition::Partition};
use ::blocks::{AdminState, BlockMap, CorruptReason, DataServer, Replicas, ServerFilter, Waiting};
use base::{Block, BlockId, FsError, FsResult, Moment};
use env::{File, OpenMode};
use jiff::{Timestamp, tz::TimeZone};
use namespace::{Namespace, Privileged};
use parking_lot::Mutex;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::{
    fmt::Write,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Below the member's directory.
const DIRECTORY: &str = "metasave";
/// Blocks that are looked at without letting others in between.
const BLOCKS_AT_ONCE: usize = 500;
/// The journal is on the same disk: longer than this the file does not grow.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// The most bytes of a name, so that the file system takes it.
const NAME_BYTES_MAX: usize = 200;
const DEFAULT_RACK: &str = "/default-rack";

/// One file is written at a time.
static WRITING: Mutex<()> = Mutex::new(());

/// Answers when the file is whole.
pub fn meta_save(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::MetaSaveRequestProto>(&call, reply) else { return };
    let path =
        require_superuser(core, &call, Privileged::MetaSave).and_then(|()| path_of(core, &request.filename));
    let path = match path {
        Ok(path) => path,
        Err(error) => return reply.fs_error(&error),
    };
    let core = core.clone();
    // Writes a file: not on the thread that serves others.
    std::thread::spawn(move || {
        let _alone = WRITING.lock();
        match save(&core, &path) {
            Ok(()) => reply.ok(&p::MetaSaveResponseProto {}),
            Err(error) => {
                let text = format!("{} could not be written: {error}", path.display());
                reply.fs_error(&FsError::Io(text));
            }
        }
    });
}

/// Admits a plain name only: a user who may ask for the file need not be allowed to write elsewhere on the machine.
fn path_of(core: &Core, name: &str) -> FsResult<PathBuf> {
    let is_plain = !matches!(name, "" | "." | "..")
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(|letter: char| letter == '/' || letter.is_control());
    match is_plain {
        true => Ok(core.config.name_directory.join(DIRECTORY).join(name)),
        false => Err(FsError::InvalidArgument(format!("{name:?} is not the plain name of a file"))),
    }
}

/// Under another name first: a reader finds the old file or the new one.
fn save(core: &Core, path: &Path) -> io::Result<()> {
    let disk = &core.env.disk;
    let unfinished = path.with_extension("unfinished");
    if let Some(directory) = path.parent() {
        disk.create_directory(directory)?;
    }
    if disk.exists(&unfinished)? {
        disk.remove_file(&unfinished)?;
    }
    let file = disk.open(&unfinished, OpenMode::CreateNew)?;
    let mut output = Output { file, end: 0 };
    write(core, &mut output)?;
    disk.rename(&unfinished, path)
}

struct Output {
    file: Arc<dyn File>,
    end: u64,
}

impl Output {
    fn put(&mut self, text: &str) -> io::Result<()> {
        if self.end > FILE_BYTES_MAX {
            return Ok(());
        }
        self.file.write_at(text.as_bytes(), self.end)?;
        self.end += text.len() as u64;
        if self.end > FILE_BYTES_MAX {
            let last = format!("There is more: this file ends after {FILE_BYTES_MAX} bytes.\n");
            self.file.write_at(last.as_bytes(), self.end)?;
        }
        Ok(())
    }

    /// A line a block, some of them at a time.
    fn put_blocks(
        &mut self,
        partition: &Partition,
        blocks: &[BlockId],
        line: impl Fn(&mut String, &Namespace, &BlockMap, BlockId),
    ) -> io::Result<()> {
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let mut text = String::new();
            {
                let tree = partition.tree();
                let map = partition.blocks.lock();
                some.iter().for_each(|id| line(&mut text, &tree.namespace, &map, *id));
            }
            self.put(&text)?;
            if self.end > FILE_BYTES_MAX {
                break;
            }
        }
        Ok(())
    }
}

fn write(core: &Core, output: &mut Output) -> io::Result<()> {
    let counts = core.partition.tree().namespace.counts();
    let (waiting, deletions, servers) = {
        let map = core.partition.blocks.lock();
        (map.waiting(), map.deletions(), map.servers(ServerFilter::All))
    };
    let Waiting { endangered, lost, undecided, arriving, corrupt } = waiting;
    let inodes = counts.files + counts.directories;
    let blocks = counts.blocks;
    let live = servers.iter().filter(|server| server.alive).count();
    output.put(&format!(
        "{inodes} files and directories, {blocks} blocks = {} total filesystem objects\n\
         Live Datanodes: {live}\nDead Datanodes: {}\n\
         Metasave: Blocks waiting for reconstruction: {}\n",
        inodes + blocks,
        servers.len() - live,
        endangered.len(),
    ))?;
    output.put_blocks(&core.partition, &endangered, put_block)?;
    output.put(&format!("Metasave: Blocks currently missing: {}\n", lost.len()))?;
    output.put_blocks(&core.partition, &lost, put_block)?;
    output.put("Mis-replicated blocks that have been postponed:\n")?;
    output.put_blocks(&core.partition, &undecided, put_block)?;

    output.put(&format!("Metasave: Blocks being reconstructed: {}\n", arriving.len()))?;
    for (id, began, count) in arriving {
        let block = core.partition.blocks.lock().replicas(id).map(|replicas| replicas.block);
        let Some(block) = block else { continue };
        let at = calendar(core, began, "%H:%M:%S");
        output.put(&format!("{block} StartTime: {at} NumReconstructInProgress: {count}\n"))?;
    }

    let count: usize = deletions.iter().map(|(_, blocks)| blocks.len()).sum();
    let from = deletions.len();
    output.put(&format!("Metasave: Blocks {count} waiting deletion from {from} datanodes.\n"))?;
    for (server, blocks) in deletions {
        let blocks: Vec<String> = blocks.iter().map(Block::to_string).collect();
        output.put(&format!("{}\n{}\n", server.registration.transfer_address(), blocks.join(",")))?;
    }

    output.put("Corrupt Blocks:\n")?;
    output.put_blocks(&core.partition, &corrupt, |text, _, map, id| {
        map.replicas(id).iter().for_each(|replicas| put_damage(text, replicas));
    })?;
    output.put(&format!("Metasave: Number of datanodes: {}\n", servers.len()))?;
    for server in servers {
        output
            .put(&server_line(&server, &calendar(core, server.last_heartbeat, "%a %b %d %H:%M:%S %Z %Y")))?;
    }
    Ok(())
}

/// Writes a line with the file of the block, its replicas, and the servers that have them. A block that is gone by
/// now has no line.
fn put_block(text: &mut String, namespace: &Namespace, map: &BlockMap, id: BlockId) {
    let Some(replicas) = map.replicas(id) else { return };
    let Replicas { block, inode, live, corrupt, excess, decommissioned, maintained, places } = replicas;
    let path = namespace.path_of(inode).unwrap_or_else(|| "[orphaned]".into());
    let missing = if live + decommissioned > 0 { "" } else { " MISSING" };
    let _ = write!(
        text,
        "{path}: {block}{missing} (replicas: live: {live} decommissioning and decommissioned: \
         {decommissioned} corrupt: {corrupt} in excess: {excess} maintenance mode: {maintained}) "
    );
    for place in places {
        let state = match place.location.server.admin_state {
            _ if place.damage.is_some() => "(corrupt)",
            AdminState::DecommissionInProgress | AdminState::Decommissioned => "(decommissioned)",
            AdminState::EnteringMaintenance | AdminState::InMaintenance => "(maintenance)",
            AdminState::InService => "",
        };
        let stale = if place.is_stale { " (block deletions maybe out of date)" } else { "" };
        let _ = write!(text, " {}{state}{stale} : ", place.location.server.registration.transfer_address());
    }
    text.push('\n');
}

/// Hadoop's name for the reason.
pub fn reason_name(reason: CorruptReason) -> &'static str {
    match reason {
        CorruptReason::GenerationStampMismatch => "GENSTAMP_MISMATCH",
        CorruptReason::SizeMismatch => "SIZE_MISMATCH",
        CorruptReason::InvalidState => "INVALID_STATE",
        CorruptReason::CorruptionReported => "CORRUPTION_REPORTED",
    }
}

fn put_damage(text: &mut String, replicas: &Replicas) {
    let Replicas { block, places, .. } = replicas;
    for place in places {
        let Some(damage) = place.damage else { continue };
        let reason = reason_name(damage);
        let _ = writeln!(
            text,
            "Block={block}\tSize={}\tNode={}\tStorageID={}\tStorageState=NORMAL\tTotalReplicas={}\tReason={reason}",
            block.length,
            place.location.server.registration.transfer_address(),
            place.location.storage,
            places.len(),
        );
    }
}

fn server_line(server: &DataServer, heard: &str) -> String {
    let rack = if &*server.rack == DEFAULT_RACK { String::new() } else { format!(" {}", server.rack) };
    let state = match server.admin_state {
        AdminState::InService => "IN",
        AdminState::DecommissionInProgress => "DP",
        AdminState::Decommissioned => "DD",
        AdminState::EnteringMaintenance => "EM",
        AdminState::InMaintenance => "IM",
    };
    let bytes = |count: u64| format!("{count}({})", in_units(count));
    let percent = |part: u64, whole: u64| match whole {
        0 => "100.00%".to_owned(),
        _ => format!("{:.2}%", part as f64 * 100.0 / whole as f64),
    };
    format!(
        "{}{rack} {state} {} {} {} {} {} {} {} {} {heard}\n",
        server.registration.transfer_address(),
        bytes(server.capacity),
        bytes(server.dfs_used),
        percent(server.dfs_used, server.capacity),
        bytes(server.remaining),
        bytes(server.cache_capacity),
        bytes(server.cache_used),
        percent(server.cache_used, server.cache_capacity),
        bytes(server.cache_capacity.saturating_sub(server.cache_used)),
    )
}

/// A size as HDFS writes it for people: `512 B`, `2 KB`, `1.50 GB`.
fn in_units(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut unit = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    if bytes.is_multiple_of(1 << (10 * unit)) {
        return format!("{} {}", bytes >> (10 * unit), UNITS[unit]);
    }
    let mut text = format!("{:.2}", bytes as f64 / (1u64 << (10 * unit)) as f64);
    if text.starts_with("1024") {
        unit += 1;
        text = "1.00".into();
    }
    format!("{text} {}", UNITS[unit])
}

/// A moment that has passed, in UTC.
fn calendar(core: &Core, moment: Moment, form: &str) -> String {
    let ago_ms = core.moment().ms_since(moment);
    let at = core.env.clock.timestamp().ms.saturating_sub(ago_ms);
    let at = Timestamp::from_millisecond(at as i64).unwrap_or_default();
    at.to_zoned(TimeZone::UTC).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::in_units;

    #[test]
    fn sizes_are_written_as_hdfs_writes_them() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.50 KB"),
            ((1 << 20) - 1, "1.00 MB"),
            (5 << 30, "5 GB"),
            (u64::MAX, "16.00 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(in_units(bytes), text);
        }
    }
}
