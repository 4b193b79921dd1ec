//! Finds out, before a change waits for the writer, whether its call is an old one.

use super::{Lookup, Older};
use crate::{core::Core, partition::Partition};
use base::{EntryKind, FsError, Sn};
use journal::ReadLogError;
use namespace::{Edit, RetryLookup, older_calls};
use rpc::{Call, Replier};
use std::{
    ops::RangeInclusive,
    sync::{Arc, atomic::Ordering},
};

/// Read from the journal at once.
const PIECE_BYTES: usize = 256 << 10;

/// Finds out whether a call is an old one that the retry cache has forgotten, and goes on with it: at once, unless the
/// journal has to be asked.
pub fn find(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    proceed: impl FnOnce(&Arc<Core>, Call, Replier, Older) + Send + 'static,
) {
    let older = &core.partition.older_answers;
    let unknown = match older.is_filling.load(Ordering::Acquire) {
        true => Older::NotYet,
        false => Older::Nothing,
    };
    if !older.has_index.load(Ordering::Acquire) {
        return proceed(core, call, reply, unknown);
    }
    let places = {
        let index = older.index.read();
        index
            .as_ref()
            .map(|index| index.places(call.origin.client_id, call.origin.call_id))
            .unwrap_or_default()
    };
    // A call that the retry cache still has is answered from there.
    let is_cached = || core.partition.tree().namespace.retry_lookup(&call.origin, 0) != RetryLookup::Miss;
    if places.is_empty() || is_cached() {
        return proceed(core, call, reply, unknown);
    }
    let asker = core.clone();
    let proceed = Box::new(move |call, reply, older| proceed(&asker, call, reply, older));
    let lookup = Lookup { call, reply, places, proceed };
    if let Some(refused) = older.push(lookup) {
        refused.reply.fs_error(&FsError::Retry(
            "Too many calls that may be repeated ones are looked for in the journal; try again in a moment."
                .into(),
        ));
    }
}

/// Runs on a thread of its own until [`OlderAnswers::close`].
pub fn run(core: &Arc<Core>) {
    while let Some(Lookup { call, reply, places, proceed }) = core.partition.older_answers.next() {
        if reply.is_abandoned() {
            continue;
        }
        core.partition.older_answers.looked_up.fetch_add(1, Ordering::Relaxed);
        let _holding = core.in_hand(&call).hold();
        match look(&core.partition, &call, &places) {
            Ok(known) => {
                let is_answered = known != RetryLookup::Miss;
                core.partition.older_answers.answered.fetch_add(is_answered.into(), Ordering::Relaxed);
                proceed(call, reply, Older::Known(known));
            }
            Err(reason) => {
                tracing::error!(
                    reason,
                    "whether a call was carried out before cannot be read from the journal"
                );
                reply.fs_error(&FsError::Retry(format!(
                    "Whether the call was carried out before cannot be read from the journal: {reason}"
                )));
            }
        }
    }
}

/// Reads the entries that may have made the edit of this call.
fn look(partition: &Partition, call: &Call, places: &[RangeInclusive<Sn>]) -> Result<RetryLookup, String> {
    let fingerprint = namespace::fingerprint(call.method, &call.request);
    for range in places {
        let (mut after, mut latest) = (Sn(range.start().0 - 1), None);
        while after < *range.end() {
            let entries = match partition.member.journal().read(after, *range.end(), PIECE_BYTES) {
                Ok((_, entries)) => entries,
                // The journal has let go of it meanwhile: the call is forgotten.
                Err(ReadLogError::Gone { .. }) => break,
                Err(error) => return Err(error.to_string()),
            };
            let Some(last) = entries.last() else { break };
            after = last.id.sn;
            for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Operation) {
                let edit =
                    Edit::decode(&entry.payload).map_err(|error| format!("entry {}: {error}", entry.id))?;
                latest = older_calls::answer_of(&edit, &call.origin, fingerprint).or(latest);
            }
        }
        if let Some(known) = latest {
            return Ok(known);
        }
    }
    Ok(RetryLookup::Miss)
}
