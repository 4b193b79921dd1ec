//! The other groups of the cluster, as this server sees them: who leads each, and at which address.
//!
//! A group is followed from the first question about it on, by its view at the coordinator. What is known here may be late: the server that
//! is asked says itself whether it leads.

use crate::member::Standing;
use base::{Epoch, GroupId, GroupView, MemberId};
use coord::{Coordinator, Done, Event, MemberRecord, ReadError, Versioned};
use group::Role;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot, watch},
    task::AbortHandle,
};

/// How often a view is read while nothing tells of a change: the coordinator's hints may get lost.
const LOOK: Duration = Duration::from_secs(10);
/// The same while the group has no active, or its view could not be read.
const LOOK_SOON: Duration = Duration::from_millis(200);

/// All other groups that were asked about.
pub struct Neighbours {
    coordinator: Arc<dyn Coordinator>,
    runtime: Handle,
    groups: Mutex<BTreeMap<GroupId, (Arc<Neighbour>, AbortHandle)>>,
}

/// One of them.
pub struct Neighbour {
    standing: watch::Sender<Standing>,
    active: Mutex<Option<(MemberId, String)>>,
    news: Notify,
}

/// What the coordinator has about a group.
pub struct Record {
    pub view: GroupView,
    pub members: Vec<MemberRecord>,
}

impl Neighbours {
    pub fn new(coordinator: Arc<dyn Coordinator>, runtime: Handle) -> Self {
        Self { coordinator, runtime, groups: Mutex::default() }
    }

    /// A group, which is followed from here on.
    pub fn of(&self, group: GroupId) -> Arc<Neighbour> {
        let mut groups = self.groups.lock();
        let (neighbour, _) = groups.entry(group).or_insert_with(|| {
            let neighbour = Arc::new(Neighbour::new());
            let told = Arc::downgrade(&neighbour);
            self.coordinator.watch(group, Arc::new(move |_, event| tell(&told, event)));
            let following = follow(self.coordinator.clone(), group, neighbour.clone());
            let task = self.runtime.spawn(following).abort_handle();
            (neighbour, task)
        });
        neighbour.clone()
    }

    /// Reads what the coordinator has about a group, the own one too. `None`: the group has not been made.
    ///
    /// # Errors
    /// The coordinator does not answer, or with what nobody understands.
    pub async fn look_up(&self, group: GroupId) -> Result<Option<Record>, ReadError> {
        let coordinator = &*self.coordinator;
        let Some(Versioned { view, .. }) = answer(|done| coordinator.read(group, done)).await? else {
            return Ok(None);
        };
        let members = answer(|done| coordinator.read_members(group, done)).await?;
        Ok(Some(Record { view, members }))
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.groups.get_mut().values().for_each(|(_, task)| task.abort());
    }
}

impl Neighbour {
    fn new() -> Self {
        let standing = Standing { role: Role::Following, epoch: Epoch(0), active: None };
        Self { standing: watch::Sender::new(standing), active: Mutex::default(), news: Notify::new() }
    }

    /// The member that leads the group, and its RPC address, as far as is known.
    pub fn active(&self) -> Option<(MemberId, String)> {
        self.active.lock().clone()
    }

    /// The group's epoch and active. Its role is always that of a group in which this server has no part.
    pub fn subscribe(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The active that was told does not answer, or does not lead: its view is read again now.
    pub fn look_again(&self) {
        self.news.notify_one();
    }

    fn publish(&self, epoch: Epoch, active: Option<(MemberId, String)>) {
        let member = active.as_ref().map(|(member, _)| *member);
        let has_moved = std::mem::replace(&mut *self.active.lock(), active.clone()) != active;
        self.standing.send_if_modified(|standing| {
            let is_news = has_moved || standing.epoch != epoch;
            (standing.epoch, standing.active) = (epoch, member);
            is_news
        });
    }
}

fn tell(neighbour: &Weak<Neighbour>, event: Event) {
    if let (Some(neighbour), Event::View | Event::Members | Event::Connected) = (neighbour.upgrade(), event) {
        neighbour.look_again();
    }
}

async fn follow(coordinator: Arc<dyn Coordinator>, group: GroupId, neighbour: Arc<Neighbour>) {
    loop {
        let read = look(&*coordinator, group).await;
        let pause = match &read {
            Ok(Some((_, Some(_)))) => LOOK,
            _ => LOOK_SOON,
        };
        match read {
            Ok(Some((epoch, active))) => neighbour.publish(epoch, active),
            Ok(None) => {}
            // What was known before is still the best guess.
            Err(error) => tracing::debug!(%group, %error, "the group's active was not looked up"),
        }
        tokio::select! {
            () = neighbour.news.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The group's epoch and active. `None`: there is no such group yet.
async fn look(
    coordinator: &dyn Coordinator,
    group: GroupId,
) -> Result<Option<(Epoch, Option<(MemberId, String)>)>, ReadError> {
    let Some(Versioned { view, .. }) = answer(|done| coordinator.read(group, done)).await? else {
        return Ok(None);
    };
    let Some(active) = view.active else { return Ok(Some((view.epoch, None))) };
    let records = answer(|done| coordinator.read_members(group, done)).await?;
    let record = records.into_iter().find(|record| record.life.store.member == active);
    Ok(Some((view.epoch, record.map(|record| (active, record.rpc_address)))))
}

async fn answer<T: Send + 'static>(ask: impl FnOnce(Done<Result<T, ReadError>>)) -> Result<T, ReadError> {
    let (sender, receiver) = oneshot::channel();
    ask(Box::new(move |answer| {
        // The task that has asked may have ended.
        let _ = sender.send(answer);
    }));
    let dropped = |_| ReadError { reason: "the question was dropped".into() };
    receiver.await.map_err(dropped)?
}
