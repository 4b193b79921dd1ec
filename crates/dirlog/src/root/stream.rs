//! Entries on their way to the groups.

use super::{Effects, Root};
use crate::{Dix, Dropped, Entry, Point, ToGroup};
use base::{GroupId, Moment};
use std::collections::VecDeque;

/// Entries to read from the root group's log, away from this thread. The answer is [`super::Input::LogRead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadLog {
    pub group: GroupId,
    pub after: Dix,
    /// At most so many bytes of edits, or one entry.
    pub bytes_max: usize,
}

/// The end of the directory log, in memory: all that is not visible, and a window before it.
#[derive(Clone, Debug, Hash)]
pub(super) struct Tail {
    base: Point,
    entries: VecDeque<Entry>,
    bytes: usize,
    end: Point,
}

impl Tail {
    pub fn new(base: Point, entries: &[Entry]) -> Self {
        let mut tail = Self { base, entries: VecDeque::new(), bytes: 0, end: base };
        entries.iter().for_each(|entry| tail.push(entry.clone()));
        tail
    }

    pub fn push(&mut self, entry: Entry) {
        assert!(entry.dix == self.end.dix.next(), "the directory log has no gaps");
        self.end = entry.point();
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    pub fn end(&self) -> Point {
        self.end
    }

    /// The point at this place, if it is in memory.
    pub fn point(&self, dix: Dix) -> Option<Point> {
        match dix.0.checked_sub(self.base.dix.0)? {
            0 => Some(self.base),
            at => self.entries.get(at as usize - 1).map(Entry::point),
        }
    }

    fn behind(&self, after: Dix) -> impl Iterator<Item = &Entry> {
        self.entries.range((after.0 - self.base.dix.0) as usize..)
    }

    fn forget_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.bytes();
            self.base = entry.point();
        }
    }

    /// Forgets visible entries that are more than memory may take; they can be read.
    pub fn shrink(&mut self, visible: Dix, window_bytes: usize) {
        while self.bytes > window_bytes && self.base.dix < visible {
            self.forget_first();
        }
    }

    pub fn purge(&mut self, to: Dix) {
        while self.base.dix < to {
            self.forget_first();
        }
    }
}

/// The first of these entries that fit into one message.
fn fitting<'a>(entries: impl Iterator<Item = &'a Entry>, bytes_max: usize) -> Vec<Entry> {
    let mut bytes = 0;
    let mut taken: Vec<Entry> = Vec::new();
    for entry in entries {
        bytes += entry.bytes();
        if bytes > bytes_max && !taken.is_empty() {
            break;
        }
        taken.push(entry.clone());
    }
    taken
}

impl Root {
    /// Sends each group what it lacks, as far as it may be in flight, and tells it what has become visible.
    pub(super) fn send_entries(&mut self, now: Moment, effects: &mut Effects) {
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            self.send_again_if_late(now, group);
            while self.send_some(now, group, effects) {}
        }
    }

    /// Whether more may follow.
    fn send_some(&mut self, now: Moment, group: GroupId, effects: &mut Effects) -> bool {
        let end = self.tail.end();
        let visible = self.visible;
        let follower = self.groups.get_mut(&group).expect("the group is known");
        let Some(session) = follower.session.filter(|_| follower.reading.is_none()) else { return false };
        let has_room = follower.sent.0 - follower.queued.0 < self.settings.in_flight_max / 2;
        let has_news = follower.sent < end.dix && has_room;
        if !has_news && follower.told_visible >= visible {
            return false;
        }
        let Some(previous) = self.tail.point(follower.sent) else {
            follower.reading = Some(follower.sent);
            effects.read.push(ReadLog {
                group,
                after: follower.sent,
                bytes_max: self.settings.append_bytes_max,
            });
            return false;
        };
        let bytes_max = self.settings.append_bytes_max;
        let entries = if has_news { fitting(self.tail.behind(follower.sent), bytes_max) } else { Vec::new() };
        if let Some(last) = entries.last() {
            follower.sent = last.dix;
            follower.moved_at = now;
        }
        follower.told_visible = visible;
        self.out.push((group, ToGroup::Append { session, previous, entries, visible }));
        has_news
    }

    /// The first word of a session says where it begins, so that the group compares its chain though it lacks nothing.
    pub(super) fn send_first(&mut self, group: GroupId, applied: Point) {
        let visible = self.visible;
        let follower = &self.groups[&group];
        if let (Some(session), Some(previous)) = (follower.session, self.tail.point(applied.dix)) {
            self.out.push((group, ToGroup::Append { session, previous, entries: Vec::new(), visible }));
        }
    }

    /// Entries that were sent long ago and have not come are sent again.
    fn send_again_if_late(&mut self, now: Moment, group: GroupId) {
        let follower = self.groups.get_mut(&group).expect("the group is known");
        let is_late = now.ms_since(follower.moved_at) >= self.settings.resend_ms;
        if follower.session.is_some() && follower.queued < follower.sent && is_late {
            follower.sent = follower.queued;
        }
    }

    pub(super) fn resend_deadline(&self) -> Option<Moment> {
        let waiting = self.groups.values().filter(|one| one.session.is_some() && one.queued < one.sent);
        waiting.map(|one| one.moved_at.plus_ms(self.settings.resend_ms)).min()
    }

    pub(super) fn on_lost(&mut self, group: GroupId) {
        if let Some(follower) = self.groups.get_mut(&group) {
            follower.sent = follower.queued;
            follower.reading = None;
            // The news of what is visible may have got lost as well.
            follower.told_visible = Dix(0);
        }
    }

    pub(super) fn on_log_read(&mut self, now: Moment, group: GroupId, read: Option<(Point, Vec<Entry>)>) {
        let (epoch, visible) = (self.epoch, self.visible);
        let Some(follower) = self.groups.get_mut(&group) else {
            return self.counts.note(Dropped::UnknownGroup);
        };
        let Some((session, after)) = follower.session.zip(follower.reading.take()) else {
            return self.counts.note(Dropped::Overtaken);
        };
        match read {
            Some((previous, entries)) if previous.dix == follower.sent && !entries.is_empty() => {
                follower.sent = Dix(previous.dix.0 + entries.len() as u64);
                follower.moved_at = now;
                self.out.push((group, ToGroup::Append { session, previous, entries, visible }));
            }
            // Something else is wanted by now.
            Some(_) => {}
            // So it is here: the group has got more meanwhile, by messages that were late, and what it had lacked was dropped.
            None if follower.sent > after => {}
            None => {
                let why = format!("the root group's log has no entries behind {} any more", follower.sent);
                let hello = follower.hello;
                follower.session = None;
                self.out.push((group, ToGroup::Unwelcome { hello, root_epoch: epoch, why }));
            }
        }
    }
}
