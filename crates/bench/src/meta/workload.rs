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
        let mut put = |method, message: &dyn Put| {
            message.put(out);
            Some(method)
        };
        match (self.op, step) {
            (Op::Null, 0) => put("getFileInfo", &stat("/".into())),
            (Op::Create | Op::Touch, 0) => put("create", &create(self.file(index), client)),
            (Op::Touch, 1) => put("complete", &complete(self.file(index), client)),
            (Op::Mkdir, 0) => put("mkdirs", &mkdirs(self.file(index))),
            (Op::Open, 0) => put(
                "getBlockLocations",
                &GetBlockLocationsRequestProto {
                    src: self.file(index % self.files),
                    offset: 0,
                    length: 10 * BLOCK_SIZE,
                },
            ),
            (Op::Stat, 0) => put("getFileInfo", &stat(self.file(index % self.files))),
            (Op::List, 0) => put(
                "getListing",
                &GetListingRequestProto {
                    src: self.directory_of(index % self.files),
                    start_after: bytes::Bytes::new(),
                    need_location: false,
                },
            ),
            (Op::Rename, 0) => {
                let target = format!("{}/renamed-{index}", self.directory_of(index));
                put("rename", &rename(self.file(index), target))
            }
            (Op::Delete, 0) => put("delete", &delete(self.file(index))),
            _ => None,
        }
    }
}

pub fn create(src: String, client: &str) -> CreateRequestProto {
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

pub fn complete(src: String, client: &str) -> CompleteRequestProto {
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
pub fn delete(src: String) -> DeleteRequestProto {
    DeleteRequestProto { src, recursive: false }
}

/// A message to append, whichever it is.
pub trait Put {
    fn put(&self, out: &mut BytesMut);
}

impl<M: Message> Put for M {
    fn put(&self, out: &mut BytesMut) {
        self.encode_raw(out);
    }
}
