//! Goes every way there is, breadth first, so that a counterexample is as short as can be.
//!
//! No world is kept. Of each that was seen there is a fingerprint of 64 bits, and the event that led to it from which
//! other one: 18 bytes. The world to be looked at next is made again from the outset, by the events that led there.
//! Worlds are looked at in the order in which they were found, so that neighbours share most of their way: only the
//! end of it is gone again. Two worlds may have one fingerprint by chance, and then one of them is not looked at: of
//! 100 million worlds, with a probability of 3 in 10,000.

use super::{
    Search,
    explore::{Counterexample, Report, go},
};
use std::time::Instant;

/// The bytes that a world that was seen takes: fingerprints fill at most four fifths of their table.
const FINGERPRINT_BYTES: usize = 10;
/// Where it came from: a world, and an event of four bytes at most.
type Origin<B> = (u32, <B as Search>::Event);
const ORIGIN_BYTES: usize = 8;

/// The memory that a check of so many worlds takes at most, beside the few worlds that it has at hand.
pub fn memory_of(states: usize) -> usize {
    states * (FINGERPRINT_BYTES + ORIGIN_BYTES)
}

/// Looks at as many worlds as the bounds allow, and begins with no other after `until`.
pub fn exhaust<B: Search>(bounds: &B, until: Option<Instant>) -> Report<B::Event> {
    const { assert!(size_of::<Origin<B>>() <= ORIGIN_BYTES, "a world that was seen takes 18 bytes") };
    let states_max = bounds.states().min(u32::MAX as usize);
    let first = bounds.outset();
    let mut seen = Seen::with_room_for(states_max);
    seen.insert(B::fingerprint(&first));
    let mut origins: Vec<Origin<B>> = Vec::with_capacity(states_max);
    origins.push((u32::MAX, B::NO_EVENT));
    let mut way: Way<B> = Way { steps: vec![(0, first)] };
    let mut report = Report { states: 1, ..Report::default() };
    // The worlds of one depth stand together.
    let (mut at, mut level_end) = (0, 1);
    while at < origins.len() {
        if at == level_end {
            report.whole_depth += 1;
            level_end = origins.len();
        }
        let is_late = at % 256 == 0 && until.is_some_and(|until| Instant::now() >= until);
        if report.whole_depth >= bounds.depth() || report.states >= states_max || is_late {
            return report;
        }
        let origin = at as u32;
        way.go_to(&origins, origin, bounds);
        let world = way.end();
        let mut found = Vec::new();
        for event in bounds.events(world) {
            let mut after = world.clone();
            report.steps += 1;
            if let Err(rule) = go(&mut after, event, bounds) {
                report.found = Some(Counterexample { rule, events: path(&origins, origin, event) });
                return report;
            }
            if report.states + found.len() < states_max && seen.insert(B::fingerprint(&after)) {
                found.push((origin, event));
            }
        }
        report.states += found.len();
        report.depth = report.whole_depth + usize::from(!found.is_empty() || origins.len() > level_end);
        origins.extend(found);
        report.expanded += 1;
        at += 1;
    }
    report.is_complete = true;
    report
}

fn path<E: Copy>(origins: &[(u32, E)], mut origin: u32, last: E) -> Vec<E> {
    let mut events = vec![last];
    while origin != 0 {
        let (before, event) = origins[origin as usize];
        events.push(event);
        origin = before;
    }
    events.reverse();
    events
}

/// The worlds on the way to the one that is looked at, the outset first, each with its number.
struct Way<B: Search> {
    steps: Vec<(u32, B::World)>,
}

impl<B: Search> Way<B> {
    fn end(&self) -> &B::World {
        &self.steps.last().expect("the outset stays").1
    }

    /// Goes back to where the ways part, and on from there.
    fn go_to(&mut self, origins: &[Origin<B>], target: u32, bounds: &B) {
        let mut missing = Vec::new();
        let mut at = target;
        loop {
            // A world that was found later comes from one that was found earlier, so numbers rise along every way.
            while self.steps.last().is_some_and(|(number, _)| *number > at) {
                self.steps.pop();
            }
            if self.steps.last().is_some_and(|(number, _)| *number == at) {
                break;
            }
            missing.push(at);
            at = origins[at as usize].0;
        }
        for number in missing.into_iter().rev() {
            let mut world = self.end().clone();
            let gone = go(&mut world, origins[number as usize].1, bounds);
            assert!(gone.is_ok(), "the same events lead to the same world");
            self.steps.push((number, world));
        }
    }
}

/// Fingerprints, in a table that never grows. Open addressing over numbers that are already hashes.
struct Seen {
    buckets: Vec<u64>,
    holds_zero: bool,
}

impl Seen {
    fn with_room_for(count: usize) -> Self {
        let buckets = count * FINGERPRINT_BYTES / size_of::<u64>() + 64;
        Self { buckets: vec![0; buckets], holds_zero: false }
    }

    /// Whether it is new.
    fn insert(&mut self, fingerprint: u64) -> bool {
        if fingerprint == 0 {
            return !std::mem::replace(&mut self.holds_zero, true);
        }
        let count = self.buckets.len();
        let mut at = ((u128::from(fingerprint) * count as u128) >> 64) as usize;
        loop {
            match self.buckets[at] {
                0 => {
                    self.buckets[at] = fingerprint;
                    return true;
                }
                held if held == fingerprint => return false,
                _ => at = if at + 1 == count { 0 } else { at + 1 },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Bounds, World},
        *,
    };
    use std::{
        collections::BTreeSet,
        time::{Duration, Instant},
    };

    #[test]
    fn a_fingerprint_is_new_once() {
        let mut seen = Seen::with_room_for(200_000);
        let numbers: BTreeSet<u64> =
            (0..200_000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        assert!(numbers.iter().all(|number| seen.insert(*number)));
        assert!(!numbers.iter().any(|number| seen.insert(*number)));
    }

    /// Explores the model and keeps every world in memory; returns the counts of worlds and steps.
    fn exhaust_keeping_all(bounds: &Bounds, depth: usize) -> (usize, usize) {
        let first = World::new(bounds);
        let mut seen = BTreeSet::from([first.fingerprint()]);
        let (mut frontier, mut steps) = (vec![first], 0);
        for _ in 0..depth {
            let mut next = Vec::new();
            for world in frontier {
                for event in world.events(bounds) {
                    let mut after = world.clone();
                    steps += 1;
                    go(&mut after, event, bounds).unwrap();
                    if seen.insert(after.fingerprint()) {
                        next.push(after);
                    }
                }
            }
            frontier = next;
        }
        (seen.len(), steps)
    }

    #[test]
    fn worlds_that_are_made_again_are_those_that_would_have_been_kept() {
        for (what, bounds) in Bounds::profiles(1_000_000) {
            let bounds = Bounds { depth: 5, ..bounds };
            let report = exhaust(&bounds, None);
            assert_eq!((report.states, report.steps), exhaust_keeping_all(&bounds, 5), "{what}");
            assert_eq!((report.whole_depth, report.is_complete), (5, false), "{what}");
        }
    }

    #[test]
    fn a_budget_of_worlds_or_of_time_ends_it_and_it_says_how_far_it_came() {
        let bounds = Bounds { states: 1_000, ..Bounds::default() };
        let report = exhaust(&bounds, None);
        assert_eq!((report.states, report.is_complete), (1_000, false));
        assert!(report.whole_depth >= 1 && report.expanded > 10 && report.expanded < 1_000, "{report}");
        assert!(report.to_string().contains("every world of up to"), "{report}");
        let late = exhaust(&Bounds::default(), Some(Instant::now() + Duration::from_millis(50)));
        assert!(!late.is_complete && late.states < 1_000_000, "{late}");
    }
}
