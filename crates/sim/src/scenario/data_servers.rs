//! Stories of data servers: files have blocks, and a deleted replica does not come back.

use super::{
    plots::{moments, somebody},
    times::FAULTS_END_MS,
};
use crate::{
    cluster::{DataFault, Fault, OrderOfOperator, Shape, Whom},
    dice::Dice,
};

fn shape_of(dice: &mut Dice, shape: &mut Shape) {
    shape.data_servers = 3 + dice.below(2) as usize;
    (shape.clients, shape.readers) = (5, 1);
    shape.think_ms = 60;
}

/// Something happens to a data server, or on the way to it.
fn data_fault(dice: &mut Dice) -> DataFault {
    let server = dice.below(4) as usize;
    match dice.below(10) {
        0..3 => DataFault::Kill(server),
        3 => DataFault::Pause(server),
        4..8 => DataFault::Cut(server, dice.below(4) as usize),
        _ => DataFault::Poor {
            loss_percent: dice.below(15),
            late_percent: dice.below(40),
            late_ms_max: 1 + dice.below(2_500),
        },
    }
}

/// Something happens to members, so that another one takes over.
fn takeover(dice: &mut Dice, plot: &mut Vec<(u64, Fault)>, at: u64) {
    let whom = if dice.chance(70) { Whom::Active } else { somebody(dice) };
    let after = at + dice.below(2_000);
    match dice.below(8) {
        0..3 => plot.push((at, Fault::HandOver(Whom::Active))),
        3 | 4 => {
            plot.push((at, Fault::Kill(whom)));
            plot.push((after, Fault::StartAll));
        }
        5 => {
            plot.push((at, Fault::Isolate(whom)));
            plot.push((after, Fault::Heal));
        }
        6 => {
            plot.push((at, Fault::Pause(whom)));
            plot.push((after, Fault::ResumeAll));
        }
        _ => plot.push((at, Fault::PowerLoss)),
    }
}

pub(super) fn come_and_go(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape_of(dice, shape);
    let mut plot = Vec::new();
    for at in moments(dice, 400) {
        plot.push((at, Fault::Data(data_fault(dice))));
        if dice.chance(40) {
            let server = dice.below(4) as usize;
            plot.push((at + dice.below(1_500), Fault::Data(DataFault::Start(server))));
        }
        if dice.chance(20) {
            plot.push((at + dice.below(2_000), Fault::Data(DataFault::Heal)));
        }
    }
    for at in moments(dice, 700) {
        // Orders and news are under way when another member takes over.
        if dice.chance(60) {
            let late_percent = 30 + dice.below(60);
            let poor = DataFault::Poor { loss_percent: 0, late_percent, late_ms_max: 100 + dice.below(900) };
            plot.push((at.saturating_sub(150), Fault::Data(poor)));
        }
        takeover(dice, &mut plot, at);
    }
    for at in moments(dice, 4_000) {
        plot.push((at, Fault::AllowDeletions));
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}

/// Servers leave service for good or for a while, in order or in the midst of faults, and come back empty or as they were.
pub(super) fn ordered(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = if dice.chance(30) { unclean(dice, shape) } else { come_and_go(dice, shape) };
    // Half of the stories have hardly any fault, so that servers come to their end of leaving.
    if dice.chance(50) {
        plot.retain(|_| dice.chance(25));
    }
    shape.data_servers = 4 + dice.below(3) as usize;
    for at in moments(dice, 1_200) {
        let server = dice.below(6) as usize;
        let order = match dice.below(10) {
            0..5 => OrderOfOperator::Leave(server),
            5..8 => {
                let for_ms = dice.chance(50).then(|| 200 + dice.below(3_000));
                OrderOfOperator::Rest { server, for_ms }
            }
            _ => OrderOfOperator::Return(server),
        };
        let returns = at + 300 + dice.below(4_000);
        plot.push((at, Fault::Order(order)));
        plot.push((returns, Fault::Order(OrderOfOperator::Return(server))));
        if dice.chance(60) {
            plot.push((returns + dice.below(400), Fault::Data(DataFault::Start(server))));
        }
    }
    for at in moments(dice, 300) {
        plot.push((at, Fault::Order(OrderOfOperator::SwitchOff)));
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}

/// Those who are complete are gone for a while, and another member leads in the end of it.
pub(super) fn unclean(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = super::plots::unclean(dice, shape);
    shape_of(dice, shape);
    for at in moments(dice, 900) {
        plot.push((at, Fault::Data(data_fault(dice))));
        plot.push((at + dice.below(1_500), Fault::Data(DataFault::Heal)));
    }
    for at in moments(dice, 3_000) {
        plot.push((at, Fault::AllowDeletions));
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}
