//! The answer to a check, sent while it is made.

use super::reason::End;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;
use web::body::Sender;

/// Text that waits to be sent at most.
const WAITING_BYTES_MAX: usize = 16 << 10;
/// How long it waits at most, so that a person sees the progress.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// After so much silence an empty line is sent: the client, and the server's end of the connection, give up after a minute.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// How long a client may take for a text. A check holds one of few places, and a client that takes a byte now and then would hold it for ever.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Out {
    sender: Sender,
    patience: Duration,
    waiting: String,
    /// When something was to be sent for the last time.
    flushed: Instant,
    heard: Instant,
}

impl Out {
    pub fn new(sender: Sender) -> Self {
        let now = Instant::now();
        Self { sender, patience: PATIENCE, waiting: String::new(), flushed: now, heard: now }
    }

    /// # Errors
    /// The client has gone.
    pub async fn say(&mut self, text: &str) -> Result<(), End> {
        self.waiting += text;
        if self.heard.elapsed() >= SILENCE_MAX && self.waiting.is_empty() {
            // An empty line among others tells nothing, and keeps the connection.
            self.waiting.push('\n');
        }
        if self.waiting.len() >= WAITING_BYTES_MAX || self.flushed.elapsed() >= WAIT_MAX {
            self.flush().await?;
        }
        match self.sender.is_gone() {
            true => Err(End::Gone),
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        self.flushed = Instant::now();
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.heard = self.flushed;
        let waiting = Bytes::from(std::mem::take(&mut self.waiting));
        match tokio::time::timeout(self.patience, self.sender.send(waiting)).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(End::Gone),
        }
    }

    /// Sends the rest. The client sees that this is all.
    pub async fn end(mut self) {
        if self.flush().await.is_ok() {
            self.sender.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body;

    #[tokio::test]
    async fn a_client_that_waits_for_long_hears_an_empty_line() {
        let (sender, mut body) = web::body::pieces(None);
        let mut out = Out::new(sender);
        out.say("").await.unwrap();
        let long_ago = Instant::now().checked_sub(SILENCE_MAX).unwrap();
        (out.heard, out.flushed) = (long_ago, long_ago);
        out.say("").await.unwrap();
        out.say("word\n").await.unwrap();
        out.end().await;
        let mut heard = Vec::new();
        while let Some(piece) = body::next(&mut body).await.unwrap() {
            heard.push(piece);
        }
        assert_eq!(heard, ["\n", "word\n"]);
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_not_waited_for() {
        let (sender, _body) = web::body::pieces(None);
        let mut out = Out::new(sender);
        out.patience = Duration::from_millis(10);
        let text = "x".repeat(WAITING_BYTES_MAX);
        let talk = async {
            loop {
                if let Err(end) = out.say(&text).await {
                    return end;
                }
            }
        };
        let end = tokio::time::timeout(Duration::from_secs(60), talk).await.expect("the client is given up");
        assert!(matches!(end, End::Gone), "{end:?}");
    }

    #[tokio::test]
    async fn a_client_that_has_gone_is_noticed_at_the_next_word() {
        let (sender, body) = web::body::pieces(None);
        let mut out = Out::new(sender);
        out.say("word").await.unwrap();
        drop(body);
        assert!(matches!(out.say("").await, Err(End::Gone)));
    }
}
