//! A block as servers tell it, and its faults.

use base::{AdminState, StorageType};
use proto::{
    clover::admin::{BlockReplicasProto, ReplicaProto, ReplicaStandingProto as Standing},
    hdfs::{DatanodeInfoProto, LocatedBlockProto},
};
use std::collections::{BTreeMap, BTreeSet};

/// Racks on which a block is to be, if there are so many and it has so many replicas: Hadoop's number.
const RACKS_WANTED: usize = 2;

/// The state of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// With its pool and generation stamp, as Hadoop writes it.
    pub name: String,
    pub pool: String,
    pub id: u64,
    pub bytes: u64,
    pub counts: Counts,
    /// The places that clients are told.
    pub servers: Vec<Server>,
    /// Every replica is damaged.
    pub is_corrupt: bool,
    /// The block waits to be copied.
    pub is_queued: bool,
    /// All replicas, as far as a metadata server has told them.
    pub known: Option<Vec<Known>>,
}

/// The replicas of a block by their standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// On data servers in service.
    pub live: usize,
    pub corrupt: usize,
    /// Too many, and to be deleted.
    pub excess: usize,
    pub decommissioning: usize,
    pub decommissioned: usize,
    pub entering_maintenance: usize,
    /// Servers that are in maintenance already are mostly not told to clients.
    pub in_maintenance: usize,
    /// On storages whose contents are not surely known. They are counted above as well.
    pub stale: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    pub address: String,
    pub host_name: String,
    pub rack: String,
    pub state: AdminState,
    pub upgrade_domain: Option<String>,
    /// The storage on the server; it may be empty.
    pub storage: String,
    pub storage_type: Option<StorageType>,
}

/// A replica of which a metadata server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub server: Server,
    pub standing: Standing,
    pub corrupt_reason: Option<String>,
    pub is_storage_stale: bool,
    pub is_server_stale: bool,
}

/// A fault of a block. A block with several faults has the one that stands first here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Missing,
    Corrupt,
    UnderReplicated {
        missing: usize,
    },
    /// All its replicas are on one rack, though there are several.
    Misplaced,
}

/// Whether replicas on servers that leave service for good stand for those that a file wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// As in Hadoop's fsck: they can be read today.
    Counts,
    CountsNot,
}

impl Counts {
    /// Replicas on data servers that are decommissioned, or on the way there.
    pub fn leaving(&self) -> usize {
        self.decommissioning + self.decommissioned
    }

    /// Replicas on data servers that are in maintenance, or on the way there.
    pub fn maintained(&self) -> usize {
        self.entering_maintenance + self.in_maintenance
    }

    /// All replicas that are good and needed, wherever they are.
    pub fn total(&self) -> usize {
        self.live + self.leaving() + self.maintained()
    }

    fn add(&mut self, standing: Standing) {
        let count = match standing {
            Standing::ReplicaLive => &mut self.live,
            Standing::ReplicaCorrupt => &mut self.corrupt,
            Standing::ReplicaExcess => &mut self.excess,
            Standing::ReplicaDecommissioning => &mut self.decommissioning,
            Standing::ReplicaDecommissioned => &mut self.decommissioned,
            Standing::ReplicaEnteringMaintenance => &mut self.entering_maintenance,
            Standing::ReplicaInMaintenance => &mut self.in_maintenance,
            Standing::ReplicaDoubted => return,
        };
        *count += 1;
    }
}

impl Server {
    fn from_wire(wire: &DatanodeInfoProto, storage: Option<&String>, kind: Option<StorageType>) -> Self {
        Self {
            address: format!("{}:{}", wire.id.ip_addr, wire.id.xfer_port),
            host_name: wire.id.host_name.clone(),
            rack: wire.location().to_owned(),
            state: wire.admin_state().into(),
            upgrade_domain: wire.upgrade_domain.clone(),
            storage: storage.cloned().unwrap_or_default(),
            storage_type: kind,
        }
    }
}

impl Block {
    pub fn from_wire(located: &LocatedBlockProto) -> Self {
        let kinds: Vec<StorageType> = located.storage_types().map(StorageType::from).collect();
        let server = |(at, server): (usize, &DatanodeInfoProto)| {
            Server::from_wire(server, located.storage_i_ds.get(at), kinds.get(at).copied())
        };
        let servers: Vec<Server> = located.locs.iter().enumerate().map(server).collect();
        let mut counts = Counts::default();
        for server in &servers {
            counts.add(match server.state {
                _ if located.corrupt => Standing::ReplicaCorrupt,
                AdminState::InService => Standing::ReplicaLive,
                AdminState::DecommissionInProgress => Standing::ReplicaDecommissioning,
                AdminState::Decommissioned => Standing::ReplicaDecommissioned,
                AdminState::EnteringMaintenance => Standing::ReplicaEnteringMaintenance,
                AdminState::InMaintenance => Standing::ReplicaInMaintenance,
            });
        }
        let b = &located.b;
        Self {
            name: format!("{}:blk_{}_{}", b.pool_id, b.block_id, b.generation_stamp),
            pool: b.pool_id.clone(),
            id: b.block_id,
            bytes: b.num_bytes(),
            counts,
            servers,
            is_corrupt: located.corrupt,
            is_queued: false,
            known: None,
        }
    }

    /// Takes over what a metadata server knows of the replicas; `servers`: the data servers by their uuids.
    pub fn learn(&mut self, told: &BlockReplicasProto, servers: &BTreeMap<String, Server>) {
        let known: Vec<Known> =
            told.replicas.iter().map(|replica| Known::from_wire(replica, servers)).collect();
        self.counts = count(&known);
        self.is_queued = told.is_queued();
        self.known = Some(known);
    }

    /// The places that are told.
    pub fn replicas(&self) -> usize {
        self.servers.len()
    }

    /// No good replica is there, nor a damaged one.
    pub fn is_missing(&self) -> bool {
        self.counts.total() == 0 && !self.is_corrupt
    }

    /// The replicas that lack; 0 for a lost block.
    pub fn lacking(&self, wanted: usize, leaving: Leaving) -> usize {
        if self.counts.total() == 0 {
            return 0;
        }
        let counted = match leaving {
            Leaving::Counts => self.counts.total(),
            Leaving::CountsNot => self.counts.live + self.counts.maintained(),
        };
        wanted.saturating_sub(counted)
    }

    /// The racks on which the block should be besides, where there are several; `rack_count`: the racks of the cluster, if they are known.
    pub fn racks_lacking(&self, wanted: usize, rack_count: Option<usize>) -> usize {
        let Some(all) = rack_count.filter(|all| *all > 1) else { return 0 };
        let racks: BTreeSet<&str> = self.servers.iter().map(|server| &*server.rack).collect();
        if racks.len() < all { RACKS_WANTED.min(wanted).saturating_sub(racks.len()) } else { 0 }
    }

    /// Its worst fault.
    pub fn fault(&self, wanted: usize, rack_count: Option<usize>) -> Option<Fault> {
        if self.is_missing() {
            return Some(Fault::Missing);
        }
        if self.is_corrupt {
            return Some(Fault::Corrupt);
        }
        match self.lacking(wanted, Leaving::CountsNot) {
            0 => (self.racks_lacking(wanted, rack_count) > 0).then_some(Fault::Misplaced),
            missing => Some(Fault::UnderReplicated { missing }),
        }
    }
}

/// The replicas by their standing.
pub fn count(known: &[Known]) -> Counts {
    let mut counts = Counts::default();
    for replica in known {
        counts.add(replica.standing);
        counts.stale += usize::from(replica.is_storage_stale);
    }
    counts
}

impl Known {
    /// `servers`: the data servers by their uuids.
    pub fn from_wire(wire: &ReplicaProto, servers: &BTreeMap<String, Server>) -> Self {
        let server = servers
            .get(&wire.server_uuid)
            .cloned()
            .unwrap_or_else(|| Server { address: wire.server_uuid.clone(), ..Server::default() });
        Self {
            server: Server {
                storage: wire.storage_uuid.clone(),
                storage_type: StorageType::named(&wire.storage_type),
                ..server
            },
            standing: wire.standing(),
            corrupt_reason: wire.corrupt_reason.clone(),
            is_storage_stale: wire.is_storage_stale(),
            is_server_stale: wire.is_server_stale(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::{DatanodeIdProto, ExtendedBlockProto, datanode_info_proto};

    fn located(servers: &[(u32, &str, AdminState)], corrupt: bool) -> LocatedBlockProto {
        let server = |(number, rack, state): &(u32, &str, AdminState)| DatanodeInfoProto {
            id: DatanodeIdProto {
                ip_addr: format!("10.0.0.{number}"),
                xfer_port: 9866,
                ..DatanodeIdProto::default()
            },
            location: Some((*rack).to_owned()),
            admin_state: Some(datanode_info_proto::AdminState::from(*state) as i32),
            ..DatanodeInfoProto::default()
        };
        let b = ExtendedBlockProto {
            pool_id: "BP".into(),
            block_id: 7,
            generation_stamp: 1001,
            num_bytes: Some(10),
        };
        LocatedBlockProto {
            b,
            corrupt,
            locs: servers.iter().map(server).collect(),
            ..LocatedBlockProto::default()
        }
    }

    fn fault(servers: &[(u32, &str, AdminState)], wanted: usize, racks: usize) -> Option<Fault> {
        Block::from_wire(&located(servers, false)).fault(wanted, Some(racks))
    }

    const NORMAL: AdminState = AdminState::InService;

    #[test]
    fn a_block_has_its_worst_fault() {
        assert_eq!(fault(&[], 3, 1), Some(Fault::Missing));
        assert_eq!(fault(&[(1, "/a", NORMAL)], 3, 1), Some(Fault::UnderReplicated { missing: 2 }));
        assert_eq!(fault(&[(1, "/a", NORMAL), (2, "/a", NORMAL)], 2, 2), Some(Fault::Misplaced));
        assert_eq!(fault(&[(1, "/a", NORMAL), (2, "/a", NORMAL)], 2, 1), None, "there is no other rack");
        assert_eq!(fault(&[(1, "/a", NORMAL)], 1, 2), None, "one replica is on one rack");
        assert_eq!(fault(&[(1, "/a", NORMAL), (2, "/a", NORMAL)], 1, 2), None, "one is wanted");
        let corrupt = Block::from_wire(&located(&[(1, "/a", NORMAL)], true));
        assert_eq!(corrupt.fault(3, None), Some(Fault::Corrupt));
    }

    #[test]
    fn replicas_that_leave_for_good_do_not_count_and_those_that_come_back_do() {
        let leaving = [(1, "/a", AdminState::DecommissionInProgress), (2, "/b", NORMAL)];
        assert_eq!(fault(&leaving, 2, 2), Some(Fault::UnderReplicated { missing: 1 }));
        let block = Block::from_wire(&located(&leaving, false));
        assert_eq!(block.lacking(2, Leaving::Counts), 0, "Hadoop's fsck counts them");
        assert_eq!(block.lacking(3, Leaving::Counts), 1);
        let resting = [(1, "/a", AdminState::EnteringMaintenance), (2, "/b", NORMAL)];
        assert_eq!(fault(&resting, 2, 2), None);
    }

    #[test]
    fn what_a_metadata_server_knows_replaces_what_clients_are_told() {
        let mut block = Block::from_wire(&located(&[(1, "/a", NORMAL)], false));
        let replica = |uuid: &str, standing: Standing| ReplicaProto {
            server_uuid: uuid.into(),
            standing: standing.into(),
            is_storage_stale: Some(standing == Standing::ReplicaExcess),
            ..ReplicaProto::default()
        };
        let told = BlockReplicasProto {
            replicas: vec![
                replica("one", Standing::ReplicaLive),
                replica("two", Standing::ReplicaCorrupt),
                replica("two", Standing::ReplicaExcess),
                replica("two", Standing::ReplicaInMaintenance),
                replica("two", Standing::ReplicaDoubted),
            ],
            is_queued: Some(true),
            ..BlockReplicasProto::default()
        };
        let one = Server { address: "10.0.0.1:9866".into(), ..Server::default() };
        block.learn(&told, &BTreeMap::from([("one".to_owned(), one)]));
        let wanted =
            Counts { live: 1, corrupt: 1, excess: 1, in_maintenance: 1, stale: 1, ..Counts::default() };
        assert_eq!((block.counts, block.is_queued), (wanted, true));
        let known = block.known.unwrap();
        assert_eq!((&*known[0].server.address, &*known[1].server.address), ("10.0.0.1:9866", "two"));
    }
}
