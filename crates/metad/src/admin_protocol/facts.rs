//! The facts that a verdict on the cluster is made of, as this server knows them; and the verdict that follows from them alone.

use super::show;
use crate::core::Core;
use ::blocks::{AdminState, BlockMap, DataServer, ServerFilter, StorageReport};
use base::Moment;
use proto::clover::admin as p;
use std::sync::{Arc, atomic::Ordering};
use verdict::{Facts, Judged, judge, told};

/// The facts that this server knows by itself. It asks no other server.
pub fn of(core: &Core) -> p::GetFactsResponseProto {
    let partition = &core.partition;
    let now = partition.moment();
    let (stats, servers) = {
        let blocks = partition.blocks.lock();
        (blocks.stats(), with_fullest(&blocks))
    };
    let is_serving = partition.member.is_serving();
    p::GetFactsResponseProto {
        group: show::of_this_member(partition),
        blocks: Some(p::BlockFactsProto {
            missing: stats.missing,
            corrupt: stats.corrupt,
            under_replicated: stats.under_replicated,
            unknown_held: Some(stats.held.replicas),
            are_deletions_held: Some(stats.is_held_by_log),
            servers_over_share: Some(stats.servers_over_share),
        }),
        data_servers: data_servers(&servers, now),
        server: Some(p::ServerFactsProto {
            is_disk_full: Some(partition.condition.refuses_changes()),
            damaged_files: Some(partition.scrub.left.load(Ordering::Relaxed)),
            hanging_thread: core.threads.idle_helper(),
            fatal_requests: Some(core.fatal.numbers().0),
            flush_ms: partition.flushes_lately.mean_ms(&partition.member.flush_times(), now),
        }),
        hears_active: Some(is_serving || partition.member.status().hears_active),
        directory_log_trouble: partition.directories.show().trouble,
        clocks: if is_serving { core.clocks.told(partition.member.me().member, now) } else { Vec::new() },
    }
}

/// The verdict of this server: it knows of the others what it sees, and cannot know that nobody answers.
pub fn judged(core: &Core) -> Judged {
    let facts = of(core);
    let group = told::group(&[told::Answer { facts: &facts, clock: None }], &[]);
    judge(&Facts { unanswered: Vec::new(), groups: group.into_iter().collect() })
}

/// Each data server with its fullest storage. Nothing is formatted as long as the map is locked.
fn with_fullest(blocks: &BlockMap) -> Vec<(Arc<DataServer>, Option<StorageReport>)> {
    let servers = blocks.servers(ServerFilter::All).into_iter();
    servers
        .map(|server| {
            let storages = blocks.storages(server.uuid()).into_iter();
            let reports = storages.map(|storage| storage.report).filter(|report| report.capacity > 0);
            // The shares are compared as products, since a division would round.
            let fullest = reports.min_by(|one, other| {
                let product = |part: u64, whole: u64| u128::from(part) * u128::from(whole);
                product(one.remaining, other.capacity).cmp(&product(other.remaining, one.capacity))
            });
            (server, fullest)
        })
        .collect()
}

fn data_servers(
    servers: &[(Arc<DataServer>, Option<StorageReport>)],
    now: Moment,
) -> Vec<p::DataServerFactsProto> {
    let mut told: Vec<_> =
        servers.iter().map(|(server, fullest)| data_server(server, fullest.as_ref(), now)).collect();
    told.sort_by(|one, other| one.address.cmp(&other.address));
    told
}

fn data_server(server: &DataServer, fullest: Option<&StorageReport>, now: Moment) -> p::DataServerFactsProto {
    p::DataServerFactsProto {
        uuid: server.uuid().to_string(),
        address: server.registration.transfer_address(),
        http_address: Some(format!("{}:{}", server.registration.ip, server.registration.info_port)),
        host_name: Some(server.registration.host_name.to_string()),
        is_alive: server.alive,
        is_in_service: Some(server.admin_state.is_in_service()),
        may_be_off: Some(matches!(
            server.admin_state,
            AdminState::Decommissioned | AdminState::InMaintenance
        )),
        silent_ms: Some(now.ms_since(server.last_heartbeat)),
        capacity: Some(server.capacity),
        remaining: Some(server.remaining),
        failed_volumes: Some(server.failed_volumes),
        version: Some(server.registration.software_version.to_string()),
        fullest: fullest.map(|report| p::VolumeFactsProto {
            id: report.id.to_string(),
            capacity: report.capacity,
            remaining: report.remaining,
        }),
    }
}
