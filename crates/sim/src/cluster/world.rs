//! A whole cluster in one thread: the agenda of its events, and their consequences.

use super::{
    client::Client,
    clock::Clock,
    data::{DataRoom, words::Event},
    happening::{Arrival, Fault, Happening, Whom},
    hearing::Hearing,
    held::Holding,
    keeper::Keeper,
    network::Network,
    observer::Observer,
    server::Server,
};
use crate::{
    dice::Dice,
    host::{Happened, Host, StoredLog},
    truth::Broken,
};
use base::{GroupView, Level, MemberId, MemberStore, Moment, Sn};
use group::{Input, Role, Settings};
use serving::{ProofSettings, Rules};
use std::collections::BTreeMap;

/// How long an answer waits for a proof.
const PROOF_PATIENCE_MS: u64 = 10_000;

/// The kind of a cluster.
#[derive(Clone, Debug)]
pub struct Shape {
    pub members: usize,
    /// The number of these members that start empty and not in sync.
    pub juniors: usize,
    pub clients: usize,
    /// The number of these clients that only read.
    pub readers: usize,
    pub in_sync_min: u32,
    pub settings: Settings,
    /// Clocks go wrong by so many millionths.
    pub drift_ppm: u64,
    /// How long clients wait between two calls, at most.
    pub think_ms: u64,
    /// Plants a bug: the members break this rule of serving.
    pub breaks: Option<serving::Broken>,
    /// How often the thread of a read, or of an answer, is not given the processor for a while.
    pub stalls_percent: u64,
    /// The coordinator is asked for each read, as where no lease can be had.
    pub proves_reads: bool,
    /// Members keep their logs in the journal that ships, on simulated disks.
    pub plays_journals: bool,
    /// How often a member finds out at once that another one's process has ended, in percent. Where it does not, a grant runs out by itself.
    pub ends_are_told_percent: u64,
    /// Plants a bug: those disks only say that they sync.
    pub disks_lie: bool,
    /// Synced bytes on those disks rot.
    pub rots: bool,
    /// Members hold the calls that they cannot answer, and hand them to the member that serves.
    pub holds_calls: bool,
    /// Members that do not lead answer reads.
    pub standbys_read: bool,
    /// The level of the group.
    pub level: Level,
    /// Data servers, which keep the blocks of files; none: files are empty.
    pub data_servers: usize,
    /// Plants a bug: members and data servers break this rule.
    pub breaks_data: Option<blocks::Broken>,
    /// Plants a bug: an active tells its watermark as the read point. Other members may have been told of later commits already.
    pub tells_the_watermark: bool,
    /// Plants a bug: a damaged log ends before its first hole, nobody is asked, and its member takes that for certain.
    pub cuts_silently: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            members: 4,
            juniors: 0,
            clients: 3,
            readers: 0,
            in_sync_min: 2,
            settings: Settings::default(),
            drift_ppm: 1_000,
            think_ms: 30,
            breaks: None,
            stalls_percent: 0,
            proves_reads: false,
            plays_journals: false,
            ends_are_told_percent: 70,
            disks_lie: false,
            rots: false,
            holds_calls: false,
            standbys_read: true,
            level: Level::NEWEST,
            data_servers: 0,
            breaks_data: None,
            tells_the_watermark: false,
            cuts_silently: false,
        }
    }
}

pub struct World {
    pub dice: Dice,
    pub now_ns: u64,
    pub(super) agenda: BTreeMap<(u64, u64), Happening>,
    order: u64,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    pub keeper: Keeper,
    pub network: Network,
    pub observer: Observer,
    pub(super) settings: Settings,
    pub(super) think_ms: u64,
    pub(super) readers: usize,
    pub(super) stalls_percent: u64,
    pub(super) standbys_read: bool,
    pub(super) tells_the_watermark: bool,
    pub(super) plays_journals: bool,
    pub(super) ends_are_told_percent: u64,
    pub(super) rots: bool,
    pub(super) cuts_silently: bool,
    /// The last entry that had committed when all disks and the coordinator were copied.
    pub(super) copied_up_to: Option<Sn>,
    /// Clients begin nothing new.
    pub is_closing: bool,
    /// Arrivals of those who are stopped.
    pub(super) inboxes: Vec<Vec<(u64, Arrival)>>,
    /// The seat of the member that holds the lock, and its life.
    lock: Option<(usize, u64)>,
    pub(super) hearing: Hearing,
    pub(super) holding: Holding,
    pub data: Option<DataRoom>,
}

pub fn member(seat: usize) -> MemberId {
    MemberId(seat as u32 + 1)
}

pub fn seat_of(member: MemberId) -> usize {
    member.0 as usize - 1
}

impl World {
    pub fn new(seed: u64, shape: &Shape) -> Self {
        let mut dice = Dice::new(seed);
        let stores: Vec<_> =
            (0..shape.members).map(|seat| MemberStore { member: member(seat), generation: 0 }).collect();
        let mut view = GroupView::new(&stores, shape.in_sync_min);
        view.in_sync.truncate(shape.members - shape.juniors);
        let proofs = ProofSettings {
            rests_on_lease: !shape.proves_reads,
            patience_ms: PROOF_PATIENCE_MS,
            bytes_max: usize::MAX,
        };
        let rules = shape.breaks.map_or_else(Rules::default, Rules::without);
        let servers = stores
            .iter()
            .map(|store| {
                let rate = 1_000_000 - shape.drift_ppm + dice.below(2 * shape.drift_ppm + 1);
                let clock = Clock::new(dice.below(1 << 40), rate);
                let host = match shape.plays_journals {
                    true => {
                        Host::with_journal(*store, StoredLog::format(*store, dice.split(), shape.disks_lie))
                    }
                    false => Host::new(*store),
                };
                Server::new(host, clock, proofs, rules, shape.level, &mut dice)
            })
            .collect();
        let clients = (0..shape.clients).map(|client| Client::new(client % shape.members)).collect();
        let network = Network::new(dice.split());
        let mut world = Self {
            now_ns: 0,
            agenda: BTreeMap::new(),
            order: 0,
            servers,
            clients,
            keeper: Keeper::new(view),
            network,
            observer: Observer::of_group_at(shape.level),
            settings: shape.settings,
            think_ms: shape.think_ms,
            readers: shape.readers,
            stalls_percent: shape.stalls_percent,
            plays_journals: shape.plays_journals,
            ends_are_told_percent: shape.ends_are_told_percent,
            rots: shape.rots,
            cuts_silently: shape.cuts_silently,
            copied_up_to: None,
            is_closing: false,
            inboxes: vec![Vec::new(); shape.members],
            lock: None,
            hearing: Hearing::default(),
            holding: Holding::new(shape.holds_calls),
            standbys_read: shape.standbys_read,
            tells_the_watermark: shape.tells_the_watermark,
            data: None,
            dice,
        };
        for seat in 0..shape.members {
            let after_ms = world.dice.below(20);
            world.after_ms(after_ms, Happening::Start { seat });
        }
        if shape.data_servers > 0 {
            let rules = shape.breaks_data.map_or_else(blocks::Rules::default, blocks::Rules::without);
            let dice = world.dice.split();
            world.data = Some(DataRoom::new(dice, shape.data_servers, shape.members, rules));
            for server in 0..shape.data_servers {
                let after_ms = world.dice.below(50);
                world.after_ms(after_ms, Happening::Data(Event::Start { server }));
            }
        }
        for client in 0..shape.clients {
            world.after_ms(600, Happening::Think { client });
        }
        world
    }

    pub fn at_ms(&mut self, ms: u64, happening: Happening) {
        self.order += 1;
        self.agenda.insert((ms * 1_000_000, self.order), happening);
    }

    pub(super) fn after_ns(&mut self, ns: u64, happening: Happening) {
        self.order += 1;
        self.agenda.insert((self.now_ns + ns, self.order), happening);
    }

    pub(super) fn after_ms(&mut self, ms: u64, happening: Happening) {
        self.after_ns(ms * 1_000_000, happening);
    }

    /// A short way within a machine room.
    pub(super) fn soon(&mut self, happening: Happening) {
        let ns = 100_000 + self.dice.below(1_500_000);
        self.after_ns(ns, happening);
    }

    pub(super) fn soon_for(&mut self, seat: usize, what: Arrival) {
        let life = self.servers[seat].life;
        self.soon(Happening::Arrival { seat, life, what });
    }

    /// Lets everything happen until then.
    ///
    /// # Errors
    /// A rule is broken. The text names the rule; nothing that was due later has happened.
    pub fn run_until_ms(&mut self, ms: u64) -> Result<(), Broken> {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= ms * 1_000_000
        {
            let ((at, _), happening) = entry.remove_entry();
            self.now_ns = at;
            self.happen(happening)?;
        }
        self.now_ns = ms * 1_000_000;
        Ok(())
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Broken> {
        match happening {
            Happening::Arrival { seat, life, what } => {
                if self.servers[seat].life != life || !self.servers[seat].is_running {
                    return Ok(());
                }
                if self.servers[seat].is_paused {
                    self.inboxes[seat].push((life, what));
                    return Ok(());
                }
                let Some(what) = self.servers[seat].held_up(what) else { return Ok(()) };
                self.arrive(seat, what)
            }
            Happening::Change { seat, life, change, is_heard } => {
                if !self.keeper.is_reachable(member(seat)) && is_heard {
                    let (asked, answer) = (change.name(), Err(group::ChangeFailed::Unknown));
                    self.soon_for(seat, Arrival::Changed { asked, answer });
                    return Ok(());
                }
                let before = self.keeper.view.clone();
                let answer = self.keeper.change(&change);
                if let Err(reason) = answer {
                    let (version, expected) = (self.keeper.version, change.expected_version);
                    let note = format!(
                        "coordinator: member {} asks at version {expected} of {version}: {reason:?}",
                        member(seat)
                    );
                    self.note(note);
                }
                if answer.is_ok() {
                    self.admit_loss(&before)?;
                    let view = &change.view;
                    let (author, news) = (self.servers[seat].host.life(), self.servers[seat].news);
                    self.observer.changes.made(self.now_ns, author, news, view)?;
                    let note = format!(
                        "coordinator: version {}, epoch {}, active {:?}, in sync {:?}, exiles {:?}",
                        self.keeper.version,
                        view.epoch,
                        view.active.map(|one| one.0),
                        view.in_sync.iter().map(|store| store.member.0).collect::<Vec<_>>(),
                        view.exiles.iter().map(|store| store.member.0).collect::<Vec<_>>()
                    );
                    self.note(note);
                    self.watchers(seat);
                }
                if is_heard {
                    self.answer_change(seat, life, change.name(), answer);
                }
                self.check()
            }
            Happening::ReadView { seat, life } => {
                if self.servers[seat].life == life {
                    if self.keeper.is_reachable(member(seat)) {
                        let (view, version) = (self.keeper.view.clone(), self.keeper.version);
                        self.soon_for(seat, Arrival::View { view, version });
                    } else {
                        let again_ms = 100 + self.dice.below(200);
                        self.after_ms(again_ms, Happening::ReadView { seat, life });
                    }
                }
                Ok(())
            }
            Happening::SessionEnds { seat, life, since_ns } => {
                let is_gone = self.servers[seat].life != life
                    || !self.servers[seat].is_running
                    || self.keeper.unreachable.get(&member(seat)) == Some(&since_ns);
                if is_gone && self.lock == Some((seat, life)) {
                    self.lock = None;
                    self.tell_lock_gone(seat);
                }
                Ok(())
            }
            Happening::Confirm { seat, life, question, basis } => {
                // A coordinator that is out of reach is asked again later.
                if self.keeper.is_reachable(member(seat)) {
                    let is_current = self.keeper.basis() == basis;
                    let what = Arrival::Confirmed { question, is_current };
                    let late_percent = if self.stalls_percent > 0 { 50 } else { 10 };
                    let late_ms = if self.dice.chance(late_percent) { self.dice.below(1_200) } else { 0 };
                    self.after_ms(1 + late_ms, Happening::Arrival { seat, life, what });
                }
                Ok(())
            }
            Happening::Start { seat } => {
                self.servers[seat].looks_again = false;
                self.start(seat);
                Ok(())
            }
            Happening::Look { seat, life } => {
                self.look_at_threads(seat, life);
                Ok(())
            }
            Happening::Think { client } => {
                self.begin_call(client);
                Ok(())
            }
            Happening::Timeout { client, key, tries } => {
                self.timed_out(client, key, tries);
                Ok(())
            }
            Happening::Again { client, key, tries } => {
                self.ask_again(client, key, tries);
                Ok(())
            }
            Happening::Data(event) => self.data_event(event),
            Happening::Replied { copy, reply } => self.replied(copy, reply),
            Happening::Chunk { seat, life, from, done } => {
                self.chunk(seat, life, from, done);
                Ok(())
            }
            Happening::Mend { seat, life, asked } => {
                self.mend(seat, life, asked);
                Ok(())
            }
            Happening::Fault(fault) => {
                self.note(format!("fault: {fault:?}"));
                self.fault(fault)
            }
        }
    }

    /// Whether the view just made is an operator's word that what the new active lacks is lost: nothing else is.
    fn admit_loss(&mut self, before: &GroupView) -> Result<(), Broken> {
        let view = &self.keeper.view;
        let elected = view.in_sync.iter().find(|store| Some(store.member) == view.active).copied();
        let Some(elected) = elected.filter(|store| view.epoch > before.epoch && !before.is_eligible(*store))
        else {
            return Ok(());
        };
        let host = &self.servers[seat_of(elected.member)].host;
        if host.store != elected {
            return Ok(()); // It has begun anew meanwhile: nobody leads this epoch.
        }
        let last = self.observer.truth.last();
        let left = self.observer.admit_loss(host)?;
        self.forget_needed();
        for current in self.clients.iter_mut().filter_map(|client| client.current.as_mut()) {
            current.floor = current.floor.min(left);
        }
        self.note(format!("an unclean election: what follows {left} is given up, {last} had committed"));
        Ok(())
    }

    pub fn note(&mut self, line: String) {
        self.observer.note(self.now_ns, line);
    }

    fn watchers(&mut self, author: usize) {
        for seat in 0..self.servers.len() {
            if seat != author && self.servers[seat].is_running && self.dice.chance(95) {
                let life = self.servers[seat].life;
                let late_percent = if self.stalls_percent > 0 { 50 } else { 10 };
                let late_ms =
                    if self.dice.chance(late_percent) { self.dice.below(500) } else { self.dice.below(10) };
                self.after_ms(late_ms, Happening::ReadView { seat, life });
            }
        }
    }

    pub(super) fn tell_lock_gone(&mut self, but: usize) {
        for seat in 0..self.servers.len() {
            if seat != but && self.keeper.is_reachable(member(seat)) {
                self.soon_for(seat, Arrival::LockGone);
            }
        }
    }

    pub(super) fn arrive(&mut self, seat: usize, what: Arrival) -> Result<(), Broken> {
        if !self.servers[seat].host.is_up() {
            return match what {
                Arrival::View { view, version } if !self.servers[seat].host.is_damaged() => {
                    self.join(seat)?;
                    self.step(seat, Input::View { view, version })
                }
                _ => Ok(()),
            };
        }
        let is_news = self.hearing.is_news(self.now_ns, seat, &what);
        self.servers[seat].news += u64::from(is_news);
        match what {
            Arrival::Packet { from, message } => {
                self.step(seat, Input::Message { from: from.store, boot: from.boot, message })
            }
            Arrival::PeerGone(peer) => self.step(seat, Input::PeerGone(peer)),
            Arrival::PeerEnded(life) => {
                self.step(seat, Input::PeerEnded { store: life.store, boot: life.boot })
            }
            Arrival::PeerConnected(peer) => self.step(seat, Input::PeerConnected(peer)),
            Arrival::LockGone => self.step(seat, Input::LockGone),
            Arrival::Changed { asked, answer } => self.step(seat, Input::Changed { asked, answer }),
            Arrival::View { view, version } => self.step(seat, Input::View { view, version }),
            Arrival::Order(order) => {
                self.observer.changes.ordered(self.servers[seat].host.life());
                self.step(seat, Input::Operator { ticket: 1, order })
            }
            Arrival::LogRead(asked) => {
                let answer = self.servers[seat].host.read_log(asked);
                self.step(seat, answer)
            }
            Arrival::Tick { at_ns } => {
                // Only one is waited for, or each that was set and replaced would set another.
                if self.servers[seat].tick_at != Some(at_ns) {
                    return Ok(());
                }
                self.servers[seat].tick_at = None;
                self.step(seat, Input::Tick)
            }
            Arrival::Synced { up_to, cuts } => self.synced(seat, up_to, cuts),
            Arrival::Call { copy, request } => self.call(seat, copy, &request),
            Arrival::Held { copy, request, since_ns } => self.held(seat, copy, request, since_ns),
            Arrival::Forwarded { copy, request, by, since_ns } => {
                self.forwarded(seat, by, copy, request, since_ns)
            }
            Arrival::Confirmed { question, is_current } => self.confirmed(seat, question, is_current),
            Arrival::LookAtAnswers => self.look_at_answers(seat),
            Arrival::ReadGoesOn { copy, request, epoch } => self.read(seat, copy, &request, epoch),
            Arrival::AnswerGoesOn(waiting) => self.prove_now(seat, waiting),
            Arrival::WatermarkRises(sn) => self.advance(seat, sn),
            Arrival::PointAsked { by, question } => {
                self.point_asked(seat, by, question);
                Ok(())
            }
            Arrival::PointGoesOn { by, question, point } => {
                self.prove_point(seat, by, question, point);
                Ok(())
            }
            Arrival::Point { question, told } => self.point_told(seat, question, told),
            Arrival::ReadWaits { read, told } => self.read_behind(seat, read, Some(told)),
            Arrival::Fetched { checkpoint, file } => {
                self.install_stored(seat, &checkpoint, &file);
                Ok(())
            }
            Arrival::FromData(call, rest) => self.hear_data_server(seat, call, rest),
            Arrival::Suggested(proposal) => self.append_suggested(seat, proposal),
            Arrival::Checkpoint(checkpoint) => {
                self.adopt_image(seat, &checkpoint);
                Ok(())
            }
            Arrival::Image(image) => {
                self.install(seat, image.0);
                Ok(())
            }
        }
    }

    fn synced(&mut self, seat: usize, up_to: Sn, cuts: u64) -> Result<(), Broken> {
        if self.servers[seat].cuts != cuts {
            return Ok(()); // What it synced is not what is there now; another is under way.
        }
        self.servers[seat].is_syncing = false;
        let is_struck = std::mem::replace(&mut self.servers[seat].disk.fails, false);
        // The disk does not fail while a log is in doubt: a person would have to choose between the two.
        if is_struck && !(self.rots && self.is_a_log_in_doubt()) {
            self.note(format!("member {}'s fsync fails", member(seat)));
            if self.servers[seat].disk.fails_with_a_note {
                return self.disk_fails_with_a_note(seat);
            }
            self.step(seat, Input::DiskFailed)?;
            // The process ends with its reason; the store is not trusted any more.
            self.end(seat, 0);
            self.observer.disks_lost = true;
            self.servers[seat].host.begin_anew();
            self.servers[seat].image = None;
            let after_ms = 200 + self.dice.below(2_000);
            self.after_ms(after_ms, Happening::Start { seat });
            return Ok(());
        }
        let now = self.servers[seat].clock.moment(self.now_ns);
        let mut happened = Happened::default();
        let host = &mut self.servers[seat].host;
        let count = up_to.0.saturating_sub(host.disk.durable_end().id.sn.0) as usize;
        host.sync(now, count, &mut happened);
        self.follow(seat, happened)
    }

    pub(super) fn step(&mut self, seat: usize, input: Input) -> Result<(), Broken> {
        let server = &mut self.servers[seat];
        if !server.host.is_up() {
            return Ok(());
        }
        let now = server.clock.moment(self.now_ns);
        let mut happened = Happened::default();
        server.host.step(now, input, &mut happened);
        self.follow(seat, happened)
    }

    /// Everything that one step has led to.
    fn follow(&mut self, seat: usize, happened: Happened) -> Result<(), Broken> {
        self.observer.observe(&self.servers[seat].host, &happened)?;
        self.follow_needed()?;
        let now = self.servers[seat].clock.moment(self.now_ns);
        if let Some(side) = &mut self.servers[seat].blocks {
            side.now = now;
        }
        if !happened.cut.is_empty() {
            self.servers[seat].cuts += 1;
            self.servers[seat].is_syncing = false;
        }
        let changed = !happened.cut.is_empty()
            || !happened.appended.is_empty()
            || happened
                .outgoing
                .iter()
                .any(|outgoing| outgoing.committed.is_some() || outgoing.role.is_some());
        let is_killed = match &mut self.servers[seat].kill_after_steps {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let (sends, asks) =
            if is_killed { (self.dice.chance(50), self.dice.chance(50)) } else { (true, true) };
        let life = self.servers[seat].life;
        if asks {
            for change in happened.changes {
                let author = self.servers[seat].host.life();
                self.observer.changes.asked(self.now_ns, author, &change)?;
                self.ask_for_change(seat, life, change);
            }
        }
        if sends {
            let from = self.servers[seat].host.life();
            for (to, message) in happened.messages {
                for ns in self.network.send(from.store.member, to) {
                    let to = seat_of(to);
                    let to_life = self.servers[to].life;
                    let what = Arrival::Packet { from, message: message.clone() };
                    self.after_ns(ns, Happening::Arrival { seat: to, life: to_life, what });
                }
            }
        }
        let mut restarts = None;
        let mut is_quiet = false;
        for outgoing in happened.outgoing {
            if let (Some(side), Some(first)) = (&mut self.servers[seat].blocks, outgoing.apply.first()) {
                // What this member has applied when it led comes first.
                side.settle(Sn(first.id.sn.0 - 1));
            }
            for entry in &outgoing.apply {
                self.servers[seat].apply(entry)?;
                let server = &self.servers[seat];
                self.observer.applied(entry.point(), server.tree.namespace.digest())?;
            }
            for entry in &outgoing.apply_ahead {
                self.servers[seat].apply_ahead(entry)?;
                let server = &self.servers[seat];
                self.observer.applied(entry.point(), server.tree.namespace.digest())?;
            }
            if let Some(reason) = outgoing.stepped_down {
                self.suspend(seat, &reason);
            }
            if let Some(sn) = outgoing.committed {
                if let Some(side) = &mut self.servers[seat].blocks {
                    side.settle(sn);
                }
                self.advance_soon(seat, sn)?;
                self.look_for_checkpoints(seat, sn);
                // Written down now and then.
                if !self.servers[seat].host.note_commit(sn) && self.dice.chance(5) {
                    self.servers[seat].host.disk.known_commit = sn;
                }
            }
            if let Some(role) = outgoing.role {
                self.note(format!("member {} is {role:?}", member(seat)));
                if let Role::Starting { epoch } | Role::Reading { epoch } | Role::Serving { epoch } = role {
                    self.servers[seat].epoch = epoch;
                }
                if matches!(role, Role::Serving { .. }) {
                    self.servers[seat].take_servers_out(self.now_ns);
                }
                if let Some(side) = &mut self.servers[seat].blocks {
                    side.set_commanding(match role {
                        Role::Serving { epoch } => Some(epoch),
                        _ => None,
                    });
                }
                match role {
                    Role::Serving { epoch } => {
                        self.servers[seat].answers.commit.resume(epoch);
                        // A member that was elected before the view was put back proves nothing about it.
                        self.keeper.is_older &= epoch != self.keeper.view.epoch;
                        self.lock = Some((seat, life));
                    }
                    // No writer's turn is open in between.
                    Role::HandingOver { .. } => is_quiet = true,
                    Role::Stopped { reason } => restarts = Some((reason, false)),
                    _ => {}
                }
            }
            if outgoing.tail_is_sound {
                self.servers[seat].host.tail_is_sound();
            }
            if outgoing.read_view {
                self.soon(Happening::ReadView { seat, life });
            }
            for asked in outgoing.read_log {
                self.soon_for(seat, Arrival::LogRead(asked));
            }
            if outgoing.needs_image {
                self.begin_download(seat);
            }
            for (_, answer) in &outgoing.answers {
                self.note(format!("member {} answers an order: {answer:?}", member(seat)));
            }
            if let Some(beyond) = outgoing.image_wanted {
                let server = &mut self.servers[seat];
                if self.plays_journals {
                    self.soon(Happening::Fault(Fault::Purge(Whom::Seat(seat))));
                } else if server.image.as_ref().is_none_or(|image| image.at.id.sn <= beyond) {
                    server.take_image(u64::MAX);
                }
            }
            for proposal in outgoing.suggested {
                self.soon_for(seat, Arrival::Suggested(proposal));
            }
            if let Some(takeover) = outgoing.takeover {
                self.note(format!("{takeover:?}"));
            }
            if !outgoing.refused.is_empty() {
                restarts = Some(("proposals were refused".into(), false));
            }
            if let Some(reason) = outgoing.rebuild {
                restarts = Some((reason, false));
            }
            if let Some(reason) = outgoing.distrust {
                restarts = Some((reason, true));
            }
        }
        if is_killed {
            let keep = self.dice.below(101);
            self.end(seat, keep);
            let after_ms = 300 + self.dice.below(3_000);
            self.after_ms(after_ms, Happening::Start { seat });
        } else if let Some((reason, is_distrusted)) = restarts {
            self.note(format!("member {} starts anew: {reason}", member(seat)));
            self.end(seat, 100);
            if is_distrusted {
                self.servers[seat].host.begin_anew();
                self.servers[seat].image = None;
            }
            let after_ms = 10 + self.dice.below(100);
            self.after_ms(after_ms, Happening::Start { seat });
        } else if is_quiet {
            self.step(seat, Input::Quiet)?;
        } else {
            self.after_step(seat)?;
        }
        if changed { self.check() } else { self.check_leases() }
    }

    pub(super) fn after_step(&mut self, seat: usize) -> Result<(), Broken> {
        self.look_at_answers(seat)?;
        let now_ns = self.now_ns;
        let server = &mut self.servers[seat];
        let life = server.life;
        let is_reached =
            |deadline: &Moment| !server.clock.stands() || *deadline <= server.clock.moment(now_ns);
        if let Some(deadline) = server.host.member().deadline().filter(is_reached) {
            // Timers are late by a little.
            let at = server.clock.true_ns(deadline).max(now_ns) + self.dice.below(1_000_000);
            if server.tick_at.is_none_or(|earlier| at < earlier) {
                server.tick_at = Some(at);
                self.after_ns(
                    at - now_ns,
                    Happening::Arrival { seat, life, what: Arrival::Tick { at_ns: at } },
                );
            }
        }
        let server = &mut self.servers[seat];
        if server.host.unsynced() > 0 && !server.is_syncing {
            server.is_syncing = true;
            let (up_to, cuts) = (server.host.disk.end().id.sn, server.cuts);
            let spread = server.disk.sync_us_max - server.disk.sync_us_min + 1;
            let us = server.disk.sync_us_min + self.dice.below(spread);
            self.after_ns(
                us * 1_000,
                Happening::Arrival { seat, life, what: Arrival::Synced { up_to, cuts } },
            );
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Broken> {
        let hosts: Vec<&Host> = self.servers.iter().map(|server| &server.host).collect();
        self.observer.check(&hosts, &self.keeper.view, self.keeper.is_older)?;
        self.check_leases()
    }

    fn check_leases(&self) -> Result<(), Broken> {
        let holders: Vec<MemberId> = (0..self.servers.len())
            .filter(|seat| self.servers[*seat].holds_lease(self.now_ns) && !self.lease_is_doubtful(*seat))
            .map(member)
            .collect();
        crate::check::leases_have_one_holder::check(&holders)
    }

    pub(super) fn whom(&mut self, whom: Whom) -> Option<usize> {
        let active = (0..self.servers.len())
            .rev()
            .filter(|seat| {
                matches!(self.servers[*seat].role(), Some(Role::Serving { .. } | Role::Starting { .. }))
            })
            .max_by_key(|seat| self.servers[*seat].host.disk.promised);
        match whom {
            Whom::Seat(seat) => Some(seat % self.servers.len()),
            Whom::Active => active,
            Whom::Standby(number) => {
                let others: Vec<usize> =
                    (0..self.servers.len()).filter(|seat| Some(*seat) != active).collect();
                Some(others[number % others.len()])
            }
        }
    }
}
