//! The conditions that keep this server from serving although nothing of it has failed: it is no member any more, or
//! its disk is nearly full.

use crate::member::GroupMember;
use base::{FsError, MemberId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Condition {
    removed: AtomicBool,
    /// Free bytes of the disk under the store; 0 before the first look.
    free_bytes: AtomicU64,
    is_low: AtomicBool,
    refuses_changes: AtomicBool,
}

impl Condition {
    /// The group goes on without this server.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Looks whether the view that is known lists this server. A change is logged.
    pub fn look_at_view(&self, member: &GroupMember) {
        let me = member.me().member;
        let Some((view, _)) = member.status().view else { return };
        let is_removed = !view.members.contains(&me);
        if is_removed != self.removed.swap(is_removed, Ordering::Relaxed) {
            match is_removed {
                true => tracing::error!("{}", removed(me)),
                false => tracing::info!(member = %me, "this server is a member of its group again"),
            }
        }
    }

    /// Notes the room that a look at the disk has found.
    pub fn found_room(&self, room: journal::Room) {
        self.free_bytes.store(room.free_bytes, Ordering::Relaxed);
        self.is_low.store(room.is_low, Ordering::Relaxed);
        let refuses = room.is_out;
        if refuses != self.refuses_changes.swap(refuses, Ordering::Relaxed) {
            let free_bytes = room.free_bytes;
            match refuses {
                true => {
                    tracing::error!(free_bytes, "the disk of the metadata store is full: changes are refused")
                }
                false => tracing::warn!(
                    free_bytes,
                    "the disk of the metadata store has room again: changes are taken"
                ),
            }
        }
    }

    /// Free bytes of the disk under the store, and whether they are few.
    pub fn disk(&self) -> (u64, bool) {
        (self.free_bytes.load(Ordering::Relaxed), self.is_low.load(Ordering::Relaxed))
    }

    /// Why no change is taken, where the disk has no room for it. In a group another member takes over, so the client is to
    /// come again.
    pub fn refusal(&self, member: &GroupMember) -> Result<(), FsError> {
        match (self.refuses_changes(), member.peer_address().is_some()) {
            (false, _) => Ok(()),
            (true, true) => Err(FsError::Retry(self.full())),
            (true, false) => Err(FsError::SafeMode(self.full())),
        }
    }

    pub fn full(&self) -> String {
        format!(
            "The disk of the metadata server has {} MiB free, too few for the journal to go on: changes are refused until there is \
             room. Reads are answered.",
            self.free_bytes.load(Ordering::Relaxed) >> 20
        )
    }

    pub fn refuses_changes(&self) -> bool {
        self.refuses_changes.load(Ordering::Relaxed)
    }
}

/// A sentence for people and for clients.
pub fn removed(me: MemberId) -> String {
    format!(
        "member {me} was removed from its group, and serves nobody: stop this server, and take its address out of the clients' \
         configuration. `clover admin group add {me}` takes it in again"
    )
}
