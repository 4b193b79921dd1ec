//! A block map hears of what may cost replicas when it has committed, and in the order of the log.

use super::*;
use base::{Block, BlockId, GenerationStamp, InodeId};

const NOW: Moment = Moment { ns: 0 };

fn block(number: u64) -> Block {
    Block { id: BlockId(number), generation_stamp: GenerationStamp(1_000 + number), length: 0 }
}

fn replication_of(blocks: &Mutex<BlockMap>, number: u64) -> Option<u16> {
    blocks.lock().facts(BlockId(number)).map(|facts| facts.replication)
}

fn changed(number: u64, from: u16, to: u16) -> BlockChange {
    BlockChange::ReplicationChanged { block: BlockId(number), from, to }
}

struct Told {
    blocks: Arc<Mutex<BlockMap>>,
    unsettled: Unsettled,
}

impl Told {
    fn new() -> Self {
        let blocks = Arc::new(Mutex::new(BlockMap::new(blocks::Config::default(), 1, NOW)));
        Self { unsettled: Unsettled::new(blocks.clone()), blocks }
    }

    /// An edit as an active applies it.
    fn apply(&self, sn: u64, changes: Vec<BlockChange>) {
        let mut later = Vec::new();
        tell_ahead(&self.blocks, Sn(sn), changes, &[], NOW, &mut later);
        self.unsettled.wait(later, NOW);
    }
}

#[test]
fn blocks_come_at_once_and_go_with_the_commit() {
    let told = Told::new();
    let new = |number| BlockChange::Allocated { block: block(number), inode: InodeId(9), replication: 3 };
    told.apply(1, vec![new(1), new(2)]);
    assert_eq!(replication_of(&told.blocks, 2), Some(3), "a plan of the same turn may ask about it");
    told.apply(2, vec![BlockChange::Removed(block(1))]);
    told.apply(3, vec![BlockChange::Removed(block(2))]);
    told.unsettled.settle(Sn(1), NOW);
    assert!(replication_of(&told.blocks, 1).is_some());
    told.unsettled.settle(Sn(2), NOW);
    assert!(replication_of(&told.blocks, 1).is_none());
    assert!(replication_of(&told.blocks, 2).is_some());
    // An older word comes late.
    told.unsettled.settle(Sn(3), NOW);
    told.unsettled.settle(Sn(2), NOW);
    assert!(replication_of(&told.blocks, 2).is_none());
}

#[test]
fn what_committed_before_it_came_to_wait_is_told_at_once() {
    let told = Told::new();
    told.apply(1, vec![BlockChange::Allocated { block: block(1), inode: InodeId(9), replication: 3 }]);
    told.unsettled.settle(Sn(2), NOW);
    told.apply(2, vec![BlockChange::Removed(block(1))]);
    assert!(replication_of(&told.blocks, 1).is_none());
}

#[test]
fn replication_changes_in_the_order_of_the_log() {
    let told = Told::new();
    told.apply(1, vec![BlockChange::Allocated { block: block(1), inode: InodeId(9), replication: 3 }]);
    told.apply(2, vec![changed(1, 3, 1)]);
    told.apply(3, vec![changed(1, 1, 5)]);
    assert_eq!(replication_of(&told.blocks, 1), Some(3));
    told.unsettled.settle(Sn(2), NOW);
    assert_eq!(replication_of(&told.blocks, 1), Some(1));
    told.unsettled.settle(Sn(3), NOW);
    assert_eq!(replication_of(&told.blocks, 1), Some(5));
}
