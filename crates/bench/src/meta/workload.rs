//! The call that each operation of the load makes.

use super::Op;
use bytes::BytesMut;
use prost::Message;
use proto::hdfs::{
    CompleteRequestProto, CreateRequestProto, DeleteRequestProto, FsPermissionProto,
    GetBlockLocationsRequestProto, GetFileInfoRequestProto, GetListingRequestProto, MkdirsRequestProto,
    RenameRequestProto,
};

/// Hadoop's `CreateFlag.CREATE`.
const CREATE: u32 = 1;
const BLOCK_SIZE: u64 = 128 << 20;

/// The calls of a load, operation by operation.
pub trait Calls: Send + Sync {
    /// Puts the request of one step of operation `index` and names its method; `None` after the last step.
    fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str>;

    /// Whether the answers are yes or no, and nothing else.
    fn asks_for_yes(&self) -> bool {
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
            Op::Open | Op::Stat | Op::List | Op::Rename | Op::Delete => {
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
    fn asks_for_yes(&self) -> bool {
        self.op.asks_for_yes()
    }

    fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str> {
        match (self.op, step) {
            (Op::Null, 0) => named(out, "getFileInfo", &stat("/".into())),
            (Op::Open, 0) => named(
                out,
                "getBlockLocations",
                &GetBlockLocationsRequestProto {
                    src: self.file(index % self.files),
                    offset: 0,
                    length: 10 * BLOCK_SIZE,
                },
            ),
            (Op::Stat, 0) => named(out, "getFileInfo", &stat(self.file(index % self.files))),
            (Op::List, 0) => named(
                out,
                "getListing",
                &GetListingRequestProto {
                    src: self.directory_of(index % self.files),
                    start_after: bytes::Bytes::new(),
                    need_location: false,
                },
            ),
            (Op::Rename, 0) => {
                let target = format!("{}/renamed-{index}", self.directory_of(index));
                named(out, "rename", &rename(self.file(index), target))
            }
            (op, step) => on_new_file(out, op, step, || self.file(index), client),
        }
    }
}

/// Puts a request, and returns the name of its method.
pub fn named(out: &mut BytesMut, method: &'static str, message: &impl Message) -> Option<&'static str> {
    message.encode_raw(out);
    Some(method)
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

fn create(src: String, client: &str) -> CreateRequestProto {
    CreateRequestProto {
        src,
        masked: FsPermissionProto { perm: 0o644 },
        client_name: client.into(),
        create_flag: CREATE,
        create_parent: true,
        replication: 1,
        block_size: BLOCK_SIZE,
        ..Default::default()
    }
}

fn complete(src: String, client: &str) -> CompleteRequestProto {
    CompleteRequestProto { src, client_name: client.into(), last: None, file_id: None }
}

pub fn mkdirs(src: String) -> MkdirsRequestProto {
    MkdirsRequestProto { src, masked: FsPermissionProto { perm: 0o755 }, create_parent: true, unmasked: None }
}

pub fn stat(src: String) -> GetFileInfoRequestProto {
    GetFileInfoRequestProto { src }
}

pub fn rename(src: String, dst: String) -> RenameRequestProto {
    RenameRequestProto { src, dst }
}

/// Of a file, or of an empty directory.
fn delete(src: String) -> DeleteRequestProto {
    DeleteRequestProto { src, recursive: false }
}
