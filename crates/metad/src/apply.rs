//! Applies the group's decisions to the namespace: on a standby, and the entries that a new active has inherited.

use crate::{
    core::{Core, TURN_NS_MAX},
    replica::Followed,
    settle::{tell_ahead, tell_committed},
};
use base::{Entry, EntryKind, Sn};
use env::pulse;
use group::Role;
use namespace::Renewals;
use serving::Said;
use std::sync::Arc;

/// On the writer's thread: applies, then lets the commit be known, then the role.
pub fn follow(core: &Arc<Core>, followed: Followed) {
    if core.replica.is_ending() {
        // It may have applied what was cut off, and is built anew from its disk.
        return;
    }
    if let Some(first) = followed.apply.first() {
        // All before it has committed as well, and what this member applied of that when it led comes first.
        core.unsettled.settle(Sn(first.id.sn.0 - 1), core.moment());
    }
    let feed = &core.older_answers.feed;
    let mut entries = followed.apply.iter().peekable();
    while entries.peek().is_some() {
        let began = core.moment();
        pulse::step();
        let (mut digest, mut news, is_fed) = (None, Vec::new(), feed.is_open());
        let mut tree = core.tree_mut();
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
            tell_committed(&core.blocks, &changes, began);
            if next.kind == EntryKind::Checkpoint {
                digest = Some(tree.digest());
            }
            if core.moment().ns - began.ns > TURN_NS_MAX {
                break;
            }
        }
        // Stamps given out without a block, and what an epoch has raised.
        let (id, stamp) = tree.namespace.last_allocated();
        core.blocks.lock().set_last_allocated(id, stamp);
        drop(tree);
        feed.push(&mut news);
        if let Some(digest) = digest {
            core.replica.say_digest(digest);
        }
    }
    for entry in &followed.apply {
        if entry.kind == EntryKind::Checkpoint {
            core.checkpoints.send_replace(Some(entry.payload.clone()));
        }
    }
    apply_ahead(core, &followed.ahead);
    if let Some(sn) = followed.committed {
        core.replica.committed(sn);
    }
    if let Some(role) = followed.role {
        let committed = core.commit.committed();
        let checkpoint = core.tree_mut().take_ahead_checkpoint(committed);
        if let Some(payload) = checkpoint {
            core.checkpoints.send_replace(Some(payload));
        }
        if matches!(role, Role::Serving { .. }) {
            take_over(core);
        } else {
            core.blocks.lock().set_commanding(false, core.moment());
        }
        core.replica.publish(role);
    }
}

/// Applies entries that may not have committed yet. A read that sees their effect must not be answered before they
/// have.
fn apply_ahead(core: &Arc<Core>, entries: &[Entry]) {
    let feed = &core.older_answers.feed;
    let mut entries = entries.iter().peekable();
    let mut unsettled = Vec::new();
    while entries.peek().is_some() {
        let began = core.moment();
        pulse::step();
        let (mut news, is_fed) = (Vec::new(), feed.is_open());
        let mut tree = core.tree_mut();
        for next in entries.by_ref() {
            let said = Said::of(next)
                .unwrap_or_else(|error| panic!("entry {} of the log cannot be read: {error}", next.id));
            news.extend(is_fed.then(|| said.noted(next.id)));
            let changes = tree
                .apply_ahead(next.id, &said, &next.payload)
                .unwrap_or_else(|error| panic!("entry {} of the log cannot be applied: {error}", next.id));
            tell_ahead(&core.blocks, next.id.sn, changes, &[], began, &mut unsettled);
            if core.moment().ns - began.ns > TURN_NS_MAX {
                break;
            }
        }
        let (id, stamp) = tree.namespace.last_allocated();
        core.blocks.lock().set_last_allocated(id, stamp);
        drop(tree);
        feed.push(&mut news);
    }
    core.unsettled.wait(unsettled, core.moment());
}

/// Soft state that only the active has begins now: every writer has all of its time again.
fn take_over(core: &Core) {
    let now = core.moment();
    *core.renewals.lock() = Renewals::new(now);
    core.blocks.lock().set_commanding(true, now);
}
