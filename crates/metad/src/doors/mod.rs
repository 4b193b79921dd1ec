//! The ways of clients' calls to other groups. A server that a client happens to call is a *door*: it passes on what another group answers.
//!
//! A call goes to the other group's active in the envelope in which members of one group pass calls on ([`crate::forward`]), under the
//! client's own name. So it may be sent again, by this door or by another, and has one effect.

mod batched;
pub mod decide;
mod diffs;
pub mod gate;
mod gather;
mod lists;
pub mod route;
mod send;
mod servers;

use crate::{
    cluster::{self, Cluster},
    config::MetaConfig,
    forward::{Fate, Forwarder, Hold, HoldLimits, Numbers, Parts, Redirect, Seal},
    neighbours::Neighbours,
};
use base::{GroupId, Level, MemberId};
use parking_lot::Mutex;
use rpc::{Call, Replier};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};
use tokio::runtime::Handle;

/// All of them.
pub struct Doors {
    me: MemberId,
    cluster: Arc<Cluster>,
    seal: Seal,
    limits: HoldLimits,
    /// The calls on their way to all other groups together.
    hold: Arc<Hold>,
    neighbours: Arc<Neighbours>,
    runtime: Handle,
    groups: Mutex<BTreeMap<GroupId, Forwarder>>,
    redirect: OnceLock<Redirect>,
}

impl Doors {
    /// `secret` proves the calls that are passed on.
    pub fn new(
        config: &MetaConfig,
        cluster: Arc<Cluster>,
        secret: &[u8],
        neighbours: Arc<Neighbours>,
        runtime: Handle,
    ) -> Self {
        Self {
            me: config.group.member,
            cluster,
            seal: Seal::new(secret),
            limits: HoldLimits { wait_ms: config.group.hold_ms, ..HoldLimits::default() },
            hold: Arc::default(),
            neighbours,
            runtime,
            groups: Mutex::default(),
            redirect: OnceLock::new(),
        }
    }

    /// Calls that the group to which they were passed on does not answer go this way.
    pub fn set_redirect(&self, redirect: Redirect) {
        // A server does it once.
        let _ = self.redirect.set(redirect);
    }

    /// The other groups' actives.
    pub fn neighbours(&self) -> &Arc<Neighbours> {
        &self.neighbours
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Passes a call on to the active of another group. Returns at once.
    pub fn pass(&self, to: GroupId, call: Call, reply: Replier) {
        // Nothing is answered here in the name of another group.
        let serve = Box::new(|call: Call, _: Replier| unreachable!("{} is for another group", call.method));
        self.way(to).take(call, reply, Fate::NotBegun, serve);
    }

    fn way(&self, to: GroupId) -> Forwarder {
        self.groups.lock().entry(to).or_insert_with(|| self.begin(to)).clone()
    }

    fn begin(&self, to: GroupId) -> Forwarder {
        let neighbour = self.neighbours.of(to);
        let (standing, locating) = (neighbour.subscribe(), neighbour.clone());
        let forwarder = Forwarder::new(Parts {
            me: self.me,
            other_group: Some(to),
            scope: cluster::scope(&self.cluster.cluster_id, to),
            seal: Some(self.seal.clone()),
            limits: self.limits,
            hold: self.hold.clone(),
            standing,
            is_serving: Arc::new(|| false),
            locate: Arc::new(move || locating.active()),
            // A cluster with several groups began at this level, or was raised to it.
            level: Arc::new(|| Level::SEVERAL_GROUPS),
            runtime: self.runtime.clone(),
        });
        if let Some(redirect) = self.redirect.get() {
            forwarder.set_redirect(redirect.clone());
        }
        forwarder
    }

    pub fn numbers(&self) -> Numbers {
        let all = self.groups.lock().values().map(Forwarder::numbers).fold(Numbers::default(), Numbers::and);
        Numbers { pending: self.hold.count(), pending_bytes: self.hold.bytes(), ..all }
    }

    /// How long the calls were away that other groups have answered.
    pub fn times_away(&self) -> measures::Figures {
        let mut all = measures::Figures::default();
        self.groups.lock().values().for_each(|group| all.add(&group.times_away()));
        all
    }

    /// Lets go of all calls that are on their way: see [`Forwarder::close`].
    pub fn close(&self) {
        self.groups.lock().values().for_each(Forwarder::close);
    }
}
