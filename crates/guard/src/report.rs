//! A full report of a data server that the block map knows: what a server does for it every few hours.

use base::{Block, BlockId, GenerationStamp, InodeId, Moment};
use blocks::{
    BlockMap, BlockState, Config, Registration, ReplicaState, ReportedReplica, ServerId, SessionKey,
    StorageType,
};

/// Blocks of the report, among others that are elsewhere.
pub const BLOCKS: u64 = 10_000;
const ALL_BLOCKS: u64 = 5 * BLOCKS;
const SLICE_ROWS: usize = 2_000;
const SESSION: SessionKey = SessionKey([7; SessionKey::BYTES]);

/// A block map and what one server has to report.
pub struct Report {
    map: BlockMap,
    rows: Vec<ReportedReplica>,
    now: Moment,
}

impl Report {
    /// The server has reported the same before.
    pub fn to_take() -> Self {
        let now = Moment::from_ms(1_000);
        let mut map = BlockMap::new(Config::default(), 1, now);
        for number in 0..ALL_BLOCKS {
            map.add_block(block(number), InodeId(16_386 + number), 1, BlockState::Complete, &[], now);
        }
        map.activate(now);
        let registration = Registration {
            uuid: "server".into(),
            ip: "10.0.0.1".into(),
            transfer_port: 9866,
            ..Registration::default()
        };
        map.register(registration, SESSION, now).expect("room for a server");
        let row = |number| ReportedReplica { block: block(number), state: ReplicaState::Finalized };
        let rows = (0..ALL_BLOCKS).step_by(5).map(row).collect();
        let mut report = Self { map, rows, now };
        report.take();
        report
    }

    /// Takes the report, and returns how many replicas the map did not know of.
    pub fn take(&mut self) -> u64 {
        let server = ServerId {
            uuid: "server",
            ip: "10.0.0.1",
            transfer_port: 9866,
            session: &SESSION.0,
            connection: 0,
        };
        let report =
            self.map.begin_report(server, "DS-1", StorageType::Disk, 0, self.now).expect("a known server");
        for slice in self.rows.chunks(SLICE_ROWS) {
            self.map.report_slice(report, slice, self.now).expect("a report under way");
        }
        self.map.finish_report(report, self.now).expect("a report under way").unknown
    }
}

fn block(number: u64) -> Block {
    let id = BlockId(BlockId::LAST_RESERVED.0 + 1 + number);
    Block { id, generation_stamp: GenerationStamp(1_001 + number), length: 134_217_728 - number % 1_000 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blocks::Reader;

    #[test]
    fn a_report_is_taken_and_its_replicas_are_known() {
        let mut report = Report::to_take();
        assert_eq!(report.rows.len() as u64, BLOCKS);
        assert_eq!(report.take(), 0);
        let places = |number| {
            report
                .map
                .locations(block(number).id, Reader::default(), 0, report.now)
                .map_or(0, |found| found.locations.len())
        };
        assert_eq!((places(0), places(1), places(ALL_BLOCKS - 5)), (1, 0, 1));
    }
}
