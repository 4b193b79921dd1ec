//! Documents point at things that exist: files, headings in them, and messages that the program prints. A reader who begins
//! at the index comes to every one of them.

use super::{
    Finding,
    workspace::{Text, Workspace},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

/// The page on which readers of the documents begin.
const INDEX: &str = "docs/README.md";
/// Pages that quote what the program prints, and in how many columns of their tables, counted from the first.
const QUOTING: &[(&str, usize)] =
    &[("docs/operating/troubleshooting.md", 1), ("docs/operating/errors.md", 1), ("docs/glossary.md", 2)];
/// Shorter texts may stand anywhere by chance, and are not looked for.
const FRAGMENT_CHARACTERS_MIN: usize = 4;

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let pages: BTreeMap<&str, &Text> =
        workspace.documents.iter().map(|page| (page.path.as_str(), page)).collect();
    for document in &workspace.documents {
        for (line, target) in links(&document.text) {
            let Some((file, anchor)) = target_of(&document.path, target) else { continue };
            let place = || format!("{}:{line}", document.path);
            if !workspace.root.join(&file).exists() {
                findings.push(Finding::new(place(), format!("the link to {target:?} leads nowhere")));
            } else if let (Some(anchor), Some(page)) = (anchor, pages.get(file.as_str()))
                && !anchors(&page.text).contains(anchor)
            {
                findings.push(Finding::new(place(), format!("{file} has no heading for #{anchor}")));
            }
        }
    }
    for page in unreached(&pages) {
        findings.push(Finding::new(page, format!("no way of links leads here from {INDEX}: name it there")));
    }
    quotes(workspace, &pages, findings);
}

/// The file, relative to the root, and the heading in it; `None` for what is elsewhere.
fn target_of<'a>(document: &str, target: &'a str) -> Option<(String, Option<&'a str>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    if file.is_empty() {
        return Some((document.to_owned(), anchor));
    }
    let directory = Path::new(document).parent().unwrap_or(Path::new(""));
    Some((plain(&directory.join(file)), anchor))
}

/// Without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts.to_string_lossy().replace('\\', "/")
}

/// The targets of `[text](target)` outside of code, with their line numbers.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let mut rest = text;
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push((line, &rest[..end]));
            rest = &rest[end..];
        }
    }
    found
}

/// The lines outside of blocks of code, which may be indented in lists.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((index + 1, line))
    })
}

/// The anchors of a page's headings, made as GitHub makes them: small letters, digits, `-` and `_`, spaces as `-`,
/// and a number behind a name that comes again.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let Some((_, heading)) = heading.split_once(' ') else { continue };
        let name: String = shown(heading.trim())
            .to_lowercase()
            .chars()
            .filter_map(|letter| match letter {
                ' ' => Some('-'),
                letter => (letter.is_alphanumeric() || "-_".contains(letter)).then_some(letter),
            })
            .collect();
        let again = (1..).map(|number| format!("{name}-{number}"));
        let name = std::iter::once(name.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(name);
    }
    found
}

/// A heading as it is shown: of a link its text.
fn shown(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, link)) = rest.split_once("](") {
        text += &before.replace('[', "");
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    text + rest
}

/// The pages of `docs` to which no way of links leads from the index.
fn unreached<'a>(pages: &BTreeMap<&'a str, &Text>) -> Vec<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![INDEX.to_owned()];
    while let Some(path) = waiting.pop() {
        let Some(page) = pages.get(path.as_str()) else { continue };
        if reached.insert(path.clone()) {
            let targets = links(&page.text).into_iter().filter_map(|(_, target)| target_of(&path, target));
            waiting.extend(targets.map(|(file, _)| file));
        }
    }
    pages.keys().copied().filter(|path| path.starts_with("docs/") && !reached.contains(*path)).collect()
}

/// Checks that some crate prints the texts that these pages quote: a reader who looks for a message or a word finds
/// the one that there is.
fn quotes(workspace: &Workspace, pages: &BTreeMap<&str, &Text>, findings: &mut Vec<Finding>) {
    let sources: Vec<String> = workspace
        .sources
        .iter()
        .filter(|source| source.path.starts_with("crates/") && source.path.contains("/src/"))
        .map(|source| on_one_line(&source.text))
        .collect();
    for (path, columns) in QUOTING {
        let Some(page) = pages.get(path) else {
            findings.push(Finding::new(*path, "is missing: it tells readers what is printed"));
            continue;
        };
        for (line, fragment) in fragments(&page.text, *columns) {
            if !sources.iter().any(|source| source.contains(fragment)) {
                let sentence = format!(
                    "no crate prints {fragment:?} (any more): quote what is printed, with … for what varies"
                );
                findings.push(Finding::new(format!("{path}:{line}"), sentence));
            }
        }
    }
}

/// Texts that go on behind a `\` at a line's end, put together.
fn on_one_line(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        match line.strip_suffix('\\') {
            Some(begun) => {
                text += begun;
                let mut next = lines.next().unwrap_or_default().trim_start();
                while let Some(begun) = next.strip_suffix('\\') {
                    text += begun;
                    next = lines.next().unwrap_or_default().trim_start();
                }
                text += next;
            }
            None => text += line,
        }
        text.push('\n');
    }
    text
}

/// The pieces, between `…`, of what stands in quotes of code in the first columns of a table.
fn fragments(text: &str, columns: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let cells = text.strip_prefix('|').into_iter().flat_map(|row| row.split('|').take(columns));
        for quoted in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            let pieces = quoted.split('…').map(|piece| piece.trim_matches([' ', '.', ',', ';', ':']));
            let pieces = pieces.filter(|piece| piece.chars().count() >= FRAGMENT_CHARACTERS_MIN);
            found.extend(pieces.map(|piece| (line, piece)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "See [a](b.md) and [c](d.md#e).\n```\n[x](y)\n```\n[z](w)";
        assert_eq!(links(text), [(1, "b.md"), (1, "d.md#e"), (5, "w")]);
    }

    #[test]
    fn targets_are_relative_to_their_page() {
        for (target, expected) in [
            ("../b.md#c", Some(("docs/b.md", Some("c")))),
            ("#c", Some(("docs/x/a.md", Some("c")))),
            ("y/z.md", Some(("docs/x/y/z.md", None))),
            ("https://example.org/#c", None),
        ] {
            let found = target_of("docs/x/a.md", target);
            let expected = expected.map(|(file, anchor)| (file.to_owned(), anchor));
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text = "# A group's *way*: `x_y`\n## What happens when …\n```\n# no heading\n```\n## Twice\n### Twice\n## See [it](there.md)";
        let expected = ["a-groups-way-x_y", "see-it", "twice", "twice-1", "what-happens-when-"];
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_page_that_no_link_leads_to_is_found() {
        let text = |path: &str, text: &str| Text { path: path.into(), text: text.into() };
        let pages = [
            text(INDEX, "[a](a.md) [out](../OTHER.md)"),
            text("docs/a.md", "[b](b/b.md#c)"),
            text("docs/b/b.md", "[index](../README.md)"),
            text("docs/b/lonely.md", "[b](b.md)"),
            text("OTHER.md", ""),
        ];
        let pages = pages.iter().map(|page| (page.path.as_str(), page)).collect();
        assert_eq!(unreached(&pages), ["docs/b/lonely.md"]);
    }

    #[test]
    fn messages_are_looked_for_in_pieces() {
        let text =
            "| `… holds no cluster; make …` and `no` | `this is` said | `not this` |\n`not in a table`";
        assert_eq!(fragments(text, 1), [(1, "holds no cluster; make")]);
        assert_eq!(fragments(text, 2), [(1, "holds no cluster; make"), (1, "this is")]);
        let source = "say(\"one \\\n     two \\\n  three\")\nnext";
        assert_eq!(on_one_line(source), "say(\"one two three\")\nnext\n");
    }
}
