//! Files that were looked at, and the sums over them.

use super::block::{Block, Fault, Leaving};
use proto::hdfs::LocatedBlocksProto;

/// A file that was looked at.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub bytes: u64,
    pub wanted: usize,
    pub is_open: bool,
    /// Without the last block of a file that is being written: nobody knows how long that is.
    pub blocks: Vec<Block>,
    /// The last block of a file that is being written.
    pub unfinished: Option<Block>,
    /// The blocks that the server counts below the file's length.
    pub listed_blocks: u64,
}

impl File {
    pub fn from_wire(path: &str, bytes: u64, wanted: u16, located: &LocatedBlocksProto) -> Self {
        let is_open = located.under_construction;
        let unfinished = located.last_block.as_ref().filter(|_| is_open && !located.is_last_block_complete);
        let is_finished = |id: u64| unfinished.is_none_or(|last| last.b.block_id != id);
        let finished = located.blocks.iter().filter(|block| is_finished(block.b.block_id));
        Self {
            path: path.to_owned(),
            bytes,
            wanted: usize::from(wanted),
            is_open,
            blocks: finished.map(Block::from_wire).collect(),
            unfinished: unfinished.map(Block::from_wire),
            listed_blocks: located.blocks.len() as u64,
        }
    }

    /// Every block of the file that may be asked about.
    pub fn all_blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.blocks.iter_mut().chain(&mut self.unfinished)
    }
}

/// The facts about a cluster by which blocks are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The racks with data servers, where they are known.
    pub racks: Option<usize>,
    /// The replicas with which a block counts as stored.
    pub min_replication: usize,
}

/// The sums over all files that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub directories: u64,
    pub symlinks: u64,
    pub files: u64,
    /// Files that are being written, among those above.
    pub open_files: u64,
    pub bytes: u64,
    /// Without the last blocks of files that are being written.
    pub blocks: u64,
    pub listed_blocks: u64,
    /// Files that are being written and were not looked at.
    pub skipped: Skipped,
    /// The places that are told to clients.
    pub replicas: u64,
    /// Good replicas that are needed, wherever they are.
    pub counted_replicas: u64,
    pub replicas_wanted: u64,
    pub missing: u64,
    pub missing_bytes: u64,
    pub corrupt: u64,
    pub corrupt_bytes: u64,
    /// Files with a missing or corrupt block.
    pub corrupt_files: u64,
    /// Blocks with fewer replicas than a stored block has at least.
    pub below_minimum: u64,
    pub under_replicated: u64,
    pub missing_replicas: u64,
    /// The two above, if replicas on servers that leave service count.
    pub lacking_blocks: u64,
    pub lacking_replicas: u64,
    pub over_replicated: u64,
    /// Blocks that have no worse fault.
    pub misplaced: u64,
    /// Blocks on too few racks, whatever else is wrong with them.
    pub on_few_racks: u64,
    pub decommissioning_replicas: u64,
    pub decommissioned_replicas: u64,
    pub entering_maintenance_replicas: u64,
    pub in_maintenance_replicas: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub files: u64,
    pub bytes: u64,
    pub blocks: u64,
}

impl Sums {
    /// A file that is being written, where such are not looked at.
    pub fn skip(&mut self, file: &File) {
        self.skipped.files += 1;
        self.skipped.bytes += file.bytes;
        self.skipped.blocks += file.listed_blocks;
    }

    pub fn add(&mut self, file: &File, cluster: &Cluster) {
        self.files += 1;
        self.open_files += u64::from(file.is_open);
        self.bytes += file.bytes;
        self.listed_blocks += file.listed_blocks;
        let mut is_lost = false;
        for block in &file.blocks {
            self.add_replicas(block, file.wanted, cluster);
            match block.fault(file.wanted, cluster.racks) {
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

    fn add_replicas(&mut self, block: &Block, wanted: usize, cluster: &Cluster) {
        let counts = &block.counts;
        self.blocks += 1;
        self.replicas += block.replicas() as u64;
        self.counted_replicas += counts.total() as u64;
        self.replicas_wanted += wanted as u64;
        self.decommissioning_replicas += counts.decommissioning as u64;
        self.decommissioned_replicas += counts.decommissioned as u64;
        self.entering_maintenance_replicas += counts.entering_maintenance as u64;
        self.in_maintenance_replicas += counts.in_maintenance as u64;
        self.below_minimum += u64::from(counts.total() < cluster.min_replication);
        self.over_replicated += u64::from(counts.live > wanted);
        let lacking = block.lacking(wanted, Leaving::Counts) as u64;
        self.lacking_replicas += lacking;
        self.lacking_blocks += u64::from(lacking > 0);
        self.on_few_racks += u64::from(block.racks_lacking(wanted, cluster.racks) > 0);
    }

    /// No file has lost a block, as in HDFS: too few replicas are no loss.
    pub fn is_healthy(&self) -> bool {
        self.missing == 0 && self.corrupt == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::{DatanodeIdProto, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};

    fn located(id: u64, servers: usize) -> LocatedBlockProto {
        let server = |number: usize| DatanodeInfoProto {
            id: DatanodeIdProto { ip_addr: format!("10.0.0.{number}"), ..DatanodeIdProto::default() },
            ..DatanodeInfoProto::default()
        };
        let b = ExtendedBlockProto {
            pool_id: "BP".into(),
            block_id: id,
            generation_stamp: 1001,
            num_bytes: Some(10),
        };
        LocatedBlockProto { b, locs: (0..servers).map(server).collect(), ..LocatedBlockProto::default() }
    }

    const CLUSTER: Cluster = Cluster { racks: Some(1), min_replication: 1 };

    #[test]
    fn the_last_block_of_an_open_file_is_left_out() {
        let open = LocatedBlocksProto {
            under_construction: true,
            blocks: vec![located(7, 1), located(8, 0)],
            last_block: Some(located(8, 0)),
            ..LocatedBlocksProto::default()
        };
        let file = File::from_wire("/f", 10, 1, &open);
        assert!(file.is_open && file.blocks.len() == 1 && file.unfinished.is_some());
        let mut sums = Sums::default();
        sums.add(&file, &CLUSTER);
        assert!(sums.is_healthy() && sums.open_files == 1);
        // HDFS tells the blocks below the file's length, which the last one is not.
        let told = LocatedBlocksProto { blocks: vec![located(7, 1)], ..open.clone() };
        assert_eq!(File::from_wire("/f", 10, 1, &told).blocks.len(), 1);
        let closed = LocatedBlocksProto { is_last_block_complete: true, under_construction: false, ..open };
        sums.add(&File::from_wire("/g", 20, 1, &closed), &CLUSTER);
        assert_eq!((sums.missing, sums.missing_bytes, sums.corrupt_files, sums.files), (1, 10, 1, 2));
        assert_eq!((sums.below_minimum, sums.replicas_wanted, sums.counted_replicas), (1, 3, 2));
        assert!(!sums.is_healthy());
    }

    #[test]
    fn files_that_are_skipped_are_in_no_other_sum() {
        let open = LocatedBlocksProto {
            under_construction: true,
            blocks: vec![located(7, 1)],
            ..LocatedBlocksProto::default()
        };
        let mut sums = Sums::default();
        sums.skip(&File::from_wire("/f", 10, 1, &open));
        let skipped = Skipped { files: 1, bytes: 10, blocks: 1 };
        assert_eq!(sums, Sums { skipped, ..Sums::default() });
    }
}
