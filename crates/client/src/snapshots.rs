//! Snapshots of directories.

use crate::{FileStatus, FileSystem, Result};
use base::FsError;
use bytes::Bytes;
use proto::{hdfs, snapshot_diff};

/// A directory of which snapshots may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshottableDirectory {
    pub status: FileStatus,
    /// How many there are, and may be.
    pub snapshots: u32,
    pub quota: u32,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The status of its root, `/dir/.snapshot/name`.
    pub status: FileStatus,
    pub id: u32,
    /// The snapshot was deleted, and goes when the ones before it have gone.
    pub is_deleted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Created,
    Modified,
    Deleted,
    Renamed,
}

impl Change {
    /// The abbreviation in Hadoop's reports.
    pub fn label(self) -> &'static str {
        match self {
            Change::Created => snapshot_diff::CREATED,
            Change::Modified => snapshot_diff::MODIFIED,
            Change::Deleted => snapshot_diff::DELETED,
            Change::Renamed => snapshot_diff::RENAMED,
        }
    }
}

/// One line of the difference between two snapshots. Paths are relative to the directory; empty: itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub change: Change,
    pub path: String,
    /// The new path of an entry that was renamed.
    pub target: Option<String>,
}

impl FileSystem {
    /// Lets snapshots be made of a directory; for superusers.
    ///
    /// # Errors
    /// There is no such directory, one above or below has snapshots allowed ([`FsError::Snapshot`]), or this user is no
    /// superuser; or the call fails: see [`FileSystem::call`].
    pub async fn allow_snapshot(&self, path: &str) -> Result<()> {
        let request = hdfs::AllowSnapshotRequestProto { snapshot_root: path.to_owned() };
        let _: hdfs::AllowSnapshotResponseProto = self.call("allowSnapshot", &request).await?;
        Ok(())
    }

    /// Ends the permission to make snapshots of a directory. Refused while the directory has any.
    ///
    /// # Errors
    /// There is no such directory, it has snapshots ([`FsError::Snapshot`]), or this user is no superuser; or the call
    /// fails: see [`FileSystem::call`].
    pub async fn disallow_snapshot(&self, path: &str) -> Result<()> {
        let request = hdfs::DisallowSnapshotRequestProto { snapshot_root: path.to_owned() };
        let _: hdfs::DisallowSnapshotResponseProto = self.call("disallowSnapshot", &request).await?;
        Ok(())
    }

    /// Makes a snapshot; the server finds a name if none is given. Answers the path under which it is seen.
    ///
    /// # Errors
    /// This user does not own the directory. [`FsError::Snapshot`] if no snapshots are allowed of it, the name is
    /// taken, or there are as many as there may be; [`FsError::InvalidPath`] or [`FsError::InvalidArgument`] if the
    /// name is invalid. Or the call fails: see [`FileSystem::call`].
    pub async fn create_snapshot(&self, path: &str, name: Option<&str>) -> Result<String> {
        let request = hdfs::CreateSnapshotRequestProto {
            snapshot_root: path.to_owned(),
            snapshot_name: name.map(str::to_owned),
        };
        let response: hdfs::CreateSnapshotResponseProto = self.call("createSnapshot", &request).await?;
        Ok(response.snapshot_path)
    }

    /// # Errors
    /// There is no snapshot of the old name or the new one is taken ([`FsError::Snapshot`]), the new one is invalid
    /// ([`FsError::InvalidPath`], [`FsError::InvalidArgument`]), or this user does not own the directory; or the call
    /// fails: see [`FileSystem::call`].
    pub async fn rename_snapshot(&self, path: &str, old: &str, new: &str) -> Result<()> {
        let request = hdfs::RenameSnapshotRequestProto {
            snapshot_root: path.to_owned(),
            snapshot_old_name: old.to_owned(),
            snapshot_new_name: new.to_owned(),
        };
        let _: hdfs::RenameSnapshotResponseProto = self.call("renameSnapshot", &request).await?;
        Ok(())
    }

    /// # Errors
    /// There is no snapshot of that name ([`FsError::Snapshot`]), or this user does not own the directory; or the call
    /// fails: see [`FileSystem::call`].
    pub async fn delete_snapshot(&self, path: &str, name: &str) -> Result<()> {
        let request = hdfs::DeleteSnapshotRequestProto {
            snapshot_root: path.to_owned(),
            snapshot_name: name.to_owned(),
        };
        let _: hdfs::DeleteSnapshotResponseProto = self.call("deleteSnapshot", &request).await?;
        Ok(())
    }

    /// The snapshottable directories of this user, or all for a superuser; in the order of their paths.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn snapshottable_directories(&self) -> Result<Vec<SnapshottableDirectory>> {
        let request = hdfs::GetSnapshottableDirListingRequestProto {};
        let response: hdfs::GetSnapshottableDirListingResponseProto =
            self.call("getSnapshottableDirListing", &request).await?;
        let list = response.snapshottable_dir_list.unwrap_or_default().snapshottable_dir_listing;
        let directory = |wire: hdfs::SnapshottableDirectoryStatusProto| {
            let parent = match &*wire.parent_fullpath {
                b"" => "/".into(),
                parent => String::from_utf8_lossy(parent),
            };
            SnapshottableDirectory {
                status: FileStatus::from_wire(&parent, wire.dir_status),
                snapshots: wire.snapshot_number,
                quota: wire.snapshot_quota,
            }
        };
        Ok(list.into_iter().map(directory).collect())
    }

    /// The snapshots of a directory in the order of their names.
    ///
    /// # Errors
    /// No snapshots are allowed of the directory ([`FsError::Snapshot`]), or this user may not read it; or the call
    /// fails: see [`FileSystem::call`].
    pub async fn snapshots(&self, path: &str) -> Result<Vec<Snapshot>> {
        let request = hdfs::GetSnapshotListingRequestProto { snapshot_root: path.to_owned() };
        let response: hdfs::GetSnapshotListingResponseProto =
            self.call("getSnapshotListing", &request).await?;
        let list = response.snapshot_list.unwrap_or_default().snapshot_listing;
        let snapshot = |wire: hdfs::SnapshotStatusProto| {
            let parent = String::from_utf8_lossy(&wire.parent_fullpath);
            let below = format!("{}/.snapshot", parent.trim_end_matches('/'));
            Snapshot {
                status: FileStatus::from_wire(&below, wire.dir_status),
                id: wire.snapshot_id,
                is_deleted: wire.is_deleted,
            }
        };
        Ok(list.into_iter().map(snapshot).collect())
    }

    /// The differences in a directory from one of its snapshots to another; an empty name stands for the present
    /// state.
    ///
    /// # Errors
    /// There is no snapshot of one of the names ([`FsError::Snapshot`]), or this user may not read the directory;
    /// [`crate::Error::Nonsense`] if a page of the answer does not go on or makes no sense; or a call fails: see
    /// [`FileSystem::call`].
    pub async fn snapshot_diff(&self, path: &str, from: &str, to: &str) -> Result<Vec<Difference>> {
        let mut pages = Vec::new();
        let mut cursor = hdfs::SnapshotDiffReportCursorProto { start_path: Bytes::new(), index: -1 };
        loop {
            let request = hdfs::GetSnapshotDiffReportListingRequestProto {
                snapshot_root: path.to_owned(),
                from_snapshot: from.to_owned(),
                to_snapshot: to.to_owned(),
                cursor: Some(cursor.clone()),
            };
            let response: hdfs::GetSnapshotDiffReportListingResponseProto =
                self.call("getSnapshotDiffReportListing", &request).await?;
            let next = response.diff_report.cursor.clone();
            pages.push(response.diff_report);
            match next {
                None => break,
                Some(next) if next.start_path.is_empty() && next.index == -1 => break,
                Some(next) if next == cursor => {
                    let reason = "a page that goes on where it began";
                    return Err(self.nonsense("getSnapshotDiffReportListing", reason));
                }
                Some(next) => cursor = next,
            }
        }
        snapshot_diff::report(&pages).into_iter().map(|line| self.difference(line)).collect()
    }

    fn difference(&self, line: hdfs::SnapshotDiffReportEntryProto) -> Result<Difference> {
        let change = [Change::Created, Change::Modified, Change::Deleted, Change::Renamed]
            .into_iter()
            .find(|change| change.label() == line.modification_label)
            .ok_or_else(|| FsError::Io(format!("{:?} is no kind of change", line.modification_label)))?;
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(Difference { change, path: text(&line.fullpath), target: line.target_path.as_ref().map(text) })
    }
}
