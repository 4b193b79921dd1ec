//! Orders are carried out at data servers: copies and deletions.

use super::{
    room::server_of,
    words::{Event, Session},
};
use crate::{check, cluster::world::World, truth::Broken};
use base::{Block, BlockId};
use blocks::{Answer, Command, Increment, Mandate, ReplicaState};
use std::collections::BTreeSet;

impl World {
    /// False: the data server is to register again.
    pub(super) fn obey(
        &mut self,
        session: Session,
        answer: &Answer,
        mandate: Option<Mandate>,
        needed: &BTreeSet<BlockId>,
    ) -> Result<bool, Broken> {
        for command in &answer.commands {
            if matches!(command, Command::Register) {
                return Ok(false);
            }
            let Some(mandate) = mandate else {
                self.room().counts.refused += 1;
                continue;
            };
            match command {
                Command::Invalidate(blocks) => {
                    for block in blocks {
                        let is_needed = needed.contains(&block.id);
                        let room = self.room();
                        let us = if room.dice.chance(80) { 1 } else { room.dice.below(20_000) };
                        let order = Event::Delete { session, mandate, block: *block, is_needed };
                        self.later(us * 1_000, order);
                    }
                }
                Command::Transfer(transfers) => {
                    for transfer in transfers {
                        for target in &transfer.targets {
                            let target = server_of(target.server.uuid());
                            self.copy(session.server, target, transfer.block);
                        }
                    }
                }
                Command::Register | Command::Recover(_) | Command::BalancingRate(_) => {}
            }
        }
        Ok(true)
    }

    fn copy(&mut self, from: usize, to: usize, block: Block) {
        let room = self.room();
        let (source, target) = (&room.servers[from], &room.servers[to]);
        if !source.has_good(&block) || !target.is_running || from == to {
            return;
        }
        let (from, to) = ((from, source.life), (to, target.life));
        let ms = if room.dice.chance(90) { room.dice.below(50) } else { room.dice.below(1_500) };
        self.later(ms * 1_000_000, Event::Copied { from, to, block });
    }

    pub(super) fn copied(&mut self, from: (usize, u64), to: (usize, u64), block: Block) {
        let room = self.room();
        let is_same = |(server, life): (usize, u64)| {
            let it = &room.servers[server];
            it.is_running && it.life == life
        };
        if is_same(from) && is_same(to) && self.add_replica(to.0, block, ReplicaState::Finalized) {
            self.room().counts.copies += 1;
            self.tell_news(to.0, &Increment::Received { block, delete_hint: None });
        }
    }

    /// False if there is one, or its files are being removed.
    pub(super) fn add_replica(&mut self, server: usize, block: Block, state: ReplicaState) -> bool {
        let it = &mut self.room().servers[server];
        if it.replicas.contains_key(&block.id) || it.removing.contains_key(&block.id) {
            return false;
        }
        it.replicas.insert(block.id, super::data_server::Replica { block, state });
        true
    }

    pub(super) fn delete_replica(
        &mut self,
        session: Session,
        mandate: Mandate,
        block: Block,
        is_needed: bool,
    ) -> Result<(), Broken> {
        let now_ns = self.now_ns;
        let Session { server, life, .. } = session;
        let room = self.room();
        let it = &mut room.servers[server];
        if !it.is_current(session) {
            return Ok(());
        }
        if !it.leadership.stands(&mandate) {
            room.counts.refused += 1;
            return Ok(());
        }
        check::orders_follow_the_newest_claim::check(server, mandate.epoch(), it.heard_epoch)?;
        let Some(replica) = it.invalidate(block.id, block.generation_stamp) else { return Ok(()) };
        room.counts.deletions += 1;
        let files_ms = room.dice.below(60);
        let left = room.holders(&replica.block).len();
        match room.needed.blocks.get(&block.id).filter(|needed| is_needed && needed.is_good(&replica.block)) {
            Some(needed) if replica.state == ReplicaState::Finalized => {
                room.counts.excess += 1;
                let least = if needed.is_complete { needed.least_wanted(now_ns) } else { 1 };
                check::replicas_needed_stay::check(server, &replica.block, left, least)?;
            }
            _ if left == 0 => {
                room.needed.gone.insert(block.id);
            }
            _ => {}
        }
        self.note(format!("data server {server} deletes {block} by an order of epoch {}", mandate.epoch()));
        self.later(files_ms * 1_000_000, Event::Removed { server, life, block: block.id });
        Ok(())
    }

    pub(super) fn files_are_gone(&mut self, server: usize, life: u64, block: BlockId) {
        let it = &mut self.room().servers[server];
        if it.is_running
            && it.life == life
            && let Some(replica) = it.removing.remove(&block)
        {
            self.tell_news(server, &Increment::Deleted(replica.block));
        }
    }
}
