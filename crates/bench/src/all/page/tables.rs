//! The tables of the parts.

use super::figures::{exact, number, part, text, times, whole, with_range};
use crate::all::parts::Kind;
use serde_json::Value;

pub struct Table {
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Text to the left, figures to the right.
    pub fn markdown(&self) -> String {
        let is_figure = |column: usize| {
            let mut cells =
                self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
            cells.all(|cell| cell.starts_with(|letter: char| letter.is_ascii_digit()))
        };
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.head.clone());
        let columns = 0..self.head.len();
        text += &line(columns.map(|column| if is_figure(column) { "---:" } else { "---" }).collect());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text
    }
}

pub fn of(kind: Kind, lines: &[Value]) -> Table {
    match kind {
        Kind::Ceilings => ceilings(lines),
        Kind::Operations => operations(lines),
        Kind::Shapes => shapes(lines),
        Kind::NnThroughput => nn_throughput(lines),
        Kind::Memory => memory(lines),
        Kind::Reports => reports(lines),
        Kind::Failover => failover(lines),
    }
}

/// A sentence about what a bench did not measure; empty for all other lines.
pub fn left_out(line: &Value) -> String {
    if line.get("broken_off").is_some() {
        return "\nIt was broken off: what was not measured until then is missing.\n".to_owned();
    }
    let Some(why) = line.get("left_out").and_then(Value::as_str) else { return String::new() };
    let (shape, op) = (text(line, "shape"), text(line, "op"));
    match op {
        "" => format!("\nLeft out: {shape}: {why}\n"),
        op => format!("\nLeft out: {op} of {shape}: {why}\n"),
    }
}

fn ceilings(lines: &[Value]) -> Table {
    let mega = |line, place| exact(number(line, place).map(|bytes| bytes / 1e6), 0);
    let rows = lines.iter().flat_map(|line| {
        let record = |place| exact(number(line, place), 0);
        [
            ("a message over loopback and its echo, us", exact(number(line, "/round_trip_p50_us"), 1)),
            ("one connection over loopback, MB/s", mega(line, "/loopback_bytes_per_second")),
            (
                "200 bytes appended and made durable, a second",
                whole(number(line, "/durable_records_per_second")),
            ),
            ("the same, p50 us", record("/durable_record_us/p50")),
            ("the same, p99 us", record("/durable_record_us/p99")),
            ("a long run to the disk, made durable, MB/s", mega(line, "/disk_write_bytes_per_second")),
        ]
    });
    Table {
        head: vec!["ceiling", "median"],
        rows: rows.map(|(name, figure)| vec![name.to_owned(), figure]).collect(),
    }
}

fn operations(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        vec![
            text(line, "op").to_owned(),
            whole(number(line, "/ops_per_second")),
            whole(number(line, "/latency_us/p50")),
            whole(number(line, "/latency_us/p99")),
            exact(number(line, "/server_cpu_us_per_op"), 1),
        ]
    };
    Table {
        head: vec!["operation", "ops/s", "p50 us", "p99 us", "server's CPU us/op"],
        rows: lines.iter().map(row).collect(),
    }
}

/// Hadoop's line of the same operation, if this is none of Hadoop's.
pub fn of_hadoop<'a>(line: &Value, lines: &'a [Value]) -> Option<&'a Value> {
    let is_hadoops = |line: &Value| text(line, "shape").starts_with("Hadoop");
    if is_hadoops(line) {
        return None;
    }
    lines.iter().find(|other| is_hadoops(other) && text(other, "op") == text(line, "op"))
}

pub const RATE: &str = "/saturated/ops_per_second";
pub const CPU: &str = "/saturated/servers_cpu_us_per_op";

fn shapes(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let hadoop = of_hadoop(line, lines);
        let to_hadoop = |place| times(number(line, place), hadoop.and_then(|hadoop| number(hadoop, place)));
        let rate = to_hadoop(RATE).map_or_else(String::new, |times| format!("{times:.1} x"));
        let mut row = vec![
            text(line, "op").to_owned(),
            text(line, "shape").to_owned(),
            with_range(line, RATE, whole),
            whole(number(line, "/saturated/p50_us")),
            whole(number(line, "/saturated/p99_us")),
            with_range(line, CPU, |us| exact(us, 1)),
            rate,
            part(to_hadoop(CPU)),
        ];
        if let Some(errors) = number(line, "/errors").filter(|errors| *errors > 0.0) {
            row[0] += &format!(" (**{errors:.0} failed**)");
        }
        row
    };
    let mut measured: Vec<&Value> = lines.iter().filter(|line| line.get("saturated").is_some()).collect();
    // The shapes of an operation stand together, in the order of the operations.
    let first = |line: &Value| lines.iter().position(|other| text(other, "op") == text(line, "op"));
    measured.sort_by_key(|line| first(line));
    Table {
        head: vec![
            "operation",
            "servers",
            "ops/s",
            "p50 us",
            "p99 us",
            "CPU of all servers us/op",
            "ops/s to Hadoop",
            "CPU to Hadoop",
        ],
        rows: measured.into_iter().map(row).collect(),
    }
}

fn nn_throughput(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let [clover, hadoop] = ["/clover_ops_per_second", "/hadoop_ops_per_second"];
        let ratio = times(number(line, clover), number(line, hadoop));
        vec![
            text(line, "op").to_owned(),
            with_range(line, clover, whole),
            with_range(line, hadoop, whole),
            ratio.map_or_else(String::new, |times| format!("{times:.1} x")),
        ]
    };
    Table {
        head: vec!["operation", "Clover ops/s", "Hadoop ops/s", "ratio"],
        rows: lines.iter().map(row).collect(),
    }
}

fn memory(lines: &[Value]) -> Table {
    let rows = lines.iter().flat_map(|line| {
        let bytes = |place| exact(number(line, place), 1);
        [
            ("namespace", bytes("/namespace/bytes_a_file")),
            ("block map", bytes("/block_map/bytes_a_file")),
            ("together", bytes("/total_without_retry_cache/bytes_a_file")),
            ("retry cache, apart", bytes("/retry_cache/bytes_a_file")),
        ]
    });
    Table {
        head: vec!["part", "bytes a file"],
        rows: rows.map(|(name, figure)| vec![name.to_owned(), figure]).collect(),
    }
}

fn reports(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let millions = |place| exact(number(line, place).map(|replicas| replicas / 1e6), 1);
        let mut row = vec![
            text(line, "lane").to_owned(),
            text(line, "phase").to_owned(),
            millions("/replicas_per_second"),
            millions("/replicas_per_cpu_second"),
        ];
        let figures = ["/stat_ms/p50", "/stat_ms/p99", "/create_ms/p50", "/create_ms/p99"];
        row.extend(figures.map(|place| exact(number(line, place), 2)));
        row
    };
    Table {
        head: vec![
            "server",
            "what",
            "M replicas/s",
            "M a second of a core",
            "stat p50 ms",
            "stat p99 ms",
            "create p50 ms",
            "create p99 ms",
        ],
        rows: lines.iter().map(row).collect(),
    }
}

fn failover(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let mut row = vec![text(line, "fault").to_owned(), text(line, "client").to_owned()];
        let figures = ["/runs", "/p50_ms", "/p99_ms", "/max_ms", "/lost", "/doubled", "/errors"];
        row.extend(figures.map(|place| whole(number(line, place))));
        row
    };
    Table {
        head: vec![
            "fault",
            "client",
            "runs",
            "outage p50 ms",
            "p99 ms",
            "longest ms",
            "operations lost",
            "done twice",
            "failed",
        ],
        rows: lines.iter().map(row).collect(),
    }
}
