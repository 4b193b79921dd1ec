//! The calling end: many calls in flight on one connection, which is made when first needed and made anew
//! when it breaks.
//!
//! A client does not retry by itself: it says whether the call can have had its effect
//! ([`CallError`](crate::CallError)), and takes a [`CallIdentity`], so that the caller can retry under the name of
//! the first attempt, here or at another server.

mod connection;
#[cfg(test)]
mod tests;

use crate::CallError;
use base::{CallId, ClientId};
use bytes::{Bytes, BytesMut};
use connection::Connection;
use parking_lot::Mutex;
use prost::{Message, Name};
use proto::{protocol, rpc_frame::CallHeader};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicI64, Ordering},
    },
    time::Duration,
};

#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How the client names itself in every call; [`Client::connect`] chooses one where there is none.
    /// Clients of one program that retry each other's calls share it.
    pub client_id: Option<ClientId>,
    pub protocol_version: u64,
    /// The user who acts for the effective one.
    pub real_user: Option<String>,
    pub connect_timeout: Duration,
    /// The time from sending a call to its answer, unless the call names another.
    pub call_timeout: Duration,
    /// How often to say something on a connection that waits for an answer.
    pub ping_interval: Option<Duration>,
    /// Longest reply. Hadoop: `ipc.maximum.response.length`.
    pub reply_bytes_max: usize,
    /// Whether calls tell the server the newest state that its replies have shown.
    pub sends_state_id: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            client_id: None,
            protocol_version: protocol::VERSION,
            real_user: None,
            connect_timeout: Duration::from_secs(20),
            call_timeout: Duration::from_secs(60),
            ping_interval: Some(Duration::from_secs(60)),
            reply_bytes_max: 128 << 20,
            sends_state_id: false,
        }
    }
}

/// The name of a call, the same each time it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallIdentity {
    pub call_id: CallId,
    /// 0 the first time.
    pub retry_count: i32,
}

/// A handle to a server, for one protocol and one user. Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    address: String,
    protocol: String,
    user: String,
    client_id: ClientId,
    options: ClientOptions,
    next_call_id: AtomicI32,
    /// The newest state that a reply has shown.
    state_id: AtomicI64,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Held while a connection is being made, so that one is made.
    connecting: tokio::sync::Mutex<()>,
}

/// No reply has shown a state yet.
const STATE_UNKNOWN: i64 = i64::MIN;

impl Client {
    /// A client of `address`, `host:port`. Nothing is sent before the first call.
    pub fn connect(address: impl ToString, protocol: &str, user: &str, options: ClientOptions) -> Client {
        let client_id = options.client_id.unwrap_or_else(|| {
            let mut id = [0; 16];
            env::Random::fill(&env::OsRandom, &mut id);
            ClientId(id)
        });
        Client {
            inner: Arc::new(Inner {
                address: address.to_string(),
                protocol: protocol.to_owned(),
                user: user.to_owned(),
                client_id,
                options,
                next_call_id: AtomicI32::new(0),
                state_id: AtomicI64::new(STATE_UNKNOWN),
                connection: Mutex::new(None),
                connecting: tokio::sync::Mutex::new(()),
            }),
        }
    }

    pub fn address(&self) -> &str {
        &self.inner.address
    }

    pub fn client_id(&self) -> ClientId {
        self.inner.client_id
    }

    /// The name for a new call.
    pub fn new_call(&self) -> CallIdentity {
        // Negative ids are steps of a connection's life; after 2^31 calls the numbers begin again.
        let call_id = self.inner.next_call_id.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        CallIdentity { call_id: CallId(call_id), retry_count: 0 }
    }

    /// The newest state of the namespace that a reply has shown.
    pub fn last_state_id(&self) -> Option<i64> {
        Some(self.inner.state_id.load(Ordering::Acquire)).filter(|state_id| *state_id != STATE_UNKNOWN)
    }

    /// # Errors
    /// [`CallError::Connect`] if the server cannot be reached, [`CallError::Remote`] if it refuses the call,
    /// [`CallError::Timeout`] if it does not answer in time, [`CallError::Io`] if the connection breaks,
    /// [`CallError::Decode`] if the response does not decode. Each variant says whether the call may have had an
    /// effect.
    pub async fn call<Req, Resp>(&self, method: &str, request: &Req) -> Result<Resp, CallError>
    where
        Req: Message,
        Resp: Message + Default + Name,
    {
        self.call_as(self.new_call(), method, request).await
    }

    /// Calls under a name given, as for a retry.
    ///
    /// # Errors
    /// Those of [`Client::call`].
    pub async fn call_as<Req, Resp>(
        &self,
        identity: CallIdentity,
        method: &str,
        request: &Req,
    ) -> Result<Resp, CallError>
    where
        Req: Message,
        Resp: Message + Default + Name,
    {
        let put = |out: &mut BytesMut| request.encode_raw(out);
        let response =
            self.send(identity, method, request.encoded_len(), put, self.inner.options.call_timeout).await?;
        proto::decode(response).map_err(CallError::Decode)
    }

    /// Sends bytes that are a request already, and returns those of the response.
    ///
    /// # Errors
    /// Those of [`Client::call`] but [`CallError::Decode`]: the response is not decoded.
    pub async fn call_encoded(&self, method: &str, request: &[u8]) -> Result<Bytes, CallError> {
        let put = |out: &mut BytesMut| out.extend_from_slice(request);
        self.send(self.new_call(), method, request.len(), put, self.inner.options.call_timeout).await
    }

    /// Calls like [`Client::call_encoded`], with an identity and a time limit that the caller gives.
    ///
    /// # Errors
    /// Those of [`Client::call_encoded`]; [`CallError::Timeout`] after `timeout`.
    pub async fn call_encoded_as(
        &self,
        identity: CallIdentity,
        method: &str,
        request: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let put = |out: &mut BytesMut| out.extend_from_slice(request);
        self.send(identity, method, request.len(), put, timeout).await
    }

    /// Lets go of the connection, which closes behind the calls in flight; the next call makes another.
    pub fn disconnect(&self) {
        *self.inner.connection.lock() = None;
    }

    async fn send(
        &self,
        identity: CallIdentity,
        method: &str,
        length: usize,
        put: impl Fn(&mut BytesMut),
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let inner = &*self.inner;
        let state_id = if inner.options.sends_state_id { self.last_state_id() } else { None };
        let header =
            CallHeader { method, protocol: &inner.protocol, version: inner.options.protocol_version };
        let mut connection = inner.connection().await?;
        let queue = |connection: &Connection| {
            connection.send(inner.client_id, identity, state_id, header, length, &put)
        };
        let reply = match queue(&connection) {
            // The connection broke since it was found whole, and nothing of this call was sent.
            Err(CallError::Connect(_)) => {
                connection = inner.connection().await?;
                queue(&connection)?
            }
            queued => queued?,
        };
        let reply = within(timeout, reply).await??;
        if let Some(state_id) = reply.state_id {
            inner.state_id.fetch_max(state_id, Ordering::AcqRel);
        }
        Ok(reply.response)
    }
}

impl Inner {
    async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        if let Some(connection) = self.live_connection() {
            return Ok(connection);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(connection) = self.live_connection() {
            return Ok(connection);
        }
        let connection = Arc::new(Connection::open(self).await.map_err(CallError::Connect)?);
        *self.connection.lock() = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn live_connection(&self) -> Option<Arc<Connection>> {
        self.connection.lock().as_ref().filter(|connection| connection.is_live()).cloned()
    }
}

async fn within<T>(timeout: Duration, future: impl Future<Output = T>) -> Result<T, CallError> {
    tokio::time::timeout(timeout, future)
        .await
        .map_err(|_| CallError::Timeout { ms: timeout.as_millis().try_into().unwrap_or(u64::MAX) })
}
