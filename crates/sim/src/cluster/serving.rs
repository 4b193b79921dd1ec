//! Calls at a member: taken by the one that serves, answered when that is allowed.

use super::{
    client::CallKey,
    happening::{ClientReply, Happening},
    request::Request,
    server::Waiting,
    world::World,
};
use crate::{check, truth::Broken};
use base::Sn;
use group::Input;

impl World {
    pub(super) fn call(&mut self, seat: usize, key: CallKey, request: &Request) -> Result<(), Broken> {
        let now_ns = self.now_ns;
        let server = &mut self.servers[seat];
        if server.is_reading() {
            return self.call_below_the_minimum(seat, key, request);
        }
        if !server.is_serving() {
            self.reply(key, ClientReply::NotActive);
            return Ok(());
        }
        if server.waiting.iter().any(|waiting| waiting.key == key) {
            return Ok(()); // The first one is under way; its answer serves both.
        }
        if server.namespace.applied() != server.host.disk.end().id {
            return Err(format!(
                "who serves has applied its whole log: member {} has applied {} of {}",
                server.host.store.member,
                server.namespace.applied(),
                server.host.disk.end().id
            ));
        }
        let (waiting, proposal) = server.take_call(key, request, now_ns);
        if proposal.is_some() {
            let digest = server.namespace.digest();
            self.observer.planned(key, &waiting, digest)?;
        }
        self.servers[seat].waiting.push(waiting);
        match proposal {
            Some(proposal) => self.step(seat, Input::Propose(vec![proposal])),
            None => self.answer_waiting(seat),
        }
    }

    /// Changes are refused, and so is a read of what may have committed, or not.
    fn call_below_the_minimum(&mut self, seat: usize, key: CallKey, request: &Request) -> Result<(), Broken> {
        let server = &self.servers[seat];
        if server.waiting.iter().any(|waiting| waiting.key == key) {
            return Ok(());
        }
        let Some(answer) = server.look(key, request, self.now_ns, !self.tells_what_is_in_doubt) else {
            self.reply(key, ClientReply::NotActive);
            return Ok(());
        };
        let last = self.observer.truth.last();
        let observed = self.observer.truth.point(last).unwrap_or_default();
        let reference = Some(self.observer.reference.answer(key, request)?);
        let waiting = Waiting { key, answer, observed, is_read: true, reference, is_confirming: false };
        self.servers[seat].waiting.push(waiting);
        self.answer_waiting(seat)
    }

    /// Lets go out what may.
    pub(super) fn answer_waiting(&mut self, seat: usize) -> Result<(), Broken> {
        let now_ns = self.now_ns;
        let is_doubtful = self.lease_is_doubtful(seat);
        let server = &mut self.servers[seat];
        let answers = server.answers();
        let holds_lease = server.holds_lease(now_ns) && !self.proves_reads;
        let (committed, basis) = {
            let member = server.host.member();
            (member.committed(), member.view_basis())
        };
        let life = server.life;
        let mut replies = Vec::new();
        let mut asks = Vec::new();
        let mut judged = Ok(());
        server.waiting.retain_mut(|waiting| {
            let is_committed = waiting.observed.id.sn <= committed || waiting.reference.is_some();
            if is_committed && !waiting.is_read {
                replies.push((waiting.key, done(waiting, false)));
                return false;
            }
            if !answers {
                // The next active knows the fate of this call.
                replies.push((waiting.key, ClientReply::NotActive));
                return false;
            }
            if is_committed && holds_lease {
                let found = judge(waiting);
                if is_doubtful && found.is_err() {
                    self.observer.stale += 1;
                } else {
                    judged = std::mem::replace(&mut judged, Ok(())).and(found);
                }
                replies.push((waiting.key, done(waiting, is_doubtful)));
                self.observer.certain += u64::from(waiting.reference.is_some());
                return false;
            }
            if is_committed && !waiting.is_confirming {
                waiting.is_confirming = true;
                asks.push(waiting.key);
            }
            true
        });
        judged?;
        for (key, reply) in replies {
            self.reply(key, reply);
        }
        if let Some(basis) = basis {
            for key in asks {
                self.soon(Happening::Confirm { seat, life, key, basis });
            }
        }
        Ok(())
    }

    /// The coordinator has said whether the view was the same when it was asked.
    pub(super) fn confirmed(&mut self, seat: usize, key: CallKey, is_current: bool) -> Result<(), Broken> {
        let server = &mut self.servers[seat];
        let answers = server.answers();
        if let Some(index) = server.waiting.iter().position(|waiting| waiting.key == key) {
            let waiting = server.waiting.remove(index);
            let reply = if is_current && answers {
                judge(&waiting)?;
                self.observer.certain += u64::from(waiting.reference.is_some());
                done(&waiting, false)
            } else {
                ClientReply::NotActive
            };
            self.reply(key, reply);
        }
        Ok(())
    }

    fn reply(&mut self, key: CallKey, reply: ClientReply) {
        // Some replies get lost, and the client asks again.
        if !self.dice.chance(1) {
            self.soon(Happening::Replied { client: key.client as usize, key, reply });
        }
    }

    /// The last entry that all members agree has committed.
    pub fn committed(&self) -> Sn {
        self.observer.truth.last()
    }
}

/// The view is still the one in which the read was begun: what it was held against was all that had committed.
fn judge(waiting: &Waiting) -> Result<(), Broken> {
    match &waiting.reference {
        Some(reference) => {
            check::reads_below_the_minimum_are_certain::check(waiting.key, &waiting.answer, reference)
        }
        None => Ok(()),
    }
}

fn done(waiting: &Waiting, is_doubtful: bool) -> ClientReply {
    ClientReply::Done {
        answer: waiting.answer.clone(),
        rests_on: waiting.observed,
        is_read: waiting.is_read,
        is_doubtful,
    }
}
