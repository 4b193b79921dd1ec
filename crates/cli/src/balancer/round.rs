//! One round: blocks are fetched from the metadata server, moves are chosen, and data servers are asked to make them.

use super::{done::Done, tell::Teller};
use ::blocks::balance::{Move, Round};
use client::balancing::{Balancing, Order, PlacedBlock, Server};
use proto::hdfs::StorageTypeProto;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Moves that one data server has part in at once. It allows 100, those of other balancers' rounds included.
const MOVES_PER_SERVER: usize = 10;
/// All moves at once.
const MOVES_MAX: usize = 500;
/// Bytes of blocks that are asked for at once.
const FETCH_BYTES: u64 = 2 << 30;
/// So often is a server asked for blocks without one of them being moved.
const EMPTY_FETCHES_MAX: u32 = 3;
/// A round chooses no more moves after this: by then the figures are old. Hadoop's balancer takes as long.
const ROUND_TIME: Duration = Duration::from_secs(20 * 60);

/// The work of all rounds of a run.
pub struct Work {
    balancing: Arc<Balancing>,
    bytes_min: u64,
    /// Servers that have shown that they store what they are sent.
    introduced: BTreeSet<String>,
    /// Blocks that were moved in this round and the one before. The metadata server may tell of them yet as they were.
    moved: [BTreeSet<u64>; 2],
}

/// A group that gives, and blocks of it.
struct Source {
    group: usize,
    waiting: VecDeque<PlacedBlock>,
    empty_fetches: u32,
    has_moved: bool,
}

struct Outcome {
    moved: Move,
    length: u64,
    result: client::Result<()>,
}

impl Work {
    pub fn new(balancing: Arc<Balancing>, bytes_min: u64) -> Self {
        Self { balancing, bytes_min, introduced: BTreeSet::new(), moved: Default::default() }
    }

    /// Moves what the round has planned.
    ///
    /// # Errors
    /// The metadata server does not tell blocks. Moves that fail are counted.
    pub async fn carry_out(
        &mut self,
        servers: Arc<Vec<Server>>,
        mut round: Round,
        teller: &Teller,
    ) -> anyhow::Result<Done> {
        let began = Instant::now();
        self.moved = [BTreeSet::new(), std::mem::take(&mut self.moved[0])];
        self.introduce(&servers, &round).await;
        let places: BTreeMap<&str, usize> =
            servers.iter().enumerate().map(|(at, server)| (server.uuid.as_str(), at)).collect();
        let groups: BTreeSet<usize> = round.flows().iter().map(|flow| flow.from).collect();
        let source = |group| Source { group, waiting: VecDeque::new(), empty_fetches: 0, has_moved: true };
        let mut sources: VecDeque<Source> = groups.into_iter().map(source).collect();
        let mut busy = vec![0; servers.len()];
        let mut moves = JoinSet::new();
        let mut done = Done::default();
        loop {
            // Each source in turn, as long as one of them has something to give.
            let mut idle = 0;
            while idle < sources.len() && moves.len() < MOVES_MAX && began.elapsed() < ROUND_TIME {
                let Some(mut source) = sources.pop_front() else { break };
                if source.waiting.is_empty() && !self.refill(&mut source, &servers, &round).await? {
                    continue;
                }
                let started =
                    self.start_one(&mut source, &servers, &places, &mut round, &mut busy, &mut moves);
                source.has_moved |= started;
                idle = if started { 0 } else { idle + 1 };
                sources.push_back(source);
            }
            let Some(outcome) = moves.join_next().await else { break };
            let Outcome { moved, length, result } = outcome?;
            busy[moved.to] -= 1;
            busy[moved.proxy] -= 1;
            match result {
                Ok(()) => {
                    done.blocks += 1;
                    done.bytes += length;
                }
                Err(error) => {
                    tracing::info!("{error}");
                    done.failed += 1;
                    round.take_back(moved, length);
                }
            }
            done.took = began.elapsed();
            teller.progress(&done, &round);
        }
        done.took = began.elapsed();
        Ok(done)
    }

    /// Fetches more blocks of a source. False if there is no more to be had of it in this round.
    async fn refill(&self, source: &mut Source, servers: &[Server], round: &Round) -> anyhow::Result<bool> {
        let left: u64 =
            round.flows().iter().filter(|flow| flow.from == source.group).map(|flow| flow.bytes).sum();
        source.empty_fetches = if source.has_moved { 0 } else { source.empty_fetches + 1 };
        if left == 0 || source.empty_fetches >= EMPTY_FETCHES_MAX {
            return Ok(false);
        }
        source.has_moved = false;
        let group = &round.groups()[source.group];
        let storage_type = StorageTypeProto::from(group.storage_type);
        let bytes = left.saturating_mul(2).clamp(1 << 20, FETCH_BYTES);
        let listed =
            self.balancing.blocks(&servers[group.server], storage_type, bytes, self.bytes_min).await?;
        let is_fresh = |block: &PlacedBlock| !self.moved.iter().any(|moved| moved.contains(&block.id));
        source.waiting = listed.into_iter().filter(is_fresh).collect();
        Ok(!source.waiting.is_empty())
    }

    /// Starts a move of one of the source's blocks that wait. A block that stays is dropped; one whose servers have enough to do waits on.
    fn start_one(
        &mut self,
        source: &mut Source,
        servers: &Arc<Vec<Server>>,
        places: &BTreeMap<&str, usize>,
        round: &mut Round,
        busy: &mut [usize],
        moves: &mut JoinSet<Outcome>,
    ) -> bool {
        while let Some(block) = source.waiting.pop_front() {
            if self.moved[0].contains(&block.id) {
                continue;
            }
            let holders: Vec<Option<usize>> =
                block.holders.iter().map(|uuid| places.get(uuid.as_str()).copied()).collect();
            let Some(moved) = round.choose(source.group, block.length, &holders) else { continue };
            if busy[moved.to] >= MOVES_PER_SERVER || busy[moved.proxy] >= MOVES_PER_SERVER {
                round.take_back(moved, block.length);
                source.waiting.push_front(block);
                return false;
            }
            busy[moved.to] += 1;
            busy[moved.proxy] += 1;
            self.moved[0].insert(block.id);
            let (balancing, servers) = (self.balancing.clone(), servers.clone());
            moves.spawn(async move {
                let order = Order {
                    block: &block,
                    storage_type: moved.storage_type.into(),
                    from: &servers[moved.from],
                    to: &servers[moved.to],
                    proxy: &servers[moved.proxy],
                };
                let result = balancing.move_replica(&order).await;
                Outcome { moved, length: block.length, result }
            });
            return true;
        }
        false
    }

    /// A server that nobody has written through yet is a newcomer to the metadata server, and no replica is deleted for one that was
    /// moved there. So a small file is written through each target once.
    async fn introduce(&mut self, servers: &[Server], round: &Round) {
        for target in targets(round) {
            let server = &servers[target];
            if self.introduced.insert(server.uuid.clone()) {
                let path = format!("/system/balancer.{}", server.uuid);
                if let Err(error) = self.balancing.write_through(&path, server).await {
                    tracing::warn!(
                        "{} has not shown that it stores what it is sent: {error}",
                        server.address()
                    );
                }
            }
        }
    }
}

/// The servers to which something is to go, by their places.
fn targets(round: &Round) -> BTreeSet<usize> {
    round.flows().iter().map(|flow| round.groups()[flow.to].server).collect()
}
