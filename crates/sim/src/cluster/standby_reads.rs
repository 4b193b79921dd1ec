//! Reads at members that do not lead: answered by a read point that the active tells, or passed on.

use super::{
    client::CallCopy,
    happening::{Arrival, ClientReply, Happening, Kind},
    read_points::{StandbyRead, ToldPoint},
    request::{Outcome, Request},
    server::origin_of,
    world::{World, member, seat_of},
};
use crate::{check, truth::Broken};
use base::{Moment, ReadPoint};
use namespace::{Readable, given_facts::GivenFacts};
use serving::{PointQuestion, Until};

/// How long a read waits for its point, and then for the entries up to there.
const PATIENCE_NS: u64 = 100_000_000;
/// How long a question, or its answer, may be under way at most, where it is late.
const LATE_MS_MAX: u64 = 300;

impl World {
    pub(super) fn wait_for_point(&mut self, seat: usize, copy: CallCopy, request: Request) {
        let read = StandbyRead { copy, request, since_ns: self.now_ns };
        if let Some(question) = self.servers[seat].answers.points.wait(read) {
            self.ask_for_point(seat, question);
        }
    }

    fn ask_for_point(&mut self, seat: usize, question: PointQuestion) {
        let life = self.servers[seat].life;
        let given_up = Arrival::Point { question, told: None };
        self.after_ns(PATIENCE_NS, Happening::Arrival { seat, life, what: given_up });
        let active = self.keeper.view.active.map(seat_of).filter(|_| self.keeper.is_reachable(member(seat)));
        // What a member takes for the active may have been that once, or never.
        let asked = match self.dice.chance(15) {
            true => Some(self.dice.below(self.servers.len() as u64) as usize),
            false => active,
        };
        if let Some(asked) = asked.filter(|asked| *asked != seat && self.servers[*asked].is_running) {
            let (life_asked, by) = (self.servers[asked].life, (seat, life));
            self.soon_or_late(asked, life_asked, Arrival::PointAsked { by, question });
        }
    }

    fn soon_or_late(&mut self, seat: usize, life: u64, what: Arrival) {
        let happening = Happening::Arrival { seat, life, what };
        match self.dice.chance(5) {
            true => {
                let late_ms = self.dice.below(LATE_MS_MAX);
                self.after_ms(late_ms, happening);
            }
            false => self.soon(happening),
        }
    }

    /// Another member asks how far the log has committed.
    pub(super) fn point_asked(&mut self, seat: usize, by: (usize, u64), question: PointQuestion) {
        let server = &self.servers[seat];
        if !server.is_serving() {
            return self.tell_point(by, question, None);
        }
        let committed = match self.tells_the_watermark {
            true => server.answers.commit.committed(),
            false => server.host.member().committed(),
        };
        let point = ReadPoint { epoch: server.epoch, committed };
        // The thread that tells it is not given the processor for a while.
        if self.stalls() {
            self.goes_on_later(seat, Arrival::PointGoesOn { by, question, point });
            return;
        }
        self.prove_point(seat, by, question, point);
    }

    pub(super) fn prove_point(
        &mut self,
        seat: usize,
        by: (usize, u64),
        question: PointQuestion,
        point: ReadPoint,
    ) {
        let server = &self.servers[seat];
        let is_proved = server.proofs.is_proved(server.rules, server.reign(self.now_ns), point.epoch);
        let is_doubtful = self.lease_is_doubtful(seat);
        self.tell_point(by, question, is_proved.then_some(ToldPoint { point, is_doubtful }));
    }

    fn tell_point(&mut self, (seat, life): (usize, u64), question: PointQuestion, told: Option<ToldPoint>) {
        self.soon_or_late(seat, life, Arrival::Point { question, told });
    }

    /// The question has its answer, or the member has given the question up.
    pub(super) fn point_told(
        &mut self,
        seat: usize,
        question: PointQuestion,
        told: Option<ToldPoint>,
    ) -> Result<(), Broken> {
        let answered = self.servers[seat].answers.points.told(question);
        if let Some(next) = answered.ask {
            self.ask_for_point(seat, next);
        }
        answered.reads.into_iter().try_for_each(|read| self.read_behind(seat, read, told))
    }

    /// A read whose point is known, or will not be.
    pub(super) fn read_behind(
        &mut self,
        seat: usize,
        read: StandbyRead,
        told: Option<ToldPoint>,
    ) -> Result<(), Broken> {
        let server = &self.servers[seat];
        if server.answers() {
            return self.call(seat, read.copy, &read.request);
        }
        let Some(told) = told else {
            self.pass_on(seat, read.copy, false);
            return Ok(());
        };
        if serving::shows(server.tree.namespace.applied(), told.point, server.rules) {
            return self.answer_behind(seat, &read, told);
        }
        if self.now_ns - read.since_ns > PATIENCE_NS {
            self.pass_on(seat, read.copy, false);
            return Ok(());
        }
        let life = server.life;
        let what = Arrival::ReadWaits { read, told };
        self.after_ms(1, Happening::Arrival { seat, life, what });
        Ok(())
    }

    fn answer_behind(&mut self, seat: usize, read: &StandbyRead, told: ToldPoint) -> Result<(), Broken> {
        let StandbyRead { copy, request, .. } = read;
        let Request::Read(look) = request else { unreachable!("changes are passed on") };
        let server = &self.servers[seat];
        let certain = server.answers.commit.committed().max(told.point.committed);
        if server.tree.rests_on(Until::own(certain), look.sight()).is_some() {
            self.pass_on(seat, *copy, false);
            return Ok(());
        }
        let (wall, moment) = (server.clock.timestamp(self.now_ns), Moment { ns: self.now_ns });
        let facts = GivenFacts::all_finished();
        let Outcome::Read(answer) =
            request.plan(&server.tree.namespace, origin_of(*copy), wall, moment, &facts)
        else {
            unreachable!("a read changes nothing");
        };
        // Members that have applied the same are held to be equal; here is looked at how far this one has come.
        let sn = certain.min(server.tree.namespace.applied().sn);
        let truth = &self.observer.truth;
        let rests_on = server.host.disk.point(sn).or_else(|| truth.point(sn)).unwrap_or_default();
        if sn == truth.last() {
            let number = self.observer.reference.expect(sn, *copy, request)?;
            if let Some(expected) = self.observer.reference.take(number) {
                check::reads_tell_what_has_committed::check(copy.key, &answer, &expected)?;
                self.observer.judged += 1;
            }
        }
        self.observer.by_standbys += 1;
        let is_doubtful = told.is_doubtful;
        self.reply(*copy, ClientReply::Done { answer, rests_on, kind: Kind::Read, is_doubtful });
        Ok(())
    }
}
