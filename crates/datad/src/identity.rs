//! How this server is known to others.

use proto::hdfs::{DatanodeIdProto, DatanodeInfoProto};
use std::{net::SocketAddr, sync::Arc};

/// The facts of a `DatanodeID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub uuid: Arc<str>,
    pub hostname: Arc<str>,
    /// The address at which blocks are sent and fetched; its IP is the server's announced address.
    pub transfer_addr: SocketAddr,
    pub ipc_port: u16,
    pub http_port: u16,
}

impl Identity {
    pub fn to_proto(&self) -> DatanodeIdProto {
        DatanodeIdProto {
            ip_addr: self.transfer_addr.ip().to_string(),
            host_name: self.hostname.to_string(),
            datanode_uuid: self.uuid.to_string(),
            xfer_port: self.transfer_addr.port().into(),
            info_port: self.http_port.into(),
            ipc_port: self.ipc_port.into(),
            info_secure_port: Some(0),
        }
    }

    pub fn to_info_proto(&self) -> DatanodeInfoProto {
        DatanodeInfoProto { id: self.to_proto(), ..Default::default() }
    }
}
