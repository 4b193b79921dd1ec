//! The rows of `clover bench reports`, for people and as JSON.

use super::{Args, clients::Felt};
use crate::{meta::lane::Outcome, rounds::median_of_any};
use serde_json::json;
use std::time::Duration;

/// The medians of a lane are told in this order.
const PHASES: [&str; 4] = ["clients alone", "reports alone", "both, at a rate", "both, no pause"];

/// One measurement.
pub struct Phase {
    pub elapsed: Duration,
    pub server_cpu: Duration,
    /// Replicas that were reported.
    pub rows: u64,
    pub clients: Option<Felt>,
}

pub struct Round {
    pub lane: &'static str,
    /// As [`PHASES`] has them.
    pub phases: [Phase; 4],
}

/// Medians over the rounds; `None` where a phase has no such figure.
struct Row {
    lane: &'static str,
    phase: &'static str,
    rows_per_second: Option<f64>,
    /// Replicas reported in a second of a core. Where clients are served too, their calls are in the time.
    rows_per_cpu_second: Option<f64>,
    cores: Option<f64>,
    stat_ms: [Option<f64>; 2],
    create_ms: [Option<f64>; 2],
}

const QUANTILES: [f64; 2] = [0.5, 0.99];

fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut lanes: Vec<&'static str> = Vec::new();
    for round in rounds {
        if !lanes.contains(&round.lane) {
            lanes.push(round.lane);
        }
    }
    let mut rows = Vec::new();
    for lane in lanes {
        for (index, phase) in PHASES.into_iter().enumerate() {
            let these = || rounds.iter().filter(|round| round.lane == lane).map(|round| &round.phases[index]);
            let of = |figure: &dyn Fn(&Phase) -> Option<f64>| median_of_any(these().filter_map(figure));
            let told = |phase: &Phase| (phase.rows > 0).then_some(phase.rows as f64);
            let ms = |outcome: fn(&Felt) -> &Outcome, quantile: f64| {
                of(&|phase| {
                    let nanos = outcome(phase.clients.as_ref()?).latency.value_at_quantile(quantile);
                    Some(nanos as f64 / 1e6)
                })
            };
            rows.push(Row {
                lane,
                phase,
                rows_per_second: of(&|phase| Some(told(phase)? / phase.elapsed.as_secs_f64())),
                rows_per_cpu_second: of(&|phase| Some(told(phase)? / phase.server_cpu.as_secs_f64())),
                cores: of(&|phase| Some(phase.server_cpu.as_secs_f64() / phase.elapsed.as_secs_f64())),
                stat_ms: QUANTILES.map(|quantile| ms(|felt| &felt.stat, quantile)),
                create_ms: QUANTILES.map(|quantile| ms(|felt| &felt.create, quantile)),
            });
        }
    }
    rows
}

pub fn print(args: &Args, rounds: &[Round]) {
    let rows = rows(rounds);
    if args.json {
        for row in rows {
            let milliseconds = |figures: [Option<f64>; 2]| json!({ "p50": figures[0], "p99": figures[1] });
            println!(
                "{}",
                json!({
                    "lane": row.lane,
                    "phase": row.phase,
                    "replicas_per_second": row.rows_per_second,
                    "replicas_per_cpu_second": row.rows_per_cpu_second,
                    "server_cores": row.cores,
                    "stat_ms": milliseconds(row.stat_ms),
                    "create_ms": milliseconds(row.create_ms),
                })
            );
        }
        return;
    }
    println!(
        "{} blocks with 3 replicas on {} data servers, {} full reports at once, at a rate of {:.1} M replicas \
         a second or without a pause; clients: {} stats and {} creates a second; medians of {} rounds of {} s\n",
        args.blocks,
        args.servers,
        args.at_once,
        args.rate as f64 / 1e6,
        args.stats,
        args.creates,
        args.rounds,
        args.seconds
    );
    println!(
        "{:<24} {:>14} {:>14} {:>7} {:>18} {:>18}",
        "", "replicas/s", "/s of a core", "cores", "stat p50/p99 ms", "create p50/p99 ms"
    );
    for row in rows {
        let millions =
            |figure: Option<f64>| figure.map_or("-".into(), |figure| format!("{:.2} M", figure / 1e6));
        let pair = |figures: [Option<f64>; 2]| match figures {
            [Some(half), Some(most)] => format!("{half:.2} / {most:.2}"),
            _ => "-".into(),
        };
        println!(
            "{:<24} {:>14} {:>14} {:>7} {:>18} {:>18}",
            format!("{}, {}", row.lane, row.phase),
            millions(row.rows_per_second),
            millions(row.rows_per_cpu_second),
            row.cores.map_or("-".into(), |cores| format!("{cores:.2}")),
            pair(row.stat_ms),
            pair(row.create_ms),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(rows: u64, cpu_ms: u64) -> Phase {
        let (elapsed, server_cpu) = (Duration::from_secs(2), Duration::from_millis(cpu_ms));
        Phase { elapsed, server_cpu, rows, clients: None }
    }

    #[test]
    fn rates_are_medians_over_the_rounds_of_a_lane() {
        let round = |lane, rows| Round {
            lane,
            phases: [phase(0, 10), phase(rows, 500), phase(rows, 1_000), phase(rows, 1_000)],
        };
        let rounds = [round("a", 1_000), round("b", 7), round("a", 3_000), round("b", 7), round("a", 2_000)];
        let rows = rows(&rounds);
        assert_eq!(rows.len(), 8);
        assert_eq!((rows[1].lane, rows[1].phase), ("a", "reports alone"));
        assert_eq!(rows[1].rows_per_second, Some(1_000.0));
        assert_eq!(rows[1].rows_per_cpu_second, Some(4_000.0));
        assert_eq!(rows[2].cores, Some(0.5));
        assert_eq!((rows[0].rows_per_second, rows[0].stat_ms), (None, [None, None]));
    }
}
