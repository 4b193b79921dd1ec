//! A file's blocks as the metadata server tells them, and their faults.

use client::AdminState;
use proto::hdfs::{LocatedBlockProto, LocatedBlocksProto};
use std::collections::BTreeSet;

/// The state of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub name: String,
    pub bytes: u64,
    /// On data servers in service.
    pub live: usize,
    /// On data servers that are decommissioned, or on the way there.
    pub decommissioned: usize,
    /// On data servers that are to be in maintenance. Those that are in maintenance already are not told to clients.
    pub maintained: usize,
    pub servers: Vec<Server>,
    /// Every replica is damaged.
    pub is_corrupt: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub address: String,
    pub rack: String,
    pub state: AdminState,
}

/// A file that was looked at.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub bytes: u64,
    pub wanted: usize,
    /// It is being written. Its last block is left out: nobody knows how long that is.
    pub is_open: bool,
    pub blocks: Vec<Block>,
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

impl Block {
    pub fn from_wire(located: &LocatedBlockProto) -> Self {
        let count = |is: &dyn Fn(AdminState) -> bool| {
            located.locs.iter().filter(|server| is(server.admin_state().into())).count()
        };
        let name = format!("{}:blk_{}_{}", located.b.pool_id, located.b.block_id, located.b.generation_stamp);
        let server = |server: &proto::hdfs::DatanodeInfoProto| Server {
            address: format!("{}:{}", server.id.ip_addr, server.id.xfer_port),
            rack: server.location().to_owned(),
            state: server.admin_state().into(),
        };
        Self {
            name,
            bytes: located.b.num_bytes(),
            live: count(&AdminState::is_in_service),
            decommissioned: count(&AdminState::is_for_good),
            maintained: count(&AdminState::is_maintenance),
            servers: located.locs.iter().map(server).collect(),
            is_corrupt: located.corrupt,
        }
    }

    pub fn replicas(&self) -> usize {
        self.servers.len()
    }

    /// `rack_count`: the racks of the cluster, where they are known.
    pub fn fault(&self, wanted: usize, rack_count: Option<usize>) -> Option<Fault> {
        if self.servers.is_empty() {
            return Some(Fault::Missing);
        }
        if self.is_corrupt {
            return Some(Fault::Corrupt);
        }
        let counted = self.live + self.maintained;
        if counted < wanted {
            return Some(Fault::UnderReplicated { missing: wanted - counted });
        }
        let racks: BTreeSet<&str> = self.servers.iter().map(|server| &*server.rack).collect();
        let is_misplaced =
            racks.len() == 1 && self.replicas() > 1 && rack_count.is_some_and(|racks| racks > 1);
        is_misplaced.then_some(Fault::Misplaced)
    }
}

impl File {
    pub fn from_wire(path: &str, bytes: u64, wanted: u16, located: &LocatedBlocksProto) -> Self {
        let is_open = located.under_construction;
        let mut blocks: Vec<Block> = located.blocks.iter().map(Block::from_wire).collect();
        if is_open && !located.is_last_block_complete {
            blocks.pop();
        }
        Self { path: path.to_owned(), bytes, wanted: usize::from(wanted), is_open, blocks }
    }
}

/// The sums over all files that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub directories: u64,
    pub files: u64,
    pub open_files: u64,
    pub symlinks: u64,
    pub bytes: u64,
    pub blocks: u64,
    pub replicas: u64,
    pub replicas_wanted: u64,
    pub missing: u64,
    pub missing_bytes: u64,
    pub corrupt: u64,
    pub corrupt_bytes: u64,
    pub corrupt_files: u64,
    pub under_replicated: u64,
    pub missing_replicas: u64,
    pub over_replicated: u64,
    pub misplaced: u64,
    pub decommissioned_replicas: u64,
}

impl Sums {
    pub fn add(&mut self, file: &File, rack_count: Option<usize>) {
        self.files += 1;
        self.open_files += u64::from(file.is_open);
        self.bytes += file.bytes;
        let mut is_lost = false;
        for block in &file.blocks {
            self.blocks += 1;
            self.replicas += block.replicas() as u64;
            self.replicas_wanted += file.wanted as u64;
            self.decommissioned_replicas += block.decommissioned as u64;
            self.over_replicated += u64::from(block.live > file.wanted);
            match block.fault(file.wanted, rack_count) {
                None => {}
                Some(Fault::Missing) => {
                    self.missing += 1;
                    self.missing_bytes += block.bytes;
                    is_lost = true;
                }
                Some(Fault::Corrupt) => {
                    self.corrupt += 1;
                    self.corrupt_bytes += block.bytes;
                    is_lost = true;
                }
                Some(Fault::UnderReplicated { missing }) => {
                    self.under_replicated += 1;
                    self.missing_replicas += missing as u64;
                }
                Some(Fault::Misplaced) => self.misplaced += 1,
            }
        }
        self.corrupt_files += u64::from(is_lost);
    }

    /// No file has lost a block, as in HDFS: too few replicas are no loss.
    pub fn is_healthy(&self) -> bool {
        self.corrupt_files == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::{DatanodeIdProto, DatanodeInfoProto, ExtendedBlockProto, datanode_info_proto};

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
        let corrupt = Block::from_wire(&located(&[(1, "/a", NORMAL)], true));
        assert_eq!(corrupt.fault(3, None), Some(Fault::Corrupt));
    }

    #[test]
    fn replicas_that_leave_for_good_do_not_count_and_those_that_come_back_do() {
        let leaving = [(1, "/a", AdminState::DecommissionInProgress), (2, "/b", NORMAL)];
        assert_eq!(fault(&leaving, 2, 2), Some(Fault::UnderReplicated { missing: 1 }));
        let resting = [(1, "/a", AdminState::EnteringMaintenance), (2, "/b", NORMAL)];
        assert_eq!(fault(&resting, 2, 2), None);
    }

    #[test]
    fn the_last_block_of_an_open_file_is_left_out() {
        let blocks = vec![located(&[(1, "/a", NORMAL)], false), located(&[], false)];
        let open = LocatedBlocksProto { under_construction: true, blocks, ..LocatedBlocksProto::default() };
        let file = File::from_wire("/f", 10, 1, &open);
        assert!(file.is_open && file.blocks.len() == 1);
        let mut sums = Sums::default();
        sums.add(&file, Some(1));
        assert!(sums.is_healthy() && sums.open_files == 1);
        let closed = LocatedBlocksProto { is_last_block_complete: true, under_construction: false, ..open };
        sums.add(&File::from_wire("/g", 20, 1, &closed), Some(1));
        assert_eq!((sums.missing, sums.missing_bytes, sums.corrupt_files, sums.files), (1, 10, 1, 2));
        assert!(!sums.is_healthy());
    }
}
