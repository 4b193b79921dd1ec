//! The segments of shared memory that clients of this machine have. By the slots of a segment a client hears that a
//! replica is not valid any more. A segment lasts as long as the connection on which its client has asked for it.
//!
//! Hadoop's counterpart is `ShortCircuitRegistry`. Nothing that a client writes into its segment is believed: which slots
//! are taken, and for which replicas, stands here.

use base::BlockId;
use parking_lot::Mutex;
use proto::data_transfer::slot::{self, SLOTS};
use rpc::local::Segment;
use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use thiserror::Error;

/// Segments of all clients together: 8 MiB, and a connection for each.
pub const SEGMENTS_MAX: usize = 1024;

/// Segments of one process, with 128 slots each. A stock client asks for a further one when its slots are used up, and keeps 256
/// replicas open that nobody reads.
pub const SEGMENTS_OF_A_PROCESS_MAX: usize = 32;

/// The name of a segment: 128 random bits, so that nobody guesses that of another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentId {
    pub high: i64,
    pub low: i64,
}

/// A slot of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId {
    pub segment: SegmentId,
    /// As received: any number.
    pub index: i32,
}

/// A local process, as the system names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub user: u32,
    pub id: i32,
}

/// Why a segment or a slot is not given.
#[derive(Debug, Error)]
pub enum Refused {
    #[error("there is no shared memory segment registered with shmId {:016x}{:016x}", .0.high, .0.low)]
    NoSegment(SegmentId),
    #[error("slot {0} is not one of the {SLOTS} of a segment")]
    NoSlot(i32),
    #[error("slot {0} is already in use")]
    Taken(i32),
    #[error("slot {0} is not marked as valid")]
    NotValid(i32),
    #[error("slot {0} does not exist")]
    NotTaken(i32),
    #[error("this process has {SEGMENTS_OF_A_PROCESS_MAX} shared memory segments, as many as it may")]
    TooManyOfProcess,
    #[error("there are {SEGMENTS_MAX} shared memory segments, as many as there may be")]
    TooMany,
    #[error("a shared memory segment could not be made: {0}")]
    System(#[from] io::Error),
}

/// All segments and slots of a server.
#[derive(Default)]
pub struct ShortCircuit {
    held: Mutex<Held>,
    pub figures: Figures,
}

/// Counts for `/metrics`.
#[derive(Default)]
pub struct Figures {
    /// Replicas whose files were handed to a client.
    pub granted: AtomicU64,
    /// Requests for files that were refused.
    pub refused: AtomicU64,
    /// Slots that were marked as not valid because their replica went or changed.
    pub invalidated: AtomicU64,
}

type Replica = (Arc<str>, BlockId);

#[derive(Default)]
struct Held {
    segments: HashMap<SegmentId, Registered>,
    /// The taken slots of each replica that has any.
    slots: HashMap<Replica, Vec<(SegmentId, usize)>>,
    processes: HashMap<Process, usize>,
}

struct Registered {
    memory: Segment,
    process: Process,
    /// The replica of each taken slot.
    taken: HashMap<usize, Replica>,
}

impl ShortCircuit {
    /// Makes a segment named `id` for a process. The descriptor is for the client.
    ///
    /// # Errors
    /// [`Refused::TooManyOfProcess`], [`Refused::TooMany`], or [`Refused::System`] if there is no memory or no descriptor.
    pub fn create(&self, id: SegmentId, process: Process) -> Result<OwnedFd, Refused> {
        let mut held = self.held.lock();
        if held.segments.len() >= SEGMENTS_MAX {
            return Err(Refused::TooMany);
        }
        let count = held.processes.get(&process).copied().unwrap_or(0);
        if count >= SEGMENTS_OF_A_PROCESS_MAX {
            return Err(Refused::TooManyOfProcess);
        }
        if held.segments.contains_key(&id) {
            return Err(io::Error::other("its random name is taken").into());
        }
        let (memory, file) = Segment::create()?;
        held.processes.insert(process, count + 1);
        held.segments.insert(id, Registered { memory, process, taken: HashMap::new() });
        Ok(file)
    }

    /// Takes a slot for a replica. From here on the slot is marked when the replica goes or changes: the client opens the
    /// replica's files only afterwards.
    ///
    /// # Errors
    /// There is no such segment or slot, the slot is taken, or the client has not marked it as valid.
    pub fn register(&self, pool: &Arc<str>, block: BlockId, slot: SlotId) -> Result<(), Refused> {
        let mut held = self.held.lock();
        let held = &mut *held;
        let segment = held.segments.get_mut(&slot.segment).ok_or(Refused::NoSegment(slot.segment))?;
        let index = usize::try_from(slot.index).map_err(|_| Refused::NoSlot(slot.index))?;
        let word = segment.memory.word(index).ok_or(Refused::NoSlot(slot.index))?;
        if segment.taken.contains_key(&index) {
            return Err(Refused::Taken(slot.index));
        }
        if word.load(Ordering::Acquire) & slot::VALID == 0 {
            return Err(Refused::NotValid(slot.index));
        }
        // No replica is kept in memory here.
        word.fetch_and(!slot::ANCHORABLE, Ordering::AcqRel);
        let replica = (pool.clone(), block);
        segment.taken.insert(index, replica.clone());
        held.slots.entry(replica).or_default().push((slot.segment, index));
        Ok(())
    }

    /// Gives a slot back.
    ///
    /// # Errors
    /// [`Refused::NoSegment`] if there is no such segment, [`Refused::NotTaken`] if the slot is not taken.
    pub fn release(&self, slot: SlotId) -> Result<(), Refused> {
        let mut held = self.held.lock();
        let segment = held.segments.get_mut(&slot.segment).ok_or(Refused::NoSegment(slot.segment))?;
        let index = usize::try_from(slot.index).map_err(|_| Refused::NotTaken(slot.index))?;
        let replica = segment.taken.remove(&index).ok_or(Refused::NotTaken(slot.index))?;
        segment.invalidate(index);
        held.forget(&replica, |taken| taken == (slot.segment, index));
        Ok(())
    }

    /// Ends a segment with all its slots: its client is gone, or has said so.
    pub fn remove(&self, id: SegmentId) {
        let mut held = self.held.lock();
        let Some(segment) = held.segments.remove(&id) else { return };
        for (index, replica) in &segment.taken {
            segment.invalidate(*index);
            held.forget(replica, |(segment, _)| segment == id);
        }
        if let Some(count) = held.processes.get_mut(&segment.process) {
            *count -= 1;
            if *count == 0 {
                held.processes.remove(&segment.process);
            }
        }
    }

    /// Marks all slots of a replica as not valid. They stay taken until the client gives them back.
    pub fn invalidate(&self, pool: &Arc<str>, block: BlockId) {
        let held = self.held.lock();
        if held.slots.is_empty() {
            return;
        }
        let Some(slots) = held.slots.get(&(pool.clone(), block)) else { return };
        for (id, index) in slots {
            if held.segments.get(id).is_some_and(|segment| segment.invalidate(*index)) {
                self.figures.invalidated.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub fn segment_count(&self) -> usize {
        self.held.lock().segments.len()
    }

    /// Slots that are taken, of all segments.
    pub fn slot_count(&self) -> usize {
        self.held.lock().segments.values().map(|segment| segment.taken.len()).sum()
    }
}

impl Registered {
    /// Whether the slot was valid until now.
    fn invalidate(&self, index: usize) -> bool {
        let word = self.memory.word(index);
        // One step, however often the client changes the word meanwhile.
        word.is_some_and(|word| word.fetch_and(!slot::VALID, Ordering::AcqRel) & slot::VALID != 0)
    }
}

impl Held {
    fn forget(&mut self, replica: &Replica, is_it: impl Fn((SegmentId, usize)) -> bool) {
        if let Some(slots) = self.slots.get_mut(replica) {
            slots.retain(|slot| !is_it(*slot));
            if slots.is_empty() {
                self.slots.remove(replica);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const POOL: &str = "BP-1";
    const PROCESS: Process = Process { user: 1000, id: 77 };

    fn id(low: i64) -> SegmentId {
        SegmentId { high: 9, low }
    }

    fn slot(low: i64, index: i32) -> SlotId {
        SlotId { segment: id(low), index }
    }

    /// The client's end of a new segment, all of whose slots it has marked as valid.
    fn client(registry: &ShortCircuit, low: i64) -> Segment {
        let segment = Segment::map(registry.create(id(low), PROCESS).unwrap()).unwrap();
        for index in 0..SLOTS {
            segment.word(index).unwrap().store(slot::VALID | slot::ANCHORABLE, Ordering::Release);
        }
        segment
    }

    fn is_valid(segment: &Segment, index: usize) -> bool {
        segment.word(index).unwrap().load(Ordering::Acquire) & slot::VALID != 0
    }

    #[test]
    fn all_clients_of_a_replica_hear_that_it_is_gone() {
        let registry = ShortCircuit::default();
        let pool: Arc<str> = POOL.into();
        let (one, other) = (client(&registry, 1), client(&registry, 2));
        registry.register(&pool, BlockId(5), slot(1, 0)).unwrap();
        registry.register(&pool, BlockId(5), slot(2, 127)).unwrap();
        registry.register(&pool, BlockId(6), slot(2, 3)).unwrap();

        registry.invalidate(&pool, BlockId(5));
        assert!(!is_valid(&one, 0) && !is_valid(&other, 127));
        assert!(is_valid(&other, 3));
        assert_eq!(registry.figures.invalidated.load(Ordering::Relaxed), 2);

        registry.invalidate(&"BP-2".into(), BlockId(6));
        assert!(is_valid(&other, 3), "a block of another pool that has the same number");
    }

    #[test]
    fn a_slot_is_taken_once_and_can_be_had_again() {
        let registry = ShortCircuit::default();
        let pool: Arc<str> = POOL.into();
        let client = client(&registry, 1);
        registry.register(&pool, BlockId(5), slot(1, 8)).unwrap();
        let again = registry.register(&pool, BlockId(6), slot(1, 8)).unwrap_err();
        assert!(matches!(again, Refused::Taken(8)), "{again}");

        registry.release(slot(1, 8)).unwrap();
        assert!(!is_valid(&client, 8));
        assert_eq!(registry.slot_count(), 0);
        let unmarked = registry.register(&pool, BlockId(6), slot(1, 8)).unwrap_err();
        assert!(matches!(unmarked, Refused::NotValid(8)), "{unmarked}");
        client.word(8).unwrap().store(slot::VALID, Ordering::Release);
        registry.register(&pool, BlockId(6), slot(1, 8)).unwrap();
    }

    #[test]
    fn no_replica_is_kept_in_memory_whatever_the_client_writes() {
        let registry = ShortCircuit::default();
        let client = client(&registry, 1);
        registry.register(&POOL.into(), BlockId(5), slot(1, 0)).unwrap();
        assert_eq!(client.word(0).unwrap().load(Ordering::Acquire), slot::VALID);
    }

    #[test]
    fn a_client_that_goes_leaves_nothing() {
        let registry = ShortCircuit::default();
        let pool: Arc<str> = POOL.into();
        let client = client(&registry, 1);
        for index in 0..SLOTS as i32 {
            registry.register(&pool, BlockId(u64::from(index as u32 % 3)), slot(1, index)).unwrap();
        }
        registry.remove(id(1));
        assert!((0..SLOTS).all(|index| !is_valid(&client, index)));
        assert_eq!((registry.segment_count(), registry.slot_count()), (0, 0));
        let held = registry.held.lock();
        assert!(held.slots.is_empty() && held.processes.is_empty());
    }

    #[test]
    fn numbers_that_are_no_slots_are_refused() {
        let registry = ShortCircuit::default();
        let pool: Arc<str> = POOL.into();
        let _client = client(&registry, 1);
        for index in [-1, i32::MIN, 128, i32::MAX] {
            let refused = registry.register(&pool, BlockId(5), slot(1, index)).unwrap_err();
            assert!(matches!(refused, Refused::NoSlot(at) if at == index), "{refused}");
            assert!(matches!(registry.release(slot(1, index)), Err(Refused::NotTaken(_))));
        }
        assert!(matches!(registry.register(&pool, BlockId(5), slot(3, 0)), Err(Refused::NoSegment(_))));
        assert!(matches!(registry.release(slot(3, 0)), Err(Refused::NoSegment(_))));
        registry.remove(id(3));
        assert_eq!((registry.segment_count(), registry.slot_count()), (1, 0));
    }

    #[test]
    fn a_process_has_its_share_and_no_more() {
        let registry = ShortCircuit::default();
        for low in 0..SEGMENTS_OF_A_PROCESS_MAX as i64 {
            registry.create(id(low), PROCESS).unwrap();
        }
        assert!(matches!(registry.create(id(-1), PROCESS), Err(Refused::TooManyOfProcess)));
        registry.create(id(-1), Process { id: 78, ..PROCESS }).unwrap();
        registry.remove(id(0));
        registry.create(id(0), PROCESS).unwrap();
    }

    #[test]
    fn all_clients_together_have_a_limit() {
        let registry = ShortCircuit::default();
        let mut names = HashSet::new();
        for number in 0..SEGMENTS_MAX as i64 {
            let process = Process { id: number as i32, ..PROCESS };
            registry.create(id(number), process).unwrap();
            names.insert(id(number));
        }
        assert!(matches!(registry.create(id(-1), PROCESS), Err(Refused::TooMany)));
        assert_eq!(names.len(), registry.segment_count());
    }
}
