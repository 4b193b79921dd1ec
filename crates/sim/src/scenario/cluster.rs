//! The stories of clusters: what each is called, and how a run of it is judged.
//!
//! Every story ends alike: all faults are over, and the cluster must come to itself: one member serves, all are
//! in sync with equal states, and every client has its answer.

use super::{all_at_once, data_servers, plots, standing, times::FAULTS_END_MS};
use crate::{
    cluster::{Fault, OrderOfOperator, Shape, World, data::Counts},
    dice::Dice,
    truth::Broken,
};

const ALL_ENDS_MS: u64 = 45_000;
/// The minimum in sync of every group in the end.
const IN_SYNC_MIN: u32 = 2;

pub struct Story {
    pub name: &'static str,
    /// The subject of the story, with the number of the fault catalogue if it has one.
    pub about: &'static str,
    plot: fn(&mut Dice, &mut Shape) -> Vec<(u64, Fault)>,
}

pub const STORIES: &[Story] = &[
    Story { name: "calm", about: "nothing fails", plot: |_, _| Vec::new() },
    Story { name: "kills", about: "processes are killed and come back, in any order", plot: plots::kills },
    Story {
        name: "restarts",
        about: "processes are back before anybody has heard that they were gone",
        plot: plots::restarts,
    },
    Story {
        name: "takeover-steps",
        about: "the active is killed, and the new one at some step of its takeover, and the next",
        plot: plots::takeover_steps,
    },
    Story {
        name: "active-steps",
        about: "the active is killed at some step of an append or of a change of the in-sync set",
        plot: plots::active_steps,
    },
    Story {
        name: "power",
        about: "all members lose power at once, what was not synced is gone",
        plot: plots::power,
    },
    Story {
        name: "cuts",
        about: "links are cut, one way or both, and the coordinator from some",
        plot: plots::cuts,
    },
    Story { name: "pauses", about: "processes are stopped and go on with full sockets", plot: plots::pauses },
    Story { name: "clocks", about: "clocks drift by 5 %, wall clocks jump", plot: plots::clocks },
    Story {
        name: "standing-clocks",
        about: "clocks stand still for a while: reads may be old, and nothing else is wrong",
        plot: standing::clocks,
    },
    Story {
        name: "proved-reads",
        about: "the same, and the coordinator is asked for each read: none is old",
        plot: standing::proved_reads,
    },
    Story {
        name: "stalled-answers",
        about: "the threads of reads and answers are late by a second, and meanwhile another member leads, and this one again",
        plot: standing::answers,
    },
    Story {
        name: "hanging-threads",
        about: "a thread completes nothing for a while, and processes end where it hangs",
        plot: standing::threads,
    },
    Story {
        name: "held-calls",
        about: "members hold the calls that they cannot answer, and lead again while clients have repeated them elsewhere",
        plot: plots::held_calls,
    },
    Story { name: "disks", about: "fsyncs fail or take seconds", plot: plots::disks },
    Story {
        name: "renewing",
        about: "empty members are renewed under load, cut at every piece",
        plot: plots::renewing,
    },
    Story {
        name: "handovers",
        about: "the lead is handed over, and members restarted one by one",
        plot: plots::handovers,
    },
    Story {
        name: "old-actives",
        about: "an active that is stopped or alone does not hear that it is none any more",
        plot: plots::old_actives,
    },
    Story {
        name: "coordinator",
        about: "the coordinator is away, members and its answers get lost",
        plot: plots::coordinator,
    },
    Story {
        name: "members",
        about: "members are taken out and in again, and the minimum goes up and down, while others are killed",
        plot: plots::members,
    },
    Story {
        name: "unclean",
        about: "everyone complete is gone, and an operator lets another lead: what that one lacks is lost, and nothing else",
        plot: plots::unclean,
    },
    Story {
        name: "few",
        about: "too few are left, and one of them takes over: it answers what is certain",
        plot: plots::few,
    },
    Story {
        name: "backups",
        about: "the coordinator is put back to an older state, with the members running or not",
        plot: plots::backups,
    },
    Story {
        name: "copies",
        about: "a member's disk is put back to what it was some seconds ago",
        plot: plots::copies,
    },
    Story {
        name: "old-copies",
        about: "the disks of all members but one are put back to what they were at one moment",
        plot: plots::old_copies,
    },
    Story {
        name: "lone-starts",
        about: "minimum 1: an older coordinator, and one member that comes back alone and may lack something",
        plot: plots::lone_starts,
    },
    Story { name: "rot", about: "power goes, and the ends of all logs but one rot", plot: plots::rot },
    Story {
        name: "all-disks",
        about: "the next sync fails on all members, and an operator accepts the disk with the greatest end",
        plot: all_at_once::failed_disks,
    },
    Story {
        name: "all-restored",
        about: "all disks and the coordinator are put back to what they were at one moment",
        plot: all_at_once::restored,
    },
    Story {
        name: "journals",
        about: "the logs are in the journal that ships, on disks that lose what was not synced",
        plot: plots::journals,
    },
    Story {
        name: "rotten-journals",
        about: "the same, and synced bytes of the logs rot: stores are repaired with what other members have",
        plot: plots::rotten_journals,
    },
    Story {
        name: "stored-images",
        about: "the logs and images are in the journal that ships: images are written often, logs purged, members renewed",
        plot: plots::stored_images,
    },
    Story {
        name: "lossy",
        about: "packets are lost, doubled, late and overtake each other",
        plot: plots::lossy,
    },
    Story {
        name: "data-servers",
        about: "data servers come and go, hear late or not of takeovers, and carry out orders; files are written and deleted",
        plot: data_servers::come_and_go,
    },
    Story {
        name: "data-servers-unclean",
        about: "the same, and an operator lets a member lead that lacks the newest files: their replicas stay until he allows more",
        plot: data_servers::unclean,
    },
    Story {
        name: "data-servers-ordered",
        about: "an operator orders data servers out of service, and switches off each one that may go: the last good replica is never on it",
        plot: data_servers::ordered,
    },
    Story { name: "everything", about: "all of this together", plot: plots::everything },
];

pub fn story(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}

/// The result of a run, equal for equal seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub answers: u64,
    pub writes: u64,
    /// Reads answered below the minimum.
    pub certain: u64,
    /// Reads held against what had committed.
    pub judged: u64,
    /// Reads answered by members that did not lead.
    pub by_standbys: u64,
    /// Reads that were old because a clock stood.
    pub stale: u64,
    /// Unclean elections, and the committed entries that they gave up.
    pub unclean: u64,
    pub given_up: u64,
    pub committed: u64,
    pub epochs: u64,
    pub longest_gap_ms: u64,
    pub slowest_ms: u64,
    /// What has happened at data servers.
    pub data: Counts,
    pub transcript: Vec<String>,
}

/// Why a run failed, and all that led to it.
#[derive(Debug)]
pub struct Failure {
    pub rule: Broken,
    pub transcript: Vec<String>,
}

/// # Errors
/// A rule is broken, or the cluster does not come to rest. The failure holds what led to it.
pub fn run(story: &Story, seed: u64) -> Result<Outcome, Box<Failure>> {
    run_with(story, seed, |_| ())
}

/// `change` may plant something.
///
/// # Errors
/// Those of [`run`].
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
                judged: observer.judged,
                by_standbys: observer.by_standbys,
                stale: observer.stale,
                unclean: observer.unclean,
                given_up: observer.lost_points.len() as u64,
                committed: observer.truth.last().0,
                epochs: world.keeper.view.epoch.0,
                longest_gap_ms: observer.longest_gap_ms,
                slowest_ms: observer.slowest_ms,
                data: world.data.as_ref().map(|room| room.counts).unwrap_or_default(),
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
    let all_over = [
        Fault::Heal,
        Fault::ResumeAll,
        Fault::ClocksGo { jumps: true },
        Fault::ThreadsGoOn,
        Fault::QuickDisks,
        Fault::StartAll,
    ];
    for fault in all_over {
        world.at_ms(FAULTS_END_MS, crate::cluster::happening::Happening::Fault(fault));
    }
    let mut now_ms = FAULTS_END_MS;
    while now_ms < ALL_ENDS_MS {
        now_ms += 500;
        world.run_until_ms(now_ms)?;
        if now_ms.is_multiple_of(2_000) && world.servers.iter().any(|server| server.has_failed_disk) {
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(Fault::AcceptDisk));
        }
        if now_ms.is_multiple_of(5_000) {
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(Fault::DoWithoutTheLost));
        }
        let view = &world.keeper.view;
        if view.members.len() < world.servers.len() || view.in_sync_min != IN_SYNC_MIN {
            // The order is lost with an active that is deposed.
            let fault = Fault::Reconfigure { without: None, in_sync_min: IN_SYNC_MIN };
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(fault));
        }
        if now_ms.is_multiple_of(1_000) && world.data.is_some() {
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(Fault::AllowDeletions));
            let all_return = Fault::Order(OrderOfOperator::AllReturn);
            world.at_ms(now_ms, crate::cluster::happening::Happening::Fault(all_return));
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
        let waits: Vec<_> = world
            .servers
            .iter()
            .filter(|server| server.host.is_up())
            .map(|server| server.host.member().status(server.clock.moment(world.now_ns)).trouble)
            .collect();
        return Err(format!(
            "a group whose faults are over serves: {roles:?}, {waits:?}, {:?}",
            world.keeper.view
        ));
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
        (world.servers[active].tree.namespace.applied(), world.servers[active].tree.namespace.digest());
    for server in &world.servers {
        if (server.tree.namespace.applied(), server.tree.namespace.digest()) != (applied, digest) {
            return Err(format!(
                "all members hold the same in the end: member {} has applied {} of {applied}",
                server.host.store.member,
                server.tree.namespace.applied()
            ));
        }
    }
    world.data_is_whole(active)
}
