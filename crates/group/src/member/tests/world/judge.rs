//! The rules that no group may break, checked after each step.

use super::World;
use base::LogPoint;

impl World {
    /// Something that was acknowledged is not in the log of this member.
    pub fn is_lost_operation(&self, id: u32) -> bool {
        let log = &self.seats[&id].written;
        let lacks =
            |point: &&LogPoint| point.id.sn > log.start.id.sn && log.point(point.id.sn) != Some(**point);
        self.truth.iter().zip(&self.is_operation).any(|(point, is_operation)| *is_operation && lacks(&point))
    }

    pub fn fail(&mut self, text: String) {
        if self.broken.is_none() {
            let holds = |id: &u32| {
                self.truth.last().is_none_or(|last| self.seats[id].written.point(last.id.sn) == Some(*last))
            };
            let text = match self.up().iter().find(|id| holds(id)) {
                Some(id) if text.starts_with("LOST") || text.starts_with("STALE") => {
                    format!("{} though one RUNS {id} that holds it: {text}", text.split(':').next().unwrap())
                }
                _ => text,
            };
            self.tell(|| format!("BROKEN: {text}"));
            self.broken = Some(text);
        }
    }

    /// Looks at a member after each of its steps.
    pub(super) fn check(&mut self, id: u32) {
        let Some(member) = self.member(id) else { return };
        if let Err(text) = member.is_consistent() {
            let text = format!("{id} is not consistent: {text}");
            return self.fail(text);
        }
        let trouble = member.trouble(self.now);
        if let Some(text) = trouble.filter(|text| text.starts_with("this member leads")) {
            let leads = member.leading.is_some();
            if !leads {
                let text = format!("{id} is {:?} and says: {text}", member.role());
                self.fail(text);
                return;
            }
        }
        let Some(member) = self.member(id) else { return };
        // A member that answers reads has everything that was acknowledged.
        let answers = member.lease_end().is_none_or(|end| end > self.now);
        if answers
            && let Some(last) = self.truth.last().copied()
            && self.seats[&id].written.point(last.id.sn) != Some(last)
            && self.seats[&id].written.start.id.sn <= last.id.sn
        {
            let what = if self.is_lost_operation(id) { "STALE" } else { "START-STALE" };
            let text = format!("{what}: {id} answers reads as {:?} and lacks {last}", member.role());
            self.fail(text);
        }
    }
}
