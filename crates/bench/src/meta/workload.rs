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
            Op::Null | Op::Create | Op::Touch | Op::Mkdir => None,
        }
    }

    /// Puts the request of one step of operation `index` and names its method; `None` after the last step.
    pub fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str> {
        let mut put = |method, message: &dyn Put| {
            message.put(out);
            Some(method)
        };
        match (self.op, step) {
            (Op::Null, 0) => put("getFileInfo", &GetFileInfoRequestProto { src: "/".into() }),
            (Op::Create | Op::Touch, 0) => put("create", &self.create(index, client)),
            (Op::Touch, 1) => put(
                "complete",
                &CompleteRequestProto {
                    src: self.file(index),
                    client_name: client.into(),
                    last: None,
                    file_id: None,
                },
            ),
            (Op::Mkdir, 0) => put(
                "mkdirs",
                &MkdirsRequestProto {
                    src: self.file(index),
                    masked: FsPermissionProto { perm: 0o755 },
                    create_parent: true,
                    unmasked: None,
                },
            ),
            (Op::Open, 0) => put(
                "getBlockLocations",
                &GetBlockLocationsRequestProto {
                    src: self.file(index % self.files),
                    offset: 0,
                    length: 10 * BLOCK_SIZE,
                },
            ),
            (Op::Stat, 0) => {
                put("getFileInfo", &GetFileInfoRequestProto { src: self.file(index % self.files) })
            }
            (Op::List, 0) => put(
                "getListing",
                &GetListingRequestProto {
                    src: self.directory_of(index % self.files),
                    start_after: bytes::Bytes::new(),
                    need_location: false,
                },
            ),
            (Op::Rename, 0) => put(
                "rename",
                &RenameRequestProto {
                    src: self.file(index),
                    dst: format!("{}/renamed-{index}", self.directory_of(index)),
                },
            ),
            (Op::Delete, 0) => put("delete", &DeleteRequestProto { src: self.file(index), recursive: false }),
            _ => None,
        }
    }

    fn create(&self, index: u64, client: &str) -> CreateRequestProto {
        CreateRequestProto {
            src: self.file(index),
            masked: FsPermissionProto { perm: 0o644 },
            client_name: client.into(),
            create_flag: CREATE,
            create_parent: true,
            replication: 1,
            block_size: BLOCK_SIZE,
            ..Default::default()
        }
    }

    fn directory_of(&self, index: u64) -> String {
        format!("{}/{}", self.directory, index / self.directory_entries)
    }

    fn file(&self, index: u64) -> String {
        format!("{}/{}/file-{index}", self.directory, index / self.directory_entries)
    }
}

/// A message to append, whichever it is.
trait Put {
    fn put(&self, out: &mut BytesMut);
}

impl<M: Message> Put for M {
    fn put(&self, out: &mut BytesMut) {
        self.encode_raw(out);
    }
}
