//! This member as the one to whom others send clients' calls in envelopes.

use super::envelope::Seal;
use crate::member::Standing;
use base::MemberId;
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Handle, sync::watch};

/// How long a call of an envelope waits here for this member's own takeover to end.
const TAKEOVER_WAIT: Duration = Duration::from_secs(1);

/// Cheap to clone. A group of one member has it as well: members of other groups send calls here.
#[derive(Clone)]
pub struct Recipient {
    pub me: MemberId,
    /// This member's group in messages to its members.
    pub scope: Arc<str>,
    /// What opens envelopes.
    pub seal: Seal,
    pub standing: watch::Receiver<Standing>,
    /// Whether calls are answered here at this very moment: it ends before the standing says so.
    pub is_serving: Arc<dyn Fn() -> bool + Send + Sync>,
    pub runtime: Handle,
}

impl Recipient {
    pub fn is_serving(&self) -> bool {
        (self.is_serving)()
    }

    /// Whether this member answers calls, now or in a moment.
    pub async fn will_serve(&self) -> bool {
        let mut standing = self.standing.clone();
        let serves = async {
            loop {
                let takes_over = is_taking_over(&standing.borrow_and_update());
                let serves = self.is_serving();
                if serves || !takes_over {
                    return serves;
                }
                if standing.changed().await.is_err() {
                    return false;
                }
            }
        };
        tokio::time::timeout(TAKEOVER_WAIT, serves).await.unwrap_or(false)
    }

    /// The other member that leads, as far as is known.
    pub fn known_active(&self) -> Option<MemberId> {
        self.standing.borrow().active.filter(|active| *active != self.me)
    }
}

fn is_taking_over(standing: &Standing) -> bool {
    matches!(standing.role, group::Role::Claiming | group::Role::Starting { .. })
}
