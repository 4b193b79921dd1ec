//! Files of a crate that name each other in a circle cannot be read, moved or tested one by one. `crates/xtask/loops.txt` records those
//! that there are; none may be added, and one that has opened leaves the record.

use super::{Finding, modules::Modules, workspace::Workspace};
use anyhow::{Context as _, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

const RECORD: &str = "crates/xtask/loops.txt";
const HEAD: &str = "# Files that name each other in a circle, by crate: `cargo xtask loops` writes this. A line may only become shorter.\n";

/// For each crate its loops, each of at least two files.
type Loops = BTreeMap<String, Vec<BTreeSet<String>>>;

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) -> Result<String> {
    let found = loops_of(workspace)?;
    let text = fs::read_to_string(workspace.root.join(RECORD)).context(RECORD)?;
    compare(&found, &parse(&text), findings);
    let files: usize = found.values().flatten().map(BTreeSet::len).sum();
    let largest = found.values().flatten().map(BTreeSet::len).max().unwrap_or(0);
    Ok(format!("{files} files stand in {} loops, the largest of {largest}", found.values().flatten().count()))
}

/// Writes the record anew.
pub fn record(workspace: &Workspace) -> Result<()> {
    let found = loops_of(workspace)?;
    let mut text = HEAD.to_owned();
    for (name, loops) in &found {
        for files in loops {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            println!("{name}: a loop of {} files", files.len());
            text += &format!("{name}: {}\n", files.join(" "));
        }
    }
    fs::write(workspace.root.join(RECORD), text).context(RECORD)
}

fn loops_of(workspace: &Workspace) -> Result<Loops> {
    let mut found = Loops::new();
    for name in workspace.crates.keys() {
        let source = format!("crates/{name}/src/");
        let mut modules = Modules::default();
        for text in &workspace.sources {
            if let Some(file) = text.path.strip_prefix(&source).filter(|file| !is_test(file)) {
                modules.add(file, &text.text).with_context(|| name.clone())?;
            }
        }
        let loops = circles(&modules.edges());
        if !loops.is_empty() {
            found.insert(name.clone(), loops);
        }
    }
    Ok(found)
}

fn is_test(file: &str) -> bool {
    file.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Sets of files each of which leads to every other one of its set.
fn circles(edges: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reachable(edges, file))).collect();
    let mut loops: Vec<BTreeSet<String>> = Vec::new();
    for (file, reached) in &reach {
        if loops.iter().any(|files| files.contains(*file)) {
            continue;
        }
        let back = reached.iter().filter(|other| reach.get(**other).is_some_and(|back| back.contains(file)));
        let files: BTreeSet<String> =
            back.map(|other| (*other).to_owned()).chain([(*file).to_owned()]).collect();
        if files.len() > 1 {
            loops.push(files);
        }
    }
    loops
}

fn reachable<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(edges.get(file).into_iter().flatten());
        }
    }
    reached
}

fn parse(text: &str) -> Loops {
    let mut loops = Loops::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, files)) = line.split_once(": ") else { continue };
        loops.entry(name.to_owned()).or_default().push(files.split(' ').map(str::to_owned).collect());
    }
    loops
}

fn compare(found: &Loops, recorded: &Loops, findings: &mut Vec<Finding>) {
    for (name, loops) in found {
        let known: Vec<&BTreeSet<String>> = recorded.get(name).into_iter().flatten().collect();
        for files in loops {
            if known.iter().any(|known| files.is_subset(known)) {
                continue;
            }
            let fresh = files.iter().filter(|file| !known.iter().any(|known| known.contains(*file)));
            let fresh: Vec<&str> = fresh.map(String::as_str).collect();
            let what = match fresh[..] {
                [] => "two loops of files have become one".to_owned(),
                _ => format!(
                    "{} now stand(s) in a loop of {} files that name each other",
                    fresh.join(", "),
                    files.len()
                ),
            };
            findings.push(Finding::new(
                format!("crates/{name}"),
                format!("{what}: move what both need into a file below them"),
            ));
        }
    }
    let is_open = |name: &String, file: &String| {
        !found.get(name).into_iter().flatten().any(|files| files.contains(file))
    };
    for (name, loops) in recorded {
        let open: Vec<&str> =
            loops.iter().flatten().filter(|file| is_open(name, file)).map(String::as_str).collect();
        if !open.is_empty() {
            findings.push(Finding::new(
                RECORD,
                format!("{name}: {} stand(s) in no loop any more; run `cargo xtask loops`", open.join(", ")),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(&'static str, &[&'static str])]) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
        pairs.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect()
    }

    fn findings(found: &str, recorded: &str) -> Vec<String> {
        let mut findings = Vec::new();
        compare(&parse(found), &parse(recorded), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn circles_are_found_and_lines_are_not() {
        let edges = edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &["e"]), ("e", &[])]);
        assert_eq!(circles(&edges), [["a", "b", "c"].map(str::to_owned).into()]);
    }

    #[test]
    fn a_loop_may_become_smaller_and_not_larger() {
        assert_eq!(findings("x: a b", "x: a b"), Vec::<String>::new());
        assert!(findings("x: a b c", "x: a b")[0].contains("c now stand(s) in a loop of 3 files"));
        assert!(findings("x: a b c d", "x: a b\nx: c d")[0].contains("have become one"));
        assert!(findings("x: a b", "x: a b c")[0].contains("x: c stand(s) in no loop any more"));
        assert!(findings("y: a b", "")[0].starts_with("crates/y"));
    }
}
