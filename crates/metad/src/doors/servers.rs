//! Data servers as all groups see them. Each group keeps the replicas of its own blocks on each of them.

use super::lists::Parts;
use bytes::Bytes;
use prost::{DecodeError, Message};
use proto::hdfs::{self as p, datanode_info_proto::AdminState};
use std::collections::BTreeMap;

pub fn report(parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = Union::default();
    for part in parts.into_values() {
        all.add(p::GetDatanodeReportResponseProto::decode(part)?.di, |server| server);
    }
    Ok(p::GetDatanodeReportResponseProto { di: all.into_values() }.encode_to_vec().into())
}

pub fn storage_report(parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = Union::default();
    for part in parts.into_values() {
        let servers = p::GetDatanodeStorageReportResponseProto::decode(part)?.datanode_storage_reports;
        all.add(servers, |server| &mut server.datanode_info);
    }
    Ok(p::GetDatanodeStorageReportResponseProto { datanode_storage_reports: all.into_values() }
        .encode_to_vec()
        .into())
}

/// Servers by uuid, each with what the groups say of it together.
struct Union<T>(BTreeMap<String, T>);

impl<T> Default for Union<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Union<T> {
    fn add(&mut self, servers: Vec<T>, info: fn(&mut T) -> &mut p::DatanodeInfoProto) {
        for mut server in servers {
            let uuid = info(&mut server).id.datanode_uuid.clone();
            match self.0.get_mut(&uuid) {
                Some(known) => join(info(known), info(&mut server)),
                None => _ = self.0.insert(uuid, server),
            }
        }
    }

    fn into_values(self) -> Vec<T> {
        self.0.into_values().collect()
    }
}

/// Volumes, room and connections are those of the server, whoever asks. Blocks add up.
fn join(known: &mut p::DatanodeInfoProto, other: &p::DatanodeInfoProto) {
    known.num_blocks = Some(known.num_blocks().saturating_add(other.num_blocks()));
    known.block_pool_used = Some(known.block_pool_used().saturating_add(other.block_pool_used()));
    if distance(other.admin_state()) > distance(known.admin_state()) {
        known.admin_state = other.admin_state;
    }
}

/// How far the server is from where it may be switched off. A server that one group still needs has to stay.
fn distance(state: AdminState) -> u8 {
    match state {
        AdminState::Decommissioned => 0,
        AdminState::InMaintenance => 1,
        AdminState::EnteringMaintenance => 2,
        AdminState::DecommissionInprogress => 3,
        AdminState::Normal => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::GroupId;

    fn server(uuid: &str, state: AdminState, blocks: u32) -> p::DatanodeInfoProto {
        p::DatanodeInfoProto {
            id: p::DatanodeIdProto { datanode_uuid: uuid.into(), ..p::DatanodeIdProto::default() },
            admin_state: Some(state as i32),
            num_blocks: Some(blocks),
            ..p::DatanodeInfoProto::default()
        }
    }

    fn parts(of_groups: &[Vec<p::DatanodeInfoProto>]) -> Parts {
        let part = |di: &Vec<p::DatanodeInfoProto>| {
            Bytes::from(p::GetDatanodeReportResponseProto { di: di.clone() }.encode_to_vec())
        };
        (0..).map(GroupId).zip(of_groups.iter().map(part)).collect()
    }

    #[test]
    fn a_server_is_decommissioned_when_it_is_for_all_groups() {
        let (in_progress, done) = (AdminState::DecommissionInprogress, AdminState::Decommissioned);
        let of_groups = [vec![server("a", done, 5), server("b", done, 0)], vec![server("a", in_progress, 7)]];
        let told = p::GetDatanodeReportResponseProto::decode(report(parts(&of_groups)).unwrap()).unwrap();
        let told: Vec<_> = told
            .di
            .iter()
            .map(|server| (&*server.id.datanode_uuid, server.admin_state(), server.num_blocks()))
            .collect();
        assert_eq!(told, [("a", in_progress, 12), ("b", done, 0)]);
    }

    /// A group that is asked for the servers in maintenance leaves out those that it still needs. `hdfs dfsadmin -report -inmaintenance`
    /// asks so.
    #[test]
    fn a_server_is_in_maintenance_only_if_it_is_for_all_groups_whatever_they_were_asked() {
        let (entering, done) = (AdminState::EnteringMaintenance, AdminState::InMaintenance);
        let asked = |kept: AdminState| {
            let of_groups = [vec![server("a", done, 5)], vec![server("a", entering, 7)]];
            let of_groups = of_groups.map(|mut told| {
                told.retain(|server| server.admin_state() == kept);
                told
            });
            p::GetDatanodeReportResponseProto::decode(report(parts(&of_groups)).unwrap()).unwrap().di
        };
        assert_eq!(asked(entering).len(), 1);
        assert_eq!(asked(done).len(), 0, "the second group needs it");
    }

    /// A group whose metadata server has just been started does not know the server yet, and may need it.
    #[test]
    fn a_server_that_a_group_does_not_know_may_not_be_switched_off() {
        let of_groups = [vec![server("a", AdminState::Decommissioned, 5)], vec![]];
        let told = p::GetDatanodeReportResponseProto::decode(report(parts(&of_groups)).unwrap()).unwrap();
        assert_ne!(told.di[0].admin_state(), AdminState::Decommissioned);
    }
}
