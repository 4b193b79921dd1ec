//! The questions and orders of an operator: `dfsadmin` of Hadoop's command line.

use crate::{Error, FileSystem, Result};
use base::AdminState;
use proto::{
    clover::admin::{
        GetFactsRequestProto, GetFactsResponseProto, GetGroupRequestProto, GetGroupResponseProto,
    },
    common, hdfs, protocol,
};
use std::collections::{BTreeMap, HashSet};

/// A data server as the metadata server sees it. Sizes in bytes, times in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataServer {
    pub uuid: String,
    pub host_name: String,
    /// `ip:port` for data.
    pub address: String,
    /// `ip:port` for RPC.
    pub rpc_address: String,
    pub rack: String,
    pub version: String,
    pub is_alive: bool,
    pub admin_state: AdminState,
    pub capacity: u64,
    pub used: u64,
    pub non_dfs_used: u64,
    pub remaining: u64,
    pub blocks: u64,
    /// Connections for data.
    pub connections: u32,
    pub last_contact_ms: u64,
    /// 0 before the first.
    pub last_block_report_ms: u64,
}

/// One directory of a data server, as it last said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub storage_id: String,
    pub is_failed: bool,
    pub capacity: u64,
    pub used: u64,
    pub remaining: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SafeModeOrder {
    Ask,
    Enter,
    Leave,
    /// Even if replicas are there that the namespace knows nothing of.
    ForceExit,
}

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    pub file_id: u64,
    pub path: String,
    pub client_name: String,
    pub client_machine: String,
}

impl DataServer {
    fn from_wire(wire: hdfs::DatanodeInfoProto, is_alive: bool) -> Self {
        let id = &wire.id;
        Self {
            uuid: id.datanode_uuid.clone(),
            host_name: id.host_name.clone(),
            address: format!("{}:{}", id.ip_addr, id.xfer_port),
            rpc_address: format!("{}:{}", id.ip_addr, id.ipc_port),
            rack: wire.location().to_owned(),
            version: wire.software_version().to_owned(),
            is_alive,
            admin_state: wire.admin_state().into(),
            capacity: wire.capacity(),
            used: wire.dfs_used(),
            non_dfs_used: wire.non_dfs_used(),
            remaining: wire.remaining(),
            blocks: u64::from(wire.num_blocks()),
            connections: wire.xceiver_count(),
            last_contact_ms: wire.last_update(),
            last_block_report_ms: wire.last_block_report_time(),
        }
    }
}

/// Each server of the report `all` once. The later report `dead` names the dead ones; all others live, and come first.
fn known_servers(all: Vec<hdfs::DatanodeInfoProto>, dead: &[hdfs::DatanodeInfoProto]) -> Vec<DataServer> {
    let dead: HashSet<&str> = dead.iter().map(|wire| &*wire.id.datanode_uuid).collect();
    let (living, lost): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|wire| !dead.contains(&*wire.id.datanode_uuid));
    let told = |servers: Vec<_>, is_alive| {
        servers.into_iter().map(move |wire| DataServer::from_wire(wire, is_alive))
    };
    told(living, true).chain(told(lost, false)).collect()
}

impl FileSystem {
    /// The groups of a user, as the metadata server knows them.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn groups_of(&self, user: &str) -> Result<Vec<String>> {
        let request = common::GetGroupsForUserRequestProto { user: user.to_owned() };
        let answer: common::GetGroupsForUserResponseProto =
            self.namenodes_for(protocol::GET_USER_MAPPINGS).call("getGroupsForUser", &request).await?;
        Ok(answer.groups)
    }

    /// The state of the group of metadata servers, as the one that is asked knows it, or its active.
    ///
    /// # Errors
    /// The server is no Clover's; or the call fails: see [`FileSystem::call`].
    pub async fn group(&self) -> Result<GetGroupResponseProto> {
        self.namenodes_for(protocol::ADMIN).call("getGroup", &GetGroupRequestProto::default()).await
    }

    /// The facts that the server that is asked knows of itself, its group and the data servers, for a verdict on the cluster. A server of an
    /// older release, and one that waits for a person, tell of the group only.
    ///
    /// # Errors
    /// The server is no Clover's; or the call fails: see [`FileSystem::call`].
    pub async fn facts(&self) -> Result<GetFactsResponseProto> {
        let servers = self.namenodes_for(protocol::ADMIN);
        match servers.call("getFacts", &GetFactsRequestProto {}).await {
            Err(Error::Fs(_)) => {
                let local = GetGroupRequestProto { is_local: Some(true) };
                let group = servers.call("getGroup", &local).await?;
                Ok(GetFactsResponseProto { group, ..GetFactsResponseProto::default() })
            }
            told => told,
        }
    }

    /// All data servers: the living ones, then the lost ones.
    ///
    /// # Errors
    /// This user is no superuser; or the call fails: see [`FileSystem::call`].
    pub async fn data_servers(&self) -> Result<Vec<DataServer>> {
        let all = self.datanode_report(hdfs::DatanodeReportTypeProto::All).await?;
        // This call comes last: a server that dies or comes back between the two calls is in the first answer all the same.
        let dead = self.datanode_report(hdfs::DatanodeReportTypeProto::Dead).await?;
        Ok(known_servers(all, &dead))
    }

    async fn datanode_report(
        &self,
        kind: hdfs::DatanodeReportTypeProto,
    ) -> Result<Vec<hdfs::DatanodeInfoProto>> {
        let request = hdfs::GetDatanodeReportRequestProto { r#type: kind as i32 };
        let response: hdfs::GetDatanodeReportResponseProto = self.call("getDatanodeReport", &request).await?;
        Ok(response.di)
    }

    /// The volumes of each data server that is alive, by its uuid.
    ///
    /// # Errors
    /// This user is no superuser; or the call fails: see [`FileSystem::call`].
    pub async fn volumes(&self) -> Result<BTreeMap<String, Vec<Volume>>> {
        let request =
            hdfs::GetDatanodeStorageReportRequestProto { r#type: hdfs::DatanodeReportTypeProto::Live as i32 };
        let response: hdfs::GetDatanodeStorageReportResponseProto =
            self.call("getDatanodeStorageReport", &request).await?;
        let volumes = |reports: Vec<hdfs::StorageReportProto>| {
            let volume = |report: hdfs::StorageReportProto| Volume {
                is_failed: report.failed(),
                capacity: report.capacity(),
                used: report.dfs_used(),
                remaining: report.remaining(),
                storage_id: report.storage.map(|storage| storage.storage_uuid).unwrap_or_default(),
            };
            reports.into_iter().map(volume).collect()
        };
        let servers = response.datanode_storage_reports.into_iter();
        Ok(servers
            .map(|server| (server.datanode_info.id.datanode_uuid.clone(), volumes(server.storage_reports)))
            .collect())
    }

    /// Whether safe mode is on afterwards.
    ///
    /// # Errors
    /// This user is no superuser and the order is not to ask; or the call fails: see [`FileSystem::call`].
    pub async fn safe_mode(&self, order: SafeModeOrder) -> Result<bool> {
        let action = match order {
            SafeModeOrder::Ask => hdfs::SafeModeActionProto::SafemodeGet,
            SafeModeOrder::Enter => hdfs::SafeModeActionProto::SafemodeEnter,
            SafeModeOrder::Leave => hdfs::SafeModeActionProto::SafemodeLeave,
            SafeModeOrder::ForceExit => hdfs::SafeModeActionProto::SafemodeForceExit,
        };
        let request = hdfs::SetSafeModeRequestProto { action: action as i32, checked: Some(false) };
        let response: hdfs::SetSafeModeResponseProto = self.call("setSafeMode", &request).await?;
        Ok(response.result)
    }

    /// Writes an image of the namespace; safe mode must be on.
    ///
    /// # Errors
    /// This user is no superuser, safe mode is off, or the image cannot be written; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn save_namespace(&self) -> Result<()> {
        let request = hdfs::SaveNamespaceRequestProto::default();
        let _: hdfs::SaveNamespaceResponseProto = self.call("saveNamespace", &request).await?;
        Ok(())
    }

    /// Has the journal begin a new segment with its next entry. Returns that entry's number.
    ///
    /// # Errors
    /// This user is no superuser, or safe mode is on; or the call fails: see [`FileSystem::call`].
    pub async fn roll_edits(&self) -> Result<u64> {
        let response: hdfs::RollEditsResponseProto =
            self.call("rollEdits", &hdfs::RollEditsRequestProto {}).await?;
        Ok(response.new_segment_tx_id)
    }

    /// Has every metadata server read again which data servers may take part: each has a list of its own. Why one
    /// did not, by its address.
    pub async fn refresh_nodes(&self) -> Vec<(String, std::result::Result<(), String>)> {
        let answers = self.namenodes().call_each("refreshNodes", &hdfs::RefreshNodesRequestProto {}).await;
        let done = |answer: std::result::Result<hdfs::RefreshNodesResponseProto, String>| answer.map(drop);
        answers.into_iter().map(|(address, answer)| (address, done(answer))).collect()
    }

    /// The files at or below `path` that are being written, in order of their ids.
    ///
    /// # Errors
    /// This user is no superuser, or `path` does not begin with a slash; or a call fails: see [`FileSystem::call`].
    pub async fn open_files(&self, path: &str) -> Result<Vec<OpenFile>> {
        let mut files = Vec::new();
        let mut after = 0;
        loop {
            let request = hdfs::ListOpenFilesRequestProto {
                id: after,
                types: vec![hdfs::OpenFilesTypeProto::AllOpenFiles as i32],
                path: Some(path.to_owned()),
            };
            let response: hdfs::ListOpenFilesResponseProto = self.call("listOpenFiles", &request).await?;
            let last = response.entries.last().map(|entry| entry.id);
            files.extend(response.entries.into_iter().map(|entry| OpenFile {
                file_id: entry.id as u64,
                path: entry.path,
                client_name: entry.client_name,
                client_machine: entry.client_machine,
            }));
            match last {
                // A page without entries would lead nowhere.
                Some(last) if response.has_more && last > after => after = last,
                _ => return Ok(files),
            }
        }
    }

    /// The files at or below `path` that have lost a block, a file once for each such block.
    ///
    /// # Errors
    /// This user is no superuser, or the server is in safe mode since its start; or a call fails: see
    /// [`FileSystem::call`].
    pub async fn corrupt_files(&self, path: &str) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let mut cookie = None;
        loop {
            let request = hdfs::ListCorruptFileBlocksRequestProto { path: path.to_owned(), cookie };
            let response: hdfs::ListCorruptFileBlocksResponseProto =
                self.call("listCorruptFileBlocks", &request).await?;
            if response.corrupt.files.is_empty() {
                return Ok(files);
            }
            files.extend(response.corrupt.files);
            cookie = Some(response.corrupt.cookie);
        }
    }

    /// Tells the data servers how many bytes per second they may move for balancing.
    ///
    /// # Errors
    /// This user is no superuser, or the number is above the server's limit; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn set_balancer_bandwidth(&self, bytes_per_second: u64) -> Result<()> {
        let bandwidth = i64::try_from(bytes_per_second).unwrap_or(i64::MAX);
        let request = hdfs::SetBalancerBandwidthRequestProto { bandwidth };
        let _: hdfs::SetBalancerBandwidthResponseProto = self.call("setBalancerBandwidth", &request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(uuid: &str) -> hdfs::DatanodeInfoProto {
        let id = hdfs::DatanodeIdProto { datanode_uuid: uuid.into(), ..Default::default() };
        hdfs::DatanodeInfoProto { id, ..Default::default() }
    }

    #[test]
    fn a_server_that_dies_or_comes_back_between_the_two_reports_is_told_once() {
        // Of the first report `back` was dead and `dies` was alive; by the second it is the other way round.
        let all = ["lost", "back", "dies", "well"].map(server).into();
        let told: Vec<_> = known_servers(all, &["lost", "dies"].map(server))
            .into_iter()
            .map(|server| (server.uuid, server.is_alive))
            .collect();
        let wanted = [("back", true), ("well", true), ("lost", false), ("dies", false)];
        assert_eq!(told, wanted.map(|(uuid, is_alive)| (uuid.to_owned(), is_alive)));
        // One that has joined, and one that was forgotten, between the two.
        assert_eq!(known_servers(vec![server("well")], &[server("joined")]).len(), 1);
    }
}
