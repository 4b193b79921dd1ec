//! Images of the namespace, written beside the running service, and which member writes them.
//!
//! A standby makes the group's images, so that the active is left alone: the in-sync member with the lowest number
//! that does not lead. It suggests the entry that makes its image usable to the active; once that has committed,
//! every other member fetches the image ([`crate::renew`]). The active makes one itself when nobody else is in
//! sync, when an operator asks for it, and when the standby is far too late.
//!
//! On the active the writer's thread freezes the tree between two turns, where the tree and the end of the log
//! agree; on a standby any moment will do, since all that it has applied has committed.

mod trigger;

pub use trigger::Trigger;
use trigger::Written;

use crate::{
    partition::{Partition, turn::Turn},
    renew,
};
use base::{EntryKind, LogPoint, MemberId, Moment, Sn};
use env::pulse;
use group::{Proposal, Status};
use journal::Checkpoint;
use namespace::FrozenTree;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// How often the thread looks whether an image is due.
const LOOK_PERIOD: Duration = Duration::from_millis(1_000);
/// A standby that is so many times later than it should be is not waited for.
const PATIENCE: u64 = 2;
/// How long the active has to append what was suggested, before it is suggested again.
const SUGGEST_PERIOD_MS: u64 = 5_000;
/// A suggestion that nobody has taken for so long is forgotten; the next image makes another.
const SUGGESTIONS_MAX: u32 = 12;
const RETRY_MS: u64 = 30_000;
/// How soon after an image another one is made for the room that it makes.
const FOR_ROOM_PERIOD_MS: u64 = 10_000;
/// The log may be so many times as long as an image before there is another one: most of what is written is log.
const IMAGES_OF_LOG: u64 = 4;
/// A log with fewer bytes an edit has no room to win: most edits have 150 to 300 bytes.
const DENSE_BYTES: u64 = 512;
/// How many times longer such a log may be, if many edits an image are configured.
const DENSE_TIMES: u64 = 16;
/// How often a disk that is nearly full is complained about, and the group handed over because of it.
const LOW_ROOM_PERIOD_MS: u64 = 600_000;

/// Runs on a thread of its own until [`Trigger::close`].
pub fn run(partition: &Arc<Partition>) {
    let mut maker = Maker::new(partition);
    maker.look_at_room(partition);
    while let Some(requests) = partition.checkpoint.wait(LOOK_PERIOD) {
        pulse::step();
        // Ready before the open segment is full, so that no writer waits for a new one to be made.
        if let Err(error) = partition.member.journal().prepare_segment()
            && partition.commit.failure().is_none()
        {
            tracing::warn!(error = chain(&error), "the next segment could not be prepared");
        }
        pack(partition);
        if let Some(reason) = partition.member.differs() {
            keep_evidence(partition);
            partition.member.give_up(reason);
            return;
        }
        maker.look_at_room(partition);
        maker.look(partition, !requests.is_empty());
        if requests.is_empty() {
            continue;
        }
        let result = maker.on_request(partition);
        for written in requests {
            written(result.clone());
        }
    }
}

/// Frees what edits that came one by one have left between them in a full segment. Packs one segment at a time, so
/// that an image waits for no more than one.
fn pack(partition: &Partition) {
    if partition.commit.failure().is_some() {
        return;
    }
    match partition.member.journal().pack_segment() {
        Ok(None) => {}
        Ok(Some(packed)) => tracing::debug!(
            from = %packed.sealed.start, bytes_before = packed.bytes_before, bytes_after = packed.bytes_after,
            "a file of the journal was packed"
        ),
        Err(error) => tracing::warn!(
            error = chain(&error),
            "a file of the journal could not be packed, and stays as it is"
        ),
    }
}

/// The member that is to make the next image: the in-sync member with the lowest number that does not lead, or else
/// the active.
fn maker_of(status: &Status) -> Option<MemberId> {
    let active = status.active?;
    let Some((view, _)) = &status.view else { return Some(active) };
    let standbys = view.in_sync.iter().map(|store| store.member).filter(|member| *member != active);
    Some(standbys.min().unwrap_or(active))
}

/// The state that this member keeps about images between two looks.
struct Maker {
    /// The newest image that is usable here, and since when.
    newest: Sn,
    since: Moment,
    /// An image of this standby that the active has not made usable yet.
    suggested: Option<Suggested>,
    /// No image is begun before this moment, after one that could not be written.
    not_before: Moment,
    complained_at: Option<Moment>,
    /// Bytes of log that were there at the start behind the newest image of then: how many of them it lacks is not known.
    bytes_before: u64,
    /// Edits in those bytes.
    edits_before: u64,
    /// Images made in a row because the disk was nearly full, and when the last was begun.
    for_room: u32,
    for_room_at: Option<Moment>,
}

struct Suggested {
    checkpoint: Checkpoint,
    at: Moment,
    count: u32,
}

impl Maker {
    fn new(partition: &Partition) -> Self {
        let (now, newest) = (partition.moment(), newest_image(partition));
        Self {
            newest,
            since: now,
            suggested: None,
            not_before: now,
            complained_at: None,
            bytes_before: partition.member.journal().bytes_since_checkpoint(),
            edits_before: partition.member.end().id.sn.0.saturating_sub(newest.0),
            for_room: 0,
            for_room_at: None,
        }
    }

    fn look(&mut self, partition: &Arc<Partition>, is_asked: bool) {
        let is_in_doubt = !partition.member.agreement().may_make_images();
        if is_in_doubt && let Some(suggested) = self.suggested.take() {
            withdraw(partition, &suggested.checkpoint);
        }
        let newest = newest_image(partition);
        if newest != self.newest {
            (self.newest, self.since) = (newest, partition.moment());
            (self.bytes_before, self.edits_before) = (0, 0);
        }
        self.suggest_again(partition);
        let status = partition.member.status();
        let me = partition.member.me().member;
        let is_active = partition.member.is_serving();
        let patience = match maker_of(&status) {
            Some(maker) if maker == me => 1,
            _ if is_active => PATIENCE,
            _ => return,
        };
        if is_asked
            || is_in_doubt
            || partition.moment() < self.not_before
            || self.suggested.is_some()
            || !self.is_due(partition, patience)
        {
            return;
        }
        if partition.condition.disk().1 {
            self.for_room += 1;
            self.for_room_at = Some(partition.moment());
        }
        let result = if is_active { write_as_active(partition) } else { self.write_as_standby(partition) };
        match result {
            Ok(at) => tracing::info!(%at, "image written"),
            Err(reason) => {
                // Service goes on from the journal.
                self.not_before = partition.moment().plus_ms(RETRY_MS);
                tracing::error!(reason, "the image could not be written");
            }
        }
    }

    fn is_due(&self, partition: &Partition, patience: u64) -> bool {
        let committed = partition.commit.committed();
        let edits = committed.0.saturating_sub(self.newest.0);
        // A member waits for an image that nobody has yet: in an idle group none would be due for long.
        let wanted = partition.member.image_wanted();
        if partition.member.is_serving() && self.newest < wanted && wanted <= committed {
            return true;
        }
        if self.makes_room(partition, edits) || self.log_is_long(partition, edits) {
            return true;
        }
        let (edits_max, period_ms) = (partition.config.edits_per_image, partition.config.image_period_ms);
        // The entries of the checkpoint itself and of a new epoch do not make another one due.
        edits >= edits_max.saturating_mul(patience)
            || (edits > 2 && partition.moment().ms_since(self.since) >= period_ms.saturating_mul(patience))
    }

    /// Two images make the log before the first of them superfluous.
    fn makes_room(&self, partition: &Partition, edits: u64) -> bool {
        let is_soon = self.for_room_at.is_some_and(|at| partition.moment().ms_since(at) < FOR_ROOM_PERIOD_MS);
        let has_old = partition.member.journal().segment_starts().len() > 1;
        partition.condition.disk().1 && !is_soon && (edits > 2 || has_old && edits > 0 && self.for_room < 2)
    }

    fn log_is_long(&self, partition: &Partition, edits: u64) -> bool {
        let journal = partition.member.journal();
        let bytes = journal.bytes_since_checkpoint().saturating_sub(self.bytes_before);
        let image_bytes = journal.images().last().map_or(0, |image| image.file_bytes);
        let of_config = partition.config.journal_bytes_per_image;
        let bytes_max = of_config.max(IMAGES_OF_LOG * image_bytes);
        let edits = edits.saturating_sub(self.edits_before);
        is_long(bytes, edits, bytes_max, of_config.saturating_mul(DENSE_TIMES))
    }

    /// An operator has asked the active.
    fn on_request(&mut self, partition: &Arc<Partition>) -> Result<(), String> {
        let result = write_as_active(partition);
        match &result {
            Ok(at) => tracing::info!(%at, "image written"),
            Err(reason) => tracing::error!(reason, "the image could not be written"),
        }
        result.map(drop)
    }

    fn write_as_standby(&mut self, partition: &Arc<Partition>) -> Result<LogPoint, String> {
        let journal = partition.member.journal();
        let (frozen, applied) = {
            let tree = partition.tree();
            (tree.namespace.freeze(), tree.namespace.applied())
        };
        // The place of the log, from the log itself: its chain is what ties an image to one history.
        let (at, _) = journal.read(applied.sn, applied.sn, 0).map_err(|error| chain(&error))?;
        if at.id != applied {
            return Err(format!("the namespace stands at {applied}, the log has {at} there"));
        }
        if applied.sn > partition.commit.committed() {
            return Err("this member has begun to lead".into());
        }
        let checkpoint = journal
            .write_image(at, |writer| frozen.write(&mut |bytes: &[u8]| writer.write(bytes)))
            .map_err(|error| chain(&error))?;
        self.suggested = Some(Suggested { checkpoint, at: partition.moment(), count: 0 });
        suggest(partition, &checkpoint);
        Ok(at)
    }

    fn suggest_again(&mut self, partition: &Arc<Partition>) {
        let Some(suggested) = &mut self.suggested else { return };
        if self.newest >= suggested.checkpoint.at.id.sn || suggested.count >= SUGGESTIONS_MAX {
            self.suggested = None;
        } else if partition.moment().ms_since(suggested.at) >= SUGGEST_PERIOD_MS {
            suggested.at = partition.moment();
            suggested.count += 1;
            suggest(partition, &suggested.checkpoint);
        }
    }

    /// A disk that is nearly full: an active gives the group to another member while it still can.
    fn look_at_room(&mut self, partition: &Arc<Partition>) {
        let is_time =
            self.complained_at.is_none_or(|at| partition.moment().ms_since(at) >= LOW_ROOM_PERIOD_MS);
        let Ok(room) = partition.member.journal().room() else { return };
        partition.condition.found_room(room);
        if !room.is_low {
            self.for_room = 0;
        }
        if !room.is_low || !is_time {
            return;
        }
        self.complained_at = Some(partition.moment());
        tracing::error!(free_bytes = room.free_bytes, "the disk of the metadata store is nearly full");
        let has_standby =
            maker_of(&partition.member.status()).is_some_and(|maker| maker != partition.member.me().member);
        if partition.member.is_serving() && has_standby {
            partition.member.order(
                group::Order::HandOver { to: None },
                Box::new(|answer| tracing::warn!(?answer, "handed over because of a full disk")),
            );
        }
    }
}

/// Whether the newest image has everything: what follows a checkpoint is its own entry, and that of a new epoch.
pub fn is_current(partition: &Partition) -> bool {
    let newest = newest_image(partition);
    newest > Sn(0) && partition.commit.committed().0 <= newest.0 + 1
}

pub fn newest_image(partition: &Partition) -> Sn {
    partition.member.journal().images().last().map_or(Sn(0), |image| image.at.id.sn)
}

/// Suggests to the active to append the entry that makes this image usable.
fn suggest(partition: &Arc<Partition>, checkpoint: &Checkpoint) {
    let proposal = Proposal { kind: EntryKind::Checkpoint, payload: checkpoint.encode() };
    if partition.member.is_serving() {
        partition.write(Box::new(move |turn: &mut Turn<'_>| turn.append_suggested(proposal)));
    } else {
        partition.member.suggest(proposal);
    }
}

fn write_as_active(partition: &Arc<Partition>) -> Result<LogPoint, String> {
    let (frozen, at) = freeze(partition)?;
    let journal = partition.member.journal();
    let checkpoint = journal
        .write_image(at, |writer| frozen.write(&mut |bytes: &[u8]| writer.write(bytes)))
        .map_err(|error| chain(&error))?;
    drop(frozen);

    let payload = checkpoint.encode();
    wait_for(|done| {
        partition.write(Box::new(move |turn: &mut Turn<'_>| turn.append_checkpoint(payload, done)))
    })?;
    if let Err(reason) = renew::wait_for_agreement(partition, true, &|| partition.commit.failure().is_some())
    {
        withdraw(partition, &checkpoint);
        return Err(reason);
    }
    journal.checkpoint_committed(&checkpoint).map_err(|error| chain(&error))?;
    Ok(at)
}

/// The image shows a state that other members have not.
fn withdraw(partition: &Partition, checkpoint: &Checkpoint) {
    match partition.member.journal().withdraw_image(checkpoint) {
        Ok(()) => {
            tracing::error!(at = %checkpoint.at, "the last image is not used: other members have made another state")
        }
        Err(error) => {
            tracing::error!(at = %checkpoint.at, %error, "an image that is in doubt could not be renamed")
        }
    }
}

/// Before a store is put aside because of what is in memory, an image of that memory goes into the store, for the
/// people who look for the cause. Nothing else needs the image: where it cannot be written, the store is put aside without it.
fn keep_evidence(partition: &Arc<Partition>) {
    let (frozen, applied) = {
        let tree = partition.tree();
        (tree.namespace.freeze(), tree.namespace.applied())
    };
    let journal = partition.member.journal();
    let written =
        journal.read(applied.sn, applied.sn, 0).map_err(|error| chain(&error)).and_then(|(at, _)| {
            let write =
                |writer: &mut journal::ImageWriter| frozen.write(&mut |bytes: &[u8]| writer.write(bytes));
            journal.write_image(at, write).map_err(|error| chain(&error))
        });
    match written {
        Ok(image) => {
            tracing::warn!(at = %image.at, "what is in memory was kept as an image, to be looked at")
        }
        Err(reason) => tracing::error!(reason, "what is in memory could not be kept as an image"),
    }
}

/// The tree as it is now, with nothing in it that has not committed: for a copy that leaves this server.
///
/// # Errors
/// The reason why it could not be taken: this member stops, or begins to lead.
pub fn committed_tree(partition: &Arc<Partition>) -> Result<FrozenTree, String> {
    if partition.member.is_serving() {
        return freeze(partition).map(|(frozen, _)| frozen);
    }
    let frozen = partition.tree().namespace.freeze();
    match frozen.applied().sn > partition.commit.committed() {
        true => Err("this member has begun to lead; ask again".into()),
        false => Ok(frozen),
    }
}

/// The tree at a place of the log that has committed.
fn freeze(partition: &Arc<Partition>) -> Result<(FrozenTree, LogPoint), String> {
    let slot = Arc::new(Mutex::new(None));
    let taken = slot.clone();
    wait_for(|done| {
        partition.write(Box::new(move |turn: &mut Turn<'_>| {
            turn.at_the_end(Box::new(move |namespace, end| *taken.lock() = Some((namespace.freeze(), end))));
            turn.after_commit(move |committed| done(committed.map_err(str::to_owned)));
        }))
    })?;
    slot.lock().take().ok_or_else(|| "the writer stopped".to_owned())
}

/// Runs `ask` and waits until its callback was called.
fn wait_for(ask: impl FnOnce(Written)) -> Result<(), String> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    ask(Box::new(move |result| {
        let _ = sender.send(result);
    }));
    // Whether it commits is up to other members.
    let _rest = pulse::rest();
    receiver.recv().unwrap_or_else(|_| Err("the server is stopping".into()))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// Whether a log of so many bytes, which these edits have taken since the last image, wants another image. Edits that come
/// one by one take a block of the disk each until their segment is full, so the log is kept to `bytes_max`. Where many
/// edits share a batch their number bounds the log, and `dense_max`: under such a load, an image every few seconds would cost more than it
/// saves.
fn is_long(bytes: u64, edits: u64, bytes_max: u64, dense_max: u64) -> bool {
    bytes >= bytes_max && bytes >= edits.saturating_mul(DENSE_BYTES).min(dense_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, GroupView, MemberStore};
    use group::Role;

    fn status(active: Option<u32>, in_sync: &[u32]) -> Status {
        let stores: Vec<_> =
            in_sync.iter().map(|member| MemberStore { member: MemberId(*member), generation: 0 }).collect();
        Status {
            role: Role::Following,
            view: Some((GroupView::new(&stores, 1), 1)),
            promised: Epoch(1),
            end: LogPoint::default(),
            committed: Sn(0),
            active: active.map(MemberId),
            hears_active: true,
            is_eligible: true,
            is_in_sync: true,
            is_writable: true,
            peers: Vec::new(),
            trouble: None,
            known: Default::default(),
            last_takeovers: Vec::new(),
        }
    }

    #[test]
    fn the_lowest_standby_makes_images_and_a_lone_active_its_own() {
        assert_eq!(maker_of(&status(Some(1), &[1, 2, 3])), Some(MemberId(2)));
        assert_eq!(maker_of(&status(Some(2), &[1, 2, 3])), Some(MemberId(1)));
        assert_eq!(maker_of(&status(Some(2), &[2])), Some(MemberId(2)));
        assert_eq!(maker_of(&status(None, &[1, 2, 3])), None, "nobody could commit its checkpoint");
    }

    #[test]
    fn edits_that_come_one_by_one_want_an_image_long_before_their_number_does() {
        assert!(!is_long(16_383 * 4_096, 16_383, 64 << 20, 1 << 30));
        assert!(is_long(16_384 * 4_096, 16_384, 64 << 20, 1 << 30));
    }

    #[test]
    fn edits_that_share_their_blocks_wait_until_there_are_many() {
        assert!(!is_long(230 * 999_999, 999_999, 64 << 20, 1 << 30));
        assert!(is_long(10_000 * 7_000, 7_000, 64 << 20, 1 << 30), "long edits are bounded by their bytes");
        // Ten million edits an image are configured.
        assert!(!is_long(230 * 4_600_000, 4_600_000, 64 << 20, 1 << 30));
        assert!(is_long(230 * 4_700_000, 4_700_000, 64 << 20, 1 << 30), "dense logs have a bound as well");
    }
}
