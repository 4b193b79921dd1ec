//! The pure crates stay pure: nothing among their dependencies reaches the world, and clippy watches the
//! standard library for them.

use super::{
    Finding,
    workspace::{Workspace, short_name},
};
use cargo_metadata::{DependencyKind, Metadata, Package, PackageId, TargetKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// Packages that bring a runtime, a system call, a clock or a source of randomness. `libc` counts, because a crate
/// that links it can do all of these.
const WORLDLY: &[&str] = &[
    "async-io",
    "async-std",
    "axum",
    "chrono",
    "clover-env",
    "fastrand",
    "futures",
    "getrandom",
    "hyper",
    "libc",
    "mio",
    "nix",
    "parking_lot",
    "rand",
    "rustix",
    "smol",
    "socket2",
    "time",
    "tokio",
    "tracing",
];

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    for name in &workspace.table.pure {
        let Some(this) = workspace.crates.get(name) else {
            findings
                .push(Finding::new("ARCHITECTURE.md", format!("`{name}` is called pure and is no crate")));
            continue;
        };
        for (package, through) in linked_into(&workspace.metadata, &this.package.id) {
            if WORLDLY.contains(&package.name.as_str()) {
                findings.push(Finding::new(
                    format!("crates/{name}/Cargo.toml"),
                    format!("`{name}` is pure and may not link `{}` (by way of `{through}`)", package.name),
                ));
            }
        }
    }
    check_clippy(workspace, findings);
}

/// All packages that end up in the crate's own code, with the one that brought each: not build scripts and
/// not procedural macros, which run in the compiler.
fn linked_into<'a>(metadata: &'a Metadata, start: &PackageId) -> Vec<(&'a Package, String)> {
    let packages: BTreeMap<&PackageId, &Package> = metadata.packages.iter().map(|it| (&it.id, it)).collect();
    let nodes: BTreeMap<&PackageId, _> =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| (&node.id, node)).collect();
    let mut seen = BTreeSet::from([start]);
    let mut waiting = vec![start];
    let mut found = Vec::new();
    while let Some(id) = waiting.pop() {
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            let Some((&id, &package)) = packages.get_key_value(&dependency.pkg) else { continue };
            let normal = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            let macros = package.targets.iter().any(|target| target.kind.contains(&TargetKind::ProcMacro));
            if normal && !macros && seen.insert(id) {
                found.push((package, short_name(packages[&node.id])));
                waiting.push(id);
            }
        }
    }
    found
}

/// Every pure crate carries the same `clippy.toml`, that of `base`; clippy only reads the one nearest to
/// the crate, so they are copies.
fn check_clippy(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let read = |name: &str| fs::read_to_string(workspace.root.join(format!("crates/{name}/clippy.toml")));
    let Ok(model) = read("base") else {
        findings.push(Finding::new("crates/base/clippy.toml", "is missing: it bans clocks and hash order"));
        return;
    };
    for name in &workspace.table.pure {
        if read(name).ok().as_ref() != Some(&model) {
            findings.push(Finding::new(
                format!("crates/{name}/clippy.toml"),
                "must be a copy of crates/base/clippy.toml, which bans clocks and hash order in pure crates",
            ));
        }
    }
}
