//! What the product is to reach, beside what was found.

use super::{
    figures::{exact, number, part, text, times, whole},
    tables::{CPU, Table, of_hadoop},
};
use crate::all::{Outcome, parts::Kind};
use serde_json::Value;

/// The operations that are to cost a tenth of Hadoop's.
const OPS: [&str; 6] = ["create", "mkdir", "rename", "delete", "stat", "open"];

/// A goal is left out where nothing was measured for it.
pub fn table(outcomes: &[Outcome]) -> Table {
    let mut rows = Vec::new();
    let mut goal = |what: String, wanted: &str, found: String, is_met: bool| {
        let verdict = if is_met { "met" } else { "missed" };
        rows.push(vec![what, wanted.to_owned(), found, verdict.to_owned()]);
    };
    // Of several loads the last one, which is the heaviest.
    let metadata = outcomes.iter().rev().find(|outcome| outcome.part.name.starts_with("metadata"));
    let lines = metadata.map_or(&[][..], |outcome| &outcome.lines);
    for op in OPS {
        let line = lines.iter().find(|line| text(line, "op") == op && of_hadoop(line, lines).is_some());
        let hadoop = line.and_then(|line| of_hadoop(line, lines));
        let cpu = |line: Option<&Value>| line.and_then(|line| number(line, CPU));
        if let Some(found) = times(cpu(line), cpu(hadoop)) {
            goal(format!("CPU of {op}, of Hadoop's"), "1/10", part(Some(found)), found <= 0.1);
        }
    }
    let of = |kind: Kind| {
        let outcomes = outcomes.iter().filter(move |outcome| outcome.part.kind == kind);
        outcomes.flat_map(|outcome| &outcome.lines)
    };
    for line in of(Kind::Memory) {
        if let Some(bytes) = number(line, "/total_without_retry_cache/bytes_a_file") {
            goal("memory of a file, bytes".into(), "140", exact(Some(bytes), 1), bytes <= 140.0);
        }
    }
    for line in of(Kind::Reports).filter(|line| text(line, "lane") == "clover") {
        let core =
            number(line, "/replicas_per_cpu_second").filter(|_| text(line, "phase") == "reports alone");
        if let Some(replicas) = core {
            let found = exact(Some(replicas / 1e6), 1);
            goal("replicas reported in a second of a core, millions".into(), "5", found, replicas >= 5e6);
        }
        let p99_ms = number(line, "/create_ms/p99").filter(|_| text(line, "phase") == "both, at a rate");
        if let Some(ms) = p99_ms {
            goal("p99 of a create beside reports, ms".into(), "5", exact(Some(ms), 2), ms <= 5.0);
        }
    }
    for line in of(Kind::Failover) {
        if let Some(ms) = number(line, "/p99_ms") {
            goal(
                "p99 of the outage when the active is killed, ms".into(),
                "150",
                whole(Some(ms)),
                ms <= 150.0,
            );
        }
        if let (Some(lost), Some(doubled)) = (number(line, "/lost"), number(line, "/doubled")) {
            let found = whole(Some(lost + doubled));
            goal("acknowledged operations lost, or done twice".into(), "0", found, lost + doubled == 0.0);
        }
    }
    Table { head: vec!["goal", "wanted", "found", ""], rows }
}
