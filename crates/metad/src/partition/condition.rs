//! The conditions that keep this server from serving although nothing of it has failed: it is no member any more, or
//! its disk is nearly full.

use crate::member::GroupMember;
use serving::admission;
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
                true => tracing::error!("{}", admission::removed(me)),
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

    /// Free bytes of the disk, if they are too few for changes.
    pub fn full_disk(&self) -> Option<u64> {
        self.refuses_changes().then(|| self.free_bytes.load(Ordering::Relaxed))
    }

    pub fn refuses_changes(&self) -> bool {
        self.refuses_changes.load(Ordering::Relaxed)
    }
}
