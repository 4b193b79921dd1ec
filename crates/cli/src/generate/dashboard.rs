//! A dashboard for Grafana.

use serde_json::{Value, json};

/// A row of the dashboard: its title and its panels.
type Row = (&'static str, &'static [Panel]);

struct Panel {
    title: &'static str,
    /// Grafana's name of the unit: `short`, `bytes`, `Bps`, `s`, `ops`, `percentunit`.
    unit: &'static str,
    /// Queries, each with what its lines are called.
    queries: &'static [(&'static str, &'static str)],
}

const fn panel(
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, unit, queries }
}

const ROWS: &[Row] = &[
    (
        "Is it well",
        &[
            panel(
                "Conditions, as the active sees them",
                "short",
                &[(
                    "max by (code, severity) (clover_condition * on (instance) group_left () clover_active) > 0",
                    "{{severity}} {{code}}",
                )],
            ),
            panel("Active", "short", &[("clover_active", "{{instance}}")]),
            panel(
                "Servers that answer Prometheus",
                "short",
                &[("sum by (job) (up{job=~\"clover-.*\"})", "{{job}}")],
            ),
            panel(
                "Members in sync",
                "short",
                &[
                    ("clover_members_in_sync", "{{instance}}"),
                    ("clover_takeovers_total", "takeovers of {{instance}}"),
                ],
            ),
        ],
    ),
    (
        "Namespace and calls",
        &[
            panel(
                "Files and directories",
                "short",
                &[
                    ("max(clover_active * clover_files)", "files"),
                    ("max(clover_active * clover_directories)", "directories"),
                    ("max(clover_active * clover_blocks)", "blocks"),
                ],
            ),
            panel(
                "Calls by method",
                "ops",
                &[(
                    "topk(10, sum by (method) (rate(clover_rpc_call_seconds_count{stage=\"total\"}[1m])))",
                    "{{method}}",
                )],
            ),
            panel(
                "Slowest hundredth of calls",
                "s",
                &[(
                    "histogram_quantile(0.99, sum by (le, method) (rate(clover_rpc_call_seconds_bucket{stage=\"total\"}[5m])))",
                    "{{method}}",
                )],
            ),
            panel("Changes committed", "ops", &[("rate(clover_committed_edits_total[1m])", "{{instance}}")]),
            panel(
                "A flush of the journal, in the mean",
                "s",
                &[(
                    "rate(clover_journal_flush_seconds_sum[1m]) / rate(clover_journal_flush_seconds_count[1m])",
                    "{{instance}}",
                )],
            ),
            panel(
                "Entries that members lack",
                "short",
                &[("clover_peer_lag_entries", "member {{member}}, seen by {{instance}}")],
            ),
            panel(
                "Memory of the namespace and the block map",
                "bytes",
                &[
                    ("clover_namespace_bytes", "namespace of {{instance}}"),
                    ("clover_block_map_bytes", "block map of {{instance}}"),
                ],
            ),
            panel(
                "Busiest users",
                "short",
                &[("topk(10, clover_rpc_user_calls{window_seconds=\"60\"})", "{{user}} {{method}}")],
            ),
        ],
    ),
    (
        "Blocks and data servers",
        &[
            panel(
                "Blocks that want something",
                "short",
                &[
                    ("max(clover_active * clover_blocks_missing)", "missing"),
                    ("max(clover_active * clover_blocks_corrupt)", "corrupt"),
                    ("max(clover_active * clover_blocks_under_replicated)", "under-replicated"),
                    ("max(clover_active * clover_transfers_pending)", "copies under way"),
                ],
            ),
            panel(
                "Data servers",
                "short",
                &[
                    ("max(clover_active * clover_data_servers_live)", "live"),
                    ("max(clover_active * clover_data_servers_stale)", "stale"),
                    ("max(clover_active * clover_data_servers_dead)", "dead"),
                    ("max(clover_active * clover_data_servers_slow)", "slow"),
                ],
            ),
            panel(
                "Room",
                "bytes",
                &[
                    ("max(clover_active * clover_capacity_bytes)", "capacity"),
                    ("max(clover_active * clover_used_bytes)", "used"),
                    ("max(clover_active * clover_remaining_bytes)", "remaining"),
                ],
            ),
            panel(
                "Written and read",
                "Bps",
                &[
                    ("sum(rate(clover_data_written_bytes_total[1m]))", "written"),
                    ("sum(rate(clover_data_read_bytes_total[1m]))", "read"),
                ],
            ),
            panel(
                "Room left by data server",
                "percentunit",
                &[("clover_data_remaining_bytes / clover_data_capacity_bytes", "{{instance}}")],
            ),
            panel("Transfers", "short", &[("clover_data_transfers", "{{instance}}")]),
            panel(
                "Slow disks, failed volumes",
                "short",
                &[
                    ("clover_data_slow_disks", "slow disks of {{instance}}"),
                    ("clover_data_failed_volumes", "failed volumes of {{instance}}"),
                ],
            ),
            panel(
                "Writes that the disks have not taken",
                "bytes",
                &[("clover_data_turns_queued_bytes", "{{instance}}")],
            ),
        ],
    ),
    (
        "Processes",
        &[
            panel(
                "Processor",
                "percentunit",
                &[("rate(process_cpu_seconds_total{job=~\"clover-.*\"}[1m])", "{{instance}}")],
            ),
            panel(
                "Memory",
                "bytes",
                &[("process_resident_memory_bytes{job=~\"clover-.*\"}", "{{instance}}")],
            ),
            panel(
                "File descriptors",
                "percentunit",
                &[("process_open_fds{job=~\"clover-.*\"} / process_max_fds", "{{instance}}")],
            ),
            panel(
                "Free on the disks of metadata stores",
                "bytes",
                &[("clover_disk_free_bytes", "{{instance}}")],
            ),
        ],
    ),
];

const WIDTH: u64 = 12;
const HEIGHT: u64 = 8;

/// The dashboard in Grafana's format; Grafana asks for the Prometheus when it is imported.
pub fn json() -> Value {
    let mut panels = Vec::new();
    let (mut id, mut y) = (0_u64, 0_u64);
    for (title, row) in ROWS {
        id += 1;
        let place = json!({"x": 0, "y": y, "w": 2 * WIDTH, "h": 1});
        panels.push(json!({"id": id, "type": "row", "title": title, "gridPos": place, "collapsed": false, "panels": []}));
        y += 1;
        for (number, panel) in (0_u64..).zip(*row) {
            id += 1;
            let place =
                json!({"x": number % 2 * WIDTH, "y": y + number / 2 * HEIGHT, "w": WIDTH, "h": HEIGHT});
            panels.push(time_series(id, panel, &place));
        }
        y += (row.len() as u64).div_ceil(2) * HEIGHT;
    }
    json!({
        "__inputs": [{"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"}],
        "title": "Clover",
        "uid": "clover",
        "tags": ["clover", concat!("clover-", env!("CARGO_PKG_VERSION"))],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": []},
        "panels": panels,
    })
}

fn time_series(id: u64, panel: &Panel, place: &Value) -> Value {
    let source = json!({"type": "prometheus", "uid": "${DS_PROMETHEUS}"});
    let target = |(number, (query, legend)): (u8, &(&str, &str))| {
        let name = char::from(b'A' + number).to_string();
        json!({"refId": name, "expr": query, "legendFormat": legend, "datasource": source})
    };
    json!({
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": (0..).zip(panel.queries).map(target).collect::<Vec<_>>(),
    })
}
