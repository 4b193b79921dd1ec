//! Whether what a home has told of a file is overtaken by a snapshot that was ordered meanwhile.
//!
//! A home holds what it has told against its own plans. A snapshot needs no hold, and comes to it all the same.

use crate::{Edit, Namespace, SnapshotId, ops::Body, questions::Question};
use base::directory_log::Dix;

impl Namespace {
    /// Whether an answer about a file, which its home has given when it had carried out the entries up to this one, has to be asked for once more: a
    /// snapshot was ordered behind that which may see the file, even if its directory has left the snapshot's by now.
    pub(crate) fn is_overtaken(&self, question: &Question, at: Dix) -> bool {
        let kept = &self.tree.directory_log.kept;
        if at < kept.base().dix {
            return true;
        }
        let Some(directory) = self.handle(question.directory()) else { return false };
        kept.snapshots_after(at).any(|entry| match Edit::decode(&entry.payload) {
            Ok(Edit { body: Body::CreateSnapshot(taken), .. }) => {
                let before = SnapshotId(taken.id.0.saturating_sub(1));
                self.latest_seeing(directory, before, taken.id).is_some()
            }
            Ok(_) => false,
            // No active orders what it cannot read.
            Err(_) => true,
        })
    }
}
