//! Clients, one call at a time each, repeated under the same name until it is answered.

use super::request::Request;
use base::{Block, InodeId, Sn};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    pub client: u32,
    pub call: u32,
}

/// One of the copies of a call that a client sends until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallCopy {
    pub key: CallKey,
    /// How often the client had sent the call before.
    pub retry_count: u32,
    /// How often members had sent on, or begun, this copy before.
    pub repeats: u32,
}

#[derive(Debug)]
pub struct Client {
    pub calls: u32,
    pub current: Option<Pending>,
    /// The index of the server that the client asks first.
    pub favourite: usize,
    /// Its next call, if it is about something that it has begun.
    pub next: Option<Request>,
    /// The file that it writes.
    pub writing: Option<Writing>,
}

/// A file that a client writes.
#[derive(Clone, Debug)]
pub struct Writing {
    pub path: String,
    pub inode: InodeId,
    /// The block that is being written, with the length that it will have, and the call that was answered with it.
    pub block: Option<Block>,
    pub call: u32,
    /// The data servers that have finished it.
    pub copies: usize,
}

#[derive(Clone, Debug)]
pub struct Pending {
    pub key: CallKey,
    pub request: Request,
    pub begun_ns: u64,
    pub tries: u32,
    /// How often members have repeated the copy that was sent last. They listen to no answer to what they have sent before.
    pub repeats: u32,
    /// The newest entry that any answered call rested on when this one began.
    pub floor: Sn,
}

impl Client {
    pub fn new(favourite: usize) -> Self {
        Self { calls: 0, current: None, favourite, next: None, writing: None }
    }
}
