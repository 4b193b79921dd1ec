//! Applies the group's decisions to the namespace. One code serves recovery, a standby, and the entries that a new
//! active has inherited.

use crate::{
    core::{Core, TURN_NS_MAX},
    replica::Followed,
    settle::{tell_ahead, tell_committed},
};
use base::{Entry, EntryKind, Sn, TxId, UnknownLevel};
use env::pulse;
use group::{EpochStart, Role, StateDigest};
use namespace::{BlockChange, Edit, Namespace, NewEpoch, Renewals, edit::Body, older_calls::Noted};
use std::{error::Error as StdError, sync::Arc};

pub type ApplyError = Box<dyn StdError + Send + Sync>;

/// The part of a journal entry that concerns the namespace.
enum Said {
    Edit(Edit),
    EpochStart(NewEpoch),
    Checkpoint,
}

fn said(entry: &Entry) -> Result<Said, ApplyError> {
    Ok(match entry.kind {
        EntryKind::Operation => {
            let edit = Edit::decode(&entry.payload)?;
            if let Body::RaiseLevel(raised) = &edit.body
                && !raised.level.is_known()
            {
                return Err(UnknownLevel { level: raised.level, release: raised.release.to_string() }.into());
            }
            Said::Edit(edit)
        }
        EntryKind::EpochStart => {
            let start =
                EpochStart::decode(&entry.payload).ok_or("the first entry of an epoch is malformed")?;
            Said::EpochStart(epoch_of(&start))
        }
        EntryKind::Checkpoint => Said::Checkpoint,
    })
}

/// One entry of the journal, as every member applies it. Returns what it changed of blocks.
pub fn entry(namespace: &mut Namespace, entry: &Entry) -> Result<Vec<BlockChange>, ApplyError> {
    apply(namespace, entry.id, &said(entry)?)
}

fn apply(namespace: &mut Namespace, at: TxId, said: &Said) -> Result<Vec<BlockChange>, ApplyError> {
    let expected = namespace.applied().sn.0 + 1;
    if at.sn.0 != expected {
        return Err(format!("entry {at} is to be applied where {expected} is the next").into());
    }
    match said {
        Said::Edit(edit) => Ok(namespace.apply(at, edit).block_changes),
        // The next entry may give out an id above those that are skipped here.
        Said::EpochStart(epoch) => Ok(vec![namespace.start_epoch(at, *epoch)]),
        Said::Checkpoint => {
            namespace.skip_to(at);
            Ok(Vec::new())
        }
    }
}

/// The note about an entry for the index of older calls.
fn noted(at: TxId, said: &Said) -> Noted {
    match said {
        Said::Edit(edit) => Noted::edit(at.sn, edit),
        Said::EpochStart(_) | Said::Checkpoint => Noted::no_edit(at.sn),
    }
}

/// The digest of the namespace right behind the last entry applied. It is updated with every edit, so this looks at
/// no inode.
pub fn digest_of(namespace: &Namespace) -> StateDigest {
    StateDigest { at: namespace.applied(), form: Namespace::DIGEST_FORM, digest: namespace.digest() }
}

/// The part of an epoch's first entry that concerns the tree.
fn epoch_of(start: &EpochStart) -> NewEpoch {
    NewEpoch {
        inodes: start.id_steps.inode,
        blocks: start.id_steps.block,
        generation_stamps: start.id_steps.generation_stamp,
        keeps_skipped: start.keeps_skipped,
        holds_deletions: start.is_unclean,
    }
}

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
            let applied = said(next).and_then(|said| {
                news.extend(is_fed.then(|| noted(next.id, &said)));
                apply(&mut tree.namespace, next.id, &said)
            });
            let changes = match applied {
                Ok(changes) => changes,
                // Every member is given this entry: to go on without it would be to go apart.
                Err(error) => panic!("committed entry {} cannot be applied: {error}", next.id),
            };
            tell_committed(&core.blocks, &changes, began);
            if next.kind == EntryKind::Checkpoint {
                digest = Some(digest_of(&tree.namespace));
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
        let checkpoint = core.tree_mut().ahead_checkpoint.take_if(|(at, _)| *at <= committed);
        if let Some((_, payload)) = checkpoint {
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
    let (mut footprint, mut unsettled) = (Vec::new(), Vec::new());
    while entries.peek().is_some() {
        let began = core.moment();
        pulse::step();
        let (mut news, is_fed) = (Vec::new(), feed.is_open());
        let mut tree = core.tree_mut();
        for next in entries.by_ref() {
            let said = said(next)
                .unwrap_or_else(|error| panic!("entry {} of the log cannot be read: {error}", next.id));
            match &said {
                Said::Edit(edit) => {
                    footprint.clear();
                    tree.namespace.footprint_of(edit, &mut footprint);
                    tree.uncommitted.touch(next.id.sn, &footprint);
                }
                Said::Checkpoint => tree.ahead_checkpoint = Some((next.id.sn, next.payload.clone())),
                Said::EpochStart(_) => {}
            }
            news.extend(is_fed.then(|| noted(next.id, &said)));
            let changes = apply(&mut tree.namespace, next.id, &said)
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
