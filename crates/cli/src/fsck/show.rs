//! The words for people and for scripts.

use super::Args;
use crate::admin::service;
use gateway::fsck::{
    block::{Block, Fault, Server},
    sums::{File, Sums},
};
use serde_json::{Value, json};
use std::time::Duration;

/// A file, if it has a fault or all are told.
pub fn file(args: &Args, file: &File, racks: Option<usize>) {
    let has_fault = file.blocks.iter().any(|block| block.fault(file.wanted, racks).is_some());
    if !has_fault && !args.files {
        return;
    }
    match args.json {
        true => println!("{}", file_json(args, file, racks)),
        false => file_lines(args, file, racks).iter().for_each(|line| println!("{line}")),
    }
}

fn file_lines(args: &Args, file: &File, racks: Option<usize>) -> Vec<String> {
    let faults = file.blocks.iter().filter_map(|block| Some((block, block.fault(file.wanted, racks)?)));
    let mut lines: Vec<String> =
        faults.map(|(block, fault)| format!("{}: {}", file.path, told(block, fault, file.wanted))).collect();
    if lines.is_empty() {
        let open = if file.is_open { ", being written" } else { "" };
        lines.push(format!(
            "{}: OK, {} bytes in {} blocks, {} replicas wanted{open}",
            file.path,
            file.bytes,
            file.blocks.len(),
            file.wanted
        ));
    }
    if args.blocks || args.locations || args.racks {
        lines.extend(file.blocks.iter().enumerate().map(|(number, block)| {
            let places = if args.locations || args.racks { places(args, block) } else { String::new() };
            format!("  {number}. {} {} bytes, {} replicas{places}", block.name, block.bytes, block.replicas())
        }));
    }
    lines
}

fn told(block: &Block, fault: Fault, wanted: usize) -> String {
    let name = &block.name;
    match fault {
        Fault::Missing => {
            format!("MISSING {name} of {} bytes: no data server that is there has it", block.bytes)
        }
        Fault::Corrupt => format!("CORRUPT {name} of {} bytes: every replica is damaged", block.bytes),
        Fault::UnderReplicated { .. } => {
            let gone =
                [(block.counts.leaving(), "decommissioned"), (block.counts.maintained(), "in maintenance")];
            let gone: String = gone
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!(", {count} on servers that are {what}"))
                .collect();
            format!(
                "UNDER-REPLICATED {name}: {} of {wanted} replicas are in service{gone}",
                block.counts.live
            )
        }
        Fault::Misplaced => format!("MISPLACED {name}: all replicas are on one rack"),
    }
}

fn places(args: &Args, block: &Block) -> String {
    let place = |server: &Server| {
        let rack = if args.racks { &*server.rack } else { "" };
        let slash = if args.racks { "/" } else { "" };
        let state = service(server.state).map(|state| format!(" ({state})")).unwrap_or_default();
        format!("{rack}{slash}{}{state}", server.address)
    };
    format!(": {}", block.servers.iter().map(place).collect::<Vec<_>>().join(", "))
}

fn file_json(args: &Args, file: &File, racks: Option<usize>) -> Value {
    let kind = |fault: Fault| match fault {
        Fault::Missing => "missing",
        Fault::Corrupt => "corrupt",
        Fault::UnderReplicated { .. } => "under_replicated",
        Fault::Misplaced => "misplaced",
    };
    let block = |block: &Block| {
        let servers = block.servers.iter().map(|server| {
            json!({"address": server.address, "rack": server.rack, "service": service(server.state).unwrap_or("in service")})
        });
        json!({
            "block": block.name,
            "bytes": block.bytes,
            "replicas": block.replicas(),
            "fault": block.fault(file.wanted, racks).map(kind),
            "servers": servers.collect::<Vec<_>>(),
        })
    };
    let has_fault = |block: &&Block| block.fault(file.wanted, racks).is_some();
    let is_told = |block: &&Block| args.blocks || args.locations || args.racks || has_fault(block);
    json!({
        "path": file.path,
        "bytes": file.bytes,
        "replication": file.wanted,
        "open": file.is_open,
        "blocks": file.blocks.iter().filter(is_told).map(block).collect::<Vec<_>>(),
    })
}

pub fn sums(args: &Args, sums: &Sums, racks: Option<usize>, took: Duration) {
    if args.json {
        println!("{}", json!({ "summary": sums_json(sums, racks) }));
        return;
    }
    sums_lines(args, sums, racks, took).iter().for_each(|line| println!("{line}"));
}

/// Replicas on servers that are decommissioned, or on the way there.
fn leaving(sums: &Sums) -> u64 {
    sums.decommissioning_replicas + sums.decommissioned_replicas
}

fn sums_json(sums: &Sums, racks: Option<usize>) -> Value {
    json!({
        "healthy": sums.is_healthy(),
        "racks": racks,
        "directories": sums.directories,
        "files": sums.files,
        "open_files": sums.open_files + sums.skipped.files,
        "symlinks": sums.symlinks,
        "bytes": sums.bytes,
        "blocks": sums.blocks,
        "replicas": sums.replicas,
        "missing_blocks": sums.missing,
        "missing_bytes": sums.missing_bytes,
        "corrupt_blocks": sums.corrupt,
        "corrupt_bytes": sums.corrupt_bytes,
        "corrupt_files": sums.corrupt_files,
        "under_replicated_blocks": sums.under_replicated,
        "missing_replicas": sums.missing_replicas,
        "over_replicated_blocks": sums.over_replicated,
        "misplaced_blocks": sums.misplaced,
        "decommissioned_replicas": leaving(sums),
    })
}

fn sums_lines(args: &Args, sums: &Sums, racks: Option<usize>, took: Duration) -> Vec<String> {
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let open = match args.open_for_write {
        true => format!("{} of them are being written", sums.open_files),
        false => format!("{} more are being written, and were not looked at", sums.skipped.files),
    };
    let mut lines = vec![
        format!("files             {}, {} bytes; {open}", sums.files, sums.bytes),
        format!("directories       {}", sums.directories),
        format!("blocks            {}, with {} replicas", sums.blocks, sums.replicas),
        format!("missing           {} ({} bytes)", sums.missing, sums.missing_bytes),
        format!("corrupt           {} ({} bytes)", sums.corrupt, sums.corrupt_bytes),
        format!(
            "under-replicated  {} ({:.2} %), {} replicas are missing",
            sums.under_replicated,
            share(sums.under_replicated, sums.blocks),
            sums.missing_replicas
        ),
        format!("over-replicated   {}", sums.over_replicated),
    ];
    lines.push(match racks {
        Some(racks) => format!("misplaced         {}; there are {racks} racks", sums.misplaced),
        None => "misplaced         not known: only a superuser is told of the racks".to_owned(),
    });
    if leaving(sums) > 0 {
        lines.push(format!(
            "leaving           {} replicas are on decommissioned servers, or on servers on the way there",
            leaving(sums)
        ));
    }
    lines.push(match sums.is_healthy() {
        true => format!("{} is HEALTHY. It took {:.1} s.", args.path, took.as_secs_f64()),
        false => format!(
            "{} is CORRUPT: {} files have lost blocks. Start data servers that are away; what remains missing has to be restored, or \
             deleted with clover fs -rm.",
            args.path, sums.corrupt_files
        ),
    });
    lines
}
