//! One connection of a server: bytes in, calls to the service, replies out.
//!
//! A single task owns the socket. It reads what is there, runs every whole frame of it through the service
//! in place, then writes all the replies at once. It goes on writing while it reads, so a client that sends
//! much before it reads anything is not stuck; but it reads no more while too many replies or calls are
//! pending.

use super::{
    Outbox, Shared,
    negotiation::Negotiation,
    outbox::Glance,
    room::{Inbox, SHORT_BYTES_MAX, Space},
};
use crate::{Call, Replier, RpcError};
use base::{CallId, CallOrigin, Caller, ClientId, Moment};
use bytes::{Buf, Bytes, BytesMut};
use env::clock::{Clock, SystemClock};
use measures::Desk;
use proto::{
    common::IpcConnectionContextProto,
    exception,
    rpc_frame::{
        self, CALL_CONNECTION_CONTEXT, CALL_INVALID, CALL_PING, CALL_SASL, ErrorCode, HTTP_ON_RPC_PORT,
        KIND_PROTOCOL_BUFFER, PREAMBLE_LENGTH, Preamble, RETRY_COUNT_UNKNOWN, ReplyTo, RequestHeader,
        frame_length, parse_call_header, parse_preamble, parse_request_header, put_success,
        put_version_mismatch,
    },
    wire::Cursor,
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// A buffer for replies that grew beyond this is given back once it is empty.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// How many bytes buy a long frame one second more.
const FRAME_BYTES_A_SECOND: usize = 64 << 10;

/// The bytes per second that a frame must make while other requests wait for the memory that it holds. This allows
/// for a client with a slow line, and not for one with a slow disk.
const FRAME_BYTES_A_SECOND_CONTENDED: usize = 1 << 20;

/// The longest frame before a connection has said who calls: tokens and names.
const SETUP_FRAME_BYTES_MAX: usize = SHORT_BYTES_MAX;

pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    number: u64,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    phase: Phase,
    inbox: Inbox,
    /// Replies being written.
    backlog: BytesMut,
    /// When the frame at the start of `inbox`, or the set-up of the connection, began.
    begun: Option<Instant>,
    /// When the last bytes came.
    heard: Instant,
    /// Since when the frame that arrives waits for memory.
    wanted: Option<Instant>,
    /// When the socket last took bytes of the backlog.
    wrote: Instant,
    /// How much of the backlog the server's sum has.
    settled: usize,
    /// The client sends no more, or nothing more is to be heard from it.
    deaf: bool,
    desk: Desk,
    /// One instant on both clocks. A second look at a clock for each read is spared by it.
    began: (Instant, Moment),
}

enum Phase {
    Preamble,
    /// Before the connection context.
    SetUp(Negotiation),
    Open {
        caller: Arc<Caller>,
        /// The protocol and version of the last call. Most calls of a connection are for the same protocol, so this
        /// spares a search.
        last_protocol: Option<(&'static str, u64)>,
        last_context: Option<Arc<str>>,
    },
}

/// A refusal and the call it answers.
struct Refusal {
    to: ReplyTo,
    error: RpcError,
}

const TO_NO_CALL: ReplyTo =
    ReplyTo { call_id: -1, client_id: None, retry_count: RETRY_COUNT_UNKNOWN, state_id: None };

impl Connection {
    /// `number`: rises from one connection to the next.
    pub(super) fn new(
        stream: TcpStream,
        (peer, number): (SocketAddr, u64),
        shared: Arc<Shared>,
        outbox: Arc<Outbox>,
    ) -> Self {
        let now = Instant::now();
        Self {
            stream,
            peer,
            number,
            inbox: Inbox::new(Arc::clone(&shared.room)),
            desk: Desk::new(Arc::clone(&shared.calls), number),
            began: (now, SystemClock.moment()),
            shared,
            outbox,
            phase: Phase::Preamble,
            backlog: BytesMut::new(),
            begun: Some(now),
            heard: now,
            wanted: None,
            wrote: now,
            settled: 0,
            deaf: false,
        }
    }

    pub(super) async fn run(mut self) -> io::Result<()> {
        loop {
            let glance = self.outbox.drain(&mut self.backlog);
            self.write()?;
            self.settle_replies();
            let written = self.backlog.is_empty();
            if glance.shut || (written && self.is_over(&glance)) {
                return self.close().await;
            }
            let may_read = self.is_reading(&glance);
            let wants = if may_read { !self.has_space() } else { self.wanted.is_some() };
            let reading = may_read && !wants;
            let deadline = self.deadline();
            let is_stranger = !matches!(self.phase, Phase::Open { .. });
            if !self.outbox.doze(self.heard.max(self.wrote), is_stranger) {
                continue;
            }
            let event = tokio::select! {
                biased;
                () = self.outbox.woken() => Event::Replies,
                ready = self.stream.readable(), if reading => { ready?; Event::Readable }
                () = self.inbox.wait(), if wants => Event::Space,
                ready = self.stream.writable(), if !written => { ready?; Event::Writable }
                () = sleep_until(deadline), if deadline.is_some() => Event::Deadline,
            };
            self.outbox.attend();
            match event {
                Event::Replies | Event::Writable => {}
                Event::Space => self.on_space(),
                Event::Readable => self.read()?,
                Event::Deadline => self.on_deadline()?,
            }
        }
    }

    /// Whether the connection is at its end: nothing is left to write, and nothing can come.
    fn is_over(&self, glance: &Glance) -> bool {
        glance.ended || (self.deaf && glance.in_flight == 0)
    }

    fn is_reading(&self, glance: &Glance) -> bool {
        let limits = &self.shared.limits;
        let unread_max = match self.shared.room.is_short_of_replies() {
            true => KEPT_BYTES_MAX.min(limits.reply_bytes_max),
            false => limits.reply_bytes_max,
        };
        !self.deaf
            && !glance.ended
            && self.backlog.len() < unread_max
            && glance.in_flight < limits.calls_in_flight_max
    }

    /// Tells the server how much waits for this client to read it.
    fn settle_replies(&mut self) {
        let now = self.backlog.len();
        if now != self.settled {
            self.shared.room.settle_replies(self.settled, now);
            self.settled = now;
        }
    }

    /// Whether there is memory for what comes next, which is asked for otherwise.
    fn has_space(&mut self) -> bool {
        let frame = match self.phase {
            Phase::Preamble => None,
            // Lengths that are refused were refused when they came.
            _ => frame_length(self.inbox.bytes(), self.frame_bytes_max()).ok().flatten(),
        };
        let is_ready = self.inbox.make_space(frame) == Space::Ready;
        match is_ready {
            true if self.wanted.is_some() => self.on_space(),
            false if self.wanted.is_none() => self.wanted = Some(Instant::now()),
            _ => {}
        }
        is_ready
    }

    /// The time that the frame has waited is not its client's fault.
    fn on_space(&mut self) {
        self.wanted = None;
        self.heard = Instant::now();
        self.begun = self.begun.map(|_| self.heard);
    }

    fn frame_bytes_max(&self) -> usize {
        match self.phase {
            Phase::Open { .. } => self.shared.limits.frame_bytes_max,
            _ => self.shared.limits.frame_bytes_max.min(SETUP_FRAME_BYTES_MAX),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let limits = &self.shared.limits;
        let reading = match (self.wanted, self.begun) {
            _ if self.deaf => None,
            // A chunk that waits for its own connection's calls may wait as long as those do.
            (Some(wanted), _) => self.inbox.is_waiting_for_others().then(|| wanted + limits.frame_deadline),
            (None, Some(begun)) => {
                let rate = match self.shared.room.is_contended() {
                    true => FRAME_BYTES_A_SECOND_CONTENDED,
                    false => FRAME_BYTES_A_SECOND,
                };
                let earned = Duration::from_secs((self.inbox.bytes().len() / rate) as u64);
                Some((begun + limits.frame_deadline + earned).min(self.heard + limits.frame_deadline))
            }
            (None, None) => None,
        };
        let writing = (!self.backlog.is_empty()).then(|| self.wrote + limits.write_deadline);
        reading.into_iter().chain(writing).min()
    }

    fn on_deadline(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let limits = &self.shared.limits;
        if !self.backlog.is_empty() && now >= self.wrote + limits.write_deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its replies"));
        }
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            let seconds = limits.frame_deadline.as_secs_f32();
            let error = match self.wanted {
                Some(_) => RpcError::fatal(
                    ErrorCode::FatalUnknown,
                    exception::RETRIABLE,
                    format!(
                        "The requests that are being answered take {} bytes, and for {seconds} s there was no                          room for one more long request; try again in a moment.",
                        self.shared.room.request_bytes()
                    ),
                ),
                None => RpcError::invalid_header(format!(
                    "a frame, and the set-up of a connection, must be complete within {seconds} s"
                )),
            };
            self.refuse(Refusal { to: TO_NO_CALL, error });
            self.go_deaf();
        }
        Ok(())
    }

    /// Stops reading from this client, and drops what was read of an incomplete frame.
    fn go_deaf(&mut self) {
        self.deaf = true;
        self.inbox.clear();
    }

    /// Writes as much as the socket takes now.
    fn write(&mut self) -> io::Result<()> {
        while !self.backlog.is_empty() {
            match self.stream.try_write(&self.backlog) {
                Ok(count) => {
                    self.shared.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
                    self.backlog.advance(count);
                    self.wrote = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.backlog.capacity() > KEPT_BYTES_MAX {
            self.backlog = BytesMut::new();
        }
        Ok(())
    }

    /// Reads once and handles every frame that is whole.
    fn read(&mut self) -> io::Result<()> {
        // There is space, or it would not be read: the buffer does not grow here.
        match self.stream.try_read_buf(self.inbox.bytes_mut()) {
            Ok(0) => {
                self.go_deaf();
                self.outbox.leave();
                Ok(())
            }
            Ok(count) => {
                self.shared.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
                self.heard = Instant::now();
                self.on_bytes();
                if self.deaf {
                    self.inbox.clear();
                }
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn on_bytes(&mut self) {
        if matches!(self.phase, Phase::Preamble) && !self.on_preamble() {
            return;
        }
        let mut advanced = false;
        while !self.deaf {
            match frame_length(self.inbox.bytes(), self.frame_bytes_max()) {
                Ok(Some(length)) if self.inbox.bytes().len() - 4 >= length => {
                    self.inbox.bytes_mut().advance(4);
                    let frame = self.inbox.bytes_mut().split_to(length).freeze();
                    advanced = true;
                    if let Err(refusal) = self.on_frame(&frame) {
                        self.refuse(refusal);
                    }
                }
                Ok(_) => break,
                Err(error) => {
                    let setting_up = match self.phase {
                        Phase::Open { .. } => "",
                        _ => " for the set-up of a connection",
                    };
                    self.refuse(Refusal {
                        to: TO_NO_CALL,
                        error: RpcError::invalid_header(format!("{error}{setting_up}")),
                    });
                }
            }
        }
        self.inbox.shrink();
        if !matches!(self.phase, Phase::Open { .. }) {
            // The clock of the set-up runs until its end.
        } else if self.inbox.bytes().is_empty() {
            self.begun = None;
        } else if advanced || self.begun.is_none() {
            self.begun = Some(Instant::now());
        }
    }

    /// True once the client has shown that it speaks Hadoop's framing.
    fn on_preamble(&mut self) -> bool {
        let preamble = parse_preamble(self.inbox.bytes());
        match preamble {
            Preamble::Partial => return false,
            Preamble::Hadoop { auth, .. } => {
                self.inbox.bytes_mut().advance(PREAMBLE_LENGTH);
                self.phase = Phase::SetUp(Negotiation::new(auth));
                return true;
            }
            Preamble::UnknownAuth(auth) => {
                let message = format!("Unknown auth protocol:{}", auth as i8);
                let error = RpcError::fatal(ErrorCode::FatalUnauthorized, exception::IPC, message);
                self.refuse(Refusal { to: TO_NO_CALL, error });
            }
            Preamble::OtherVersion(version) => self.outbox.put(|out| put_version_mismatch(out, version)),
            Preamble::Http => {
                let hint = self.shared.http_hint.as_deref().map(|hint| format!("WebHDFS is on {hint}.\r\n"));
                self.outbox.put(|out| {
                    out.extend_from_slice(HTTP_ON_RPC_PORT.as_bytes());
                    out.extend_from_slice(hint.unwrap_or_default().as_bytes());
                });
            }
            Preamble::Tls | Preamble::Foreign(_) => {
                let hint = self.shared.http_hint.as_deref().map(|hint| format!("; WebHDFS is on {hint}"));
                let line = format!("This is a Hadoop RPC port, without TLS{}.\r\n", hint.unwrap_or_default());
                self.outbox.put(|out| out.extend_from_slice(line.as_bytes()));
            }
        }
        self.deaf = true;
        false
    }

    fn on_frame(&mut self, frame: &Bytes) -> Result<(), Refusal> {
        let mut cursor = Cursor::new(frame);
        let header = parse_request_header(&mut cursor).map_err(|error| Refusal {
            to: TO_NO_CALL,
            error: RpcError::header_decoding("RpcRequestHeaderProto", &error),
        })?;
        let to = ReplyTo {
            call_id: header.call_id,
            client_id: header.client_id.try_into().ok().map(ClientId),
            retry_count: header.retry_count,
            state_id: None,
        };
        let refused = |error| Refusal { to, error };
        rpc_frame::check_header(&header).map_err(|error| refused(RpcError::invalid_header(error)))?;

        if header.call_id < 0 {
            let rest = rest_of(frame, cursor);
            return self.on_out_of_band(header.call_id, rest).map_err(refused);
        }
        self.on_call(&header, to, frame, cursor).map_err(refused)
    }

    fn on_out_of_band(&mut self, call_id: i32, rest: Bytes) -> Result<(), RpcError> {
        match call_id {
            CALL_PING => Ok(()),
            CALL_CONNECTION_CONTEXT => self.on_connection_context(rest),
            CALL_SASL => {
                let Phase::SetUp(negotiation) = &mut self.phase else {
                    return Err(RpcError::invalid_header("SASL protocol not requested by client"));
                };
                let answer = negotiation.on_message(message_of(&rest, "RpcSaslProto")?)?;
                let to = ReplyTo { call_id: CALL_SASL, ..TO_NO_CALL };
                let length = prost::Message::encoded_len(&answer);
                self.outbox.put(|out| {
                    put_success(out, to, length, |out| prost::Message::encode_raw(&answer, out));
                });
                Ok(())
            }
            CALL_INVALID => Err(RpcError::invalid_header("call id -2 is the invalid one")),
            other => Err(RpcError::invalid_header(format!("Unknown out of band call #{other}"))),
        }
    }

    fn on_connection_context(&mut self, rest: Bytes) -> Result<(), RpcError> {
        let Phase::SetUp(negotiation) = &self.phase else {
            return Err(RpcError::invalid_header("Connection context already processed"));
        };
        if !negotiation.is_settled() {
            return Err(RpcError::invalid_header("Connection header sent during SASL negotiation"));
        }
        let name = "IpcConnectionContextProto";
        let context: IpcConnectionContextProto = proto::decode(message_of(&rest, name)?)
            .map_err(|error| RpcError::header_decoding(name, &error))?;
        let user = context.user_info.unwrap_or_default();
        let caller = self.resolve(user.effective_user(), user.real_user.as_deref())?;
        self.phase = Phase::Open { caller, last_protocol: None, last_context: None };
        self.begun = None;
        Ok(())
    }

    fn resolve(&self, user: &str, real_user: Option<&str>) -> Result<Arc<Caller>, RpcError> {
        let unauthorized =
            |class, message: String| RpcError::fatal(ErrorCode::FatalUnauthorized, class, message);
        if user.is_empty() {
            return Err(unauthorized(exception::ACCESS_CONTROL, "the connection names no user".into()));
        }
        // To act for oneself is to act.
        let real_user = real_user.filter(|real| !real.is_empty() && *real != user);
        match (&self.shared.caller_resolver, real_user) {
            (Some(resolve), _) => resolve(user, real_user, self.peer.ip()),
            (None, None) => Ok(Arc::new(Caller::simple(user, &[]))),
            (None, Some(real_user)) => Err(unauthorized(
                exception::AUTHORIZATION,
                format!("User: {real_user} is not allowed to impersonate {user}"),
            )),
        }
    }

    fn on_call(
        &mut self,
        header: &RequestHeader<'_>,
        to: ReplyTo,
        frame: &Bytes,
        mut cursor: Cursor<'_>,
    ) -> Result<(), RpcError> {
        let Phase::Open { caller, last_protocol, last_context } = &mut self.phase else {
            return Err(RpcError::invalid_header("Connection context not established"));
        };
        if header.kind != Some(KIND_PROTOCOL_BUFFER) {
            let message = format!("Unknown rpc kind in rpc header {}", header.kind.unwrap_or(-1));
            return Err(RpcError::invalid_header(message));
        }
        let Some(client_id) = to.client_id else {
            let message =
                format!("Invalid clientId - length is {} expected length 16", header.client_id.len());
            return Err(RpcError::invalid_header(message));
        };
        let call = parse_call_header(&mut cursor)
            .map_err(|error| RpcError::header_decoding("RequestHeaderProto", &error))?;

        let service = &self.shared.service;
        let (protocol, version) = match *last_protocol {
            Some(last) if last.0 == call.protocol => last,
            _ => *service
                .protocols()
                .iter()
                .find(|(name, _)| *name == call.protocol)
                .ok_or_else(|| RpcError::no_such_protocol(call.protocol))?,
        };
        *last_protocol = Some((protocol, version));
        if version != call.version {
            return Err(RpcError::protocol_version(protocol, call.version, version));
        }
        let method = service
            .method(protocol, call.method)
            .ok_or_else(|| RpcError::no_such_method(call.method, protocol))?;
        let request = cursor.delimited().map_err(|error| RpcError::request_decoding(&error))?;

        let caller_context = header.caller_context.map(|context| match last_context {
            Some(last) if **last == *context => Arc::clone(last),
            _ => Arc::clone(last_context.insert(context.into())),
        });
        let call = Call {
            protocol,
            method,
            request: frame.slice_ref(request),
            caller: Arc::clone(caller),
            origin: CallOrigin {
                client_id,
                call_id: CallId(header.call_id),
                retry_count: header.retry_count,
                repeats: 0,
                address: Some(self.peer.ip()),
            },
            peer: self.peer,
            connection: self.number,
            state_id: header.state_id,
            caller_context,
            is_forwarded: false,
            is_part: false,
            redirects: 0,
            read_point: None,
        };
        let (instant, moment) = self.began;
        let passed_ns = self.heard.saturating_duration_since(instant).as_nanos() as u64;
        let heard = Moment { ns: moment.ns + passed_ns };
        // A call is taken up when the one before it has been answered, if both came together. That one may be answered later, by another thread:
        // then this call counts as taken up some microseconds too early, and no clock was read for it.
        let taken = heard.max(self.outbox.answered());
        let measured = self.desk.begin(&call.caller.user, protocol, method, heard, taken);
        match Replier::new(to, &self.outbox, self.inbox.paid(), measured) {
            Some(replier) => service.call(call, replier),
            None => self.deaf = true,
        }
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal) {
        tracing::debug!(peer = %self.peer, call = refusal.to.call_id, error = %refusal.error, "refused");
        self.deaf |= refusal.error.status == rpc_frame::Status::Fatal;
        self.outbox.refuse_uncounted(refusal.to, &refusal.error);
    }

    /// Says that no more will come and lets the client read what was sent: a close with unread bytes in the
    /// socket would reset the connection, and the last reply with it.
    async fn close(self) -> io::Result<()> {
        const LINGER: Duration = Duration::from_secs(2);
        const LINGER_BYTES_MAX: usize = 1 << 20;
        // A destructor stands in the way of taking the stream out, and the rest is not to stay as long.
        let mut this = self;
        this.go_deaf();
        this.backlog = BytesMut::new();
        this.settle_replies();
        let stream = &this.stream;
        let socket = socket2::SockRef::from(stream);
        socket.shutdown(std::net::Shutdown::Write)?;
        let discard = async {
            let mut scratch = [0; 4096];
            let mut left = LINGER_BYTES_MAX;
            while left > 0 {
                stream.readable().await?;
                match stream.try_read(&mut scratch) {
                    Ok(0) => break,
                    Ok(count) => left = left.saturating_sub(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        tokio::time::timeout(LINGER, discard).await.unwrap_or(Ok(()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.room.settle_replies(self.settled, 0);
    }
}

enum Event {
    Replies,
    Space,
    Readable,
    Writable,
    Deadline,
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The part of the frame that the cursor has not passed.
fn rest_of(frame: &Bytes, cursor: Cursor<'_>) -> Bytes {
    frame.slice(frame.len() - cursor.rest.len()..)
}

/// The one message that follows the header of an out-of-band step.
fn message_of(rest: &Bytes, name: &str) -> Result<Bytes, RpcError> {
    let message = Cursor::new(rest).delimited().map_err(|error| RpcError::header_decoding(name, &error))?;
    Ok(rest.slice_ref(message))
}
