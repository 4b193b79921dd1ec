//! The acknowledging half of a data server: what is said upstream, and when.
//!
//! A packet is acknowledged once this server is done with it and every server behind has acknowledged it, in
//! the order of the packets. Bad news overtakes good news: a failed mirror is told at once.

use crate::{Ack, Reply, Status};
use std::collections::VecDeque;
use thiserror::Error;

#[derive(Debug)]
pub struct Responder {
    /// The packets that wait for an acknowledgement, in the order received. Its length is the writer's window;
    /// [`WINDOW_PACKETS_MAX`] bounds it.
    waiting: VecDeque<Waiting>,
    has_mirror: bool,
    mirror_lost: bool,
    /// The ends of the data acknowledged by all from here on.
    acknowledged: u64,
}

/// Packets received and not yet acknowledged upstream. Hadoop's clients have 80 under way at most; a writer
/// that goes beyond this waits for its acknowledgements.
pub const WINDOW_PACKETS_MAX: usize = 1024;

#[derive(Debug)]
struct Waiting {
    seqno: i64,
    /// The offset in the block at which its data ends.
    end: u64,
    own: Option<Status>,
    downstream: Option<Ack>,
}

/// The mirror's acknowledgements make no sense, or say that what it got from here is corrupt. The connection
/// ends without another word, so that upstream blames this server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResponderError {
    #[error("the mirror acknowledged packet {found}; {expected:?} is the next one")]
    OutOfOrder { expected: Option<i64>, found: i64 },
    #[error("the mirror acknowledged packet {0} without a reply")]
    NoReply(i64),
    #[error("the mirror found the data that came from here corrupt")]
    CorruptHere,
}

impl Responder {
    pub fn new(has_mirror: bool) -> Self {
        Self { waiting: VecDeque::new(), has_mirror, mirror_lost: false, acknowledged: 0 }
    }

    /// No further packet is to be read until some are acknowledged.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WINDOW_PACKETS_MAX
    }

    /// Everything received has been acknowledged.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The mirror has something to say yet. Once it has acknowledged everything it may close its end, though
    /// this server's own disk is not done.
    pub fn awaits_mirror(&self) -> bool {
        self.has_mirror && self.waiting.iter().any(|packet| packet.downstream.is_none())
    }

    pub fn has_lost_mirror(&self) -> bool {
        self.mirror_lost
    }

    /// The length of the block that this server and all behind it have.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// A packet has come in; call before it is sent on to the mirror.
    pub fn on_received(&mut self, seqno: i64, end: u64) {
        self.waiting.push_back(Waiting { seqno, end, own: None, downstream: None });
    }

    /// This server is done with the oldest packet that it was not done with.
    ///
    /// # Panics
    /// The server is done with all packets that were received.
    pub fn on_done(&mut self, status: Status) {
        let packet = self.waiting.iter_mut().find(|packet| packet.own.is_none());
        packet.expect("only packets received are done with").own = Some(status);
    }

    /// The mirror speaks. Returns what is to be said upstream at once.
    ///
    /// # Errors
    /// [`ResponderError::NoReply`] if the acknowledgement has no reply, [`ResponderError::OutOfOrder`] if it is not for
    /// the oldest packet that the mirror has not acknowledged, [`ResponderError::CorruptHere`] if the mirror found the
    /// data corrupt: then the bytes were damaged here or on the way.
    pub fn on_downstream(&mut self, ack: Ack) -> Result<Option<Ack>, ResponderError> {
        if ack.replies.is_empty() {
            return Err(ResponderError::NoReply(ack.seqno));
        }
        if ack.replies[0].status() == Status::ErrorChecksum {
            return Err(ResponderError::CorruptHere);
        }
        if ack.seqno == Ack::NO_PACKET {
            return Ok(Some(with_own(Status::Success, ack)));
        }
        let packet = self.waiting.iter_mut().find(|packet| packet.downstream.is_none());
        match packet {
            Some(packet) if packet.seqno == ack.seqno => packet.downstream = Some(ack),
            other => {
                return Err(ResponderError::OutOfOrder {
                    expected: other.map(|packet| packet.seqno),
                    found: ack.seqno,
                });
            }
        }
        Ok(None)
    }

    /// The connection to the mirror is gone. Returns what is to be said upstream, the first time. From then
    /// on nothing is acknowledged any more: the writer builds a new pipeline.
    pub fn on_mirror_lost(&mut self) -> Option<Ack> {
        if std::mem::replace(&mut self.mirror_lost, true) {
            return None;
        }
        Some(Ack {
            seqno: self.waiting.front().map_or(Ack::NO_PACKET, |packet| packet.seqno),
            replies: vec![Reply::new(Status::Success), Reply::new(Status::Error)],
            downstream_ns: 0,
        })
    }

    /// The next acknowledgement that may go upstream.
    pub fn poll(&mut self) -> Option<Ack> {
        let packet = self.waiting.front()?;
        let own = packet.own?;
        let is_ready = match own {
            // Its data is worthless: there is nothing to wait for.
            Status::ErrorChecksum => true,
            _ => !self.has_mirror || packet.downstream.is_some(),
        };
        if !is_ready || (self.mirror_lost && packet.downstream.is_none()) {
            return None;
        }
        let packet = self.waiting.pop_front().expect("looked at above");
        let rest =
            packet.downstream.unwrap_or(Ack { seqno: packet.seqno, replies: Vec::new(), downstream_ns: 0 });
        let ack = with_own(own, rest);
        if ack.is_success() {
            self.acknowledged = self.acknowledged.max(packet.end);
        }
        Some(ack)
    }
}

fn with_own(own: Status, mut ack: Ack) -> Ack {
    ack.replies.insert(0, Reply::new(own));
    ack
}

#[cfg(test)]
mod tests;
