//! The two texts in which metrics are shown: OpenMetrics, and the older text of Prometheus, which every collector reads.

use prometheus_client::{encoding::text::encode, registry::Registry};
use std::fmt;

/// The content type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type of Prometheus's older text.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics and their content type: OpenMetrics for a collector that takes it, the older text for all others.
///
/// # Errors
/// A collector of the registry has failed.
pub fn show(registry: &Registry, accept: Option<&str>) -> Result<(&'static str, String), fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    match accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        true => Ok((OPEN_METRICS, text)),
        false => Ok((PLAIN, plain(&text))),
    }
}

/// The older text knows no end mark and no units, and calls a counter by the name of its sample.
fn plain(open_metrics: &str) -> String {
    let mut counters = Vec::new();
    for line in open_metrics.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.push(name);
        }
    }
    counters.sort_unstable();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF"), ..) | (Some("#"), Some("UNIT"), ..) => continue,
            (Some("#"), Some(what @ ("HELP" | "TYPE")), Some(name), Some(rest)) => {
                let end = if counters.binary_search(&name).is_ok() { "_total" } else { "" };
                // Only this text leaves quotation marks as they are.
                let rest = if what == "HELP" { rest.replace("\\\"", "\"") } else { rest.to_owned() };
                text.push_str(&format!("# {what} {name}{end} {rest}"));
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

    #[test]
    fn each_collector_gets_the_text_that_it_takes() {
        let mut registry = Registry::default();
        let (calls, files): (Counter, Gauge) = Default::default();
        calls.inc();
        registry.register("calls", "Calls that \"came\"", calls);
        registry.register("files", "Files", files);

        let (kind, text) =
            show(&registry, Some("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")).unwrap();
        assert_eq!(kind, OPEN_METRICS);
        assert!(text.contains("# TYPE calls counter\n") && text.ends_with("# EOF\n"), "{text}");
        let (kind, text) = show(&registry, None).unwrap();
        assert_eq!(kind, PLAIN);
        let expected = "# HELP calls_total Calls that \"came\".\n# TYPE calls_total counter\ncalls_total 1\n\
                        # HELP files Files.\n# TYPE files gauge\nfiles 0\n";
        assert_eq!(text, expected);
    }
}
