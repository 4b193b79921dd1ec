//! The parts of a report: which bench, with what words.

use anyhow::bail;
use std::path::Path;

/// One bench of the report.
#[derive(Clone, Debug)]
pub struct Part {
    /// A word by which `--only` knows it, and the name of its files.
    pub name: &'static str,
    pub title: String,
    /// What its tables show.
    pub kind: Kind,
    /// What this program is called with.
    pub words: Vec<String>,
    /// The name of its picture, if it draws one.
    pub picture: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ceilings,
    /// Operations of one server.
    Operations,
    /// Operations of shapes beside each other.
    Shapes,
    NnThroughput,
    Memory,
    Reports,
    Failover,
}

impl Part {
    pub fn command(&self) -> String {
        format!("clover bench {}", self.words.join(" "))
    }
}

/// How long and how often.
struct Size {
    seconds: &'static str,
    rounds: &'static str,
    /// Connections, and calls in flight on each.
    loads: &'static [(&'static str, u32, u32)],
    members: &'static str,
    shape_ops: &'static str,
    nn_ops: &'static str,
    nn_count: &'static str,
    files: &'static str,
    blocks: &'static str,
    report_seconds: &'static str,
    runs: &'static str,
}

const QUICK: Size = Size {
    seconds: "2",
    rounds: "1",
    loads: &[("metadata", 8, 16)],
    members: "2",
    shape_ops: "create,stat",
    nn_ops: "create,file-status",
    nn_count: "10000",
    files: "1000000",
    blocks: "100000",
    report_seconds: "3",
    runs: "3",
};

const FULL: Size = Size {
    seconds: "5",
    rounds: "3",
    loads: &[("metadata-1", 1, 1), ("metadata-16", 8, 2), ("metadata-128", 8, 16), ("metadata-512", 8, 64)],
    members: "2,3,4",
    shape_ops: "create,mkdir,rename,delete,stat,open",
    nn_ops: "create,mkdirs,open,file-status,rename,delete",
    nn_count: "50000",
    files: "10000000",
    blocks: "300000",
    report_seconds: "10",
    runs: "20",
};

const ALL_OPS: &str = "create,mkdir,rename,delete,stat,open,list,mix";

/// The parts that are asked for; all of them if `only` names none. `out`: the directory of the report.
///
/// # Errors
/// `only` names a part that there is not.
pub fn chosen(
    is_quick: bool,
    hadoop: Option<&Path>,
    out: &Path,
    only: &[String],
) -> anyhow::Result<Vec<Part>> {
    let all = all(if is_quick { &QUICK } else { &FULL }, hadoop, out);
    let names: Vec<&str> = all.iter().map(|part| part.name).collect();
    if let Some(wrong) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let hint = if hadoop.is_none() { "; nn-throughput wants --hadoop" } else { "" };
        bail!("there is no part {wrong}: the parts are {}{hint}", names.join(", "));
    }
    Ok(all.into_iter().filter(|part| only.is_empty() || only.iter().any(|name| name == part.name)).collect())
}

/// The words of a command line.
struct Words(Vec<String>);

impl Words {
    fn of(text: &str) -> Self {
        Self(text.split(' ').map(str::to_owned).collect())
    }

    fn with(mut self, option: &str, value: impl ToString) -> Self {
        self.0.extend([option.to_owned(), value.to_string()]);
        self
    }
}

fn all(size: &Size, hadoop: Option<&Path>, out: &Path) -> Vec<Part> {
    let out = out.display();
    // Each has its own: what a part that failed has left does not stop the next one.
    let work = |name: &str| format!("{out}/work-{name}");
    let part = |name, title: &str, kind, words: Words| Part {
        name,
        title: title.to_owned(),
        kind,
        words: words.0,
        picture: None,
    };
    let beside = |words: Words, shapes: Option<&str>| match (hadoop, shapes) {
        (None, _) => words,
        (Some(jars), None) => words.with("--hadoop", jars.display()),
        (Some(jars), Some(shapes)) => words.with("--hadoop", jars.display()).with("--beside", shapes),
    };
    let shapes = |name: &str, ops: &str, members: &str, connections: u32, in_flight: u32| {
        Words::of("meta --groups 1 --only-saturated --json")
            .with("--members", members)
            .with("--op", ops)
            .with("--connections", connections)
            .with("--in-flight", in_flight)
            .with("--seconds", size.seconds)
            .with("--rounds", size.rounds)
            .with("--work-dir", work(name))
    };

    let words = Words::of("ceilings --json").with("--dir", &out).with("--seconds", size.seconds);
    let mut parts = vec![part("ceilings", "What the machine can do", Kind::Ceilings, words)];
    let words = Words::of("meta --op null --json --in-flight 16 --count 400000");
    parts.push(part("null", "Calls that do nothing, 128 in flight", Kind::Operations, words));
    for &(name, connections, in_flight) in size.loads {
        let picture = format!("{name}.svg");
        let words = shapes(name, ALL_OPS, "1", connections, in_flight);
        let words = beside(words.with("--svg", format!("{out}/{picture}")), Some("alone"));
        let title = format!("Metadata operations of one server, {} in flight", connections * in_flight);
        parts.push(Part { picture: Some(picture), ..part(name, &title, Kind::Shapes, words) });
    }
    let words = beside(shapes("standbys", size.shape_ops, size.members, 8, 64), Some("ha"));
    parts.push(part("standbys", "With standbys, and Hadoop's HA, 512 in flight", Kind::Shapes, words));
    if let Some(jars) = hadoop {
        let words = Words::of("nn-throughput --json --threads 16")
            .with("--dir", work("nn-throughput"))
            .with("--hadoop", jars.display())
            .with("--op", size.nn_ops)
            .with("--count", size.nn_count)
            .with("--rounds", size.rounds);
        let title = "Hadoop's own load generator, NNThroughputBenchmark, 16 threads on one connection";
        parts.push(part("nn-throughput", title, Kind::NnThroughput, words));
    }
    let words = Words::of("memory --json").with("--files", size.files);
    parts.push(part("memory", "Memory of a file with one block and three locations", Kind::Memory, words));
    let words = Words::of("reports --json")
        .with("--dir", work("reports"))
        .with("--blocks", size.blocks)
        .with("--seconds", size.report_seconds)
        .with("--rounds", size.rounds);
    let title = "Full block reports, and what clients feel meanwhile";
    parts.push(part("reports", title, Kind::Reports, beside(words, None)));
    let words = Words::of("failover --json --fault kill --members 4").with("--runs", size.runs);
    let title = "The active is killed under load: one active, three standbys, the native client";
    parts.push(part("failover", title, Kind::Failover, words));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_there_is_not_is_refused_with_the_names_of_those_there_are() {
        let only = ["memory".to_owned(), "colour".to_owned()];
        let Err(error) = chosen(true, None, Path::new("out"), &only) else { panic!("there is no such part") };
        let told = error.to_string();
        assert!(told.contains("no part colour") && told.contains("reports"), "{told}");
        let one = chosen(true, None, Path::new("out"), &only[..1]).unwrap();
        assert_eq!(
            one.iter().map(Part::command).collect::<Vec<_>>(),
            ["clover bench memory --json --files 1000000"]
        );
    }

    #[test]
    fn hadoop_stands_beside_where_it_is_named() {
        let count = |hadoop| all(&FULL, hadoop, Path::new("out")).len();
        assert_eq!(count(Some(Path::new("jars"))), count(None) + 1);
        let with = all(&QUICK, Some(Path::new("jars")), Path::new("out"));
        let beside = with.iter().filter(|part| part.words.contains(&"jars".to_owned()));
        let names: Vec<_> = beside.map(|part| part.name).collect();
        assert_eq!(names, ["metadata", "standbys", "nn-throughput", "reports"]);
    }

    /// The words are those that the benches know.
    #[test]
    fn every_part_is_a_command_that_this_program_takes() {
        use clap::Parser;
        for size in [&QUICK, &FULL] {
            for hadoop in [None, Some(Path::new("jars"))] {
                for part in all(size, hadoop, Path::new("out")) {
                    let words = std::iter::once("clover-bench".to_owned()).chain(part.words.clone());
                    let parsed = crate::Args::try_parse_from(words);
                    assert!(parsed.is_ok(), "{}: {}", part.command(), parsed.err().unwrap());
                }
            }
        }
    }
}
