//! The requests of a load.

use anyhow::Context;
use bytes::BytesMut;
use prost::Message;
use proto::{
    hdfs::{
        CompleteRequestProto, CreateRequestProto, DeleteRequestProto, FsPermissionProto,
        GetBlockLocationsRequestProto, GetFileInfoRequestProto, GetListingRequestProto, MkdirsRequestProto,
        MkdirsResponseProto, RenameRequestProto,
    },
    protocol,
};
use std::time::{Duration, Instant};

/// Hadoop's `CreateFlag.CREATE`.
const CREATE: u32 = 1;
const BLOCK_SIZE: u64 = 128 << 20;
/// A server that has just been started, on busy cores.
const START_PATIENCE: Duration = Duration::from_secs(180);
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Puts a request, and returns the name of its method.
pub fn named(out: &mut BytesMut, method: &'static str, message: &impl Message) -> Option<&'static str> {
    message.encode_raw(out);
    Some(method)
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

pub fn open(src: String) -> GetBlockLocationsRequestProto {
    GetBlockLocationsRequestProto { src, offset: 0, length: 10 * BLOCK_SIZE }
}

/// The first page of a directory.
pub fn list(src: String) -> GetListingRequestProto {
    GetListingRequestProto { src, start_after: bytes::Bytes::new(), need_location: false }
}

/// Of a file, or of an empty directory.
pub fn delete(src: String) -> DeleteRequestProto {
    DeleteRequestProto { src, recursive: false }
}

/// Makes directories as soon as the server, `host:port`, takes changes: one that has just been started does not take them yet.
///
/// # Errors
/// It took none for three minutes.
pub async fn make_directories(address: &str, user: &str, directories: &[String]) -> anyhow::Result<()> {
    let client = rpc::Client::connect(address, protocol::CLIENT_NAMENODE, user, Default::default());
    let begun = Instant::now();
    for path in directories {
        let request = mkdirs(path.clone());
        loop {
            let made: Result<MkdirsResponseProto, _> = client.call("mkdirs", &request).await;
            match made {
                Ok(_) => break,
                Err(error) if begun.elapsed() > START_PATIENCE => {
                    return Err(error).with_context(|| format!("making {path}"));
                }
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }
    Ok(())
}
