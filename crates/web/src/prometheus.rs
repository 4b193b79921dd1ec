//! `/prom`: the numbers of the beans under the names that Hadoop gives them for Prometheus.
//!
//! Hadoop has one source of numbers, its records of metrics, and shows them twice: as beans, and here. So it is here: a bean
//! that is made from a record says so ([`Record`]), and this page shows all numbers of these beans. `/metrics` has Clover's own names.

use crate::jmx::{Bean, BeanSource, Beans, Record};
use axum::{Router, extract::State, http::header, response::IntoResponse, routing::get};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write};

/// The page `/prom`.
pub fn prom(source: BeanSource) -> Router {
    Router::new().route("/prom", get(show)).with_state(source)
}

async fn show(State(source): State<BeanSource>) -> impl IntoResponse {
    let mut beans = Beans::of_records();
    source(&mut beans);
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text(&beans.made()))
}

/// One metric: its type, and its value by its labels.
struct Metric {
    is_counter: bool,
    about: String,
    samples: BTreeMap<String, String>,
}

fn text(beans: &[Bean]) -> String {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for (bean, record) in beans.iter().filter_map(|bean| Some((bean, bean.record?))) {
        let labels = labels(bean);
        for (attribute, value) in bean.attributes.iter().filter(|(name, _)| !name.starts_with(TAG)) {
            let Value::Number(value) = value else { continue };
            let metric = metrics.entry(name_of(&record, attribute)).or_insert_with(|| Metric {
                is_counter: record.counters.has(attribute),
                about: format!("{attribute} of {}", record.name),
                samples: BTreeMap::new(),
            });
            metric.samples.insert(labels.clone(), value.to_string());
        }
    }
    let mut text = String::new();
    for (name, Metric { is_counter, about, samples }) in metrics {
        let kind = if is_counter { "counter" } else { "gauge" };
        let _ = write!(text, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
    text
}

/// The attributes of a bean that are tags of its record begin with this.
const TAG: &str = "tag.";

/// The tags of a record as labels. Hadoop shows a tag without a value as `null`.
fn labels(bean: &Bean) -> String {
    let tags = bean.attributes.iter().filter_map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        Some(format!("{}=\"{value}\"", name.strip_prefix(TAG)?.to_lowercase()))
    });
    tags.collect::<Vec<_>>().join(",")
}

/// Hadoop's name of a metric: the names of record and attribute, their words parted by underscores. A word begins with a
/// capital letter; several capital letters together are one word, but for the last if a small letter follows.
pub(crate) fn name_of(record: &Record, attribute: &str) -> String {
    let capitalised = |text: &str| {
        let mut letters = text.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    let whole = capitalised(record.name).unwrap_or_default() + &capitalised(attribute).unwrap_or_default();
    let letters: Vec<char> = whole.chars().collect();
    let mut name = String::with_capacity(letters.len() + 8);
    for (index, letter) in letters.iter().enumerate() {
        if index > 0 && letter.is_ascii_uppercase() {
            let before = letters[index - 1];
            let is_first_of_word = letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
            if is_first_of_word || !(before.is_ascii_uppercase() || before == '_') {
                name.push('_');
            }
        }
        name.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    // Signs that stand together become one underscore.
    let mut joined = String::with_capacity(name.len());
    for letter in name.chars() {
        if !(letter == '_' && joined.ends_with('_')) {
            joined.push(letter);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jmx::Counters;
    use serde_json::json;

    const fn record(name: &'static str) -> Record {
        Record { name, counters: Counters::Only(&["GcCount"]) }
    }

    /// Names that a Hadoop 3.5.0 has printed.
    #[test]
    fn names_are_made_as_hadoop_makes_them() {
        let names = [
            ("FSNamesystem", "MissingBlocks", "fs_namesystem_missing_blocks"),
            ("FSNamesystem", "CapacityUsedNonDFS", "fs_namesystem_capacity_used_non_dfs"),
            ("FSNamesystem", "LowRedundancyECBlockGroups", "fs_namesystem_low_redundancy_ec_block_groups"),
            ("FSNamesystem", "PendingSPSPaths", "fs_namesystem_pending_sps_paths"),
            ("rpc", "RpcQueueTimeNumOps", "rpc_rpc_queue_time_num_ops"),
            ("namenode", "CreateFileOps", "namenode_create_file_ops"),
            ("JvmMetrics", "MemHeapUsedM", "jvm_metrics_mem_heap_used_m"),
        ];
        for (of, attribute, expected) in names {
            assert_eq!(name_of(&record(of), attribute), expected);
        }
    }

    #[test]
    fn numbers_of_records_are_shown_and_nothing_else() {
        let bean = |record| Bean {
            name: "Hadoop:service=NameNode,name=JvmMetrics".into(),
            model: "JvmMetrics".into(),
            attributes: json!({
                "tag.Context": "jvm", "tag.SessionId": null, "tag.Odd": "a\"b\\c",
                "GcCount": 3, "MemHeapUsedM": 1.5, "Text": "x", "None": null,
            })
            .as_object()
            .unwrap()
            .clone(),
            record,
        };
        assert_eq!(text(&[bean(None)]), "");
        let labels = r#"{context="jvm",odd="a\"b\\c",sessionid="null"}"#;
        let expected = format!(
            "# HELP jvm_metrics_gc_count GcCount of JvmMetrics\n# TYPE jvm_metrics_gc_count counter\njvm_metrics_gc_count{labels} 3\n\
             # HELP jvm_metrics_mem_heap_used_m MemHeapUsedM of JvmMetrics\n# TYPE jvm_metrics_mem_heap_used_m gauge\n\
             jvm_metrics_mem_heap_used_m{labels} 1.5\n"
        );
        assert_eq!(text(&[bean(Some(record("JvmMetrics")))]), expected);
    }
}
