//! An answer of a member below the minimum, which does not know what has committed, agrees with the committed entries
//! (I7).

use crate::{
    cluster::{client::CallKey, request::Answer},
    truth::Broken,
};

/// `reference` is what the state with exactly the committed entries has answered at the moment of the read.
///
/// # Errors
/// The answer is not what the committed entries give.
pub fn check(key: CallKey, answer: &Answer, reference: &Answer) -> Result<(), Broken> {
    if answer != reference {
        return Err(format!(
            "reads below the minimum are certain: call {} of client {} is answered {answer:?}, and {reference:?} has \
             committed",
            key.call, key.client
        ));
    }
    Ok(())
}
