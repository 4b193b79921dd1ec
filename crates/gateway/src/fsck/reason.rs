//! Why a check ends early.

use client::Error;
use proto::exception;

#[derive(Debug)]
pub enum End {
    /// The client does not listen any more.
    Gone,
    /// The sentence that the client is told.
    Failed(String),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(match error {
            Error::Fs(error) => exception::to_remote(&error).1,
            error => error.to_string(),
        })
    }
}
