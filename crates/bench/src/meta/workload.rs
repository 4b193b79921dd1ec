//! The call that each operation of the load makes.

use super::{
    Op, mix,
    requests::{complete, create, delete, list, mkdirs, named, open, rename, stat},
};
use bytes::BytesMut;

/// The calls of a load, operation by operation.
pub trait Calls: Send + Sync {
    /// Puts the request of one step of operation `index` and names its method; `None` after the last step.
    fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str>;

    /// Whether the answer of operation `index` is yes or no, and nothing else.
    fn asks_for_yes(&self, _index: u64) -> bool {
        false
    }
}

/// The work on one server: its directories are numbered.
#[derive(Clone, Debug)]
pub struct Workload {
    pub op: Op,
    pub directory: String,
    /// Files that were made before.
    pub files: u64,
    pub directory_entries: u64,
}

impl Workload {
    /// The work that makes the files this one needs.
    pub fn preparation(&self) -> Option<Workload> {
        match self.op {
            Op::Open | Op::Stat | Op::List | Op::Rename | Op::Delete | Op::Mix => {
                Some(Workload { op: Op::Touch, ..self.clone() })
            }
            Op::Null | Op::Create | Op::Touch | Op::Mkdir | Op::RenameAcross => None,
        }
    }

    fn directory_of(&self, index: u64) -> String {
        format!("{}/{}", self.directory, index / self.directory_entries)
    }

    fn file(&self, index: u64) -> String {
        format!("{}/{}/file-{index}", self.directory, index / self.directory_entries)
    }
}

impl Calls for Workload {
    fn asks_for_yes(&self, index: u64) -> bool {
        self.op.asks_for_yes(index)
    }

    fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str> {
        match (self.op, step) {
            (Op::Null, 0) => named(out, "getFileInfo", &stat("/".into())),
            (Op::Open, 0) => named(out, "getBlockLocations", &open(self.file(index % self.files))),
            (Op::Stat, 0) => named(out, "getFileInfo", &stat(self.file(index % self.files))),
            (Op::List, 0) => named(out, "getListing", &list(self.directory_of(index % self.files))),
            (Op::Mix, 0) => mix::put(out, index, self, client),
            (Op::Rename, 0) => {
                let target = format!("{}/renamed-{index}", self.directory_of(index));
                named(out, "rename", &rename(self.file(index), target))
            }
            (op, step) => on_new_file(out, op, step, || self.file(index), client),
        }
    }
}

impl mix::Names for Workload {
    fn file(&self, index: u64) -> String {
        self.file(index % self.files)
    }

    fn made(&self, number: u64) -> String {
        format!("{}/made-{}/file-{number}", self.directory, number / self.directory_entries)
    }
}

/// Puts the request of one step of an operation of which each has a file of its own. `None`: the operation has no such step.
pub fn on_new_file(
    out: &mut BytesMut,
    op: Op,
    step: u32,
    file: impl FnOnce() -> String,
    client: &str,
) -> Option<&'static str> {
    match (op, step) {
        (Op::Create | Op::Touch, 0) => named(out, "create", &create(file(), client)),
        (Op::Touch, 1) => named(out, "complete", &complete(file(), client)),
        (Op::Mkdir, 0) => named(out, "mkdirs", &mkdirs(file())),
        (Op::Delete, 0) => named(out, "delete", &delete(file())),
        _ => None,
    }
}
