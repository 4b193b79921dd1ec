//! The namespace as a member's log makes it, with what is known of the edits in flight.

use crate::{
    broken::{Broken, Rules},
    doubt::Doubt,
    recent_events::RecentEvents,
    until::{Log, Until},
};
use base::{
    Entry, EntryKind, GroupId, InodeId, Sn, TxId, UnknownLevel,
    directory_log::{self, Dix},
};
use bytes::Bytes;
use group::{EpochStart, StateDigest};
use namespace::{
    Applied, BlockChange, Edit, Mark, Namespace, NewEpoch, Sight, Watch, Watches, older_calls::Noted,
    ops::Body,
};
use std::{error::Error as StdError, sync::Arc};

/// An entry of the log cannot be applied.
pub type ApplyError = Box<dyn StdError + Send + Sync>;

/// The namespace with what is known of its edits in flight.
pub struct Tree {
    pub namespace: Namespace,
    doubt: Doubt,
    /// The last checkpoint that was applied before it had committed, and its place.
    ahead_checkpoint: Option<(Sn, Bytes)>,
    /// The marks of the edit just applied.
    footprint: Vec<Mark>,
    /// The last entry of the directory log that the root group's tree shows. In other groups 0: they apply visible entries alone.
    ordered: Dix,
    /// The watches on subtrees that are looked at for plans.
    watches: Watches,
    /// The events of the latest entries, while a client watches.
    events: Option<RecentEvents>,
    rules: Rules,
}

/// The part of an entry that concerns the namespace.
#[derive(Debug)]
pub enum Said {
    Edit(Edit),
    EpochStart(NewEpoch),
    Checkpoint,
}

impl Said {
    /// Reads an entry of the log.
    ///
    /// # Errors
    /// The entry cannot be decoded, or raises the group to a level that this program does not know.
    pub fn of(entry: &Entry) -> Result<Self, ApplyError> {
        Ok(match entry.kind {
            EntryKind::Operation => {
                let edit = Edit::decode(&entry.payload)?;
                if let Body::RaiseLevel(raised) = &edit.body
                    && !raised.level.is_known()
                {
                    let release = raised.release.to_string();
                    return Err(UnknownLevel { level: raised.level, release }.into());
                }
                Self::Edit(edit)
            }
            EntryKind::EpochStart => {
                let start =
                    EpochStart::decode(&entry.payload).ok_or("the first entry of an epoch is malformed")?;
                Self::EpochStart(epoch_of(&start))
            }
            EntryKind::Checkpoint => Self::Checkpoint,
        })
    }

    /// The note about it for the index of older calls.
    pub fn noted(&self, at: TxId) -> Noted {
        match self {
            Self::Edit(edit) => Noted::edit(at.sn, edit),
            Self::EpochStart(_) | Self::Checkpoint => Noted::no_edit(at.sn),
        }
    }

    /// Applies it to a namespace that has no edits in flight. Returns what it changed of blocks.
    ///
    /// # Errors
    /// It is not the next entry.
    pub fn apply(&self, namespace: &mut Namespace, at: TxId) -> Result<Vec<BlockChange>, ApplyError> {
        let expected = namespace.applied().sn.0 + 1;
        if at.sn.0 != expected {
            return Err(format!("entry {at} is to be applied where {expected} is the next").into());
        }
        match self {
            Self::Edit(edit) => Ok(namespace.apply(at, edit).block_changes),
            // The next entry may give out an id above those that are skipped here.
            Self::EpochStart(epoch) => Ok(vec![namespace.start_epoch(at, *epoch)]),
            Self::Checkpoint => {
                namespace.skip_to(at);
                Ok(Vec::new())
            }
        }
    }
}

fn touch_entry(doubt: &mut Doubt, entry: &directory_log::Entry) {
    let marks: Vec<Mark> = entry.marks.iter().filter_map(|mark| Mark::of_directory_log(*mark)).collect();
    doubt.touch(Log::DIRECTORIES, Sn(entry.dix.0), &marks);
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

impl Tree {
    /// The tree as recovery has left it: nothing is in flight.
    pub fn new(namespace: Namespace, rules: Rules) -> Self {
        let mut doubt = Doubt::default();
        let mut ordered = Dix(0);
        if namespace.group() == GroupId::ROOT {
            ordered = namespace.directory_log().dix;
            namespace.directory_entries_in_doubt().1.iter().for_each(|entry| touch_entry(&mut doubt, entry));
        }
        Self {
            namespace,
            doubt,
            ordered,
            ahead_checkpoint: None,
            footprint: Vec::new(),
            watches: Watches::default(),
            events: None,
            rules,
        }
    }

    /// The tree with the events of the entries that recovery has applied.
    pub fn with_events(self, events: Option<RecentEvents>) -> Self {
        Self { events, ..self }
    }

    /// Applies an entry that has committed. Returns what it changed of blocks.
    ///
    /// # Errors
    /// It is not the next entry.
    pub fn apply_committed(&mut self, at: TxId, said: &Said) -> Result<Vec<BlockChange>, ApplyError> {
        self.watches.spoil_all();
        if let Said::Edit(edit) = said {
            self.order(edit);
            self.tell_events(at, edit);
        }
        said.apply(&mut self.namespace, at)
    }

    /// Notes that an edit is an entry of the directory log: it is in doubt until it is visible, also when it has committed.
    fn order(&mut self, edit: &Edit) {
        let Some(ordered) = edit.directory_entry() else { return };
        self.doubt.forget(Log::DIRECTORIES, Sn(ordered.visible.0));
        touch_entry(&mut self.doubt, &ordered.entry);
        self.ordered = ordered.entry.dix;
    }

    /// Applies an entry that may have committed, or not: one that a new active has inherited. A read that sees its effect
    /// waits until it has. Returns what it changed of blocks.
    ///
    /// # Errors
    /// It is not the next entry.
    pub fn apply_ahead(
        &mut self,
        at: TxId,
        said: &Said,
        payload: &Bytes,
    ) -> Result<Vec<BlockChange>, ApplyError> {
        self.watches.spoil_all();
        match said {
            Said::Edit(edit) => {
                if !self.rules.break_rule(Broken::InheritedTakenAsCommitted) {
                    self.touch(at.sn, edit);
                }
                self.order(edit);
                self.tell_events(at, edit);
            }
            Said::Checkpoint => self.ahead_checkpoint = Some((at.sn, payload.clone())),
            Said::EpochStart(_) => {}
        }
        said.apply(&mut self.namespace, at)
    }

    /// Applies an edit that this member has planned as the active, behind everything applied. A read that sees its effect
    /// waits until it has committed.
    pub fn apply_own(&mut self, at: TxId, edit: &Edit) -> Applied {
        if !self.rules.break_rule(Broken::OwnTakenAsCommitted) {
            self.touch(at.sn, edit);
        }
        self.order(edit);
        self.watches.tell(&self.namespace, edit);
        self.tell_events(at, edit);
        self.namespace.apply(at, edit)
    }

    /// From here on the events of all entries are kept, or none are. Returns what is kept no more, to be dropped while nothing is locked.
    pub fn keep_events(&mut self, keep: bool) -> Option<RecentEvents> {
        if !keep {
            return self.events.take();
        }
        if self.events.is_none() {
            self.events = Some(RecentEvents::after(self.namespace.applied().sn));
        }
        None
    }

    /// The events of the latest entries, those in flight among them; `None` if they are not kept.
    pub fn events(&self) -> Option<&RecentEvents> {
        self.events.as_ref()
    }

    /// To be called before the edit is applied.
    fn tell_events(&mut self, at: TxId, edit: &Edit) {
        if let Some(events) = &mut self.events {
            events.push(at.sn, edit.events(&self.namespace));
        }
    }

    /// Sets a watch on a directory and all below it: it tells whether the tree has changed there since. `None` while too many are set. See
    /// [`namespace::Looks`].
    pub fn watch(&mut self, top: InodeId) -> Option<Arc<Watch>> {
        self.watches.set(top)
    }

    fn touch(&mut self, sn: Sn, edit: &Edit) {
        self.footprint.clear();
        edit.footprint(&self.namespace, &mut self.footprint);
        self.doubt.touch(Log::OWN, sn, &self.footprint);
    }

    /// Forgets the marks of what is certain. Called before each batch of edits.
    pub fn forget(&mut self, certain: Until) {
        self.doubt.forget(Log::OWN, certain.of(Log::OWN));
        self.doubt.forget(Log::DIRECTORIES, certain.of(Log::DIRECTORIES));
    }

    /// The checkpoint that was applied before it had committed, if it has by now.
    pub fn take_ahead_checkpoint(&mut self, committed: Sn) -> Option<Bytes> {
        self.ahead_checkpoint.take_if(|(at, _)| *at <= committed).map(|(_, payload)| payload)
    }

    /// What has to be certain before an answer about all that the tree shows may go out.
    pub fn shows(&self) -> Until {
        Until::own(self.namespace.applied().sn).and(Until::entry(Log::DIRECTORIES, Sn(self.ordered.0)))
    }

    /// The entry of the directory log that has to be visible before the answer to a change may go out that comes to this edit: the edit itself, if it is
    /// one, or else the last in doubt that touches what the edit changes, its name, or the way there. To be asked before the edit is applied.
    pub fn rests_on_directories(&self, edit: &Edit) -> Until {
        if let Some(ordered) = edit.directory_entry() {
            // The log becomes visible from its beginning on: with the entry, all before it.
            return Until::entry(Log::DIRECTORIES, Sn(ordered.entry.dix.0));
        }
        if self.doubt.is_clear_of(Log::DIRECTORIES) {
            return Until::NOW;
        }
        let mut seen = Vec::new();
        edit.rests_on(&self.namespace, &mut seen);
        match seen.is_empty() {
            // The edit does not say what its plan has looked at.
            true => self.shows().only(Log::DIRECTORIES),
            false => self.doubt.until(&seen).only(Log::DIRECTORIES),
        }
    }

    /// What has to be certain before an answer to a look at this part of the tree may go out, while everything up to `certain` is
    /// known to be. `None`: the answer need not wait.
    pub fn rests_on(&self, certain: Until, sight: Sight<'_>) -> Option<Until> {
        if self.shows().is_over(&certain) {
            return None;
        }
        let mut seen = Vec::new();
        let rests_on = match sight.marks(&self.namespace, &mut seen) {
            true => self.doubt.until(&seen),
            false => self.shows(),
        };
        (!rests_on.is_over(&certain)).then_some(rests_on)
    }

    /// The digest right behind the last entry applied.
    pub fn digest(&self) -> StateDigest {
        digest_of(&self.namespace)
    }
}

/// Applies an entry of the log to a namespace that has no edits in flight, as every member does. Returns what it changed of
/// blocks.
///
/// # Errors
/// The entry cannot be read, or is not the next one.
pub fn apply_entry(namespace: &mut Namespace, entry: &Entry) -> Result<Vec<BlockChange>, ApplyError> {
    apply_entry_telling(namespace, entry, &mut None)
}

/// Applies an entry like [`apply_entry`], and keeps its events in `events`, if that is there.
///
/// # Errors
/// Those of [`apply_entry`].
pub fn apply_entry_telling(
    namespace: &mut Namespace,
    entry: &Entry,
    events: &mut Option<RecentEvents>,
) -> Result<Vec<BlockChange>, ApplyError> {
    let said = Said::of(entry)?;
    if let (Some(events), Said::Edit(edit)) = (events, &said) {
        events.push(entry.id.sn, edit.events(namespace));
    }
    said.apply(namespace, entry.id)
}

/// The digest of the namespace right behind the last entry applied. It is updated with every edit, so this looks at no
/// inode.
pub fn digest_of(namespace: &Namespace) -> StateDigest {
    StateDigest { at: namespace.applied(), form: Namespace::DIGEST_FORM, digest: namespace.digest() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Caller, Epoch, Moment, Timestamp};
    use namespace::{Context, Limits, Planned, ops};

    fn mkdir(tree: &Tree, path: &str) -> Edit {
        let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
        let context = Context {
            caller: &caller,
            origin: None,
            fingerprint: 0,
            now: Timestamp::from_ms(1),
            moment: Moment::default(),
            limits: &limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        };
        let request = ops::mkdirs::Request {
            path: path.into(),
            permission: 0o755,
            unmasked: None,
            create_parent: true,
        };
        match ops::mkdirs::plan(&tree.namespace, &context, &request) {
            Ok(Planned::Edit(edit)) => edit.into(),
            other => panic!("{other:?}"),
        }
    }

    fn at(sn: u64) -> TxId {
        TxId { epoch: Epoch(1), sn: Sn(sn) }
    }

    fn tree() -> Tree {
        Tree::new(Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)), Rules::default())
    }

    #[test]
    fn a_read_waits_for_the_edits_that_it_has_seen_and_for_no_others() {
        let mut tree = tree();
        let edit = mkdir(&tree, "/a/b");
        tree.apply_own(at(1), &edit);
        // Another member's entry, inherited by this one.
        let edit = mkdir(&tree, "/c");
        tree.apply_ahead(at(2), &Said::Edit(edit), &Bytes::new()).unwrap();
        assert_eq!(tree.rests_on(Until::own(Sn(0)), Sight::Paths("/a/b".into())), Some(Until::own(Sn(1))));
        assert_eq!(tree.rests_on(Until::own(Sn(0)), Sight::Paths("/c".into())), Some(Until::own(Sn(2))));
        assert_eq!(tree.rests_on(Until::own(Sn(0)), Sight::Paths("/d".into())), None);
        assert_eq!(tree.rests_on(Until::own(Sn(0)), Sight::Listings("/".into())), Some(Until::own(Sn(2))));
        assert_eq!(tree.rests_on(Until::own(Sn(0)), Sight::Everything), Some(Until::own(Sn(2))));
        assert_eq!(tree.rests_on(Until::own(Sn(1)), Sight::Paths("/a/b".into())), None);
        assert_eq!(tree.rests_on(Until::own(Sn(2)), Sight::Everything), None);
        tree.forget(Until::own(Sn(2)));
        assert!(tree.doubt.is_empty());
    }

    #[test]
    fn entries_are_applied_in_their_order_only() {
        let mut tree = tree();
        let edit = mkdir(&tree, "/a");
        let refused = tree.apply_committed(at(2), &Said::Edit(edit)).unwrap_err();
        assert!(refused.to_string().contains("where 1 is the next"), "{refused}");
    }

    #[test]
    fn a_checkpoint_that_was_inherited_counts_once_it_has_committed() {
        let mut tree = tree();
        tree.apply_ahead(at(1), &Said::Checkpoint, &Bytes::from_static(b"image")).unwrap();
        assert_eq!(tree.take_ahead_checkpoint(Sn(0)), None);
        assert_eq!(tree.take_ahead_checkpoint(Sn(1)), Some(Bytes::from_static(b"image")));
        assert_eq!(tree.take_ahead_checkpoint(Sn(1)), None);
    }

    #[test]
    fn events_are_kept_on_request_whatever_way_the_entries_come() {
        let mut tree = tree();
        let edit = mkdir(&tree, "/before");
        tree.apply_own(at(1), &edit);
        assert!(tree.events().is_none());
        assert!(tree.keep_events(true).is_none());
        let edit = mkdir(&tree, "/own");
        tree.apply_own(at(2), &edit);
        let edit = mkdir(&tree, "/committed");
        tree.apply_committed(at(3), &Said::Edit(edit)).unwrap();
        tree.apply_committed(at(4), &Said::Checkpoint).unwrap();
        let edit = mkdir(&tree, "/ahead");
        assert!(tree.keep_events(true).is_none(), "they are kept on");
        tree.apply_ahead(at(5), &Said::Edit(edit), &Bytes::new()).unwrap();
        let told = tree.events().unwrap().told(Sn(1), Sn(5), 9);
        assert_eq!(told.span, Some((Sn(2), Sn(5))));
        assert_eq!(told.batches.iter().map(|batch| batch.at.0).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!(tree.keep_events(false).map(|kept| kept.first()), Some(Sn(2)));
        assert!(tree.events().is_none());
    }

    #[test]
    fn a_replay_keeps_the_same_events() {
        let mut tree = tree();
        tree.keep_events(true);
        let (mut namespace, mut events) = (self::tree().namespace, Some(RecentEvents::after(Sn(0))));
        for (sn, path) in [(1, "/a"), (2, "/a/b/c")] {
            let edit = mkdir(&tree, path);
            let mut payload = Vec::new();
            edit.encode(&mut payload);
            tree.apply_own(at(sn), &edit);
            let entry = Entry {
                id: at(sn),
                kind: EntryKind::Operation,
                previous_chain: base::Chain(0),
                payload: payload.into(),
            };
            apply_entry_telling(&mut namespace, &entry, &mut events).unwrap();
        }
        let live = tree.events().unwrap().told(Sn(1), Sn(2), 9);
        assert_eq!(events.unwrap().told(Sn(1), Sn(2), 9), live);
        assert_eq!(live.batches[1].events.len(), 2);
    }

    #[test]
    fn a_watch_notices_an_edit_of_this_member_below_it_and_any_entry_of_another() {
        let mut tree = tree();
        let edit = mkdir(&tree, "/a");
        tree.apply_own(at(1), &edit);
        let a = InodeId(16386);
        let watch = tree.watch(a).expect("one is free");
        let edit = mkdir(&tree, "/b");
        tree.apply_own(at(2), &edit);
        assert!(watch.is_intact());
        let edit = mkdir(&tree, "/a/c");
        tree.apply_own(at(3), &edit);
        assert!(!watch.is_intact());
        for number in 4..6 {
            let watch = tree.watch(a).expect("one is free");
            let edit = mkdir(&tree, &format!("/b/{number}"));
            match number {
                4 => drop(tree.apply_committed(at(4), &Said::Edit(edit)).unwrap()),
                _ => drop(tree.apply_ahead(at(5), &Said::Edit(edit), &Bytes::new()).unwrap()),
            }
            assert!(!watch.is_intact(), "entry {number}");
        }
        let watch = tree.watch(a).expect("one is free");
        // Another tree takes its place.
        drop(tree);
        assert!(!watch.is_intact());
    }
}
