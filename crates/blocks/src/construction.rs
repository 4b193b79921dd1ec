//! Blocks that are being written: the pipeline they go through, and what its servers have said.

use crate::words::{ReplicaState, ReportedReplica, UcReplica};
use base::{BlockId, GenerationStamp, Moment};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Construction {
    /// Indices of the storages chosen for the pipeline, in its order. Empty after a restart: then the
    /// replicas reported stand for it.
    pub targets: Vec<u32>,
    /// The replicas being written, each with the index of its storage.
    pub replicas: Vec<(u32, UcReplica)>,
    /// Indices of servers that were told to recover the block, so that another one is told next.
    pub asked: Vec<u32>,
    /// The recovery ordered last may still come to an end until then.
    pub recovering_until: Option<Moment>,
    /// The length that finished replicas had when the block was opened again. Its writer may keep the stamp: then
    /// only this length tells replicas from before from those written since.
    pub length_before: Option<u64>,
    /// The targets are a pipeline that a client was given, or has named: once it has finished the block, they have stored it. Not so where a
    /// file was only opened again, and where a recovery has ended.
    pub is_of_client: bool,
    /// A recovery was ordered, or has ended. No client writes on the block any more.
    pub is_recovered: bool,
    /// A place was forgotten that may have had bytes of the block, and may come back.
    pub lost_place: bool,
}

impl Construction {
    /// The storages on which a reader may find the unfinished block.
    pub fn places(&self, stamp: GenerationStamp) -> Vec<u32> {
        let mut places = self.targets.clone();
        for (place, replica) in &self.replicas {
            if replica.generation_stamp >= stamp && !places.contains(place) {
                places.push(*place);
            }
        }
        places
    }

    /// Whether this is what the replicas were when the block was opened again, under the stamp that it still has.
    fn is_from_before(&self, replica: &UcReplica, stamp: GenerationStamp) -> bool {
        replica.state == ReplicaState::Finalized
            && replica.generation_stamp == stamp
            && self.length_before == Some(replica.length)
    }

    /// Forgets the replicas from before the block was opened again. Once a client writes on it, their former state
    /// tells nothing.
    pub fn forget_before(&mut self, stamp: GenerationStamp) {
        let mut replicas = std::mem::take(&mut self.replicas);
        replicas.retain(|(place, replica)| {
            !(self.targets.contains(place) && self.is_from_before(replica, stamp))
        });
        self.replicas = replicas;
    }

    pub fn note(&mut self, place: u32, reported: &ReportedReplica) {
        let replica = UcReplica {
            generation_stamp: reported.block.generation_stamp,
            length: reported.block.length,
            state: reported.state,
        };
        let is_written_on = reported.state != ReplicaState::Finalized
            && self.replicas.iter().any(|(held, known)| {
                *held == place && self.is_from_before(known, reported.block.generation_stamp)
            });
        if is_written_on {
            self.forget_before(reported.block.generation_stamp);
        }
        match self.replicas.iter_mut().find(|(held, _)| *held == place) {
            // A report that was on its way when the replica was finalized changes nothing.
            Some((_, known))
                if known.state == ReplicaState::Finalized
                    && replica.state != ReplicaState::Finalized
                    && replica.generation_stamp <= known.generation_stamp => {}
            Some((_, known)) => *known = replica,
            None => self.replicas.push((place, replica)),
        }
    }

    fn forget_place(&mut self, place: u32) {
        let known = self.targets.len() + self.replicas.len();
        self.targets.retain(|held| *held != place);
        self.replicas.retain(|(held, _)| *held != place);
        self.lost_place |= self.targets.len() + self.replicas.len() < known;
    }
}

/// All blocks that are not complete.
#[derive(Default)]
pub struct Constructions {
    blocks: BTreeMap<BlockId, Construction>,
}

impl Constructions {
    pub fn get(&self, id: BlockId) -> Option<&Construction> {
        self.blocks.get(&id)
    }

    pub fn entry(&mut self, id: BlockId) -> &mut Construction {
        self.blocks.entry(id).or_default()
    }

    pub fn remove(&mut self, id: BlockId) -> Option<Construction> {
        self.blocks.remove(&id)
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.keys().copied()
    }

    pub fn forget_place(&mut self, place: u32) {
        for construction in self.blocks.values_mut() {
            construction.forget_place(place);
        }
    }

    /// A full report of this storage is whole. The storage has lost its replicas of the unfinished blocks that the report does not name.
    pub fn forget_lacking(&mut self, place: u32, is_named: impl Fn(BlockId) -> bool) {
        for (_, construction) in self.blocks.iter_mut().filter(|(id, _)| !is_named(**id)) {
            let known = construction.replicas.len();
            construction.replicas.retain(|(held, _)| *held != place);
            construction.lost_place |= construction.replicas.len() < known;
        }
    }

    /// A server is lost: the recoveries that it was told of last may be ordered anew at once.
    pub fn forget_leader(&mut self, server: u32) {
        for construction in self.blocks.values_mut() {
            if construction.asked.last() == Some(&server) {
                construction.recovering_until = None;
            }
        }
    }

    /// Forgets which recoveries were ordered. The next server that commands orders them anew.
    pub fn forget_recoveries(&mut self) {
        for construction in self.blocks.values_mut() {
            construction.recovering_until = None;
            construction.asked.clear();
        }
    }

    pub fn forget_replica(&mut self, id: BlockId, place: u32) {
        if let Some(construction) = self.blocks.get_mut(&id) {
            construction.forget_place(place);
        }
    }
}
