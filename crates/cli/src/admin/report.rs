//! `clover admin report` and `topology`: room, blocks and data servers.

use crate::table;
use client::{DataServer, FileSystem, FsStats, SafeModeOrder};
use serde_json::{Value, json};
use std::{collections::BTreeMap, process::ExitCode};

/// Show room, blocks and data servers.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Only the data servers that are alive.
    #[arg(long)]
    live: bool,
    /// Only those that are lost.
    #[arg(long)]
    dead: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Show the racks, and the data servers on each.
#[derive(Debug, clap::Args)]
pub struct Topology {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub async fn report(fs: &FileSystem, args: Report) -> anyhow::Result<ExitCode> {
    let stats = fs.stats().await?;
    let is_safe_mode = fs.safe_mode(SafeModeOrder::Ask).await?;
    let mut servers = fs.data_servers().await?;
    if args.live != args.dead {
        servers.retain(|server| server.is_alive == args.live);
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&as_json(&stats, is_safe_mode, &servers))?),
        false => print!("{}", as_text(&stats, is_safe_mode, &servers)),
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(stats: &FsStats, is_safe_mode: bool, servers: &[DataServer]) -> Value {
    json!({
        "safe_mode": is_safe_mode,
        "capacity": stats.capacity,
        "used": stats.used,
        "remaining": stats.remaining,
        "under_replicated_blocks": stats.under_replicated_blocks,
        "corrupt_blocks": stats.corrupt_blocks,
        "missing_blocks": stats.missing_blocks,
        "data_servers": servers.iter().map(server_json).collect::<Vec<_>>(),
    })
}

fn server_json(server: &DataServer) -> Value {
    json!({
        "uuid": server.uuid,
        "host": server.host_name,
        "address": server.address,
        "rpc_address": server.rpc_address,
        "rack": server.rack,
        "version": server.version,
        "alive": server.is_alive,
        "capacity": server.capacity,
        "used": server.used,
        "non_dfs_used": server.non_dfs_used,
        "remaining": server.remaining,
        "blocks": server.blocks,
        "connections": server.connections,
        "last_contact": server.last_contact_ms,
        "last_block_report": server.last_block_report_ms,
    })
}

/// Binary units, two digits: `1.50 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    let unit = UNITS[power as usize - 1];
    format!("{:.2} {unit}", bytes as f64 / 1024f64.powi(power as i32))
}

fn as_text(stats: &FsStats, is_safe_mode: bool, servers: &[DataServer]) -> String {
    let mut text = String::new();
    if is_safe_mode {
        text += "Safe mode is on: nothing is changed, copied or deleted.\n";
    }
    let share = 100.0 * stats.used as f64 / stats.capacity.max(1) as f64;
    text += &format!("capacity   {}\n", size(stats.capacity));
    text += &format!("used       {} ({share:.2} %)\n", size(stats.used));
    text += &format!("remaining  {}\n", size(stats.remaining));
    text += &format!(
        "blocks     {} with too few replicas, {} with damaged ones, {} lost\n",
        stats.under_replicated_blocks, stats.corrupt_blocks, stats.missing_blocks
    );
    if servers.is_empty() {
        return text + "\nNo data servers.\n";
    }
    let head = ["SERVER", "HOST", "RACK", "STATE", "CAPACITY", "USED", "REMAINING", "BLOCKS"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(servers.iter().map(|server| {
        vec![
            server.address.clone(),
            server.host_name.clone(),
            server.rack.clone(),
            if server.is_alive { "live" } else { "dead" }.to_owned(),
            size(server.capacity),
            size(server.used),
            size(server.remaining),
            server.blocks.to_string(),
        ]
    }));
    text + "\n" + &table::lines(&rows).join("\n") + "\n"
}

pub async fn topology(fs: &FileSystem, args: Topology) -> anyhow::Result<ExitCode> {
    let servers = fs.data_servers().await?;
    let racks = by_rack(&servers);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&racks)?);
        return Ok(ExitCode::SUCCESS);
    }
    if racks.is_empty() {
        println!("No data servers.");
    }
    for (rack, servers) in racks {
        println!("Rack: {rack}");
        servers.iter().for_each(|server| println!("   {server}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn by_rack(servers: &[DataServer]) -> BTreeMap<&str, Vec<String>> {
    let mut racks: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for server in servers {
        let state = if server.is_alive { "" } else { " dead" };
        let shown = format!("{} ({}){state}", server.address, server.host_name);
        racks.entry(&server.rack).or_default().push(shown);
    }
    racks.values_mut().for_each(|servers| servers.sort());
    racks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u16, rack: &str, is_alive: bool) -> DataServer {
        DataServer {
            address: format!("10.0.0.{number}:9866"),
            host_name: format!("worker{number}"),
            rack: rack.into(),
            is_alive,
            capacity: 3 << 40,
            ..DataServer::default()
        }
    }

    #[test]
    fn sizes_are_told_in_binary_units() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1_023), "1023 B");
        assert_eq!(size(1_536), "1.50 KiB");
        assert_eq!(size(3 << 40), "3.00 TiB");
        assert_eq!(size(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn servers_stand_below_their_racks_and_the_lost_ones_are_marked() {
        let servers = [server(2, "/r1", true), server(1, "/r1", false), server(3, "/r2", true)];
        let racks = by_rack(&servers);
        assert_eq!(racks["/r1"], ["10.0.0.1:9866 (worker1) dead", "10.0.0.2:9866 (worker2)"]);
        assert_eq!(racks["/r2"], ["10.0.0.3:9866 (worker3)"]);
    }

    #[test]
    fn a_report_begins_with_safe_mode_and_ends_with_the_servers() {
        let text = as_text(&FsStats::default(), true, &[server(1, "/r1", false)]);
        assert!(text.starts_with("Safe mode is on"), "{text}");
        let last = text.lines().last().unwrap();
        let words = ["10.0.0.1:9866", "worker1", "/r1", "dead", "3.00", "TiB"];
        assert!(last.split_whitespace().zip(words).all(|(found, wanted)| found == wanted), "{last}");
        assert!(as_text(&FsStats::default(), false, &[]).ends_with("\nNo data servers.\n"));
    }
}
