//! What has changed between two snapshots, out of the answers of all groups. Each group tells all that it has in one page; directories are in several of these.

use super::lists::Parts;
use bytes::Bytes;
use prost::{DecodeError, Message};
use proto::{hdfs as p, snapshot_diff};
use std::collections::BTreeMap;

/// The answer to `getSnapshotDiffReportListing`, in one page.
pub fn listing(parts: Parts) -> Result<Bytes, DecodeError> {
    let diff_report = merged(parts)?;
    Ok(p::GetSnapshotDiffReportListingResponseProto { diff_report }.encode_to_vec().into())
}

/// The answer to `getSnapshotDiffReport`.
pub fn report(request: &[u8], parts: Parts) -> Result<Bytes, DecodeError> {
    let request = p::GetSnapshotDiffReportRequestProto::decode(request)?;
    let diff_report = p::SnapshotDiffReportProto {
        snapshot_root: request.snapshot_root,
        from_snapshot: request.from_snapshot,
        to_snapshot: request.to_snapshot,
        diff_report_entries: snapshot_diff::report(&[merged(parts)?]),
    };
    Ok(p::GetSnapshotDiffReportResponseProto { diff_report }.encode_to_vec().into())
}

fn merged(parts: Parts) -> Result<p::SnapshotDiffReportListingProto, DecodeError> {
    let (mut modified, mut created, mut deleted) =
        (Entries::default(), Entries::default(), Entries::default());
    let mut whole = p::SnapshotDiffReportListingProto::default();
    for part in parts.into_values() {
        let part = p::GetSnapshotDiffReportListingResponseProto::decode(part)?.diff_report;
        modified.add(part.modified_entries);
        created.add(part.created_entries);
        deleted.add(part.deleted_entries);
        whole.is_from_earlier = part.is_from_earlier;
        whole.cursor = part.cursor;
    }
    whole.modified_entries = modified.finish();
    whole.created_entries = created.finish();
    whole.deleted_entries = deleted.finish();
    Ok(whole)
}

/// Entries as a walk through the tree finds them, each once.
#[derive(Default)]
struct Entries(BTreeMap<Place, p::SnapshotDiffReportListingEntryProto>);

/// The names on the path, and the file or directory: two may have had the same path, one after the other.
type Place = (Vec<Bytes>, u64);

impl Entries {
    fn add(&mut self, entries: Vec<p::SnapshotDiffReportListingEntryProto>) {
        for entry in entries {
            let names = entry.fullpath.split(|byte| *byte == b'/').map(|name| entry.fullpath.slice_ref(name));
            let place = (names.collect(), entry.file_id.unwrap_or(entry.dir_id));
            self.0.entry(place).or_insert(entry);
        }
    }

    fn finish(self) -> Vec<p::SnapshotDiffReportListingEntryProto> {
        self.0.into_values().collect()
    }
}
