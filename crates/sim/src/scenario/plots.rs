//! The plots of the stories: one function each, which makes a list of faults with their times from a seed.

use super::times::FAULTS_END_MS;
use crate::{
    cluster::{Fault, Shape, Whom},
    dice::Dice,
};

/// Times between which something happens now and then.
pub(super) fn moments(dice: &mut Dice, every_ms: u64) -> Vec<u64> {
    let mut at = 800;
    let mut moments = Vec::new();
    loop {
        at += 1 + dice.below(2 * every_ms);
        if at >= FAULTS_END_MS {
            return moments;
        }
        moments.push(at);
    }
}

pub(super) fn somebody(dice: &mut Dice) -> Whom {
    match dice.below(3) {
        0 => Whom::Active,
        _ => Whom::Seat(dice.below(4) as usize),
    }
}

pub(super) fn kills(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 900) {
        plot.push((at, Fault::Kill(somebody(dice))));
        plot.push((at + dice.below(2_500), Fault::StartAll));
    }
    plot
}

/// Members keep their logs in the journal that ships: its recovery says what a crash has left.
pub(super) fn journals(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.plays_journals = true;
    let mut plot = Vec::new();
    for at in moments(dice, 700) {
        let after = at + dice.below(2_500);
        match dice.below(12) {
            10 => plot.push((at, Fault::SyncFails(somebody(dice)))),
            11 => {
                plot.push((at, Fault::SyncsFail));
                plot.push((after, Fault::AcceptDisk));
            }
            0..4 => {
                plot.push((at, Fault::Kill(somebody(dice))));
                plot.push((after, Fault::StartAll));
            }
            4..6 => {
                plot.push((at, Fault::KillAtStep(somebody(dice), dice.below(60))));
                plot.push((after, Fault::StartAll));
            }
            6..8 => plot.push((at, Fault::PowerLoss)),
            8 => {
                plot.push((at, Fault::Isolate(somebody(dice))));
                plot.push((after, Fault::Heal));
            }
            _ => plot.push((at, Fault::HandOver(Whom::Active))),
        }
    }
    plot
}

/// Servers with real journals, in which synced bytes rot: in one log, or in several in different places.
pub(super) fn rotten_journals(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    (shape.plays_journals, shape.rots) = (true, true);
    let mut plot = Vec::new();
    for at in moments(dice, 700) {
        let after = at + dice.below(2_000);
        match dice.below(12) {
            0..5 => plot.push((at, Fault::Rot(somebody(dice)))),
            5 => plot.push((at, Fault::SyncFails(somebody(dice)))),
            6 | 7 => {
                plot.push((at, Fault::Kill(somebody(dice))));
                plot.push((after, Fault::StartAll));
            }
            8 => {
                plot.push((at, Fault::KillAtStep(somebody(dice), dice.below(60))));
                plot.push((after, Fault::StartAll));
            }
            9 => plot.push((at, Fault::PowerLoss)),
            10 => {
                plot.push((at, Fault::Isolate(somebody(dice))));
                plot.push((after, Fault::Heal));
            }
            _ => plot.push((at, Fault::HandOver(Whom::Active))),
        }
    }
    plot
}

/// Images are written often and logs purged, so that members which were away, or begin empty, are renewed with an image.
pub(super) fn stored_images(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.plays_journals = true;
    (shape.members, shape.juniors) = (4, dice.below(2) as usize);
    let mut plot = Vec::new();
    // One store is lost, when the logs of the others do not begin at the beginning any more.
    let lost = Whom::Seat(dice.below(4) as usize);
    let at = 4_000 + dice.below(6_000);
    plot.extend([
        (at, Fault::Kill(lost)),
        (at + 1, Fault::Wipe(lost)),
        (at + dice.below(500), Fault::StartAll),
    ]);
    for at in moments(dice, 250) {
        let after = at + dice.below(2_500);
        match dice.below(12) {
            0..7 => plot.push((at, Fault::Purge(somebody(dice)))),
            7 | 8 => {
                plot.push((at, Fault::Kill(somebody(dice))));
                plot.push((after, Fault::StartAll));
            }
            9 => {
                plot.push((at, Fault::KillAtStep(somebody(dice), dice.below(60))));
                plot.push((after, Fault::StartAll));
            }
            10 => {
                plot.push((at, Fault::Isolate(Whom::Standby(dice.below(3) as usize))));
                plot.push((after, Fault::Heal));
            }
            _ if dice.chance(40) => plot.push((at, Fault::SyncFails(somebody(dice)))),
            _ => plot.push((at, Fault::PowerLoss)),
        }
    }
    plot
}

pub(super) fn restarts(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 300) {
        plot.push((at, Fault::Kill(somebody(dice))));
        plot.push((at + dice.below(150), Fault::StartAll));
    }
    plot
}

pub(super) fn takeover_steps(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 2_500) {
        plot.push((at, Fault::Kill(Whom::Active)));
        for seat in 0..shape.members {
            if dice.chance(70) {
                plot.push((at + 1, Fault::KillAtStep(Whom::Seat(seat), dice.below(90))));
            }
        }
        plot.push((at + 1_500 + dice.below(2_000), Fault::StartAll));
    }
    plot
}

pub(super) fn active_steps(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_500) {
        if dice.chance(50) {
            let seat = dice.below(shape.members as u64) as usize;
            plot.push((at, Fault::Kill(Whom::Standby(seat))));
        }
        plot.push((at + dice.below(400), Fault::KillAtStep(Whom::Active, dice.below(60))));
        plot.push((at + 500 + dice.below(1_500), Fault::StartAll));
    }
    plot
}

pub(super) fn power(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 3_000) {
        plot.push((at, Fault::PowerLoss));
        if dice.chance(50) {
            plot.push((at + dice.below(2_000), Fault::Kill(somebody(dice))));
            plot.push((at + 2_500, Fault::StartAll));
        }
    }
    plot
}

pub(super) fn cuts(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_000) {
        let (one, other) = (dice.below(4) as usize, dice.below(4) as usize);
        plot.push((
            at,
            match dice.below(6) {
                0 => Fault::Isolate(Whom::Active),
                1 => Fault::Isolate(Whom::Standby(one)),
                2 => Fault::CutOneWay(one, other),
                3 => Fault::CutLink(one, other),
                4 => Fault::CutFromCoordinator(somebody(dice)),
                _ => Fault::CutOneWay(other, one),
            },
        ));
        if dice.chance(60) {
            plot.push((at + dice.below(2_500), Fault::Heal));
        }
    }
    plot
}

pub(super) fn pauses(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_500) {
        plot.push((at, Fault::Pause(somebody(dice))));
        let length = if dice.chance(50) { dice.below(600) } else { dice.below(5_000) };
        plot.push((at + length, Fault::ResumeAll));
    }
    plot
}

pub(super) fn clocks(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.drift_ppm = 50_000;
    let mut plot = pauses(dice, shape);
    plot.extend(cuts(dice, shape));
    for at in moments(dice, 1_000) {
        let by_ms = dice.below(7_200_000) as i64 - 3_600_000;
        plot.push((at, Fault::JumpWall(somebody(dice), by_ms)));
    }
    plot
}

pub(super) fn disks(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    // One store is lost: of two complete ones, both of which are, nobody may follow without an operator.
    let mut is_lost = false;
    for at in moments(dice, 1_500) {
        let whom = somebody(dice);
        plot.push((
            at,
            match dice.below(3) {
                0 if !is_lost => {
                    is_lost = true;
                    Fault::SyncFails(whom)
                }
                0 | 1 => Fault::SlowDisk(whom, 4_000_000),
                _ => Fault::SlowDisk(whom, 400_000),
            },
        ));
        if dice.chance(60) {
            plot.push((at + dice.below(3_000), Fault::QuickDisks));
        }
    }
    plot
}

pub(super) fn renewing(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 4;
    shape.juniors = 1 + dice.below(2) as usize;
    let mut plot = Vec::new();
    for at in moments(dice, 500) {
        plot.push((
            at,
            match dice.below(4) {
                0 => Fault::Purge(Whom::Active),
                1 => Fault::Purge(Whom::Standby(dice.below(3) as usize)),
                2 => Fault::KillAtStep(Whom::Standby(dice.below(3) as usize), dice.below(60)),
                _ => Fault::Kill(somebody(dice)),
            },
        ));
        plot.push((at + dice.below(1_000), Fault::StartAll));
    }
    plot
}

pub(super) fn handovers(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 700) {
        plot.push((at, Fault::HandOver(Whom::Active)));
        if dice.chance(30) {
            plot.push((at + dice.below(100), Fault::Kill(somebody(dice))));
            plot.push((at + 300 + dice.below(500), Fault::StartAll));
        }
    }
    plot
}

pub(super) fn members(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 500) {
        let without = dice.chance(60).then(|| dice.below(4) as usize);
        plot.push((at, Fault::Reconfigure { without, in_sync_min: 1 + dice.below(3) as u32 }));
        match dice.below(8) {
            0 => plot.push((at + dice.below(100), Fault::HandOver(Whom::Active))),
            1 | 2 => plot.push((at + dice.below(100), Fault::Kill(somebody(dice)))),
            3 => plot.push((at, Fault::KillAtStep(Whom::Active, dice.below(30)))),
            4 => plot.push((at + dice.below(50), Fault::CutFromCoordinator(Whom::Active))),
            _ => {}
        }
        plot.push((at + 300 + dice.below(900), Fault::StartAll));
        plot.push((at + 300 + dice.below(900), Fault::Heal));
    }
    plot
}

pub(super) fn old_actives(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.drift_ppm = dice.below(50_000);
    let mut plot = Vec::new();
    let mut at = 1_500;
    while at + 3_000 < FAULTS_END_MS {
        if dice.chance(50) {
            // Everybody hears at once that the lock is gone, and it is not.
            plot.push((at, Fault::Pause(Whom::Active)));
            plot.push((at + dice.below(50), Fault::LockAlarm));
            plot.push((at + dice.below(1_000), Fault::ResumeAll));
        } else {
            // It takes the others out of the in-sync set, and then cannot hear that one of them was elected.
            plot.push((at, Fault::Isolate(Whom::Active)));
            plot.push((at + 250 + dice.below(150), Fault::CutFromCoordinator(Whom::Active)));
            plot.push((at + 1_500 + dice.below(1_000), Fault::Heal));
        }
        at += 2_500 + dice.below(1_000);
    }
    plot
}

/// An active hears nothing from the others, and holds what clients ask of it. Another one leads, for a while, and then it again.
pub(super) fn held_calls(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 3;
    shape.holds_calls = true;
    shape.clients = 8;
    let mut plot = Vec::new();
    let mut at = 1_200;
    while at + 4_500 < FAULTS_END_MS {
        let first = dice.below(3) as usize;
        let whom = if dice.chance(70) { Whom::Active } else { Whom::Seat(first) };
        plot.push((
            at,
            match dice.below(4) {
                0 => Fault::Pause(whom),
                1 => Fault::CutOneWay(first, dice.below(3) as usize),
                _ => Fault::Isolate(whom),
            },
        ));
        at += 300 + dice.below(1_500);
        plot.push((at, Fault::Heal));
        plot.push((at, Fault::ResumeAll));
        // The lead goes from one to the next, and comes back to those that hold something.
        for _ in 0..1 + dice.below(4) {
            at += 100 + dice.below(600);
            plot.push((
                at,
                match dice.below(5) {
                    0 => Fault::Isolate(Whom::Active),
                    1 => Fault::Kill(Whom::Active),
                    _ => Fault::HandOver(Whom::Active),
                },
            ));
            plot.push((at + 200 + dice.below(800), Fault::Heal));
            plot.push((at + 300 + dice.below(800), Fault::StartAll));
        }
        at += 500 + dice.below(1_000);
    }
    plot.retain(|(at, _)| *at < FAULTS_END_MS);
    plot
}

pub(super) fn coordinator(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 2_000) {
        plot.push((
            at,
            match dice.below(3) {
                0 => Fault::CoordinatorDown,
                1 => Fault::CutFromCoordinator(Whom::Active),
                _ => Fault::LockAlarm,
            },
        ));
        plot.push((at + dice.below(5_000), Fault::Heal));
    }
    plot.extend(kills(dice, shape));
    plot
}

/// An operator looks at the group now and then.
pub(super) fn backups(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = kills(dice, shape);
    let mut at = 1_000;
    while at < FAULTS_END_MS - 3_000 {
        plot.push((at, Fault::BackUpCoordinator));
        let restored = at + 500 + dice.below(3_000);
        if dice.chance(50) {
            plot.push((restored, Fault::PowerLoss));
        }
        plot.push((restored + 1, Fault::RestoreCoordinator));
        at = restored + 2_000 + dice.below(3_000);
    }
    plot.extend((0..30).map(|number| (4_000 + 1_000 * number, Fault::Repair)));
    plot
}

/// The copy is older than what the view learns of commits; the others' disks are sound.
pub(super) fn copies(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let seat = dice.below(shape.members as u64) as usize;
    let mut plot = Vec::new();
    let mut at = 1_000 + dice.below(2_000);
    while at < FAULTS_END_MS - 4_000 {
        plot.push((at, Fault::CopyStore(seat)));
        let restored = at + 2_500 + dice.below(2_000);
        plot.push((restored, Fault::RestoreStore(seat)));
        if dice.chance(70) {
            plot.push((restored + dice.below(300), Fault::Kill(Whom::Active)));
        }
        plot.push((restored + dice.below(400), Fault::Start(seat)));
        plot.push((restored + 1_500 + dice.below(500), Fault::StartAll));
        at = restored + 2_000;
    }
    plot
}

pub(super) fn few(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 3;
    // A client that wants a change waits for it. Under load the last changes leave hardly anything that is not in doubt, so
    // there is little of it in half of the runs.
    shape.clients = 8;
    shape.readers = 4;
    shape.think_ms = if dice.chance(50) { 30 } else { 300 };
    let mut plot = Vec::new();
    let mut at = 1_500;
    while at + 4_500 < FAULTS_END_MS {
        let left = dice.below(3) as usize;
        for seat in (0..3).filter(|seat| *seat != left) {
            plot.push((at + dice.below(10), Fault::Kill(Whom::Seat(seat))));
        }
        match dice.below(3) {
            // The one that is left is killed as well; another comes back alone, which may have been out for a while.
            0 => {
                plot.push((at + dice.below(400), Fault::Kill(Whom::Seat(left))));
                plot.push((at + 400 + dice.below(200), Fault::Start(dice.below(3) as usize)));
                plot.push((at + 4_000, Fault::StartAll));
                at += 2_500;
            }
            _ => plot.push((at + 1_000 + dice.below(1_000), Fault::StartAll)),
        }
        at += 2_500 + dice.below(500);
    }
    plot
}

pub(super) fn unclean(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 3 + dice.below(2) as usize;
    let count = shape.members as u64;
    let mut plot = Vec::new();
    let mut at = 1_200;
    while at + 3_500 < FAULTS_END_MS {
        // One is cut off, or away, for so long that it is taken out, and misses something.
        let behind = dice.below(count) as usize;
        plot.push((
            at,
            if dice.chance(50) {
                Fault::Isolate(Whom::Seat(behind))
            } else {
                Fault::Kill(Whom::Seat(behind))
            },
        ));
        at += 300 + dice.below(900);
        for seat in (0..shape.members).filter(|seat| *seat != behind) {
            plot.push((at + dice.below(5), Fault::Kill(Whom::Seat(seat))));
        }
        plot.push((at + 10, Fault::Heal));
        plot.push((at + 20, Fault::Start(behind)));
        for _ in 0..3 {
            at += 500;
            plot.push((at + dice.below(200), Fault::UncleanElect(behind)));
        }
        if dice.chance(40) {
            plot.push((at + dice.below(600), Fault::KillAtStep(Whom::Seat(behind), dice.below(40))));
        }
        if dice.chance(50) {
            // The others come back one by one, or with images of what was given up.
            let first = dice.below(count) as usize;
            plot.push((at + 200 + dice.below(400), Fault::Start(first)));
            plot.push((at + 400 + dice.below(400), Fault::Purge(Whom::Active)));
        }
        plot.push((at + 700 + dice.below(600), Fault::StartAll));
        at += 1_500 + dice.below(1_000);
    }
    plot
}

pub(super) fn lossy(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = vec![(
        0,
        Fault::Lossy {
            loss_percent: dice.below(15),
            copy_percent: dice.below(15),
            delay_us_max: 200 + dice.below(20_000),
        },
    )];
    if dice.chance(50) {
        plot.extend(kills(dice, shape));
    }
    plot
}

pub(super) fn everything(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.drift_ppm = dice.below(50_000);
    let all =
        [kills, takeover_steps, power, cuts, pauses, disks, handovers, coordinator, lossy, active_steps];
    let mut plot = Vec::new();
    for plots in all {
        if dice.chance(35) {
            plot.extend(plots(dice, shape));
        }
    }
    for at in moments(dice, 3_000) {
        if dice.chance(50) {
            plot.push((at, Fault::Purge(somebody(dice))));
        }
    }
    shape.holds_calls = dice.chance(50);
    plot
}

/// Clocks and links are sound. With a minimum of one, a member that is alone commits. Then the coordinator is put back, all members
/// are killed, and one of them comes back alone for a while: it may lack entries that another one holds.
pub(super) fn lone_starts(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 3;
    let count = shape.members as u64;
    let mut plot = vec![(500, Fault::Reconfigure { without: None, in_sync_min: 1 })];
    let mut at = 1_500;
    while at + 5_000 < FAULTS_END_MS {
        plot.push((at, Fault::BackUpCoordinator));
        let first = dice.below(count) as usize;
        plot.push((at + 100 + dice.below(200), Fault::Kill(Whom::Seat(first))));
        let off = at + 900 + dice.below(600);
        for seat in 0..shape.members {
            plot.push((off, Fault::Kill(Whom::Seat(seat))));
        }
        if dice.chance(70) {
            plot.push((off + 10, Fault::RestoreCoordinator));
        }
        plot.push((off + 20, Fault::Start(first)));
        plot.push((off + 1_200 + dice.below(1_000), Fault::StartAll));
        at = off + 3_500;
    }
    plot.extend((0..30).map(|number| (4_000 + 1_000 * number, Fault::Repair)));
    plot
}

/// The stores of all but one are put back to what they were at one moment, and the one that is sound comes back last.
pub(super) fn old_copies(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 3;
    let sound = dice.below(3) as usize;
    let mut plot = Vec::new();
    let mut at = 1_000 + dice.below(1_000);
    while at + 6_500 < FAULTS_END_MS {
        let restored = at + 2_500 + dice.below(1_500);
        for seat in (0..3).filter(|seat| *seat != sound) {
            plot.push((at, Fault::CopyStore(seat)));
            plot.push((restored, Fault::RestoreStore(seat)));
        }
        plot.push((restored, Fault::Kill(Whom::Seat(sound))));
        for seat in (0..3).filter(|seat| *seat != sound) {
            plot.push((restored + 10 + dice.below(400), Fault::Start(seat)));
        }
        plot.push((restored + 1_500 + dice.below(1_000), Fault::StartAll));
        at = restored + 3_000;
    }
    plot
}

/// Power goes everywhere, and the ends of all logs but one rot.
pub(super) fn rot(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.members = 2 + dice.below(3) as usize;
    let count = shape.members as u64;
    let mut plot = Vec::new();
    let mut at = 1_500 + dice.below(1_000);
    while at + 3_500 < FAULTS_END_MS {
        if dice.chance(50) {
            plot.push((at - 400, Fault::Kill(Whom::Seat(dice.below(count) as usize))));
        }
        plot.push((at, Fault::RotAfterPowerLoss { entries_max: 1 + dice.below(4) }));
        for seat in 0..shape.members {
            plot.push((at + 10 + dice.below(1_500), Fault::Start(seat)));
        }
        at += 2_500 + dice.below(1_500);
    }
    plot
}
