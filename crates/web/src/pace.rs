//! How fast a client sends a request and takes an answer.

use crate::connection::Connection;
use axum::body::{Body, HttpBody};
use hyper::body::{Bytes, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

/// When a client has moved so many bytes, the server forgets how long it has waited for them. A client that moves a byte now and then does not get so far.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Counts for how long the server waits for a client while a body moves.
struct Pace {
    connection: Connection,
    /// Since the last whole piece, without the present wait.
    waited: Duration,
    moved_bytes: usize,
    waits_since: Option<Instant>,
}

impl Pace {
    fn new(connection: Connection) -> Self {
        Self { connection, waited: Duration::ZERO, moved_bytes: 0, waits_since: None }
    }

    /// The server waits for the client from now on.
    fn wait(&mut self) {
        if self.waits_since.is_none() {
            self.waits_since = Some(Instant::now());
            self.connection.rest_within_body(self.waited);
        }
    }

    /// The client has moved so many bytes. Returns false if its connection has been told to end.
    fn moved(&mut self, bytes: usize) -> bool {
        self.waited += self.waits_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.moved_bytes += bytes;
        if self.moved_bytes >= PIECE_BYTES {
            (self.waited, self.moved_bytes) = (Duration::ZERO, 0);
        }
        self.connection.begin()
    }
}

fn told_to_end() -> axum::Error {
    axum::Error::new(io::Error::other("others waited for the place of this connection, which was too slow"))
}

/// The body of a request. While it is asked for more than has come, the server waits for the client.
pub(crate) struct Arriving {
    body: Body,
    pace: Pace,
}

impl Arriving {
    pub fn wrap(body: Body, connection: &Connection) -> Body {
        match body.is_end_stream() {
            true => body,
            false => Body::new(Self { body, pace: Pace::new(connection.clone()) }),
        }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            self.pace.wait();
            return Poll::Pending;
        };
        let bytes = frame.as_ref().map_or(0, bytes_of);
        // The reader gets the bytes that have come, even if the connection has ended: the body may be whole. hyper ends a body that is not whole with an error.
        self.pace.moved(bytes);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. Once a piece of it has been handed over, the server waits for the client until hyper wants the next piece. hyper drops the body
/// when it has the last piece. Then the server waits until the client has taken that one, and after that for the client's next request.
pub(crate) struct Leaving {
    body: Body,
    pace: Pace,
    last_bytes: usize,
    /// The rest of a long piece of the body. The server hands a long piece over in short ones: only then does it see how fast the client takes the bytes.
    left: Bytes,
}

impl Leaving {
    pub fn wrap(body: Body, connection: &Connection) -> Body {
        Body::new(Self { body, pace: Pace::new(connection.clone()), last_bytes: 0, left: Bytes::new() })
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.pace.connection.begin() {
            self.pace.connection.rest_after_answer();
        }
    }
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let last_bytes = std::mem::take(&mut self.last_bytes);
        if !self.pace.moved(last_bytes) {
            return Poll::Ready(Some(Err(told_to_end())));
        }
        if self.left.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context))
                .map(|frame| frame.map(Frame::into_data))
            {
                Some(Ok(Ok(data))) => self.left = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let count = self.left.len().min(PIECE_BYTES);
        let piece = self.left.split_to(count);
        self.last_bytes = count;
        self.pace.wait();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, left) = (self.body.size_hint(), self.left.len() as u64);
        if let Some(most) = hint.upper() {
            hint.set_upper(most + left);
        }
        hint.set_lower(hint.lower() + left);
        hint
    }
}

fn bytes_of(frame: &Result<Frame<Bytes>, axum::Error>) -> usize {
    frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len)
}
