//! `clover admin report` and `topology`: room, blocks and data servers.

use super::{
    data_servers::source,
    group::show,
    servers::{Servers, active_address},
};
use crate::table;
use anyhow::bail;
use client::{AdminState, DataServer, DataServerState, FileSystem, FsStats, SafeModeOrder, Volume};
use jiff::Timestamp;
use proto::clover::admin::{
    GetDataServerOrdersRequestProto, GetDataServerOrdersResponseProto, GetGroupResponseProto,
    OrderedServerProto, SlowDiskProto, SlowServerProto,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, process::ExitCode, time::Duration};
pub use web::amounts::size;

/// Orders for data servers are told from memory.
const ORDERS_PATIENCE: Duration = Duration::from_secs(5);

/// Show room, blocks and data servers.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Only the data servers that are alive.
    #[arg(long)]
    live: bool,
    /// Only those that are lost.
    #[arg(long)]
    dead: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Show the racks, and the data servers on each.
#[derive(Debug, clap::Args)]
pub struct Topology {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All that a report tells.
struct Facts {
    /// `None`: an HDFS, which knows of no group.
    group: Option<GetGroupResponseProto>,
    stats: FsStats,
    is_safe_mode: bool,
    servers: Vec<DataServer>,
    /// The orders that take data servers out of service, as the group's active has them. None from an HDFS, from an older release, and for a user who is
    /// no superuser.
    orders: Vec<OrderedServerProto>,
    volumes: BTreeMap<String, Vec<Volume>>,
}

/// The words for a data server that is not simply in service.
pub fn service(state: AdminState) -> Option<&'static str> {
    match state {
        AdminState::InService => None,
        AdminState::DecommissionInProgress => Some("being decommissioned"),
        AdminState::Decommissioned => Some("decommissioned"),
        AdminState::EnteringMaintenance => Some("entering maintenance"),
        AdminState::InMaintenance => Some("in maintenance"),
    }
}

pub async fn report(members: &Servers, fs: &FileSystem, args: Report) -> anyhow::Result<ExitCode> {
    // If no server is reached, the next call says so, with the remedy.
    let group = members.group().await.ok();
    if let Some(group) = group.as_ref().filter(|group| !show::is_served(group)) {
        match args.json {
            true => println!("{}", serde_json::to_string_pretty(&json!({"group": show::json(group)}))?),
            false => print!("{}", show::text(group)),
        }
        bail!("nobody serves: data servers and blocks are not known");
    }
    let stats = fs.stats().await?;
    let is_safe_mode = fs.safe_mode(SafeModeOrder::Ask).await?;
    let mut servers = fs.data_servers().await?;
    // Only people read the volumes. A NameNode of Hadoop may refuse this call to a user who is no superuser: then the report goes
    // without them.
    let volumes = fs.volumes().await.unwrap_or_default();
    if args.live != args.dead {
        servers.retain(|server| server.is_alive == args.live);
    }
    let orders = match group.as_ref().and_then(active_address) {
        Some(address) => orders(members, &address).await,
        None => Vec::new(),
    };
    let facts = Facts { group, stats, is_safe_mode, servers, orders, volumes };
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&as_json(&facts))?),
        false => print!("{}", as_text(&facts)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn orders(members: &Servers, active: &str) -> Vec<OrderedServerProto> {
    let request = GetDataServerOrdersRequestProto {};
    let told = members.ask(active, "getDataServerOrders", &request, ORDERS_PATIENCE).await;
    told.map_or(Vec::new(), |told: GetDataServerOrdersResponseProto| told.servers)
}

impl Facts {
    /// Where the orders come from that take the server out of service.
    fn sources(&self, server: &DataServer) -> Vec<&'static str> {
        let order = self.orders.iter().find(|order| order.address == server.address);
        order.map_or(Vec::new(), source::words)
    }

    /// For people: where the order stands. Empty where it is not known.
    fn by(&self, server: &DataServer) -> String {
        match &self.sources(server)[..] {
            [] => String::new(),
            sources => format!(" It is ordered in the {}.", sources.join(" and in the ")),
        }
    }

    fn now_ms(&self) -> u64 {
        // The metadata server has noted by its own clock when it heard each data server, so its clock is asked.
        let theirs = self.group.as_ref().and_then(|group| group.now_ms);
        theirs.unwrap_or_else(|| Timestamp::now().as_millisecond() as u64)
    }

    /// Since the server was last heard; `None` where nobody knows.
    fn silent_ms(&self, server: &DataServer) -> Option<u64> {
        server.silent_ms(self.now_ms())
    }

    /// Whether the server is heard, and whether it is in service.
    fn state(&self, server: &DataServer) -> String {
        match service(server.admin_state) {
            None => self.health(server),
            Some(service) => format!("{}, {service}", self.health(server)),
        }
    }

    /// Blocks of the group that was asked which need the server; 0 where nobody tells.
    fn blocks_in_need(&self, server: &DataServer) -> u64 {
        let leaving = self.group.iter().flat_map(|group| &group.leaving);
        leaving.filter(|told| told.uuid == server.uuid).map(|told| told.blocks_in_need).sum()
    }

    /// The word of others that the server is slow, by the group that was asked.
    fn slowness(&self, server: &DataServer) -> Option<&SlowServerProto> {
        server.slowness(self.group.as_ref())
    }

    /// The server's own word that disks of it are slow.
    fn slow_disks<'a>(&'a self, server: &'a DataServer) -> impl Iterator<Item = &'a SlowDiskProto> {
        let told = self.group.iter().flat_map(|group| &group.slow_disks);
        told.filter(|told| told.uuid == server.uuid)
    }

    fn health(&self, server: &DataServer) -> String {
        let state = server.state(self.group.as_ref(), self.now_ms());
        match (state, self.silent_ms(server)) {
            (DataServerState::Dead | DataServerState::Stale, Some(ms)) => {
                format!("{} {}", state.word(), duration(ms))
            }
            _ => state.word().to_owned(),
        }
    }

    fn volumes(&self, server: &DataServer) -> String {
        let Some(volumes) = self.volumes.get(&server.uuid) else { return "-".into() };
        let count = |is: fn(&Volume) -> bool| volumes.iter().filter(|volume| is(volume)).count();
        let failed = count(|volume| volume.is_failed);
        let full = count(Volume::is_full);
        let mut text = volumes.len().to_string();
        for (count, what) in [(failed, "failed"), (full, "full")] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

/// A minute as `60 s`, an hour as `60 min`.
fn duration(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn as_json(facts: &Facts) -> Value {
    let Facts { group, stats, is_safe_mode, servers, .. } = facts;
    json!({
        "safe_mode": is_safe_mode,
        "safe_mode_reason": group.as_ref().and_then(|group| group.safe_mode.clone()),
        "writable": group.as_ref().and_then(|group| group.is_writable),
        "active": group.as_ref().and_then(|group| group.view.as_ref()?.active),
        "capacity": stats.capacity,
        "used": stats.used,
        "remaining": stats.remaining,
        "under_replicated_blocks": stats.under_replicated_blocks,
        "corrupt_blocks": stats.corrupt_blocks,
        "missing_blocks": stats.missing_blocks,
        "data_servers": servers.iter().map(|server| server_json(facts, server)).collect::<Vec<_>>(),
        "contested_addresses": group.iter().flat_map(|group| &group.contested).map(|contest| {
            json!({"address": contest.address, "uuids": contest.uuids})
        }).collect::<Vec<_>>(),
        "metadata_disks": group.iter().flat_map(|group| &group.members).filter_map(|member| {
            let free = member.disk_free_bytes?;
            Some(json!({"member": member.member, "free": free, "low": member.is_disk_low()}))
        }).collect::<Vec<_>>(),
    })
}

fn server_json(facts: &Facts, server: &DataServer) -> Value {
    let volumes = facts.volumes.get(&server.uuid).map(|volumes| {
        let json = |volume: &Volume| {
            json!({"id": volume.storage_id, "failed": volume.is_failed,
            "capacity": volume.capacity, "used": volume.used, "remaining": volume.remaining})
        };
        volumes.iter().map(json).collect::<Vec<_>>()
    });
    json!({
        "state": facts.health(server),
        "service": service(server.admin_state).unwrap_or("in service"),
        "blocks_in_need": facts.blocks_in_need(server),
        "slow": facts.slowness(server).map(|slow| json!({
            "reporters": slow.reporters, "latency_ms": slow.latency_ms, "median_ms": slow.median_ms,
            "limit_ms": slow.limit_ms, "excluded": slow.is_excluded, "read_last": slow.is_read_last,
        })),
        "slow_disks": facts.slow_disks(server).map(|disk| json!({
            "path": disk.path, "metadata_ms": disk.metadata_ms, "read_ms": disk.read_ms, "write_ms": disk.write_ms,
        })).collect::<Vec<_>>(),
        "order_sources": facts.sources(server),
        "silent_ms": facts.silent_ms(server),
        "volumes": volumes,
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

fn as_text(facts: &Facts) -> String {
    let Facts { group, stats, is_safe_mode, servers, .. } = facts;
    let mut text = String::new();
    if let Some(group) = group {
        text += &show::headline(group).iter().map(|line| format!("{line}\n")).collect::<String>();
        for member in group.members.iter().filter(|member| member.disk_free_bytes.is_some()) {
            let low = if member.is_disk_low() { ": TOO LITTLE, make room" } else { "" };
            let free = size(member.disk_free_bytes());
            text += &format!("The metadata disk of member {} has {free} free{low}.\n", member.member);
        }
    }
    if *is_safe_mode {
        let why = group.as_ref().and_then(|group| group.safe_mode.clone()).unwrap_or_default();
        text += "Safe mode is on: nothing is changed, copied or deleted.\n";
        if !why.is_empty() {
            text += &format!("{why}\n");
        }
    }
    if stats.missing_blocks > 0 {
        text += &format!(
            "{} BLOCKS ARE LOST: no data server that is there has them. `clover admin list-corrupt-files` names the files.\n",
            stats.missing_blocks
        );
    }
    let gone = servers.iter().filter(|server| !server.is_alive).count();
    if gone > 0 {
        text += &format!("{gone} of {} data servers are dead.\n", servers.len());
    }
    for server in servers {
        let (address, count, by) = (&server.address, facts.blocks_in_need(server), facts.by(server));
        match server.admin_state {
            AdminState::DecommissionInProgress | AdminState::EnteringMaintenance if count > 0 => {
                text += &format!(
                    "{address} is to leave service: {count} blocks need it until others have them.{by}\n"
                );
            }
            AdminState::DecommissionInProgress | AdminState::EnteringMaintenance => {
                text += &format!("{address} is to leave service: its blocks are being looked at.{by}\n");
            }
            AdminState::Decommissioned | AdminState::InMaintenance if server.is_alive => {
                text += &format!("{address} may be switched off: no block needs it.{by}\n");
            }
            _ => {}
        }
    }
    for server in servers {
        text += &slowness_text(facts, server);
    }
    for contest in group.iter().flat_map(|group| &group.contested) {
        text += &format!(
            "{} DATA SERVERS TAKE THE ADDRESS {} FROM EACH OTHER: {}. Give each an address and port of its own, or stop all but one.\n",
            contest.uuids.len(),
            contest.address,
            contest.uuids.join(", ")
        );
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
    let head =
        ["SERVER", "HOST", "RACK", "STATE", "CAPACITY", "USED", "REMAINING", "BLOCKS", "VOLUMES", "HEARD"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(servers.iter().map(|server| {
        vec![
            server.address.clone(),
            server.host_name.clone(),
            server.rack.clone(),
            facts.state(server),
            size(server.capacity),
            size(server.used),
            size(server.remaining),
            server.blocks.to_string(),
            facts.volumes(server),
            facts.silent_ms(server).map_or("-".into(), |ms| format!("{} ago", duration(ms))),
        ]
    }));
    text + "\n" + &table::lines(&rows).join("\n") + "\n"
}

/// A line about a server that others call slow, and a line about each of its disks that it calls slow itself.
fn slowness_text(facts: &Facts, server: &DataServer) -> String {
    let mut text = String::new();
    if let Some(slow) = facts.slowness(server) {
        let who = match slow.reporters {
            1 => "1 data server says".to_owned(),
            count => format!("{count} data servers say"),
        };
        let consequence = match (slow.is_excluded, slow.is_read_last) {
            (true, true) => "New replicas go elsewhere, and it is read from last",
            (true, false) => "New replicas go elsewhere",
            (false, true) => "It is read from last",
            (false, false) => "It is used as before",
        };
        text += &format!(
            "{} is slow, {who}: a packet takes {:.1} ms, to most others {:.1} ms. {consequence}.\n",
            server.address, slow.latency_ms, slow.median_ms
        );
    }
    for disk in facts.slow_disks(server) {
        let ops = [("metadata", disk.metadata_ms), ("reading", disk.read_ms), ("writing", disk.write_ms)];
        let told = ops.into_iter().filter_map(|(op, ms)| Some(format!("{op} {:.1} ms", ms?)));
        text += &format!(
            "The disk {} of {} is slow: {}.\n",
            disk.path,
            server.address,
            told.collect::<Vec<_>>().join(", ")
        );
    }
    text
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
    use proto::clover::admin::ContestedAddressProto;

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

    fn facts(is_safe_mode: bool, servers: Vec<DataServer>) -> Facts {
        let group = GetGroupResponseProto {
            now_ms: Some(1_000_000),
            stale_after_ms: Some(30_000),
            safe_mode: Some("99 blocks are lacking.".into()),
            contested: vec![ContestedAddressProto {
                address: "10.0.0.9:9866".into(),
                uuids: vec!["one".into(), "other".into()],
            }],
            ..GetGroupResponseProto::default()
        };
        let stats = FsStats { missing_blocks: 3, ..FsStats::default() };
        Facts {
            group: Some(group),
            stats,
            is_safe_mode,
            servers,
            orders: Vec::new(),
            volumes: BTreeMap::new(),
        }
    }

    #[test]
    fn a_report_tells_what_is_wrong_and_ends_with_the_servers() {
        let text = as_text(&facts(true, vec![server(1, "/r1", false)]));
        for part in [
            "Safe mode is on",
            "99 blocks are lacking",
            "3 BLOCKS ARE LOST",
            "1 of 1 data servers are dead",
            "2 DATA SERVERS TAKE THE ADDRESS 10.0.0.9:9866 FROM EACH OTHER: one, other.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let last = text.lines().last().unwrap();
        let words = ["10.0.0.1:9866", "worker1", "/r1", "dead", "3.00", "TiB"];
        assert!(last.split_whitespace().zip(words).all(|(found, wanted)| found == wanted), "{last}");
        assert!(as_text(&facts(false, Vec::new())).ends_with("\nNo data servers.\n"));
    }

    #[test]
    fn slow_servers_and_disks_are_told_with_what_follows() {
        let one = DataServer {
            uuid: "one".into(),
            last_contact_ms: 999_000,
            remaining: 1 << 30,
            ..server(1, "/r1", true)
        };
        let mut facts = facts(false, vec![one]);
        assert_eq!(facts.state(&facts.servers[0]), "live");
        let slow = SlowServerProto {
            uuid: "one".into(),
            reporters: 3,
            latency_ms: 120.04,
            median_ms: 2.0,
            limit_ms: 6.0,
            is_excluded: true,
            is_read_last: false,
        };
        let disk = SlowDiskProto {
            uuid: "one".into(),
            path: "/data/7".into(),
            metadata_ms: None,
            read_ms: Some(90.0),
            write_ms: Some(40.0),
        };
        let group = facts.group.as_mut().unwrap();
        (group.slow_servers, group.slow_disks) = (vec![slow], vec![disk]);
        assert_eq!(facts.state(&facts.servers[0]), "slow");
        let text = as_text(&facts);
        for line in [
            "10.0.0.1:9866 is slow, 3 data servers say: a packet takes 120.0 ms, to most others 2.0 ms. New replicas go elsewhere.",
            "The disk /data/7 of 10.0.0.1:9866 is slow: reading 90.0 ms, writing 40.0 ms.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let told = server_json(&facts, &facts.servers[0]);
        assert_eq!(
            (&told["slow"]["reporters"], &told["slow_disks"][0]["read_ms"]),
            (&json!(3), &json!(90.0))
        );
    }

    #[test]
    fn a_server_that_leaves_is_told_with_the_source_of_its_order() {
        let leaving = DataServer { admin_state: AdminState::Decommissioned, ..server(1, "/r1", true) };
        let mut facts = facts(false, vec![leaving]);
        assert!(as_text(&facts).contains("10.0.0.1:9866 may be switched off: no block needs it."));
        facts.orders.push(OrderedServerProto {
            address: "10.0.0.1:9866".into(),
            journal: Some(1),
            files: Some(2),
            ..OrderedServerProto::default()
        });
        let text = as_text(&facts);
        assert!(text.contains("no block needs it. It is ordered in the journal and in the files."), "{text}");
        assert_eq!(as_json(&facts)["data_servers"][0]["order_sources"], json!(["journal", "files"]));
    }

    #[test]
    fn a_server_is_live_full_stale_or_dead() {
        let heard = |ms, remaining| DataServer { last_contact_ms: ms, remaining, ..server(1, "/r1", true) };
        let state = |server: DataServer| facts(false, Vec::new()).state(&server);
        assert_eq!(state(heard(999_000, 1 << 30)), "live");
        assert_eq!(state(heard(999_000, 4_096)), "full");
        assert_eq!(state(heard(955_000, 1 << 30)), "stale 45 s");
        assert_eq!(state(DataServer { is_alive: false, ..heard(100_000, 0) }), "dead 15 min");
    }
}
