//! The way of a call that cannot be answered here: sent on, held, repeated, given up.

use super::{
    envelope::{self, Seal},
    hold::{Hold, HoldLimits, Ticket},
    links::Links,
};
use crate::member::Standing;
use base::{ClientId, FsError, GroupId, Level, MemberId};
use measures::{Figures, Times};
use prost::{Message, Name};
use proto::clover::forward::{ForwardRequestProto, ForwardResponseProto};
use rpc::{Call, CallError, Client, Replier, RpcError};
use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// The member that leads, as far as is known here, and its RPC address.
pub type Locate = Arc<dyn Fn() -> Option<(MemberId, String)> + Send + Sync>;

/// Answers a call here, once this member serves.
pub type Serve = Box<dyn FnOnce(Call, Replier) + Send>;

/// Takes a call that another group answers.
pub type Redirect = Arc<dyn Fn(GroupId, Call, Replier) + Send + Sync>;

/// The parts of a forwarder.
pub struct Parts {
    pub me: MemberId,
    /// The group whose members answer the calls, where that is another one than this member's own.
    pub other_group: Option<GroupId>,
    /// That group in messages to its members.
    pub scope: String,
    /// The seal of envelopes. Without one nothing is sent on: no member would open the envelope.
    pub seal: Option<Seal>,
    pub limits: HoldLimits,
    /// The calls that are here. Forwarders that share it share its limits.
    pub hold: Arc<Hold>,
    pub standing: watch::Receiver<Standing>,
    /// Whether calls are answered here at this very moment: it ends before the standing says so.
    pub is_serving: Arc<dyn Fn() -> bool + Send + Sync>,
    pub locate: Locate,
    /// All members know this level, at least.
    pub level: Arc<dyn Fn() -> Level + Send + Sync>,
    pub runtime: Handle,
}

/// The possible fate of a call before it is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    NotBegun,
    /// The call was under way when this member stopped serving: it may have had its effect.
    Unknown,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Forwarder {
    /// `None` in a group of one: there is nobody to hand a call to, and nothing to wait for.
    inner: Option<Arc<Inner>>,
}

struct Inner {
    parts: Parts,
    redirect: OnceLock<Redirect>,
    links: Links,
    counts: Counts,
    /// True once this server is on its way out.
    closing: watch::Sender<bool>,
}

/// The counts of the calls so far by their fate, and of those that wait now.
#[derive(Debug, Default)]
struct Counts {
    forwarded: AtomicU64,
    repeated: AtomicU64,
    released: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
    /// How long the calls were away that another member has answered.
    away: Times,
}

/// Numbers for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Answered by another member.
    pub forwarded: u64,
    /// Calls that were sent, or begun, a second time under their name.
    pub repeated: u64,
    /// Waited here and then answered here.
    pub released: u64,
    /// Refused because no active was known for too long, or because too many waited.
    pub refused: u64,
    /// Calls that were not sent on, because the client had left.
    pub dropped: u64,
    /// Waiting now for an active.
    pub held: u64,
    /// Here now, waiting or sent on, and the bytes of their requests.
    pub pending: u64,
    pub pending_bytes: u64,
}

impl Numbers {
    pub fn and(self, other: Self) -> Self {
        Self {
            forwarded: self.forwarded + other.forwarded,
            repeated: self.repeated + other.repeated,
            released: self.released + other.released,
            refused: self.refused + other.refused,
            dropped: self.dropped + other.dropped,
            held: self.held + other.held,
            pending: self.pending + other.pending,
            pending_bytes: self.pending_bytes + other.pending_bytes,
        }
    }
}

/// The refusal that says "elsewhere" inside an envelope. It never reaches a client.
const ELSEWHERE: &str = "clover.Elsewhere";
/// The text of that refusal where the call had been begun.
const BEGUN: &str = "begun";
/// Its text where another group answers, in front of that group's number.
const OF_GROUP: &str = "group ";

/// Why a group of one asks nobody.
const ALONE: &str = "this group has one member";

/// The memory that a call costs beside its request, in bytes.
const CALL_BYTES: u64 = 512;
/// How soon a member is asked again that was not ready, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How often to see whether the client still waits for an answer that is on its way.
const LOOK: Duration = Duration::from_secs(1);

/// How a wait has ended.
enum Waited {
    /// The standing has changed.
    ForNews,
    /// It is time to try again.
    TheTime,
    /// Patience has ended.
    TooLong,
}

impl Forwarder {
    pub fn new(parts: Parts) -> Self {
        let (redirect, links, counts, closing) = Default::default();
        Self { inner: Some(Arc::new(Inner { parts, redirect, links, counts, closing })) }
    }

    /// A forwarder for a group of one, which passes nothing on.
    pub fn alone() -> Self {
        Self { inner: None }
    }

    /// Calls that another group answers go this way.
    pub fn set_redirect(&self, redirect: Redirect) {
        if let Some(inner) = &self.inner {
            // It is set once, when the server has its doors.
            let _ = inner.redirect.set(redirect);
        }
    }

    pub fn is_alone(&self) -> bool {
        self.inner.is_none()
    }

    /// Lets go of all calls that are here, and of those that come: what they hold of a server that stops must
    /// not keep its store from being opened again. Their clients find the connection closed.
    pub fn close(&self) {
        if let Some(inner) = &self.inner {
            inner.closing.send_replace(true);
        }
    }

    /// Takes over a call that this member does not, or could not, answer. Returns at once.
    pub fn take(&self, call: Call, reply: Replier, fate: Fate, serve: Serve) {
        if call.is_forwarded {
            // The call has been forwarded once: the server that did so looks for the active again.
            let text = if fate == Fate::Unknown { BEGUN } else { "" };
            return reply.error(RpcError::application(ELSEWHERE, text));
        }
        let Some(inner) = &self.inner else {
            return reply.fs_error(&FsError::NotActive("This metadata server does not serve.".into()));
        };
        let cost = call.request.len() as u64 + CALL_BYTES;
        match inner.parts.hold.enter(&inner.parts.limits, cost) {
            Some(ticket) => {
                self.spawn(inner.clone().carry(call, reply, fate, serve, ticket));
            }
            None => {
                inner.counts.refused.fetch_add(1, Ordering::Relaxed);
                let held = inner.parts.hold.count();
                reply.fs_error(&inner.standby(&call, &format!("{held} calls wait here already")));
            }
        }
    }

    /// Asks the active once, where another member is one. `Err` says why there is no answer.
    pub async fn ask_active(&self, call: &Call, patience: Duration) -> Result<ForwardResponseProto, String> {
        let inner = self.inner.as_ref().ok_or(ALONE)?;
        let seal = inner.parts.seal.as_ref().ok_or("this cluster has no secret")?;
        inner.ask("forward", &inner.close(seal, call), call.origin.client_id, patience).await
    }

    /// Asks the active a question of this server's own, as [`Forwarder::ask_active`] does.
    pub async fn ask<Q, A>(&self, method: &str, question: &Q, patience: Duration) -> Result<A, String>
    where
        Q: Message + Sync,
        A: Message + Default + Name,
    {
        let inner = self.inner.as_ref().ok_or(ALONE)?;
        inner.ask(method, question, ClientId::default(), patience).await
    }

    /// Does this until it is done, or this server is on its way out.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Some(inner) = &self.inner else { return };
        let mut closing = inner.closing.subscribe();
        drop(inner.parts.runtime.spawn(async move {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => {}
                () = work => {}
            }
        }));
    }

    /// How long the calls were away that another member has answered, waiting for an active included.
    pub fn times_away(&self) -> Figures {
        self.inner.as_ref().map(|inner| inner.counts.away.figures()).unwrap_or_default()
    }

    pub fn runtime(&self) -> Option<&Handle> {
        self.inner.as_ref().map(|inner| &inner.parts.runtime)
    }

    pub fn numbers(&self) -> Numbers {
        let Some(inner) = &self.inner else { return Numbers::default() };
        let counts = &inner.counts;
        Numbers {
            forwarded: counts.forwarded.load(Ordering::Relaxed),
            repeated: counts.repeated.load(Ordering::Relaxed),
            released: counts.released.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
            held: counts.waiting.load(Ordering::Relaxed),
            pending: inner.parts.hold.count(),
            pending_bytes: inner.parts.hold.bytes(),
        }
    }
}

/// Whether this answer is "elsewhere", made by [`Forwarder::take`] over there.
pub fn is_elsewhere(error: &RpcError) -> bool {
    error.class == ELSEWHERE
}

/// The refusal that says "another group answers".
pub fn of_group(group: GroupId) -> RpcError {
    RpcError::application(ELSEWHERE, format!("{OF_GROUP}{group}"))
}

/// The group that this "elsewhere" names.
pub(super) fn group_in(error: &RpcError) -> Option<GroupId> {
    let group = error.message.strip_prefix(OF_GROUP).filter(|_| is_elsewhere(error))?;
    group.parse().ok().map(GroupId)
}

/// Whether the call may have had its effect where this "elsewhere" was said.
pub fn was_begun(error: &RpcError) -> bool {
    is_elsewhere(error) && error.message == BEGUN
}

/// The result of sending a call on.
enum Sent {
    Answered(ForwardResponseProto),
    /// The other member refused the envelope itself.
    Refused(RpcError),
    NotBegun,
    Unknown,
}

impl Inner {
    /// `client`: whose call the question is about, if it is about one.
    async fn ask<Q, A>(
        &self,
        method: &str,
        question: &Q,
        client: ClientId,
        patience: Duration,
    ) -> Result<A, String>
    where
        Q: Message + Sync,
        A: Message + Default + Name,
    {
        let (member, address) = (self.parts.locate)().ok_or("no active is known")?;
        if member == self.parts.me {
            return Err("no other member leads".into());
        }
        let asked = self.links.to(self.parts.me, member, &address, client);
        let mut standing = self.parts.standing.clone();
        let sent_in = standing.borrow_and_update().epoch;
        let another_leads =
            standing.wait_for(|now| now.epoch > sent_in || now.active.is_some_and(|active| active != member));
        tokio::select! {
            biased;
            answer = tokio::time::timeout(patience, asked.call(method, question)) => answer
                .map_err(|_| format!("member {member} at {address} did not answer within {patience:?}"))?
                .map_err(|error| format!("member {member} at {address}: {error}")),
            // A member that is frozen breaks no connection.
            _ = another_leads => Err(format!("member {member} leads no more")),
        }
    }

    fn close(&self, seal: &Seal, call: &Call) -> ForwardRequestProto {
        envelope::close(seal, &self.parts.scope, self.parts.me, call, (self.parts.level)())
    }

    async fn carry(
        self: Arc<Self>,
        mut call: Call,
        reply: Replier,
        fate: Fate,
        serve: Serve,
        ticket: Ticket,
    ) {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(self.parts.limits.wait_ms);
        let mut standing = self.parts.standing.clone();
        call.origin.repeats += u32::from(fate == Fate::Unknown);
        let mut pause = PAUSE_MIN;
        loop {
            if reply.is_abandoned() {
                // Another copy of the call may be on its way from the client, and other calls behind that.
                return self.count(|counts| &counts.dropped);
            }
            standing.mark_unchanged();
            if (self.parts.is_serving)() {
                self.count(|counts| &counts.released);
                drop(ticket);
                return serve(call, reply);
            }
            let active = (self.parts.locate)().filter(|(member, _)| *member != self.parts.me);
            if let Some((seal, (member, address))) = self.parts.seal.as_ref().zip(active.as_ref()) {
                let request = self.close(seal, &call);
                let client = self.links.to(self.parts.me, *member, address, call.origin.client_id);
                match self.send(&client, &request, &reply, *member, &mut standing).await {
                    Sent::Answered(answer) if !answer.is_elsewhere() => {
                        self.count(|counts| &counts.forwarded);
                        self.counts.away.record_ns(began.elapsed().as_nanos() as u64);
                        return pass_on(answer, reply);
                    }
                    Sent::Refused(error) => return reply.error(error),
                    Sent::Answered(ForwardResponseProto { group: Some(group), .. }) => {
                        drop(ticket);
                        // That group may not have the directories yet by which this one goes.
                        sleep(PAUSE_MIN).await;
                        return self.redirect(GroupId(group), call, reply);
                    }
                    Sent::Answered(answer) => call.origin.repeats += u32::from(answer.is_begun()),
                    Sent::NotBegun => {}
                    Sent::Unknown => {
                        self.count(|counts| &counts.repeated);
                        call.origin.repeats += 1;
                        if standing.has_changed().unwrap_or(false) {
                            pause = PAUSE_MIN;
                            continue;
                        }
                    }
                }
            }
            let until_asked_again = active.is_some().then_some(pause);
            pause = match self.wait(&mut standing, until_asked_again, deadline).await {
                // A member that has just been elected is ready in some milliseconds, however long it took until then.
                Waited::ForNews => PAUSE_MIN,
                Waited::TheTime => (pause * 2).min(PAUSE_MAX),
                Waited::TooLong => break,
            };
        }
        self.count(|counts| &counts.refused);
        let waited = self.parts.limits.wait_ms;
        let whose = self.parts.other_group.map_or(String::new(), |group| format!(" of group {group}"));
        reply.fs_error(&self.standby(&call, &format!("no member{whose} has led for {waited} ms")));
    }

    /// Waits until the standing has changed, or it is time to try again.
    async fn wait(
        &self,
        standing: &mut watch::Receiver<Standing>,
        pause: Option<Duration>,
        deadline: Instant,
    ) -> Waited {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        // A client that leaves is noticed after a while.
        let pause = pause.unwrap_or(LOOK);
        let waited = tokio::select! {
            biased;
            changed = standing.changed() => if changed.is_ok() { Waited::ForNews } else { Waited::TooLong },
            () = sleep_until(deadline) => Waited::TooLong,
            () = sleep(pause) => Waited::TheTime,
        };
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        if Instant::now() < deadline { waited } else { Waited::TooLong }
    }

    async fn send(
        &self,
        client: &Client,
        request: &ForwardRequestProto,
        reply: &Replier,
        member: MemberId,
        standing: &mut watch::Receiver<Standing>,
    ) -> Sent {
        let mut answer = pin!(client.call::<_, ForwardResponseProto>("forward", request));
        let sent_in = standing.borrow().epoch;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(answer) => Sent::Answered(answer),
                    Err(CallError::Connect(_)) => Sent::NotBegun,
                    Err(CallError::Remote { class, message }) => {
                        Sent::Refused(RpcError::application(class, message))
                    }
                    Err(CallError::Io(_) | CallError::Timeout { .. } | CallError::Decode(_)) => Sent::Unknown,
                },
                changed = standing.changed() => {
                    // A member that is frozen breaks no connection: that another leads says enough.
                    let now = standing.borrow();
                    let still = now.epoch <= sent_in && now.active.is_none_or(|active| active == member);
                    if changed.is_err() || !still {
                        return Sent::Unknown;
                    }
                }
                () = sleep(LOOK) => if reply.is_abandoned() {
                    return Sent::Unknown;
                },
            }
        }
    }

    fn redirect(&self, group: GroupId, call: Call, reply: Replier) {
        match self.redirect.get() {
            Some(redirect) => redirect(group, call, reply),
            None => reply.fs_error(&self.standby(&call, &format!("group {group} answers it"))),
        }
    }

    fn standby(&self, call: &Call, why: &str) -> FsError {
        FsError::NotActive(format!(
            "Operation {} is not supported in state standby: {why} (member {}).",
            call.method, self.parts.me
        ))
    }

    fn count(&self, which: impl Fn(&Counts) -> &AtomicU64) {
        which(&self.counts).fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives the client what the active has answered.
pub fn pass_on(answer: ForwardResponseProto, mut reply: Replier) {
    if let Some(state_id) = answer.state_id {
        reply.set_state_id(state_id);
    }
    match (answer.refusal, answer.response) {
        (Some(refusal), _) => reply.error(envelope::refusal_from_proto(refusal)),
        (None, response) => {
            let response = response.unwrap_or_default();
            reply.ok_encoded(response.len(), |out| out.extend_from_slice(&response));
        }
    }
}
