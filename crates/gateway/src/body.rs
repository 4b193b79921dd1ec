//! Bodies of requests that are taken piece by piece.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use std::{future::poll_fn, io, pin::Pin};

/// The next piece of a request's body; `None` at its end.
///
/// # Errors
/// The client has gone, or was silent for too long, before the body's end.
pub async fn next(body: &mut Body) -> io::Result<Option<Bytes>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(io::Error::other(error)),
            // Trailers say nothing here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && !data.is_empty()
                {
                    return Ok(Some(data));
                }
            }
        }
    }
}
