//! Applies the group's decisions to the namespace: on a standby, and the entries that a new active has inherited.

use super::{Partition, server_orders, turn::TURN_NS_MAX};
use crate::{
    directories,
    member::Followed,
    settle::{tell_ahead, tell_committed},
};
use base::{Entry, EntryKind, Epoch, GroupId, Sn};
use env::pulse;
use group::Role;
use namespace::Renewals;
use serving::Said;

/// Applies the entries that the member has followed, then tells of the commit, and then of the role. Runs on the
/// writer's thread.
pub fn follow(partition: &Partition, followed: Followed) {
    if partition.member.is_ending() {
        // It may have applied what was cut off, and is built anew from its disk.
        return;
    }
    if let Some(first) = followed.apply.first() {
        // All before it has committed as well, and what this member applied of that when it led comes first.
        partition.unsettled.settle(Sn(first.id.sn.0 - 1), partition.moment());
    }
    let feed = &partition.older_answers.feed;
    let mut entries = followed.apply.iter().peekable();
    while entries.peek().is_some() {
        let began = partition.moment();
        pulse::step();
        let (mut digest, mut news, is_fed) = (None, Vec::new(), feed.is_open());
        let mut tree = partition.tree_mut();
        let kept_no_more = tree.keep_events(partition.member.is_watched(began));
        for next in entries.by_ref() {
            let applied = Said::of(next).and_then(|said| {
                news.extend(is_fed.then(|| said.noted(next.id)));
                tree.apply_committed(next.id, &said)
            });
            let changes = match applied {
                Ok(changes) => changes,
                // Every member is given this entry: to go on without it would be to go apart.
                Err(error) => panic!("committed entry {} cannot be applied: {error}", next.id),
            };
            tell_committed(&partition.blocks, &changes, began);
            if next.kind == EntryKind::Checkpoint {
                digest = Some(tree.digest());
            }
            if partition.moment().ns - began.ns > TURN_NS_MAX {
                break;
            }
        }
        // Stamps given out without a block, and what an epoch has raised.
        let (id, stamp) = tree.namespace.last_allocated();
        partition.blocks.lock().set_last_allocated(id, stamp);
        partition.look_for_homes(&tree);
        drop(tree);
        drop(kept_no_more);
        feed.push(&mut news);
        if let Some(digest) = digest {
            partition.member.say_digest(digest);
        }
    }
    for entry in &followed.apply {
        if entry.kind == EntryKind::Checkpoint {
            partition.checkpoints.send_replace(Some(entry.payload.clone()));
        }
    }
    apply_ahead(partition, &followed.ahead);
    partition.standby_reads.applied.notify_waiters();
    if let Some(sn) = followed.committed {
        partition.member.committed(sn);
    }
    if let Some(role) = followed.role {
        let committed = partition.commit.committed();
        let checkpoint = partition.tree_mut().take_ahead_checkpoint(committed);
        if let Some(payload) = checkpoint {
            partition.checkpoints.send_replace(Some(payload));
        }
        match role {
            Role::Serving { epoch } => take_over(partition, epoch),
            Role::Reading { epoch } => {
                partition.blocks.lock().set_commanding(None, partition.moment());
                // The root group's active goes on granting leases; nothing becomes visible that does not commit.
                if partition.cluster.group == GroupId::ROOT {
                    begin_directories(partition, epoch);
                }
            }
            // It may go on in the same epoch.
            Role::HandingOver { .. } => partition.blocks.lock().set_commanding(None, partition.moment()),
            _ => {
                partition.blocks.lock().set_commanding(None, partition.moment());
                directories::carry_on(partition, partition.directories.end());
            }
        }
        partition.member.publish(role);
    }
}

/// Applies entries that may not have committed yet. A read that sees their effect must not be answered before they
/// have.
fn apply_ahead(partition: &Partition, entries: &[Entry]) {
    let feed = &partition.older_answers.feed;
    let mut entries = entries.iter().peekable();
    let mut unsettled = Vec::new();
    while entries.peek().is_some() {
        let began = partition.moment();
        pulse::step();
        let (mut news, is_fed) = (Vec::new(), feed.is_open());
        let mut tree = partition.tree_mut();
        let kept_no_more = tree.keep_events(partition.member.is_watched(began));
        for next in entries.by_ref() {
            let said = Said::of(next)
                .unwrap_or_else(|error| panic!("entry {} of the log cannot be read: {error}", next.id));
            news.extend(is_fed.then(|| said.noted(next.id)));
            let changes = tree
                .apply_ahead(next.id, &said, &next.payload)
                .unwrap_or_else(|error| panic!("entry {} of the log cannot be applied: {error}", next.id));
            tell_ahead(&partition.blocks, next.id.sn, changes, &[], began, &mut unsettled);
            if partition.moment().ns - began.ns > TURN_NS_MAX {
                break;
            }
        }
        let (id, stamp) = tree.namespace.last_allocated();
        partition.blocks.lock().set_last_allocated(id, stamp);
        partition.look_for_homes(&tree);
        drop(tree);
        drop(kept_no_more);
        feed.push(&mut news);
    }
    partition.unsettled.wait(unsettled, partition.moment());
}

/// Soft state that only the active has begins now: every writer has all of its time again.
fn take_over(partition: &Partition, epoch: Epoch) {
    let now = partition.moment();
    *partition.renewals.lock() = Renewals::new(now);
    begin_directories(partition, epoch);
    server_orders::take_out(partition);
    partition.blocks.lock().set_commanding(Some(epoch), now);
}

/// From here on this member orders the directory log, or follows it for its group. Answers need not wait for the entries that the log itself says are visible.
fn begin_directories(partition: &Partition, epoch: Epoch) {
    let (committed, now) = (partition.commit.committed(), partition.moment());
    let visible = partition.directories.begin(&partition.tree().namespace, epoch, committed, now);
    partition.commit.advance_directories(visible);
}
