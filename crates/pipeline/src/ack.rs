//! Acknowledgements: one reply for each server from here to the pipeline's end.

use std::fmt;

/// A server's verdict on a packet, with Hadoop's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success,
    Error,
    ErrorChecksum,
    /// The server restarts and hopes to be waited for.
    Restart,
    /// Any other number that Hadoop knows.
    Other(u8),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Error => f.write_str("an error"),
            Self::ErrorChecksum => f.write_str("a checksum that does not match"),
            Self::Restart => f.write_str("a restart"),
            Self::Other(code) => write!(f, "status {code}"),
        }
    }
}

impl Status {
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Success,
            1 => Self::Error,
            2 => Self::ErrorChecksum,
            8 => Self::Restart,
            other => Self::Other(other),
        }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Error => 1,
            Self::ErrorChecksum => 2,
            Self::Restart => 8,
            Self::Other(code) => code,
        }
    }

    /// Codes 8 to 11 are not about a packet at all.
    fn is_out_of_band(self) -> bool {
        (8..=11).contains(&self.code())
    }
}

/// A server's reply with what it says about its load, in one word: bits 0-3 the status, 4 reserved, 5-6
/// congestion, 7-8 slowness. Clover's servers say nothing about load (0, disabled) and relay what others say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply(pub u32);

impl Reply {
    pub fn new(status: Status) -> Self {
        Self(status.code().into())
    }

    pub fn status(self) -> Status {
        Status::from_code((self.0 & 0xf) as u8)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The number of the packet, or [`Ack::NO_PACKET`].
    pub seqno: i64,
    /// The nearest server first.
    pub replies: Vec<Reply>,
    /// How long the servers further down took, as the nearest one measured it; 0 when not measured.
    pub downstream_ns: u64,
}

impl Ack {
    /// Hadoop's `UNKOWN_SEQNO`: the ack speaks of the pipeline, not of a packet.
    pub const NO_PACKET: i64 = -2;

    pub fn is_success(&self) -> bool {
        self.replies.iter().all(|reply| reply.status() == Status::Success)
    }

    pub fn is_out_of_band(&self) -> bool {
        self.seqno == Self::NO_PACKET && self.replies.iter().any(|reply| reply.status().is_out_of_band())
    }

    /// The place in the pipeline of the last server that did not succeed, as Hadoop's clients look for it.
    pub fn failed(&self) -> Option<(usize, Status)> {
        let index = self.replies.iter().rposition(|reply| reply.status() != Status::Success)?;
        Some((index, self.replies[index].status()))
    }
}
