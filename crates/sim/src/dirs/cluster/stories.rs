//! The stories: what befalls a cluster, and when.

use super::{FAULTS_END, Fault, HOMES, Shape};
use crate::Dice;

/// One kind of run.
pub struct Story {
    pub name: &'static str,
    pub about: &'static str,
    pub plot: fn(&mut Dice, &mut Shape) -> Vec<(u64, Fault)>,
}

pub const STORIES: [Story; 10] = [
    Story {
        name: "dirs-calm",
        about: "three groups, one namespace: nothing fails but clocks and the order of messages",
        plot: |_, _| Vec::new(),
    },
    Story { name: "dirs-homes", about: "the actives of homes are killed", plot: homes },
    Story {
        name: "dirs-root",
        about: "the root group's active is killed, frozen, and cut off from its members while it goes on",
        plot: root,
    },
    Story {
        name: "dirs-together",
        about: "actives of homes and of the root group are killed in one moment",
        plot: together,
    },
    Story {
        name: "dirs-cuts",
        about: "groups are cut off from each other; messages are lost and come seconds late",
        plot: cuts,
    },
    Story {
        name: "dirs-frozen",
        about: "actives stand still for longer than leases, and go on",
        plot: frozen,
    },
    Story {
        name: "dirs-deposed",
        about: "actives of all groups are cut off from their members, go on, and are followed",
        plot: deposed,
    },
    Story {
        name: "dirs-handed-over",
        about: "actives of all groups hand over with a lease that is not over, and go on; others are killed",
        plot: handed_over,
    },
    Story {
        name: "dirs-proofs",
        about: "the root group's active has no lease of its own and must prove each grant; everything fails",
        plot: proofs,
    },
    Story {
        name: "dirs-batches",
        about: "messages are taken together that have come at different times; everything fails",
        plot: batches,
    },
];

/// The story of this name.
pub fn story(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}

fn moments(dice: &mut Dice, every_ms: u64) -> Vec<u64> {
    let mut at = 800_000;
    let mut all = Vec::new();
    loop {
        at += 1_000 * (every_ms / 2 + dice.below(every_ms));
        if at >= FAULTS_END {
            return all;
        }
        all.push(at);
    }
}

fn any_home(dice: &mut Dice) -> usize {
    1 + dice.below(u64::from(HOMES)) as usize
}

fn kill(dice: &mut Dice, group: usize) -> Fault {
    Fault::KillActive { group, back_after: 100_000 + dice.below(1_500_000) }
}

fn ended(mut plot: Vec<(u64, Fault)>) -> Vec<(u64, Fault)> {
    plot.push((FAULTS_END, Fault::Heal));
    plot
}

/// The root keeps so little of the log in memory that it has to read for groups which are behind.
fn small_window(dice: &mut Dice, shape: &mut Shape) {
    shape.settings.window_bytes = [Shape::default().settings.window_bytes, 0, 2_000][dice.below(3) as usize];
}

fn homes(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    small_window(dice, shape);
    let moments = moments(dice, 900);
    let strike = |at| {
        let home = any_home(dice);
        (at, kill(dice, home))
    };
    ended(moments.into_iter().map(strike).collect())
}

fn strike_root(dice: &mut Dice) -> Fault {
    match dice.below(4) {
        0 => Fault::FreezeActive { group: 0, for_us: dice.below(2_500_000) },
        1 => Fault::CutActiveFromMembers { group: 0 },
        _ => kill(dice, 0),
    }
}

fn root(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let moments = moments(dice, 1_200);
    ended(moments.into_iter().map(|at| (at, strike_root(dice))).collect())
}

fn together(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_800) {
        plot.push((at, strike_root(dice)));
        let home = any_home(dice);
        let later = dice.below(3_000);
        plot.push((at + later, kill(dice, home)));
        if dice.chance(30) {
            plot.push((at + dice.below(600_000), kill(dice, 3 - home)));
        }
    }
    ended(plot)
}

fn cuts(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    small_window(dice, shape);
    let mut plot = Vec::new();
    for at in moments(dice, 1_500) {
        let fault = match dice.below(3) {
            0 => Fault::Lose { percent: 1 + dice.below(60) },
            _ => Fault::CutGroups { one: 0, other: any_home(dice) },
        };
        plot.push((at, fault));
        plot.push((at + dice.below(2_500_000), Fault::Heal));
    }
    ended(plot)
}

fn frozen(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    small_window(dice, shape);
    let mut plot = Vec::new();
    for at in moments(dice, 1_000) {
        let group = dice.below(u64::from(HOMES) + 1) as usize;
        plot.push((at, Fault::FreezeActive { group, for_us: 100_000 + dice.below(2_500_000) }));
    }
    ended(plot)
}

fn deposed(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 900) {
        let group = dice.below(u64::from(HOMES) + 1) as usize;
        plot.push((at, Fault::CutActiveFromMembers { group }));
        if dice.chance(50) {
            let home = any_home(dice);
            plot.push((at + dice.below(900_000), kill(dice, home)));
        }
        if dice.chance(50) {
            plot.push((at + dice.below(900_000), strike_root(dice)));
        }
    }
    ended(plot)
}

fn handed_over(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 900) {
        let group = if dice.chance(50) { 0 } else { any_home(dice) };
        plot.push((at, Fault::HandOver { group }));
        if group == 0 {
            // A home hears the active of before, and not the next one.
            plot.push((at + 1, Fault::CutGroups { one: 0, other: any_home(dice) }));
            plot.push((at + 300_000 + dice.below(1_500_000), Fault::Heal));
        }
        if dice.chance(30) {
            plot.push((at + dice.below(900_000), strike_root(dice)));
        }
    }
    ended(plot)
}

fn batches(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = if dice.chance(50) { proofs(dice, shape) } else { handed_over(dice, shape) };
    shape.batch_percent = 20 + dice.below(60);
    plot.extend(cuts(dice, shape));
    plot
}

fn proofs(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.needs_proofs = true;
    let mut plot = Vec::new();
    plot.extend(homes(dice, shape));
    plot.extend(root(dice, shape));
    plot.extend(cuts(dice, shape));
    plot.extend(frozen(dice, shape));
    plot.extend(deposed(dice, shape));
    plot
}
