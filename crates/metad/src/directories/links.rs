//! The way of messages to the actives of other groups.
//!
//! Each group has a queue and a task. The task asks who the group's active is ([`crate::neighbours`]), and sends what waits in one call; while that is under
//! way, more gathers behind it. What cannot be delivered is dropped: both machines say again what matters, and the root hears that
//! something may have got lost.

use crate::{cluster, neighbours::Neighbours, peers::Secret};
use base::{GroupId, MemberId};
use bytes::Bytes;
use parking_lot::Mutex;
use proto::{
    clover::forward::{DirectoryLogRequestProto, DirectoryLogResponseProto},
    protocol,
};
use rpc::{Client, ClientOptions};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};

/// Messages to one group that wait, at most. A group that takes none for so long gets its entries anew.
const WAITING_MAX: usize = 10_000;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The bytes of messages in one call, about.
const CALL_BYTES: usize = 4 << 20;
/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a task waits after a call that has failed, before it makes another.
const PAUSE: Duration = Duration::from_millis(50);
/// The wait doubles with each further failure, up to this. It ends at once when the group gets another active.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The ways to all other groups.
pub struct Links {
    sender: Arc<Sender>,
    runtime: Handle,
    groups: Mutex<BTreeMap<GroupId, (Arc<Link>, AbortHandle)>>,
}

/// The member that sends, and what it needs for that.
pub struct Sender {
    pub me: MemberId,
    pub group: GroupId,
    pub cluster_id: String,
    pub secret: Secret,
    pub neighbours: Arc<Neighbours>,
    /// Hears that messages to a group may have got lost.
    pub lost: Box<dyn Fn(GroupId) + Send + Sync>,
}

/// Part of every proof, so that one made for something else fits no message.
const PURPOSE: &[u8] = b"clover directory log 1";

/// The proof of knowing the cluster's secret that goes with the messages.
fn sign(secret: &Secret, request: &DirectoryLogRequestProto) -> Bytes {
    with_parts(request, |parts| Bytes::copy_from_slice(&secret.sign(PURPOSE, parts)))
}

/// Whether the messages are from somebody who knows the cluster's secret.
pub fn is_proved(secret: &Secret, request: &DirectoryLogRequestProto) -> bool {
    with_parts(request, |parts| secret.verifies(PURPOSE, parts, &request.mac))
}

fn with_parts<T>(request: &DirectoryLogRequestProto, take: impl FnOnce(&[&[u8]]) -> T) -> T {
    let numbers = [request.group.to_le_bytes(), request.member.to_le_bytes()];
    let mut parts: Vec<&[u8]> = vec![request.scope.as_bytes(), &numbers[0], &numbers[1]];
    parts.extend(request.messages.iter().map(|message| &message[..]));
    take(&parts)
}

#[derive(Default)]
struct Link {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

/// The active of another group, and the connection to it.
struct Active {
    member: MemberId,
    client: Client,
}

impl Links {
    /// To be called on a thread of the runtime.
    pub fn new(sender: Sender) -> Self {
        Self { sender: Arc::new(sender), runtime: Handle::current(), groups: Mutex::default() }
    }

    /// Queues a message. Returns at once.
    pub fn send(&self, to: GroupId, message: Bytes) {
        let link = self.groups.lock().entry(to).or_insert_with(|| self.begin(to)).0.clone();
        let mut waiting = link.waiting.lock();
        let is_full =
            waiting.messages.len() >= WAITING_MAX || waiting.bytes + message.len() > WAITING_BYTES_MAX;
        if is_full && !waiting.messages.is_empty() {
            // The root sends entries again that are not acknowledged in time, and all else is said again.
            *waiting = Waiting::default();
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        drop(waiting);
        link.news.notify_one();
    }

    fn begin(&self, to: GroupId) -> (Arc<Link>, AbortHandle) {
        let link = Arc::new(Link::default());
        let task = self.runtime.spawn(carry(self.sender.clone(), to, link.clone()));
        (link, task.abort_handle())
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for (_, task) in self.groups.get_mut().values() {
            task.abort();
        }
    }
}

impl Link {
    /// Takes what fits into one call.
    fn take(&self) -> Vec<Bytes> {
        let mut waiting = self.waiting.lock();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < CALL_BYTES
            && let Some(message) = waiting.messages.pop_front()
        {
            bytes += message.len();
            waiting.bytes -= message.len();
            taken.push(message);
        }
        taken
    }
}

/// Sends what waits, until the server is gone.
async fn carry(sender: Arc<Sender>, to: GroupId, link: Arc<Link>) {
    let neighbour = sender.neighbours.of(to);
    let mut standing = neighbour.subscribe();
    let (mut active, mut pause): (Option<Active>, Duration) = (None, PAUSE);
    loop {
        let messages = link.take();
        if messages.is_empty() {
            link.news.notified().await;
            continue;
        }
        let known = neighbour.active();
        if active.as_ref().map(|active| (active.member, active.client.address()))
            != known.as_ref().map(|(member, address)| (*member, &**address))
        {
            active = known.map(|(member, address)| Active::new(sender.me, member, &address));
        }
        let is_taken = match &active {
            Some(active) => deliver(&sender, to, active, messages).await,
            None => Err("its active is not known".to_owned()),
        };
        if let Err(reason) = is_taken {
            tracing::debug!(group = %to, reason, "messages about directories were not delivered");
            neighbour.look_again();
            // What gathers meanwhile is for the active that is there now.
            (sender.lost)(to);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = standing.changed() => if changed.is_err() { return },
            }
            pause = (pause * 2).min(PAUSE_MAX);
        } else {
            pause = PAUSE;
        }
    }
}

async fn deliver(sender: &Sender, to: GroupId, active: &Active, messages: Vec<Bytes>) -> Result<(), String> {
    let scope = cluster::scope(&sender.cluster_id, to);
    let mut request = DirectoryLogRequestProto {
        scope,
        group: sender.group.0,
        member: sender.me.0,
        messages,
        mac: Bytes::new(),
    };
    request.mac = sign(&sender.secret, &request);
    let call = active.client.call::<_, DirectoryLogResponseProto>("directoryLog", &request);
    let answer = tokio::time::timeout(CALL_TIMEOUT, call).await;
    match answer {
        Err(_) => Err(format!("member {} did not answer within {CALL_TIMEOUT:?}", active.member)),
        Ok(Err(error)) => Err(format!("member {}: {error}", active.member)),
        Ok(Ok(answer)) if answer.is_elsewhere() => Err(format!("member {} does not lead", active.member)),
        Ok(Ok(_)) => Ok(()),
    }
}

impl Active {
    /// The connection is made when it is used.
    fn new(me: MemberId, member: MemberId, address: &str) -> Self {
        // No user of any system has a space in its name: nobody's groups are looked up for the connection.
        let user = format!("clover member {me}");
        let options = ClientOptions {
            connect_timeout: CALL_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            ping_interval: None,
            ..ClientOptions::default()
        };
        Self { member, client: Client::connect(address, protocol::FORWARD, &user, options) }
    }
}
