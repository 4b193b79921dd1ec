//! The server's own work, done now and then: overdue answers, expired leases.

use crate::{
    admin_protocol::takeovers, client_protocol::completes, core::Core, datanodes::release,
    partition::Partition,
};
use ::blocks::SafeModeStage;
use base::InodeId;
use env::pulse;
use namespace::ops::release_lease::{self, RECOVERY_HOLDER};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How late an overdue `complete` may be answered.
const TICK: Duration = Duration::from_millis(20);
/// How often leases are looked at (Hadoop's lease monitor: every 2 s).
const LEASE_PERIOD_TICKS: u64 = 100;
/// How often the active is asked for a takeover that is not known here.
const CHRONICLE_PERIOD_TICKS: u64 = 50;
/// How often the group is told how many data servers reach this member: within a tenth of a second.
const DATA_SERVERS_PERIOD_TICKS: u64 = 5;
/// How often the notes of requests that have ended a server are looked at.
const FATAL_PERIOD_TICKS: u64 = 25;
/// Files under recovery looked at in one such period, so that those which nobody can recover delay no others.
const RECOVERIES_COUNT_MAX: usize = 1_000;

/// Runs on a thread of its own until `stop`.
pub fn run(core: &Arc<Core>, stop: &AtomicBool) {
    let partition = &core.partition;
    let mut tick = 0u64;
    let mut resumed = InodeId(0);
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
        }
        if tick.is_multiple_of(CHRONICLE_PERIOD_TICKS) {
            takeovers::ask_around(partition);
        }
        if !partition.member.is_serving() {
            completes::hand_over(core);
            continue;
        }
        partition.parked.expire(core.moment());
        if tick.is_multiple_of(LEASE_PERIOD_TICKS) {
            release_expired_leases(partition);
            resume_recoveries(partition, &mut resumed);
        }
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

/// Closes the files of writers that were silent for longer than the hard limit.
fn release_expired_leases(partition: &Arc<Partition>) {
    if partition.blocks.lock().in_safe_mode() {
        return;
    }
    let expired = {
        let tree = partition.tree();
        partition.renewals.lock().take_hard_expired(&tree.namespace, partition.moment())
    };
    for holder in expired.iter().filter(|holder| ***holder != *RECOVERY_HOLDER) {
        let files = partition.tree().namespace.files_of(holder);
        tracing::info!(%holder, files = files.len(), "lease expired");
        release_files(partition, files);
    }
}

/// Looks again at files whose recovery was begun: it may have led to nothing, or the server that ordered it
/// may have stopped. Goes on behind the file that was looked at last.
fn resume_recoveries(partition: &Arc<Partition>, last: &mut InodeId) {
    if !partition.is_settled() || partition.blocks.lock().in_safe_mode() {
        return;
    }
    let mut files = partition.tree().namespace.files_of(RECOVERY_HOLDER);
    files.extend(partition.tree().namespace.truncations());
    files.sort_unstable();
    files.dedup();
    let files: Vec<InodeId> =
        files.into_iter().filter(|inode| inode > last).take(RECOVERIES_COUNT_MAX).collect();
    *last = files.last().filter(|_| files.len() == RECOVERIES_COUNT_MAX).copied().unwrap_or(InodeId(0));
    release_files(partition, files);
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
