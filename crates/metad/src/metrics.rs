//! `/health` and `/metrics` of a metadata server: numbers looked up when they are asked for.

mod groups;
mod measured;

use crate::{admin_protocol, core::Core, doors::Doors, ended::Ended, forward, partition::Partition};
use ::blocks::Stats;
use base::Level;
use group::{Role, Status};
use serving::admission;
use std::{
    io,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use web::{
    FurtherFacts, Health, Web,
    prometheus_client::{
        collector::Collector,
        encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric},
        metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
        registry::Registry,
    },
};

pub fn serve(core: &Arc<Core>, listener: TcpListener) -> io::Result<Web> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Numbers { core: core.clone() }));
    let asked = core.clone();
    let mut pages = core.config.pages.clone();
    crate::pages::put(core, &mut pages);
    Web::serve(listener, Arc::new(registry), Arc::new(move || health(&asked)), pages)
}

/// A member that follows is as healthy as the one that leads; the state says which it is.
pub(crate) fn health(core: &Arc<Core>) -> Health {
    let partition = &core.partition;
    let threads = core.threads.verdict(core.moment());
    if let Err(reason) = threads {
        // Without a look at anything else: a thread that hangs may hold its lock.
        let details = [("role", "metadata".to_owned()), ("threads", reason.clone()), ("reason", reason)];
        let details = details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        return Health { ok: false, state: "failed".to_owned(), details, ..Health::default() };
    }
    let stats = partition.blocks.lock().stats();
    let safe_mode = admin_protocol::show::safe_mode(partition);
    let status = partition.member.status();
    let is_removed = partition.condition.is_removed();
    let failure = match (&*partition.member.ended().borrow(), &status.role) {
        (Some(Ended::Failed(reason)), _) => Some(reason.clone()),
        (_, Role::Stopped { reason }) => Some(reason.clone()),
        _ if is_removed => Some(admission::removed(partition.member.me().member)),
        _ => partition.commit.failure(),
    };
    let state = match &status.role {
        _ if is_removed => "removed",
        _ if failure.is_some() => "failed",
        Role::Serving { .. } if safe_mode.is_some() => "safe mode",
        Role::Serving { .. } if !status.is_writable => "active, takes no changes",
        Role::Serving { .. } if partition.condition.refuses_changes() => "active, takes no changes",
        Role::Reading { .. } => "active, answers what is certain",
        Role::Serving { .. } => "active",
        Role::Claiming | Role::Starting { .. } => "taking over",
        Role::HandingOver { .. } => "handing over",
        Role::Following if status.is_eligible => "standby",
        Role::Following | Role::Stopped { .. } => "junior",
    };
    let (free_bytes, _) = partition.condition.disk();
    let mut details = std::collections::BTreeMap::from([
        ("role".to_owned(), "metadata".to_owned()),
        ("threads".to_owned(), core.threads.idle_helper().unwrap_or_else(|| "sound".to_owned())),
        ("member".to_owned(), partition.member.me().member.to_string()),
        ("cluster".to_owned(), core.cluster.cluster_id.clone()),
        ("epoch".to_owned(), partition.member.standing().epoch.to_string()),
        ("committed_sn".to_owned(), partition.commit.committed().to_string()),
        ("live_data_servers".to_owned(), stats.live_servers.to_string()),
        ("disk_free_bytes".to_owned(), free_bytes.to_string()),
    ]);
    let (fatal, _) = core.fatal.numbers();
    if fatal > 0 {
        details.insert("fatal_requests".to_owned(), fatal.to_string());
    }
    if let Some(active) = status.active.filter(|_| status.hears_active) {
        details.insert("active".to_owned(), active.to_string());
    }
    // This is no failure of this member, and does no harm until another one fails.
    if let Some(away_ms) = partition.member.coordinator_away_ms() {
        details.insert("coordinator_out_of_reach_ms".to_owned(), away_ms.to_string());
    }
    let not_ready = not_ready(partition, &status, safe_mode.as_deref());
    if let Some(safe_mode) = safe_mode {
        details.insert("safe_mode".to_owned(), safe_mode);
    }
    let warnings = warnings(partition, &stats);
    if !warnings.is_empty() {
        details.insert("warnings".to_owned(), warnings.join("; "));
    }
    // The trouble that a person should look into, as `clover admin group` tells it.
    if let Some(trouble) = status.trouble {
        details.insert("trouble".to_owned(), trouble);
    }
    if let Some(reason) = &failure {
        details.insert("reason".to_owned(), reason.clone());
    }
    let asked = core.clone();
    let judged = move || serde_json::to_value(admin_protocol::facts::judged(&asked)).unwrap_or_default();
    let cluster = Some(FurtherFacts(Arc::new(judged)));
    Health { ok: failure.is_none(), state: state.to_owned(), details, not_ready, cluster }
}

/// Why a change that a client sends here would not be carried out now.
fn not_ready(partition: &Partition, status: &Status, safe_mode: Option<&str>) -> Option<String> {
    match &status.role {
        Role::Serving { .. } | Role::Reading { .. } if !status.is_writable => {
            let (in_sync, needed) = status
                .view
                .as_ref()
                .map_or((0, 0), |(view, _)| (view.in_sync.len(), view.in_sync_min as usize));
            Some(format!("changes are refused: {in_sync} members are in sync, and a change needs {needed}"))
        }
        Role::Serving { .. } => match partition.condition.full_disk() {
            Some(free_bytes) => Some(admission::disk_full(free_bytes)),
            None => safe_mode.map(|why| format!("safe mode is on: {why}")),
        },
        Role::Reading { .. } | Role::Claiming | Role::Starting { .. } | Role::HandingOver { .. } => {
            Some("nobody serves: the group is between two actives".into())
        }
        Role::Following if !status.hears_active => Some(match partition.member.coordinator_away_ms() {
            Some(_) => "nobody serves, and the coordinator is out of reach: nobody can take over".into(),
            None => "nobody serves: no active is heard of".into(),
        }),
        Role::Following => None,
        Role::Stopped { reason } => Some(reason.clone()),
    }
}

/// Sentences about trouble that a person should look into, although this server serves.
fn warnings(partition: &Partition, stats: &Stats) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            warnings.push(format!("{count} {what}"));
        }
    };
    say(stats.missing, "blocks are lost: no replica of them is known");
    say(stats.corrupt, "blocks have damaged replicas only");
    say(stats.dead_servers, "data servers are dead");
    say(stats.stale_servers, "data servers are stale: silent for a while");
    say(stats.decommission_in_progress, "data servers are being decommissioned");
    say(stats.entering_maintenance, "data servers are entering maintenance");
    if stats.live_servers == 0 {
        warnings.push("no data server is there: no file can be read or written".into());
    }
    let (free_bytes, is_low) = partition.condition.disk();
    if is_low {
        warnings.push(format!("the disk of the metadata store has {} MiB free", free_bytes >> 20));
    }
    warnings
}

struct Numbers {
    core: Arc<Core>,
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let older = &self.core.partition.older_answers;
        let (counts, memory, retry_window_ms, waiting_for_policies) = {
            let tree = self.core.partition.tree();
            let ns = &tree.namespace;
            (ns.counts(), ns.memory(), older.window_ms(ns), ns.waiting_for_policies() as u64)
        };
        let (stats, safe_mode, block_map_bytes) = {
            let blocks = self.core.partition.blocks.lock();
            (blocks.stats(), blocks.in_safe_mode(), blocks.bytes_allocated())
        };
        let namespace_bytes = memory.inodes
            + memory.names
            + memory.children
            + memory.blocks
            + memory.index
            + memory.attributes
            + memory.leases;
        let gauges: [Line; 36] = [
            ("clover_files", "Files in the namespace", counts.files),
            ("clover_directories", "Directories in the namespace", counts.directories),
            ("clover_blocks", "Blocks in the namespace", counts.blocks),
            ("clover_files_under_construction", "Files open for writing", counts.files_under_construction),
            (
                "clover_retry_cache_entries",
                "Calls remembered for clients that repeat them",
                counts.retry_entries,
            ),
            ("clover_namespace_bytes", "Memory of the namespace", namespace_bytes as u64),
            (
                "clover_retry_cache_bytes",
                "Memory of the retry cache, with the index of older calls",
                (memory.retry_cache + older.bytes()) as u64,
            ),
            (
                "clover_retry_cache_window_seconds",
                "For how long a call is remembered; 600 is what is wanted",
                retry_window_ms / 1_000,
            ),
            (
                "clover_retry_cache_indexed_entries",
                "Entries of the journal among which older calls are found; 0 while the retry cache suffices",
                older.span(),
            ),
            ("clover_block_map_bytes", "Memory of the block map", block_map_bytes as u64),
            ("clover_safe_mode", "1 while nothing may be changed", safe_mode.into()),
            ("clover_data_servers_live", "Data servers that answer", stats.live_servers),
            ("clover_data_servers_dead", "Data servers that do not", stats.dead_servers),
            ("clover_data_servers_stale", "Data servers that are silent for a while", stats.stale_servers),
            (
                "clover_data_servers_slow",
                "Data servers that others have reported as slow",
                stats.slow_servers,
            ),
            (
                "clover_data_servers_avoided",
                "Slow data servers that may be kept out of new pipelines and read from last",
                stats.avoided_servers,
            ),
            ("clover_disks_slow", "Disks that their data servers have reported as slow", stats.slow_disks),
            (
                "clover_data_servers_leaving",
                "Data servers that are to leave service, and that blocks may need yet",
                stats.decommission_in_progress + stats.entering_maintenance,
            ),
            (
                "clover_data_servers_decommissioned",
                "Data servers that no block needs any more, whether they are on or off",
                stats.decommissioned_live + stats.decommissioned_dead,
            ),
            (
                "clover_data_servers_in_maintenance",
                "Data servers that may be off for a while, whether they are on or off",
                stats.in_maintenance_live + stats.in_maintenance_dead,
            ),
            (
                "clover_blocks_in_need",
                "Blocks that need data servers which are to leave service",
                stats.blocks_in_need,
            ),
            ("clover_capacity_bytes", "Capacity of the data servers in service", stats.capacity),
            ("clover_used_bytes", "Bytes used by blocks", stats.dfs_used),
            ("clover_remaining_bytes", "Bytes free for blocks", stats.remaining),
            (
                "clover_blocks_under_replicated",
                "Blocks with too few replicas, or with all of them on one rack",
                stats.under_replicated,
            ),
            (
                "clover_blocks_misplaced",
                "Blocks with enough replicas, all of them on one rack though there are others",
                stats.misplaced,
            ),
            ("clover_blocks_corrupt", "Blocks with a damaged replica", stats.corrupt),
            ("clover_blocks_missing", "Blocks without a good replica on a live data server", stats.missing),
            (
                "clover_deletions_held",
                "1 while no unknown replica is deleted because of an unclean election",
                stats.is_held_by_log.into(),
            ),
            (
                "clover_unknown_replicas_held",
                "Replicas that no file has and whose deletion is held back",
                stats.held.replicas,
            ),
            ("clover_unknown_bytes_held", "Bytes of those replicas", stats.held.bytes),
            (
                "clover_data_servers_over_share",
                "Data servers with more unknown replicas than may be deleted unseen",
                stats.servers_over_share,
            ),
            (
                "clover_skipped_replicas",
                "Replicas of blocks that lost changes made, which are never deleted",
                stats.skipped.replicas,
            ),
            ("clover_transfers_pending", "Copies under way between data servers", stats.pending_transfers),
            (
                "clover_policies_to_satisfy",
                "Files and directories whose replicas are to be moved to the media of their storage policies",
                waiting_for_policies,
            ),
            (
                "clover_blocks_to_satisfy",
                "Blocks of them that are being looked at or moved now",
                stats.unsatisfied,
            ),
        ];
        self::gauges(&mut encoder, &gauges)?;
        start_shares(&mut encoder, 1.0, 1.0)?;
        counters(
            &mut encoder,
            &[
                (
                    "clover_retry_cache_journal_reads",
                    "Calls that were looked for in the journal, since they may be repeated ones",
                    older.looked_up(),
                ),
                (
                    "clover_policy_blocks_satisfied",
                    "Blocks that were asked for and are on the media of their policies, or are gone",
                    stats.satisfied.done,
                ),
                (
                    "clover_policy_blocks_given_up",
                    "Blocks that were asked for and could not be moved",
                    stats.satisfied.given_up,
                ),
                (
                    "clover_policy_moves",
                    "Moves that were ordered for storage policies",
                    stats.satisfied.orders,
                ),
                ("clover_retry_cache_journal_answers", "Of them, those that were", older.answered()),
            ],
        )?;
        self.encode_group(&mut encoder)?;
        self.encode_groups(&mut encoder)?;
        self.encode_calls(&mut encoder)?;
        self.encode_load(&mut encoder)?;
        self.encode_conditions(&mut encoder)?;
        measured::put(&self.core, &mut encoder)?;
        web::put_process(&mut encoder, env!("CARGO_PKG_VERSION"))
    }
}

type Line = (&'static str, &'static str, u64);

fn gauges(encoder: &mut DescriptorEncoder<'_>, lines: &[Line]) -> Result<(), std::fmt::Error> {
    lines.iter().try_for_each(|(name, help, value)| gauge(encoder, name, help, *value))
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl EncodeGaugeValue,
) -> Result<(), std::fmt::Error> {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

/// The shares of image and journal that a start has read, from 0 to 1.
pub(crate) fn start_shares(
    encoder: &mut DescriptorEncoder<'_>,
    image: f64,
    journal: f64,
) -> Result<(), std::fmt::Error> {
    gauge(
        encoder,
        "clover_start_image_ratio",
        "Share of the image that this server's start has read",
        image,
    )?;
    gauge(
        encoder,
        "clover_start_journal_ratio",
        "Share of the journal behind it that the start has applied",
        journal,
    )
}

fn counters(encoder: &mut DescriptorEncoder<'_>, lines: &[Line]) -> Result<(), std::fmt::Error> {
    for (name, help, value) in lines {
        let counter = ConstCounter::new(*value);
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    Ok(())
}

/// One number for each of several, told apart by a label.
fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, label): (&str, &str, &str),
    values: impl IntoIterator<Item = (String, impl EncodeGaugeValue)>,
) -> Result<(), std::fmt::Error> {
    let mut values = values.into_iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (which, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&[(label, which.as_str())])?)?;
    }
    Ok(())
}

impl Numbers {
    /// This member's place in its group, and how the others are from here.
    fn encode_group(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let core = &self.core;
        let partition = &core.partition;
        partition.chronicle.look(&partition.member, core.env.clock.timestamp());
        let status = partition.member.status();
        let in_sync = status.view.as_ref().map_or(0, |(view, _)| view.in_sync.len());
        let level = partition.tree().namespace.group_level().clone();
        let (fatal, fatal_refused) = core.fatal.numbers();
        let (takeovers, count) = (partition.chronicle.takeovers(), partition.chronicle.takeover_count());
        gauges(
            encoder,
            &[
                ("clover_epoch", "Highest epoch seen", partition.member.standing().epoch.0),
                ("clover_active", "1 while this member serves", partition.member.is_serving().into()),
                ("clover_in_sync", "1 while changes wait for this member's log", status.is_in_sync.into()),
                ("clover_eligible", "1 while this member is complete", status.is_eligible.into()),
                ("clover_members_in_sync", "Members in the in-sync set", in_sync as u64),
                (
                    "clover_writable",
                    "1 while enough members are in sync for changes",
                    status.is_writable.into(),
                ),
                (
                    "clover_coordinator_out_of_reach",
                    "1 while the coordinator does not answer: nobody can take over",
                    partition.member.coordinator_away_ms().is_some().into(),
                ),
                (
                    "clover_helper_threads_hang",
                    "1 while a thread hangs that this member's place in its group does not rest on",
                    core.threads.idle_helper().is_some().into(),
                ),
                (
                    "clover_disk_free_bytes",
                    "Bytes free on the disk of the metadata store",
                    partition.condition.disk().0,
                ),
                (
                    "clover_disk_refuses_changes",
                    "1 while changes are refused because that disk is full",
                    partition.condition.refuses_changes().into(),
                ),
                (
                    "clover_removed",
                    "1 when the group goes on without this member",
                    partition.condition.is_removed().into(),
                ),
                ("clover_level", "The level of the formats that the group is at", level.level.0.into()),
                (
                    "clover_newest_level",
                    "The highest level that this release knows; above clover_level, an upgrade is not final",
                    Level::NEWEST.0.into(),
                ),
                ("clover_log_end_sn", "Last entry of this member's log", status.end.id.sn.0),
                (
                    "clover_fatal_requests",
                    "Requests that are refused because they have ended a server",
                    fatal,
                ),
            ],
        )?;
        gauge(
            encoder,
            "clover_thread_standstill_seconds",
            "How long the slowest of the threads that are watched has completed nothing",
            seconds(core.threads.stands_ms()),
        )?;
        counters(
            encoder,
            &[
                (
                    "clover_committed_edits",
                    "Entries of the log that have committed",
                    partition.commit.committed().0,
                ),
                (
                    "clover_fatal_requests_refused",
                    "Times that a request was refused here because it has ended a server",
                    fatal_refused,
                ),
                ("clover_takeovers", "Takeovers by this member since its start", count),
                (
                    "clover_unclean_elections",
                    "Elections that may have lost acknowledged changes, noted by this member",
                    partition.chronicle.unclean_elections(),
                ),
            ],
        )?;
        let scrub = |of: &AtomicU64| of.load(Ordering::Relaxed);
        counters(
            encoder,
            &[
                (
                    "clover_scrub_passes",
                    "Times that the whole store was looked at again",
                    scrub(&partition.scrub.passes),
                ),
                ("clover_scrub_bytes", "Bytes of the store looked at again", scrub(&partition.scrub.bytes)),
                ("clover_scrub_rotten", "Files of the store found rotten", scrub(&partition.scrub.rotten)),
                (
                    "clover_scrub_mended",
                    "Of them, mended with another member's copy",
                    scrub(&partition.scrub.mended),
                ),
            ],
        )?;
        let left = scrub(&partition.scrub.left);
        gauges(encoder, &[("clover_scrub_left", "Rotten files that the last pass could not mend", left)])?;
        let lags = status.peers.iter().filter_map(|peer| {
            let lag = status.committed.0.saturating_sub(peer.end?.id.sn.0);
            Some((peer.member.to_string(), lag))
        });
        let lag = ("clover_peer_lag_entries", "Committed entries that a member lacks, as the active sees it");
        labelled(encoder, (lag.0, lag.1, "member"), lags)?;
        let silences = status
            .peers
            .iter()
            .filter_map(|peer| Some((peer.member.to_string(), seconds(peer.heard_ms_ago?))));
        labelled(
            encoder,
            ("clover_peer_silence_seconds", "Since a member was last heard", "member"),
            silences,
        )?;
        let stages = takeovers.last().map(|last| {
            [
                ("detect", last.detect_ms),
                ("claim", last.claim_ms),
                ("promise", last.promise_ms),
                ("fence", last.fence_ms),
                ("adopt", last.adopt_ms),
                ("sync", last.sync_ms),
            ]
        });
        labelled(
            encoder,
            ("clover_last_takeover_seconds", "When each stage of the last takeover was over", "stage"),
            stages.into_iter().flatten().map(|(stage, ms)| (stage.to_owned(), seconds(ms))),
        )?;
        if let Some(peers) = partition.member.peer_counters() {
            let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            counters(
                encoder,
                &[
                    (
                        "clover_peers_refused",
                        "Connections of strangers to the members' port",
                        number(&peers.refused),
                    ),
                    (
                        "clover_peers_forged",
                        "Frames and messages that no member sends; each ended a connection",
                        number(&peers.malformed),
                    ),
                    (
                        "clover_peers_unknown_messages",
                        "Messages of a later release's kinds, passed over",
                        number(&peers.unknown),
                    ),
                    (
                        "clover_peers_received_bytes",
                        "Bytes of messages from other members, images apart",
                        number(&peers.received_bytes),
                    ),
                ],
            )?;
        }
        Ok(())
    }

    /// The conditions of the cluster, each with 1 while it holds and 0 otherwise, so that an alert on it can end.
    fn encode_conditions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let judged = admin_protocol::facts::judged(&self.core);
        let help = "1 while a condition of the cluster holds, as this member sees it";
        let mut family = encoder.encode_descriptor("clover_condition", help, None, MetricType::Gauge)?;
        for code in verdict::Code::ALL {
            for severity in code.severities() {
                let holds = ConstGauge::new(i64::from(judged.has(*code, *severity)));
                let labels = [("code", code.as_str()), ("severity", severity.as_str())];
                holds.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// The file descriptors and memory that connections take of this process.
    fn encode_load(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let descriptors = &self.core.env.descriptors;
        let load = self.core.load.get();
        let of = |number: fn(&rpc::Load) -> usize| load.map_or(0, number) as u64;
        gauges(
            encoder,
            &[
                ("clover_connections", "Connections to the RPC port", of(rpc::Load::connections)),
                (
                    "clover_walks",
                    "Looks at large directories that go on in slices",
                    self.core.walks.waiting() as u64,
                ),
                (
                    "clover_requests_bytes",
                    "Bytes of requests that are read or being answered",
                    of(rpc::Load::request_bytes),
                ),
                (
                    "clover_replies_unread_bytes",
                    "Bytes of replies that clients have not read yet",
                    of(rpc::Load::unread_bytes),
                ),
                (
                    "clover_descriptors_limit",
                    "File descriptors that this process may have",
                    descriptors.limit() as u64,
                ),
                (
                    "clover_descriptors_kept_back",
                    "Of them, those that connections of clients never take",
                    descriptors.kept_back() as u64,
                ),
                (
                    "clover_descriptors_taken",
                    "File descriptors that connections of clients have taken",
                    descriptors.taken() as u64,
                ),
            ],
        )?;
        counters(
            encoder,
            &[
                (
                    "clover_connections_refused",
                    "Connections closed at once for want of a file descriptor",
                    descriptors.refused(),
                ),
                ("clover_walk_slices", "Slices of large directories looked at", self.core.walks.slices()),
            ],
        )
    }

    /// Calls that were not simply answered here.
    fn encode_calls(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let calls = self.core.partition.forwarder.numbers();
        let calls = self.core.doors.iter().map(Doors::numbers).fold(calls, forward::Numbers::and);
        let answers = self.core.partition.leading.numbers();
        let reads = self.core.partition.standby_reads.numbers();
        gauges(
            encoder,
            &[
                ("clover_calls_held", "Calls that wait for an active", calls.held),
                ("clover_calls_pending", "Calls that wait or are under way at another member", calls.pending),
                ("clover_calls_pending_bytes", "Bytes of their requests", calls.pending_bytes),
                ("clover_answers_waiting", "Answers that wait for the lease", answers.waiting),
            ],
        )?;
        counters(
            encoder,
            &[
                ("clover_calls_forwarded", "Calls answered by another member", calls.forwarded),
                ("clover_standby_reads", "Reads answered here while another member led", reads.answered),
                (
                    "clover_standby_reads_handed_on",
                    "Such reads that the active had to answer",
                    reads.handed_on,
                ),
                (
                    "clover_read_points",
                    "Questions to the active how far its log has committed",
                    reads.questions,
                ),
                ("clover_calls_repeated", "Calls sent again, their fate unknown", calls.repeated),
                ("clover_calls_released", "Calls held and then answered here", calls.released),
                ("clover_calls_refused", "Calls refused for want of an active or of room", calls.refused),
                ("clover_calls_dropped", "Calls not sent on, since their client had left", calls.dropped),
                ("clover_lease_waits", "Answers that had to wait for the lease", answers.waits),
                ("clover_confirmations", "Times the coordinator was asked instead", answers.confirmations),
            ],
        )
    }
}
