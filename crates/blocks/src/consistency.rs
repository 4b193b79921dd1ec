//! The complete check of a block map, for tests and simulation: it looks at everything.

use crate::{map::BlockMap, storage::Life, words::BlockState};
use std::collections::BTreeMap;

impl BlockMap {
    /// The first broken invariant, as a sentence.
    ///
    /// # Errors
    /// An invariant is broken. The text names the first one found.
    pub fn is_consistent(&self) -> Result<(), String> {
        self.counts_agree_with_records()?;
        self.storages_count_their_blocks()?;
        self.reports_have_seen_only_what_is_held()?;
        self.marks_are_on_places_held()?;
        self.what_is_to_go_does_not_count()?;
        check(self.postponed.is_consistent(), || "the tables of rows that wait agree".into())?;
        check(self.unknown.held.is_consistent(), || "the held replicas add up".into())?;
        self.unfinished_blocks_have_a_construction()
    }

    fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.arena.slots()).filter(|slot| !self.arena.record(*slot).is_free())
    }

    fn counts_agree_with_records(&self) -> Result<(), String> {
        let complete =
            self.slots().filter(|slot| self.arena.record(*slot).state() == BlockState::Complete).count();
        let safe = self.slots().filter(|slot| self.is_safe(*slot)).count();
        let found =
            self.slots().filter(|slot| self.arena.find(self.arena.record(*slot).id()) == Some(*slot)).count();
        let queued = self.slots().filter(|slot| self.arena.record(*slot).is_queued()).count();
        let really_queued =
            self.slots().filter(|slot| self.redundancy.queue.contains(self.arena.record(*slot).id())).count();
        check(complete as u64 == self.counts.complete, || format!("{complete} blocks are complete"))?;
        check(safe as u64 == self.counts.safe, || {
            format!("{safe} blocks are safe, not {}", self.counts.safe)
        })?;
        check(found == self.arena.len() && found == self.slots().count(), || {
            "the index finds all records".into()
        })?;
        check(queued == really_queued && queued == self.redundancy.queue.len(), || {
            format!("{queued} records say that they are queued, {really_queued} are")
        })
    }

    fn storages_count_their_blocks(&self) -> Result<(), String> {
        let mut held: BTreeMap<u32, u32> = BTreeMap::new();
        for slot in self.slots() {
            let places = self.arena.places(slot);
            for (at, place) in places.iter().enumerate() {
                check(!places.as_slice()[..at].contains(&place), || {
                    format!("slot {slot} holds {place} twice")
                })?;
                *held.entry(place).or_default() += 1;
            }
        }
        for (index, storage) in self.storages.iter() {
            let count = held.get(&index).copied().unwrap_or(0);
            check(count == storage.blocks, || {
                format!("storage {index} counts {}, not {count}", storage.blocks)
            })?;
            let free = matches!(storage.life, Life::Free);
            check(!free || count == 0, || format!("free storage {index} is named by records"))?;
        }
        Ok(())
    }

    fn reports_have_seen_only_what_is_held(&self) -> Result<(), String> {
        for (index, storage) in self.storages.iter() {
            let Some(report) = &storage.full_report else { continue };
            let held =
                self.slots().filter(|slot| report.seen.contains(*slot) && self.arena.holds(*slot, index));
            let held = held.count();
            check(held as u32 == report.seen.count(), || {
                format!(
                    "the report of storage {index} has seen {}, of which {held} are held",
                    report.seen.count()
                )
            })?;
        }
        Ok(())
    }

    fn marks_are_on_places_held(&self) -> Result<(), String> {
        let corrupt = self.redundancy.corrupt.iter();
        let corrupt =
            corrupt.flat_map(|(id, replicas)| replicas.iter().map(move |replica| (id, replica.place)));
        let excess = self.redundancy.excess.iter();
        let excess = excess.flat_map(|(id, places)| places.iter().map(move |place| (id, *place)));
        for (id, place) in corrupt.chain(excess) {
            let held = self.arena.find(id).is_some_and(|slot| self.arena.holds(slot, place));
            check(held, || format!("block {id} has a mark on storage {place}, where it is not"))?;
        }
        Ok(())
    }

    /// A replica whose deletion is queued, or was ordered, is marked: as superfluous or as damaged.
    fn what_is_to_go_does_not_count(&self) -> Result<(), String> {
        for (_, server) in self.servers.iter() {
            for (id, deletion) in server.deletions.iter().chain(&server.ordered) {
                let Some(slot) = self.arena.find(*id) else { continue };
                let Some(place) = deletion.place else { continue };
                let is_this =
                    self.arena.record(slot).stamp() == deletion.stamp && self.arena.holds(slot, place);
                check(!is_this || self.is_marked(*id, place), || {
                    format!("block {id} counts on storage {place}, where it is to be deleted")
                })?;
            }
        }
        Ok(())
    }

    fn unfinished_blocks_have_a_construction(&self) -> Result<(), String> {
        for id in self.constructions.ids() {
            let unfinished = self.arena.find(id).map(|slot| self.arena.record(slot).state());
            check(unfinished.is_some_and(|state| state != BlockState::Complete), || {
                format!("block {id} has a construction though it is {unfinished:?}")
            })?;
        }
        Ok(())
    }
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
