//! The result of a cell of runs: a table for people, a line for programs.

use super::{Fault, history::Verdict, scene::Client};
use proto::clover::admin::TakeoverProto;

/// The measurements of one fault, with one client and one size of the namespace.
pub struct Cell {
    pub fault: Fault,
    pub client: Client,
    pub files: u64,
    pub members: u16,
    /// Milliseconds, a run each, in their order.
    pub gaps_ms: Vec<f64>,
    /// The takeovers, as the new actives tell of them.
    pub takeovers: Vec<TakeoverProto>,
    pub verdict: Verdict,
}

/// A cell as programs read it.
#[derive(serde::Serialize)]
pub struct Line {
    fault: &'static str,
    client: &'static str,
    files: u64,
    runs: usize,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    lost: u64,
    doubled: u64,
    errors: u64,
}

impl Cell {
    /// The nearest rank: of few runs the 99th is the longest.
    pub fn percentile(values: &[f64], share: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    fn gap(&self, share: f64) -> f64 {
        Self::percentile(&self.gaps_ms, share)
    }

    /// The median of one stage of the takeovers.
    fn stage(&self, ms: impl Fn(&TakeoverProto) -> u64) -> f64 {
        let all: Vec<f64> = self.takeovers.iter().map(|takeover| ms(takeover) as f64).collect();
        Self::percentile(&all, 0.5)
    }

    pub fn json(&self) -> Line {
        let tenth = |ms: f64| (ms * 10.0).round() / 10.0;
        Line {
            fault: self.fault.name(),
            client: self.client.name(),
            files: self.files,
            runs: self.gaps_ms.len(),
            p50_ms: tenth(self.gap(0.5)),
            p95_ms: tenth(self.gap(0.95)),
            p99_ms: tenth(self.gap(0.99)),
            max_ms: tenth(self.gap(1.0)),
            lost: self.verdict.lost,
            doubled: self.verdict.doubled,
            errors: self.verdict.errors,
        }
    }

    pub fn text(&self) -> String {
        let switch = match self.takeovers.is_empty() {
            true => "-".to_owned(),
            false => {
                format!("{:.0}", self.stage(|takeover| takeover.sync_ms.saturating_sub(takeover.claim_ms)))
            }
        };
        let mut text = format!(
            "fault     client  members     files  runs   p50 ms   p95 ms   p99 ms   max ms  switch p50  lost  doubled  errors\n\
             {:<9} {:<7} {:>7} {:>9} {:>5} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>11} {:>5} {:>8} {:>7}\n",
            self.fault.name(),
            self.client.name(),
            self.members,
            self.files,
            self.gaps_ms.len(),
            self.gap(0.5),
            self.gap(0.95),
            self.gap(0.99),
            self.gap(1.0),
            switch,
            self.verdict.lost,
            self.verdict.doubled,
            self.verdict.errors,
        );
        if !self.takeovers.is_empty() {
            text += &format!(
                "stages at the median, ms: noticed {:.0}, claimed {:.0}, own promise {:.0}, all promises {:.0}, first \
                 commit {:.0}\n",
                self.stage(|takeover| takeover.detect_ms),
                self.stage(|takeover| takeover.claim_ms),
                self.stage(|takeover| takeover.promise_ms.saturating_sub(takeover.claim_ms)),
                self.stage(|takeover| takeover.fence_ms.saturating_sub(takeover.claim_ms)),
                self.stage(|takeover| takeover.sync_ms.saturating_sub(takeover.fence_ms)),
            );
        }
        text += &format!("{} operations were acknowledged\n", self.verdict.acknowledged);
        for finding in &self.verdict.findings {
            text += &format!("  {finding}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_for_programs() {
        let cell = Cell {
            fault: Fault::Kill,
            client: Client::Hadoop,
            files: 0,
            members: 4,
            gaps_ms: (1..=30).map(|run| f64::from(run) * 10.0).collect(),
            takeovers: Vec::new(),
            verdict: Verdict::default(),
        };
        assert_eq!(
            serde_json::to_string(&cell.json()).unwrap(),
            "{\"fault\":\"kill\",\"client\":\"hadoop\",\"files\":0,\"runs\":30,\"p50_ms\":150.0,\"p95_ms\":290.0,\
             \"p99_ms\":300.0,\"max_ms\":300.0,\"lost\":0,\"doubled\":0,\"errors\":0}"
        );
    }
}
