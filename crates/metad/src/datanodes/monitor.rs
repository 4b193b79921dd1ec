//! The work on data servers that no message of theirs starts: finding the dead, copying their blocks, ending safe
//! mode, and sweeping.

use super::{DatanodeSide, orders};
use crate::{partition::server_orders, satisfier::Satisfier};
use env::pulse;
use namespace::server_orders::ServerOrders;
use parking_lot::{Condvar, Mutex};
use std::{sync::Arc, time::Duration};

/// How often the block map is given the time.
const PERIOD: Duration = Duration::from_millis(500);
/// Blocks looked at under one lock: about a millisecond.
const SWEEP_BLOCKS: usize = 10_000;

#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    rung: bool,
    stopped: bool,
}

impl Bell {
    pub fn ring(&self) {
        self.state.lock().rung = true;
        self.rung.notify_one();
    }

    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.rung.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Waits until another thread rings, or a period has passed.
    fn wait(&self) {
        let mut state = self.state.lock();
        if !state.rung && !state.stopped {
            self.rung.wait_for(&mut state, PERIOD);
        }
        state.rung = false;
    }
}

/// Copies go where their file's storage policy wants them; the tree is only held where there are policies.
fn tick(side: &Arc<DatanodeSide>, given: &mut ServerOrders) {
    let ordered = server_orders::of_the_journal(&side.core.partition);
    // Also where nothing has changed: a maintenance may have come to its end.
    if side.core.admission.takes_servers_out() || !ordered.is_empty() || !ordered.is_same(given) {
        orders::give_all(&side.core);
    }
    *given = ordered;
    let tree = side.core.partition.tree();
    let has_policies = tree.namespace.has_storage_policies();
    let tree = has_policies.then_some(tree);
    // The tree is let go before others are told what happened.
    side.change(move |map, now| {
        map.tick(now, &|inode| tree.as_ref().map_or(0, |tree| tree.namespace.storage_policy_of(inode)));
    });
}

/// Runs on a thread of its own until stopped.
pub fn run(side: &Arc<DatanodeSide>) {
    let mut last_tick = side.core.moment();
    let mut satisfier = Satisfier::default();
    let mut given = ServerOrders::default();
    let _watched = side.core.threads.helpers.begin("meta-datanodes");
    let mut is_sweeping = false;
    while !side.bell.is_stopped() {
        if !is_sweeping {
            side.bell.wait();
        }
        pulse::step();
        let now = side.core.moment();
        if now.ms_since(last_tick) >= PERIOD.as_millis() as u64 {
            last_tick = now;
            satisfier.look(&side.core.partition);
            tick(side, &mut given);
        }
        // A lap over many blocks takes seconds. Ticks go on in its midst: they find the servers that have died.
        is_sweeping = side.change(|map, now| map.sweep(SWEEP_BLOCKS, now));
    }
}
