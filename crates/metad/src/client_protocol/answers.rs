//! Small pieces of replies.

use namespace::Reply;

/// An operation whose answer is yes or no.
pub fn boolean(essentials: Reply) -> bool {
    match essentials {
        Reply::Bool(answer) => answer,
        _ => true,
    }
}
