//! An answer to a read is what the committed entries give, with all those that the answer rests on (I7).

use crate::{
    cluster::{client::CallKey, request::Answer},
    truth::Broken,
};

/// `expected` is what the state with exactly the committed entries has answered: at the moment of the read, or when the last
/// entry that the answer rests on had committed.
///
/// # Errors
/// The answer is not what the committed entries give.
pub fn check(key: CallKey, answer: &Answer, expected: &Answer) -> Result<(), Broken> {
    if answer != expected {
        return Err(format!(
            "reads tell what has committed: call {} of client {} is answered {answer:?}, and {expected:?} has committed",
            key.call, key.client
        ));
    }
    Ok(())
}
