//! The coordinator of several machines: a ZooKeeper ensemble.
//!
//! All work is done by tasks on a thread of its own; [`session`] keeps the connection, [`calls`] asks, and
//! [`watching`] and [`lock`] look after nodes for as long as the process lives. The nodes are described in
//! [docs/format](../../../docs/format/coordinator.md).

mod answer;
mod calls;
mod lock;
pub mod nodes;
mod session;
mod watching;

use crate::{
    Basis, ChangeError, Coordinator, Done, Event, MemberRecord, OpenError, ReadError, Version, Versioned,
    Watch,
};
use answer::{Answer, Deliver};
use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use parking_lot::Mutex;
use session::{Keeper, Session};
use std::{
    collections::BTreeMap,
    future::Future,
    ops::RangeInclusive,
    sync::{Arc, mpsc},
    time::Duration,
};
use tokio::{
    runtime::Runtime,
    sync::watch,
    time::{self, Instant},
};

/// Below, a pause of either process ends the session; above, nobody notices that a process has gone.
const SESSION_MS: RangeInclusive<u64> = 100..=600_000;

/// How to reach an ensemble.
#[derive(Clone, PartialEq, Eq)]
pub struct ZooKeeperConfig {
    /// `host:port,host:port`
    pub servers: String,
    /// The node under which everything is kept, as `/clover/NAME`.
    pub root: String,
    /// The ensemble forgets a silent process after this time: its lock goes then. A call is answered within
    /// this time too, if only with "unknown".
    pub session_ms: u64,
    /// User and password of digest authentication. With it every node made belongs to that user alone.
    pub auth: Option<(String, String)>,
}

impl std::fmt::Debug for ZooKeeperConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.auth.as_ref().map(|(user, _)| user);
        formatter
            .debug_struct("ZooKeeperConfig")
            .field("servers", &self.servers)
            .field("root", &self.root)
            .field("session_ms", &self.session_ms)
            .field("user", &user)
            .finish()
    }
}

impl ZooKeeperConfig {
    /// The sentence names the value that cannot be.
    ///
    /// # Errors
    /// A server is not written as `host:port`, the root is not a path of plain names, the session is too short or too
    /// long, or the user's name is empty or has a colon. The text names the value.
    pub fn check(&self) -> Result<(), String> {
        for server in self.servers.split(',') {
            let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
            let is_host = !host.is_empty() && !host.contains(['/', ' ']);
            if !is_host || !port.parse::<u16>().is_ok_and(|port| port > 0) {
                return Err(format!(
                    "ZooKeeper's servers are written host:port,host:port; {server:?} is not one"
                ));
            }
        }
        let is_name = |name: &str| {
            !matches!(name, "" | "." | ".." | "zookeeper")
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        if !self.root.strip_prefix('/').is_some_and(|path| path.split('/').all(is_name)) {
            return Err(format!(
                "ZooKeeper's root is written /NAME/NAME with letters, digits, - _ and .; {:?} is not one",
                self.root
            ));
        }
        if !SESSION_MS.contains(&self.session_ms) {
            return Err(format!(
                "ZooKeeper's session of {} ms is not between {} and {} ms",
                self.session_ms,
                SESSION_MS.start(),
                SESSION_MS.end()
            ));
        }
        match &self.auth {
            Some((user, _)) if user.is_empty() || user.contains(':') => {
                Err("ZooKeeper's user must have a name without a colon".into())
            }
            _ => Ok(()),
        }
    }
}

/// A session with an ensemble, and another when that has expired.
pub struct ZooKeeper {
    session: Arc<Session>,
    runtime: Option<Runtime>,
    patience: Duration,
    /// The threads that deliver answers and events: a watch may wait for an answer.
    answers: Deliver,
    watches: Arc<Watches>,
    locks: Mutex<BTreeMap<GroupId, watch::Sender<Option<Vec<u8>>>>>,
    stop: watch::Sender<bool>,
    /// Hangs up when the session has been closed.
    closed: Mutex<mpsc::Receiver<()>>,
}

struct Watches {
    events: Deliver,
    all: Mutex<Vec<(GroupId, Watch)>>,
}

impl Watches {
    /// `None`: every group.
    fn tell(self: &Arc<Self>, group: Option<GroupId>, event: Event) {
        let watches = self.clone();
        self.events.call(move || {
            let all = watches.all.lock().clone();
            all.iter()
                .filter(|(watched, _)| group.is_none_or(|group| group == *watched))
                .for_each(|(group, watch)| watch(*group, event));
        });
    }
}

impl ZooKeeper {
    /// Answers at once, whether or not the ensemble can be reached: calls wait until it is, for as long as a
    /// session may be silent.
    ///
    /// # Errors
    /// [`OpenError::Settings`] if [`ZooKeeperConfig::check`] finds a value that cannot be; [`OpenError::Threads`] if a
    /// thread cannot be started. That the ensemble is out of reach is no error here.
    pub fn connect(config: ZooKeeperConfig) -> Result<Arc<dyn Coordinator>, OpenError> {
        config.check().map_err(|what| OpenError::Settings { what })?;
        let threads = |source| OpenError::Threads { source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("zookeeper")
            .enable_all()
            .build()
            .map_err(threads)?;
        let answers = Deliver::start("coord-answers").map_err(threads)?;
        let events = Deliver::start("coord-events").map_err(threads)?;
        let watches = Arc::new(Watches { events, all: Mutex::default() });
        let (link_sender, link) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let (closing, closed) = mpsc::channel();
        let session = Arc::new(Session::new(&config, link));
        let patience = Duration::from_millis(config.session_ms);
        let told = watches.clone();
        let tell = move |event| told.tell(None, event);
        let keeper = Keeper { config, link: link_sender, tell, stop: stopped };
        runtime.spawn(async move {
            keeper.run().await;
            drop(closing);
        });
        Ok(Arc::new(Self {
            session,
            runtime: Some(runtime),
            patience,
            answers,
            watches,
            locks: Mutex::default(),
            stop,
            closed: Mutex::new(closed),
        }))
    }

    /// The task ends with the coordinator: the session closes when nobody uses it any more.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut stopped = self.stop.subscribe();
        self.runtime.as_ref().expect("the runtime lives until the end").spawn(async move {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => {}
                () = task => {}
            }
        });
    }

    /// A task for as long as the coordinator lives: begun again should it break on an answer that cannot be.
    fn spawn_lasting<F>(&self, task: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(async move {
            loop {
                // Dropped with this task, the set ends what it holds.
                let mut running = tokio::task::JoinSet::new();
                running.spawn(task());
                if let Some(Ok(())) = running.join_next().await {
                    return;
                }
                tracing::error!("what looks after a ZooKeeper node has broken off; it begins again");
                time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Answers `done` with what `call` says, or with `lost` if that takes too long.
    fn ask<T, F>(&self, done: Done<T>, lost: fn(String) -> T, call: impl FnOnce(Arc<Session>) -> F)
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let answer = Answer::new(done, lost, self.answers.clone());
        let deadline = Instant::now() + self.patience;
        let patience_ms = self.patience.as_millis();
        let call = call(self.session.clone());
        self.spawn(async move {
            match time::timeout_at(deadline, call).await {
                Ok(said) => answer.give(said),
                Err(_) => answer.give_lost(format!("ZooKeeper has not answered for {patience_ms} ms")),
            }
        });
    }
}

fn unknown<T>(reason: String) -> Result<T, ChangeError> {
    Err(ChangeError::Unknown { reason })
}

fn unread<T>(reason: String) -> Result<T, ReadError> {
    Err(ReadError { reason })
}

impl Coordinator for ZooKeeper {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        self.ask(done, unread, |session| async move { calls::read(&session, group).await });
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        self.ask(done, unknown, |session| async move { calls::create(&session, group, &view).await });
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        let requires = requires.to_vec();
        self.ask(done, unknown, |session| async move {
            calls::change(&session, group, expected, &view, &requires).await
        });
    }

    fn groups(&self, done: Done<Result<Vec<GroupId>, ReadError>>) {
        self.ask(done, unread, |session| async move { calls::groups(&session).await });
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        self.ask(done, unread, |session| async move { calls::read_members(&session, group).await });
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        self.ask(done, unknown, |session| async move { calls::write_member(&session, group, &record).await });
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        self.ask(
            done,
            unknown,
            |session| async move { calls::confirm(&session, group, expected, member).await },
        );
    }

    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch) {
        let text = nodes::encode_lock(member, epoch);
        let mut locks = self.locks.lock();
        if let Some(wanted) = locks.get(&group) {
            wanted.send_replace(Some(text));
            return;
        }
        let (sender, wanted) = watch::channel(Some(text));
        locks.insert(group, sender);
        let session = self.session.clone();
        self.spawn_lasting(move || {
            let (session, wanted) = (session.clone(), wanted.clone());
            async move { lock::keep(&session, &session.nodes.lock(group), wanted).await }
        });
    }

    fn release_lock(&self, group: GroupId) {
        if let Some(wanted) = self.locks.lock().get(&group) {
            wanted.send_replace(None);
        }
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        self.ask(done, unread, |session| async move { calls::read_cluster(&session).await });
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        self.ask(done, unknown, |session| async move { calls::create_cluster(&session, text).await });
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        let is_first = {
            let mut all = self.watches.all.lock();
            all.push((group, watch));
            all.iter().filter(|(watched, _)| *watched == group).count() == 1
        };
        if !is_first {
            return;
        }
        let nodes = &self.session.nodes;
        self.look_after(nodes.state(group), group, |_| Some(Event::View));
        self.look_after(nodes.members(group), group, |_| Some(Event::Members));
        self.look_after(nodes.lock(group), group, |is_gone| is_gone.then_some(Event::LockGone));
    }
}

impl ZooKeeper {
    fn look_after(&self, path: String, group: GroupId, event: fn(bool) -> Option<Event>) {
        let session = self.session.clone();
        let watches = self.watches.clone();
        self.spawn(async move {
            let tell =
                |is_gone| event(is_gone).into_iter().for_each(|event| watches.tell(Some(group), event));
            watching::look_after(&session, &path, tell).await;
        });
    }
}

impl Drop for ZooKeeper {
    /// Closes the session, so that the lock goes at once rather than when the ensemble has waited.
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let _ = self.closed.lock().recv_timeout(Duration::from_secs(1));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
