//! The subject of the checks: the crates as cargo sees them, the sources and documents as text.

use super::table::Table;
use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

pub struct Workspace {
    pub metadata: Metadata,
    pub table: Table,
    /// The crates by short name (the crate's directory), which the table and the code use.
    pub crates: BTreeMap<String, Crate>,
    pub sources: Vec<Text>,
    pub documents: Vec<Text>,
    pub root: PathBuf,
}

pub struct Crate {
    pub package: Package,
    /// Short names of the workspace crates that it names in its `Cargo.toml`.
    pub depends_on: Vec<(String, DependencyKind)>,
}

impl Crate {
    /// The path of the crate's `Cargo.toml`, relative to the root.
    pub fn manifest(&self, root: &Path) -> String {
        let path = self.package.manifest_path.as_std_path();
        path.strip_prefix(root).unwrap_or(path).display().to_string()
    }
}

/// A file of the repository.
pub struct Text {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

impl Workspace {
    pub fn read(root: &Path) -> Result<Workspace> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .other_options(vec!["--locked".to_owned()])
            .exec()
            .context("cargo metadata (is Cargo.lock up to date?)")?;
        let map = fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
        let table = Table::parse(&map).context("ARCHITECTURE.md")?;
        let mut sources = Vec::new();
        collect(root, &root.join("crates"), "rs", &mut sources)?;
        collect(root, &root.join("fuzz"), "rs", &mut sources)?;
        let mut documents = Vec::new();
        collect(root, root, "md", &mut documents)?;
        let crates = crates(&metadata)?;
        Ok(Workspace { metadata, table, crates, sources, documents, root: root.to_owned() })
    }
}

/// A crate's short name: the directory that it stands in.
pub fn short_name(package: &Package) -> String {
    package.manifest_path.parent().and_then(|directory| directory.file_name()).unwrap_or_default().to_owned()
}

fn crates(metadata: &Metadata) -> Result<BTreeMap<String, Crate>> {
    let members = metadata.workspace_packages();
    let short: BTreeMap<&str, String> =
        members.iter().map(|package| (package.name.as_str(), short_name(package))).collect();
    let mut crates = BTreeMap::new();
    for package in members {
        let depends_on = package
            .dependencies
            .iter()
            .filter_map(|dependency| Some((short.get(dependency.name.as_str())?.clone(), dependency.kind)))
            .collect();
        crates.insert(short_name(package), Crate { package: package.clone(), depends_on });
    }
    Ok(crates)
}

/// Adds the files with this extension below `directory`, in order of their names. All files that `.gitignore` hides
/// (build output, fetched clients) stand under `target` or behind a dot.
fn collect(root: &Path, directory: &Path, extension: &str, found: &mut Vec<Text>) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .with_context(|| directory.display().to_string())?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, extension, found)?;
        } else if path.extension().is_some_and(|it| it == extension) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            found.push(Text { path, text });
        }
    }
    Ok(())
}
