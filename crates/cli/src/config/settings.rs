//! A role's settings: the defaults, then a file, then what the command line sets.

use super::{
    hadoop::{self, Advice},
    key::{HadoopUnit, Key, Kind, Value, host_names},
    place::is_host_port,
    scans,
};
use anyhow::{Context, bail};
use std::{collections::BTreeMap, net::SocketAddr, path::Path};
use web::settings::Source;

/// Configuration files are small; anything larger is not one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The least likeness of two names, from 0 for unlike to 1 for equal, at which one is proposed for the other. It was
/// chosen by eye, so that a missing letter or two parts that changed places are found.
const ALIKE: f64 = 0.85;

/// The values of every key of one or more roles, each checked.
pub struct Settings {
    keys: Vec<&'static Key>,
    values: BTreeMap<&'static str, Value>,
    /// Where the values come from that are not the defaults.
    sources: BTreeMap<&'static str, Source>,
}

impl Settings {
    pub fn defaults(tables: &[&'static [Key]]) -> Self {
        let mut keys: Vec<&'static Key> = Vec::new();
        for key in tables.iter().copied().flatten() {
            if !keys.iter().any(|known| known.name == key.name) {
                keys.push(key);
            }
        }
        let values = keys
            .iter()
            .map(|key| {
                let value = key.kind.parse(key.default, HadoopUnit::Same);
                (key.name, value.expect("a default is a value of its key's kind"))
            })
            .collect();
        Self { keys, values, sources: BTreeMap::new() }
    }

    /// Takes over what a TOML file says. Unknown keys and wrong values are refused with file and line.
    pub fn read_file(&mut self, path: &Path) -> anyhow::Result<()> {
        self.read_toml(&Self::text_of(path)?, &path.display().to_string())
    }

    /// The text of a configuration file.
    pub fn text_of(path: &Path) -> anyhow::Result<String> {
        let name = path.display();
        let length = std::fs::metadata(path).with_context(|| format!("{name}"))?.len();
        if length > FILE_BYTES_MAX {
            bail!("{name} has {length} bytes; a configuration file has at most {FILE_BYTES_MAX}");
        }
        std::fs::read_to_string(path).with_context(|| format!("{name}"))
    }

    pub fn read_toml(&mut self, text: &str, name: &str) -> anyhow::Result<()> {
        let problems = self.take_toml(text, name);
        match problems.split_first() {
            None => Ok(()),
            Some((first, [])) => bail!("{first}"),
            Some((first, more)) => {
                bail!("{first} ({} more; `clover config check {name}` tells all)", more.len())
            }
        }
    }

    /// Takes over what makes sense of a file, and says all that does not.
    pub fn take_toml(&mut self, text: &str, name: &str) -> Vec<String> {
        let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
            return vec![format!(
                "{name}:1: is XML, as Hadoop's files are, and servers read TOML: `clover config convert {name}` prints \
                 what it would be"
            )];
        }
        let table = match toml::de::DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                let line = error.span().map_or(1, |span| line_of(span.start));
                return vec![format!("{name}:{line}: {}", error.message())];
            }
        };
        let mut problems = Vec::new();
        // The keys are taken by line, not by name.
        let mut rows: Vec<_> = table.get_ref().iter().collect();
        rows.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in rows {
            let line = line_of(key.span().start);
            let key_name = key.get_ref().as_ref();
            let taken = self.find(key_name).and_then(|(known, unit)| {
                let parsed = match (scans::has_other_words(known.name, key_name), value.get_ref()) {
                    (true, toml::de::DeValue::Integer(number)) => {
                        known.kind.parse(&scans::in_our_words(known.name, &number.to_string()).0, unit)
                    }
                    (_, value) => from_toml(known.kind, value, unit),
                };
                Ok((known, parsed.map_err(|error| format!("{key_name}: {error}"))?))
            });
            match taken {
                Ok((known, parsed)) => {
                    self.values.insert(known.name, parsed);
                    self.sources.insert(known.name, Source::File(name.to_owned()));
                }
                Err(problem) => problems.push(format!("{name}:{line}: {problem}")),
            }
        }
        problems
    }

    /// `KEY=VALUE`, with our name of the key or Hadoop's.
    pub fn set(&mut self, assignment: &str) -> anyhow::Result<()> {
        let Some((name, text)) = assignment.split_once('=') else {
            bail!("--set {assignment}: write it as KEY=VALUE");
        };
        let (key, unit) = self.find(name.trim()).map_err(|error| anyhow::anyhow!("--set: {error}"))?;
        let value = match scans::has_other_words(key.name, name.trim()) {
            true => key.kind.parse(&scans::in_our_words(key.name, text).0, unit),
            false => key.kind.parse(text, unit),
        };
        let value = value.map_err(|error| anyhow::anyhow!("--set {}: {error} ({})", key.name, key.kind))?;
        self.values.insert(key.name, value);
        self.sources.insert(key.name, Source::CommandLine);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<(&'static Key, HadoopUnit), String> {
        for key in &self.keys {
            if key.name == name {
                return Ok((key, HadoopUnit::Same));
            }
            if let Some((hadoop, unit)) = key.hadoop
                && hadoop == name
            {
                return Ok((key, unit));
            }
        }
        let roles = [("clover meta", super::META), ("clover data", super::DATA)];
        let is_it = |key: &Key| key.name == name || key.hadoop.is_some_and(|(hadoop, _)| hadoop == name);
        let hint = match roles.iter().find(|(_, tables)| super::in_order(tables).any(is_it)) {
            Some((role, _)) => format!("`{role}` has it; "),
            None => match hadoop::advice(name) {
                Some(Advice::Renamed(new)) => {
                    return Err(format!("`{name}` {}; write that", Advice::Renamed(new).words()));
                }
                // A letter too few is likelier than a key that nobody knows.
                Some(advice) if advice != Advice::Unknown || self.near(name).is_none() => {
                    return Err(format!("`{name}` {}; docs/operating/from-hdfs.md has more", advice.words()));
                }
                _ => self.near(name).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default(),
            },
        };
        Err(format!("`{name}` is not a key of this configuration; {hint}`clover config` lists them all"))
    }

    /// The key that was meant, if one is close enough.
    fn near(&self, name: &str) -> Option<&'static str> {
        let hadoops = |key: &&'static Key| key.hadoop.map(|(hadoop, _)| hadoop);
        let names = self.keys.iter().flat_map(|key| [Some(key.name), hadoops(key)]).flatten();
        let scored = names.map(|known| (strsim::jaro_winkler(known, name), known));
        let (score, near) = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
        (score > ALIKE).then_some(near)
    }

    /// Where the value of a key comes from.
    pub fn source(&self, name: &str) -> Source {
        self.sources.get(name).cloned().unwrap_or(Source::Default)
    }

    pub fn value(&self, name: &str) -> &Value {
        self.values.get(name).unwrap_or_else(|| panic!("{name} is a key of this role"))
    }

    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            other => panic!("{name} is a text, not {other:?}"),
        }
    }

    pub fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Value::Texts(texts) => texts,
            other => panic!("{name} is a list, not {other:?}"),
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Value::Bool(true))
    }

    pub fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Number(number) => *number,
            other => panic!("{name} is a number, not {other:?}"),
        }
    }

    pub fn numbers(&self, name: &str) -> &[u64] {
        match self.value(name) {
            Value::Numbers(numbers) => numbers,
            other => panic!("{name} is a list of numbers, not {other:?}"),
        }
    }

    pub fn fraction(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Fraction(fraction) => *fraction,
            other => panic!("{name} is a fraction, not {other:?}"),
        }
    }

    pub fn table(&self, name: &str) -> &[(String, String)] {
        match self.value(name) {
            Value::Table(table) => table,
            other => panic!("{name} is a table, not {other:?}"),
        }
    }

    /// `None` where the address is empty.
    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        let text = self.text(name);
        (!text.is_empty()).then(|| text.parse().expect("addresses were checked when they were set"))
    }

    /// An address that must be there.
    pub fn required_address(&self, name: &str) -> anyhow::Result<SocketAddr> {
        self.address(name).with_context(|| format!("{name} is empty; write it as 127.0.0.1:8020"))
    }
}

fn from_toml(kind: Kind, value: &toml::de::DeValue<'_>, unit: HadoopUnit) -> Result<Value, String> {
    use toml::de::DeValue;
    match (kind, value) {
        (Kind::HostNames, DeValue::Array(_)) => match from_toml(Kind::Texts, value, unit)? {
            Value::Texts(names) => host_names(names),
            other => unreachable!("a list of texts is no {other:?}"),
        },
        (Kind::Texts, DeValue::Array(items)) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) if are_several(text) => Err(format!(
                    "`{text}` is one text with commas in it: put each part in quotes of its own, or leave the brackets out"
                )),
                DeValue::String(text) => Ok(text.to_string()),
                other => Err(format!("a list of texts has no {}", other.type_str())),
            })
            .collect::<Result<_, _>>()
            .map(Value::Texts),
        (Kind::Integers { .. }, DeValue::Array(items)) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::Integer(number) => match kind.parse(&number.to_string(), unit)? {
                    Value::Numbers(numbers) => Ok(numbers),
                    other => unreachable!("a list of numbers is no {other:?}"),
                },
                other => Err(format!("a list of numbers has no {}", other.type_str())),
            })
            .collect::<Result<Vec<_>, _>>()
            .map(|numbers| Value::Numbers(numbers.concat())),
        (Kind::Table, DeValue::Table(table)) => table
            .iter()
            .map(|(key, value)| match value.get_ref() {
                DeValue::String(text) => Ok((key.get_ref().to_string(), text.to_string())),
                other => Err(format!("{} is a {}, not a text", key.get_ref(), other.type_str())),
            })
            .collect::<Result<_, _>>()
            .map(Value::Table),
        (Kind::Bool, DeValue::Boolean(flag)) => Ok(Value::Bool(*flag)),
        (
            Kind::Integer { .. }
            | Kind::Bytes { .. }
            | Kind::Milliseconds { .. }
            | Kind::Fraction
            | Kind::Threshold,
            DeValue::Integer(number),
        ) => kind.parse(&number.to_string(), unit),
        (Kind::Fraction | Kind::Threshold, DeValue::Float(number)) => kind.parse(&number.to_string(), unit),
        (Kind::Integer { .. } | Kind::Fraction | Kind::Threshold | Kind::Bool | Kind::Table, DeValue::String(_)) => {
            Err(format!("is a text; it should be {kind}, without quotes"))
        }
        (_, DeValue::String(text)) => kind.parse(text, unit),
        (_, DeValue::Array(_)) => Err(format!("is a list, and takes one value: {kind}")),
        (_, other) => Err(format!("is {} {}; it should be {kind}", article(other.type_str()), other.type_str())),
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Whether a text is several directories or addresses, as Hadoop writes them.
fn are_several(text: &str) -> bool {
    let is_one = |part: &str| part.starts_with(['/', '[']) || part.starts_with("file:") || is_host_port(part);
    text.contains(',') && text.split(',').all(|part| is_one(part.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DATA, META};

    fn settings() -> Settings {
        Settings::defaults(META)
    }

    #[test]
    fn every_default_is_valid_and_every_hadoop_name_is_used_once() {
        let all = Settings::defaults(&[META, DATA].concat());
        for tables in [META, DATA] {
            let mut names: Vec<_> =
                tables.iter().copied().flatten().filter_map(|key| key.hadoop).map(|(name, _)| name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        assert!(all.keys.len() > 20);
    }

    #[test]
    fn a_wrong_name_of_a_host_is_refused_with_file_and_line() {
        for tables in [META, DATA] {
            let mut settings = Settings::defaults(tables);
            settings.read_toml("http_hosts = ['console.example', '*.example']\n", "m").unwrap();
            assert_eq!(settings.texts("http_hosts"), ["console.example", "*.example"]);
            let wrong = settings.read_toml("\nhttp_hosts = ['http://console.example']\n", "m").unwrap_err();
            assert!(
                wrong.to_string().starts_with("m:2: http_hosts: `http://console.example` is no"),
                "{wrong}"
            );
            assert!(settings.set("http_hosts=a,b:1").unwrap_err().to_string().contains("`b:1` is no"));
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_file_and_line() {
        let error = settings().read_toml("# first\nname_dirs = \"/x\"\n", "meta.toml").unwrap_err();
        assert!(error.to_string().starts_with("meta.toml:2: `name_dirs` is not a key"), "{error}");
        assert!(error.to_string().contains("did you mean `name_dir`"), "{error}");
    }

    #[test]
    fn a_value_out_of_range_names_key_line_and_range() {
        let error = settings().read_toml("default_replication = 0\n", "m").unwrap_err();
        assert_eq!(error.to_string(), "m:1: default_replication: 0 is out of range: 1 to 512");
        let error = settings().read_toml("default_replication = \"3\"\n", "m").unwrap_err();
        assert!(error.to_string().contains("without quotes"), "{error}");
        let error = settings().read_toml("default_replication = \n", "m").unwrap_err();
        assert!(error.to_string().starts_with("m:1: "), "{error}");
    }

    #[test]
    fn hadoop_names_set_the_same_key() {
        let mut settings = settings();
        settings.set("dfs.namenode.fs-limits.min-block-size=512").unwrap();
        assert_eq!(settings.number("min_block_size"), 512);
        settings.set("dfs.heartbeat.interval=1").unwrap();
        assert_eq!(settings.number("heartbeat_interval_ms"), 1_000);
        settings.set("default_block_size=64m").unwrap();
        assert_eq!(settings.number("default_block_size"), 64 << 20);
        assert!(settings.set("dfs.nonsense=1").is_err());
    }

    /// Hadoop has two words for a scanner's default and for never, and ours has one.
    #[test]
    fn under_hadoops_name_a_scanners_value_means_what_it_means_there() {
        const HOUR: u64 = 3_600_000;
        let mut settings = Settings::defaults(super::super::DATA);
        let mut period = |assignment: &str| {
            settings.set(assignment).unwrap();
            settings.number("block_scan_period_ms")
        };
        assert_eq!(period("dfs.datanode.scan.period.hours=0"), 504 * HOUR);
        assert_eq!(period("dfs.datanode.scan.period.hours=-1"), 0);
        assert_eq!(period("dfs.datanode.scan.period.hours=12"), 12 * HOUR);
        assert_eq!(period("block_scan_period_ms=0"), 0);
        settings.read_toml("\"dfs.datanode.scan.period.hours\" = 0\n", "d").unwrap();
        assert_eq!(settings.number("block_scan_period_ms"), 504 * HOUR);
        settings.read_toml("\"dfs.datanode.scan.period.hours\" = -1\n", "d").unwrap();
        assert_eq!(settings.number("block_scan_period_ms"), 0);
        assert!(settings.set("block_scan_period_ms=-1").is_err());
    }

    #[test]
    fn an_assignment_has_a_value() {
        let mut settings = settings();
        assert!(settings.set("dfs.blocksize").is_err());
    }
}
