//! Stories of faults that strike all members in one moment.

use super::{plots::somebody, times::FAULTS_END_MS};
use crate::{
    cluster::{Fault, Shape},
    dice::Dice,
};

/// An operator looks at the group after a while: where nobody leads, the disk with the greatest end is accepted, and the next one where
/// that does not help.
pub(super) fn failed_disks(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 2 + dice.below(3) as usize;
    let mut plot = Vec::new();
    let mut at = 1_500 + dice.below(1_000);
    while at + 4_000 < FAULTS_END_MS {
        if dice.chance(40) {
            plot.push((at - dice.below(600), Fault::Kill(somebody(dice))));
        }
        plot.push((at, Fault::SyncsFail));
        if dice.chance(30) {
            plot.push((at + dice.below(500), Fault::PowerLoss));
        }
        plot.push((at + 200 + dice.below(1_000), Fault::StartAll));
        for _ in 0..4 {
            plot.push((at + 1_500 + dice.below(2_000), Fault::AcceptDisk));
        }
        at += 3_500 + dice.below(1_500);
    }
    plot
}

/// All disks and the coordinator are put back to what they were at one moment: what had committed then is there, and the group goes on.
pub(super) fn restored(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    let mut at = 1_000 + dice.below(1_000);
    while at + 4_000 < FAULTS_END_MS {
        if dice.chance(40) {
            plot.push((at - dice.below(400), Fault::Kill(somebody(dice))));
        }
        plot.push((at, Fault::CopyAll));
        let back = at + dice.below(2_500);
        if dice.chance(50) {
            plot.push((at + dice.below(1_000), Fault::Kill(somebody(dice))));
            plot.push((at + 500 + dice.below(1_000), Fault::StartAll));
        }
        plot.push((back, Fault::RestoreAll));
        // The copy is put back once more.
        if dice.chance(20) {
            plot.push((back + 500 + dice.below(1_000), Fault::RestoreAll));
        }
        at = back + 2_500 + dice.below(1_000);
    }
    plot
}
