//! The edges between the files of a crate: which file names which other one, found by the paths in the source.
//!
//! A name is followed through re-exports to the file that has it, so that `crate::OlderCalls` leads to `older_calls.rs` and not to
//! `lib.rs`. A file and the files below it are one room: what a file takes from the one above it is not counted. Tests are left out. A method that is called on a value, and a name that only a macro makes, leave no path and are not seen.

use anyhow::{Context as _, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::{
    Attribute, Item, ItemUse, UseTree,
    visit::{self, Visit},
};

/// A module's path within its crate; the crate's root is empty.
type Path = Vec<String>;

/// So many re-exports are followed.
const HOPS_MAX: usize = 8;

/// The files of one crate. A module written inside of a file belongs to that file.
#[derive(Default)]
pub struct Modules {
    files: BTreeMap<Path, File>,
}

struct File {
    name: String,
    /// Names that its `use` declarations bring in, and from where.
    imported: BTreeMap<String, Path>,
    /// Every path in it that leads into the crate, from the crate's root.
    named: BTreeSet<Path>,
}

impl Modules {
    /// Reads one source file. `name` is its path below `src`, such as `ops/create.rs`.
    pub fn add(&mut self, name: &str, text: &str) -> Result<()> {
        let file = syn::parse_file(text).with_context(|| name.to_owned())?;
        let mut reader = Reader { at: path_of(name), imported: BTreeMap::new(), named: BTreeSet::new() };
        reader.visit_file(&file);
        let Reader { at, imported, named } = reader;
        self.files.insert(at, File { name: name.to_owned(), imported, named });
        Ok(())
    }

    /// For each file, the other files of the crate that it names, but for those above it.
    pub fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let edges_of = |at: &Path, file: &File| {
            let others = file.named.iter().filter_map(|path| self.home(path, HOPS_MAX));
            others.filter(|(other, _)| !at.starts_with(other)).map(|(_, name)| name).collect()
        };
        self.files.iter().map(|(at, file)| (file.name.as_str(), edges_of(at, file))).collect()
    }

    /// The module and file that has what this path names.
    fn home(&self, path: &[String], hops: usize) -> Option<(&[String], &str)> {
        let (at, file) =
            (0..=path.len()).rev().find_map(|length| self.files.get_key_value(&path[..length]))?;
        let rest = &path[at.len()..];
        let elsewhere = rest.first().and_then(|name| file.imported.get(name)).filter(|_| hops > 0);
        match elsewhere {
            Some(imported) => {
                let next: Path = imported.iter().chain(&rest[1..]).cloned().collect();
                self.home(&next, hops - 1)
            }
            None => Some((at, &file.name)),
        }
    }
}

fn path_of(name: &str) -> Path {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let mut parts: Path = stem.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || matches!(stem, "lib" | "main") {
        parts.pop();
    }
    parts
}

struct Reader {
    at: Path,
    imported: BTreeMap<String, Path>,
    named: BTreeSet<Path>,
}

impl Reader {
    /// From the crate's root, if the path says that it leads into the crate.
    fn resolve(&self, segments: &[String]) -> Option<Path> {
        let mut base = match segments.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.at.clone(),
            _ => return None,
        };
        let mut rest = &segments[1..];
        if segments[0] == "super" {
            base.pop()?;
        }
        while rest.first().is_some_and(|segment| segment == "super") {
            base.pop()?;
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// A path that begins with a name of its own: a module below this one, or something that was imported.
    fn resolve_bare(&self, segments: &[String]) -> Path {
        match self.imported.get(&segments[0]) {
            Some(imported) => imported.iter().chain(&segments[1..]).cloned().collect(),
            None => self.at.iter().chain(segments).cloned().collect(),
        }
    }

    fn note(&mut self, segments: &[String]) {
        let path = match self.resolve(segments) {
            Some(path) => path,
            // A path that is no module below this one ends in this very file, and makes no edge.
            None if segments.len() > 1 => self.resolve_bare(segments),
            None => return,
        };
        self.named.insert(path);
    }

    fn import(&mut self, before: &mut Path, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
                before.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.bring_in(last, &before.clone());
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.bring_in(name.clone(), &before.iter().cloned().chain([name]).collect::<Path>());
            }
            UseTree::Rename(rename) => {
                let from: Path = before.iter().cloned().chain([rename.ident.to_string()]).collect();
                self.bring_in(rename.rename.to_string(), &from);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(before, tree)),
            UseTree::Glob(_) => self.note(&before.clone()),
        }
    }

    fn bring_in(&mut self, name: String, from: &[String]) {
        let path = match self.resolve(from) {
            Some(path) => path,
            // `use calls::decode` in the file of the module above.
            None => self.at.iter().chain(from).cloned().collect(),
        };
        self.named.insert(path.clone());
        if !(from.len() == 1 && path.last() == Some(&name)) {
            self.imported.insert(name, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(it) => &it.attrs,
            Item::Use(it) => &it.attrs,
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Path = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.read_tokens(item.tokens.clone());
    }
}

impl Reader {
    /// Inside of a macro's brackets only paths that begin with `crate`, `self` or `super` are known for paths.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_path(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end_path(&mut path);
                    self.read_tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.end_path(&mut path);
                    colons = 0;
                }
            }
        }
        self.end_path(&mut path);
    }

    fn end_path(&mut self, path: &mut Path) {
        let segments = std::mem::take(path);
        if segments.len() > 1 && self.resolve(&segments).is_some() {
            self.note(&segments);
        }
    }
}

/// `#[cfg(test)]`, alone or with something else.
fn is_for_tests(attribute: &Attribute) -> bool {
    let mut is_test = false;
    if attribute.path().is_ident("cfg") {
        let _ = attribute.parse_nested_meta(|meta| {
            is_test |= meta.path.is_ident("test");
            Ok(())
        });
    }
    is_test
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let mut modules = Modules::default();
        for (name, text) in files {
            modules.add(name, text).unwrap();
        }
        let edges = modules.edges();
        edges.iter().flat_map(|(from, to)| to.iter().map(move |to| format!("{from} -> {to}"))).collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_has_the_name() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::c::Thing; fn f() { super::b::g() }"),
            ("b/mod.rs", "mod c; pub fn g() {}"),
            ("b/c.rs", "pub struct Thing;"),
        ];
        assert_eq!(edges(&files), ["a.rs -> b/c.rs", "a.rs -> b/mod.rs"]);
    }

    #[test]
    fn a_name_is_followed_through_its_re_export() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::{Thing, inner as other};"),
            ("a.rs", "use crate::Thing; type T = crate::other::Deep;"),
            ("b.rs", "pub mod inner; pub struct Thing;"),
            ("b/inner.rs", "pub struct Deep;"),
        ];
        assert_eq!(
            edges(&files),
            ["a.rs -> b.rs", "a.rs -> b/inner.rs", "lib.rs -> b.rs", "lib.rs -> b/inner.rs"]
        );
    }

    #[test]
    fn an_imported_module_is_the_start_of_a_path() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b; fn f() { b::inner::g(); println!(\"{}\", crate::b::h()) }"),
            ("b.rs", "pub mod inner; pub fn h() {}"),
            ("b/inner.rs", "pub fn g() {}"),
        ];
        assert_eq!(edges(&files), ["a.rs -> b.rs", "a.rs -> b/inner.rs"]);
    }

    #[test]
    fn tests_make_no_edges() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b::g; } #[cfg(test)] use crate::b;"),
            ("b.rs", "pub fn g() {}"),
        ];
        assert_eq!(edges(&files), Vec::<String>::new());
    }
}
