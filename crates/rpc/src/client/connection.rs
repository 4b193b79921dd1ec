//! One connection of a client: a task that owns the socket, and the calls that wait for it.

use super::{CallIdentity, Inner};
use crate::CallError;
use base::ClientId;
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use proto::{
    DecodeError, exception,
    rpc_frame::{
        AuthProtocol, CallHeader, Status, frame_length, parse_reply, put_connection_context, put_ping,
        put_preamble, put_request,
    },
    wire::Cursor,
};
use std::{
    collections::HashMap,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    sync::{Notify, oneshot},
};

/// The bytes that one read asks for.
const READ_BYTES: usize = 16 << 10;

/// A buffer that grew beyond this is given back once it is empty.
const KEPT_BYTES_MAX: usize = 256 << 10;

pub(super) struct Reply {
    pub response: Bytes,
    pub state_id: Option<i64>,
}

type Outcome = Result<Reply, CallError>;

/// A handle to the connection's task. When the last one is dropped the connection closes.
pub(super) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    /// Whole requests, not yet taken by the task.
    requests: BytesMut,
    waiting: HashMap<i32, oneshot::Sender<Outcome>>,
    /// The task is awake, or has been told to be.
    attended: bool,
    /// No caller holds the connection any more.
    released: bool,
    /// Why the connection ended.
    ended: Option<Ending>,
}

#[derive(Clone)]
enum Ending {
    Broken(io::ErrorKind, String),
    /// A fatal reply: it answers all calls.
    Refused {
        class: String,
        message: String,
    },
}

impl Ending {
    fn error(&self) -> CallError {
        match self.clone() {
            Ending::Broken(kind, message) => CallError::Io(io::Error::new(kind, message)),
            Ending::Refused { class, message } => CallError::Remote { class, message },
        }
    }
}

impl Connection {
    pub(super) async fn open(client: &Inner) -> io::Result<Connection> {
        let stream =
            tokio::time::timeout(client.options.connect_timeout, TcpStream::connect(&client.address))
                .await
                .map_err(|_| {
                    io::Error::new(io::ErrorKind::TimedOut, format!("connecting to {}", client.address))
                })??;
        stream.set_nodelay(true)?;

        let mut state = State::default();
        put_preamble(&mut state.requests, AuthProtocol::None);
        put_connection_context(
            &mut state.requests,
            client.client_id,
            &client.user,
            client.options.real_user.as_deref(),
            &client.protocol,
        );
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Notify::new() });
        let task = Task {
            stream,
            shared: Arc::clone(&shared),
            client_id: client.client_id,
            reply_bytes_max: client.options.reply_bytes_max,
            ping_interval: client.options.ping_interval,
            inbox: BytesMut::new(),
            backlog: BytesMut::new(),
        };
        tokio::spawn(task.run_to_end());
        Ok(Connection { shared })
    }

    pub(super) fn is_live(&self) -> bool {
        self.shared.state.lock().ended.is_none()
    }

    /// Queues a call. The future returned is its answer; dropped, it forgets the call.
    pub(super) fn send(
        &self,
        client_id: ClientId,
        identity: CallIdentity,
        state_id: Option<i64>,
        call: CallHeader<'_>,
        length: usize,
        put: impl FnOnce(&mut BytesMut),
    ) -> Result<Answer, CallError> {
        let call_id = identity.call_id.0;
        let (sender, receiver) = oneshot::channel();
        let wake = {
            let mut state = self.shared.state.lock();
            if let Some(ending) = &state.ended {
                // Found broken before anything was sent.
                return Err(CallError::Connect(io::Error::new(
                    io::ErrorKind::NotConnected,
                    ending.error().to_string(),
                )));
            }
            let (retry_count, out) = (identity.retry_count, &mut state.requests);
            put_request(out, call_id, client_id, retry_count, state_id, call, length, put);
            state.waiting.insert(call_id, sender);
            !std::mem::replace(&mut state.attended, true)
        };
        if wake {
            self.shared.wake.notify_one();
        }
        Ok(Answer { call_id, receiver, has_come: false, shared: Arc::clone(&self.shared) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.state.lock().released = true;
        self.shared.wake.notify_one();
    }
}

/// The answer to a call, when it comes.
pub(super) struct Answer {
    call_id: i32,
    receiver: oneshot::Receiver<Outcome>,
    has_come: bool,
    shared: Arc<Shared>,
}

impl Future for Answer {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.receiver).poll(context).map(|received| {
            self.has_come = true;
            received.unwrap_or_else(|_| {
                let message = "the call was superseded by one of the same id".to_owned();
                Err(CallError::Io(io::Error::other(message)))
            })
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.has_come {
            return;
        }
        self.receiver.close();
        let mut state = self.shared.state.lock();
        if state.waiting.get(&self.call_id).is_some_and(oneshot::Sender::is_closed) {
            state.waiting.remove(&self.call_id);
        }
    }
}

struct Task {
    stream: TcpStream,
    shared: Arc<Shared>,
    client_id: ClientId,
    reply_bytes_max: usize,
    ping_interval: Option<Duration>,
    inbox: BytesMut,
    backlog: BytesMut,
}

/// The state of the connection's queue, as its task finds it.
struct Glance {
    released: bool,
    waiting: usize,
}

impl Task {
    async fn run_to_end(mut self) {
        let ending = match self.run().await {
            Ok(ending) => ending,
            Err(error) => Ending::Broken(error.kind(), error.to_string()),
        };
        let waiting = {
            let mut state = self.shared.state.lock();
            state.ended = Some(ending.clone());
            std::mem::take(&mut state.waiting)
        };
        for (_, sender) in waiting {
            let _ = sender.send(Err(ending.error()));
        }
    }

    async fn run(&mut self) -> io::Result<Ending> {
        loop {
            let glance = self.drain();
            self.write()?;
            let written = self.backlog.is_empty();
            if glance.released {
                return Ok(Ending::Broken(io::ErrorKind::NotConnected, "the client was closed".into()));
            }
            if !self.doze() {
                continue;
            }
            let ping_after = self.ping_interval.filter(|_| glance.waiting > 0);
            let event = tokio::select! {
                biased;
                () = self.shared.wake.notified() => Event::Requests,
                ready = self.stream.readable() => { ready?; Event::Readable }
                ready = self.stream.writable(), if !written => { ready?; Event::Writable }
                () = sleep(ping_after), if ping_after.is_some() => Event::Silence,
            };
            self.shared.state.lock().attended = true;
            match event {
                Event::Requests | Event::Writable => {}
                Event::Silence => put_ping(&mut self.backlog, self.client_id),
                Event::Readable => {
                    if let Some(ending) = self.read()? {
                        return Ok(ending);
                    }
                }
            }
        }
    }

    fn drain(&mut self) -> Glance {
        let mut state = self.shared.state.lock();
        if self.backlog.is_empty() {
            std::mem::swap(&mut self.backlog, &mut state.requests);
        } else if !state.requests.is_empty() {
            self.backlog.extend_from_slice(&state.requests);
            state.requests.clear();
        }
        Glance { released: state.released, waiting: state.waiting.len() }
    }

    fn doze(&self) -> bool {
        let mut state = self.shared.state.lock();
        let nothing = state.requests.is_empty() && !state.released;
        state.attended = !nothing;
        nothing
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.backlog.is_empty() {
            match self.stream.try_write(&self.backlog) {
                Ok(count) => self.backlog.advance(count),
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

    fn read(&mut self) -> io::Result<Option<Ending>> {
        self.inbox.reserve(READ_BYTES.max(self.inbox.len()));
        match self.stream.try_read_buf(&mut self.inbox) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(_) => self.on_bytes(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn on_bytes(&mut self) -> io::Result<Option<Ending>> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        loop {
            match frame_length(&self.inbox, self.reply_bytes_max)
                .map_err(|error| invalid(error.to_string()))?
            {
                Some(length) if self.inbox.len() - 4 >= length => {
                    self.inbox.advance(4);
                    let frame = self.inbox.split_to(length).freeze();
                    let reply = self.on_reply(&frame).map_err(|error| invalid(error.to_string()))?;
                    if reply.is_some() {
                        return Ok(reply);
                    }
                }
                _ => break,
            }
        }
        if self.inbox.is_empty() && self.inbox.capacity() > KEPT_BYTES_MAX {
            self.inbox = BytesMut::new();
        }
        Ok(None)
    }

    fn on_reply(&self, frame: &Bytes) -> Result<Option<Ending>, DecodeError> {
        let mut cursor = Cursor::new(frame);
        let header = parse_reply(&mut cursor)?;
        let class = || header.exception.unwrap_or(exception::IO).to_owned();
        let message = || exception::without_stack_trace(header.message.unwrap_or_default()).to_owned();
        let outcome = match header.status {
            Status::Success => {
                Ok(Reply { response: frame.slice_ref(cursor.delimited()?), state_id: header.state_id })
            }
            Status::Error => Err(CallError::Remote { class: class(), message: message() }),
            Status::Fatal => {
                return Ok(Some(Ending::Refused { class: class(), message: message() }));
            }
        };
        // Gone where the caller has given up.
        let waiting = self.shared.state.lock().waiting.remove(&header.call_id);
        if let Some(sender) = waiting {
            let _ = sender.send(outcome);
        }
        Ok(None)
    }
}

enum Event {
    Requests,
    Readable,
    Writable,
    Silence,
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
