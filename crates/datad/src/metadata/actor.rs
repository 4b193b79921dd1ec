//! One metadata server's actor: shakes hands, registers, reports, and starts over for as long as it takes.
//!
//! Two loops run side by side in a session. One sends heartbeats, so that a long report does not make this
//! server look dead. The other sends reports of single replicas and full ones, one at a time and in order.
//! The price: a finished block waits for a full report that is on its way, which is rare and short.

use super::{progress::Progress, talk::SharedTalk};
use crate::{
    pool::{Member, Pool},
    reporter::Queue,
    state::State,
};
use base::Moment;
use parking_lot::Mutex;
use proto::{exception, hdfs::datanode::DatanodeRegistrationProto};
use rpc::{CallError, Client};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// The first and the longest wait before another try. Short, because a metadata server that comes back should
/// not have to wait for its data servers; a refused connection costs next to nothing.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// How soon a metadata server is asked again that has refused this one: its list may have been changed, or its release.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// A server that is registered again within this time was displaced, not forgotten: metadata servers do not start so often.
const AGAIN_PERIOD: Duration = Duration::from_secs(30);

pub struct Actor {
    pub(super) state: Arc<State>,
    pub(super) address: String,
    pub(super) client: Client,
    /// The server's part in a pool, since its first handshake.
    part: OnceLock<Part>,
    /// Another data server takes the place of this one there again and again; an operator was told.
    pub(super) is_displaced: AtomicBool,
    progress: watch::Sender<Progress>,
    /// What was said last.
    pub(super) talk: SharedTalk,
}

/// A metadata server's part in a pool.
#[derive(Clone)]
pub(super) struct Part {
    /// The pool whose blocks the server's group knows.
    pub pool: Arc<Pool>,
    /// The server's place among the pool's members.
    pub place: usize,
}

/// The values that all messages of a session carry.
pub(super) struct Session {
    pub registration: DatanodeRegistrationProto,
    /// The pool whose blocks the server's group knows.
    pub pool: Arc<Pool>,
    /// The server's place among the pool's members.
    pub place: usize,
    /// The news of the pool that this server has not been told yet.
    pub queue: Arc<Queue>,
    /// The server is in a rolling upgrade, and nothing is deleted.
    pub keeps_deleted: AtomicBool,
    /// When slow peers and disks were told last. The first heartbeat tells them.
    pub slowness_told: Mutex<Option<Moment>>,
}

/// Why a call, or a session, did not go on.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server may answer later.
    Transient(String),
    /// The metadata server does not know this data server, or not any more.
    Unregistered,
    /// The metadata server refuses this data server as it is; the text says why.
    Fatal(String),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error.class() {
            Some(exception::UNREGISTERED_NODE) => Self::Unregistered,
            Some(exception::DISALLOWED_DATANODE | exception::INCORRECT_VERSION) => {
                Self::Fatal(error.to_string())
            }
            _ => Self::Transient(error.to_string()),
        }
    }
}

impl Actor {
    /// Makes the actor for one metadata server. Of which group that server is, its handshake will tell.
    pub fn new(state: Arc<State>, client: Client) -> (Self, watch::Receiver<Progress>) {
        let address = client.address().to_owned();
        let (progress, seen) = watch::channel(Progress::default());
        let (part, is_displaced) = (OnceLock::new(), AtomicBool::new(false));
        let talk = SharedTalk::default();
        (Self { state, address, client, part, progress, is_displaced, talk }, seen)
    }

    /// What was said last, for pages.
    pub fn talk(&self) -> SharedTalk {
        self.talk.clone()
    }

    /// The pool that the server has named before in the life of this process, if it has.
    pub(super) fn part(&self) -> Option<&Part> {
        self.part.get()
    }

    /// Makes the server a member of a pool, at its first handshake.
    pub(super) fn take_part(&self, pool: Arc<Pool>) -> &Part {
        self.part.get_or_init(|| {
            self.talk.lock().pool = Some(pool.id.clone());
            let member = Member { client: self.client.clone(), progress: self.progress.subscribe() };
            let place = pool.join(member);
            Part { pool, place }
        })
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        let mut back_off = BackOff::default();
        // The reason that was logged last. It is not repeated, so that a server which is away for hours does not fill
        // the log.
        let mut said = None;
        let mut last_again = None;
        loop {
            let failure = self.session(&mut back_off).await;
            match failure {
                Failure::Unregistered => {
                    said = None;
                    let is_soon = last_again.is_some_and(|at: Instant| at.elapsed() < AGAIN_PERIOD);
                    last_again = Some(Instant::now());
                    match (is_soon, self.is_displaced.swap(is_soon, Ordering::Relaxed)) {
                        (false, _) => {
                            tracing::info!(server = %self.address, "not registered there (any more): registering again");
                        }
                        (true, false) => tracing::warn!(
                            server = %self.address, uuid = %self.state.identity.uuid,
                            "not registered there again and again: does another data server speak from this server's address and \
                             port? The metadata server's log and clover admin report name it. This is not told again while it goes on"
                        ),
                        (true, true) => {}
                    }
                }
                Failure::Transient(reason) if said.as_ref() == Some(&reason) => {}
                Failure::Transient(reason) => {
                    tracing::warn!(server = %self.address, reason, "cannot register; trying for as long as it takes");
                    said = Some(reason);
                }
                Failure::Fatal(reason) => {
                    if said.as_ref() != Some(&reason) {
                        let seconds = REFUSED_PAUSE.as_secs();
                        tracing::error!(server = %self.address, reason, "refused; it is asked again every {seconds} s");
                        said = Some(reason.clone());
                    }
                    self.progress.send_replace(Progress::Refused(reason));
                    sleep(REFUSED_PAUSE).await;
                    continue;
                }
            }
            back_off.wait().await;
        }
    }

    async fn session(&self, back_off: &mut BackOff) -> Failure {
        match self.begin().await {
            Err(failure) => failure,
            Ok(session) => {
                back_off.reset();
                self.progress.send_replace(Progress::Serving);
                let ended = tokio::select! {
                    biased;
                    failure = self.send_heartbeats(&session) => failure,
                    failure = self.send_reports(&session) => failure,
                };
                self.progress.send_replace(Progress::Connecting);
                ended
            }
        }
    }

    async fn begin(&self) -> Result<Session, Failure> {
        let (Part { pool, place }, registration) = self.shake_hands().await?;
        let registration = self.register(registration).await?;
        let queue = pool.reporter.queue(place);
        let session = Session {
            registration,
            pool,
            place,
            queue,
            keeps_deleted: AtomicBool::new(false),
            slowness_told: Mutex::new(None),
        };
        // The full report tells what these would.
        session.queue.clear();
        self.report_in_turn(&session).await?;
        Ok(session)
    }

    async fn send_heartbeats(&self, session: &Session) -> Failure {
        let interval = Duration::from_millis(self.state.config.heartbeat_interval_ms);
        let mut back_off = BackOff::default();
        loop {
            match self.heartbeat(session, false).await {
                Ok(_) => {
                    back_off.reset();
                    self.progress.send_if_modified(|progress| {
                        std::mem::replace(progress, Progress::Serving) != Progress::Serving
                    });
                    sleep(interval).await;
                }
                Err(Failure::Transient(reason)) => {
                    tracing::debug!(server = %self.address, reason, "a heartbeat failed");
                    self.progress.send_replace(Progress::Connecting);
                    sleep(back_off.next().min(interval)).await;
                }
                Err(failure) => return failure,
            }
        }
    }

    async fn send_reports(&self, session: &Session) -> Failure {
        // Changes for which no client waits go out with the rhythm of heartbeats.
        let pause = Duration::from_millis(self.state.config.heartbeat_interval_ms);
        let full_interval = Duration::from_millis(self.state.config.block_report_interval_ms);
        let mut full_due = Instant::now() + full_interval;
        let mut back_off = BackOff::default();
        loop {
            let pause_end = Instant::now() + pause;
            tokio::select! {
                biased;
                () = session.queue.urgent() => {}
                () = sleep_until(pause_end.min(full_due)) => {}
            }
            let wants_full = session.queue.take_full_report_request() || Instant::now() >= full_due;
            match self.send_due(session, wants_full).await {
                Ok(()) => {
                    back_off.reset();
                    if wants_full {
                        full_due = Instant::now() + full_interval;
                    }
                }
                Err(Failure::Transient(reason)) => {
                    tracing::warn!(server = %self.address, reason, "a report failed; it will be sent again");
                    if wants_full {
                        full_due = Instant::now();
                    }
                    back_off.wait().await;
                    // News that was urgent is still urgent.
                    session.pool.reporter.flush();
                }
                Err(failure) => return failure,
            }
        }
    }

    async fn send_due(&self, session: &Session, wants_full: bool) -> Result<(), Failure> {
        self.report_changes(session).await?;
        self.report_corrupt(session).await?;
        if wants_full {
            self.report_in_turn(session).await?;
        }
        Ok(())
    }

    /// What becomes of a report that has failed. After one that was not answered in time the next goes out on another connection:
    /// metadata servers tell by that which of two reports is the later one ([`blocks`], "late words").
    pub(super) fn give_up(&self, error: CallError) -> Failure {
        if matches!(error, CallError::Timeout { .. }) {
            self.client.disconnect();
        }
        error.into()
    }

    /// Sends a full report once the server has room for one: it lets in a few at a time. The picture is taken
    /// after the server's answer, so that it shows nothing that somebody else may still have ordered away.
    async fn report_in_turn(&self, session: &Session) -> Result<(), Failure> {
        let interval = Duration::from_millis(self.state.config.heartbeat_interval_ms);
        let mut back_off = BackOff::default();
        loop {
            let lease = self.heartbeat(session, true).await?;
            if lease != 0 {
                // A request for a report that came meanwhile is met by this one.
                session.queue.take_full_report_request();
                return self.report_everything(session, lease).await;
            }
            // The heartbeats of this loop say that we live; a turn comes sooner than the next of them.
            sleep(back_off.next().min(interval)).await;
        }
    }
}

/// Waits that double.
#[derive(Default)]
struct BackOff {
    last: Option<Duration>,
}

impl BackOff {
    fn next(&mut self) -> Duration {
        let next = self.last.map_or(BACK_OFF_MIN, |last| (last * 2).min(BACK_OFF_MAX));
        self.last = Some(next);
        next
    }

    async fn wait(&mut self) {
        sleep(self.next()).await;
    }

    fn reset(&mut self) {
        self.last = None;
    }
}
