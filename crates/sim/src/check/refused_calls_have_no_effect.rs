//! A client that was told that its call has changed nothing goes on. No late copy of the call changes anything then.
//!
//! The process that has told it carries no copy out. From the level on at which such answers are noted in the journal, no copy that
//! any member carries out commits.

use crate::{cluster::client::CallKey, truth::Broken};
use base::{MemberLife, TxId};

/// The entry `at` is `call`'s. `refuser` is the process that has told the client that the call has changed nothing.
///
/// # Errors
/// There is one.
pub fn check(refuser: Option<&MemberLife>, call: CallKey, at: TxId) -> Result<(), Broken> {
    match refuser {
        Some(refuser) => Err(format!(
            "refused calls have no effect: member {} has refused call {} of client {}, which is carried out as {at}",
            refuser.store.member, call.call, call.client
        )),
        None => Ok(()),
    }
}
