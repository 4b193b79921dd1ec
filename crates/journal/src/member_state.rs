//! What a member must remember about itself.

use crate::{Checkpoint, Identity};
use base::{Epoch, Sn};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    pub identity: Identity,
    /// Made by `format`; tells a restored copy from the store that it was copied from.
    pub store_uuid: [u8; 16],
    /// Entries and messages of lower epochs are refused. Never falls.
    pub promised: Epoch,
    /// A lower bound of what has committed; written lazily.
    pub known_commit: Sn,
    /// Starts of this store, this one included.
    pub boot: u64,
    /// A lower bound of the log's next sn; written lazily. A log that ends before it has lost entries.
    pub next: Sn,
    /// Rises when the store has become untrusted.
    pub generation: u64,
    /// The reason why this store must not be trusted, if there is one.
    pub fault_note: Option<String>,
    /// The last two committed checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
}
