//! Makes the report that people read from the pages of a snapshot diff.
//!
//! A page names, directory by directory, what came and what went; the report tells it in the order of paths, with a
//! rename as one line. Hadoop's client puts it together in its `SnapshotDiffReportGenerator`; servers do for clients
//! that know no pages.

use crate::hdfs::{
    SnapshotDiffReportEntryProto, SnapshotDiffReportListingEntryProto as Entry,
    SnapshotDiffReportListingProto,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Hadoop's `DiffType`, as the report spells it.
pub const CREATED: &str = "+";
pub const MODIFIED: &str = "M";
pub const DELETED: &str = "-";
pub const RENAMED: &str = "R";

#[derive(Default)]
struct Children<'a> {
    created: Vec<&'a Entry>,
    deleted: Vec<&'a Entry>,
}

/// The report of all pages of one diff.
pub fn report(pages: &[SnapshotDiffReportListingProto]) -> Vec<SnapshotDiffReportEntryProto> {
    let is_from_earlier = pages.iter().any(|page| page.is_from_earlier);
    let mut children: BTreeMap<u64, Children<'_>> = BTreeMap::new();
    let mut renamed = BTreeSet::new();
    for entry in pages.iter().flat_map(|page| &page.created_entries) {
        children.entry(entry.dir_id).or_default().created.push(entry);
    }
    for entry in pages.iter().flat_map(|page| &page.deleted_entries) {
        children.entry(entry.dir_id).or_default().deleted.push(entry);
        if entry.target_path.is_some() {
            renamed.insert(entry.file_id());
        }
    }
    let mut modified: Vec<&Entry> = pages.iter().flat_map(|page| &page.modified_entries).collect();
    modified.sort_by_cached_key(|entry| components(&entry.fullpath));
    let mut report = Vec::new();
    for entry in modified {
        report.push(line(MODIFIED, &entry.fullpath, None));
        // A file has no children, but a file and a directory have no id in common either.
        if let Some(children) = children.get(&entry.dir_id) {
            add_children(&mut report, children, &renamed, is_from_earlier);
        }
    }
    report
}

fn add_children(
    report: &mut Vec<SnapshotDiffReportEntryProto>,
    children: &Children<'_>,
    renamed: &BTreeSet<u64>,
    is_from_earlier: bool,
) {
    let (came, went) = if is_from_earlier { (CREATED, DELETED) } else { (DELETED, CREATED) };
    for entry in children.created.iter().filter(|entry| !renamed.contains(&entry.file_id())) {
        report.push(line(came, &entry.fullpath, None));
    }
    for entry in &children.deleted {
        report.push(match &entry.target_path {
            Some(target) if is_from_earlier => line(RENAMED, &entry.fullpath, Some(target)),
            Some(target) => line(RENAMED, target, Some(&entry.fullpath)),
            None => line(went, &entry.fullpath, None),
        });
    }
}

/// Java compares names as signed bytes.
fn components(path: &[u8]) -> Vec<Vec<i8>> {
    if path.is_empty() {
        return Vec::new();
    }
    path.split(|byte| *byte == b'/').map(|name| name.iter().map(|byte| *byte as i8).collect()).collect()
}

fn line(label: &str, path: &Bytes, target: Option<&Bytes>) -> SnapshotDiffReportEntryProto {
    SnapshotDiffReportEntryProto {
        fullpath: path.clone(),
        modification_label: label.to_owned(),
        target_path: target.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(directory: u64, file: u64, path: &'static str, target: Option<&'static str>) -> Entry {
        Entry {
            fullpath: Bytes::from_static(path.as_bytes()),
            dir_id: directory,
            is_reference: true,
            target_path: target.map(|target| Bytes::from_static(target.as_bytes())),
            file_id: Some(file),
        }
    }

    fn text(report: &[SnapshotDiffReportEntryProto]) -> Vec<String> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        report
            .iter()
            .map(|line| {
                let target = line.target_path.as_ref().map(|target| format!(" -> {}", text(target)));
                format!("{} {}{}", line.modification_label, text(&line.fullpath), target.unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn a_rename_is_one_line_and_the_order_is_that_of_paths() {
        let one = SnapshotDiffReportListingProto {
            modified_entries: vec![entry(3, 3, "b", None), entry(1, 1, "", None)],
            created_entries: vec![entry(1, 9, "new", None)],
            is_from_earlier: true,
            ..Default::default()
        };
        let two = SnapshotDiffReportListingProto {
            modified_entries: vec![entry(2, 2, "a", None)],
            created_entries: vec![entry(3, 7, "b/to", None)],
            deleted_entries: vec![entry(2, 7, "a/from", Some("b/to")), entry(2, 8, "a/gone", None)],
            is_from_earlier: true,
            ..Default::default()
        };
        let pages = [one, two];
        assert_eq!(text(&report(&pages)), ["M ", "+ new", "M a", "R a/from -> b/to", "- a/gone", "M b"]);
        let back = pages.map(|page| SnapshotDiffReportListingProto { is_from_earlier: false, ..page });
        assert_eq!(text(&report(&back)), ["M ", "- new", "M a", "R b/to -> a/from", "+ a/gone", "M b"]);
    }
}
