//! How fast a client sends a request and takes an answer.

use crate::connection::Connection;
use axum::body::{Body, HttpBody};
use hyper::body::{Bytes, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;

/// When so many bytes have moved, what the server has waited for them is forgotten. A client that moves a byte now and then gains nothing by it.
const PIECE_BYTES: usize = 64 << 10;

/// Counts what the server waits for a client while a body moves.
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

    /// The client has to move.
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
        // What has come is given on, whatever has become of the connection: the body may be whole. If it is not, it ends with an error.
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

/// The body of an answer. From each of its pieces until the next one is wanted, the server waits for the client; and when it is dropped, which is when
/// all of it has gone, for the next request.
pub(crate) struct Leaving {
    body: Body,
    pace: Pace,
    last_bytes: usize,
}

impl Leaving {
    pub fn wrap(body: Body, connection: &Connection) -> Body {
        Body::new(Self { body, pace: Pace::new(connection.clone()), last_bytes: 0 })
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.pace.connection.begin() {
            self.pace.connection.rest();
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
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(frame)) = &frame {
            self.last_bytes = bytes_of(frame);
            self.pace.wait();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn bytes_of(frame: &Result<Frame<Bytes>, axum::Error>) -> usize {
    frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len)
}
