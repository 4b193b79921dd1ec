//! Calls at a member: taken by the one that leads, answered when [`serving`] says that they may be.

use super::{
    client::CallCopy,
    happening::{Arrival, ClientReply, Happening, Kind},
    request::{Outcome, Request},
    server::{Waiting, origin_of},
    world::World,
};
use crate::{check, truth::Broken};
use base::{Epoch, Moment, Sn};
use group::Input;
use namespace::{Edit, Readable, given_facts::GivenFacts};
use serving::{Basis, Fate, Log, Question, Until, Waits};

/// A client that waits for longer asks elsewhere.
const STALL_MS_MAX: u64 = 1_400;

/// The proof that an answer may go out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The commit of an edit, or the coordinator's word.
    Certain,
    Lease,
}

impl World {
    pub(super) fn call(&mut self, seat: usize, copy: CallCopy, request: &Request) -> Result<(), Broken> {
        let server = &self.servers[seat];
        if matches!(request, Request::Read(_)) && server.answers() {
            let epoch = server.epoch;
            if self.stalls() {
                let what = Arrival::ReadGoesOn { copy, request: request.clone(), epoch };
                self.goes_on_later(seat, what);
                return Ok(());
            }
            return self.read(seat, copy, request, epoch);
        }
        if matches!(request, Request::Read(_)) && self.standbys_read {
            self.wait_for_point(seat, copy, request.clone());
            return Ok(());
        }
        // A member that leads with too few in sync takes no changes.
        if !server.is_serving() {
            self.pass_on(seat, copy, false);
            return Ok(());
        }
        if server.tree.namespace.applied() != server.host.disk.end().id {
            return Err(format!(
                "who serves has applied its whole log: member {} has applied {} of {}",
                server.host.store.member,
                server.tree.namespace.applied(),
                server.host.disk.end().id
            ));
        }
        if self.servers[seat].must_wait(copy, request, self.now_ns) {
            self.reply(copy, ClientReply::NotYet);
            return Ok(());
        }
        let Some((waiting, proposal)) = self.servers[seat].change(copy, request, self.now_ns) else {
            // It is told to ask again.
            self.reply(copy, ClientReply::NotActive);
            return Ok(());
        };
        if proposal.is_some() {
            let digest = self.servers[seat].tree.namespace.digest();
            match waiting.kind {
                Kind::Refusal { .. } => self.observer.applied(waiting.observed, digest)?,
                Kind::Change | Kind::Read => {
                    let planner = self.servers[seat].host.life();
                    self.observer.planned(copy.key, &waiting, digest, planner)?;
                }
            }
        }
        let rests_on = waiting.observed.id.sn;
        let proposed = match proposal {
            Some(proposal) => self.step(seat, Input::Propose(vec![proposal])),
            None => Ok(()),
        };
        self.wait_for_commit(seat, Until::own(rests_on), waiting)?;
        proposed
    }

    /// Appends an edit of the service's own.
    pub(super) fn append_own(&mut self, seat: usize, edit: &Edit) -> Result<(), Broken> {
        let (_, point, proposal) = self.servers[seat].append(edit, &[]);
        let digest = self.servers[seat].tree.namespace.digest();
        self.observer.applied(point, digest)?;
        self.step(seat, Input::Propose(vec![proposal]))
    }

    /// The epoch of a read is that in which it was begun.
    pub(super) fn read(
        &mut self,
        seat: usize,
        copy: CallCopy,
        request: &Request,
        epoch: Epoch,
    ) -> Result<(), Broken> {
        let Request::Read(read) = request else { unreachable!("changes are planned") };
        let server = &self.servers[seat];
        let committed = server.answers.commit.committed();
        let rests_on = server.tree.rests_on(Until::own(committed), read.sight());
        // It might have to wait for long, until another member is back.
        if server.is_reading() && rests_on.is_some() {
            self.reply(copy, ClientReply::NotActive);
            return Ok(());
        }
        let (wall, moment) = (server.clock.timestamp(self.now_ns), server.clock.moment(self.now_ns));
        let facts = GivenFacts::all_finished();
        let Outcome::Read(answer) =
            request.plan(&server.tree.namespace, origin_of(copy), wall, moment, &facts)
        else {
            unreachable!("a read changes nothing");
        };
        // The watermark may rise late. The read has seen no entry that has committed beyond it, so the answer is the same with these entries.
        let known = server.host.member().committed().max(committed);
        let sn = rests_on.map_or(known, |until| until.of(Log::OWN).max(known));
        let observed = match server.is_reading() {
            // A member below the minimum may not know what has committed.
            true => self.observer.truth.point(self.observer.truth.last()).unwrap_or_default(),
            false => server.host.disk.point(sn).expect("an active has its log from its image on"),
        };
        let expected = Some(self.observer.reference.expect(sn, copy, request)?);
        let waiting =
            Waiting { copy, answer, observed, basis: Basis::Reading, kind: Kind::Read, epoch, expected };
        match rests_on {
            Some(until) => self.wait_for_commit(seat, until, waiting),
            None => self.prove(seat, waiting),
        }
    }

    fn wait_for_commit(&mut self, seat: usize, until: Until, waiting: Waiting) -> Result<(), Broken> {
        match self.servers[seat].answers.commit.wait(until, waiting) {
            Waits::Kept => Ok(()),
            Waits::Committed(waiting) => self.has_committed(seat, waiting),
            Waits::Failed(waiting, _) => {
                // The next active knows the fate of this call.
                self.pass_on(seat, waiting.copy, true);
                Ok(())
            }
        }
    }

    /// Everything up to `sn` has committed, as far as this member knows.
    pub(super) fn advance(&mut self, seat: usize, sn: Sn) -> Result<(), Broken> {
        let released = self.servers[seat].answers.commit.advance(Log::OWN, sn);
        released.into_iter().try_for_each(|waiting| self.has_committed(seat, waiting))
    }

    /// Raises the watermark of this member to `sn`, now or later: the thread that has stepped the member may get no processor for a while. The other
    /// members have been told of the commit by then, and go on.
    pub(super) fn advance_soon(&mut self, seat: usize, sn: Sn) -> Result<(), Broken> {
        if self.standbys_read && self.servers[seat].is_serving() && self.stalls() {
            self.goes_on_later(seat, Arrival::WatermarkRises(sn));
            return Ok(());
        }
        self.advance(seat, sn)
    }

    /// This member has lost the lead: the next active knows the fate of the calls that wait.
    pub(super) fn suspend(&mut self, seat: usize, reason: &str) {
        let epoch = self.servers[seat].epoch;
        let failed = self.servers[seat].answers.commit.suspend(epoch, reason);
        for waiting in failed {
            self.pass_on(seat, waiting.copy, true);
        }
    }

    fn has_committed(&mut self, seat: usize, waiting: Waiting) -> Result<(), Broken> {
        match waiting.basis {
            Basis::OwnEdit => self.send(seat, waiting, Proof::Certain),
            Basis::Reading => self.prove(seat, waiting),
        }
    }

    /// A thread is not given the processor for a while.
    pub(super) fn stalls(&mut self) -> bool {
        self.stalls_percent > 0 && self.dice.chance(self.stalls_percent)
    }

    pub(super) fn goes_on_later(&mut self, seat: usize, what: Arrival) {
        let (life, after_ms) = (self.servers[seat].life, self.dice.below(STALL_MS_MAX));
        self.after_ms(after_ms, Happening::Arrival { seat, life, what });
    }

    fn prove(&mut self, seat: usize, waiting: Waiting) -> Result<(), Broken> {
        if self.stalls() {
            self.goes_on_later(seat, Arrival::AnswerGoesOn(waiting));
            return Ok(());
        }
        self.prove_now(seat, waiting)
    }

    pub(super) fn prove_now(&mut self, seat: usize, waiting: Waiting) -> Result<(), Broken> {
        let now = self.patience();
        let server = &mut self.servers[seat];
        let (reign, epoch) = (server.reign(self.now_ns), waiting.epoch);
        if server.proofs.is_proved(server.rules, reign, epoch) {
            return self.send(seat, waiting, Proof::Lease);
        }
        server.answers.unproved.wait(waiting, 100, epoch, now).map_err(|(_, full)| full.to_string())?;
        self.look_at_answers(seat)
    }

    /// Timers go on where a clock stands.
    fn patience(&self) -> Moment {
        Moment { ns: self.now_ns }
    }

    /// Lets go out what may, and asks the coordinator about the rest.
    pub(super) fn look_at_answers(&mut self, seat: usize) -> Result<(), Broken> {
        let now = self.patience();
        let server = &mut self.servers[seat];
        if server.answers.unproved.is_empty() {
            return Ok(());
        }
        let reign = server.reign(self.now_ns);
        let step = server.answers.unproved.look(reign, now);
        let (life, basis) = (server.life, server.basis_of_lead());
        self.finish(seat, step.done, Proof::Lease)?;
        if let Some(question) = step.ask {
            match basis {
                Some(basis) => self.soon(Happening::Confirm { seat, life, question, basis }),
                None => {
                    let what = Arrival::Confirmed { question, is_current: false };
                    self.soon(Happening::Arrival { seat, life, what });
                }
            }
        }
        self.look_again(seat);
        Ok(())
    }

    fn look_again(&mut self, seat: usize) {
        let server = &mut self.servers[seat];
        let Some(at) = server.answers.unproved.deadline() else { return };
        let at = at.ns.max(self.now_ns + 1);
        if server.answers.look_at.is_none_or(|earlier| at < earlier || earlier <= self.now_ns) {
            server.answers.look_at = Some(at);
            let life = server.life;
            self.after_ns(at - self.now_ns, Happening::Arrival { seat, life, what: Arrival::LookAtAnswers });
        }
    }

    /// The coordinator has said whether the view was the same when it was asked.
    pub(super) fn confirmed(
        &mut self,
        seat: usize,
        question: Question,
        is_current: bool,
    ) -> Result<(), Broken> {
        let server = &mut self.servers[seat];
        let reign = server.reign(self.now_ns);
        let done = server.answers.unproved.answered(question, is_current, reign);
        self.finish(seat, done, Proof::Certain)?;
        self.look_at_answers(seat)
    }

    fn finish(&mut self, seat: usize, done: Vec<(Waiting, Fate)>, proof: Proof) -> Result<(), Broken> {
        for (waiting, fate) in done {
            match fate {
                Fate::Send => self.send(seat, waiting, proof)?,
                Fate::HandOver => self.pass_on(seat, waiting.copy, false),
                Fate::GiveUp => self.reply(waiting.copy, ClientReply::NotActive),
            }
        }
        Ok(())
    }

    fn send(&mut self, seat: usize, waiting: Waiting, proof: Proof) -> Result<(), Broken> {
        let is_doubtful = proof == Proof::Lease && self.lease_is_doubtful(seat);
        let Waiting { copy, answer, observed, kind, epoch, expected, .. } = waiting;
        if let Some(expected) = expected.and_then(|number| self.observer.reference.take(number)) {
            let judged = check::reads_tell_what_has_committed::check(copy.key, &answer, &expected);
            self.observer.judged += 1;
            match judged {
                Err(_) if is_doubtful => self.observer.stale += 1,
                judged => judged?,
            }
            self.observer.certain += u64::from(self.servers[seat].is_reading());
        } else if matches!(kind, Kind::Refusal { .. }) {
            self.servers[seat].answers.refusals.proved(&origin_of(copy), epoch);
        }
        self.reply(copy, ClientReply::Done { answer, rests_on: observed, kind, is_doubtful });
        Ok(())
    }

    pub(super) fn reply(&mut self, copy: CallCopy, reply: ClientReply) {
        // Some replies get lost, and the client asks again.
        if !self.dice.chance(1) {
            self.soon(Happening::Replied { copy, reply });
        }
    }

    /// The last entry that all members agree has committed.
    pub fn committed(&self) -> Sn {
        self.observer.truth.last()
    }
}
