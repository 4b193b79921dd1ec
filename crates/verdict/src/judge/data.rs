//! Conditions of blocks and of data servers.

use super::{CAPACITY_LOW_PERCENT, CAPACITY_OUT_PERCENT, DISK_LOW_PERCENT, Found, members::left};
use crate::{
    Code, Data, DataServer, Group, Severity,
    words::{count, duration, list},
};

pub fn judge(group: &Group, data: &Data, found: &mut Found) {
    // Until the data servers have reported, nobody knows what is lost; safe mode is told instead.
    if group.safe_mode.is_none() {
        blocks(data, found);
    }
    presence(data, found);
    slowness(data, found);
    room(data, found);
}

fn blocks(data: &Data, found: &mut Found) {
    let blocks = &data.blocks;
    if blocks.missing > 0 {
        found.error(
            Code::BlocksMissing,
            format!(
                "{} lost: no data server that is there has a good replica.",
                count(blocks.missing, ("block", "is"), ("blocks", "are"))
            ),
            "Bring the dead data servers back; `clover admin list-corrupt-files` names the files.",
        );
    }
    if blocks.corrupt > 0 {
        found.warn(
            Code::BlocksCorrupt,
            Vec::new(),
            format!("{} a damaged replica.", count(blocks.corrupt, ("block", "has"), ("blocks", "have"))),
            "Good replicas replace damaged ones by themselves; look at the disks if it goes on: `clover fsck /` names the files.",
        );
    }
    let few = blocks.under_replicated.saturating_sub(blocks.missing);
    if few > 0 {
        found.warn(
            Code::BlocksUnderReplicated,
            Vec::new(),
            format!("{} too few replicas, or all of them on one rack.", count(few, ("block", "has"), ("blocks", "have"))),
            "They are copied by themselves: `clover admin report` shows the number fall. Files that want more replicas than there are data servers wait for more of these, or for a lower number: `clover fs -setrep`.",
        );
    }
    if blocks.are_deletions_held || blocks.servers_over_share > 0 {
        let why = match blocks.are_deletions_held {
            true => "after an unclean election".to_owned(),
            false => format!(
                "since {} more of them than may be deleted unseen",
                count(blocks.servers_over_share, ("data server", "has"), ("data servers", "have"))
            ),
        };
        found.warn(
            Code::DeletionsHeld,
            Vec::new(),
            format!(
                "{} kept {why}, though no file has a block of that number.",
                count(blocks.unknown_held, ("replica", "is"), ("replicas", "are"))
            ),
            format!(
                "`{}` shows them, asks, and lets them be deleted.",
                found.command("blocks", "allow-deletions")
            ),
        );
    }
}

fn addresses(servers: &[&DataServer]) -> Vec<String> {
    servers.iter().map(|server| server.address.clone()).collect()
}

fn presence(data: &Data, found: &mut Found) {
    if !data.servers.iter().any(|server| server.is_alive) {
        let known = data.servers.len() as u64;
        found.error(
            Code::NoDataServer,
            match known {
                0 => "No data server has registered: no file can be read or written.".to_owned(),
                _ => format!("None of {known} data servers is alive: no file can be read or written."),
            },
            "Start them: `clover data --config FILE` on each; their logs say why they do not reach the metadata servers.",
        );
    }
    let heard = |server: &DataServer| match server.silent_ms {
        Some(ms) => format!("{} (silent for {})", server.address, duration(ms)),
        None => server.address.clone(),
    };
    let dead: Vec<&DataServer> =
        data.servers.iter().filter(|server| !server.is_alive && !server.may_be_off).collect();
    if !dead.is_empty() {
        let told: Vec<String> = dead.iter().map(|server| heard(server)).collect();
        found.warn(
            Code::DataServerDead,
            addresses(&dead),
            format!(
                "{} of {} data servers {} dead: {}.",
                dead.len(),
                data.servers.len(),
                if dead.len() == 1 { "is" } else { "are" },
                list(&told)
            ),
            "Start them, or look at their machines; `clover admin report --dead` lists them.",
        );
    }
    let is_stale = |server: &&DataServer| {
        let limit = data.stale_after_ms.unwrap_or(u64::MAX);
        server.is_alive && server.silent_ms.is_some_and(|ms| ms > limit)
    };
    let stale: Vec<&DataServer> = data.servers.iter().filter(is_stale).collect();
    if !stale.is_empty() {
        let told: Vec<String> = stale.iter().map(|server| heard(server)).collect();
        found.warn(
            Code::DataServerStale,
            addresses(&stale),
            format!(
                "{} not been heard for a while: {}.",
                count(stale.len() as u64, ("data server", "has"), ("data servers", "have")),
                list(&told)
            ),
            "Look at their machines and the network; readers ask them last.",
        );
    }
    for contest in &data.contested {
        found.warn(
            Code::AddressContested,
            vec![contest.address.clone()],
            format!(
                "{} data servers take the address {} from each other: {}.",
                contest.uuids.len(),
                contest.address,
                list(&contest.uuids)
            ),
            "Give each an address and port of its own, or stop all but one.",
        );
    }
}

fn slowness(data: &Data, found: &mut Found) {
    let slow: Vec<&DataServer> = data.servers.iter().filter(|server| server.slow.is_some()).collect();
    if !slow.is_empty() {
        let told: Vec<String> = slow
            .iter()
            .filter_map(|server| {
                let slow = server.slow?;
                Some(format!(
                    "{} (a packet takes {:.1} ms, to most others {:.1} ms; reported by {})",
                    server.address, slow.latency_ms, slow.median_ms, slow.reporters
                ))
            })
            .collect();
        found.warn(
            Code::DataServerSlow,
            addresses(&slow),
            format!(
                "{} slow: {}.",
                count(slow.len() as u64, ("data server", "is"), ("data servers", "are")),
                list(&told)
            ),
            "Look at its network and its load; `clover admin report` says whether it is passed over.",
        );
    }
    let disks: Vec<String> = data
        .servers
        .iter()
        .flat_map(|server| {
            let told = |disk: &crate::SlowDisk| {
                format!("{} of {} ({:.1} ms)", disk.path, server.address, disk.latency_ms)
            };
            server.slow_disks.iter().map(told)
        })
        .collect();
    if !disks.is_empty() {
        let slow: Vec<&DataServer> =
            data.servers.iter().filter(|server| !server.slow_disks.is_empty()).collect();
        found.warn(
            Code::DiskSlow,
            addresses(&slow),
            format!(
                "{} slow: {}.",
                count(disks.len() as u64, ("disk", "is"), ("disks", "are")),
                list(&disks)
            ),
            "Look at the disk (`smartctl`, the kernel's log) and replace it if it fails.",
        );
    }
    let failed: Vec<&DataServer> =
        data.servers.iter().filter(|server| server.is_alive && server.failed_volumes > 0).collect();
    if !failed.is_empty() {
        let volumes: u64 = failed.iter().map(|server| u64::from(server.failed_volumes)).sum();
        let told: Vec<String> =
            failed.iter().map(|server| format!("{} of {}", server.failed_volumes, server.address)).collect();
        found.warn(
            Code::VolumeFailed,
            addresses(&failed),
            format!("{} out of use: {}.", count(volumes, ("volume", "is"), ("volumes", "are")), list(&told)),
            "Replace the disk and restart the data server; its /health names the directories.",
        );
    }
}

fn room(data: &Data, found: &mut Found) {
    let in_service = || data.servers.iter().filter(|server| server.is_alive && server.is_in_service);
    let full: Vec<(&DataServer, &crate::Disk)> = in_service()
        .filter_map(|server| Some((server, server.fullest.as_ref()?)))
        .filter(|(_, disk)| is_below(disk.remaining, disk.capacity, DISK_LOW_PERCENT))
        .collect();
    if !full.is_empty() {
        let told: Vec<String> = full
            .iter()
            .map(|(server, disk)| format!("{} with {}", server.address, left(disk.remaining, disk.capacity)))
            .collect();
        found.warn(
            Code::DiskNearlyFull,
            full.iter().map(|(server, _)| server.address.clone()).collect(),
            format!(
                "{} a volume that is nearly full: {}.",
                count(full.len() as u64, ("data server", "has"), ("data servers", "have")),
                list(&told)
            ),
            "`clover admin disk-balancer` evens the disks of a data server out, `clover balancer` the data servers.",
        );
    }
    let sum = |of: fn(&DataServer) -> u64| in_service().map(of).fold(0, u64::saturating_add);
    let (capacity, remaining) = (sum(|server| server.capacity), sum(|server| server.remaining));
    if is_below(remaining, capacity, CAPACITY_LOW_PERCENT) {
        let is_out = is_below(remaining, capacity, CAPACITY_OUT_PERCENT);
        found.say(
            Code::CapacityNearlyFull,
            if is_out { Severity::Error } else { Severity::Warning },
            Vec::new(),
            format!("{} are free on all data servers in service.", left(remaining, capacity)),
            "Delete files (and empty the trash), or add data servers or disks; `clover fs -du -h /` shows what is large.",
        );
    }
}

fn is_below(remaining: u64, capacity: u64, percent: u64) -> bool {
    capacity > 0 && u128::from(remaining) * 100 < u128::from(capacity) * u128::from(percent)
}
