//! What the server does of itself, now and then: overdue answers, expired leases.

use crate::{core::Core, datanodes::start_recovery};
use namespace::ops;
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

/// Runs on a thread of its own until `stop`.
pub fn run(core: &Arc<Core>, stop: &AtomicBool) {
    let mut tick = 0u64;
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(TICK);
        tick += 1;
        core.parked.expire(core.moment());
        if tick.is_multiple_of(LEASE_PERIOD_TICKS) {
            release_expired_leases(core);
        }
    }
}

/// Closes the files of writers that were silent for longer than the hard limit.
fn release_expired_leases(core: &Arc<Core>) {
    if core.blocks.lock().in_safe_mode() {
        return;
    }
    let expired = {
        let tree = core.tree();
        core.renewals.lock().take_hard_expired(&tree.namespace, core.moment())
    };
    for holder in expired {
        let files = core.tree().namespace.files_of(&holder);
        tracing::info!(%holder, files = files.len(), "lease expired");
        for inode in files {
            if core.admit().is_err() {
                // The queue is full: the next round tries again.
                return;
            }
            core.write(Box::new(move |turn| {
                let plan = turn.plan_own(|namespace, context, facts| {
                    ops::release_lease::plan(namespace, context, inode, facts)
                });
                match plan {
                    ops::release_lease::Plan::Closed => {}
                    ops::release_lease::Plan::Close(edit) => {
                        turn.apply(&edit);
                    }
                    ops::release_lease::Plan::Recover { edit, block, stamp } => {
                        start_recovery(turn, &edit, block, stamp);
                    }
                    ops::release_lease::Plan::Waiting(block) => {
                        tracing::info!(%inode, %block, "the file stays open: its last block is not reported");
                    }
                }
            }));
        }
    }
}
