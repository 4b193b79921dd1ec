//! Servers with replicas, a writer, the metadata service and the recoveries that it orders; and the chance that moves
//! them.

mod judging;
mod recovering;
mod writing;

use crate::recovery::{Agreement, BlockRecovery, Participant, rule::Rule};
use base::{Block, BlockId, Candidate, GenerationStamp, ReplicaState};

const ID: BlockId = BlockId(1);
const SERVERS: usize = 4;

/// A replica as its data server has it, on disk and in memory.
#[derive(Clone, Debug)]
struct Replica {
    stamp: u64,
    state: ReplicaState,
    /// Each byte names the writer that wrote it.
    bytes: Vec<u8>,
    /// The recovery that nobody but a newer one may disturb; forgotten at a restart.
    recovering: Option<u64>,
    /// Its server lost the power, and perhaps the last bytes.
    is_torn: bool,
}

#[derive(Clone, Debug, Default)]
struct Server {
    is_down: bool,
    replica: Option<Replica>,
}

/// The one that carries out a recovery.
struct Leader {
    stamp: u64,
    work: Work,
    heard: Vec<(usize, Candidate)>,
    /// The number of named servers that have said which replica they have.
    answers: usize,
}

enum Work {
    Asking(BlockRecovery),
    Taking(Agreement, Vec<Participant>),
}

/// How a story ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The block has all bytes that were acknowledged, and there were some.
    Kept,
    /// Nothing was acknowledged.
    Empty,
    /// All that the recoveries heard was too little: servers came to harm, or knew nothing of an append.
    Lost,
    /// The recovery has no end, because nothing is left or replicas contradict each other.
    Open,
}

pub struct World {
    random: u64,
    rule: Rule,
    servers: Vec<Server>,
    last_stamp: u64,

    // The metadata service.
    known: Block,
    named: Vec<usize>,
    truncation: Option<u64>,
    has_ended: bool,
    is_deleted: bool,

    // The writer.
    writer: u8,
    pipeline: Vec<usize>,
    stamp: u64,
    stream: Vec<u8>,
    acknowledged: Vec<u8>,
    keeps_stamp: bool,

    leaders: Vec<Leader>,
    /// Messages arrive and nobody dies any more.
    is_calm: bool,
    /// A recovery was so short of answers that no rule could have known better. It may have spoilt replicas.
    was_misled: bool,
    fault: Option<String>,
}

impl World {
    /// Plays one story from beginning to end.
    pub fn play(seed: u64, rule: Rule) -> Result<Ending, String> {
        let mut world = Self {
            random: seed,
            rule,
            servers: vec![Server::default(); SERVERS],
            last_stamp: 1,
            known: Block { id: ID, generation_stamp: GenerationStamp(1), length: 0 },
            named: Vec::new(),
            truncation: None,
            has_ended: false,
            is_deleted: false,
            writer: 1,
            pipeline: Vec::new(),
            stamp: 1,
            stream: Vec::new(),
            acknowledged: Vec::new(),
            keeps_stamp: false,
            leaders: Vec::new(),
            is_calm: false,
            was_misled: false,
            fault: None,
        };
        world.set_up();
        // False: the writer has died before its file was closed.
        let is_closed = world.write() && world.close();
        if is_closed {
            match world.below(3) {
                0 => world.truncation = Some(1 + world.below(world.stream.len()) as u64),
                kind => {
                    if world.append(kind == 1) && world.write() {
                        world.close();
                    }
                }
            }
        }
        world.recover();
        if let Some(fault) = world.fault {
            return Err(fault);
        }
        Ok(match (world.has_ended, world.acknowledged.is_empty()) {
            (false, _) => Ending::Open,
            (true, true) => Ending::Empty,
            (true, false) if world.was_misled || world.is_deleted => Ending::Lost,
            (true, false) => Ending::Kept,
        })
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        !self.is_calm && self.below(times) == 0
    }

    fn mishap(&mut self) {
        let place = self.below(SERVERS);
        let kind = self.below(12);
        let server = &mut self.servers[place];
        match kind {
            0..6 => server.is_down = false,
            6 => server.replica = None,
            _ => {
                server.is_down = true;
                let Some(replica) = &mut server.replica else { return };
                replica.recovering = None;
                match replica.state {
                    ReplicaState::Temporary => server.replica = None,
                    ReplicaState::BeingWritten => {
                        replica.state = ReplicaState::WaitingRecovery;
                        if kind == 11 {
                            let kept = self.random as usize % (replica.bytes.len() + 1);
                            replica.bytes.truncate(kept);
                            replica.is_torn = true;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }
}
