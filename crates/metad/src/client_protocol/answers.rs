//! The ways to send an answer to a call, and small pieces of answers.

use base::FsResult;
use namespace::Reply;
use prost::Message;
use proto::answers::{Put, encoded};
use rpc::{Call, Replier};

/// A response that can be kept until it may go out.
pub trait Answer: Send + 'static {
    /// Its length on the wire.
    fn bytes(&self) -> usize;

    fn send(self, reply: Replier);
}

impl<M: Message + 'static> Answer for M {
    fn bytes(&self) -> usize {
        self.encoded_len()
    }

    fn send(self, reply: Replier) {
        reply.ok(&self);
    }
}

/// The memory of a waiting answer beside its own bytes and its request.
const OVERHEAD_BYTES: usize = 512;

/// The memory of an answer that waits, with its call. In bytes.
pub fn waiting_bytes<A: Answer>(call: &Call, answer: &FsResult<A>) -> usize {
    let bytes = match answer {
        Ok(response) => response.bytes(),
        Err(error) => error.to_string().len(),
    };
    OVERHEAD_BYTES + call.request.len() + bytes
}

/// A response that is bytes already: made while the namespace was at hand, out of what stood there.
pub struct Encoded(Vec<u8>);

impl Encoded {
    pub fn of(message: impl Put) -> Self {
        Self(encoded(message))
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Answer for Encoded {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn send(self, reply: Replier) {
        reply.ok_encoded(self.0.len(), |out| out.extend_from_slice(&self.0));
    }
}

/// An operation whose answer is yes or no.
pub fn boolean(essentials: Reply) -> bool {
    match essentials {
        Reply::Bool(answer) => answer,
        _ => true,
    }
}

/// Sends an answer that may go out, or the refusal.
pub fn send<A: Answer>(reply: Replier, answer: FsResult<A>) {
    match answer {
        Ok(answer) => answer.send(reply),
        Err(error) => reply.fs_error(&error),
    }
}
