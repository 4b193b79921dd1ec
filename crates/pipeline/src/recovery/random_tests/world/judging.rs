//! The rules that every state of the simulated world must keep. They are checked against the bytes on all disks, which
//! no leader can see.

use super::{Replica, SERVERS, World};
use crate::recovery::{Commit, RecoveryError};
use base::{Candidate, ReplicaState};

impl World {
    fn is_at_fault(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    /// A length was decided on by what was `heard`.
    pub(super) fn judge(&mut self, length: u64, heard: &[(usize, Candidate)]) {
        // Only servers that know nothing of the append have answered: nobody has stopped its writer either.
        let is_outsider = |place: &usize| self.keeps_stamp && !self.pipeline.contains(place);
        let knows_all = |(place, found): &(usize, Candidate)| {
            found.block.length >= self.acknowledged.len() as u64 && !is_outsider(place)
        };
        self.was_misled |= self.keeps_stamp && !heard.iter().any(knows_all);
        if self.truncation.is_some() || length >= self.acknowledged.len() as u64 || self.was_misled {
            return;
        }
        // After a loss of power nothing is promised if no server has come through it.
        let is_torn = |place: &usize| self.servers[*place].replica.as_ref().is_none_or(|it| it.is_torn);
        let is_alive = |(place, found): &(usize, Candidate)| {
            found.state <= ReplicaState::BeingWritten && !is_outsider(place)
        };
        let all_restarted = !heard.iter().any(is_alive);
        if all_restarted && heard.iter().any(|(place, _)| is_torn(place)) {
            self.was_misled = true;
        } else {
            let acknowledged = self.acknowledged.len();
            self.is_at_fault(format!("{length} bytes of {acknowledged} are left, of {heard:?}"));
        }
    }

    /// Judges a recovery that has decided nothing. If every server has answered, there must be a reason.
    pub(super) fn judge_refusal(
        &mut self,
        error: &RecoveryError,
        heard: &[(usize, Candidate)],
        answers: usize,
    ) {
        let stamp = |found: &Candidate| (found.state, found.block.generation_stamp);
        let finished = heard.iter().filter(|(_, found)| found.state == ReplicaState::Finalized);
        let has_twins = finished.clone().any(|(place, found)| {
            let is_other = |(other, of): &&(usize, Candidate)| {
                other != place && stamp(of) == stamp(found) && of.block.length != found.block.length
            };
            finished.clone().any(|it| is_other(&it))
        });
        let is_usable = |found: &Candidate| found.block.length > 0 && found.state != ReplicaState::Temporary;
        let is_left = heard.iter().any(|(_, found)| is_usable(found));
        let is_empty = self.acknowledged.is_empty() && self.known.length == 0;
        let is_complete = answers > 0 && answers == self.named.len();
        if self.is_calm && !has_twins && (is_left || (is_empty && is_complete)) {
            self.is_at_fault(format!("it never comes to an end: {error}; heard: {heard:?}"));
        }
    }

    /// The metadata service takes the outcome of the recovery that it ordered last.
    pub(super) fn commit(&mut self, recovery: u64, commit: &Commit) {
        if recovery != self.last_stamp {
            return;
        }
        self.has_ended = true;
        if commit.delete {
            self.is_deleted = true;
            // The metadata service knows only the servers on which a new block was begun.
            let is_known = |place: &usize| self.known.length > 0 || self.named.contains(place);
            let places = (0..SERVERS).filter(is_known);
            let left: Vec<&Replica> =
                places.filter_map(|place| self.servers[place].replica.as_ref()).collect();
            if !self.acknowledged.is_empty() && left.iter().any(|replica| !replica.bytes.is_empty()) {
                let left = format!("the block is deleted, and there is {left:?}");
                self.is_at_fault(left);
            }
            return;
        }
        let wanted = match self.truncation {
            Some(length) => self.acknowledged[..length as usize].to_vec(),
            None => self.acknowledged.clone(),
        };
        let mut agreed: Option<Vec<u8>> = None;
        for (server, _) in &commit.finished {
            // Its disk may be lost since.
            let Some(replica) = self.servers[self.named[*server]].replica.clone() else { continue };
            let is_finished = replica.state == ReplicaState::Finalized && replica.stamp == recovery;
            let is_whole = replica.bytes.starts_with(&wanted) || self.was_misled;
            let agrees = agreed.get_or_insert(replica.bytes.clone()) == &replica.bytes;
            if !is_finished || !is_whole || !agrees || replica.bytes.len() as u64 != commit.length {
                self.is_at_fault(format!("{commit:?} counts {replica:?}; acknowledged: {wanted:?}"));
            }
        }
    }
}
