//! The interface of a service: a call comes in, a reply goes out.

use crate::{
    RpcError,
    server::{Outbox, Paid},
};
use base::{CallOrigin, Caller, FsError, Moment, ReadPoint};
use bytes::{Bytes, BytesMut};
use env::clock::{Clock, SystemClock};
use measures::Measured;
use proto::rpc_frame::ReplyTo;
use std::{net::SocketAddr, sync::Arc};

/// The methods behind a port.
///
/// [`Service::call`] runs on the task that reads the connection, and all other calls of the connection wait for it to
/// return: it must not block. A method that takes longer moves its [`Replier`] elsewhere.
pub trait Service: Send + Sync + 'static {
    /// The protocols served, by Hadoop's name, and the version of each.
    fn protocols(&self) -> &[(&'static str, u64)];

    /// Handles one call of a protocol listed and of a method that [`Service::method`] knows.
    fn call(&self, call: Call, reply: Replier);

    /// The name of a method as the protocol's definition spells it, `None` for one it lacks. Services with
    /// protocols of their own answer for these.
    fn method(&self, protocol: &'static str, name: &str) -> Option<&'static str> {
        proto::protocol::method(protocol, name)
    }
}

/// One call, its request not yet decoded.
#[derive(Clone, Debug)]
pub struct Call {
    pub protocol: &'static str,
    pub method: &'static str,
    /// The bytes of the request message.
    pub request: Bytes,
    pub caller: Arc<Caller>,
    pub origin: CallOrigin,
    pub peer: SocketAddr,
    /// The number of the connection: one that is made later has a higher one. 0 for calls that came another way.
    pub connection: u64,
    /// The newest state of the namespace that the client has seen, if it cares.
    pub state_id: Option<i64>,
    /// The name that the client's program gives itself, for the audit log.
    pub caller_context: Option<Arc<str>>,
    /// Whether another server of the cluster has passed the call on, which has looked at the client's proofs. Only what opens an envelope
    /// of such a server says so. Where the answer goes is another matter: the [`Replier`] knows it.
    pub is_forwarded: bool,
    /// The call concerns all groups of a cluster, and this one is asked for its part alone. Only a server that takes a call apart says so.
    pub is_part: bool,
    /// How many groups have passed the call back because another one decides it.
    pub redirects: u16,
    /// A member that does not lead answers this read from a tree that shows everything up to this point. Only that member itself sets it.
    pub read_point: Option<ReadPoint>,
}

impl Call {
    /// A call that a server makes of itself, and that no connection has brought.
    pub fn of_server(
        protocol: &'static str,
        method: &'static str,
        request: Bytes,
        caller: Arc<Caller>,
        origin: CallOrigin,
    ) -> Self {
        Self {
            protocol,
            method,
            request,
            caller,
            origin,
            peer: SocketAddr::from(([127, 0, 0, 1], 0)),
            connection: 0,
            state_id: None,
            caller_context: None,
            is_forwarded: false,
            is_part: false,
            redirects: 0,
            read_point: None,
        }
    }

    /// Decodes the request, its required fields checked.
    ///
    /// # Errors
    /// The request does not decode, lacks a required field, or holds a text that is not UTF-8. Malformed bytes end
    /// the connection; the others are refused as a call: see [`RpcError::request_decoding`].
    pub fn decode<M: prost::Message + Default + prost::Name>(&self) -> Result<M, RpcError> {
        proto::decode(self.request.clone()).map_err(|error| RpcError::request_decoding(&error))
    }
}

/// The one chance to answer a call, from any thread at any time. Dropped unanswered, it sends an error: a client
/// never waits for a reply that will not be sent.
#[must_use = "a call wants an answer"]
pub struct Replier {
    /// Taken by the answer.
    way: Option<Way>,
    state_id: Option<i64>,
    /// Sees the answer before it goes out.
    watch: Option<Watch>,
    /// Taken by the answer. Only calls that came over a connection are measured.
    measured: Option<Measured>,
}

type Watch = Box<dyn FnOnce(Result<&Bytes, &RpcError>) + Send + Sync>;

/// The way that an answer takes.
enum Way {
    /// The reply goes to a connection, and the memory of the call's bytes is kept until then.
    Connection(ReplyTo, Arc<Outbox>, Arc<Paid>),
    Captured(Box<dyn FnOnce(Answer) + Send + Sync>),
}

/// The reason why a call has no response.
#[derive(Debug)]
pub enum NoResponse {
    /// The service has refused it.
    Refused(RpcError),
    /// The service has dropped it without an answer.
    GivenUp,
}

/// A service's answer to a call that came inside another call instead of on a connection of its own.
#[derive(Debug)]
pub struct Answer {
    /// The bytes of the response message.
    pub result: Result<Bytes, NoResponse>,
    pub state_id: Option<i64>,
}

impl Replier {
    /// `None` where the connection has ended.
    pub(crate) fn new(
        to: ReplyTo,
        outbox: &Arc<Outbox>,
        paid: Arc<Paid>,
        measured: Measured,
    ) -> Option<Self> {
        let state_id = to.state_id;
        outbox.expect_one().then(|| Self {
            way: Some(Way::Connection(to, Arc::clone(outbox), paid)),
            state_id,
            watch: None,
            measured: Some(measured),
        })
    }

    /// A replier for a call that has no connection of its own, such as one that came inside another call: `take` gets the answer.
    pub fn captured(take: impl FnOnce(Answer) + Send + Sync + 'static) -> Self {
        Self { way: Some(Way::Captured(Box::new(take))), state_id: None, watch: None, measured: None }
    }

    /// Lets `watch` see the bytes of the response message, or the refusal, before it goes out.
    pub fn watched(mut self, watch: impl FnOnce(Result<&Bytes, &RpcError>) + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Gives up the watch over a call that another part of the program answers and watches.
    pub fn unwatched(mut self) -> Self {
        self.watch = None;
        self
    }

    /// The call has waited until `now`, and is taken up by the thread that carries it out.
    pub fn taken_up(&mut self, now: Moment) {
        if let Some(measured) = &mut self.measured {
            measured.taken_up(now);
        }
    }

    /// The answer is made.
    fn measure(&mut self, is_refused: bool) {
        let (Some(measured), Some(Way::Connection(_, outbox, _))) = (self.measured.take(), &self.way) else {
            return;
        };
        let now = SystemClock.moment();
        outbox.note_answer(now);
        measured.answered(now, is_refused);
    }

    /// Whether the client no longer waits for the answer: the client has closed the connection, or it broke.
    pub fn is_abandoned(&self) -> bool {
        matches!(&self.way, Some(Way::Connection(_, outbox, _)) if outbox.is_abandoned())
    }

    /// The state of the namespace that the reply will show, for clients that read from standbys.
    pub fn set_state_id(&mut self, state_id: i64) {
        self.state_id = Some(state_id);
    }

    pub fn ok(self, response: &impl prost::Message) {
        self.ok_encoded(response.encoded_len(), |out| response.encode_raw(out));
    }

    /// Answers with a response of exactly `length` bytes that `put` appends. `put` runs while the
    /// connection's replies wait, so it only copies.
    pub fn ok_encoded(mut self, length: usize, put: impl FnOnce(&mut BytesMut)) {
        let Some(watch) = self.watch.take() else { return self.send_encoded(length, put) };
        let mut response = BytesMut::with_capacity(length);
        put(&mut response);
        let response = response.freeze();
        watch(Ok(&response));
        self.send_encoded(length, |out| out.extend_from_slice(&response));
    }

    fn send_encoded(&mut self, length: usize, put: impl FnOnce(&mut BytesMut)) {
        self.measure(false);
        match self.way.take() {
            Some(Way::Connection(to, outbox, paid)) => {
                // Before the connection hears of the answer: it may wait for this memory.
                drop(paid);
                outbox.succeed(ReplyTo { state_id: self.state_id, ..to }, length, put);
            }
            Some(Way::Captured(take)) => {
                let mut response = BytesMut::with_capacity(length);
                put(&mut response);
                take(Answer { result: Ok(response.freeze()), state_id: self.state_id });
            }
            None => {}
        }
    }

    pub fn fs_error(self, error: &FsError) {
        self.error(error.into());
    }

    pub fn error(mut self, error: RpcError) {
        self.refuse(error);
    }

    /// Answers with either.
    pub fn result<M: prost::Message>(self, result: Result<M, RpcError>) {
        match result {
            Ok(response) => self.ok(&response),
            Err(error) => self.error(error),
        }
    }

    fn refuse(&mut self, error: RpcError) {
        self.measure(true);
        if let Some(watch) = self.watch.take() {
            watch(Err(&error));
        }
        match self.way.take() {
            Some(Way::Connection(to, outbox, paid)) => {
                // Before the connection hears of the answer: it may wait for this memory.
                drop(paid);
                outbox.refuse(ReplyTo { state_id: self.state_id, ..to }, &error);
            }
            Some(Way::Captured(take)) => {
                take(Answer { result: Err(NoResponse::Refused(error)), state_id: self.state_id });
            }
            None => {}
        }
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        if self.way.is_none() {
            return;
        }
        self.measure(true);
        let error = RpcError::application(proto::exception::IO, GIVEN_UP);
        if let Some(watch) = self.watch.take() {
            watch(Err(&error));
        }
        match self.way.take() {
            Some(Way::Connection(to, outbox, paid)) => {
                // Before the connection hears of the answer: it may wait for this memory.
                drop(paid);
                outbox.give_up(ReplyTo { state_id: self.state_id, ..to }, &error);
            }
            Some(Way::Captured(take)) => {
                take(Answer { result: Err(NoResponse::GivenUp), state_id: self.state_id })
            }
            None => {}
        }
    }
}

/// The message to a client whose call was dropped without an answer.
const GIVEN_UP: &str = "The server gave up the call.";
