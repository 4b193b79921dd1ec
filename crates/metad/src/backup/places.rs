//! Places in the directory log, at which all groups of a namespace can be put back together.
//!
//! A group is *at* a place directly after the entry of its own log with which it has come there: in the root group the change of directories itself, in another group
//! its relay. What it did later, before the next place, is not in it. So all groups at one place are one cut: a message of one group to another is in the sender's
//! state or was not carried out by the receiver, and what a sender has noted as carried out, the receiver has done.
//!
//! In a range of a backup these are the places of the entries behind its image. Only the first image of a further group is at a place itself: the
//! group begins with it.

use super::target::{Found, TargetError};
use crate::image_reading;
use base::{
    Entry, EntryKind, GroupId, Sn,
    directory_log::{Dix, Point},
};
use journal::archive::{ArchiveError, Backup, Span};
use namespace::Edit;
use std::{fmt, ops::ControlFlow};

/// The first image of a further group stands for this entry.
const FIRST: Sn = Sn(1);
/// The order of a hash table decides nothing of a place.
const SEED: u64 = 1;

/// All places from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    pub first: Point,
    pub first_ms: Option<u64>,
    pub last: Point,
    pub last_ms: Option<u64>,
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first.dix == self.last.dix {
            true => write!(f, "{}", self.first.dix),
            false => write!(f, "{} to {}", self.first.dix, self.last.dix),
        }
    }
}

/// The time of the edit, and the place to which its group has come with it.
fn told(entry: &Entry) -> Option<(u64, Option<Point>)> {
    match entry.kind {
        EntryKind::Operation => Edit::decode(&entry.payload).ok().map(|edit| (edit.time.ms, edit.comes_to())),
        _ => None,
    }
}

/// The places at which the group can be put back, range by range. Reads the whole log.
///
/// # Errors
/// [`TargetError::Archive`] if the backup is damaged or cannot be read.
pub fn places(backup: &Backup) -> Result<Vec<Places>, TargetError> {
    let mut all = Vec::new();
    for span in &backup.manifest().spans {
        let begin = founded_at(backup, span)?;
        let mut found = begin.map(|at| Places { first: at, first_ms: None, last: at, last_ms: None });
        let _ = backup.walk(span, |entry| {
            if let Some((ms, Some(point))) = told(&entry) {
                let ms = Some(ms);
                let places =
                    found.get_or_insert(Places { first: point, first_ms: ms, last: point, last_ms: ms });
                (places.last, places.last_ms) = (point, ms);
            }
            ControlFlow::<()>::Continue(())
        })?;
        all.extend(found);
    }
    Ok(all)
}

/// The last place that the group had come to with this entry, if it is in the range.
pub(super) fn last_up_to(backup: &Backup, span: &Span, sn: Sn) -> Result<Option<Point>, ArchiveError> {
    let mut last = founded_at(backup, span)?;
    let _ = backup.walk(span, |entry| {
        if entry.id.sn > sn {
            return ControlFlow::Break(());
        }
        last = told(&entry).and_then(|(_, point)| point).or(last);
        ControlFlow::Continue(())
    })?;
    Ok(last)
}

/// The newest place that all these backups have. `None`: they have no place in common.
pub fn newest_common(all: &[Vec<Places>]) -> Option<Dix> {
    let mut wanted = Dix(u64::MAX);
    loop {
        let before = wanted;
        for places in all {
            let fits = |places: &Places| places.first.dix <= wanted;
            let newest = places.iter().filter(|places| fits(places)).map(|places| places.last.dix).max()?;
            wanted = wanted.min(newest);
        }
        if wanted == before {
            return Some(wanted);
        }
    }
}

pub(super) fn find(backup: &Backup, dix: Dix) -> Result<Found, TargetError> {
    let spans = &backup.manifest().spans;
    if spans.is_empty() {
        return Err(TargetError::Empty);
    }
    for span in spans.iter().rev() {
        let (mut last_ms, mut found, mut next) = (span.begin_ms, None, None);
        let _ = backup.walk(span, |entry| {
            let Some((ms, point)) = told(&entry) else { return ControlFlow::Continue(()) };
            if found.is_some() {
                next = Some((entry.id.sn, ms));
                return ControlFlow::Break(());
            }
            match point {
                // The range begins later.
                Some(point) if point.dix > dix => return ControlFlow::Break(()),
                Some(point) if point.dix == dix => found = Some((entry.id.sn, point)),
                _ => {}
            }
            last_ms = Some(ms);
            ControlFlow::Continue(())
        })?;
        if found.is_none()
            && let Some(point) = founded_at(backup, span)?.filter(|point| point.dix == dix)
        {
            (last_ms, found) = (None, Some((span.begin.id.sn, point)));
        }
        if let Some((at, point)) = found {
            return Ok(Found { span: span.clone(), at, last_ms, next, straggler: None, place: Some(point) });
        }
    }
    Err(none_such(backup, dix)?)
}

fn none_such(backup: &Backup, dix: Dix) -> Result<TargetError, TargetError> {
    let ranges: Vec<String> = places(backup)?.iter().map(ToString::to_string).collect();
    let why = match ranges.is_empty() {
        true => format!(
            "the group comes to no place in the directory log behind the backup's image, and so not to {dix}; it does with the next change of directories"
        ),
        false => {
            format!(
                "it can be had at the places {} in the directory log, and not at {dix}",
                ranges.join(", ")
            )
        }
    };
    Ok(TargetError::Outside { why, before: None, after: None, latest_ms: None, earliest_ms: None })
}

/// The place at which the range begins, if it begins with the group.
fn founded_at(backup: &Backup, span: &Span) -> Result<Option<Point>, ArchiveError> {
    if backup.manifest().whose.group == GroupId::ROOT || span.begin.id.sn != FIRST {
        return Ok(None);
    }
    backup.read_image(span, |reader| {
        let size = reader.file_bytes();
        Ok(image_reading::read(SEED, reader, size, |_| {})?.directory_log())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Chain;

    fn range(first: u64, last: u64) -> Places {
        let point = |dix| Point { dix: Dix(dix), chain: Chain(dix) };
        Places { first: point(first), first_ms: None, last: point(last), last_ms: None }
    }

    #[test]
    fn the_newest_place_that_all_have_may_lie_within_older_ranges() {
        let common = |all: &[&[(u64, u64)]]| {
            let ranges = |some: &&[(u64, u64)]| some.iter().map(|(from, to)| range(*from, *to)).collect();
            newest_common(&all.iter().map(ranges).collect::<Vec<_>>()).map(|dix| dix.0)
        };
        assert_eq!(common(&[&[(1, 9)], &[(3, 7)]]), Some(7));
        assert_eq!(common(&[&[(1, 9)], &[(3, 12)], &[(9, 9)]]), Some(9));
        assert_eq!(common(&[&[(1, 5), (8, 12)], &[(2, 7)]]), Some(5));
        assert_eq!(common(&[&[(1, 5), (8, 12)], &[(6, 7), (11, 20)], &[(1, 20)]]), Some(12));
        assert_eq!(common(&[&[(1, 5), (8, 12)], &[(6, 7), (13, 20)]]), None);
        assert_eq!(common(&[&[(1, 5)], &[]]), None);
        assert_eq!([range(4, 4), range(4, 9)].map(|some| some.to_string()), ["4", "4 to 9"]);
    }
}
