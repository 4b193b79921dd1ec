//! Data servers begin sessions with all members, send heartbeats, and report.
//!
//! Two loops run side by side in a session, as in `datad`: one sends heartbeats, the other reports. Each awaits one answer
//! at a time. An answer that comes after the patience for it has ended is not heard, and what was asked may have been done, or
//! may yet be.

use super::{
    data_server::Phase,
    room::DataRoom,
    words::{Call, Event, Reply, Request, Session},
};
use crate::{
    cluster::{
        happening::{Arrival, Happening},
        world::World,
    },
    truth::Broken,
};
use base::BlockId;
use blocks::{Answer, Increment};
use std::collections::BTreeSet;

const HEARTBEAT_MS: u64 = 100;
const PATIENCE_MS: u64 = 500;
/// Everything is told anew after so long, and up to twice that.
const FULL_REPORT_MS: u64 = 2_000;

impl World {
    pub(super) fn room(&mut self) -> &mut DataRoom {
        self.data.as_mut().expect("only data servers lead here")
    }

    pub(super) fn later(&mut self, ns: u64, event: Event) {
        self.after_ns(ns, Happening::Data(event));
    }

    pub(in crate::cluster) fn data_event(&mut self, event: Event) -> Result<(), Broken> {
        if self.is_for_a_paused_one(&event) {
            self.room().inbox.push(event);
            return Ok(());
        }
        match event {
            Event::Start { server } => self.start_data_server(server),
            Event::Begin(session) => self.register(session),
            Event::Beat(session) => self.beat(session),
            Event::Turn(session) => self.turn(session),
            Event::Answer { session, number, reply } => return self.hear(session, number, reply),
            Event::Timeout { session, number } => self.fail(session, number),
            Event::Writing { server, life, block } => self.begin_replica(server, life, block),
            Event::Written { server, life, block, client, call } => {
                self.finish_replica(server, life, block, client, call);
            }
            Event::Copied { from, to, block } => self.copied(from, to, block),
            Event::Delete { session, mandate, block, is_needed } => {
                return self.delete_replica(session, mandate, block, is_needed);
            }
            Event::Removed { server, life, block } => self.files_are_gone(server, life, block),
            Event::Tick { seat, life } => return self.tick_blocks(seat, life),
            Event::PipelineEnded { client, call } => self.pipeline_ended(client, call),
        }
        Ok(())
    }

    fn is_for_a_paused_one(&mut self, event: &Event) -> bool {
        let server = match event {
            Event::Begin(session) | Event::Beat(session) | Event::Turn(session) => session.server,
            Event::Answer { session, .. }
            | Event::Timeout { session, .. }
            | Event::Delete { session, .. } => session.server,
            Event::Written { server, .. } | Event::Removed { server, .. } => *server,
            Event::Copied { to, .. } => to.0,
            _ => return false,
        };
        self.room().servers[server].is_paused
    }

    fn start_data_server(&mut self, server: usize) {
        let rules = self.room().config.rules;
        if self.room().servers[server].is_running {
            return;
        }
        self.room().servers[server].start(rules);
        self.note(format!("data server {server} starts"));
        for seat in 0..self.servers.len() {
            self.begin_session(server, seat, 1);
        }
    }

    /// Another session with this member, after a short while.
    fn begin_session(&mut self, server: usize, seat: usize, after_ms_max: u64) {
        let room = self.room();
        room.servers[server].begin_session(seat);
        let session = room.servers[server].session(server, seat);
        let ns = (1 + room.dice.below(after_ms_max)) * 1_000_000;
        self.later(ns, Event::Begin(session));
    }

    fn session_fails(&mut self, session: Session) {
        self.begin_session(session.server, session.seat, 150);
    }

    fn is_current(&mut self, session: Session) -> bool {
        self.room().servers[session.server].is_current(session)
    }

    fn register(&mut self, session: Session) {
        if self.is_current(session) {
            self.ask_in_turn(session, Request::Register);
        }
    }

    /// Sends a call, and waits for its answer for a while.
    fn call_member(&mut self, session: Session, what: Request) -> u64 {
        let Session { server, seat, .. } = session;
        let (life, is_running) = (self.servers[seat].life, self.servers[seat].is_running);
        let room = self.room();
        let link = &mut room.servers[server].links[seat];
        link.calls += 1;
        let (number, key, connection) = (link.calls, link.key, link.connection);
        let way = room.paths.send(server, seat);
        if !is_running {
            // Nobody takes the connection.
            self.later(1_000_000, Event::Answer { session, number, reply: Reply::Failed });
        } else if let Some(ns) = way {
            let what = Arrival::FromData(Call { session, number, connection, key, what }, None);
            self.after_ns(ns, Happening::Arrival { seat, life, what });
        }
        self.later(PATIENCE_MS * 1_000_000, Event::Timeout { session, number });
        number
    }

    fn ask_in_turn(&mut self, session: Session, what: Request) {
        let number = self.call_member(session, what.clone());
        self.room().servers[session.server].links[session.seat].turn = Some((number, what));
    }

    fn beat(&mut self, session: Session) {
        if !self.is_current(session) {
            return;
        }
        let link = &self.room().servers[session.server].links[session.seat];
        if link.phase == Phase::Serving && link.beat.is_none() {
            let number = self.call_member(session, Request::Heartbeat { wants_lease: false });
            self.room().servers[session.server].links[session.seat].beat = Some(number);
        }
    }

    /// The loop of reports looks again at the latest after so long.
    fn wake(&mut self, session: Session, ns: u64) {
        let at = self.now_ns + ns;
        let link = &mut self.room().servers[session.server].links[session.seat];
        if link.turn_at_ns.is_none_or(|earlier| at < earlier) {
            link.turn_at_ns = Some(at);
            self.later(ns, Event::Turn(session));
        }
    }

    /// News that somebody waits for goes out at once.
    pub(super) fn tell_news(&mut self, server: usize, news: &Increment) {
        self.room().servers[server].tell_all(news);
        if matches!(news, Increment::Received { .. }) {
            for seat in 0..self.servers.len() {
                let session = self.room().servers[server].session(server, seat);
                self.wake(session, 100_000);
            }
        }
    }

    fn turn(&mut self, session: Session) {
        if !self.is_current(session) {
            return;
        }
        let now_ns = self.now_ns;
        let link = &mut self.room().servers[session.server].links[session.seat];
        if link.turn_at_ns.is_some_and(|at| at <= now_ns) {
            link.turn_at_ns = None;
        }
        if link.turn.is_some() {
            return;
        }
        match link.phase {
            Phase::Registering => {}
            Phase::Introducing => self.ask_in_turn(session, Request::Heartbeat { wants_lease: true }),
            Phase::Serving if !link.news.is_empty() => {
                let news = std::mem::take(&mut link.news);
                self.ask_in_turn(session, Request::Changes(news));
            }
            Phase::Serving if link.wants_full || link.full_due_ns <= now_ns => {
                self.ask_in_turn(session, Request::Heartbeat { wants_lease: true });
            }
            Phase::Serving => self.wake(session, HEARTBEAT_MS * 1_000_000),
        }
    }

    fn hear(&mut self, session: Session, number: u64, reply: Reply) -> Result<(), Broken> {
        if !self.is_current(session) {
            return Ok(());
        }
        let link = &mut self.room().servers[session.server].links[session.seat];
        let is_beat = link.beat == Some(number);
        let asked = link.turn.take_if(|(asked, _)| *asked == number).map(|(_, asked)| asked);
        if is_beat {
            link.beat = None;
        } else if asked.is_none() {
            return Ok(());
        }
        match reply {
            Reply::Failed => self.failed(session, asked),
            Reply::Unregistered => self.session_fails(session),
            Reply::Registered(key) => {
                // The full report tells what the news would.
                link.news.clear();
                (link.key, link.phase) = (key, Phase::Introducing);
                self.wake(session, 100_000);
            }
            Reply::Answered(answer, needed) => {
                let is_registered = self.heed(session, &answer, &needed)?;
                if !is_registered {
                    self.session_fails(session);
                } else if is_beat {
                    self.later(HEARTBEAT_MS * 1_000_000, Event::Beat(session));
                } else {
                    self.report_in_turn(session, answer.lease);
                }
            }
            Reply::Taken => self.taken(session, asked),
        }
        Ok(())
    }

    /// A full report is taken after the answer that allows it.
    fn report_in_turn(&mut self, session: Session, lease: u64) {
        if lease == 0 {
            return self.wake(session, 50_000_000);
        }
        let server = &mut self.room().servers[session.server];
        server.links[session.seat].wants_full = false;
        let rows = server.rows();
        self.room().counts.reports += 1;
        self.ask_in_turn(session, Request::FullReport { lease, rows });
    }

    fn taken(&mut self, session: Session, asked: Option<Request>) {
        let now_ns = self.now_ns;
        let room = self.room();
        let due_ms = FULL_REPORT_MS + room.dice.below(FULL_REPORT_MS);
        let link = &mut room.servers[session.server].links[session.seat];
        if matches!(asked, Some(Request::FullReport { .. })) {
            link.full_due_ns = now_ns + due_ms * 1_000_000;
            if link.phase == Phase::Introducing {
                link.phase = Phase::Serving;
                self.later(1_000_000, Event::Beat(session));
            }
        }
        self.wake(session, 100_000);
    }

    fn fail(&mut self, session: Session, number: u64) {
        if !self.is_current(session) {
            return;
        }
        let link = &mut self.room().servers[session.server].links[session.seat];
        // A call that is given up takes its connection with it. A report that is under way there is still waited for.
        if link.beat == Some(number) {
            link.beat = None;
            link.connection += 1;
            return self.failed(session, None);
        }
        if let Some((_, asked)) = link.turn.take_if(|(asked, _)| *asked == number) {
            link.connection += 1;
            self.failed(session, Some(asked));
        }
    }

    /// `asked`: the call of the loop of reports; `None`: a heartbeat of the other loop.
    fn failed(&mut self, session: Session, asked: Option<Request>) {
        let Some(asked) = asked else { return self.later(50_000_000, Event::Beat(session)) };
        let link = &mut self.room().servers[session.server].links[session.seat];
        if link.phase != Phase::Serving {
            return self.session_fails(session);
        }
        match asked {
            Request::Changes(mut unsent) => {
                unsent.append(&mut link.news);
                link.news = unsent;
            }
            Request::FullReport { .. } | Request::Heartbeat { .. } => link.wants_full = true,
            Request::Register => {}
        }
        self.wake(session, 50_000_000);
    }

    /// What a member says of itself, and its orders. False: the data server is to register again.
    fn heed(
        &mut self,
        session: Session,
        answer: &Answer,
        needed: &BTreeSet<BlockId>,
    ) -> Result<bool, Broken> {
        let Session { server, seat, .. } = session;
        let it = &mut self.room().servers[server];
        let obeyed = it.leadership.observe(seat, answer.claim);
        it.heard_epoch = it.heard_epoch.max(answer.claim.epoch().map_or(0, |epoch| epoch.0));
        if obeyed.is_some_and(|obeyed| obeyed.is_new) {
            it.links[seat].wants_full = true;
            self.wake(session, 100_000);
        }
        self.obey(session, answer, obeyed.map(|obeyed| obeyed.mandate), needed)
    }
}
