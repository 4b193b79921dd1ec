//! While a member does not serve, it hands a client's call to the member that does, and holds it while none does.
//!
//! ```text
//!            call of a client                       call in a member's envelope
//!                  │                                           │
//!           serving? ── yes ─▶ answered here ◀── yes ── serving, or about to?
//!                  │ no                                        │ no
//!      an active is known? ── yes ─▶ sent on                   └─▶ "elsewhere": never sent on again
//!                  │ no                 │ its connection broke, it says "elsewhere", another leads now
//!                  ▼                    ▼
//!          held, until the standing changes, the client leaves, or patience ends (StandbyException)
//! ```
//!
//! A call keeps its name (client id and call id) on all ways, so that the active's retry cache tells a repetition
//! from a new call: this is what makes it safe to send a call again whose fate is unknown. Everything is bounded: the
//! calls here at a time and their bytes ([`hold`]), and the time that one may wait.
//!
//! Members prove with the cluster's secret that an envelope comes from one of them ([`envelope`]).

pub(crate) mod envelope;
mod forwarder;
mod hold;
mod links;
mod recipient;
pub mod service;
#[cfg(test)]
mod tests;

pub use envelope::Seal;
pub use forwarder::{Fate, Forwarder, Numbers, Parts, Redirect, is_elsewhere, of_group, pass_on, was_begun};
pub use hold::{Hold, HoldLimits};
pub use recipient::Recipient;

use crate::{cluster::Cluster, config::MetaConfig, member::GroupMember};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The forwarder of a member of this group. To be called on a thread of the runtime.
pub fn of(config: &MetaConfig, cluster: &Cluster, member: &GroupMember, secret: Option<&[u8]>) -> Forwarder {
    if config.group.peer_address.is_none() {
        return Forwarder::alone();
    }
    let runtime = Handle::current();
    let (located, serving, known) = (member.clone(), member.clone(), member.clone());
    Forwarder::new(Parts {
        me: member.me().member,
        other_group: None,
        scope: cluster.scope(),
        seal: secret.map(Seal::new),
        limits: HoldLimits { wait_ms: config.group.hold_ms, ..HoldLimits::default() },
        hold: Arc::default(),
        standing: member.subscribe(),
        is_serving: Arc::new(move || serving.answers()),
        locate: Arc::new(move || located.active().map(|(member, record)| (member, record.rpc_address))),
        level: Arc::new(move || known.required_level()),
        runtime,
    })
}

/// This member as others send calls to it. `None`: it has no secret with which they would prove them, or runs outside of a runtime.
pub fn recipient(cluster: &Cluster, member: &GroupMember, secret: Option<&[u8]>) -> Option<Recipient> {
    let serving = member.clone();
    Some(Recipient {
        me: member.me().member,
        scope: cluster.scope().into(),
        seal: Seal::new(secret?),
        standing: member.subscribe(),
        is_serving: Arc::new(move || serving.answers()),
        runtime: Handle::try_current().ok()?,
    })
}
