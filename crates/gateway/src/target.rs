//! The choice of the data server to which a client is sent, as a NameNode chooses it.

use crate::{
    error::{Refusal, Result},
    operation::Transfer,
};
use client::FileSystem;
use proto::hdfs::{
    DatanodeInfoProto, DatanodeReportTypeProto, GetDatanodeReportRequestProto,
    GetDatanodeReportResponseProto, GetFileInfoRequestProto, GetFileInfoResponseProto,
    datanode_info_proto::AdminState,
};
use std::net::IpAddr;

/// Data servers that a client does not want, as `host` or `host:port` with the port for data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded(Vec<String>);

impl Excluded {
    /// Reads names that are parted by commas.
    pub fn parse(text: &str) -> Self {
        Self(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    fn contains(&self, server: &DatanodeInfoProto) -> bool {
        let id = &server.id;
        self.0.iter().any(|name| {
            [&id.host_name, &id.ip_addr]
                .into_iter()
                .any(|host| name == host || name.strip_prefix(&**host) == Some(&format!(":{}", id.xfer_port)))
        })
    }
}

/// `host:port` of the HTTP port of a data server that can do it.
///
/// # Errors
/// There is no such file, the offset is behind its end, this user may not read it, or there is no data server.
pub async fn choose(
    user: &FileSystem,
    operator: &FileSystem,
    path: &str,
    transfer: &Transfer,
    client: IpAddr,
    excluded: &Excluded,
) -> Result<String> {
    let block_size = match transfer {
        Transfer::Create(create) => create.block_size.unwrap_or(0),
        Transfer::Open { .. } | Transfer::Checksum | Transfer::Append => {
            if let Some(server) = holder(user, path, transfer, excluded).await? {
                return Ok(address(&server));
            }
            0
        }
    };
    let request = GetDatanodeReportRequestProto { r#type: DatanodeReportTypeProto::Live as i32 };
    let report: GetDatanodeReportResponseProto = operator.call("getDatanodeReport", &request).await?;
    let random = u128::from_ne_bytes(*uuid::Uuid::new_v4().as_bytes());
    pick(&report.di, client, block_size, excluded, random).map(address).ok_or_else(|| {
        Refusal::io(format!(
            "Failed to find datanode, suggest to check cluster health. excludeDatanodes={}",
            excluded.0.join(",")
        ))
    })
}

/// A server that has the bytes: those from the offset on; the last ones, for an append and a checksum.
async fn holder(
    user: &FileSystem,
    path: &str,
    transfer: &Transfer,
    excluded: &Excluded,
) -> Result<Option<DatanodeInfoProto>> {
    let answer: GetFileInfoResponseProto =
        user.call("getFileInfo", &GetFileInfoRequestProto { src: path.to_owned() }).await?;
    let Some(status) = answer.fs else { return Err(Refusal::not_found(format!("File {path} not found."))) };
    let offset = match transfer {
        Transfer::Open { offset: 0, .. } => 0,
        Transfer::Open { offset, .. } if *offset >= status.length => {
            return Err(Refusal::io(format!(
                "Offset={offset} out of the range [0, {}); OPEN, path={path}",
                status.length
            )));
        }
        Transfer::Open { offset, .. } => *offset,
        _ => status.length.saturating_sub(1),
    };
    if status.length == 0 {
        return Ok(None);
    }
    let located = user.block_locations(path, offset, 1).await?;
    let servers = located.blocks.into_iter().next().map(|block| block.locs).unwrap_or_default();
    Ok(servers.into_iter().find(|server| !excluded.contains(server)))
}

/// A server of the client's own machine, else any one; those without room, or about to leave, come last.
fn pick<'a>(
    servers: &'a [DatanodeInfoProto],
    client: IpAddr,
    block_size: u64,
    excluded: &Excluded,
    random: u128,
) -> Option<&'a DatanodeInfoProto> {
    let wanted: Vec<_> = servers.iter().filter(|server| !excluded.contains(server)).collect();
    let is_good = |server: &&DatanodeInfoProto| {
        server.admin_state() == AdminState::Normal && server.remaining() > block_size
    };
    let good: Vec<_> = wanted.iter().copied().filter(is_good).collect();
    let among = if good.is_empty() { wanted } else { good };
    let local: Vec<_> =
        among.iter().copied().filter(|server| server.id.ip_addr.parse() == Ok(client)).collect();
    let among = if local.is_empty() { among } else { local };
    let count = among.len() as u128;
    (count > 0).then(|| among[(random % count) as usize])
}

fn address(server: &DatanodeInfoProto) -> String {
    let id = &server.id;
    let host = if id.host_name.is_empty() { &id.ip_addr } else { &id.host_name };
    match host.contains(':') {
        true => format!("[{host}]:{}", id.info_port),
        false => format!("{host}:{}", id.info_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::DatanodeIdProto;

    fn server(ip: &str, remaining: u64) -> DatanodeInfoProto {
        DatanodeInfoProto {
            id: DatanodeIdProto {
                ip_addr: ip.into(),
                host_name: format!("host-{ip}"),
                xfer_port: 9866,
                info_port: 9864,
                ..Default::default()
            },
            remaining: Some(remaining),
            ..Default::default()
        }
    }

    #[test]
    fn the_clients_own_machine_comes_first_and_full_servers_last() {
        let servers = [server("10.0.0.1", 100), server("10.0.0.2", 100), server("10.0.0.3", 0)];
        let picked = |client: &str, size, excluded: &str, random| {
            pick(&servers, client.parse().unwrap(), size, &Excluded::parse(excluded), random).map(address)
        };
        for random in 0..7 {
            assert_eq!(picked("10.0.0.2", 1, "", random).as_deref(), Some("host-10.0.0.2:9864"));
            assert_ne!(picked("10.9.9.9", 1, "", random).as_deref(), Some("host-10.0.0.3:9864"));
            assert_eq!(picked("10.0.0.2", 1, "10.0.0.2:9866", random).as_deref(), Some("host-10.0.0.1:9864"));
            assert!(picked("10.0.0.3", 1_000, "", random).as_deref() == Some("host-10.0.0.3:9864"));
        }
        assert_eq!(picked("10.0.0.2", 1, "host-10.0.0.1,host-10.0.0.2,10.0.0.3", 1), None);
        assert!(picked("10.0.0.2", 1, "10.0.0.2:1", 1).is_some());
    }

    #[test]
    fn both_machines_of_a_choice_get_their_turn() {
        let servers = [server("10.0.0.1", 100), server("10.0.0.2", 100)];
        let client = "10.9.9.9".parse().unwrap();
        let picked = |random| pick(&servers, client, 1, &Excluded::default(), random).map(address);
        assert_ne!(picked(0), picked(1));
    }
}
