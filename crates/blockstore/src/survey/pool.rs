//! One block pool in a data directory: its replicas by the place in which they are.

use super::{
    Depth, GoOn,
    finding::Findings,
    replica::{Files, Spot, a_kind, look},
};
use crate::{
    error::OpenError,
    layout::{FileName, Place, PoolPaths, SUBDIRECTORY_COUNT, VERSION_FILE, parse_name, subdirectories},
    scanner::cursor::CURSOR_FILE,
    takeover::{
        BEING_DELETED, INTERRUPTED, LAZY_PERSIST, PREVIOUS, REPLICA_LIST, ROLLING_UPGRADE, TRASH, USED_BYTES,
        refuse_unfinished_pool,
    },
    version_file::Version,
};
use base::BlockId;
use env::{Disk, FileKind};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

/// Files of a DataNode, beside the pool's replicas. A server of ours lets them be, or removes them.
const OF_HADOOP: &[&str] = &[USED_BYTES, LAZY_PERSIST, REPLICA_LIST, "scanner.cursor"];
/// The block scanner of older DataNodes has kept its log in files of this name.
const OLD_SCANNER: &str = "dncp_block_verification.log";
/// The names of trees that an upgrade has put aside.
const OF_UPGRADES: &[&str] = &[PREVIOUS, TRASH, BEING_DELETED];
/// Directories below an old tree that are gone into.
const DEPTH_MAX: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceSurvey {
    pub replica_count: u64,
    pub block_bytes: u64,
    pub meta_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct PoolSurvey {
    pub id: String,
    /// `None` if there is none that can be read.
    pub version: Option<Version>,
    pub finalized: PlaceSurvey,
    pub being_written: PlaceSurvey,
    pub temporary: PlaceSurvey,
    /// Trees that an upgrade has put aside, each with its files.
    pub put_aside: Vec<PutAside>,
}

/// Files that an upgrade has put aside: hard links of replicas, or replicas that were deleted since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAside {
    pub path: PathBuf,
    pub file_count: u64,
    pub bytes: u64,
}

/// Looks through the pools of one directory.
pub(super) struct Walk<'a, 'b> {
    pub disk: &'a dyn Disk,
    pub depth: Depth,
    pub go_on: &'a mut GoOn<'b>,
    pub findings: Findings,
    pub is_stopped: bool,
}

impl Walk<'_, '_> {
    pub fn pool(&mut self, id: &str, paths: &PoolPaths) -> PoolSurvey {
        let mut pool = PoolSurvey {
            id: id.into(),
            version: self.version(&paths.version()),
            finalized: PlaceSurvey::default(),
            being_written: PlaceSurvey::default(),
            temporary: PlaceSurvey::default(),
            put_aside: Vec::new(),
        };
        for name in self.list(&paths.root) {
            let path = paths.root.join(&name);
            match name.as_str() {
                "current" | "tmp" => {}
                name if OF_HADOOP.contains(&name) || name.starts_with(OLD_SCANNER) => {}
                // Noted below.
                ROLLING_UPGRADE => {}
                name if OF_UPGRADES.contains(&name) || INTERRUPTED.contains(&name) => {
                    pool.put_aside.push(self.put_aside(path))
                }
                _ => self.stranger(path),
            }
        }
        for name in self.list(&paths.current()) {
            let is_ours = ["finalized", "rbw", VERSION_FILE, CURSOR_FILE].contains(&name.as_str());
            if !is_ours && !OF_HADOOP.contains(&name.as_str()) && !name.starts_with(OLD_SCANNER) {
                self.stranger(paths.current().join(name));
            }
        }
        self.unfinished(refuse_unfinished_pool(self.disk, paths));
        self.finalized(paths, &mut pool.finalized);
        for (place, survey) in
            [(Place::BeingWritten, &mut pool.being_written), (Place::Temporary, &mut pool.temporary)]
        {
            let directory = paths.place(place);
            self.replicas(paths, &directory, place, survey);
        }
        pool
    }

    /// Notes why a start would refuse the directory.
    pub fn unfinished(&mut self, refused: Result<(), OpenError>) {
        match refused {
            Ok(()) => {}
            Err(OpenError::Unfinished { path, what }) => {
                self.findings.damage(path, format!("keeps a server from starting: {what}"));
            }
            Err(OpenError::Io { path, error }) => {
                self.findings.damage(path, format!("cannot be looked at: {error}"))
            }
            Err(error) => self.findings.damage("", error.to_string()),
        }
    }

    fn finalized(&mut self, paths: &PoolPaths, survey: &mut PlaceSurvey) {
        let finalized = paths.finalized();
        for outer in self.shelves(&finalized) {
            for inner in self.shelves(&outer) {
                self.replicas(paths, &inner, Place::Finalized, survey);
            }
        }
    }

    /// The directories `subdir0` to `subdir31` in a directory. What else is there is noted.
    fn shelves(&mut self, directory: &Path) -> Vec<PathBuf> {
        let mut shelves = Vec::new();
        for name in self.list(directory) {
            let path = directory.join(&name);
            let number = name.strip_prefix("subdir").and_then(|digits| digits.parse().ok());
            let is_shelf = number
                .is_some_and(|number: u64| number < SUBDIRECTORY_COUNT && name == format!("subdir{number}"));
            match (is_shelf, self.kind(&path), parse_name(&name)) {
                (true, Some(FileKind::Directory), _) => shelves.push(path),
                (_, _, Some(FileName::Block(id))) => self.misplaced(path, id),
                _ => self.stranger(path),
            }
        }
        shelves
    }

    /// The replicas that lie right in this directory.
    fn replicas(&mut self, paths: &PoolPaths, directory: &Path, place: Place, survey: &mut PlaceSurvey) {
        let mut by_id: BTreeMap<BlockId, Files> = BTreeMap::new();
        for name in self.list(directory) {
            match parse_name(&name) {
                Some(FileName::Block(id)) => by_id.entry(id).or_default().has_block = true,
                Some(FileName::Meta(meta)) => {
                    by_id.entry(meta.id).or_default().stamps.push(meta.generation_stamp);
                }
                None => self.stranger(directory.join(name)),
            }
        }
        for (id, files) in by_id {
            if self.is_stopped {
                return;
            }
            self.replica(paths, Spot { directory, place: Some(place), id }, &files, survey);
        }
    }

    fn replica(&mut self, paths: &PoolPaths, spot: Spot<'_>, files: &Files, survey: &mut PlaceSurvey) {
        let Spot { directory, id, .. } = spot;
        let place = spot.place.unwrap_or(Place::Finalized);
        let newest = files.stamps.iter().max().copied();
        if !files.has_block {
            for stamp in &files.stamps {
                let path = directory.join(crate::layout::meta_name(id, *stamp));
                self.findings.stranger(path, "is a meta file without a block file");
            }
            return;
        }
        if directory != paths.directory(place, id) {
            return self.misplaced(paths_block(directory, id), id);
        }
        let mut is_stopped = false;
        let go_on = &mut *self.go_on;
        let found = look(self.disk, spot, newest, files, self.depth, &mut |bytes| {
            is_stopped |= !go_on(bytes);
            !is_stopped
        });
        self.is_stopped |= is_stopped;
        survey.replica_count += 1;
        survey.block_bytes += found.length.unwrap_or(0);
        survey.meta_bytes += found.meta_length.unwrap_or(0);
        for other in found.other_metas {
            self.findings.stranger(other, "is a meta file of an older stamp");
        }
        // Here lie replicas that were being copied from another server. None is finished, and the next start deletes them.
        if place == Place::Temporary {
            return;
        }
        if place == Place::BeingWritten && self.kind(&paths.block(Place::Finalized, id)).is_some() {
            self.findings
                .stranger(found.block.clone(), "is a second block file: a finished replica is there as well");
        }
        for damage in found.damage {
            self.findings.damage(found.block.clone(), damage.what);
        }
    }

    fn misplaced(&mut self, path: PathBuf, id: BlockId) {
        let (first, second) = subdirectories(id);
        let what =
            format!("lies in the wrong directory, and belongs in finalized/subdir{first}/subdir{second}");
        self.findings.damage(path, what);
    }

    /// A tree that is not served: its files are counted, no byte is read.
    pub fn put_aside(&mut self, path: PathBuf) -> PutAside {
        let mut tree = PutAside { path: path.clone(), file_count: 0, bytes: 0 };
        let mut waiting = vec![(path, 0)];
        while let Some((directory, depth)) = waiting.pop() {
            for name in self.list(&directory) {
                let path = directory.join(name);
                match self.kind(&path) {
                    Some(FileKind::Directory) if depth < DEPTH_MAX => waiting.push((path, depth + 1)),
                    Some(FileKind::File) => {
                        tree.file_count += 1;
                        tree.bytes += self.disk.length(&path).unwrap_or(0);
                    }
                    _ => self.stranger(path),
                }
            }
        }
        tree
    }

    pub fn version(&mut self, path: &Path) -> Option<Version> {
        match self.kind(path) {
            Some(FileKind::File) => {}
            Some(other) => {
                self.findings.damage(path, format!("is {}", a_kind(other)));
                return None;
            }
            None => {
                self.findings.damage(path, "is missing: it says whose the directory is");
                return None;
            }
        }
        match Version::read(self.disk, path) {
            Ok(version) => version,
            Err(error) => {
                self.findings.damage(path, format!("cannot be read: {error}"));
                None
            }
        }
    }

    pub fn stranger(&mut self, path: PathBuf) {
        let what = match self.kind(&path) {
            Some(kind) => format!("is {} that no server uses", a_kind(kind)),
            None => return,
        };
        self.findings.stranger(path, what);
    }

    pub fn kind(&mut self, path: &Path) -> Option<FileKind> {
        self.disk.kind(path).unwrap_or_else(|error| {
            self.findings.damage(path, format!("cannot be looked at: {error}"));
            None
        })
    }

    /// The names in a directory; none if there is no such directory. A link to a directory is not followed.
    pub fn list(&mut self, directory: &Path) -> Vec<String> {
        if self.is_stopped {
            return Vec::new();
        }
        match self.kind(directory) {
            Some(FileKind::Directory) => {}
            Some(other) => {
                self.findings.damage(directory, format!("should be a directory, and is {}", a_kind(other)));
                return Vec::new();
            }
            None => return Vec::new(),
        }
        match self.disk.list(directory) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.findings.damage(directory, format!("cannot be listed: {error}"));
                Vec::new()
            }
        }
    }
}

fn paths_block(directory: &Path, id: BlockId) -> PathBuf {
    directory.join(crate::layout::block_name(id))
}
