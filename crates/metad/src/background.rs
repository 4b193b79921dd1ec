//! The server's own work, done now and then: overdue answers, expired leases.

use crate::{
    admin_protocol::takeovers, block_recovery::release, client_protocol::completes, core::Core,
    partition::Partition,
};
use ::blocks::SafeModeStage;
use base::InodeId;
use env::pulse;
use namespace::{LeaseWatch, lease_watch::Outlook, ops::release_lease};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How late an overdue `complete` may be answered.
const TICK: Duration = Duration::from_millis(20);
/// How often the active is asked for a takeover that is not known here.
const CHRONICLE_PERIOD_TICKS: u64 = 50;
/// How often the group is told how many data servers reach this member: within a tenth of a second.
const DATA_SERVERS_PERIOD_TICKS: u64 = 5;
/// How often the notes of requests that have ended a server are looked at, and the one of clients that watch.
const FATAL_PERIOD_TICKS: u64 = 25;

/// Runs on a thread of its own until `stop`.
pub fn run(core: &Arc<Core>, stop: &AtomicBool) {
    let partition = &core.partition;
    let mut tick = 0u64;
    let mut leases = LeaseWatch::new(core.moment());
    let mut said_ready = true;
    let mut said_data_servers = 0;
    while !stop.load(Ordering::Acquire) {
        say_ready(partition, &mut said_ready);
        std::thread::sleep(TICK);
        pulse::step();
        tick += 1;
        if tick.is_multiple_of(DATA_SERVERS_PERIOD_TICKS) {
            say_data_servers(partition, &mut said_data_servers);
            partition.condition.look_at_view(&partition.member);
            look_at_level(partition);
        }
        partition.chronicle.look(&partition.member, core.env.clock.timestamp());
        partition.chronicle.save(&core.env, &core.config.name_directory);
        if tick.is_multiple_of(FATAL_PERIOD_TICKS) {
            core.fatal.look();
            partition.member.note_watchers(&core.config.name_directory);
        }
        if tick.is_multiple_of(CHRONICLE_PERIOD_TICKS) {
            takeovers::ask_around(partition);
        }
        if !partition.member.is_serving() {
            completes::hand_over(core);
            continue;
        }
        partition.parked.expire(core.moment());
        release_leases(partition, &mut leases);
    }
    partition.chronicle.look(&partition.member, core.env.clock.timestamp());
    partition.chronicle.save(&core.env, &core.config.name_directory);
}

/// Tells the group whether this member knows where the blocks are. Clients of one that leads without knowing wait for
/// the data servers' reports, so that another had better lead.
fn say_ready(partition: &Partition, said: &mut bool) {
    let is_ready = partition.blocks.lock().safe_mode_stage() == SafeModeStage::Off;
    if is_ready != *said {
        partition.member.say_ready(is_ready);
        *said = is_ready;
    }
}

/// Looks whether an entry that raises the level has committed. All later writes are at that level.
fn look_at_level(partition: &Partition) {
    let known = partition.tree().namespace.group_level().clone();
    partition.upgrade.look(&known, partition.commit.committed(), &partition.member);
}

/// Tells the group how many data servers reach this member. An active that none reaches is of no use.
fn say_data_servers(partition: &Partition, said: &mut u32) {
    let count = partition.data_servers();
    if count != *said {
        partition.member.say_data_servers(count);
        *said = count;
    }
}

/// Takes files from writers that are gone, where it is time for that.
fn release_leases(partition: &Arc<Partition>, watch: &mut LeaseWatch) {
    let now = partition.moment();
    if !watch.is_due(now) {
        return;
    }
    let outlook =
        Outlook { in_safe_mode: partition.blocks.lock().in_safe_mode(), is_settled: partition.is_settled() };
    let due = {
        let tree = partition.tree();
        watch.look(&tree.namespace, &mut partition.renewals.lock(), outlook, now)
    };
    for (holder, files) in due.expired {
        tracing::info!(%holder, files = files.len(), "lease expired");
        release_files(partition, files);
    }
    release_files(partition, due.unfinished);
}

fn release_files(partition: &Arc<Partition>, files: Vec<InodeId>) {
    for inode in files {
        if partition.standing().admit_own().is_err() {
            // The queue is full: the next round tries again.
            return;
        }
        partition.write(Box::new(move |turn| {
            let plan = turn
                .plan_own(|namespace, context, facts| release_lease::plan(namespace, context, inode, facts));
            release(turn, plan);
        }));
    }
}
