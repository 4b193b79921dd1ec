//! The machine itself: its parts, how it is made, and what every other module needs of it.

use crate::{
    arena::Arena,
    config::Config,
    construction::Constructions,
    contested::Contested,
    efforts::Satisfying,
    excess::Excess,
    hints::Hints,
    in_turn::InTurn,
    newcomers::Newcomers,
    pending::Pending,
    postponed::Postponed,
    queue::Queue,
    racks::Racks,
    random::Random,
    replica::Corrupt,
    safe_mode::{Reported, SafeMode, SafeModeProgress},
    servers::Servers,
    slow_reports::SlowReports,
    storage::Storages,
    sweep::Sweeper,
    takeover::Takeover,
    unknown::Unknown,
    words::Events,
};
use base::{BlockId, Epoch, GenerationStamp, Moment};

/// The replicas of every block, and the data servers that hold them. See the crate's description for the kinds of its
/// methods.
pub struct BlockMap {
    pub(crate) config: Config,
    pub(crate) arena: Arena,
    pub(crate) storages: Storages,
    pub(crate) servers: Servers,
    pub(crate) constructions: Constructions,
    pub(crate) redundancy: Redundancy,
    pub(crate) satisfying: Satisfying,
    pub(crate) postponed: Postponed,
    pub(crate) unknown: Unknown,
    pub(crate) safe_mode: SafeMode,
    /// The end of start-up safe mode, and what had been reported by then.
    pub(crate) start_ended: Option<(Moment, Reported)>,
    pub(crate) newcomers: Newcomers,
    pub(crate) contested: Contested,
    pub(crate) slow: SlowReports,
    pub(crate) sweeper: Sweeper,
    /// Some storage or report waits for the sweeper.
    pub(crate) sweep_is_awaited: bool,
    pub(crate) racks: Racks,
    /// There are servers in service that nobody doubts on more than one rack, as of the last tick.
    pub(crate) has_racks: bool,
    pub(crate) random: Random,
    pub(crate) counts: Counts,
    pub(crate) last_allocated: LastAllocated,
    pub(crate) events: Events,
    /// Commands are given, not only reports taken: this server is the active one.
    pub(crate) commanding: bool,
    /// The epoch in which this server commands, or has commanded last.
    pub(crate) reign: Epoch,
    /// The commanding began by taking over from another server.
    pub(crate) takeover: Option<Takeover>,
    pub(crate) last_promise_roll: Moment,
    /// When it was last asked whether writers need servers that were let go.
    pub(crate) looked_after_writers: Moment,
    /// When it was last asked which servers are dead.
    pub(crate) looked_for_dead: Moment,
    /// No server is called dead before this moment.
    pub(crate) is_patient_until: Moment,
    /// The newest moment that a call has brought, for those calls that bring none.
    pub(crate) latest: Moment,
    /// Some live server has shown that it stores blocks, as of the last tick in which a server was to leave.
    pub(crate) has_proved_servers: bool,
    /// Open connections of a live server on the average, as of the last tick.
    pub(crate) mean_xceivers: f64,
}

/// All that is known about blocks with too many, too few or damaged replicas.
#[derive(Default)]
pub(crate) struct Redundancy {
    pub queue: Queue,
    pub pending: Pending,
    pub corrupt: Corrupt,
    pub excess: Excess,
    /// Too many replicas, but one is on a storage whose contents are not surely known, or they are on several media: looked at
    /// again with the next tick, which knows the policies.
    pub undecided: InTurn,
    /// Which replicas should go where there are too many, because others were moved.
    pub hints: Hints,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub complete: u64,
    /// Complete blocks of which the minimal number of undamaged replicas is recorded.
    pub safe: u64,
    pub dropped_rows: u64,
    pub future_bytes: u64,
    /// Serial numbers for reports and report leases.
    pub serial: u64,
}

/// The newest id and stamp of the namespace. Until it says so, they are those of the newest block.
#[derive(Default)]
pub(crate) struct LastAllocated {
    pub id: BlockId,
    pub stamp: GenerationStamp,
    pub is_exact: bool,
}

impl BlockMap {
    /// An empty map in safe mode, commanding. Equal seeds make equal choices.
    pub fn new(config: Config, seed: u64, now: Moment) -> Self {
        Self {
            arena: Arena::new(),
            storages: Storages::default(),
            servers: Servers::default(),
            constructions: Constructions::default(),
            redundancy: Redundancy::default(),
            satisfying: Satisfying::default(),
            postponed: Postponed::new(config.max_postponed),
            unknown: Unknown::new(config.max_held),
            safe_mode: SafeMode::new(config.safe_mode),
            start_ended: None,
            newcomers: Newcomers::default(),
            contested: Contested::default(),
            slow: SlowReports::default(),
            sweeper: Sweeper::default(),
            sweep_is_awaited: false,
            racks: Racks::new(&config.racks),
            has_racks: false,
            random: Random::new(seed),
            counts: Counts::default(),
            last_allocated: LastAllocated::default(),
            events: Events::default(),
            commanding: true,
            reign: Epoch(0),
            takeover: None,
            last_promise_roll: now,
            looked_after_writers: now,
            looked_for_dead: now,
            is_patient_until: now,
            latest: now,
            has_proved_servers: false,
            mean_xceivers: 0.0,
            config,
        }
    }

    /// The events since the last call of this.
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Replicas may be copied and deleted.
    pub(crate) fn may_command(&self) -> bool {
        self.commanding && !self.safe_mode.is_on()
    }

    pub(crate) fn next_serial(&mut self) -> u64 {
        self.counts.serial += 1;
        self.counts.serial
    }

    pub(crate) fn min_replication(&self) -> usize {
        usize::from(self.config.min_replication)
    }

    // ---- safe mode

    pub fn in_safe_mode(&self) -> bool {
        self.safe_mode.is_on()
    }

    /// Safe mode is on because the server has begun, and will end by itself.
    pub fn in_safe_mode_of_start(&self) -> bool {
        self.safe_mode.is_of_start()
    }

    pub fn safe_mode_stage(&self) -> crate::SafeModeStage {
        self.safe_mode.stage()
    }

    /// The text that HDFS calls the safe-mode tip: how far the reports have come, and what to do.
    pub fn safe_mode_message(&self, now: Moment) -> String {
        self.safe_mode.message(self.reported(), now)
    }

    /// How far start-up safe mode has come, or how far it had come when it ended.
    pub fn safe_mode_progress(&self) -> SafeModeProgress {
        let (ended, Reported { safe, total, .. }) = match self.start_ended {
            Some((at, reported)) => (Some(at), reported),
            None => (None, self.reported()),
        };
        SafeModeProgress { safe, total, ended }
    }

    /// How long start-up safe mode may take yet, or what it waits for.
    pub fn safe_mode_outlook(&self, now: Moment) -> Option<String> {
        self.safe_mode.outlook(self.reported(), now)
    }

    /// The namespace has been read: start-up safe mode begins to count, or ends at once if there is
    /// nothing to wait for.
    pub fn activate(&mut self, now: Moment) {
        self.latest = now;
        if self.safe_mode.activate(self.reported()) {
            self.on_safe_mode_ended();
        }
    }

    /// Nothing is looked at in safe mode, so nobody is told in it that a data server may be switched off: the last other replica may be lost meanwhile.
    pub fn enter_safe_mode(&mut self) {
        if self.may_command() {
            self.doubt_admin_states();
        }
        self.safe_mode.enter();
    }

    /// False if it must be forced: leaving would delete replicas that the namespace has never heard of.
    pub fn leave_safe_mode(&mut self, force: bool, now: Moment) -> bool {
        self.latest = now;
        if self.counts.future_bytes > 0 && !force {
            return false;
        }
        self.counts.future_bytes = 0;
        if self.safe_mode.is_on() {
            self.safe_mode.leave();
            self.on_safe_mode_ended();
        }
        true
    }

    pub(crate) fn check_safe_mode(&mut self, now: Moment) {
        if self.safe_mode.check(self.reported(), self.commanding, now) {
            self.events.left_safe_mode = true;
            self.on_safe_mode_ended();
        }
    }

    pub(crate) fn on_safe_mode_ended(&mut self) {
        if self.safe_mode.stage() == crate::SafeModeStage::Off && self.start_ended.is_none() {
            self.start_ended = Some((self.latest, self.reported()));
        }
        if self.may_command() {
            self.doubt_admin_states();
            self.sweeper.request_redundancy();
            self.prolong_leaving();
        }
    }

    pub(crate) fn reported(&self) -> Reported {
        Reported {
            total: self.counts.complete,
            safe: self.counts.safe,
            live_servers: self.servers.live().len(),
            future_bytes: self.counts.future_bytes,
        }
    }
}
