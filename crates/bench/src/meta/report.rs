//! The report of a bench at its end.

use super::lane::Outcome;
use std::{fmt, time::Duration};

pub struct Report {
    pub op: String,
    pub target: String,
    pub connections: u32,
    pub in_flight: u32,
    pub elapsed: Duration,
    pub outcome: Outcome,
    /// The server's process, where it is on this machine.
    pub server: Option<String>,
    pub server_cpu: Option<Duration>,
    pub client_cpu: Option<Duration>,
}

impl Report {
    fn count(&self) -> u64 {
        self.outcome.latency.len()
    }

    pub fn error_count(&self) -> u64 {
        self.outcome.errors.values().sum()
    }

    fn operations_a_second(&self) -> f64 {
        self.count() as f64 / self.elapsed.as_secs_f64()
    }

    fn latency_us(&self, quantile: f64) -> f64 {
        self.outcome.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    fn us_an_operation(&self, spent: Option<Duration>) -> Option<f64> {
        Some(spent?.as_secs_f64() * 1e6 / self.count().max(1) as f64)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "op": self.op,
            "target": self.target,
            "connections": self.connections,
            "in_flight": self.in_flight,
            "count": self.count(),
            "seconds": self.elapsed.as_secs_f64(),
            "ops_per_second": self.operations_a_second(),
            "latency_us": {
                "p50": self.latency_us(0.5),
                "p99": self.latency_us(0.99),
                "max": self.latency_us(1.0),
            },
            "errors": self.error_count(),
            "error_examples": self.outcome.errors,
            "server": self.server,
            "server_cpu_us_per_op": self.us_an_operation(self.server_cpu),
            "client_cpu_us_per_op": self.us_an_operation(self.client_cpu),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<7} {:>9.0} op/s   p50 {:>7.0} us   p99 {:>7.0} us   errors {}",
            self.op,
            self.operations_a_second(),
            self.latency_us(0.5),
            self.latency_us(0.99),
            self.error_count()
        )?;
        if let (Some(cpu), Some(server)) = (self.us_an_operation(self.server_cpu), &self.server) {
            write!(f, "   server {cpu:.2} us/op of {server}")?;
        }
        if let Some(cpu) = self.us_an_operation(self.client_cpu) {
            write!(f, "   client {cpu:.2} us/op")?;
        }
        for (error, count) in &self.outcome.errors {
            write!(f, "\n  {count} x {error}")?;
        }
        Ok(())
    }
}
