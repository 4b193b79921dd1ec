//! The writer's side: packets sent and not yet acknowledged.
//!
//! They are kept until every server of the pipeline has them, so that a new pipeline can be given what the
//! old one may have lost.

use crate::{Ack, Status};
use base::PacketHeader;
use std::collections::VecDeque;
use thiserror::Error;

/// `P` is a packet as the driver sends it.
#[derive(Debug)]
pub struct Window<P> {
    under_way: VecDeque<(PacketHeader, P)>,
    packets_max: usize,
    next_seqno: i64,
    /// Data before this offset is with all servers.
    acknowledged: u64,
    /// Data before this offset has been given to the window.
    sent: u64,
    ended: bool,
}

/// The pipeline is broken; `node` counts from the writer's nearest server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    #[error("server {node} of the pipeline answered {status} for packet {seqno}")]
    Failed { node: usize, status: Status, seqno: i64 },
    #[error("acknowledgement for packet {found}; the oldest under way is {expected:?}")]
    OutOfOrder { expected: Option<i64>, found: i64 },
    #[error("{found} replies from a pipeline of {expected}")]
    ReplyCount { expected: usize, found: usize },
}

impl<P> Window<P> {
    /// A window for a block of which `length` bytes exist already.
    pub fn new(packets_max: usize, length: u64) -> Self {
        Self {
            under_way: VecDeque::new(),
            packets_max: packets_max.max(1),
            next_seqno: 0,
            acknowledged: length,
            sent: length,
            ended: false,
        }
    }

    /// No further packet may be sent now.
    pub fn is_full(&self) -> bool {
        self.under_way.len() >= self.packets_max
    }

    /// All that was sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The last packet has been sent.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number for the next packet.
    pub fn next_seqno(&self) -> i64 {
        self.next_seqno
    }

    /// A packet goes out.
    ///
    /// # Panics
    /// The last packet has been sent already, or the packet's number is not [`Window::next_seqno`].
    pub fn on_sent(&mut self, header: PacketHeader, packet: P) {
        assert!(!self.ended, "nothing follows the last packet");
        assert_eq!(header.seqno, self.next_seqno, "packets are numbered by the window");
        self.next_seqno += 1;
        self.sent = self.sent.max(end(&header));
        self.ended = header.last_in_block;
        self.under_way.push_back((header, packet));
    }

    /// An acknowledgement from a pipeline of `nodes` servers. Returns the packet that it retires, if any.
    ///
    /// # Errors
    /// [`WindowError::Failed`] if a server reports that it failed, [`WindowError::OutOfOrder`] if the acknowledgement
    /// is not for the oldest packet under way, [`WindowError::ReplyCount`] if it has not as many replies as there are
    /// `nodes`.
    pub fn on_ack(&mut self, ack: &Ack, nodes: usize) -> Result<Option<P>, WindowError> {
        if let Some((node, status)) = ack.failed() {
            return Err(WindowError::Failed { node: node.min(nodes - 1), status, seqno: ack.seqno });
        }
        // Success of nothing in particular, or of a heartbeat.
        if ack.seqno == Ack::NO_PACKET || ack.seqno == PacketHeader::HEARTBEAT_SEQNO {
            return Ok(None);
        }
        let expected = self.under_way.front().map(|(header, _)| header.seqno);
        if expected != Some(ack.seqno) {
            return Err(WindowError::OutOfOrder { expected, found: ack.seqno });
        }
        if ack.replies.len() != nodes {
            return Err(WindowError::ReplyCount { expected: nodes, found: ack.replies.len() });
        }
        let (header, packet) = self.under_way.pop_front().expect("looked at above");
        self.acknowledged = self.acknowledged.max(end(&header));
        Ok(Some(packet))
    }

    /// The packets that are not yet acknowledged, in order. A new pipeline must be sent all of them.
    pub fn under_way(&self) -> impl Iterator<Item = &(PacketHeader, P)> {
        self.under_way.iter()
    }
}

fn end(header: &PacketHeader) -> u64 {
    header.offset_in_block as u64 + header.data_length as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    fn header(seqno: i64) -> PacketHeader {
        PacketHeader { seqno, offset_in_block: seqno * 512, data_length: 512, ..Default::default() }
    }

    fn ack(seqno: i64, statuses: &[Status]) -> Ack {
        Ack { seqno, replies: statuses.iter().map(|status| Reply::new(*status)).collect(), downstream_ns: 0 }
    }

    #[test]
    fn acknowledgements_retire_packets_in_order() {
        let mut window = Window::new(2, 0);
        window.on_sent(header(0), 'a');
        assert!(!window.is_full());
        window.on_sent(header(1), 'b');
        assert!(window.is_full());
        assert_eq!(window.on_ack(&ack(-1, &[Status::Success]), 1), Ok(None));
        assert_eq!(window.on_ack(&ack(0, &[Status::Success]), 1), Ok(Some('a')));
        assert_eq!((window.acknowledged(), window.sent()), (512, 1024));
        assert_eq!(
            window.on_ack(&ack(0, &[Status::Success]), 1),
            Err(WindowError::OutOfOrder { expected: Some(1), found: 0 })
        );
        assert_eq!(window.on_ack(&ack(1, &[Status::Success]), 1), Ok(Some('b')));
        assert!(window.is_empty());
    }

    #[test]
    fn the_server_furthest_down_that_failed_is_named() {
        let mut window = Window::new(2, 0);
        window.on_sent(header(0), ());
        let (success, error) = (Status::Success, Status::Error);
        assert_eq!(
            window.on_ack(&ack(0, &[success, error, success]), 3),
            Err(WindowError::Failed { node: 1, status: error, seqno: 0 })
        );
        // A liar that names more servers than there are.
        assert_eq!(
            window.on_ack(&ack(0, &[success, success, error]), 2),
            Err(WindowError::Failed { node: 1, status: error, seqno: 0 })
        );
        assert_eq!(
            window.on_ack(&ack(0, &[success]), 2),
            Err(WindowError::ReplyCount { expected: 2, found: 1 })
        );
        assert_eq!(window.under_way().count(), 1, "still there for the next pipeline");
    }
}
