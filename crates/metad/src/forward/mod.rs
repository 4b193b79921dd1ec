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
mod service;
#[cfg(test)]
mod tests;

pub use envelope::Seal;
pub use forwarder::{Fate, Forwarder, pass_on};

use crate::{
    client_protocol::Leading, cluster::Cluster, config::MetaConfig, core::Core, protocols, replica::Replica,
};
use forwarder::Parts;
use hold::HoldLimits;
use rpc::{Call, Replier};
use service::Look;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The forwarder of a member of this group, and the place where its answers wait for the lease. To be called on a
/// thread of the runtime.
pub fn of(
    config: &MetaConfig,
    cluster: &Cluster,
    replica: &Replica,
    secret: Option<&[u8]>,
) -> (Forwarder, Leading) {
    if config.group.peer_address.is_none() {
        return (Forwarder::alone(), Leading::default());
    }
    let runtime = Handle::current();
    let leading = Leading::in_group(runtime.clone(), &config.group);
    let (located, serving) = (replica.clone(), replica.clone());
    let forwarder = Forwarder::new(Parts {
        me: replica.me().member,
        cluster_id: cluster.cluster_id.clone(),
        seal: secret.map(Seal::new),
        limits: HoldLimits { wait_ms: config.group.hold_ms, ..HoldLimits::default() },
        standing: replica.subscribe(),
        is_serving: Arc::new(move || serving.answers()),
        locate: Arc::new(move || located.active().map(|(member, record)| (member, record.rpc_address))),
        runtime,
    });
    (forwarder, leading)
}

/// Answers a call of another member: it brings a client's.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    let (asked, serving) = (core.clone(), core.clone());
    let resolve = move |opened: &envelope::Opened, look: Look| {
        let (user, real_user) = (&*opened.user, opened.real_user.as_deref());
        match look {
            Look::Known => asked.groups.known_caller(user, real_user, asked.moment()),
            Look::Everywhere => Some(asked.groups.caller(user, real_user, asked.moment())),
        }
    };
    let serve = move |call: Call, reply: Replier| protocols::answer(&serving, call, reply);
    service::open(&core.forwarder, call, reply, resolve, serve);
}
