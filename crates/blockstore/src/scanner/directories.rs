//! The directory scanner's thread on one volume: lists, compares, looks again, and puts memory right.

use super::{
    ScanConfig,
    compare::{Difference, Files, Throttle, compare},
    figures::{Kind, ScanFigures},
    signal::Signal,
    take_up::{TakenUp, Unknown},
};
use crate::{
    layout::{FileName, Place, PoolPaths, SUBDIRECTORY_COUNT, parse_name, subdirectories},
    map::{Record, Settled},
    pool::PoolStore,
    store::BlockStore,
    volume::{Volume, VolumeIndex},
};
use base::{BlockId, GenerationStamp};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

/// Block files in wrong directories that one scan remembers; the next scan finds others.
const MISPLACED_COUNT_MAX: usize = 10_000;

/// Findings of one scan that have a line each in the log. The end of the scan tells how many there are in all.
const LINES_MAX: u64 = 1_000;

/// Replicas that nobody knew are read no faster: a directory that was copied in must not take the disk from clients. Chosen by eye.
const TAKE_UP_BYTES_PER_SECOND: u64 = 16 << 20;

struct Scanner {
    store: Arc<BlockStore>,
    volume: VolumeIndex,
    interval_ms: u64,
    ms_per_second: u64,
    signal: Arc<Signal>,
    figures: Arc<ScanFigures>,
}

pub(super) fn start(
    store: Arc<BlockStore>,
    volume: VolumeIndex,
    config: &ScanConfig,
    signal: Arc<Signal>,
    figures: Arc<ScanFigures>,
) -> io::Result<()> {
    let scanner = Scanner {
        store,
        volume,
        interval_ms: config.directory_interval_ms,
        ms_per_second: config.directory_ms_per_second.clamp(1, 1_000),
        signal,
        figures,
    };
    let name = format!("volume-{}-dirs", volume.0);
    scanner.signal.clone().start(name, move || scanner.run())
}

/// One scan of a pool on the volume.
struct Scan<'a> {
    scanner: &'a Scanner,
    pool: PoolStore,
    paths: PoolPaths,
    throttle: Throttle,
    /// The replicas that were there at the beginning, by the `subdirX` in which their files belong.
    shelves: Vec<Vec<BlockId>>,
    found: BTreeMap<Kind, u64>,
    misplaced: Vec<Difference>,
}

/// Why a scan was broken off.
enum Broken {
    Stopped,
    /// A directory cannot be listed: nothing is concluded from the others either.
    Error(PathBuf, io::Error),
    /// The volume is not there, or cannot be seen.
    NotThere,
}

impl Scanner {
    fn run(self) {
        // Servers that start together do not scan together.
        let mut wait_ms = self.store.env.random.next_u64() % self.interval_ms;
        while self.signal.wait(wait_ms) && self.is_wanted() {
            let began = self.store.env.clock.moment();
            let pools: Vec<_> =
                self.store.pool_states().filter(|state| state.observer.get().is_some()).cloned().collect();
            for state in pools {
                let pool = PoolStore { volumes: self.store.clone(), state };
                if self.is_wanted() {
                    self.scan(pool);
                }
            }
            let took_ms = self.store.env.clock.moment().ms_since(began);
            self.figures.last_directory_scan_ms.store(took_ms, Ordering::Relaxed);
            wait_ms = self.interval_ms.saturating_sub(took_ms).max(1);
        }
    }

    fn is_wanted(&self) -> bool {
        !self.signal.is_stopped() && self.volume().is_alive() && !self.store.is_closed()
    }

    fn volume(&self) -> &Volume {
        self.store.volume(self.volume)
    }

    fn scan(&self, pool: PoolStore) {
        let now = self.store.env.clock.moment();
        let id = pool.info().pool.clone();
        let mut scan = Scan {
            paths: pool.paths(self.volume),
            pool,
            scanner: self,
            throttle: Throttle::new(self.ms_per_second, now),
            shelves: Vec::new(),
            found: BTreeMap::new(),
            misplaced: Vec::new(),
        };
        let directory = self.volume().paths.root.display();
        let result = scan.run();
        let ms = self.store.env.clock.moment().ms_since(now);
        let found: Vec<_> =
            scan.found.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        match result {
            Ok(()) => {
                ScanFigures::count(&self.figures.directory_scans, 1);
                tracing::info!(%directory, pool = %id, ms, differences = found.join(", "), "the directory scanner has compared all replicas");
            }
            Err(Broken::Stopped) => {}
            Err(Broken::Error(path, error)) => {
                tracing::warn!(%directory, pool = %id, path = %path.display(), %error, "the directory scanner could not go on; the next scan begins anew");
            }
            Err(Broken::NotThere) => {
                tracing::warn!(%directory, pool = %id, "the directory scanner has stopped: its volume is not there");
            }
        }
    }
}

impl Scan<'_> {
    fn run(&mut self) -> Result<(), Broken> {
        if !self.pool.volumes.is_there(self.scanner.volume) {
            return Err(Broken::NotThere);
        }
        self.shelves = self.pool.shelves(self.scanner.volume);
        let finalized = self.paths.finalized();
        let names = self.list(&finalized)?;
        self.note_misplaced(&finalized, &names);
        for number in 0..SUBDIRECTORY_COUNT {
            self.shelf(number)?;
        }
        // Directories of older layouts, in which nothing should be.
        for name in names.iter().filter(|name| name.starts_with("subdir")) {
            if let Some(number) = name.strip_prefix("subdir").and_then(|digits| digits.parse().ok())
                && number >= SUBDIRECTORY_COUNT
            {
                self.shelf(number)?;
            }
        }
        // Last, so that replicas whose files were moved elsewhere are forgotten by now.
        for difference in std::mem::take(&mut self.misplaced) {
            self.settle(difference)?;
        }
        Ok(())
    }

    /// Everything in one `subdirX`. Memory is asked again after the directories are listed. What is made or removed meanwhile
    /// looks like a difference only until it is looked at a second time.
    fn shelf(&mut self, number: u64) -> Result<(), Broken> {
        let outer = self.paths.finalized().join(format!("subdir{number}"));
        let mut found: BTreeMap<BlockId, Files> = BTreeMap::new();
        let mut metas: Vec<(BlockId, GenerationStamp)> = Vec::new();
        let inner = self.list(&outer)?;
        self.note_misplaced(&outer, &inner);
        for name in inner.iter().filter(|name| name.starts_with("subdir")) {
            let directory = outer.join(name);
            let names = self.list(&directory)?;
            self.note_misplaced(&directory, &names);
            for name in names.iter().filter_map(|name| parse_name(name)) {
                let id = name.id();
                if self.paths.directory(Place::Finalized, id) != directory {
                    continue;
                }
                match name {
                    FileName::Block(_) => {
                        // Gone between the two: then there is none.
                        if let Some(length) = self.length(&self.paths.block(Place::Finalized, id))? {
                            found.entry(id).or_default().block = Some(length);
                        }
                    }
                    FileName::Meta(meta) => {
                        let files = found.entry(id).or_default();
                        files.meta = files.meta.max(Some(meta.generation_stamp));
                        metas.push((id, meta.generation_stamp));
                    }
                }
                self.rest()?;
            }
        }
        let ids = self.shelves.get_mut(number as usize).map(std::mem::take).unwrap_or_default();
        let memory = self.pool.settled_of(self.scanner.volume, &ids);
        for (id, stamp) in metas {
            if memory.get(&id).is_some_and(|settled| settled.generation_stamp == stamp)
                && let Some(files) = found.get_mut(&id)
            {
                files.has_own_meta = true;
            }
        }
        for difference in compare(&found, &memory) {
            self.settle(difference)?;
        }
        Ok(())
    }

    /// Block files that lie in a directory that is not their own.
    fn note_misplaced(&mut self, directory: &Path, names: &[String]) {
        let mut metas: BTreeMap<BlockId, GenerationStamp> = BTreeMap::new();
        let mut blocks = Vec::new();
        for name in names.iter().filter_map(|name| parse_name(name)) {
            match name {
                FileName::Block(id) if self.paths.directory(Place::Finalized, id) != directory => {
                    blocks.push(id)
                }
                FileName::Block(_) => {}
                FileName::Meta(meta) => {
                    let newest = metas.entry(meta.id).or_default();
                    *newest = meta.generation_stamp.max(*newest);
                }
            }
        }
        for id in blocks {
            if self.misplaced.len() < MISPLACED_COUNT_MAX {
                let stamp = metas.get(&id).copied();
                let directory = Some(directory.to_owned());
                self.misplaced.push(Difference {
                    kind: Kind::Misplaced,
                    id,
                    settled: None,
                    stamp,
                    directory,
                });
            }
        }
    }

    fn settle(&mut self, difference: Difference) -> Result<(), Broken> {
        self.rest()?;
        match difference.kind {
            Kind::Missing => self.settle_missing(difference),
            Kind::MetaMissing | Kind::Length => self.settle_damaged(difference),
            Kind::Unknown | Kind::Misplaced => self.settle_unknown(difference),
            Kind::MetaAlone | Kind::Duplicate => self.settle_left(difference),
        }
    }

    /// The replica as memory has it, if that has not changed since the comparison.
    fn unchanged(&self, difference: &Difference) -> Option<Settled> {
        difference
            .settled
            .filter(|settled| self.pool.settled_on(difference.id, settled.volume) == Some(*settled))
    }

    fn settle_missing(&mut self, difference: Difference) -> Result<(), Broken> {
        let block = self.paths.block(Place::Finalized, difference.id);
        if self.length(&block)?.is_some() {
            return Ok(());
        }
        let Some(settled) = self.unchanged(&difference) else { return Ok(()) };
        // Looks whether the volume is there, and at memory again.
        if self.pool.forget_missing(difference.id, settled) {
            self.note(Kind::Missing);
            return Ok(());
        }
        self.go_on_if_there()
    }

    fn settle_damaged(&mut self, difference: Difference) -> Result<(), Broken> {
        let Some(settled) = self.unchanged(&difference) else { return Ok(()) };
        let Difference { id, kind, .. } = difference;
        let length = self.length(&self.paths.block(Place::Finalized, id))?;
        let meta = self.length(&self.paths.meta(Place::Finalized, id, settled.generation_stamp))?;
        let why = match (kind, length, meta) {
            // The next scan finds it missing.
            (_, None, _) => return Ok(()),
            (Kind::MetaMissing, _, None) => "its meta file is missing".to_owned(),
            (Kind::Length, Some(found), _) if found != settled.length => {
                format!("its block file has {found} bytes, and should have {}", settled.length)
            }
            _ => return Ok(()),
        };
        self.go_on_if_there()?;
        if self.unchanged(&difference).is_none() {
            return Ok(());
        }
        if self.note(kind) {
            let block = settled.block(id);
            tracing::error!(%block, directory = %self.paths.root.display(), why, "the directory scanner has found a damaged replica");
        }
        self.pool.tell_damaged(settled.volume, settled.block(id));
        Ok(())
    }

    fn settle_unknown(&mut self, difference: Difference) -> Result<(), Broken> {
        let Difference { kind, id, stamp, directory, .. } = difference;
        let home = self.paths.directory(Place::Finalized, id);
        let place = directory.unwrap_or_else(|| home.clone());
        if self.length(&place.join(crate::layout::block_name(id)))?.is_none() {
            return Ok(());
        }
        if self.pool.is_known(id) {
            // A replica of another volume, or of another directory, or one that is just being made, moved or removed here.
            let is_another = !self.pool.is_moving(id)
                && (place != home
                    || self.pool.record(id).is_ok_and(|record| record.volume() != self.scanner.volume));
            if is_another && self.note(Kind::Duplicate) {
                tracing::warn!(block = %id, directory = %place.display(), "a second block file of a replica; it is left there and not used");
            }
            return Ok(());
        }
        let taken = match stamp {
            None => TakenUp::No("it has no meta file".into()),
            Some(stamp) => self.take_up(Unknown { id, stamp, directory: &place }),
        };
        match taken {
            TakenUp::Stopped => return Err(Broken::Stopped),
            TakenUp::Known => {}
            TakenUp::Yes(block) => {
                if self.note(kind) {
                    tracing::warn!(%block, directory = %place.display(), "a block file that nobody knew is whole and is a replica from now on");
                }
            }
            TakenUp::No(why) => {
                self.go_on_if_there()?;
                if self.note(kind) {
                    tracing::warn!(block = %id, directory = %place.display(), why, "a block file that nobody knows is left there and not used");
                }
            }
        }
        Ok(())
    }

    fn take_up(&self, found: Unknown<'_>) -> TakenUp {
        let signal = &self.scanner.signal;
        self.pool.take_up(self.scanner.volume, found, &mut |bytes| {
            // A millisecond for what the rate gives in one.
            signal.wait(bytes * 1_000 / TAKE_UP_BYTES_PER_SECOND) && self.scanner.is_wanted()
        })
    }

    /// A meta file without a block file.
    fn settle_left(&mut self, difference: Difference) -> Result<(), Broken> {
        let Difference { kind, id, stamp, .. } = difference;
        let Some(stamp) = stamp else { return Ok(()) };
        if self.pool.is_known(id)
            || self.length(&self.paths.block(Place::Finalized, id))?.is_some()
            || self.length(&self.paths.meta(Place::Finalized, id, stamp))?.is_none()
        {
            return Ok(());
        }
        if self.note(kind) {
            tracing::warn!(block = %id, %stamp, directory = %self.paths.root.display(), "a meta file has no block file; it is left there");
        }
        Ok(())
    }

    /// Counts a difference. Whether it has a line of its own in the log.
    fn note(&mut self, kind: Kind) -> bool {
        self.scanner.figures.note(kind);
        *self.found.entry(kind).or_default() += 1;
        self.found.values().sum::<u64>() <= LINES_MAX
    }

    fn go_on_if_there(&self) -> Result<(), Broken> {
        match self.pool.volumes.is_there(self.scanner.volume) {
            true => Ok(()),
            false => Err(Broken::NotThere),
        }
    }

    /// The names in a directory; none if there is no such directory.
    fn list(&mut self, directory: &Path) -> Result<Vec<String>, Broken> {
        self.rest()?;
        match self.pool.disk().list(directory) {
            Ok(names) => Ok(names),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            // A file that has the name of a directory.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Vec::new()),
            Err(error) => Err(self.broken(directory, error)),
        }
    }

    /// The length of a file, if there is one.
    fn length(&self, path: &Path) -> Result<Option<u64>, Broken> {
        match self.pool.disk().length(path) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.broken(path, error)),
        }
    }

    /// An error may be the volume's end. If not, this scan has ended.
    fn broken(&self, path: &Path, error: io::Error) -> Broken {
        match self.pool.volumes.is_there(self.scanner.volume) {
            true => Broken::Error(path.into(), error),
            false => Broken::NotThere,
        }
    }

    fn rest(&mut self) -> Result<(), Broken> {
        let wait_ms = self.throttle.wait_ms(self.pool.volumes.env.clock.moment());
        match (wait_ms == 0 || self.scanner.signal.wait(wait_ms)) && self.scanner.is_wanted() {
            true => Ok(()),
            false => Err(Broken::Stopped),
        }
    }
}

impl PoolStore {
    /// The finished replicas on a volume, by the `subdirX` in which their files belong: eight bytes each, so that the map is
    /// gone through once.
    fn shelves(&self, volume: VolumeIndex) -> Vec<Vec<BlockId>> {
        let mut shelves = vec![Vec::new(); SUBDIRECTORY_COUNT as usize];
        let map = self.state.map.read();
        for (id, record) in &map.records {
            if matches!(record, Record::Finalized(settled) if settled.volume == volume) {
                shelves[subdirectories(*id).0 as usize].push(*id);
            }
        }
        shelves
    }

    /// Of these blocks, the finished replicas on a volume as they are now.
    fn settled_of(&self, volume: VolumeIndex, ids: &[BlockId]) -> BTreeMap<BlockId, Settled> {
        let map = self.state.map.read();
        let settled = ids.iter().filter_map(|id| match map.records.get(id) {
            Some(Record::Finalized(settled)) if settled.volume == volume => Some((*id, *settled)),
            _ => None,
        });
        settled.collect()
    }
}
