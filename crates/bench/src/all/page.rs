//! The report, as a page of Markdown.

mod figures;
mod goals;
mod tables;

use super::{Outcome, TITLE, machine::Machine};
use tables::Table;

/// The page of what was measured so far.
pub fn of(machine: &Machine, is_quick: bool, has_hadoop: bool, outcomes: &[Outcome]) -> String {
    let mut page = format!("{TITLE}\n");
    page += match has_hadoop {
        true => {
            "Clover beside Apache Hadoop, on one machine, in one run, with the same load generator and the same durability: an answer to a \
             change means that it is on disk. Ratios count; absolute figures say little about another machine.\n\n"
        }
        false => "Clover alone. `--hadoop` puts Hadoop beside it.\n\n",
    };
    if is_quick {
        page += "This is the quick form: single short rounds, which differ by a third from one run to the next.\n\n";
    }
    let facts = machine.facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    page += &Table { head: vec!["machine", ""], rows: facts }.markdown();
    let failed = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_ref()?)));
    for (outcome, failure) in failed {
        page += &format!("\n**{} has failed**: {failure}\n", outcome.part.name);
    }
    let goals = goals::table(outcomes);
    if !goals.rows.is_empty() {
        page += &format!("\n## Goals\n\n{}", goals.markdown());
    }
    for outcome in outcomes {
        page += &section(outcome);
    }
    page
}

fn section(outcome: &Outcome) -> String {
    let part = &outcome.part;
    let mut text = format!("\n## {}\n\n", part.title);
    let table = tables::of(part.kind, &outcome.lines);
    text += &match table.rows.is_empty() {
        true => "Nothing was measured.\n".to_owned(),
        false => table.markdown(),
    };
    for line in &outcome.lines {
        text += &tables::left_out(line);
    }
    if let Some(picture) = part.picture.as_ref().filter(|_| outcome.failure.is_none()) {
        text += &format!("\n![{}]({picture})\n", part.title);
    }
    text + &format!("\n{} s, by\n\n```\n{}\n```\n", outcome.took.as_secs(), part.command())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all::parts::{Kind, Part};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn outcome(name: &'static str, kind: Kind, lines: Vec<Value>, failure: Option<&str>) -> Outcome {
        let words = vec!["meta".to_owned(), "--json".to_owned()];
        let part = Part { name, title: format!("The part {name}"), kind, words, picture: None };
        Outcome { part, lines, took: Duration::from_secs(7), failure: failure.map(str::to_owned) }
    }

    fn cell(op: &str, shape: &str, rate: f64, cpu_us: f64) -> Value {
        let figures = json!({
            "ops_per_second": rate, "ops_per_second_range": [rate, rate], "p50_us": 100.0, "p99_us": 900.0,
            "servers_cpu_us_per_op": cpu_us, "servers_cpu_us_per_op_range": [cpu_us, cpu_us],
        });
        json!({ "op": op, "shape": shape, "saturated": figures, "errors": 0.0 })
    }

    #[test]
    fn an_operation_stands_beside_hadoops_with_both_ratios_and_the_goal() {
        let lines = vec![cell("create", "1A", 60_000.0, 8.0), cell("create", "Hadoop", 15_000.0, 56.0)];
        let outcomes = [outcome("metadata", Kind::Shapes, lines, None)];
        let page = of(&Machine { facts: vec![("cores", "2".into())] }, true, true, &outcomes);
        assert!(page.contains("| create | 1A | 60,000 | 100 | 900 | 8.0 | 4.0 x | 1/7.0 |"), "{page}");
        assert!(page.contains("| create | Hadoop | 15,000 | 100 | 900 | 56.0 |  |  |"), "{page}");
        assert!(page.contains("| CPU of create, of Hadoop's | 1/10 | 1/7.0 | missed |"), "{page}");
        assert!(page.contains("clover bench meta --json"), "{page}");
    }

    #[test]
    fn a_failure_and_what_was_left_out_are_told() {
        let lines = vec![json!({ "shape": "Hadoop HA", "op": null, "left_out": "no memory" })];
        let failed = outcome("standbys", Kind::Shapes, lines, Some("it ended with 1"));
        let page = of(&Machine { facts: Vec::new() }, false, true, &[failed]);
        assert!(page.contains("**standbys has failed**: it ended with 1"), "{page}");
        assert!(page.contains("Left out: Hadoop HA: no memory"), "{page}");
        assert!(page.contains("Nothing was measured."), "{page}");
    }
}
