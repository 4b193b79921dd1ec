//! Bodies of answers that are made piece by piece.

use axum::body::{Body, HttpBody};
use hyper::body::{Bytes, Frame};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// Pieces that wait for a slow client. Then nothing further is read for it.
const PIECES_WAITING_MAX: usize = 4;

/// A body whose pieces come from a task. If the task fails, or ends early, the connection is cut, so that the client sees that it
/// has not got the whole.
struct Pieces {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    /// The bytes still to come, where their number was promised.
    left: Option<u64>,
}

/// Takes the pieces of a body. Dropped without [`Sender::end`], it cuts the connection.
pub struct Sender {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    is_whole: bool,
}

/// A body and the way to fill it. `length`: the number of its bytes, if it is known.
pub fn pieces(length: Option<u64>) -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    (Sender { pieces: sender, is_whole: false }, Body::new(Pieces { pieces: receiver, left: length }))
}

impl Sender {
    /// Waits until the client has taken enough. False: the client is gone.
    pub async fn send(&self, piece: Bytes) -> bool {
        self.pieces.send(Ok(piece)).await.is_ok()
    }

    /// The client has gone.
    pub fn is_gone(&self) -> bool {
        self.pieces.is_closed()
    }

    /// All has been sent.
    pub fn end(mut self) {
        self.is_whole = true;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.is_whole {
            let error = || io::Error::other("the answer ends early");
            if let Err(mpsc::error::TrySendError::Full(_)) = self.pieces.try_send(Err(error())) {
                // The queue is full: the error has to wait for its turn.
                let pieces = self.pieces.clone();
                drop(tokio::spawn(async move { pieces.send(Err(error())).await }));
            }
        }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = std::task::ready!(self.pieces.poll_recv(context));
        if let (Some(left), Some(Ok(piece))) = (&mut self.left, &piece) {
            *left = left.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.left.map_or_else(Default::default, hyper::body::SizeHint::with_exact)
    }
}
