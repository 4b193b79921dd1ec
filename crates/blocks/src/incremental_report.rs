//! A data server tells what just changed, and clients and servers tell of rotten replicas.

use crate::{
    hints::Hint,
    map::BlockMap,
    replica::Verdict,
    server::StorageType,
    unknown::Source,
    words::{BlockState, CorruptReason, Increment, ReplicaState, ReportedReplica, ServerError, ServerId},
};
use base::{Block, BlockId, Moment};

impl BlockMap {
    /// Replicas that one storage is receiving, has received or has deleted, in the order in which it happened.
    ///
    /// # Errors
    /// Those of [`BlockMap::begin_report`].
    pub fn incremental_report(
        &mut self,
        id: ServerId,
        storage: &str,
        storage_type: StorageType,
        increments: &[Increment],
        now: Moment,
    ) -> Result<(), ServerError> {
        let server = self.reporter(id)?;
        let place = self.storage_named(server, storage, storage_type)?;
        for increment in increments {
            match increment {
                Increment::Receiving(block) => {
                    self.take_increment(place, *block, ReplicaState::BeingWritten, now);
                }
                Increment::Received { block, delete_hint } => {
                    self.storages.get_mut(place).promise_kept();
                    // It was made anew.
                    self.redundancy.corrupt.out_of_sight.forget(
                        block.id,
                        block.generation_stamp,
                        id.uuid,
                        storage,
                    );
                    let from = delete_hint.as_deref().and_then(|uuid| self.servers.find(uuid));
                    self.redundancy.hints.told = from.map(|from| Hint { from, to: server });
                    self.take_increment(place, *block, ReplicaState::Finalized, now);
                    self.redundancy.hints.told = None;
                }
                Increment::Deleted(block) => self.take_deletion(place, *block),
            }
        }
        self.check_safe_mode(now);
        Ok(())
    }

    fn take_increment(&mut self, place: u32, block: Block, state: ReplicaState, now: Moment) {
        let was_good = self.is_surely_good(place, block.id);
        let replica = ReportedReplica { block, state };
        match self.take_replica(place, &replica, now) {
            Verdict::Unknown => {
                self.take_unknown(place, &replica, Source::Single);
                self.counts.dropped_rows += 1;
            }
            Verdict::Corrupt if was_good => self.note_contradiction(self.storages.get(place).server),
            _ => {}
        }
    }

    /// Whether the storage has a good replica of this complete block, which is not to be deleted, as its full report
    /// and all later reports say. A server that does not command cannot tell, because another one has ordered the
    /// deletions that are reported; the answer is false then.
    fn is_surely_good(&self, place: u32, id: BlockId) -> bool {
        let Some(slot) = self.arena.find(id).filter(|_| self.may_command()) else { return false };
        self.arena.record(slot).state() == BlockState::Complete
            && self.arena.holds(slot, place)
            && self.storages.get(place).is_known_to_hold(slot)
            && !self.storages.get(place).stale
            && !self.redundancy.corrupt.contains(id, place)
            && !self.redundancy.excess.contains(id, place)
    }

    pub(crate) fn note_contradiction(&mut self, server: u32) {
        self.servers.get_mut(server).contradicts = true;
    }

    /// A server that contradicts itself is told to begin anew, with a full report, with its next heartbeat; one that
    /// goes on so is told again only after a while. True if it is to be told now.
    pub(crate) fn must_explain_itself(&mut self, server: u32) -> bool {
        let (now, pause_ms) = (self.latest, self.config.stale_interval_ms);
        let server = self.servers.get_mut(server);
        if !server.contradicts || server.last_asked.is_some_and(|at| now.ms_since(at) < pause_ms) {
            return false;
        }
        server.last_asked = Some(now);
        true
    }

    fn take_deletion(&mut self, place: u32, block: Block) {
        if self.is_surely_good(place, block.id) {
            self.note_contradiction(self.storages.get(place).server);
        }
        let (uuid, name) = self.names_of(place);
        self.redundancy.corrupt.out_of_sight.forget(block.id, block.generation_stamp, &uuid, &name);
        self.end_deletion(place, block);
        self.constructions.forget_replica(block.id, place);
        self.postponed.forget_replica(block.id, place);
        self.unknown.held.forget_replica(place, block.id);
        if let Some(slot) = self.arena.find(block.id)
            && self.remove_place(slot, place)
        {
            self.evaluate(slot);
        }
    }

    /// Takes the report of a reader that a replica does not match its checksums. Nothing is deleted before enough
    /// good replicas exist. Without a storage id, whichever of the server's storages holds it is meant.
    pub fn report_bad(&mut self, block: Block, server_uuid: &str, storage: Option<&str>, now: Moment) {
        self.latest = now;
        let (Some(slot), Some(server)) = (self.arena.find(block.id), self.servers.find(server_uuid)) else {
            return;
        };
        let record = *self.arena.record(slot);
        if record.state() != BlockState::Complete || record.stamp() != block.generation_stamp {
            return;
        }
        let meant = |place: &u32| {
            let held = self.storages.get(*place);
            held.is_live()
                && held.server == server
                && storage.is_none_or(|storage| storage.is_empty() || *storage == *held.report.id)
        };
        let place = self.arena.places(slot).iter().find(meant);
        if let Some(place) = place {
            self.mark_corrupt(slot, place, record.stamp(), CorruptReason::CorruptionReported);
        } else if let Some(name) = storage.filter(|name| !name.is_empty())
            && self.place_of(server_uuid, name).is_none()
        {
            // The storage was lost a moment ago.
            let uuid = self.servers.get(server).face.uuid().clone();
            self.redundancy.corrupt.out_of_sight.remember(block.id, record.stamp(), &uuid, &name.into());
        }
    }
}
