//! Goes every way there is, or many at random, and shortens what it finds.

use super::{Bounds, Event, World};
use crate::{Dice, truth::Broken};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How a rule came to be broken.
#[derive(Clone, Debug)]
pub struct Counterexample {
    pub rule: Broken,
    pub events: Vec<Event>,
}

/// What a check has seen.
#[derive(Debug)]
pub struct Report {
    /// Different worlds.
    pub states: usize,
    /// Ways from one to another.
    pub steps: usize,
    /// The most events from the outset.
    pub depth: usize,
    /// Every world within the bounds was seen.
    pub is_complete: bool,
    pub found: Option<Counterexample>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complete = if self.is_complete { ", complete" } else { "" };
        write!(f, "{} states, {} steps, depth {}{complete}", self.states, self.steps, self.depth)
    }
}

/// An own assertion of the machine is a broken rule as well.
fn go(world: &mut World, event: Event, bounds: &Bounds) -> Result<(), Broken> {
    let gone = catch_unwind(AssertUnwindSafe(|| world.go(event, bounds, &mut None)));
    gone.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned());
        Err(format!("the machine's own assertion: {text}"))
    })
}

/// Breadth first: what it finds is as short as can be.
pub fn exhaust(bounds: &Bounds) -> Report {
    let first = World::new(bounds);
    let mut seen = Seen::new();
    seen.insert(first.fingerprint());
    // Of every world seen: where it came from.
    let mut origins: Vec<(u32, Event)> = vec![(u32::MAX, Event::Start { seat: 0 })];
    let mut frontier = vec![(0_u32, first)];
    let mut report = Report { states: 1, steps: 0, depth: 0, is_complete: true, found: None };
    while !frontier.is_empty() {
        if report.depth >= bounds.depth || report.states >= bounds.states {
            report.is_complete = false;
            break;
        }
        let mut next = Vec::new();
        for (origin, world) in frontier {
            for event in world.events(bounds) {
                let mut after = world.clone();
                report.steps += 1;
                if let Err(rule) = go(&mut after, event, bounds) {
                    report.found = Some(Counterexample { rule, events: path(&origins, origin, event) });
                    return report;
                }
                if seen.insert(after.fingerprint()) {
                    report.states += 1;
                    origins.push((origin, event));
                    next.push((origins.len() as u32 - 1, after));
                }
            }
        }
        report.depth += usize::from(!next.is_empty());
        frontier = next;
    }
    report
}

fn path(origins: &[(u32, Event)], mut origin: u32, last: Event) -> Vec<Event> {
    let mut events = vec![last];
    while origin != 0 {
        let (before, event) = origins[origin as usize];
        events.push(event);
        origin = before;
    }
    events.reverse();
    events
}

/// What one walk is like: some let everything settle, some interfere at once, and in some a part of the world
/// hardly hears of the rest.
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
    let mut report = Report { states: 1, steps: 0, depth: 0, is_complete: false, found: None };
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
    let mut all = Report { states: 0, steps: 0, depth: 0, is_complete: false, found: None };
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
pub fn shorten(found: Counterexample, bounds: &Bounds) -> Counterexample {
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
pub fn replay(events: &[Event], bounds: &Bounds) -> Option<Counterexample> {
    let mut world = World::new(bounds);
    let mut done = Vec::new();
    for event in events {
        if !world.allows(*event, bounds) {
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
pub fn tell(found: &Counterexample, bounds: &Bounds) -> Vec<String> {
    let mut world = World::new(bounds);
    let mut lines = Vec::new();
    for event in &found.events {
        let mut told = Some(&mut lines);
        let gone = catch_unwind(AssertUnwindSafe(|| world.go(*event, bounds, &mut told)));
        if !matches!(gone, Ok(Ok(()))) {
            break;
        }
    }
    lines.push(format!("BROKEN after {} events: {}", found.events.len(), found.rule));
    lines
}

/// Fingerprints, in an order that nobody sees.
struct Seen {
    buckets: Vec<u64>,
    count: usize,
    holds_zero: bool,
}

impl Seen {
    fn new() -> Self {
        Self { buckets: vec![0; 1 << 16], count: 0, holds_zero: false }
    }

    /// Whether it is new. Open addressing over numbers that are already hashes.
    fn insert(&mut self, fingerprint: u64) -> bool {
        if fingerprint == 0 {
            return !std::mem::replace(&mut self.holds_zero, true);
        }
        if self.count * 2 > self.buckets.len() {
            let larger = vec![0; self.buckets.len() * 2];
            let old = std::mem::replace(&mut self.buckets, larger);
            self.count = 0;
            old.into_iter().filter(|one| *one != 0).for_each(|one| {
                self.place(one);
            });
        }
        self.place(fingerprint)
    }

    fn place(&mut self, fingerprint: u64) -> bool {
        let mask = self.buckets.len() - 1;
        let mut at = fingerprint as usize & mask;
        loop {
            match self.buckets[at] {
                0 => {
                    self.buckets[at] = fingerprint;
                    self.count += 1;
                    return true;
                }
                held if held == fingerprint => return false,
                _ => at = (at + 1) & mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_fingerprint_is_new_once() {
        let mut seen = Seen::new();
        let numbers: BTreeSet<u64> =
            (0..200_000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        assert!(numbers.iter().all(|number| seen.insert(*number)));
        assert!(!numbers.iter().any(|number| seen.insert(*number)));
    }
}
