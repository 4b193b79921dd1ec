//! Goes many ways at random, and shortens what is found.

use super::{Bounds, Event, Search, World};
use crate::{Dice, truth::Broken};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How a rule came to be broken.
#[derive(Clone, Debug)]
pub struct Counterexample<E = Event> {
    pub rule: Broken,
    pub events: Vec<E>,
}

/// The worlds that a check has seen, in numbers.
#[derive(Debug)]
pub struct Report<E = Event> {
    /// Different worlds.
    pub states: usize,
    /// Ways from one to another.
    pub steps: usize,
    /// The most events from the outset.
    pub depth: usize,
    /// Every world that so many events lead to was seen.
    pub whole_depth: usize,
    /// Worlds from which every way was gone.
    pub expanded: usize,
    /// Every world within the bounds was seen.
    pub is_complete: bool,
    pub found: Option<Counterexample<E>>,
}

impl<E> Default for Report<E> {
    fn default() -> Self {
        Self { states: 0, steps: 0, depth: 0, whole_depth: 0, expanded: 0, is_complete: false, found: None }
    }
}

impl<E> fmt::Display for Report<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, depth, whole_depth, expanded, .. } = self;
        write!(f, "{states} states, {steps} steps, depth {depth}")?;
        match self.is_complete {
            true => write!(f, ", complete"),
            false => write!(
                f,
                ", not complete: every world of up to {whole_depth} events was seen, and every way gone from {expanded}"
            ),
        }
    }
}

/// An own assertion of the machine is a broken rule as well.
pub(crate) fn go<B: Search>(world: &mut B::World, event: B::Event, bounds: &B) -> Result<(), Broken> {
    let gone = catch_unwind(AssertUnwindSafe(|| bounds.go(world, event, &mut None)));
    gone.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned());
        Err(format!("the machine's own assertion: {text}"))
    })
}

/// The temper of one walk: some let everything settle, some interfere at once, and in some a part of the world hardly
/// hears of the rest.
struct Temper {
    /// How often ordinary events are preferred to others, in percent.
    patience: u64,
    /// Links whose messages mostly wait.
    slow_links: Vec<(u8, u8)>,
    /// Changes that nobody waits for are mostly left lying.
    keeps_orphans: bool,
    slow_disk: Option<u8>,
    /// Hears late of changed views.
    slow_reader: Option<u8>,
}

impl Temper {
    fn new(dice: &mut Dice, members: u32) -> Self {
        let mut seat = || dice.below(u64::from(members)) as u8;
        let slow_links = [(seat(), seat()), (seat(), seat()), (seat(), seat())];
        let (slow_disk, slow_reader) = (seat(), seat());
        let count = dice.below(4) as usize;
        Self {
            patience: dice.below(97),
            slow_links: slow_links[..count].to_vec(),
            keeps_orphans: dice.chance(50),
            slow_disk: dice.chance(30).then_some(slow_disk),
            slow_reader: dice.chance(50).then_some(slow_reader),
        }
    }

    fn is_slow(&self, event: Event, world: &World) -> bool {
        match event {
            Event::Deliver { from, to } => self.slow_links.contains(&(from, to)),
            Event::Decide { request } => self.keeps_orphans && world.is_orphan(request),
            Event::Sync { seat } => self.slow_disk == Some(seat),
            Event::ReadView { seat } => self.slow_reader == Some(seat),
            _ => false,
        }
    }
}

/// One way at random, ordinary events preferred.
pub fn wander(seed: u64, bounds: &Bounds) -> Report {
    let mut dice = Dice::new(seed);
    let mut world = World::new(bounds);
    let mut report = Report::default();
    let mut events = Vec::new();
    let temper = Temper::new(&mut dice, bounds.members);
    while events.len() < bounds.depth.min(400) {
        let mut all = world.events(bounds);
        if dice.chance(97) && all.iter().any(|event| !temper.is_slow(*event, &world)) {
            all.retain(|event| !temper.is_slow(*event, &world));
        }
        let (ordinary, others): (Vec<Event>, Vec<Event>) =
            all.into_iter().partition(|event| event.is_ordinary());
        let prefers_others = ordinary.is_empty() || !dice.chance(temper.patience);
        let from = if !others.is_empty() && prefers_others { &others } else { &ordinary };
        if from.is_empty() {
            break;
        }
        let event = *dice.pick(from);
        events.push(event);
        report.steps += 1;
        report.depth += 1;
        if let Err(rule) = go(&mut world, event, bounds) {
            report.found = Some(Counterexample { rule, events });
            break;
        }
    }
    report
}

/// Many ways at random.
pub fn wander_many(first_seed: u64, count: u64, bounds: &Bounds) -> Report {
    let mut all = Report::default();
    for seed in first_seed..first_seed + count {
        let one = wander(seed, bounds);
        all.steps += one.steps;
        all.depth = all.depth.max(one.depth);
        if one.found.is_some() {
            all.found = one.found;
            break;
        }
    }
    all
}

/// Leaves out what the story does not need.
pub fn shorten<B: Search>(found: Counterexample<B::Event>, bounds: &B) -> Counterexample<B::Event> {
    let kind = |rule: &str| rule.split([':', ',']).next().unwrap_or_default().to_owned();
    let wanted = kind(&found.rule);
    let mut best = found;
    let mut chunk = (best.events.len() / 2).max(1);
    loop {
        let mut from = 0;
        let mut is_shorter = false;
        while from < best.events.len() {
            let mut events = best.events.clone();
            events.drain(from..(from + chunk).min(events.len()));
            match replay(&events, bounds) {
                Some(shorter)
                    if kind(&shorter.rule) == wanted && shorter.events.len() < best.events.len() =>
                {
                    best = shorter;
                    is_shorter = true;
                }
                _ => from += chunk,
            }
        }
        if chunk == 1 && !is_shorter {
            return best;
        }
        if !is_shorter {
            chunk = (chunk / 2).max(1);
        }
    }
}

/// Goes through those events that can happen.
pub fn replay<B: Search>(events: &[B::Event], bounds: &B) -> Option<Counterexample<B::Event>> {
    let mut world = bounds.outset();
    let mut done = Vec::new();
    for event in events {
        if !bounds.allows(&world, *event) {
            continue;
        }
        done.push(*event);
        if let Err(rule) = go(&mut world, *event, bounds) {
            return Some(Counterexample { rule, events: done });
        }
    }
    None
}

/// The story of a counterexample, line by line.
pub fn tell<B: Search>(found: &Counterexample<B::Event>, bounds: &B) -> Vec<String> {
    let mut world = bounds.outset();
    let mut lines = Vec::new();
    for event in &found.events {
        let mut told = Some(&mut lines);
        let gone = catch_unwind(AssertUnwindSafe(|| bounds.go(&mut world, *event, &mut told)));
        if !matches!(gone, Ok(Ok(()))) {
            break;
        }
    }
    lines.push(format!("BROKEN after {} events: {}", found.events.len(), found.rule));
    lines
}
