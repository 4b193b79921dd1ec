//! The rules of one kind of edit. They stand beside its `plan`, in the file of its operation.

use crate::{BlockChange, Namespace, Reply, charge::ledger::Ledger, footprint::Marks};
use base::{InodeId, Timestamp, TxId};

/// A kind of edit. No method has a default, except for what concerns one kind alone: each kind says of snapshots, quotas and
/// readers what holds for it, even if that is nothing.
pub(crate) trait Operation {
    /// The answer to the call that made this edit, as [`Operation::apply`] gives it, worked out from the edit alone: for a call
    /// that is repeated after the retry cache has forgotten it. `None`: such a call is planned anew, and recognises its own
    /// repetition from the tree.
    fn answer(&self) -> Option<Reply>;

    /// Takes down what the edit changes that an answer may rest on. It is called before `apply`, while what the edit removes
    /// is still there.
    fn mark(&self, marks: &mut Marks<'_>);

    /// Calls `add` for the inodes that exist before the edit and are changed by it: a snapshot may have to show them as they
    /// were. An inode that goes away changes its directory, not itself; a directory is changed by what enters and leaves it.
    fn changed(&self, ns: &Namespace, add: &mut dyn FnMut(InodeId));

    /// Adds what the edit uses and gives back to the directories with a quota, and looks whether they have room. An edit that
    /// changes only the state of an open block charges nothing: the block counts as a full one until its length is final.
    /// Not called while no quota is set.
    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>);

    /// Called in the place of [`Operation::charge`] while no quota is set: notes the amounts that snapshots keep of an inode
    /// which leaves its directory, since they count if a quota is set later.
    fn keep(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    /// The root group has planned this edit. Another group follows it on its own tree `ns`: this returns the edit that the other group
    /// applies. `None` if the edit changes files, which belong to one group, or if `ns` lacks a directory that the edit names.
    fn followed(&self, _: &Namespace) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Carries the edit out, and returns the answer to its call. It decides nothing and refuses nothing.
    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply;
}

/// The place and time of an edit that is being applied, and its news about blocks.
pub(crate) struct Applying<'a> {
    /// The edit's place in the journal.
    pub at: TxId,
    /// When it was planned.
    pub time: Timestamp,
    /// The changes of blocks, in the order in which they happen.
    pub changes: &'a mut Vec<BlockChange>,
}

/// The rules of an edit that holds another one in its field `change`: they are those of the change, but for what the edit itself does when it
/// is applied.
macro_rules! rules_of_its_change {
    () => {
        fn answer(&self) -> Option<$crate::Reply> {
            self.change.answer()
        }

        fn mark(&self, marks: &mut $crate::footprint::Marks<'_>) {
            self.change.mark(marks);
        }

        fn changed(&self, ns: &$crate::Namespace, add: &mut dyn FnMut(base::InodeId)) {
            self.change.changed(ns, add);
        }

        fn charge(&self, ns: &$crate::Namespace, ledger: &mut $crate::charge::ledger::Ledger<'_>) {
            self.change.charge(ns, ledger);
        }

        fn keep(&self, ns: &$crate::Namespace, ledger: &mut $crate::charge::ledger::Ledger<'_>) {
            self.change.keep(ns, ledger);
        }
    };
}
pub(crate) use rules_of_its_change;

/// The rules of an edit that touches no inode: no answer about a path rests on it, no snapshot has to show what it changes, and no quota counts it.
macro_rules! rules_without_inodes {
    () => {
        fn mark(&self, _: &mut $crate::footprint::Marks<'_>) {}

        fn changed(&self, _: &$crate::Namespace, _: &mut dyn FnMut(base::InodeId)) {}

        fn charge(&self, _: &$crate::Namespace, _: &mut $crate::charge::ledger::Ledger<'_>) {}
    };
}
pub(crate) use rules_without_inodes;
