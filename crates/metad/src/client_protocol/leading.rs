//! An answer that rests on reading goes out only if no other member can have been elected before the read.
//!
//! That is so while the lease lasts: the test is made after the answer was evaluated, and costs a comparison.
//! Where the lease has run out and this member still serves, the answer waits here for the next grant; where
//! no grant comes, as with a member that left the in-sync set and cannot be reached, the coordinator is asked,
//! once for all that wait and not more often than every 50 ms. A member that stops serving hands what waits to
//! the one that goes on.
//!
//! A lease is measured by a clock, and a clock can stand still: a hypervisor may stop it. With
//! [`crate::GroupConfig::confirm_reads`] no answer rests on a lease. The coordinator is asked about each, once for
//! all that came while it was asked the last time.

use super::calls;
use crate::core::Core;
use base::Epoch;
use parking_lot::Mutex;
use rpc::{Call, Replier};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};

/// How often waiting answers are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// The least time between two questions to the coordinator.
const CONFIRM_PERIOD: Duration = Duration::from_millis(50);
/// How long the coordinator's answer is waited for before it is asked again.
const CONFIRM_PATIENCE: Duration = Duration::from_secs(1);

/// An answer that waits, and the call, to be answered by another member if need be.
struct Waiting {
    call: Call,
    reply: Replier,
    send: Box<dyn FnOnce(Replier) + Send>,
    since: Instant,
    /// The epoch in which the answer was evaluated; a later reign proves nothing about it.
    epoch: Epoch,
}

#[derive(Default)]
pub struct Leading {
    state: Mutex<State>,
    waits: AtomicU64,
    confirmations: AtomicU64,
    /// None: a group of one, in which nobody else can ever be elected.
    runtime: Option<Handle>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// A task looks after the answers that wait.
    is_attended: bool,
}

/// Numbers for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    pub waits: u64,
    pub confirmations: u64,
    pub waiting: u64,
}

impl Leading {
    pub fn in_group(runtime: Handle) -> Self {
        Self { runtime: Some(runtime), ..Self::default() }
    }

    pub fn numbers(&self) -> Numbers {
        Numbers {
            waits: self.waits.load(Ordering::Relaxed),
            confirmations: self.confirmations.load(Ordering::Relaxed),
            waiting: self.state.lock().waiting.len() as u64,
        }
    }

    fn take_all(&self) -> Vec<Waiting> {
        std::mem::take(&mut self.state.lock().waiting)
    }

    fn take_those_before(&self, epoch: Epoch) -> Vec<Waiting> {
        let waiting = &mut self.state.lock().waiting;
        waiting.extract_if(.., |waiting| waiting.epoch != epoch).collect()
    }
}

/// Sends an answer that has just been evaluated, now or as soon as it may go out. `epoch` is the one in which the
/// evaluation began. `call` is asked for only if the answer has to wait.
pub fn answer(
    core: &Arc<Core>,
    epoch: Epoch,
    call: impl FnOnce() -> Call,
    reply: Replier,
    send: impl FnOnce(Replier) + Send + 'static,
) {
    let Some(runtime) = &core.leading.runtime else { return send(reply) };
    if rests_on_lease(core) && core.replica.may_answer() && core.replica.epoch() == epoch {
        return send(reply);
    }
    core.leading.waits.fetch_add(1, Ordering::Relaxed);
    let waiting = Waiting { call: call(), reply, send: Box::new(send), since: Instant::now(), epoch };
    let mut state = core.leading.state.lock();
    state.waiting.push(waiting);
    if !std::mem::replace(&mut state.is_attended, true) {
        drop(runtime.spawn(attend(core.clone())));
    }
}

/// Whether the lease proves an answer, or only the coordinator does.
fn rests_on_lease(core: &Core) -> bool {
    !core.config.group.confirm_reads
}

/// Looks after the answers that wait, until there are none.
async fn attend(core: Arc<Core>) {
    let mut asked: Option<Instant> = None;
    loop {
        let mut may_ask_at_once = false;
        for waiting in core.leading.take_those_before(core.replica.epoch()) {
            calls::hand_over(&core, waiting.call, waiting.reply);
        }
        if !core.replica.answers() {
            for waiting in core.leading.take_all() {
                calls::hand_over(&core, waiting.call, waiting.reply);
            }
        } else if rests_on_lease(&core) && core.replica.may_answer() {
            release(&core, core.leading.take_all());
        } else if asked.is_none_or(|asked| asked.elapsed() >= CONFIRM_PERIOD) {
            let batch = core.leading.take_all();
            if !batch.is_empty() {
                asked = Some(Instant::now());
                let is_confirmed = confirm(&core, batch).await;
                may_ask_at_once = is_confirmed && !rests_on_lease(&core);
            }
        }
        {
            let mut state = core.leading.state.lock();
            if state.waiting.is_empty() {
                state.is_attended = false;
                return;
            }
        }
        match may_ask_at_once {
            true => asked = None,
            false => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Asks the coordinator whether nobody was elected; all of the batch were evaluated before. Returns whether it
/// said so.
async fn confirm(core: &Arc<Core>, batch: Vec<Waiting>) -> bool {
    core.leading.confirmations.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    core.replica.confirm(move |confirmed| drop(sender.send(confirmed)));
    let confirmed = tokio::time::timeout(CONFIRM_PATIENCE, receiver).await;
    if let Ok(Ok(Ok(()))) = confirmed {
        release(core, batch);
        return true;
    }
    // Not known: they wait on, for a grant, for another's reign, or for the end of their patience.
    let patience = Duration::from_millis(core.config.group.hold_ms);
    let (late, waiting): (Vec<_>, Vec<_>) =
        batch.into_iter().partition(|waiting| waiting.since.elapsed() >= patience);
    core.leading.state.lock().waiting.extend(waiting);
    for waiting in late {
        waiting.reply.fs_error(&base::FsError::NotActive(format!(
            "Operation {} cannot be answered: whether this member still leads its group could not be \
             confirmed for {patience:?}.",
            waiting.call.method
        )));
    }
    false
}

/// Sends answers that are proved for the present epoch. An answer of an earlier one is evaluated again: between two
/// reigns of this member another one may have led.
fn release(core: &Arc<Core>, waiting: Vec<Waiting>) {
    let epoch = core.replica.epoch();
    for waiting in waiting {
        match waiting.epoch == epoch {
            true => (waiting.send)(waiting.reply),
            false => calls::hand_over(core, waiting.call, waiting.reply),
        }
    }
}
