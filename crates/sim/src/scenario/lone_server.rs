//! One metadata server on a disk that forgets, tears and fails, through many lives.
//!
//! A client calls, the server applies and appends, batches reach the disk in any order; power goes, the disk
//! fails or fills up; the server starts again, and must know all that it ever acknowledged.

use crate::{
    Dice, Fault, Loss, SimClock, SimDisk, SimRandom,
    history::History,
    server::{Place, Server, format},
    workload::Workload,
};
use base::{CallId, CallOrigin, ClientId};
use env::{Clock, Env};
use std::{path::Path, sync::Arc};

/// How long and how cruel.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub events: u64,
    /// Percentage of events that end a life.
    pub crash_percent: u64,
    pub disk_faults: bool,
    /// Plants the bug that all checkers exist for: the disk only says that it syncs.
    pub disk_lies: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { events: 600, crash_percent: 2, disk_faults: true, disk_lies: false }
    }
}

/// The result of a run, equal for equal seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub transcript: Vec<String>,
    /// A hash over everything asked of the disk.
    pub disk_trace: u64,
    /// A hash over the files at the end.
    pub files_hash: u64,
    pub acknowledged: u64,
    pub lives: u64,
}

struct World {
    dice: Dice,
    disk: SimDisk,
    clock: Arc<SimClock>,
    env: Env,
    place: Place,
    settings: journal::Settings,
    workload: Workload,
    history: History,
    server: Option<Server>,
    calls: i32,
    lives: u64,
}

/// Runs the scenario; panics with a sentence if something acknowledged is lost or changed.
pub fn run(seed: u64, options: Options) -> Outcome {
    let mut world = World::new(seed);
    if options.disk_lies {
        world.disk.lie_about_syncs();
    }
    for _ in 0..options.events {
        world.event(options);
    }
    // In the end, all that was acknowledged is there once more.
    world.lose_power(Loss::Random);
    world.start();
    let files = world.disk.files();
    let bytes: Vec<u8> = files.iter().flat_map(|(_, content)| content.clone()).collect();
    Outcome {
        disk_trace: world.disk.trace(),
        files_hash: rapidhash::v3::rapidhash_v3(&bytes),
        acknowledged: world.history.acknowledged.0,
        lives: world.lives,
        transcript: world.history.transcript,
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let disk = SimDisk::new(dice.split());
        let clock = Arc::new(SimClock::new());
        let env = Env {
            clock: clock.clone(),
            disk: Arc::new(disk.clone()),
            random: Arc::new(SimRandom::new(dice.split())),
            descriptors: Arc::new(env::Descriptors::new(1 << 20)),
        };
        let settings = journal::Settings {
            segment_bytes: 16 * 1024 * (1 + dice.below(4)),
            flights_max: 1 + dice.below(4) as usize,
            batch_bytes_max: 4096,
            waiting_bytes_max: usize::MAX,
            reserve_bytes: 1 << 20,
        };
        let place = Place::new(Path::new("/sim"));
        format(&env, &place).expect("a fresh disk can be formatted");
        let workload = Workload::new(dice.split());
        let history = History::default();
        Self { dice, disk, clock, env, place, settings, workload, history, server: None, calls: 0, lives: 0 }
    }

    fn event(&mut self, options: Options) {
        if self.server.is_none() {
            return self.start();
        }
        let choice = self.dice.below(100);
        match choice {
            _ if choice < options.crash_percent => {
                let loss = *self.dice.pick(&[
                    Loss::Random,
                    Loss::Random,
                    Loss::All,
                    Loss::Nothing,
                    Loss::ProcessOnly,
                ]);
                self.lose_power(loss);
            }
            0..45 => self.call(),
            45..80 => self.disk_goes_on(),
            80..90 => self.clock.advance_ms(self.dice.below(50)),
            90..93 => {
                if let Some(server) = &mut self.server {
                    server.begin_image();
                }
            }
            93..96 => {
                if let Some(server) = &self.server {
                    // A spare segment is a convenience: its failure is nobody's.
                    let _ = server.journal().prepare_segment();
                }
            }
            _ if !options.disk_faults || !self.dice.chance(15) => {}
            96..98 => self.disk.fail_sync(self.dice.below(4), Fault::Io),
            98 => {
                self.disk.fail_write(self.dice.below(4), *self.dice.clone().pick(&[Fault::Io, Fault::Full]))
            }
            _ => self.disk.set_free_bytes(self.dice.below(2 << 20)),
        }
        self.after_event();
    }

    fn call(&mut self) {
        let Some(server) = &mut self.server else { return };
        if server.serving().is_none() {
            return;
        }
        self.calls += 1;
        let origin = CallOrigin {
            client_id: ClientId([3; 16]),
            call_id: CallId(self.calls),
            retry_count: 0,
            repeats: 0,
            address: None,
        };
        let (now, moment) = (self.clock.timestamp(), self.clock.moment());
        if let Some(planned) = self.workload.plan(&server.namespace, origin, now, moment) {
            self.history.note(format!("call {} {}", self.calls, planned.name));
            server.execute(origin, planned, &mut self.history);
        }
    }

    fn disk_goes_on(&mut self) {
        let count = self.disk.submitted_count();
        if count > 0 {
            self.disk.complete(self.dice.below(count as u64) as usize);
        }
    }

    fn after_event(&mut self) {
        let Some(server) = &mut self.server else { return };
        server.handle_answers(&mut self.history);
        if server.fault().is_some() {
            // The process says why and ends; what was not synced stays in the page cache, or power goes too.
            let loss = *self.dice.pick(&[Loss::ProcessOnly, Loss::Nothing, Loss::Random]);
            self.lose_power(loss);
        }
    }

    fn lose_power(&mut self, loss: Loss) {
        self.history.note(format!("power: {loss:?} is lost, acknowledged {}", self.history.acknowledged));
        self.disk.crash(loss);
        self.disk.set_free_bytes(1 << 40);
        self.server = None;
    }

    fn start(&mut self) {
        self.lives += 1;
        if self.dice.chance(5) {
            self.disk.fail_sync(self.dice.below(8), Fault::Io);
        }
        match Server::start(&self.env, &self.place, self.settings, &mut self.history) {
            Ok(server) => self.server = Some(server),
            Err(error) => self.start_failed(error),
        }
        self.after_event();
    }

    fn start_failed(&mut self, error: anyhow::Error) {
        let error = match error.downcast::<journal::RecoverError>() {
            // The disk failed while the store was recovered: the next start tries again.
            Ok(journal::RecoverError::Io { file, source }) => {
                let loss = *self.dice.pick(&[Loss::ProcessOnly, Loss::Random]);
                self.history.note(format!("start failed: {source} on {}; {loss:?}", file.display()));
                return self.lose_power(loss);
            }
            Ok(other) => panic!("{other}"),
            Err(error) => error,
        };
        let error = error.downcast::<journal::OpenError>().unwrap_or_else(|error| panic!("{error:#}"));
        let journal::OpenError::Untrusted { note, .. } = error else { panic!("{error}") };
        // The operator takes the store as it is, sometimes without even a restart of the machine.
        self.history.note(format!("operator: accepts {note}"));
        self.disk.crash(*self.dice.pick(&[Loss::ProcessOnly, Loss::Random]));
        let accepted =
            journal::accept_fault(&self.env, &self.place.store).expect("the store can be taken back");
        assert!(matches!(accepted, journal::Accepted::TakenBack(_)), "{accepted:?}");
    }
}
