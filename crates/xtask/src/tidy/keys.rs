//! Every configuration key stands in the operators' document, with its default and Hadoop's name.

use super::{Finding, workspace::Workspace};

const DOCUMENT: &str = "docs/operating/configuration.md";
const TABLES: &[&str] = &["crates/cli/src/config/meta.rs", "crates/cli/src/config/data.rs"];

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let Some(document) = workspace.documents.iter().find(|document| document.path == DOCUMENT) else {
        findings.push(Finding::new(DOCUMENT, "is missing: it tells operators every key"));
        return;
    };
    for source in workspace.sources.iter().filter(|source| TABLES.contains(&source.path.as_str())) {
        let rows = rows(&source.text);
        if rows.is_empty() {
            findings.push(Finding::new(
                &source.path,
                "no row is read as `Key { name: …`: has its layout changed?",
            ));
        }
        for row in rows.iter().filter(|row| !document.text.contains(row.as_str())) {
            findings
                .push(Finding::new(DOCUMENT, format!("no row that begins `{row}`: {} has it", source.path)));
        }
    }
}

/// How the document's rows begin, from the rows of the table in the source.
fn rows(source: &str) -> Vec<String> {
    source
        .split("Key { name: \"")
        .skip(1)
        .filter_map(|row| {
            let (name, rest) = row.split_once('"')?;
            let (_, rest) = rest.split_once("hadoop: ")?;
            let hadoop =
                rest.strip_prefix("Some((\"").and_then(|rest| rest.split_once('"')).map(|(it, _)| it);
            let (_, rest) = rest.split_once("default: \"")?;
            let (default, _) = rest.split_once('"')?;
            let code = |text: &str| if text.is_empty() { "-".to_owned() } else { format!("`{text}`") };
            Some(format!("| `{name}` | {} | {} |", code(hadoop.unwrap_or_default()), code(default)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn rows_of_the_source_become_rows_of_the_document() {
        let source = r#"
            Key { name: "a_ms", hadoop: Some(("dfs.a", Seconds)), kind: Milliseconds { min: 1, max: 2 }, default: "3s",
                help: "A." },
            Key { name: "b", hadoop: None, kind: Text, default: "", help: "B." },"#;
        assert_eq!(rows(source), ["| `a_ms` | `dfs.a` | `3s` |", "| `b` | - | - |"]);
    }
}
