//! The dependency table of `ARCHITECTURE.md`, read as data.

use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// The dependencies that the table and the line about pure crates allow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// For each crate, the crates that it may depend on besides `base`.
    pub allowed: BTreeMap<String, BTreeSet<String>>,
    pub pure: BTreeSet<String>,
}

const HEADING: &str = "## The dependency table";
const PURE: &str = "**Pure crates**:";

impl Table {
    pub fn parse(document: &str) -> Result<Table> {
        let start = document.find(HEADING).with_context(|| format!("no heading {HEADING:?}"))?;
        let section = &document[start + HEADING.len()..];
        let section = section.split("\n## ").next().unwrap_or(section);

        let mut table = Table::default();
        for line in section.lines() {
            if let Some(rest) = line.strip_prefix(PURE) {
                // The names end with the sentence; prose may follow on the same line.
                table.pure = words(rest.split('.').next().unwrap_or(rest)).collect();
            }
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            // A row starts and ends with a bar, so the first and the last cell are empty.
            let ["", name, _purpose, allowed, _reason, ""] = cells[..] else { continue };
            let Some(name) = words(name).next() else { continue };
            if table.allowed.insert(name.clone(), words(allowed).collect()).is_some() {
                bail!("two rows for `{name}`");
            }
        }
        if table.allowed.is_empty() {
            bail!("no rows under {HEADING:?}");
        }
        if table.pure.is_empty() {
            bail!("no line that starts with {PURE:?}");
        }
        Ok(table)
    }
}

/// The words between backticks.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
# A house
| `not` | in | `the` | section |
## The dependency table
Everyone may use `base`.

| crate | purpose | may depend on | why |
| --- | --- | --- | --- |
| `base` | words | - | because |
| `rpc` | the `wire` | `proto` `env` | one |

**Pure crates**: `base` `proto`. No `tokio` in them.

## Glossary
| `word` | a | `b` | c |
";

    #[test]
    fn rows_and_pure_crates_are_read() {
        let table = Table::parse(DOCUMENT).unwrap();
        assert_eq!(table.allowed.keys().collect::<Vec<_>>(), ["base", "rpc"]);
        assert!(table.allowed["base"].is_empty());
        assert_eq!(table.allowed["rpc"].iter().collect::<Vec<_>>(), ["env", "proto"]);
        assert_eq!(table.pure.iter().collect::<Vec<_>>(), ["base", "proto"]);
    }

    #[test]
    fn a_document_without_the_table_is_an_error() {
        assert!(Table::parse("# A house").is_err());
        assert!(Table::parse("## The dependency table\nnothing").is_err());
        assert!(Table::parse(&DOCUMENT.replace("**Pure crates**", "Pure")).is_err());
    }

    #[test]
    fn two_rows_for_a_crate_are_an_error() {
        assert!(Table::parse(&DOCUMENT.replace("| `rpc`", "| `base`")).is_err());
    }
}
