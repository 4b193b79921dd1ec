//! `clover bench memory`: the bytes that a metadata server allocates for a file.
//!
//! The namespace and the block map of this program are filled through the same plans, edits and reports that a
//! cluster makes: unique names of 24 bytes, a thousand files a directory, one block a file, three locations a block.
//! It counts the bytes that were asked of the allocator and not given back. The retry cache is listed apart, for it
//! is bounded by time and count, not by the number of files.

mod directories;

use super::tree::{Caching, LOCATIONS, Tree};
use crate::allocator::allocated_by_this_thread;
use anyhow::{Context as _, ensure};
use base::Moment;
use blocks::{
    BlockMap, BlockState, Config, Registration, ReplicaState, ReportedReplica, ServerId, SessionKey,
    StorageType,
};
use namespace::Namespace;
use std::{process::ExitCode, time::Instant};

const SERVERS: usize = 10;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many files to make.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    files: u64,
    /// Make so many directories instead, and tell what each costs each group of a namespace of several groups.
    #[arg(long, value_name = "COUNT", conflicts_with = "files", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    directories: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let (json, text) = match args.directories {
        Some(directories) => {
            let report = directories::measure(directories)?;
            (report.json(), report.text())
        }
        None => {
            let report = measure(args.files)?;
            (report.json(), report.text())
        }
    };
    if args.json {
        println!("{json}");
    } else {
        print!("{text}");
        println!("measured in {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(ExitCode::SUCCESS)
}

struct Report {
    files: u64,
    directories: u64,
    /// The bytes of the namespace, without the retry cache.
    namespace: i64,
    block_map: i64,
    retry_cache: i64,
    retry_entries: u64,
    parts: namespace::Memory,
}

fn measure(files: u64) -> anyhow::Result<Report> {
    let before = allocated_by_this_thread();
    let mut tree = Tree::new(Caching::Calls);
    for file in 0..files {
        tree.make_file(file, 1)?;
    }
    let parts = tree.namespace.memory();
    let all = allocated_by_this_thread() - before;
    let retry_cache = parts.retry_cache as i64;
    let counts = tree.namespace.counts();
    ensure!(counts.files == files && counts.blocks == files, "not all files were made: {counts:?}");

    let before = allocated_by_this_thread();
    let map = map_blocks(&tree.namespace)?;
    let block_map = allocated_by_this_thread() - before;
    drop(map);
    Ok(Report {
        files,
        directories: counts.directories,
        namespace: all - retry_cache,
        block_map,
        retry_cache,
        retry_entries: counts.retry_entries,
        parts,
    })
}

/// The block map of a server that has read the namespace and heard all reports.
fn map_blocks(namespace: &Namespace) -> anyhow::Result<BlockMap> {
    let now = Moment::from_ms(1);
    let mut map = BlockMap::new(Config::default(), 1, now);
    namespace.for_each_block(&mut |block, inode, replication, _| {
        map.add_block(block, inode, replication, BlockState::Complete, &[], now);
    });
    for server in 0..SERVERS {
        let registration = Registration {
            uuid: format!("server-{server}").into(),
            ip: format!("10.0.0.{server}").into(),
            host_name: format!("host-{server}").into(),
            transfer_port: 9_866,
            ..Registration::default()
        };
        let (uuid, ip) = (registration.uuid.clone(), registration.ip.clone());
        let session = SessionKey([server as u8; SessionKey::BYTES]);
        map.register(registration, session, now).map_err(|error| anyhow::anyhow!("{error}"))?;
        let id = ServerId { uuid: &uuid, ip: &ip, transfer_port: 9_866, session: &session.0, connection: 0 };
        let report = map.begin_report(id, "storage", StorageType::Disk, 0, now).context("a report begins")?;
        let mut rows = Vec::with_capacity(2_000);
        let mut result = Ok(());
        let mut number = 0;
        namespace.for_each_block(&mut |block, _, _, _| {
            number += 1;
            if (number + server) % SERVERS < LOCATIONS {
                rows.push(ReportedReplica { block, state: ReplicaState::Finalized });
            }
            if rows.len() == 2_000 && result.is_ok() {
                result = map.report_slice(report, &rows, now);
                rows.clear();
            }
        });
        result.and_then(|()| map.report_slice(report, &rows, now)).context("a report goes on")?;
        map.finish_report(report, now).context("a report ends")?;
    }
    Ok(map)
}

impl Report {
    fn a_file(&self, bytes: i64) -> f64 {
        bytes as f64 / self.files as f64
    }

    fn json(&self) -> serde_json::Value {
        let part = |bytes: i64| serde_json::json!({ "bytes": bytes, "bytes_a_file": self.a_file(bytes) });
        serde_json::json!({
            "files": self.files,
            "directories": self.directories,
            "name_bytes": 24,
            "blocks_a_file": 1,
            "locations_a_block": LOCATIONS,
            "namespace": part(self.namespace),
            "block_map": part(self.block_map),
            "retry_cache": part(self.retry_cache),
            "retry_entries": self.retry_entries,
            "total_without_retry_cache": part(self.namespace + self.block_map),
            "namespace_parts": {
                "inodes": self.a_file(self.parts.inodes as i64),
                "names": self.a_file(self.parts.names as i64),
                "children": self.a_file(self.parts.children as i64),
                "blocks": self.a_file(self.parts.blocks as i64),
                "index": self.a_file(self.parts.index as i64),
                "attributes": self.a_file(self.parts.attributes as i64),
                "leases": self.a_file(self.parts.leases as i64),
            },
        })
    }

    fn text(&self) -> String {
        let line = |name: &str, bytes: i64| {
            format!("{name:<24}{bytes:>16} bytes{:>10.1} a file\n", self.a_file(bytes))
        };
        let parts = &self.parts;
        [
            format!(
                "{} files of 24-byte names in {} directories, 1 block, {LOCATIONS} locations\n",
                self.files, self.directories
            ),
            line("namespace", self.namespace),
            line("  inodes", parts.inodes as i64),
            line("  names", parts.names as i64),
            line("  children", parts.children as i64),
            line("  blocks", parts.blocks as i64),
            line("  index by id", parts.index as i64),
            line("  attributes", parts.attributes as i64),
            line("block map", self.block_map),
            line("together", self.namespace + self.block_map),
            line("retry cache", self.retry_cache),
            format!("the retry cache holds {} calls\n", self.retry_entries),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_costs_no_more_than_150_bytes() -> anyhow::Result<()> {
        let report = measure(50_000)?;
        let bytes = report.a_file(report.namespace + report.block_map);
        // Tables and pages are half empty at some sizes, and a small tree does not hide it.
        anyhow::ensure!((80.0..190.0).contains(&bytes), "{}", report.text());
        Ok(())
    }
}
