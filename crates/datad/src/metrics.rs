//! The content of `/health` and `/metrics`.

use crate::{metadata::progress::Progress, state::State};
use blockstore::scanner::figures::{Kind, ScanFigures};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::watch;
use web::{
    Health,
    prometheus_client::{
        collector::Collector,
        encoding::{DescriptorEncoder, EncodeMetric},
        metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
        registry::Registry,
    },
};

/// Everything is read when it is asked for; nothing is kept up to date in between.
struct Figures {
    state: Arc<State>,
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let state = &self.state;
        let (mut capacity, mut used, mut remaining) = (0, 0, 0);
        let reports = state.volumes.storage_reports();
        let now = state.env.clock.moment();
        for report in &reports {
            capacity += report.capacity_bytes;
            used += report.used_bytes;
            remaining += report.remaining_bytes;
        }
        let turns = state.volumes.turn_figures();
        if let Some(rpc) = state.rpc.get() {
            web::put_calls(&mut encoder, "clover_data_rpc", &rpc.calls.methods())?;
        }
        let gauges = [
            ("clover_data_pools", "Block pools that are served", state.pools().count() as u64),
            (
                "clover_data_pools_alone",
                "Of them, those of which no metadata server has this server",
                state.pools().filter(|pool| !pool.has_metadata_server()).count() as u64,
            ),
            ("clover_data_replicas", "Replicas of any state, of all pools", state.replica_count() as u64),
            ("clover_data_capacity_bytes", "Bytes of all volumes", capacity),
            ("clover_data_used_bytes", "Bytes of block and meta files", used),
            ("clover_data_remaining_bytes", "Bytes free for replicas", remaining),
            ("clover_data_failed_volumes", "Volumes out of use", state.volumes.failed_volumes().len() as u64),
            (
                "clover_data_slow_peers",
                "Data servers to which packets take much longer than to the others",
                state.slowness.slow_peers(now).len() as u64,
            ),
            (
                "clover_data_slow_disks",
                "Volumes on which operations take much longer than on the others",
                state.slowness.slow_disks(&reports, now).len() as u64,
            ),
            ("clover_data_transfers", "Transfer connections under way", state.transfer_count() as u64),
            ("clover_data_copies", "Copies to other servers under way", state.copy_count() as u64),
            (
                "clover_data_moves",
                "Replicas being sent or received for a balancer",
                state.moves.under_way() as u64,
            ),
            ("clover_data_moves_rate_bytes", "Bytes that balancers may move in a second", state.moves.rate()),
            (
                "clover_data_turns_queued_bytes",
                "Bytes of writes that disks have not taken",
                turns.queued_bytes,
            ),
            ("clover_data_turns_refused", "Writes that wait for room in the queue of a disk", turns.refused),
            (
                "clover_data_short_circuit_segments",
                "Segments of shared memory that clients of this machine have",
                state.short_circuit.segment_count() as u64,
            ),
            (
                "clover_data_short_circuit_slots",
                "Of their slots, those in use",
                state.short_circuit.slot_count() as u64,
            ),
            (
                "clover_descriptors_limit",
                "File descriptors that this process may have",
                state.env.descriptors.limit() as u64,
            ),
            (
                "clover_descriptors_kept_back",
                "Of them, those that connections of clients never take",
                state.env.descriptors.kept_back() as u64,
            ),
            (
                "clover_descriptors_taken",
                "File descriptors that connections of clients have taken",
                state.env.descriptors.taken() as u64,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value as i64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in [
            ("clover_data_turns", "Turns that streams had on disks", turns.turns),
            (
                "clover_data_turns_written_bytes",
                "Bytes that were written out in turns",
                turns.written_out_bytes,
            ),
        ] {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let (counters, moves, local) = (&state.counters, &state.moves, &state.short_circuit.figures);
        let counters = [
            ("clover_data_written_bytes", "Bytes received for replicas", &counters.bytes_written),
            ("clover_data_read_bytes", "Bytes sent to readers", &counters.bytes_read),
            ("clover_data_blocks_written", "Replicas completed", &counters.blocks_written),
            ("clover_data_blocks_read", "Reads of blocks", &counters.blocks_read),
            ("clover_data_transfer_errors", "Transfers that failed", &counters.transfer_errors),
            ("clover_data_moves_received", "Replicas moved here for a balancer", &moves.received),
            ("clover_data_moves_received_bytes", "Bytes of these replicas", &moves.received_bytes),
            ("clover_data_moves_sent", "Replicas sent to be moved elsewhere", &moves.sent),
            ("clover_data_moves_shifted", "Replicas moved from one volume to another", &moves.shifted),
            ("clover_data_moves_failed", "Moves to this server that failed", &moves.failed),
            (
                "clover_data_short_circuit_grants",
                "Replicas whose open files were handed to a client of this machine",
                &local.granted,
            ),
            (
                "clover_data_short_circuit_refusals",
                "Requests for open files that were refused",
                &local.refused,
            ),
            (
                "clover_data_short_circuit_invalidations",
                "Clients' slots that were marked because their replica went or changed",
                &local.invalidated,
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let operations: Vec<_> = state.counters.operation_figures().collect();
        let sets = operations.iter().map(|(name, figures)| (vec![("operation", *name)], figures));
        let help = "How long operations of the transfer port took; a write as long as its client was writing";
        web::put_times(&mut encoder, ("clover_data_operation_seconds", help), sets)?;
        if let Some(scanners) = state.scanners.get() {
            encode_scans(scanners.figures(), &mut encoder)?;
        }
        let counter = ConstCounter::new(state.env.descriptors.refused());
        let (name, help) =
            ("clover_connections_refused", "Connections closed at once for want of a file descriptor");
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        web::put_process(&mut encoder, env!("CARGO_PKG_VERSION"))
    }
}

/// What the scanners have done.
fn encode_scans(figures: &ScanFigures, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let counters = [
        ("clover_data_scanned_blocks", "Replicas that the block scanner has looked at", &figures.blocks),
        ("clover_data_scanned_bytes", "Bytes that it has read", &figures.bytes),
        (
            "clover_data_scanned_suspects",
            "Of the replicas, those that somebody could not read",
            &figures.suspects,
        ),
        ("clover_data_scan_damaged", "Replicas that it has found damaged", &figures.damaged),
        ("clover_data_scan_rounds", "Rounds that it has completed", &figures.rounds),
        ("clover_data_directory_scans", "Volumes whose directories were compared", &figures.directory_scans),
    ];
    for (name, help, value) in counters {
        let counter = ConstCounter::new(value.load(Ordering::Relaxed));
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    let lengths = [
        ("clover_data_scan_round_seconds", "How long the last round took", &figures.last_round_ms),
        (
            "clover_data_directory_scan_seconds",
            "How long the last comparison of directories took",
            &figures.last_directory_scan_ms,
        ),
    ];
    for (name, help, value) in lengths {
        let gauge = ConstGauge::new(value.load(Ordering::Relaxed) as f64 / 1e3);
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    let help = "Differences between directories and memory";
    let mut family =
        encoder.encode_descriptor("clover_data_directory_differences", help, None, MetricType::Counter)?;
    for kind in Kind::ALL {
        let counter = ConstCounter::new(figures.differences(kind));
        counter.encode(family.encode_family(&[("kind", kind.name())])?)?;
    }
    Ok(())
}

pub fn registry(state: &Arc<State>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Figures { state: state.clone() }));
    registry
}

/// A volume with fewer free bytes is full: no block of the usual smallest size fits.
pub const FULL_BELOW_BYTES: u64 = 1 << 20;

/// Well while at least one metadata server has this one and at least one volume is left. A pool of which no metadata
/// server has this one is told, but does not make this server unwell: a restart would not help that pool, and would end
/// the transfers of the others. A metadata server that has not answered since the start counts for no pool: nobody knows
/// yet which pool is its.
pub fn health(state: &State, progress: &[watch::Receiver<Progress>]) -> Health {
    let serving = progress.iter().filter(|seen| *seen.borrow() == Progress::Serving).count();
    let (attended, alone): (Vec<_>, Vec<_>) = state.pools().partition(|pool| pool.has_metadata_server());
    let pool_count = attended.len() + alone.len();
    let failed = state.volumes.failed_volumes();
    let has_volume = state.volumes.has_living_volume();
    let mut details = BTreeMap::from([
        ("uuid".to_owned(), state.identity.uuid.to_string()),
        ("replicas".to_owned(), state.replica_count().to_string()),
        ("metadata_servers".to_owned(), format!("{serving} of {}", progress.len())),
        ("pools".to_owned(), format!("{} of {pool_count}", attended.len())),
    ]);
    if !alone.is_empty() {
        details.insert(
            "pools_alone".to_owned(),
            alone.iter().map(|pool| &*pool.id).collect::<Vec<_>>().join(", "),
        );
    }
    if !failed.is_empty() {
        details.insert("failed_volumes".to_owned(), failed.join(", "));
    }
    for (number, seen) in progress.iter().enumerate() {
        if let Progress::Refused(reason) = &*seen.borrow() {
            let address = &state.config.metadata_servers[number];
            details.insert(format!("refused_by_{address}"), reason.clone());
        }
    }
    let full = state
        .volumes
        .storage_reports()
        .iter()
        .filter(|report| report.remaining_bytes < FULL_BELOW_BYTES)
        .count();
    if full > 0 {
        details.insert("full_volumes".to_owned(), full.to_string());
    }
    let state = match (serving > 0, has_volume) {
        (_, false) => "no volume left",
        (false, true) => "registering",
        (true, true) if !alone.is_empty() => "serving in part",
        (true, true) => "serving",
    };
    Health { ok: serving > 0 && has_volume, state: state.into(), details, ..Health::default() }
}
