//! Whether what a group has told is overtaken by an entry of the directory log that it had not carried out then.
//!
//! A group holds what it has told against its own plans. Entries that the root group has ordered meanwhile come to it all the same.

use crate::{Edit, Namespace, SnapshotId, ops::Body, questions::Question};
use base::{InodeId, directory_log::Dix};

impl Namespace {
    /// Whether an answer that a group has given when it had carried out the entries up to this one has to be asked for once more.
    pub(crate) fn is_overtaken(&self, question: &Question, at: Dix) -> bool {
        let kept = &self.tree.directory_log.kept;
        if at < kept.base().dix {
            return true;
        }
        kept.after(at).any(|entry| match Edit::decode(&entry.payload) {
            Ok(edit) => self.changes_answer(&edit.body, question),
            // No active orders what it cannot read.
            Err(_) => true,
        })
    }

    fn changes_answer(&self, body: &Body, question: &Question) -> bool {
        let directory = question.directory();
        match (question, body) {
            // More may be below the directory than was told.
            (Question::Used { .. } | Question::Amounts { .. }, Body::MoveFile(moved)) => {
                self.is_below(moved.destination, directory)
            }
            (Question::Used { .. } | Question::Amounts { .. }, Body::Rename(renamed)) => {
                self.is_below(renamed.destination, directory)
            }
            // The same may count on other media.
            (Question::Used { .. } | Question::Amounts { .. }, Body::SetStoragePolicy(set)) => {
                self.is_below(set.inode, directory) || self.is_below(directory, set.inode)
            }
            // A snapshot may see the file, even if the directory has left the snapshot's by now.
            (Question::File { .. }, Body::CreateSnapshot(taken)) => {
                let before = SnapshotId(taken.id.0 - 1);
                let seen_by = |directory| self.latest_seeing(directory, before, taken.id);
                self.handle(directory).is_some_and(|directory| seen_by(directory).is_some())
            }
            _ => false,
        }
    }

    /// Whether a directory is the other one, or below it. One that is gone is below none.
    fn is_below(&self, directory: InodeId, top: InodeId) -> bool {
        let both = self.handle(directory).zip(self.handle(top));
        both.is_some_and(|(directory, top)| self.is_at_or_below(directory, top))
    }
}
