//! Clocks and threads that stand still, in processes that go on.

use super::{
    plots::{moments, somebody},
    times::FAULTS_END_MS,
};
use crate::{
    cluster::{Fault, Shape, Whom, threads::Thread},
    dice::Dice,
};

/// The member whose clock stands may not hear that another has been elected.
pub(super) fn clocks(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.drift_ppm = dice.below(50_000);
    // A client that wants a change soon leaves a member that cannot make it; one that reads stays.
    (shape.clients, shape.readers) = (6, 3);
    let mut plot = Vec::new();
    for at in moments(dice, 1_500) {
        let whom = somebody(dice);
        plot.push((at, Fault::StopClock(whom)));
        match dice.below(6) {
            0 => plot.push((at, Fault::Isolate(whom))),
            1 => plot.push((at, Fault::CutOneWay(dice.below(4) as usize, dice.below(4) as usize))),
            2 => plot.push((at + dice.below(500), Fault::Kill(somebody(dice)))),
            3 => plot.push((at, Fault::CutFromCoordinator(whom))),
            _ => {}
        }
        // A second one, so that claims are made by clocks that stood.
        if dice.chance(30) {
            plot.push((at + dice.below(500), Fault::StopClock(somebody(dice))));
        }
        let length = if dice.chance(50) { dice.below(600) } else { dice.below(4_000) };
        plot.push((at + length, Fault::ClocksGo { jumps: dice.chance(50) }));
        plot.push((at + length + dice.below(1_000), Fault::Heal));
        plot.push((at + length + dice.below(1_000), Fault::StartAll));
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}

pub(super) fn proved_reads(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.proves_reads = true;
    clocks(dice, shape)
}

/// Clocks stand, and members are stalled between the parts of a read: the state that it saw and the proof of its answer
/// may belong to two reigns of one member.
pub(super) fn answers(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.stalls_percent = 10;
    shape.proves_reads = dice.chance(50);
    (shape.clients, shape.readers) = (6, 3);
    let mut plot = Vec::new();
    for at in moments(dice, 500) {
        let whom = if dice.chance(70) { Whom::Active } else { somebody(dice) };
        match dice.below(5) {
            0 | 1 => plot.push((at, Fault::HandOver(Whom::Active))),
            2 => plot.push((at, Fault::Isolate(whom))),
            3 => plot.push((at, Fault::CutFromCoordinator(whom))),
            _ => {
                // The coordinator's last word is on its way when it cannot tell of another leader any more.
                let seat = Whom::Seat(dice.below(4) as usize);
                plot.push((at, Fault::Isolate(seat)));
                plot.push((at + dice.below(600), Fault::CutFromCoordinator(seat)));
            }
        }
        plot.push((at + 300 + dice.below(1_500), Fault::Heal));
        if dice.chance(30) {
            plot.push((at + dice.below(800), Fault::HandOver(Whom::Active)));
        }
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}

/// Some go on before they are found out, the others end with their processes.
pub(super) fn threads(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_800) {
        plot.push((at, Fault::Hang(somebody(dice), Thread::any(dice))));
        if dice.chance(30) {
            plot.push((at + dice.below(300), Fault::Hang(somebody(dice), Thread::any(dice))));
        }
        if dice.chance(30) {
            let whom = if dice.chance(50) { Whom::Active } else { somebody(dice) };
            plot.push((at + dice.below(1_500), Fault::Kill(whom)));
        }
        plot.push((at + 200 + dice.below(2_500), Fault::ThreadsGoOn));
        plot.push((at + 1_500 + dice.below(1_000), Fault::StartAll));
    }
    plot
}
