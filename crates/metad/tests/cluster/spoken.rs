//! A data server, spoken by hand: it announces itself with one disk and says what a test wants it to say.

use proto::hdfs::{self as p, datanode as d};
use rpc::{CallError, Client};

pub const STORAGE: &str = "DS-1";

/// A disk in use.
pub fn storage(name: &str) -> p::DatanodeStorageProto {
    p::DatanodeStorageProto {
        storage_uuid: name.into(),
        state: Some(0),
        storage_type: Some(p::StorageTypeProto::Disk as i32),
    }
}

/// A metadata server's account of itself.
pub async fn version(data: &Client) -> p::NamespaceInfoProto {
    let version: p::VersionResponseProto =
        data.call("versionRequest", &p::VersionRequestProto {}).await.unwrap();
    version.info
}

/// The registration of a data server. The metadata server goes by the address from which it is sent, not by the address
/// in it.
pub fn registration(info: &p::NamespaceInfoProto, uuid: &str) -> d::DatanodeRegistrationProto {
    d::DatanodeRegistrationProto {
        datanode_id: p::DatanodeIdProto {
            ip_addr: "0.0.0.0".into(),
            host_name: "worker".into(),
            datanode_uuid: uuid.into(),
            xfer_port: 9866,
            info_port: 9864,
            ipc_port: 9867,
            info_secure_port: None,
        },
        storage_info: p::StorageInfoProto { layout_version: -57i32 as u32, ..info.storage_info.clone() },
        keys: p::ExportedBlockKeysProto::default(),
        software_version: "3.5.0".into(),
    }
}

/// The registration as the metadata server knows it.
pub async fn register(
    data: &Client,
    registration: d::DatanodeRegistrationProto,
) -> Result<d::DatanodeRegistrationProto, CallError> {
    let request = d::RegisterDatanodeRequestProto { registration };
    let response: d::RegisterDatanodeResponseProto = data.call("registerDatanode", &request).await?;
    Ok(response.registration)
}

pub async fn heartbeat(
    data: &Client,
    registration: &d::DatanodeRegistrationProto,
    storage_name: &str,
) -> Result<d::HeartbeatResponseProto, CallError> {
    #[allow(deprecated)]
    let report = p::StorageReportProto {
        storage_uuid: storage_name.into(),
        capacity: Some(1 << 50),
        remaining: Some(1 << 49),
        storage: Some(storage(storage_name)),
        ..p::StorageReportProto::default()
    };
    let request = d::HeartbeatRequestProto {
        registration: registration.clone(),
        reports: vec![report],
        request_full_block_report_lease: Some(true),
        ..d::HeartbeatRequestProto::default()
    };
    data.call("sendHeartbeat", &request).await
}

/// A replica has come, or is coming, or has gone: `status` is one of Hadoop's `BlockStatus`.
pub async fn tell(
    data: &Client,
    registration: &d::DatanodeRegistrationProto,
    (pool, storage_name): (&str, &str),
    block: p::BlockProto,
    status: i32,
) {
    try_to_tell(data, registration, (pool, storage_name), block, status).await.unwrap();
}

/// Tells of one block like [`tell`], and returns the error if the report is refused.
pub async fn try_to_tell(
    data: &Client,
    registration: &d::DatanodeRegistrationProto,
    (pool, storage_name): (&str, &str),
    block: p::BlockProto,
    status: i32,
) -> Result<(), CallError> {
    #[allow(deprecated)]
    let blocks = d::StorageReceivedDeletedBlocksProto {
        storage_uuid: storage_name.into(),
        storage: Some(storage(storage_name)),
        blocks: vec![d::ReceivedDeletedBlockInfoProto { block, status, delete_hint: None }],
    };
    let request = d::BlockReceivedAndDeletedRequestProto {
        registration: registration.clone(),
        block_pool_id: pool.into(),
        blocks: vec![blocks],
    };
    let _: d::BlockReceivedAndDeletedResponseProto = data.call("blockReceivedAndDeleted", &request).await?;
    Ok(())
}
