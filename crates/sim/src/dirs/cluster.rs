//! Simulated clusters: a root group and two others, three servers each, on virtual time, from one seed.
//!
//! The machines of [`dirlog`] are the ones that ship. The replica group below is a stand-in ([`group`]): a log of which a prefix has
//! committed, a lease that the active counts on by its own clock, and takeovers after it by another member, which keep or lose what had
//! not committed. The group's own machine is played elsewhere ([`crate::cluster`]); here it would hide what is to be seen. Every server
//! has a clock that drifts; messages are late, lost, doubled and out of order; servers crash, freeze and are cut off; a deposed active
//! goes on until it hears of it.

mod clients;
mod group;
mod servers;
mod stories;

pub use group::Fault;
pub use stories::{STORIES, Story, story};

use super::{
    checks,
    history::History,
    sites::RootLog,
    tree::{Call, Outcome as Told, Tree, group_id, home},
};
use crate::{Dice, truth::Broken};
use clients::Client;
use dirlog::{Dix, Settings, root::ReadLog};
use group::Group;
use servers::{Packet, Server};
use std::collections::{BTreeMap, BTreeSet};

/// The groups beside the root group.
pub const HOMES: u8 = 2;
/// Servers of a group.
pub const MEMBERS: usize = 3;
/// Faults are over, in microseconds.
pub const FAULTS_END: u64 = 12_000_000;
const CALLS_END: u64 = 11_000_000;
const END: u64 = 26_000_000;

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Shape {
    pub settings: Settings,
    /// Clocks run fast or slow by at most so many millionths.
    pub drift_ppm: u64,
    /// The root group's active has no lease of its own: every grant needs a proof.
    pub needs_proofs: bool,
    /// So many of a hundred messages wait for the next ones, and are taken with them.
    pub batch_percent: u64,
    pub clients: usize,
    pub calls_max: usize,
}

impl Default for Shape {
    fn default() -> Self {
        let settings = Settings { hold_ms: 4_000, ..Settings::default() };
        Self {
            settings,
            drift_ppm: 40_000,
            needs_proofs: false,
            batch_percent: 0,
            clients: 4,
            calls_max: 110,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub answers: usize,
    pub changes: usize,
    pub entries: u64,
    pub takeovers: u64,
    pub hellos: u64,
    /// Reads of the root group's log for groups that lacked more than the root has in memory.
    pub log_reads: u64,
    /// The longest that a call waited for its answer, in milliseconds.
    pub slowest_ms: u64,
    pub transcript: Vec<String>,
}

/// A run that broke a rule.
#[derive(Debug)]
pub struct Failure {
    pub rule: Broken,
    pub transcript: Vec<String>,
}

#[derive(Clone, Debug)]
enum Happening {
    Packet {
        from: usize,
        to: usize,
        packet: Packet,
    },
    /// The server takes the packets that have come to it.
    Gathered {
        to: usize,
    },
    /// The server's machine wants to be stepped.
    Timer {
        server: usize,
        life: u64,
    },
    Commit {
        server: usize,
        life: u64,
        len: usize,
    },
    Proof {
        server: usize,
        life: u64,
        began: base::Moment,
    },
    /// Entries have been read from the root group's log.
    LogRead {
        server: usize,
        life: u64,
        asked: ReadLog,
    },
    Beat {
        group: usize,
    },
    Client {
        client: usize,
    },
    Fault(Fault),
}

pub(super) struct World {
    now: u64,
    number: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    dice: Dice,
    shape: Shape,
    groups: Vec<Group>,
    servers: Vec<Server>,
    clients: Vec<Client>,
    history: History,
    calls: Vec<Call>,
    outset: Tree,
    /// What has committed in the root group.
    truth: RootLog,
    /// What has committed in the others.
    home_truth: Vec<Vec<super::sites::HomeRecord>>,
    digests: BTreeMap<Dix, u64>,
    cuts: BTreeSet<(usize, usize)>,
    /// Packets, each with its sender, that have come to a server and that it takes with others.
    gathered: BTreeMap<usize, Vec<(usize, Packet)>>,
    loss_percent: u64,
    /// When a fault last struck: clients call often then.
    struck_at: u64,
    outcome: Outcome,
}

/// Plays a story.
///
/// # Errors
/// A rule was broken.
pub fn run(story: &Story, seed: u64) -> Result<Outcome, Box<Failure>> {
    run_with(story, seed, |_| ())
}

/// Likewise with a shape that is changed.
///
/// # Errors
/// A rule was broken.
pub fn run_with(story: &Story, seed: u64, change: impl FnOnce(&mut Shape)) -> Result<Outcome, Box<Failure>> {
    let mut dice = Dice::new(seed);
    let mut shape = Shape::default();
    let plot = (story.plot)(&mut dice, &mut shape);
    change(&mut shape);
    let mut world = World::new(shape, dice);
    for (at, fault) in plot {
        world.schedule(at, Happening::Fault(fault));
    }
    match world.play() {
        Ok(()) => Ok(world.outcome),
        Err(rule) => Err(Box::new(Failure { rule, transcript: world.outcome.transcript })),
    }
}

impl World {
    fn new(shape: Shape, mut dice: Dice) -> Self {
        let outset = super::bounds::outset();
        let count = (usize::from(HOMES) + 1) * MEMBERS;
        let drift = shape.drift_ppm;
        let servers = (0..count).map(|at| Server::new(at / MEMBERS, drift, &mut dice)).collect();
        let mut world = Self {
            now: 0,
            number: 0,
            queue: BTreeMap::new(),
            groups: (0..=HOMES).map(|_| Group::new()).collect(),
            servers,
            clients: (0..shape.clients).map(|_| Client::default()).collect(),
            history: History::default(),
            calls: Vec::new(),
            outset,
            truth: RootLog::default(),
            home_truth: vec![Vec::new(); usize::from(HOMES) + 1],
            digests: BTreeMap::new(),
            cuts: BTreeSet::new(),
            gathered: BTreeMap::new(),
            loss_percent: 0,
            struck_at: 0,
            outcome: Outcome::default(),
            dice,
            shape,
        };
        for group in 0..=usize::from(HOMES) {
            world.schedule(1_000 * group as u64, Happening::Beat { group });
        }
        for client in 0..world.clients.len() {
            world.schedule(300_000 + 1_000 * client as u64, Happening::Client { client });
        }
        world
    }

    fn schedule(&mut self, at: u64, what: Happening) {
        self.number += 1;
        self.queue.insert((at.max(self.now), self.number), what);
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        self.outcome.transcript.push(format!("{:>9.3} {}", now as f64 / 1_000.0, line()));
    }

    fn play(&mut self) -> Result<(), Broken> {
        while let Some(((at, _), what)) = self.queue.pop_first() {
            if at > END {
                break;
            }
            self.now = at;
            self.happen(what)?;
        }
        self.ends_well()
    }

    fn happen(&mut self, what: Happening) -> Result<(), Broken> {
        let server = match &what {
            Happening::Packet { to, .. } | Happening::Gathered { to } => Some(*to),
            Happening::Timer { server, .. }
            | Happening::Commit { server, .. }
            | Happening::Proof { server, .. }
            | Happening::LogRead { server, .. } => Some(*server),
            _ => None,
        };
        // A frozen process does everything later.
        if let Some(until) =
            server.map(|server| self.servers[server].frozen_until).filter(|until| *until > self.now)
        {
            self.schedule(until, what);
            return Ok(());
        }
        match what {
            Happening::Packet { from, to, packet } => self.arrive(from, to, packet),
            Happening::Gathered { to } => self.take_gathered(to),
            Happening::Timer { server, life } => self.on_timer(server, life),
            Happening::Commit { server, life, len } => self.on_commit(server, life, len),
            Happening::Proof { server, life, began } => self.on_proof(server, life, began),
            Happening::LogRead { server, life, asked } => self.on_log_read(server, life, asked),
            Happening::Beat { group } => self.beat(group),
            Happening::Client { client } => self.on_client(client),
            Happening::Fault(fault) => self.strike(fault),
        }
    }

    /// Everyone has an answer, all groups hold the same directories, and what stands there in the end fits the history.
    fn ends_well(&mut self) -> Result<(), Broken> {
        self.everyone_has_an_answer()?;
        let mut whole = self.root_tree().ok_or("the root group serves in the end")?;
        for group in 1..=usize::from(HOMES) {
            let active = self.groups[group].active.ok_or("every group serves in the end")?;
            let site = self.servers[active].home().ok_or("every group serves in the end")?;
            checks::trees_are_sound(group_id(group), &site.tree, HOMES)?;
            if site.tree.dirs != whole.dirs {
                let (session, at) = (site.machine.session(), site.machine.applied().dix);
                return Err(format!(
                    "directories are equal in the end: not in group {group}, session {session:?}, applied {at}"
                ));
            }
            whole
                .files
                .extend(site.tree.files.iter().filter(|((dir, _), _)| home(*dir, HOMES) == group_id(group)));
        }
        for call in clients::LOOKS {
            let number = self.calls.len() as u8;
            self.calls.push(*call);
            let place = self.history.ask(*call, number);
            self.history.0[place].told = Some(whole.clone().call(*call, number));
        }
        checks::ordered_calls_have_one_entry(&self.truth)?;
        self.outcome.entries = self.truth.end(self.truth.records.len()).0;
        checks::histories_are_linearizable(&self.history, &self.outset)
    }

    fn told(&mut self, call: u8, outcome: Told) {
        self.say(|| format!("call {call} is told {outcome:?}"));
        if let Some(asked) =
            self.history.0.iter_mut().find(|asked| asked.number == call && asked.told.is_none())
        {
            asked.told = Some(outcome);
            self.outcome.answers += 1;
            self.outcome.changes += usize::from(outcome == Told::Done);
        }
    }
}
