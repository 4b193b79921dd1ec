//! The entry that "as of then" means, and the namespace as it was after that entry.
//!
//! An edit carries the time at which the active began with it, by its clock; the first entry of an epoch and that of an image carry none.
//! *As of a time* is the state before the first edit that carries a later time. Where the clock of an active was behind that
//! of an earlier one, edits behind that may carry an earlier time all the same: this is told, and an entry's number is exact.

use super::{
    places,
    target::{Found, TargetError, Until},
    time_of,
};
use crate::image_reading;
use base::{Block, Caller, Entry, LogPoint, Moment, Sn, Timestamp, TxId, directory_log::Point};
use journal::archive::{ArchiveError, Backup, Span};
use namespace::{AccessPolicy, Context, Limits, Namespace, ops::cleanup};
use std::ops::ControlFlow;

/// The namespace as it was.
pub struct Rebuilt {
    pub namespace: Namespace,
    pub at: LogPoint,
    pub found: Found,
}

/// Looks for the entry that is meant. Reads the log of one span where a time is given.
///
/// # Errors
/// [`TargetError::Empty`] if the backup is empty, [`TargetError::Outside`] if it has no entry of that number, of that
/// time, or for that place, [`TargetError::Archive`] if its log is damaged or cannot be read.
pub fn find(backup: &Backup, until: Until) -> Result<Found, TargetError> {
    let spans = &backup.manifest().spans;
    let last = spans.last().ok_or(TargetError::Empty)?;
    match until {
        Until::End => Ok(Found {
            span: last.clone(),
            at: last.end.id.sn,
            last_ms: last.end_ms,
            next: None,
            straggler: None,
            place: None,
        }),
        Until::Entry(sn) => {
            let holds = |span: &&Span| (span.begin.id.sn..=span.end.id.sn).contains(&sn);
            let Some(span) = spans.iter().find(holds) else { return Err(no_such_entry(spans, sn)) };
            let (mut last_ms, mut next) = (span.begin_ms, None);
            let _ = backup.walk(span, |entry| {
                let ms = time_of(&entry);
                if entry.id.sn <= sn {
                    last_ms = ms.or(last_ms);
                } else if let Some(ms) = ms {
                    next = Some((entry.id.sn, ms));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            Ok(Found { span: span.clone(), at: sn, last_ms, next, straggler: None, place: None })
        }
        Until::Time(ms) => at_time(backup, spans, ms),
        Until::Place(dix) => places::find(backup, dix),
    }
}

/// The last place in the directory log that the group had come to in that state, as far as the range tells. `None`: it has come to no place since
/// the range's image, or there is one group only.
///
/// # Errors
/// Those of [`find`].
pub fn last_place(backup: &Backup, until: Until) -> Result<Option<Point>, TargetError> {
    let found = find(backup, until)?;
    Ok(places::last_up_to(backup, &found.span, found.at)?)
}

fn no_such_entry(spans: &[Span], sn: Sn) -> TargetError {
    let before = spans.iter().rev().find(|span| span.end.id.sn < sn);
    let after = spans.iter().find(|span| span.begin.id.sn > sn);
    let why = match (before, after) {
        (Some(before), Some(after)) => format!(
            "entries {} to {} were removed by the members before they were archived; take {} or {}",
            before.end.id.sn.0 + 1,
            after.begin.id.sn.0 - 1,
            before.end.id.sn,
            after.begin.id.sn
        ),
        (Some(before), None) => format!("its last entry is {}", before.end.id.sn),
        (None, _) => format!("it begins with entry {}", spans.first().map_or(Sn(0), |span| span.begin.id.sn)),
    };
    TargetError::Outside { why, before: None, after: None, latest_ms: None, earliest_ms: None }
}

/// A span shows every time from its beginning up to the one up to which it is complete.
fn at_time(backup: &Backup, spans: &[Span], ms: u64) -> Result<Found, TargetError> {
    let mut later: Option<&Span> = None;
    for span in spans.iter().rev() {
        let begins = match span.begin_ms.filter(|begin| *begin <= ms) {
            Some(_) => true,
            None => first_ms(backup, span)?.is_some_and(|first| first <= ms),
        };
        if !begins {
            later = Some(span);
            continue;
        }
        let is_covered = span.complete_ms.is_some_and(|complete| ms <= complete)
            || span.end_ms.is_some_and(|end| ms < end);
        if is_covered {
            return look_for(backup, span, ms);
        }
        let latest_ms = span.complete_ms.max(span.end_ms);
        let why = match later {
            Some(_) => "nothing of that time was archived".to_owned(),
            None => "the backup does not go on so far".to_owned(),
        };
        return Err(TargetError::Outside {
            why,
            before: Some(span.end.id.sn),
            after: later.map(|span| span.begin.id.sn),
            latest_ms,
            earliest_ms: later.and_then(|span| span.begin_ms),
        });
    }
    let first = &spans[0];
    Err(TargetError::Outside {
        why: "the backup begins later".to_owned(),
        before: None,
        after: Some(first.begin.id.sn),
        latest_ms: None,
        earliest_ms: first.begin_ms,
    })
}

fn first_ms(backup: &Backup, span: &Span) -> Result<Option<u64>, ArchiveError> {
    let first = backup.walk(span, |entry| match time_of(&entry) {
        Some(ms) => ControlFlow::Break(ms),
        None => ControlFlow::Continue(()),
    })?;
    Ok(first.break_value())
}

fn look_for(backup: &Backup, span: &Span, wanted: u64) -> Result<Found, TargetError> {
    let (mut last_ms, mut next, mut straggler) = (span.begin_ms, None, None);
    let mut look = |entry: Entry| {
        if let Some(ms) = time_of(&entry) {
            match (next, ms <= wanted) {
                (None, true) => last_ms = Some(ms),
                (None, false) => next = Some((entry.id.sn, ms)),
                (Some(_), true) => straggler = Some((entry.id.sn, ms)),
                (Some(_), false) => {}
            }
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = backup.walk(span, &mut look)?;
    let at = next.map_or(span.end.id.sn, |(sn, _): (Sn, u64)| Sn(sn.0 - 1));
    Ok(Found { span: span.clone(), at, last_ms, next, straggler, place: None })
}

/// Reads the image, and applies what follows it, as a start does.
///
/// # Errors
/// Those of [`find`]; [`TargetError::Archive`] if the image is damaged or cannot be read; [`TargetError::Apply`] if an
/// entry cannot be applied.
pub fn rebuild(backup: &Backup, until: Until, seed: u64) -> Result<Rebuilt, TargetError> {
    let found = find(backup, until)?;
    let span = &found.span;
    let whose = &backup.manifest().whose;
    let image = backup.read_image(span, |reader| {
        let size = reader.file_bytes();
        image_reading::read(seed, reader, size, |_| {})
    })?;
    let created = Timestamp::from_ms(whose.created_ms);
    let mut namespace = image.unwrap_or_else(|| {
        Namespace::new(seed, &whose.root_owner, &whose.root_group, created)
            .of_group(whose.group)
            .beginning_at(whose.first_level)
    });
    let mut at = span.begin;
    if found.at > span.begin.id.sn {
        let stopped = backup.walk(span, |entry| {
            if let Err(error) = serving::apply_entry(&mut namespace, &entry) {
                return ControlFlow::Break(Some((entry.id.sn, error.to_string())));
            }
            at = entry.point();
            match at.id.sn >= found.at {
                true => ControlFlow::Break(None),
                false => ControlFlow::Continue(()),
            }
        })?;
        if let ControlFlow::Break(Some((at, what))) = stopped {
            return Err(TargetError::Apply { at, what });
        }
    }
    Ok(Rebuilt { namespace, at, found })
}

/// Blocks that the names have.
pub struct Blocks(Vec<Block>);

impl Blocks {
    /// The blocks of the last state in the backup. Deleted files do not count, even if the backup ends before the
    /// server had taken them apart.
    ///
    /// # Errors
    /// Those of [`rebuild`].
    pub fn at_the_end(backup: &Backup, seed: u64) -> Result<Self, TargetError> {
        let mut last = rebuild(backup, Until::End, seed)?.namespace;
        take_apart(&mut last);
        let mut blocks = Vec::new();
        last.for_each_block(&mut |block, _, _, _| blocks.push(block));
        blocks.sort_unstable_by_key(|block| block.id);
        Ok(Self(blocks))
    }

    /// Whether the block is there and was not written on since: then data servers have it as it was.
    pub fn have(&self, block: &Block, is_committed: bool) -> bool {
        let at = self.0.binary_search_by_key(&block.id, |known| known.id);
        at.is_ok_and(|at| !is_committed || self.0[at] == *block)
    }
}

/// Does what an active does between its turns: removes what lies in no directory and in no snapshot any more.
fn take_apart(namespace: &mut Namespace) {
    let access = AccessPolicy { superuser: "operator".into(), ..AccessPolicy::default() };
    let limits = Limits { access, ..Limits::default() };
    let caller = Caller::simple("operator", &[]);
    let context = Context {
        caller: &caller,
        origin: None,
        fingerprint: 0,
        now: Timestamp::from_ms(0),
        moment: Moment::default(),
        limits: &limits,
        renewals: None,
        looks: None,
        told: None,
        room: None,
    };
    while let Some(edit) = cleanup::plan(namespace, &context) {
        let TxId { epoch, sn } = namespace.applied();
        namespace.apply(TxId { epoch, sn: Sn(sn.0 + 1) }, &edit.into());
    }
}

#[cfg(test)]
mod tests;
