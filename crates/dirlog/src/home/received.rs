//! The entries that a home has: applied, received and in doubt, or kept out.

use crate::{Dix, Doubt, Dropped, Entry, Point, Settings, message::Progress};
use base::Chain;
use std::collections::VecDeque;

/// Why entries were not taken.
pub(super) enum Refused {
    Dropped(Dropped),
    /// They do not follow what this group has applied: the sentence for the operator.
    Unknown(String),
}

/// The directory log as far as this group has it.
#[derive(Clone, Debug, Hash)]
pub(super) struct Received {
    applied: Point,
    /// Applied, and the application has committed in the own group.
    committed: Dix,
    /// Received: behind `applied`, in order.
    doubt: Doubt,
    /// The end of what is received.
    end: Point,
    /// Behind `end`, in order: they are entered when no call waits for an earlier one.
    kept: VecDeque<Entry>,
    /// The end of `kept`.
    kept_end: Point,
    /// As the root group has said. May be ahead of what has come.
    visible: Dix,
    takes_any_chain: bool,
}

impl Received {
    pub fn new(applied: Point) -> Self {
        Self {
            applied,
            committed: applied.dix,
            doubt: Doubt::default(),
            end: applied,
            kept: VecDeque::new(),
            kept_end: applied,
            visible: Dix::default(),
            takes_any_chain: false,
        }
    }

    pub fn applied(&self) -> Point {
        self.applied
    }

    pub fn doubt(&self) -> &Doubt {
        &self.doubt
    }

    pub fn progress(&self) -> Progress {
        Progress { received: self.end.dix, queued: self.kept_end.dix, committed: self.committed }
    }

    pub fn keeps_some(&self) -> bool {
        !self.kept.is_empty()
    }

    pub fn on_committed(&mut self, applied: Dix) {
        self.committed = self.committed.max(applied).min(self.applied.dix);
    }

    /// Everything up to here is visible, as far as the root group has said.
    pub fn visible(&self) -> Dix {
        self.visible
    }

    pub fn on_visible(&mut self, visible: Dix) {
        self.visible = self.visible.max(visible);
    }

    /// Forgets all that is not applied: a new session sends it again, if it is still in the log.
    pub fn drop_unapplied(&mut self) {
        self.doubt.clear();
        self.kept.clear();
        (self.end, self.kept_end) = (self.applied, self.applied);
    }

    /// An entry of this operation has come: its hold ends when that is applied.
    pub fn has_entry_of(&self, ask: crate::AskId) -> bool {
        self.doubt.entries().chain(&self.kept).any(|entry| entry.ask == Some(ask))
    }

    /// Takes entries that follow `previous`. Those that are here already are compared.
    pub fn on_append(
        &mut self,
        settings: &Settings,
        previous: Point,
        entries: Vec<Entry>,
    ) -> Result<(), Refused> {
        self.takes_any_chain = settings.breaks(crate::broken::Broken::AnyChainTaken);
        if previous.dix > self.kept_end.dix {
            return Err(Refused::Dropped(Dropped::Gap));
        }
        self.compare(previous)?;
        let mut at = previous;
        for entry in entries {
            let is_chained = entry.previous_chain == at.chain || self.takes_any_chain;
            let follows = entry.dix == at.dix.next() && is_chained;
            if !follows || entry.marks.len() > settings.marks_max {
                return Err(Refused::Dropped(Dropped::Malformed));
            }
            at = entry.point();
            if at.dix <= self.kept_end.dix {
                self.compare(at)?;
                continue;
            }
            if (self.doubt.len() + self.kept.len()) as u64 >= settings.in_flight_max {
                return Err(Refused::Dropped(Dropped::Full));
            }
            self.kept.push_back(entry);
            self.kept_end = at;
        }
        Ok(())
    }

    fn compare(&self, point: Point) -> Result<(), Refused> {
        match self.chain_at(point.dix) {
            Some(chain) if chain != point.chain && !self.takes_any_chain => Err(Refused::Unknown(format!(
                "the directory log of the root group has {point}, and this group has {}/{chain}: the root group has lost entries that had \
                 been carried out here, or this group belongs elsewhere",
                point.dix
            ))),
            _ => Ok(()),
        }
    }

    /// The chain at this place, if it is known.
    fn chain_at(&self, dix: Dix) -> Option<Chain> {
        let ends = [self.applied, self.end, self.kept_end];
        let of_end = ends.into_iter().find(|end| end.dix == dix).map(|end| end.chain);
        let next = || {
            let mut entries = self.doubt.entries().chain(&self.kept);
            entries.find(|entry| entry.dix == dix.next()).map(|entry| entry.previous_chain)
        };
        of_end.or_else(next)
    }

    pub fn enter_all(&mut self) {
        while let Some(entry) = self.kept.pop_front() {
            self.end = if self.kept.is_empty() { self.kept_end } else { entry.point() };
            self.doubt.enter(entry);
        }
    }

    /// The next entry to apply.
    pub fn take_visible(&mut self, at_once: bool) -> Option<Entry> {
        let visible = if at_once { self.end.dix } else { self.visible };
        let entry = self.doubt.take_visible(visible)?;
        self.applied = entry.point();
        Some(entry)
    }

    pub fn is_consistent(&self) -> Result<(), String> {
        let mut at = self.applied;
        for (place, entry) in self
            .doubt
            .entries()
            .map(|entry| ("in doubt", entry))
            .chain(self.kept.iter().map(|entry| ("kept out", entry)))
        {
            if entry.dix != at.dix.next() {
                return Err(format!("{} is {place} and follows {}", entry.dix, at.dix));
            }
            at.dix = entry.dix;
            if place == "in doubt" && entry.dix > self.end.dix {
                return Err(format!("{} is in doubt and behind {}", entry.dix, self.end.dix));
            }
        }
        if at.dix != self.kept_end.dix || self.committed > self.applied.dix {
            return Err(format!("entries end at {}, not at {}", at.dix, self.kept_end.dix));
        }
        self.doubt.is_consistent()
    }
}
