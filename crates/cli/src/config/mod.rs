//! The configuration of each role: typed keys, parsed and checked once, passed down as plain structs.
//!
//! A key is one row of a table ([`meta::KEYS`], [`data::KEYS`]): its name, Hadoop's name where the meaning is
//! the same, its kind and range, its default and a sentence. Everything else follows from the row.

mod check;
mod convert;
pub mod data;
pub mod group;
mod hadoop;
#[cfg(test)]
mod hostile;
pub mod key;
pub mod loopback;
pub mod meta;
pub mod place;
mod scans;
pub mod settings;
pub mod table;

use clap::ValueEnum;
use key::{Key, Kind, Value};
use std::process::ExitCode;

/// The tables of a metadata server.
pub const META: &[&[Key]] = &[meta::KEYS, group::KEYS];
/// The keys of a data server.
pub const DATA: &[&[Key]] = &[data::KEYS];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Meta,
    Data,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Data => "data",
        }
    }

    fn tables(self) -> &'static [&'static [Key]] {
        match self {
            Self::Meta => META,
            Self::Data => DATA,
        }
    }
}

/// Whether a configuration file is that of a data server, by the keys in it.
pub fn is_of_data_server(text: &str) -> bool {
    check::role_of(text) == Role::Data
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only the keys of this role.
    role: Option<Role>,
    /// Print JSON, one object a key.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say all that is wrong with a server's file, without starting it.
    Check(check::Check),
    /// Print the servers' files for what Hadoop's core-site.xml and hdfs-site.xml say, and tell what became of each key.
    Convert(convert::Convert),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(Command::Check(check)) => return check::run(check),
        Some(Command::Convert(convert)) => return convert::run(convert),
        None => {}
    }
    let roles: &[(&str, &[&[Key]])] = match args.role {
        Some(Role::Meta) => &[("meta", META)],
        Some(Role::Data) => &[("data", DATA)],
        None => &[("meta", META), ("data", DATA)],
    };
    if args.json {
        let keys: Vec<_> =
            roles.iter().flat_map(|(role, tables)| in_order(tables).map(|key| as_json(role, key))).collect();
        println!("{}", serde_json::to_string_pretty(&keys)?);
        return Ok(ExitCode::SUCCESS);
    }
    for (role, tables) in roles {
        println!("# clover {role} --config FILE: every key with its default.\n");
        for key in in_order(tables) {
            print!("{}", as_toml(key));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every key of some tables. In a TOML file its own tables come last.
pub fn in_order<'a>(tables: &'a [&'a [Key]]) -> impl Iterator<Item = &'a Key> {
    let all = || tables.iter().copied().flatten();
    all().filter(|key| key.kind != Kind::Table).chain(all().filter(|key| key.kind == Kind::Table))
}

fn as_json(role: &str, key: &Key) -> serde_json::Value {
    serde_json::json!({
        "role": role,
        "key": key.name,
        "hadoop": key.hadoop.map(|(name, _)| name),
        "default": key.default,
        "range": key.kind.to_string(),
        "help": key.help,
    })
}

/// The key as it would stand in a file. Tables come last in a TOML file, so they are shown as a comment.
fn as_toml(key: &Key) -> String {
    let value = key.kind.parse(key.default, key::HadoopUnit::Same).expect("a default is a value of its kind");
    if key.kind == Kind::Table {
        return format!("# {}\n# [{}]\n# \"host\" = \"/rack\"\n\n", key.help, key.name);
    }
    let shown = shown(&value);
    let hadoop = key.hadoop.map(|(name, _)| format!("; Hadoop: {name}")).unwrap_or_default();
    format!("# {} ({}{hadoop})\n{} = {shown}\n\n", key.help, key.kind, key.name)
}

/// A value as it stands in a TOML file.
fn shown(value: &Value) -> String {
    let text = |text: &String| toml::Value::String(text.clone()).to_string();
    match value {
        Value::Text(one) => text(one),
        Value::Texts(texts) => format!("[{}]", texts.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Numbers(numbers) => {
            toml::Value::from(numbers.iter().map(|n| *n as i64).collect::<Vec<_>>()).to_string()
        }
        Value::Fraction(fraction) => toml::Value::from(*fraction).to_string(),
        Value::Table(rows) => {
            let rows: Vec<_> =
                rows.iter().map(|(key, value)| format!("{} = {}", text(key), text(value))).collect();
            format!("{{ {} }}", rows.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_the_manual_as_it_is_here() {
        let manual = include_str!("../../../../docs/operating/configuration.md");
        for key in in_order(&[META, DATA].concat()) {
            let quoted = |text: &str| if text.is_empty() { "-".to_owned() } else { format!("`{text}`") };
            let hadoop = quoted(key.hadoop.map(|(name, _)| name).unwrap_or_default());
            let row = format!("| `{}` | {hadoop} | {} | {} |", key.name, quoted(key.default), key.help);
            assert!(manual.contains(&row), "docs/operating/configuration.md lacks: {row}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read_back() {
        for tables in [META, DATA] {
            let text: String = in_order(tables).map(as_toml).collect();
            settings::Settings::defaults(tables).read_toml(&text, "printed").unwrap();
        }
    }
}
