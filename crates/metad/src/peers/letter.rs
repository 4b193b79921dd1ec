//! The messages that go over a connection between members.

use super::version::Version;
use bytes::Bytes;
use group::Message;

/// A word of one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter {
    /// A message between the group machines of two members.
    Group(Message),
    /// Requests that have ended a server, as `fatal::notes` writes them down. They concern only members that answer
    /// calls.
    FatalRequests(Bytes),
    /// A client watches the namespace's changes: events are kept for so many milliseconds.
    Watched { left_ms: u64 },
}

impl Letter {
    /// The first version of the protocol that has it. To a member of an earlier one it is not sent.
    pub fn since(&self) -> Version {
        match self {
            Self::Group(_) => Version::FIRST,
            Self::FatalRequests(_) => Version::FATAL_REQUESTS,
            Self::Watched { .. } => Version::WATCHED,
        }
    }
}

impl From<Message> for Letter {
    fn from(message: Message) -> Self {
        Self::Group(message)
    }
}
