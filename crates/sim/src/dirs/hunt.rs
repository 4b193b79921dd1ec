//! Goes many ways at random, and looks for what a left-out rule breaks.

use super::{
    Bounds, Event, Planted,
    bounds::{A, AF, AX, AXF, BG, C, dir},
    event::Link,
    tree::{Call, Path},
};
use crate::{
    Dice,
    model::{Counterexample, Report, Search, go, shorten},
};
use dirlog::Broken;

/// One way at random, ordinary events preferred; then all faults end, and everyone must get an answer.
pub fn wander(seed: u64, bounds: &Bounds) -> Report<Event> {
    let mut dice = Dice::new(seed);
    let mut world = bounds.outset();
    let mut report = Report::default();
    let mut events = Vec::new();
    let patience = dice.below(97);
    let slow = [Link::Down(1), Link::Up(1), Link::Down(2), Link::Up(2), Link::DownFromDeposed(1)];
    let slow = dice.chance(60).then(|| *dice.pick(&slow));
    let slow_log = dice.chance(40).then(|| dice.below(u64::from(bounds.homes) + 1) as u8);
    let is_slow = |event: &Event| match event {
        Event::Deliver(link) => Some(*link) == slow,
        Event::Commit { group } => Some(*group) == slow_log,
        _ => false,
    };
    while events.len() < bounds.depth.min(400) {
        let mut all = bounds.events(&world);
        if dice.chance(95) && !all.iter().all(is_slow) {
            all.retain(|event| !is_slow(event));
        }
        let (ordinary, others): (Vec<Event>, Vec<Event>) =
            all.into_iter().partition(|event| event.is_ordinary());
        let prefers_others = ordinary.is_empty() || !dice.chance(patience);
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
            return report;
        }
    }
    events.push(Event::Rest);
    if let Err(rule) = go(&mut world, Event::Rest, bounds) {
        report.found = Some(Counterexample { rule, events });
    }
    report
}

/// Many ways at random.
pub fn wander_many(first_seed: u64, count: u64, bounds: &Bounds) -> Report<Event> {
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

/// A small world for these calls.
fn small(clients: Vec<Vec<Call>>) -> Bounds {
    let settings = Bounds::wide(1).settings;
    Bounds { homes: 1, clients, settings, slow_commits: true, depth: 200, ..Bounds::default() }
}

/// Bounds within which leaving out this rule shows.
pub fn bounds_for(rule: Broken) -> Bounds {
    let bounds = match rule {
        // Told at the root group that `/c` is there, a client must not find `/a/f` at its home any more.
        Broken::NewRootDoubtsNothing => Bounds {
            root_takeovers: 1,
            ..small(vec![vec![Call::RenameDir(A, C)], vec![Call::Stat(C), Call::Stat(AF)]])
        },
        Broken::RetryBeforeVisible => {
            Bounds { root_takeovers: 1, ..small(vec![vec![Call::RenameDir(A, C), Call::Stat(AF)]]) }
        }
        Broken::AskOverOnceAppended => Bounds {
            ticks: 6,
            losses: 1,
            disorders: 1,
            ..small(vec![vec![Call::Mkdir(AX)], vec![Call::Create(AX)]])
        },
        Broken::LapseEndsHolds => {
            Bounds { ticks: 5, losses: 1, ..small(vec![vec![Call::Mkdir(AX)], vec![Call::Create(AX)]]) }
        }
        // One home's hold is void when the other's comes.
        Broken::HoldsWithoutSessions => Bounds {
            homes: 2,
            home_takeovers: 1,
            ..small(vec![vec![Call::Move(AF, BG)], vec![Call::Delete(AF)]])
        },
        // The answer tells of two homes: there must have been a moment at which both facts were so.
        Broken::RefusesWithoutComparing => Bounds {
            homes: 2,
            home_takeovers: 1,
            ..small(vec![
                vec![Call::Move(Path(b"ag"), BG)],
                vec![Call::Create(Path(b"ag")), Call::Create(BG)],
            ])
        },
        Broken::FactsOutliveEntries => {
            Bounds { homes: 2, ..small(vec![vec![Call::Move(AF, BG)], vec![Call::Rmdir(Path(b"b"))]]) }
        }
        Broken::RefusalsHoldNothing => Bounds {
            disorders: 3,
            ..small(vec![vec![Call::Mkdir(AX)], vec![Call::Close(A)], vec![Call::Create(AX)]])
        },
        Broken::AbsentKeepTheirSession => {
            Bounds { ticks: 6, losses: 4, ..small(vec![vec![Call::RenameDir(A, C), Call::Stat(AF)]]) }
        }
        _ => Bounds::wide(2),
    };
    bounds.without(rule)
}

/// Likewise for a planted rule.
pub fn bounds_for_planted(rule: Planted) -> Bounds {
    let bounds = match rule {
        Planted::MarksOfTheReceiver => {
            let mut bounds = small(vec![
                vec![Call::RenameDir(AX, Path(b"ay"))],
                vec![Call::RenameDir(Path(b"ay"), Path(b"az")), Call::Stat(Path(b"ay"))],
            ]);
            bounds.outset.dirs.insert(4, dir(2, b'x'));
            bounds.without(Broken::AnyChainTaken)
        }
        Planted::NoHoldBelowDoubt => small(vec![
            vec![Call::Mkdir(AX)],
            vec![Call::Rmdir(AX)],
            vec![Call::Create(AXF), Call::Stat(AXF)],
        ]),
        Planted::RepeatsAreCarriedOut => Bounds { root_takeovers: 1, ..small(vec![vec![Call::Mkdir(AX)]]) },
        Planted::PassagesUnseen => Bounds::wide(1),
    };
    Bounds { planted: Some(rule), ..bounds }
}

/// The shortest story found in so many random ones.
pub fn hunt(bounds: &Bounds, walks: u64) -> Option<Counterexample<Event>> {
    wander_many(0, walks, bounds).found.map(|found| shorten(found, bounds))
}
