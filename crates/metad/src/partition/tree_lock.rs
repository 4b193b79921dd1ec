//! The lock of the namespace.
//!
//! A thread that asks for it while it has it may wait for ever: for itself, or for a writer that waits for it. So each
//! thread knows whether it has it. A second time is a broken invariant, and a panic with a sentence is better than a server
//! that stands still.

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use serving::Tree;
use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    None,
    Read,
    Write,
}

thread_local! {
    static HOLD: Cell<Hold> = const { Cell::new(Hold::None) };
}

/// Panics in builds with debug assertions if this thread has the namespace locked. To be called before others are told of something: they may ask
/// for the namespace, or take their time.
pub fn must_be_free() {
    debug_assert_eq!(
        HOLD.get(),
        Hold::None,
        "this may take longer, or ask for the namespace, which is locked"
    );
}

/// A hold of this thread. When it is dropped, the thread has what it had before.
struct Held {
    before: Hold,
}

impl Held {
    /// A second read lock of a thread only fails if a writer comes in between. So it is a panic in debug builds alone.
    fn begin(hold: Hold) -> Self {
        let before = HOLD.get();
        let is_free = match (before, hold) {
            (Hold::None, _) => true,
            (Hold::Read, Hold::Read) => !cfg!(debug_assertions),
            _ => false,
        };
        assert!(is_free, "this thread asks for the namespace, which it has locked itself");
        HOLD.set(hold);
        Self { before }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HOLD.set(self.before);
    }
}

pub struct TreeLock(ShardedLock<Tree>);

impl TreeLock {
    pub fn new(tree: Tree) -> Self {
        Self(ShardedLock::new(tree))
    }

    pub fn read(&self) -> ReadTree<'_> {
        let held = Held::begin(Hold::Read);
        // A panic under the lock means that an invariant of the tree is broken: nothing may be served from it.
        ReadTree {
            tree: self.0.read().expect("the namespace was left whole by its last writer"),
            _held: held,
        }
    }

    pub fn write(&self) -> WriteTree<'_> {
        let held = Held::begin(Hold::Write);
        WriteTree {
            tree: self.0.write().expect("the namespace was left whole by its last writer"),
            _held: held,
        }
    }
}

/// The namespace, locked for a read.
pub struct ReadTree<'a> {
    tree: ShardedLockReadGuard<'a, Tree>,
    _held: Held,
}

impl Deref for ReadTree<'_> {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

/// The namespace, locked for the writer.
pub struct WriteTree<'a> {
    tree: ShardedLockWriteGuard<'a, Tree>,
    _held: Held,
}

impl Deref for WriteTree<'_> {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl DerefMut for WriteTree<'_> {
    fn deref_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_thread_that_has_the_namespace_is_told_so_and_does_not_wait_for_itself() {
        must_be_free();
        let writes = Held::begin(Hold::Write);
        assert!(catch_unwind(|| drop(Held::begin(Hold::Read))).is_err());
        assert!(catch_unwind(|| drop(Held::begin(Hold::Write))).is_err());
        assert!(catch_unwind(must_be_free).is_err());
        std::thread::spawn(|| drop(Held::begin(Hold::Read)))
            .join()
            .expect("another thread waits for its turn");
        drop(writes);
        must_be_free();
        let reads = Held::begin(Hold::Read);
        assert!(catch_unwind(|| drop(Held::begin(Hold::Write))).is_err());
        assert!(catch_unwind(must_be_free).is_err());
        drop(reads);
        must_be_free();
    }
}
