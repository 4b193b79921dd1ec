//! A block pool: the blocks of one group of metadata servers, as this data server keeps them and speaks of them.
//!
//! A pool is a value. It has the replicas, the group's members and who of them is obeyed, and the news for them. It
//! begins with the first handshake with a member, which tells the pool's id, and stays for as long as this process
//! runs. The configuration has all metadata servers in one list: those that name the same pool are the members of its
//! group. [`State::pool`](crate::State::pool) is the only place that says which pool a message means.

use crate::{
    metadata::{leadership::Leadership, progress::Progress},
    reporter::{Corrupt, Reporter},
    short_circuit::ShortCircuit,
};
use base::{Block, BlockId, ExtendedBlock};
use blockstore::{Observer, PoolStore};
use parking_lot::RwLock;
use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, StorageTypeProto};
use rpc::Client;
use std::sync::Arc;
use tokio::sync::watch;

/// One for each block pool that is served, behind an `Arc`.
pub struct Pool {
    /// `BP-…`: the name of the pool in messages and directories.
    pub id: Arc<str>,
    /// Its replicas, on the volumes of the server.
    pub store: PoolStore,
    /// The news of replicas, for each metadata server of the pool.
    pub reporter: Reporter,
    pub leadership: Leadership,
    /// The members of the pool's group, in the order of their first handshakes.
    members: RwLock<Vec<Member>>,
}

/// One metadata server of a pool's group.
#[derive(Clone)]
pub struct Member {
    pub client: Client,
    /// How far this data server has come with it.
    pub progress: watch::Receiver<Progress>,
}

impl Pool {
    /// `node`: this server, as reports name it. `short_circuit`: what local clients hold of its replicas.
    pub(crate) fn new(store: PoolStore, node: DatanodeInfoProto, short_circuit: Arc<ShortCircuit>) -> Self {
        let reporter = Reporter::default();
        let id = store.info().pool.clone();
        let teller = Teller { pool: id.clone(), reporter: reporter.clone(), node, short_circuit };
        store.set_observer(Arc::new(teller));
        Self { id, store, reporter, leadership: Leadership::default(), members: RwLock::default() }
    }

    /// Adds a member of the pool's group. The answer is its place, by which the reporter and the leadership know it.
    pub(crate) fn join(&self, member: Member) -> usize {
        let mut members = self.members.write();
        // Under one lock, so that both give it the same place.
        self.reporter.add_queue();
        members.push(member);
        members.len() - 1
    }

    /// The member at a place that [`Pool::join`] has given.
    pub fn member(&self, place: usize) -> Member {
        self.members.read()[place].clone()
    }

    /// Whether a metadata server of the pool has this server and its report.
    pub fn has_metadata_server(&self) -> bool {
        self.members.read().iter().any(|member| *member.progress.borrow() == Progress::Serving)
    }

    /// A block of this pool, as the store takes it.
    pub fn extended(&self, block: Block) -> ExtendedBlock {
        ExtendedBlock { pool: self.id.clone(), block }
    }

    /// A block of this pool, as messages name it.
    pub fn to_proto(&self, block: Block) -> ExtendedBlockProto {
        crate::convert::extended_to_proto(&self.id, block)
    }

    /// A corrupt replica of this pool, as messages name it.
    pub(crate) fn located(&self, corrupt: &Corrupt) -> LocatedBlockProto {
        LocatedBlockProto {
            b: self.to_proto(corrupt.block),
            locs: vec![corrupt.node.clone()],
            storage_types: vec![StorageTypeProto::Disk.into()],
            storage_i_ds: vec![corrupt.storage_id.clone()],
            ..Default::default()
        }
    }
}

/// Passes on what the store notices by itself.
struct Teller {
    pool: Arc<str>,
    reporter: Reporter,
    node: DatanodeInfoProto,
    short_circuit: Arc<ShortCircuit>,
}

impl Observer for Teller {
    fn deleted(&self, storage_id: &Arc<str>, block: Block) {
        self.reporter.notify_deleted(storage_id, block);
    }

    fn damaged(&self, storage_id: &Arc<str>, block: Block) {
        let storage_id = storage_id.to_string();
        self.reporter.notify_corrupt(Corrupt { block, node: self.node.clone(), storage_id });
    }

    fn received(&self, storage_id: &Arc<str>, block: Block) {
        self.reporter.notify_received(storage_id, block, None);
    }

    fn volume_lost(&self, storage_id: &Arc<str>, blocks: Vec<Block>) {
        for block in blocks {
            self.reporter.notify_deleted(storage_id, block);
        }
        self.reporter.flush();
    }

    fn unsettled(&self, id: BlockId) {
        self.short_circuit.invalidate(&self.pool, id);
    }
}
