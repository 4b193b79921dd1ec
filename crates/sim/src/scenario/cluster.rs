//! What is done to clusters: one function a story, each a list of faults with their times, made from a seed.
//!
//! Every story ends alike: all faults are over, and the cluster must come to itself: one member serves, all are
//! in sync with equal states, and every client has its answer.

use crate::{
    cluster::{Fault, Shape, Whom, World},
    dice::Dice,
    truth::Broken,
};

/// When the faults end and the cluster has to come to itself.
const FAULTS_END_MS: u64 = 12_000;
const ALL_ENDS_MS: u64 = 45_000;
/// Of every group in the end.
const IN_SYNC_MIN: u32 = 2;

pub struct Story {
    pub name: &'static str,
    /// What it shows, with the number of the fault catalogue where there is one.
    pub about: &'static str,
    plot: fn(&mut Dice, &mut Shape) -> Vec<(u64, Fault)>,
}

pub const STORIES: &[Story] = &[
    Story { name: "calm", about: "nothing fails", plot: |_, _| Vec::new() },
    Story { name: "kills", about: "processes are killed and come back, in any order", plot: kills },
    Story {
        name: "restarts",
        about: "processes are back before anybody has heard that they were gone",
        plot: restarts,
    },
    Story {
        name: "takeover-steps",
        about: "the active is killed, and the new one at some step of its takeover, and the next",
        plot: takeover_steps,
    },
    Story {
        name: "active-steps",
        about: "the active is killed at some step of an append or of a change of the in-sync set",
        plot: active_steps,
    },
    Story {
        name: "power",
        about: "all members lose power at once, what was not synced is gone",
        plot: power,
    },
    Story {
        name: "cuts",
        about: "links are cut, one way or both, and the coordinator from some",
        plot: cuts,
    },
    Story { name: "pauses", about: "processes are stopped and go on with full sockets", plot: pauses },
    Story { name: "clocks", about: "clocks drift by 5 %, wall clocks jump", plot: clocks },
    Story { name: "disks", about: "fsyncs fail or take seconds", plot: disks },
    Story {
        name: "renewing",
        about: "empty members are renewed under load, cut at every piece",
        plot: renewing,
    },
    Story {
        name: "handovers",
        about: "the lead is handed over, and members restarted one by one",
        plot: handovers,
    },
    Story {
        name: "old-actives",
        about: "an active that is stopped or alone does not hear that it is none any more",
        plot: old_actives,
    },
    Story {
        name: "coordinator",
        about: "the coordinator is away, members and its answers get lost",
        plot: coordinator,
    },
    Story {
        name: "members",
        about: "members are taken out and in again, and the minimum goes up and down, while others are killed",
        plot: members,
    },
    Story {
        name: "unclean",
        about: "everyone complete is gone, and an operator lets another lead: what that one lacks is lost, and nothing else",
        plot: unclean,
    },
    Story {
        name: "few",
        about: "too few are left, and one of them takes over: it answers what is certain",
        plot: few,
    },
    Story {
        name: "backups",
        about: "the coordinator is put back to an older state, with the members running or not",
        plot: backups,
    },
    Story {
        name: "copies",
        about: "a member's disk is put back to what it was some seconds ago",
        plot: copies,
    },
    Story { name: "lossy", about: "packets are lost, doubled, late and overtake each other", plot: lossy },
    Story { name: "everything", about: "all of this together", plot: everything },
];

pub fn story(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}

/// What a run came to: equal for equal seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub answers: u64,
    pub writes: u64,
    /// Reads answered below the minimum.
    pub certain: u64,
    /// Unclean elections, and the committed entries that they gave up.
    pub unclean: u64,
    pub given_up: u64,
    pub committed: u64,
    pub epochs: u64,
    pub longest_gap_ms: u64,
    pub slowest_ms: u64,
    pub transcript: Vec<String>,
}

/// Why a run failed, and all that led to it.
#[derive(Debug)]
pub struct Failure {
    pub rule: Broken,
    pub transcript: Vec<String>,
}

pub fn run(story: &Story, seed: u64) -> Result<Outcome, Box<Failure>> {
    run_with(story, seed, |_| ())
}

/// `change` may plant something.
pub fn run_with(story: &Story, seed: u64, change: impl FnOnce(&mut Shape)) -> Result<Outcome, Box<Failure>> {
    let mut dice = Dice::new(seed ^ 0x00c1_07e2);
    let mut shape = Shape { members: 3 + dice.below(2) as usize, ..Shape::default() };
    let plot = (story.plot)(&mut dice, &mut shape);
    change(&mut shape);
    let mut world = World::new(seed, &shape);
    for (ms, fault) in plot {
        world.at_ms(ms, crate::cluster::happening::Happening::Fault(fault));
    }
    match finish(&mut world) {
        Ok(()) => {
            let observer = &world.observer;
            Ok(Outcome {
                answers: observer.answers,
                writes: observer.writes_answered,
                certain: observer.certain,
                unclean: observer.unclean,
                given_up: observer.lost_points.len() as u64,
                committed: observer.truth.last().0,
                epochs: world.keeper.view.epoch.0,
                longest_gap_ms: observer.longest_gap_ms,
                slowest_ms: observer.slowest_ms,
                transcript: std::mem::take(&mut world.observer.transcript),
            })
        }
        Err(rule) => {
            Err(Box::new(Failure { rule, transcript: std::mem::take(&mut world.observer.transcript) }))
        }
    }
}

fn finish(world: &mut World) -> Result<(), Broken> {
    world.run_until_ms(FAULTS_END_MS)?;
    for fault in [Fault::Heal, Fault::ResumeAll, Fault::QuickDisks, Fault::StartAll] {
        world.at_ms(FAULTS_END_MS, crate::cluster::happening::Happening::Fault(fault));
    }
    let mut now_ms = FAULTS_END_MS;
    while now_ms < ALL_ENDS_MS {
        now_ms += 500;
        world.run_until_ms(now_ms)?;
        let view = &world.keeper.view;
        if view.members.len() < world.servers.len() || view.in_sync_min != IN_SYNC_MIN {
            // The order is lost with an active that is deposed.
            let fault = Fault::Reconfigure { without: None, in_sync_min: IN_SYNC_MIN };
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(fault));
        }
        // A while of service without faults, then nothing new begins.
        world.is_closing = now_ms >= FAULTS_END_MS + 3_000;
        if world.is_closing && is_whole(world).is_ok() {
            return Ok(());
        }
    }
    is_whole(world)
}

/// Whether the cluster has come to itself.
fn is_whole(world: &World) -> Result<(), Broken> {
    let serving: Vec<usize> =
        (0..world.servers.len()).filter(|seat| world.servers[*seat].is_serving()).collect();
    let [active] = serving[..] else {
        let roles: Vec<_> = world.servers.iter().map(|server| server.role().cloned()).collect();
        return Err(format!("a group whose faults are over serves: {roles:?}, {:?}", world.keeper.view));
    };
    if let Some(client) = world.clients.iter().find(|client| client.current.is_some()) {
        return Err(format!("every call is answered in the end: {:?} is not", client.current));
    }
    let view = &world.keeper.view;
    if view.in_sync.len() < world.servers.len() || view.in_sync_min != IN_SYNC_MIN {
        let server = &world.servers[active];
        let status = server.host.member().status(server.clock.moment(world.now_ns));
        return Err(format!(
            "all members are in sync in the end: {:?}; the active sees {:?}",
            world.keeper.view.in_sync, status.peers
        ));
    }
    let (applied, digest) =
        (world.servers[active].namespace.applied(), world.servers[active].namespace.digest());
    for server in &world.servers {
        if (server.namespace.applied(), server.namespace.digest()) != (applied, digest) {
            return Err(format!(
                "all members hold the same in the end: member {} has applied {} of {applied}",
                server.host.store.member,
                server.namespace.applied()
            ));
        }
    }
    Ok(())
}

/// Times between which something happens now and then.
fn moments(dice: &mut Dice, every_ms: u64) -> Vec<u64> {
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

fn somebody(dice: &mut Dice) -> Whom {
    match dice.below(3) {
        0 => Whom::Active,
        _ => Whom::Seat(dice.below(4) as usize),
    }
}

fn kills(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 900) {
        plot.push((at, Fault::Kill(somebody(dice))));
        plot.push((at + dice.below(2_500), Fault::StartAll));
    }
    plot
}

fn restarts(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 300) {
        plot.push((at, Fault::Kill(somebody(dice))));
        plot.push((at + dice.below(150), Fault::StartAll));
    }
    plot
}

fn takeover_steps(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn active_steps(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn power(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
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

fn cuts(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
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

fn pauses(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
    let mut plot = Vec::new();
    for at in moments(dice, 1_500) {
        plot.push((at, Fault::Pause(somebody(dice))));
        let length = if dice.chance(50) { dice.below(600) } else { dice.below(5_000) };
        plot.push((at + length, Fault::ResumeAll));
    }
    plot
}

fn clocks(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
    shape.drift_ppm = 50_000;
    let mut plot = pauses(dice, shape);
    plot.extend(cuts(dice, shape));
    for at in moments(dice, 1_000) {
        let by_ms = dice.below(7_200_000) as i64 - 3_600_000;
        plot.push((at, Fault::JumpWall(somebody(dice), by_ms)));
    }
    plot
}

fn disks(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
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

fn renewing(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn handovers(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
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

fn members(dice: &mut Dice, _: &mut Shape) -> Vec<(u64, Fault)> {
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

fn old_actives(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn coordinator(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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
fn backups(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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
fn copies(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn few(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn unclean(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn lossy(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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

fn everything(dice: &mut Dice, shape: &mut Shape) -> Vec<(u64, Fault)> {
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
    plot
}
