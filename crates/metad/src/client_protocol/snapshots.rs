//! Snapshots: allowing and making them, and telling what there is and what changed.

use super::{
    answers::Encoded,
    calls::{self, asked, decode},
    service::require_superuser,
    status::{self, Name},
    walks,
};
use crate::{
    core::Core,
    post::places::{Foreign, Located},
};
use base::Timestamp;
use bytes::Bytes;
use namespace::{
    Privileged, Reply,
    ops::{allow_snapshot, create_snapshot, delete_snapshot, rename_snapshot},
    reads::{
        get_snapshot_diff::{self, DiffCursor, DiffEntry},
        get_snapshot_listing,
    },
};
use proto::{
    answers::{Many, Only, SnapshotStatus, SnapshottableDirectory},
    hdfs as p, snapshot_diff,
};
use rpc::{Call, Replier};
use std::sync::Arc;

/// For superusers only.
pub fn allow_snapshot(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AllowSnapshotRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::AllowSnapshot) {
        return reply.fs_error(&error);
    }
    let request = allow_snapshot::Request { path: request.snapshot_root };
    calls::write(core, call, reply, request, |_, _| p::AllowSnapshotResponseProto {});
}

/// For superusers only.
pub fn disallow_snapshot(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::DisallowSnapshotRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::DisallowSnapshot) {
        return reply.fs_error(&error);
    }
    let request = allow_snapshot::Disallowing { path: request.snapshot_root };
    calls::write(core, call, reply, request, |_, _| p::DisallowSnapshotResponseProto {});
}

pub fn create_snapshot(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CreateSnapshotRequestProto>(&call, reply) else { return };
    let name = match request.snapshot_name() {
        "" => default_name(core.env.clock.timestamp()),
        name => name.to_owned(),
    };
    let request = create_snapshot::Request { path: request.snapshot_root, name };
    let asked = request.clone();
    calls::write(core, call, reply, request, move |turn, essentials| {
        // A call that is repeated is told the name that the first one made up.
        let made = match essentials {
            Reply::Snapshot(id) => create_snapshot::name_of(turn.namespace(), id),
            _ => None,
        };
        let snapshot_path = create_snapshot::path_of(&asked.path, made.unwrap_or(&asked.name));
        p::CreateSnapshotResponseProto { snapshot_path }
    });
}

/// Hadoop's `s'yyyyMMdd-HHmmss.SSS`, in the time zone of the server as there.
fn default_name(now: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(now.ms as i64).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("s%Y%m%d-%H%M%S.%3f").to_string()
}

pub fn rename_snapshot(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RenameSnapshotRequestProto>(&call, reply) else { return };
    let request = rename_snapshot::Request {
        path: request.snapshot_root,
        old: request.snapshot_old_name,
        new: request.snapshot_new_name,
    };
    calls::write(core, call, reply, request, |_, _| p::RenameSnapshotResponseProto {});
}

pub fn delete_snapshot(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::DeleteSnapshotRequestProto>(&call, reply) else { return };
    let request = delete_snapshot::Request { path: request.snapshot_root, name: request.snapshot_name };
    calls::write(core, call, reply, request, |_, _| p::DeleteSnapshotResponseProto {});
}

pub fn get_snapshottable_dir_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |_: p::GetSnapshottableDirListingRequestProto| get_snapshot_listing::Snapshottable;
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |tree, found| {
        let foreign = Foreign::default();
        for directory in found.iter().flatten() {
            foreign.note_directory(&tree.namespace, directory.status.id, None);
        }
        let list = found.as_ref().map(|found| {
            Many(found.iter().map(|directory| SnapshottableDirectory {
                status: status::view(&directory.status, Name::Own),
                quota: directory.quota,
                snapshots: directory.snapshots,
                parent: directory.parent.as_bytes(),
            }))
        });
        Located::new(core, &call, "", foreign, Encoded::of(Only(list)))
    });
}

pub fn get_snapshot_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetSnapshotListingRequestProto| get_snapshot_listing::Request {
        path: message.snapshot_root,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, found| {
        let entries = found.iter().map(|snapshot| SnapshotStatus {
            status: status::view(&snapshot.status, Name::Own),
            // Hadoop counts from 0.
            id: snapshot.id.0 - 1,
            parent: snapshot.parent.as_bytes(),
            is_deleted: false,
        });
        Ok(Encoded::of(Only(Some(Many(entries)))))
    });
}

pub fn get_snapshot_diff_report_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let is_part = call.is_part;
    let read = |message: p::GetSnapshotDiffReportListingRequestProto| get_snapshot_diff::Request {
        path: message.snapshot_root,
        from: message.from_snapshot,
        to: message.to_snapshot,
        cursor: message
            .cursor
            .filter(|_| !is_part)
            .map_or(START, |cursor| DiffCursor { path: cursor.start_path.into(), index: cursor.index }),
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    if is_part {
        // The pages of several groups have no order in common: each group tells all at once.
        let read = get_snapshot_diff::Report { request: read };
        return walks::read(core, call, reply, read, |_, pages| {
            let diff_report = pages.into_iter().map(page).reduce(|mut all, page| {
                all.modified_entries.extend(page.modified_entries);
                all.created_entries.extend(page.created_entries);
                all.deleted_entries.extend(page.deleted_entries);
                p::SnapshotDiffReportListingProto { cursor: page.cursor, ..all }
            });
            p::GetSnapshotDiffReportListingResponseProto { diff_report: diff_report.unwrap_or_default() }
        });
    }
    walks::read(core, call, reply, read, |_, answer| p::GetSnapshotDiffReportListingResponseProto {
        diff_report: page(answer),
    });
}

const START: DiffCursor = DiffCursor { path: Vec::new(), index: -1 };

fn page(answer: get_snapshot_diff::Answer) -> p::SnapshotDiffReportListingProto {
    let next = answer.page.next.unwrap_or(START);
    p::SnapshotDiffReportListingProto {
        modified_entries: answer.page.modified.into_iter().map(entry).collect(),
        created_entries: answer.page.created.into_iter().map(entry).collect(),
        deleted_entries: answer.page.deleted.into_iter().map(entry).collect(),
        is_from_earlier: answer.is_from_earlier,
        cursor: Some(p::SnapshotDiffReportCursorProto { start_path: next.path.into(), index: next.index }),
    }
}

fn entry(entry: DiffEntry) -> p::SnapshotDiffReportListingEntryProto {
    p::SnapshotDiffReportListingEntryProto {
        fullpath: entry.path.into(),
        dir_id: entry.directory.0,
        is_reference: entry.is_reference,
        target_path: entry.target.map(Bytes::from),
        file_id: Some(entry.inode.0),
    }
}

/// Answers clients that do not ask page by page: all pages, put together here.
pub fn get_snapshot_diff_report(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetSnapshotDiffReportRequestProto| get_snapshot_diff::Report {
        request: get_snapshot_diff::Request {
            path: message.snapshot_root,
            from: message.from_snapshot,
            to: message.to_snapshot,
            cursor: START,
        },
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    walks::read(core, call, reply, read, |read, pages| {
        let get_snapshot_diff::Request { path, from, to, .. } = read.request.clone();
        let pages: Vec<_> = pages.into_iter().map(page).collect();
        p::GetSnapshotDiffReportResponseProto {
            diff_report: p::SnapshotDiffReportProto {
                snapshot_root: path,
                from_snapshot: from,
                to_snapshot: to,
                diff_report_entries: snapshot_diff::report(&pages),
            },
        }
    });
}
