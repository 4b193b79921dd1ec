//! Data servers as all groups see them. Each group keeps the replicas of its own blocks on each of them.

use super::lists::Parts;
use bytes::Bytes;
use prost::{DecodeError, Message};
use proto::hdfs::{self as p, datanode_info_proto::AdminState};
use std::collections::{BTreeMap, BTreeSet};

/// The request for the part of each group. The state of a server is known only when all groups have told theirs, so each is asked for all
/// servers where servers in one state are wanted.
pub fn part_of(request: &Bytes) -> Bytes {
    match state_wanted(request) {
        None => request.clone(),
        Some(_) => {
            let all = p::DatanodeReportTypeProto::All as i32;
            p::GetDatanodeReportRequestProto { r#type: all }.encode_to_vec().into()
        }
    }
}

/// Both requests have the type in their first field.
fn state_wanted(request: &[u8]) -> Option<AdminState> {
    match p::GetDatanodeReportRequestProto::decode(request).ok()?.r#type() {
        p::DatanodeReportTypeProto::Decommissioning => Some(AdminState::DecommissionInprogress),
        p::DatanodeReportTypeProto::EnteringMaintenance => Some(AdminState::EnteringMaintenance),
        p::DatanodeReportTypeProto::InMaintenance => Some(AdminState::InMaintenance),
        _ => None,
    }
}

pub fn report(request: &[u8], parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = Union::of(parts.len());
    for part in parts.into_values() {
        all.add(p::GetDatanodeReportResponseProto::decode(part)?.di, |server| server);
    }
    let di = all.into_values(request, |server| server);
    Ok(p::GetDatanodeReportResponseProto { di }.encode_to_vec().into())
}

pub fn storage_report(request: &[u8], parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = Union::of(parts.len());
    for part in parts.into_values() {
        let servers = p::GetDatanodeStorageReportResponseProto::decode(part)?.datanode_storage_reports;
        all.add(servers, |server| &mut server.datanode_info);
    }
    let datanode_storage_reports = all.into_values(request, |server| &mut server.datanode_info);
    Ok(p::GetDatanodeStorageReportResponseProto { datanode_storage_reports }.encode_to_vec().into())
}

/// The servers that are slow by what any group has heard. Each data server tells all groups what it has measured; a group that has just been
/// started may not have heard of it yet.
pub fn slow_report(parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all: BTreeMap<String, p::DatanodeInfoProto> = BTreeMap::new();
    for part in parts.into_values() {
        for server in p::GetSlowDatanodeReportResponseProto::decode(part)?.datanode_info_proto {
            match all.get_mut(&server.id.datanode_uuid) {
                Some(known) => join(known, &server),
                None => _ = all.insert(server.id.datanode_uuid.clone(), server),
            }
        }
    }
    let datanode_info_proto = all.into_values().collect();
    Ok(p::GetSlowDatanodeReportResponseProto { datanode_info_proto }.encode_to_vec().into())
}

/// Servers by uuid, each with what the groups say of it together.
struct Union<T> {
    /// Each with the number of groups that know it.
    servers: BTreeMap<String, (T, usize)>,
    groups: usize,
}

impl<T> Union<T> {
    fn of(groups: usize) -> Self {
        Self { servers: BTreeMap::new(), groups }
    }

    fn add(&mut self, servers: Vec<T>, info: fn(&mut T) -> &mut p::DatanodeInfoProto) {
        for mut server in servers {
            let id = &info(&mut server).id;
            let name = match id.datanode_uuid.is_empty() {
                // A list names it, and the group has not heard of it.
                true => format!("{}:{}", id.ip_addr, id.xfer_port),
                false => id.datanode_uuid.clone(),
            };
            match self.servers.get_mut(&name) {
                Some((known, count)) => {
                    join(info(known), info(&mut server));
                    *count += 1;
                }
                None => _ = self.servers.insert(name, (server, 1)),
            }
        }
    }

    fn into_values(self, request: &[u8], info: fn(&mut T) -> &mut p::DatanodeInfoProto) -> Vec<T> {
        let wanted = state_wanted(request);
        let groups = self.groups;
        let mut servers = self.servers;
        let heard_of: BTreeSet<_> = servers
            .values_mut()
            .map(|(server, _)| &info(server).id)
            .filter(|id| !id.datanode_uuid.is_empty())
            .map(|id| format!("{}:{}", id.ip_addr, id.xfer_port))
            .collect();
        servers.retain(|name, _| !heard_of.contains(name));
        let all = servers.into_values().map(|(mut server, known_by)| {
            if known_by < groups {
                not_yet(info(&mut server));
            }
            server
        });
        all.filter_map(|mut server| {
            let state = info(&mut server).admin_state();
            wanted.is_none_or(|wanted| state == wanted).then_some(server)
        })
        .collect()
    }
}

/// All groups tell the same volumes, room and connections of a server. Each group tells its own blocks, which add up.
fn join(known: &mut p::DatanodeInfoProto, other: &p::DatanodeInfoProto) {
    known.num_blocks = Some(known.num_blocks().saturating_add(other.num_blocks()));
    known.block_pool_used = Some(known.block_pool_used().saturating_add(other.block_pool_used()));
    if distance(other.admin_state()) > distance(known.admin_state()) {
        known.admin_state = other.admin_state;
    }
}

/// A group has not heard of the server, perhaps because it has just been started, and may need it.
fn not_yet(server: &mut p::DatanodeInfoProto) {
    let state = match server.admin_state() {
        AdminState::Decommissioned => AdminState::DecommissionInprogress,
        AdminState::InMaintenance => AdminState::EnteringMaintenance,
        state => state,
    };
    server.admin_state = Some(state as i32);
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

    fn asked(kind: p::DatanodeReportTypeProto) -> Bytes {
        p::GetDatanodeReportRequestProto { r#type: kind as i32 }.encode_to_vec().into()
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
        let of_groups = [
            vec![server("a", done, 5), server("b", done, 0)],
            vec![server("a", in_progress, 7), server("b", done, 0)],
        ];
        let told = p::GetDatanodeReportResponseProto::decode(
            report(&asked(p::DatanodeReportTypeProto::Live), parts(&of_groups)).unwrap(),
        )
        .unwrap();
        let told: Vec<_> = told
            .di
            .iter()
            .map(|server| (&*server.id.datanode_uuid, server.admin_state(), server.num_blocks()))
            .collect();
        assert_eq!(told, [("a", in_progress, 12), ("b", done, 0)]);
    }

    #[test]
    fn a_listed_server_that_one_group_has_heard_of_is_told_once() {
        let at = |uuid: &str, port: u32| {
            let mut server = server(uuid, AdminState::Normal, 0);
            (server.id.ip_addr, server.id.xfer_port) = ("10.0.0.1".to_owned(), port);
            server
        };
        let of_groups = [vec![at("", 1), at("", 2), at("", 3)], vec![at("a", 1), at("", 2), at("", 3)]];
        let told = report(&asked(p::DatanodeReportTypeProto::All), parts(&of_groups)).unwrap();
        let told = p::GetDatanodeReportResponseProto::decode(told).unwrap().di;
        let told: Vec<_> =
            told.iter().map(|server| (&*server.id.datanode_uuid, server.id.xfer_port)).collect();
        assert_eq!(told, [("", 2), ("", 3), ("a", 1)]);
    }

    /// `hdfs dfsadmin -report -inmaintenance` asks for those in one state. A group that still needs the server has it in another.
    #[test]
    fn a_server_is_in_maintenance_only_if_it_is_for_all_groups_whatever_they_were_asked() {
        let (entering, done) = (AdminState::EnteringMaintenance, AdminState::InMaintenance);
        let of_groups = [vec![server("a", done, 5)], vec![server("a", entering, 7)]];
        let told = |kind: p::DatanodeReportTypeProto| {
            let request = asked(kind);
            let part = p::GetDatanodeReportRequestProto::decode(part_of(&request)).unwrap();
            assert_eq!(part.r#type(), p::DatanodeReportTypeProto::All, "each group tells all");
            let told = report(&request, parts(&of_groups)).unwrap();
            p::GetDatanodeReportResponseProto::decode(told).unwrap().di.len()
        };
        assert_eq!(told(p::DatanodeReportTypeProto::EnteringMaintenance), 1);
        assert_eq!(told(p::DatanodeReportTypeProto::InMaintenance), 0, "the second group needs it");
    }

    #[test]
    fn a_server_is_slow_if_any_group_has_heard_so_and_is_told_once() {
        let part = |servers: Vec<p::DatanodeInfoProto>| {
            let told = p::GetSlowDatanodeReportResponseProto { datanode_info_proto: servers };
            Bytes::from(told.encode_to_vec())
        };
        let done = AdminState::Decommissioned;
        let of_groups = [
            part(vec![server("a", AdminState::Normal, 5)]),
            part(vec![]),
            part(vec![server("a", AdminState::Normal, 7), server("b", done, 1)]),
        ];
        let told = slow_report((0..).map(GroupId).zip(of_groups).collect()).unwrap();
        let told = p::GetSlowDatanodeReportResponseProto::decode(told).unwrap().datanode_info_proto;
        let told: Vec<_> = told
            .iter()
            .map(|server| (&*server.id.datanode_uuid, server.admin_state(), server.num_blocks()))
            .collect();
        assert_eq!(told, [("a", AdminState::Normal, 12), ("b", done, 1)]);
    }

    /// A group whose metadata server has just been started does not know the server yet, and may need it.
    #[test]
    fn a_server_that_a_group_does_not_know_may_not_be_switched_off() {
        let of_groups = [vec![server("a", AdminState::Decommissioned, 5)], vec![]];
        let told = p::GetDatanodeReportResponseProto::decode(
            report(&asked(p::DatanodeReportTypeProto::Live), parts(&of_groups)).unwrap(),
        )
        .unwrap();
        assert_ne!(told.di[0].admin_state(), AdminState::Decommissioned);
    }
}
