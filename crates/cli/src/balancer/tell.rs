//! What a balancer says: lines for a person, or one JSON object a line.

use super::{done::Done, end::End};
use crate::{admin::report::size as human, table};
use ::blocks::balance::Round;
use client::balancing::Server;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// How often a round tells how far it is.
const WORD_PERIOD: Duration = Duration::from_secs(5);

pub struct Teller {
    is_json: bool,
    word_due: Cell<Instant>,
}

impl Teller {
    pub fn new(is_json: bool) -> Self {
        Self { is_json, word_due: Cell::new(Instant::now() + WORD_PERIOD) }
    }

    /// The figures at the beginning of a round.
    pub fn round(&self, number: u32, servers: &[Server], round: &Round) {
        self.word_due.set(Instant::now() + WORD_PERIOD);
        if self.is_json {
            let mut event = plan(servers, round);
            event["event"] = json!("round");
            event["round"] = json!(number);
            println!("{event}");
            return;
        }
        println!(
            "Round {number}: the farthest storage is {:.1} percentage points from the mean; {} are to be moved at least, \
             {} in this round.",
            round.spread_percent(),
            human(round.excess_bytes()),
            human(planned(round))
        );
    }

    /// What a dry run has found.
    pub fn plan(&self, servers: &[Server], round: &Round) {
        if self.is_json {
            let mut event = plan(servers, round);
            event["event"] = json!("plan");
            println!("{event}");
            return;
        }
        let heading = ["SERVER", "TYPE", "CAPACITY", "USED", "USED %", "FROM MEAN"];
        let mut rows: Vec<Vec<String>> = vec![heading.map(str::to_owned).into()];
        for group in round.groups() {
            rows.push(vec![
                servers[group.server].address(),
                group.storage_type.to_string(),
                human(group.capacity),
                human(group.used),
                format!("{:.1}", group.used_percent()),
                format!("{:+.1}", group.from_mean_percent()),
            ]);
        }
        table::lines(&rows).iter().for_each(|line| println!("{line}"));
        for flow in round.flows() {
            let address = |group: usize| servers[round.groups()[group].server].address();
            println!("{} from {} to {}", human(flow.bytes), address(flow.from), address(flow.to));
        }
    }

    /// From time to time: how far the round is.
    pub fn progress(&self, done: &Done, round: &Round) {
        let now = Instant::now();
        if now < self.word_due.get() {
            return;
        }
        self.word_due.set(now + WORD_PERIOD);
        if self.is_json {
            println!("{}", event("progress", done));
        } else {
            println!(
                "  {} in {} blocks moved, {}/s; at most {} to go in this round",
                human(done.bytes),
                done.blocks,
                human(rate(done)),
                human(planned(round))
            );
        }
    }

    /// A round is over.
    pub fn done(&self, number: u32, done: &Done) {
        if self.is_json {
            let mut event = event("round_done", done);
            event["round"] = json!(number);
            println!("{event}");
            return;
        }
        let failed = match done.failed {
            0 => String::new(),
            failed => format!("; {failed} moves failed (`--log info` tells why)"),
        };
        println!("  {} in {} blocks moved, {}/s{failed}", human(done.bytes), done.blocks, human(rate(done)));
    }

    pub fn end(&self, end: &End) {
        if self.is_json {
            println!(
                "{}",
                json!({ "event": "end", "end": end.word(), "exit_code": end.code(), "text": end.sentence() })
            );
        } else if end.code() == 0 {
            println!("{}", end.sentence());
        } else {
            eprintln!("clover: {}", end.sentence());
        }
    }
}

fn planned(round: &Round) -> u64 {
    round.flows().iter().map(|flow| flow.bytes).sum()
}

fn rate(done: &Done) -> u64 {
    (done.bytes as f64 / done.took.as_secs_f64().max(0.001)) as u64
}

fn event(name: &str, done: &Done) -> Value {
    json!({
        "event": name,
        "moved_blocks": done.blocks,
        "moved_bytes": done.bytes,
        "failed_moves": done.failed,
        "took_ms": done.took.as_millis() as u64,
    })
}

fn plan(servers: &[Server], round: &Round) -> Value {
    let group = |at: usize| &round.groups()[at];
    let storages: Vec<Value> = round
        .groups()
        .iter()
        .map(|group| {
            json!({
                "server": servers[group.server].address(),
                "uuid": servers[group.server].uuid,
                "type": group.storage_type.to_string(),
                "capacity": group.capacity,
                "used": group.used,
                "used_percent": group.used_percent(),
                "mean_percent": group.mean_percent,
            })
        })
        .collect();
    let flows: Vec<Value> = round
        .flows()
        .iter()
        .map(|flow| {
            json!({
                "from": servers[group(flow.from).server].address(),
                "to": servers[group(flow.to).server].address(),
                "type": group(flow.from).storage_type.to_string(),
                "bytes": flow.bytes,
            })
        })
        .collect();
    json!({
        "balanced": round.is_balanced(),
        "spread_percent": round.spread_percent(),
        "excess_bytes": round.excess_bytes(),
        "storages": storages,
        "flows": flows,
    })
}
