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
