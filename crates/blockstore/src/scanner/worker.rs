//! The block scanner's thread on one volume: asks the plan, reads, tells.

use super::{
    ScanConfig,
    check::Found,
    cursor::Cursor,
    figures::ScanFigures,
    plan::{Name, Plan, Step},
    signal::Signal,
};
use crate::{
    map::Record,
    pool::PoolStore,
    store::BlockStore,
    volume::{Volume, VolumeIndex},
};
use base::{BlockId, Moment};
use std::{collections::BTreeMap, io, sync::Arc};

/// Replicas that are looked up at a time: half a megabyte of ids. Chosen by eye.
const CHOICE_COUNT: usize = 65_536;

struct Worker {
    store: Arc<BlockStore>,
    volume: VolumeIndex,
    plan: Plan,
    signal: Arc<Signal>,
    figures: Arc<ScanFigures>,
    cursor_interval_ms: u64,
    saved_at: Moment,
    /// The cursors as they were kept last.
    saved: BTreeMap<Arc<str>, Cursor>,
    /// A cursor that cannot be kept is told once.
    has_told_of_cursors: bool,
}

pub(super) fn start(
    store: Arc<BlockStore>,
    volume: VolumeIndex,
    config: &ScanConfig,
    signal: Arc<Signal>,
    figures: Arc<ScanFigures>,
) -> io::Result<()> {
    let worker = Worker {
        plan: Plan::new(config.block_period_ms, config.block_bytes_per_second),
        saved_at: store.env.clock.moment(),
        store,
        volume,
        signal,
        figures,
        cursor_interval_ms: config.cursor_interval_ms,
        saved: BTreeMap::new(),
        has_told_of_cursors: false,
    };
    let name = format!("volume-{}-scan", volume.0);
    worker.signal.clone().start(name, move || worker.run())
}

impl Worker {
    fn run(mut self) {
        while !self.signal.is_stopped() && self.volume().is_alive() && !self.store.is_closed() {
            self.meet_pools();
            let now = self.now();
            for replica in self.signal.take_suspects() {
                self.plan.suspect(replica, now);
            }
            match self.plan.next(now, self.now_ms()) {
                Step::Check { replica, is_suspect } => self.check(&replica, is_suspect),
                Step::Choose { pool, after } => self.choose(&pool, after),
                Step::Wait { ms } => {
                    self.signal.wait(ms);
                }
            }
            if self.now().ms_since(self.saved_at) >= self.cursor_interval_ms {
                self.save_cursors();
            }
        }
        if self.volume().is_alive() && !self.store.is_closed() {
            self.save_cursors();
        }
    }

    fn volume(&self) -> &Volume {
        self.store.volume(self.volume)
    }

    fn now(&self) -> Moment {
        self.store.env.clock.moment()
    }

    fn now_ms(&self) -> u64 {
        self.store.env.clock.timestamp().ms
    }

    fn pool(&self, id: &str) -> Option<PoolStore> {
        let state = self.store.pool_states().find(|state| *state.info.pool == *id)?.clone();
        Some(PoolStore { volumes: self.store.clone(), state })
    }

    /// Pools that are served since the last look go on where they were.
    fn meet_pools(&mut self) {
        let fresh: Vec<_> = self
            .store
            .pool_states()
            // Before the observer is there nobody would hear of a finding.
            .filter(|state| state.observer.get().is_some() && !self.plan.has(&state.info.pool))
            .map(|state| state.info.pool.clone())
            .collect();
        for pool in fresh {
            let paths = self.volume().pool(&pool);
            let directory = self.volume().paths.root.display();
            let cursor = match Cursor::read(self.store.disk(), &paths) {
                Ok(Some(cursor)) => {
                    tracing::info!(%directory, %pool, begun_ms = cursor.begun_ms, at = ?cursor.at, "the block scanner goes on with its round");
                    Some(cursor)
                }
                Ok(None) => {
                    tracing::info!(%directory, %pool, "the block scanner has no cursor here and begins a new round");
                    None
                }
                Err(error) => {
                    tracing::warn!(%directory, %pool, %error, "the block scanner's cursor cannot be read; a new round begins");
                    None
                }
            };
            self.plan.add(pool, cursor, self.now_ms());
        }
    }

    fn choose(&mut self, pool: &Arc<str>, after: Option<BlockId>) {
        let next = self
            .pool(pool)
            .map(|store| store.finished_after(self.volume, after, CHOICE_COUNT))
            .unwrap_or_default();
        if let Some(end) = self.plan.chosen(pool, next, self.now_ms()) {
            ScanFigures::count(&self.figures.rounds, 1);
            self.figures.last_round_ms.store(end.ms, std::sync::atomic::Ordering::Relaxed);
            tracing::info!(directory = %self.volume().paths.root.display(), %pool, ms = end.ms, "the block scanner has read all replicas");
            self.save_cursors();
        }
    }

    fn check(&mut self, replica: &Name, is_suspect: bool) {
        let Some(store) = self.pool(&replica.0) else {
            return self.plan.checked(replica, false, self.now());
        };
        let (volume, clock) = (self.volume, self.store.env.clock.clone());
        let (plan, signal, figures) = (&mut self.plan, &self.signal, &self.figures);
        let found = store.check_replica(replica.1, volume, &mut |bytes| {
            let wait_ms = plan.pay(bytes, clock.moment());
            ScanFigures::count(&figures.bytes, bytes);
            signal.wait(wait_ms) && !store.volumes.is_closed() && store.volume(volume).is_alive()
        });
        if found == Found::Stopped {
            return;
        }
        ScanFigures::count(&self.figures.blocks, 1);
        if is_suspect {
            ScanFigures::count(&self.figures.suspects, 1);
        }
        let directory = self.volume().paths.root.display();
        let again = match &found {
            Found::Damaged(settled, why) => {
                ScanFigures::count(&self.figures.damaged, 1);
                let block = settled.block(replica.1);
                tracing::error!(%block, pool = %replica.0, %directory, why, "the block scanner has found a damaged replica");
                store.tell_damaged(volume, block);
                true
            }
            Found::Undecided(why) => {
                tracing::warn!(block = %replica.1, pool = %replica.0, %directory, why, "the block scanner could not read a replica");
                true
            }
            // The store has said so.
            Found::Missing => false,
            Found::Sound | Found::Changed | Found::Stopped => false,
        };
        self.plan.checked(replica, again, self.now());
    }

    fn save_cursors(&mut self) {
        self.saved_at = self.now();
        let changed: Vec<_> = self
            .plan
            .cursors()
            .filter(|(pool, cursor)| self.saved.get(*pool) != Some(cursor))
            .map(|(pool, cursor)| (pool.clone(), cursor))
            .collect();
        for (pool, cursor) in changed {
            let paths = self.volume().pool(&pool);
            match cursor.write(self.store.disk(), &paths) {
                Ok(()) => {
                    self.saved.insert(pool, cursor);
                }
                Err(error) if !self.has_told_of_cursors => {
                    self.has_told_of_cursors = true;
                    let directory = self.volume().paths.root.display();
                    tracing::warn!(%directory, %pool, %error, "the block scanner cannot keep its cursor; after a restart its round begins anew");
                }
                Err(_) => {}
            }
        }
    }
}

impl PoolStore {
    /// The next finished replicas on a volume, in the order of their ids: those behind `after`.
    fn finished_after(&self, volume: VolumeIndex, after: Option<BlockId>, count: usize) -> Vec<BlockId> {
        let mut found: Vec<BlockId> = {
            let map = self.state.map.read();
            let finished = map.records.iter().filter_map(|(id, record)| match record {
                Record::Finalized(settled) if settled.volume == volume => Some(*id),
                _ => None,
            });
            finished.filter(|id| after.is_none_or(|after| *id > after)).collect()
        };
        if found.len() > count {
            found.select_nth_unstable(count);
            found.truncate(count);
        }
        found.sort_unstable();
        found
    }

    /// Tells the observer of a damaged replica.
    pub(super) fn tell_damaged(&self, volume: VolumeIndex, block: base::Block) {
        if let Some(observer) = self.state.observer.get() {
            observer.damaged(self.storage_id(volume), block);
        }
    }
}
