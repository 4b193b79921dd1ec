//! Documents point at things that exist.

use super::{Finding, workspace::Workspace};
use std::path::Path;

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    for document in &workspace.documents {
        let directory = Path::new(&document.path).parent().unwrap_or(Path::new(""));
        for (line, target) in links(&document.text) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if file.is_empty() || elsewhere || workspace.root.join(directory).join(file).exists() {
                continue;
            }
            findings.push(Finding::new(
                format!("{}:{line}", document.path),
                format!("the link to {file:?} leads nowhere"),
            ));
        }
    }
}

/// The targets of `[text](target)` outside of code, with their line numbers.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push((index + 1, &rest[..end]));
            rest = &rest[end..];
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "See [a](b.md) and [c](d.md#e).\n```\n[x](y)\n```\n[z](w)";
        assert_eq!(links(text), [(1, "b.md"), (1, "d.md#e"), (5, "w")]);
    }
}
