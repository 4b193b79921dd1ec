//! Answers that wait until it is proved that this member leads.

use crate::config::GroupConfig;
use base::Moment;
use parking_lot::Mutex;
use rpc::{Call, Replier};
use serving::{ProofSettings, Rules, Unproved};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::{runtime::Handle, time::Instant};

/// The most bytes of answers that wait. Half of this is as much as the largest listings of a thousand clients.
const BYTES_MAX: usize = 256 << 20;

/// An answer that waits, and the call, to be answered by another member if need be.
pub struct Waiting {
    pub call: Call,
    pub reply: Replier,
    pub send: Box<dyn FnOnce(Replier) + Send>,
}

/// Answers that wait for a proof that this member leads.
#[derive(Default)]
pub struct Leading {
    /// None: a group of one, in which nobody else can ever be elected.
    pub group: Option<InGroup>,
    /// Answers that had to wait, and questions to the coordinator.
    pub waits: AtomicU64,
    pub confirmations: AtomicU64,
}

/// The answers of a member of several.
pub struct InGroup {
    pub state: Mutex<State>,
    pub settings: ProofSettings,
    pub runtime: Handle,
    /// Patience is measured from here, by the clock of the timers that the looks wait for. A server whose own clock stands
    /// still gives up calls that it cannot prove.
    began: Instant,
}

impl InGroup {
    /// A moment of the clock that patience is measured by.
    pub fn now(&self) -> Moment {
        Moment { ns: self.began.elapsed().as_nanos() as u64 }
    }
}

pub struct State {
    pub unproved: Unproved<Waiting>,
    /// A task looks after the answers that wait.
    pub is_attended: bool,
}

/// Numbers for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    pub waits: u64,
    pub confirmations: u64,
    pub waiting: u64,
}

impl Leading {
    pub fn in_group(runtime: Handle, config: &GroupConfig) -> Self {
        let settings = ProofSettings {
            rests_on_lease: !config.confirm_reads,
            patience_ms: config.hold_ms,
            bytes_max: BYTES_MAX,
        };
        let unproved = Unproved::new(settings, Rules::default());
        let state = Mutex::new(State { unproved, is_attended: false });
        let group = InGroup { state, settings, runtime, began: Instant::now() };
        Self { group: Some(group), ..Self::default() }
    }

    pub fn numbers(&self) -> Numbers {
        let waiting = self.group.as_ref().map_or(0, |group| group.state.lock().unproved.len());
        Numbers {
            waits: self.waits.load(Ordering::Relaxed),
            confirmations: self.confirmations.load(Ordering::Relaxed),
            waiting: waiting as u64,
        }
    }
}
