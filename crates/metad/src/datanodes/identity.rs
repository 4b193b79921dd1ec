//! Whether a data server belongs to this cluster, and who it is.

use crate::Cluster;
use base::{FsError, FsResult};
use blocks::{Registration, ServerId, SessionKey};
use bytes::Bytes;
use proto::hdfs::{
    BlockKeyProto, ExportedBlockKeysProto, StorageInfoProto, datanode::DatanodeRegistrationProto,
};
use std::net::IpAddr;

/// The layout of a data server's directories in Hadoop 3.5, and here. Layouts count downwards.
const LAYOUT_VERSION: i32 = -57;
/// The oldest data server whose protocol is spoken (`dfs.namenode.min.supported.datanode.version`).
const SOFTWARE_VERSION_MIN: &str = "3.0.0";
/// Longest name or uuid that is kept.
const NAME_BYTES_MAX: usize = 255;

/// Refuses a registration of another cluster, a newer layout or too old a version, with Hadoop's errors.
pub fn check_registration(cluster: &Cluster, registration: &DatanodeRegistrationProto) -> FsResult<()> {
    check_cluster(cluster, registration)?;
    let layout = registration.storage_info.layout_version as i32;
    if layout < LAYOUT_VERSION {
        return Err(FsError::IncorrectVersion(format!(
            "Unexpected version of data node. Reported: {layout}. Expecting = {LAYOUT_VERSION}."
        )));
    }
    let version = &registration.software_version;
    if numbers(version) < numbers(SOFTWARE_VERSION_MIN) {
        return Err(FsError::IncorrectVersion(format!(
            "The reported DataNode version is too low to communicate with this NameNode. DataNode version: \
             '{version}' Minimum DataNode version: '{SOFTWARE_VERSION_MIN}'"
        )));
    }
    Ok(())
}

/// Every message names the cluster that its sender believes in.
pub fn check_cluster(cluster: &Cluster, registration: &DatanodeRegistrationProto) -> FsResult<()> {
    let StorageInfoProto { namespce_id, cluster_id, c_time, .. } = &registration.storage_info;
    if (*namespce_id, cluster_id, *c_time) == (cluster.namespace_id, &cluster.cluster_id, cluster.created_ms)
    {
        return Ok(());
    }
    tracing::warn!(
        server = %describe(registration),
        "data server of another cluster: it belongs to NS-{namespce_id}-{cluster_id}-{c_time}, not to NS-{}-{}-{}",
        cluster.namespace_id,
        cluster.cluster_id,
        cluster.created_ms,
    );
    Err(FsError::Unregistered(format!("Unregistered server: {}", describe(registration))))
}

/// The registration under which a data server is known from now on. Its address is the one from which it speaks.
pub fn registration_of(proto: &DatanodeRegistrationProto, peer: IpAddr) -> FsResult<Registration> {
    let id = &proto.datanode_id;
    let names = [&id.datanode_uuid, &id.host_name, &proto.software_version];
    if names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
        return Err(FsError::InvalidArgument(format!(
            "a data server's uuid, host name and version have at most {NAME_BYTES_MAX} bytes"
        )));
    }
    let ip = ip_of(peer);
    let host_name = if id.host_name.is_empty() { &ip } else { &id.host_name };
    Ok(Registration {
        uuid: id.datanode_uuid.as_str().into(),
        ip: ip.as_str().into(),
        host_name: host_name.as_str().into(),
        transfer_port: port("transfer", id.xfer_port)?,
        info_port: port("information", id.info_port)?,
        info_secure_port: port("secure information", id.info_secure_port.unwrap_or(0))?,
        ipc_port: port("RPC", id.ipc_port)?,
        software_version: proto.software_version.as_str().into(),
    })
}

/// An address in the one way in which it is written and compared here.
pub fn ip_of(peer: IpAddr) -> String {
    peer.to_canonical().to_string()
}

fn port(what: &str, number: u32) -> FsResult<u16> {
    u16::try_from(number)
        .map_err(|_| FsError::InvalidArgument(format!("{number} is no {what} port: ports end at 65535")))
}

/// The speaker of a message, as it names itself, with the session key that it was given at its registration, and the
/// connection that brought the message.
pub fn server_id(connection: u64, registration: &DatanodeRegistrationProto) -> ServerId<'_> {
    let id = &registration.datanode_id;
    ServerId {
        uuid: &id.datanode_uuid,
        ip: &id.ip_addr,
        // An impossible port belongs to no server.
        transfer_port: u16::try_from(id.xfer_port).unwrap_or(0),
        session: registration.keys.current_key.key_bytes.as_deref().unwrap_or_default(),
        connection,
    }
}

/// The key of a session goes where a cluster with block tokens tells its newest key. Tokens are off, so a data server
/// has no use for a key; but Hadoop's keep the answer to their registration as it is, and send all of it with each
/// message to the server that gave it. They show it to no other peer.
pub fn keys_with(session: &SessionKey) -> ExportedBlockKeysProto {
    let key_bytes = Some(Bytes::copy_from_slice(&session.0));
    ExportedBlockKeysProto {
        current_key: BlockKeyProto { key_bytes, ..BlockKeyProto::default() },
        ..ExportedBlockKeysProto::default()
    }
}

/// The data server in the words of Hadoop's logs.
pub fn describe(registration: &DatanodeRegistrationProto) -> String {
    let id = &registration.datanode_id;
    let info = &registration.storage_info;
    format!(
        "DatanodeRegistration({}:{}, datanodeUuid={}, infoPort={}, infoSecurePort={}, ipcPort={}, \
         storageInfo=lv={};cid={};nsid={};c={})",
        id.ip_addr,
        id.xfer_port,
        id.datanode_uuid,
        id.info_port,
        id.info_secure_port.unwrap_or(0),
        id.ipc_port,
        info.layout_version as i32,
        info.cluster_id,
        info.namespce_id,
        info.c_time,
    )
}

/// The leading numbers of a version: 3.5.0-SNAPSHOT is 3, 5, 0.
fn numbers(version: &str) -> Vec<u32> {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    version.split('.').map_while(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::DatanodeIdProto;

    fn cluster() -> Cluster {
        Cluster {
            cluster_id: "CID-1".into(),
            namespace_id: 42,
            group: base::GroupId::ROOT,
            block_pool: "BP-1-127.0.0.1-5".into(),
            created_ms: 5,
            first_level: base::Level::FIRST,
            secret: None,
            restored_at: None,
        }
    }

    fn registration() -> DatanodeRegistrationProto {
        DatanodeRegistrationProto {
            datanode_id: DatanodeIdProto {
                ip_addr: "0.0.0.0".into(),
                host_name: "worker".into(),
                datanode_uuid: "uuid".into(),
                xfer_port: 9866,
                info_port: 9864,
                ipc_port: 9867,
                info_secure_port: None,
            },
            storage_info: StorageInfoProto {
                layout_version: -57i32 as u32,
                namespce_id: 42,
                cluster_id: "CID-1".into(),
                c_time: 5,
            },
            software_version: "3.5.0".into(),
            ..DatanodeRegistrationProto::default()
        }
    }

    fn refusal(change: impl FnOnce(&mut DatanodeRegistrationProto)) -> FsError {
        let mut registration = registration();
        change(&mut registration);
        check_registration(&cluster(), &registration).unwrap_err()
    }

    #[test]
    fn a_server_of_this_cluster_is_known_by_the_address_it_speaks_from() {
        assert_eq!(check_registration(&cluster(), &registration()), Ok(()));
        let known = registration_of(&registration(), "::ffff:10.1.2.3".parse().unwrap()).unwrap();
        assert_eq!((&*known.ip, &*known.host_name, known.transfer_port), ("10.1.2.3", "worker", 9866));
    }

    #[test]
    fn a_server_of_another_cluster_is_unregistered() {
        let changes: [fn(&mut DatanodeRegistrationProto); 3] = [
            |registration| registration.storage_info.cluster_id = "CID-2".into(),
            |registration| registration.storage_info.namespce_id = 43,
            |registration| registration.storage_info.c_time = 6,
        ];
        for change in changes {
            let FsError::Unregistered(message) = refusal(change) else { panic!("another error") };
            assert!(
                message.starts_with(
                    "Unregistered server: DatanodeRegistration(0.0.0.0:9866, datanodeUuid=uuid,"
                )
            );
        }
    }

    #[test]
    fn a_newer_layout_and_an_older_version_are_incorrect() {
        let newer = refusal(|registration| registration.storage_info.layout_version = -58i32 as u32);
        assert_eq!(
            newer,
            FsError::IncorrectVersion(
                "Unexpected version of data node. Reported: -58. Expecting = -57.".into()
            )
        );
        for version in ["2.10.2", "", "x"] {
            let FsError::IncorrectVersion(message) = refusal(|it| it.software_version = version.into())
            else {
                panic!("another error")
            };
            assert!(message.contains("too low"));
        }
        for version in ["3.0.0", "3.3.6", "3.5.0-SNAPSHOT", "3.5.0-clover-0.2.0", "4.0"] {
            let mut registration = registration();
            registration.software_version = version.into();
            assert_eq!(check_registration(&cluster(), &registration), Ok(()));
        }
    }

    #[test]
    fn names_and_ports_have_limits() {
        let peer = "10.1.2.3".parse().unwrap();
        let mut long = registration();
        long.datanode_id.datanode_uuid = "u".repeat(256);
        assert!(matches!(registration_of(&long, peer), Err(FsError::InvalidArgument(_))));
        let mut high = registration();
        high.datanode_id.ipc_port = 65_536;
        assert!(matches!(registration_of(&high, peer), Err(FsError::InvalidArgument(_))));
    }
}
