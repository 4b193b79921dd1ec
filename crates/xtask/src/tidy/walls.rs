//! Compares the table of `ARCHITECTURE.md`, which says which crate may depend on which, with the manifests.

use super::{Finding, workspace::Workspace};
use cargo_metadata::DependencyKind;

/// The crates that nobody may use, not even in tests; `sim` is none of them, because its disks serve the tests of
/// the crates below it.
const USED_BY_NOBODY: [&str; 3] = ["cli", "xtask", "fuzz"];

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let table = &workspace.table;
    for (name, this) in &workspace.crates {
        let manifest = this.manifest(&workspace.root);
        let Some(allowed) = table.allowed.get(name) else {
            findings.push(Finding::new(
                "ARCHITECTURE.md",
                format!("the dependency table has no row for `{name}`"),
            ));
            continue;
        };
        for (other, kind) in &this.depends_on {
            let fine = match kind {
                DependencyKind::Development => !USED_BY_NOBODY.contains(&other.as_str()),
                _ => other == "base" || allowed.contains(other),
            };
            if !fine {
                findings.push(Finding::new(
                    &manifest,
                    format!(
                        "`{name}` may not depend on `{other}`: the table in ARCHITECTURE.md does not say so"
                    ),
                ));
            }
        }
    }
    for (name, other) in unused(workspace) {
        findings.push(Finding::new(
            "ARCHITECTURE.md",
            format!(
                "`{name}` may depend on `{other}` by the table, and no line of it does: take the edge away"
            ),
        ));
    }
    for (name, allowed) in &table.allowed {
        for unknown in
            std::iter::once(name).chain(allowed).filter(|it| !workspace.crates.contains_key(it.as_str()))
        {
            findings.push(Finding::new(
                "ARCHITECTURE.md",
                format!("the dependency table names `{unknown}`, which is no crate of the workspace"),
            ));
        }
    }
}

/// The edges that the table allows and the sources do not use. Tests may use others anyway.
fn unused(workspace: &Workspace) -> Vec<(&str, &str)> {
    let edges = workspace
        .table
        .allowed
        .iter()
        .flat_map(|(name, allowed)| allowed.iter().map(move |other| (name.as_str(), other.as_str())));
    let uses = |name: &str, other: &str| {
        let (root, path) = (if name == "fuzz" { "fuzz/" } else { "crates/" }, format!("{other}::"));
        let source = if name == "fuzz" { root.to_owned() } else { format!("{root}{name}/src/") };
        let of_crate = workspace.sources.iter().filter(|text| text.path.starts_with(&source));
        of_crate.flat_map(|text| text.text.lines()).any(|line| names(line, &path))
    };
    edges.filter(|(name, other)| !uses(name, other)).collect()
}

/// Whether `path` begins a word of this line, outside of a comment.
fn names(line: &str, path: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    let is_word = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    code.match_indices(path).any(|(at, _)| is_word(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_by_a_path_that_begins_with_it() {
        assert!(names("use env::Clock;", "env::"));
        assert!(names("    let now = env::moment();", "env::"));
        assert!(!names("use std::env::args;", "env::"));
        assert!(!names("// env::Clock is another's", "env::"));
        assert!(!names("use my_env::Clock;", "env::"));
    }
}
