//! The settings of a running server as a table: each value, its default, where it comes from, and Hadoop's word for it.

use super::{
    in_order,
    key::{HadoopUnit, Key, Value},
    scans,
    settings::Settings,
};
use web::settings::{HadoopSetting, Setting};

/// The settings of one role, in the order of the manual.
pub fn of(settings: &Settings, tables: &[&'static [Key]]) -> Vec<Setting> {
    let row = |key: &Key| {
        let value = settings.value(key.name);
        Setting {
            key: key.name.to_owned(),
            value: text(value),
            default: key
                .kind
                .parse(key.default, HadoopUnit::Same)
                .map_or_else(|_| String::new(), |it| text(&it)),
            source: settings.source(key.name),
            hadoop: key.hadoop.map(|(name, unit)| HadoopSetting {
                key: name.to_owned(),
                value: hadoops(key.name, value, unit),
            }),
            range: key.kind.to_string(),
            help: key.help.to_owned(),
        }
    };
    in_order(tables).map(row).collect()
}

/// A value as a text, which could stand behind `--set KEY=`.
fn text(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Text(text) => text.clone(),
        Value::Texts(texts) => joined(texts.clone()),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Numbers(numbers) => joined(numbers.iter().map(u64::to_string).collect()),
        Value::Fraction(fraction) => fraction.to_string(),
        Value::Table(rows) => joined(rows.iter().map(|(key, value)| format!("{key}={value}")).collect()),
    }
}

/// The value as it would stand in Hadoop's files. A time that is no whole number of Hadoop's units has its own unit.
fn hadoops(key: &str, value: &Value, unit: HadoopUnit) -> String {
    let ms_a_unit = match unit {
        HadoopUnit::Same => 1,
        HadoopUnit::Seconds => 1_000,
        HadoopUnit::Hours => 3_600_000,
    };
    match value {
        Value::Number(0) if scans::SCANS.contains(&key) => scans::NEVER_IN_HADOOP.to_owned(),
        Value::Number(ms) if ms % ms_a_unit == 0 => (ms / ms_a_unit).to_string(),
        Value::Number(ms) => format!("{ms}ms"),
        other => text(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DATA, META};
    use web::settings::Source;

    #[test]
    fn a_value_stands_with_its_source_and_in_hadoops_unit() {
        let mut settings = Settings::defaults(META);
        settings.read_toml("heartbeat_interval_ms = '2s'\ndefault_replication = 2\n", "m.toml").unwrap();
        settings.set("dfs.replication=1").unwrap();
        let rows = of(&settings, META);
        let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        let heartbeat = row("heartbeat_interval_ms");
        assert_eq!((&*heartbeat.value, &*heartbeat.default), ("2000", "3000"));
        assert_eq!(heartbeat.source, Source::File("m.toml".into()));
        assert_eq!(heartbeat.hadoop.as_ref().unwrap().value, "2");
        let replication = row("default_replication");
        assert_eq!((&*replication.value, &replication.source), ("1", &Source::CommandLine));
        assert_eq!(row("member").source, Source::Default);
        assert_eq!(rows.len(), in_order(META).count());
    }

    /// A tool that reads a value under Hadoop's name takes it in Hadoop's units. Read so, it gives the setting of this server again.
    #[test]
    fn every_value_in_hadoops_words_can_be_read_back() {
        for (tables, changed) in
            [(META, &["heartbeat_interval_ms=1500"][..]), (DATA, &["block_scan_period_ms=0"])]
        {
            let mut settings = Settings::defaults(tables);
            changed.iter().for_each(|assignment| settings.set(assignment).unwrap());
            for row in of(&settings, tables) {
                let Some(HadoopSetting { key, value }) = row.hadoop else { continue };
                let mut again = Settings::defaults(tables);
                again.set(&format!("{key}={value}")).unwrap();
                assert_eq!(text(again.value(&row.key)), row.value, "{key}={value}");
            }
        }
    }
}
