//! Drops records and entries that no snapshot sees any more, at most 1,000 in an edit.
//!
//! After a snapshot was deleted, a sweep goes once over the side tables: a record or entry goes if no living snapshot
//! in its interval sees it. After a subtree was deleted under a snapshot, the subtree is searched for inodes that
//! came into it after the last snapshot; a very large one is left to a sweep.
//!
//! A deleted file may want more replicas than the snapshots that still see it. Then it gets another replication first,
//! by an edit of its own: see [`super::set_replication`].
//!
//! An inode that loses its last name here joins the orphans, which [`super::cleanup`] takes apart.

use crate::{
    Context, DecodeError, Namespace, Reply, SnapshotId,
    charge::{
        ledger::Ledger,
        past::{self, Gone},
    },
    codec::{self, Field, record_fields},
    edit::Edit,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::{delete::INODES_AT_ONCE, set_replication::SetReplicationEdit},
    snapshots::{AFTER_ALL, BEFORE_ALL, Cursor, EntryKey, RecordKey, Snapshots},
    store::{
        NONE,
        inode::{BORN, NAMED},
    },
};
use base::InodeId;
use std::{ops::Bound, sync::Arc};

/// Keys or inodes looked at for one edit. About a millisecond's worth, by eye.
const LOOKED_AT_MAX: usize = 4_000;
/// A kept subtree with more inodes than this is not searched by itself.
const SEARCHED_MAX: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepEdit {
    pub records: Vec<RecordKey>,
    pub entries: Vec<EntryName>,
    /// The births of these no longer matter to any snapshot.
    pub births: Vec<InodeId>,
    /// No snapshot sees the current entries of these, in subtrees that only snapshots keep.
    pub unlinked: Vec<InodeId>,
    /// Files that lose the blocks which no snapshot sees.
    pub trimmed: Vec<InodeId>,
    pub step: Step,
}

record_fields! { SweepEdit { records, entries, births, unlinked, trimmed, step } }

/// The next step of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Sweep(Edit<SweepEdit>),
    SetReplication(Edit<SetReplicationEdit>),
}

/// Directory, name, and the last snapshot that sees the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName {
    pub directory: InodeId,
    pub name: Box<[u8]>,
    pub died: SnapshotId,
}

record_fields! { EntryName { directory, name, died } }

impl EntryName {
    fn of(key: &EntryKey) -> Self {
        Self { directory: key.0, name: (&*key.1).into(), died: key.2 }
    }

    pub(crate) fn key(&self) -> EntryKey {
        (self.directory, Arc::from(&*self.name), self.died)
    }
}

/// The work that is left after an edit.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Step {
    /// Nothing.
    #[default]
    Aside,
    /// The subtree to be searched first has been.
    Searched,
    /// The subtree to be searched first is too large: a sweep is to find what is to be found in it.
    TooLarge,
    /// The sweep goes on behind this key; `None`: it has come to the end.
    Swept(Option<Place>),
}

/// A place in the side tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    table: u16,
    inode: InodeId,
    name: Box<[u8]>,
    snapshot: SnapshotId,
}

record_fields! { Place { table, inode, name, snapshot } }

impl Place {
    pub(crate) fn of(cursor: &Cursor) -> Self {
        let none = Box::from(&b""[..]);
        match cursor {
            Cursor::Records(inode, snapshot) => {
                Self { table: 0, inode: *inode, name: none, snapshot: *snapshot }
            }
            Cursor::Entries(inode, name, snapshot) => {
                Self { table: 1, inode: *inode, name: (&**name).into(), snapshot: *snapshot }
            }
            Cursor::Births(inode) => Self { table: 2, inode: *inode, name: none, snapshot: BEFORE_ALL },
        }
    }

    /// A table that is not known counts as the last: there is nothing behind it.
    pub(crate) fn cursor(&self) -> Cursor {
        match self.table {
            0 => Cursor::Records(self.inode, self.snapshot),
            1 => Cursor::Entries(self.inode, Arc::from(&*self.name), self.snapshot),
            _ => Cursor::Births(self.inode),
        }
    }
}

impl Field for Step {
    fn encode(&self, out: &mut codec::Writer<'_>) {
        match self {
            Step::Aside => out.byte(0),
            Step::Searched => out.byte(1),
            Step::TooLarge => out.byte(2),
            Step::Swept(place) => {
                out.byte(3);
                place.encode(out);
            }
        }
    }

    fn decode(input: &mut codec::Reader<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            0 => Ok(Step::Aside),
            1 => Ok(Step::Searched),
            2 => Ok(Step::TooLarge),
            3 => Ok(Step::Swept(Field::decode(input)?)),
            _ => Err(input.malformed("no step of a sweep")),
        }
    }
}

impl SweepEdit {
    fn len(&self) -> usize {
        self.records.len() + self.entries.len() + self.births.len() + self.unlinked.len() + self.trimmed.len()
    }

    fn is_full(&self) -> bool {
        self.len() >= INODES_AT_ONCE
    }
}

/// The next step, or `None` when nothing is left to do.
pub(crate) fn plan(ns: &Namespace, ctx: &Context<'_>) -> Option<Plan> {
    let mut edit = SweepEdit::default();
    if let Some(top) = ns.tree.snapshots.unsearched.front() {
        search(ns, *top, &mut edit);
    } else {
        let cursor = ns.tree.snapshots.sweep.as_ref()?;
        if let Some(lower) = first_to_lower(ns, cursor) {
            return Some(Plan::SetReplication(Edit::of_service(ns, ctx, lower)));
        }
        edit.step = Step::Swept(sweep(ns, cursor, &mut edit).as_ref().map(Place::of));
    }
    Some(Plan::Sweep(Edit::of_service(ns, ctx, edit)))
}

/// The sweep stops before a file that must be lowered, so it is the first behind the cursor.
fn first_to_lower(ns: &Namespace, cursor: &Cursor) -> Option<SetReplicationEdit> {
    let Cursor::Records(inode, key) = cursor else { return None };
    let behind = (Bound::Excluded((*inode, *key)), Bound::Unbounded);
    let ((inode, _), _) = ns.tree.snapshots.records.range(behind).next()?;
    let file = kept_file(ns, *inode)?;
    Some(SetReplicationEdit { inode: *inode, replication: ns.lower_replication(file)? })
}

/// The handle of a file that only snapshots have.
fn kept_file(ns: &Namespace, inode: InodeId) -> Option<u32> {
    let handle = ns.handle(inode)?;
    (ns.tree.inode(handle).is_file() && !ns.tree.is_attached(handle)).then_some(handle)
}

/// Drops entries of a directory that is being taken apart.
pub(crate) fn plan_entries_of(ns: &Namespace, ctx: &Context<'_>, directory: InodeId) -> Edit<SweepEdit> {
    let entries = ns.tree.snapshots.entries_of(directory).take(INODES_AT_ONCE);
    let entries = entries.map(|(key, _)| EntryName::of(key)).collect();
    Edit::of_service(ns, ctx, SweepEdit { entries, ..SweepEdit::default() })
}

fn search(ns: &Namespace, top: InodeId, edit: &mut SweepEdit) {
    edit.step = Step::Searched;
    // It may have been swept meanwhile.
    let Some(top) = ns.handle(top).filter(|top| ns.tree.inode(*top).has(NAMED)) else { return };
    let mut stack = vec![top];
    let mut searched = 0;
    while let Some(handle) = stack.pop() {
        let inode = ns.tree.inode(handle);
        if inode.is_file() {
            if ns.is_to_be_trimmed(handle) {
                edit.trimmed.push(inode.id());
            }
        } else {
            for child in ns.tree.children_of(handle, 0) {
                searched += 1;
                if is_unseen(ns, child) {
                    edit.unlinked.push(ns.tree.inode(child).id());
                } else {
                    stack.push(child);
                }
                if edit.is_full() || searched > SEARCHED_MAX {
                    break;
                }
            }
        }
        if searched > SEARCHED_MAX {
            edit.step = Step::TooLarge;
            return;
        }
        if edit.is_full() {
            // Not yet done: what is named here will not be found again.
            edit.step = Step::Aside;
            return;
        }
    }
}

/// Whether no snapshot sees the current entry of an inode in a kept subtree.
fn is_unseen(ns: &Namespace, child: u32) -> bool {
    let inode = ns.tree.inode(child);
    inode.has(BORN) && ns.latest_seeing(inode.parent, ns.birth_of(child), AFTER_ALL).is_none()
}

/// Looks at some keys behind the cursor; answers where to go on.
fn sweep(ns: &Namespace, cursor: &Cursor, edit: &mut SweepEdit) -> Option<Cursor> {
    let mut cursor = cursor.clone();
    let mut left = LOOKED_AT_MAX;
    let snapshots = &ns.tree.snapshots;
    if let Cursor::Records(inode, key) = cursor {
        match sweep_records(ns, snapshots, (inode, key), &mut left, edit) {
            Some((inode, key)) => return Some(Cursor::Records(inode, key)),
            None => cursor = Cursor::Entries(InodeId(0), Arc::from(&b""[..]), BEFORE_ALL),
        }
    }
    if let Cursor::Entries(directory, name, died) = cursor {
        match sweep_entries(ns, snapshots, (directory, name, died), &mut left, edit) {
            Some((directory, name, died)) => return Some(Cursor::Entries(directory, name, died)),
            None => cursor = Cursor::Births(InodeId(0)),
        }
    }
    if let Cursor::Births(inode) = cursor {
        return sweep_births(ns, snapshots, inode, &mut left, edit).map(Cursor::Births);
    }
    None
}

fn sweep_records(
    ns: &Namespace,
    snapshots: &Snapshots,
    after: RecordKey,
    left: &mut usize,
    edit: &mut SweepEdit,
) -> Option<RecordKey> {
    let mut last = after;
    // The key before belongs to the same inode, or does not matter.
    let mut previous = after;
    for (key, _) in snapshots.records.range((Bound::Excluded(after), Bound::Unbounded)) {
        if *left == 0 || edit.is_full() {
            return Some(last);
        }
        *left -= 1;
        let kept = kept_file(ns, key.0).filter(|_| edit.trimmed.last() != Some(&key.0));
        if kept.is_some_and(|file| ns.lower_replication(file).is_some()) {
            return Some(last);
        }
        edit.trimmed.extend(kept.map(|_| key.0));
        let low = match previous {
            (inode, low) if inode == key.0 => snapshots.key_before(key.0, key.1).max(low),
            _ => snapshots.key_before(key.0, key.1),
        };
        previous = *key;
        last = *key;
        let Some(handle) = ns.handle(key.0) else { continue };
        if ns.latest_seeing(handle, low, key.1).is_none() {
            edit.records.push(*key);
        }
    }
    None
}

fn sweep_entries(
    ns: &Namespace,
    snapshots: &Snapshots,
    after: EntryKey,
    left: &mut usize,
    edit: &mut SweepEdit,
) -> Option<EntryKey> {
    let mut last = after.clone();
    for (key, entry) in snapshots.entries.range((Bound::Excluded(after), Bound::Unbounded)) {
        if *left == 0 || edit.is_full() {
            return Some(last);
        }
        *left -= 1;
        last = key.clone();
        let directory = ns.handle(key.0);
        if directory.is_none_or(|directory| ns.latest_seeing(directory, entry.born, key.2).is_none()) {
            edit.entries.push(EntryName::of(key));
        }
    }
    None
}

fn sweep_births(
    ns: &Namespace,
    snapshots: &Snapshots,
    after: InodeId,
    left: &mut usize,
    edit: &mut SweepEdit,
) -> Option<InodeId> {
    let mut last = after;
    for (inode, born) in snapshots.births.range((Bound::Excluded(after), Bound::Unbounded)) {
        if *left == 0 || edit.is_full() {
            return Some(last);
        }
        *left -= 1;
        last = *inode;
        let Some(handle) = ns.handle(*inode) else { continue };
        let parent = ns.tree.inode(handle).parent;
        if parent == NONE {
            continue;
        }
        if !ns.tree.is_attached(handle) && ns.is_held(handle) && is_unseen(ns, handle) {
            edit.unlinked.push(*inode);
        } else if ns.latest_seeing(parent, BEFORE_ALL, *born).is_none() {
            edit.births.push(*inode);
        }
    }
    None
}

impl Operation for SweepEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, _: &mut Marks<'_>) {
        // The inodes and entries that go are seen by no snapshot that is left.
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // It takes away only what no snapshot sees.
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let gone = Gone {
            ns,
            entries: self.entries.iter().map(|entry| entry.key()).collect(),
            unlinked: self.unlinked.iter().copied().collect(),
            records: &self.records,
            trimmed: &self.trimmed,
        };
        past::sweep(ledger, &gone);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        for key in &self.records {
            ns.drop_record(*key, applying.changes);
        }
        for inode in &self.trimmed {
            let file = ns.expect(*inode);
            ns.trim(file, applying.changes);
        }
        for entry in &self.entries {
            ns.drop_entry(&entry.key());
        }
        for inode in &self.births {
            let handle = ns.expect(*inode);
            ns.tree.snapshots.remove_birth(*inode);
            ns.tree.inodes.get_mut(handle).set_flag(BORN, false);
        }
        for inode in &self.unlinked {
            let handle = ns.expect(*inode);
            ns.unlink(handle);
            ns.discard(handle, false, applying.changes);
        }
        let snapshots = &mut ns.tree.snapshots;
        match &self.step {
            Step::Aside => {}
            Step::Searched => drop(snapshots.unsearched.pop_front()),
            Step::TooLarge => {
                snapshots.unsearched.pop_front();
                snapshots.request_sweep();
            }
            Step::Swept(place) => {
                snapshots.sweep = place.as_ref().map(Place::cursor);
                if snapshots.sweep.is_none() && std::mem::take(&mut snapshots.sweep_again) {
                    snapshots.request_sweep();
                }
            }
        }
        Reply::Unit
    }
}
