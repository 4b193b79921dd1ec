//! Hadoop's `DatanodeProtocol`: the messages of data servers, and the commands they get back.
//!
//! Each method decodes its request, tells the block map under its lock, and shapes the answer. All decisions are in
//! `blocks`; here are only the wire, the lock and the clock. Only the end of a block recovery touches the namespace.

mod admission;
mod block_list;
mod heartbeats;
pub mod hosts_file;
mod identity;
mod monitor;
pub mod orders;
mod recovery;
mod reports;
mod slow;
pub mod wire;

pub use admission::{Admission, Expected};

use crate::{client_protocol::completes, core::Core, partition::Partition};
use ::blocks::{BlockMap, Events, HeldBack, ServerError};
use base::{FsError, Moment};
use parking_lot::{Mutex, MutexGuard};
use rpc::{Call, Replier};
use std::{sync::Arc, thread::JoinHandle};

/// The half of the service that talks to data servers.
pub struct DatanodeSide {
    core: Arc<Core>,
    bell: monitor::Bell,
    monitor: Mutex<Option<JoinHandle<()>>>,
}

impl DatanodeSide {
    /// # Panics
    /// The system cannot start a thread.
    pub fn start(core: &Arc<Core>) -> Arc<Self> {
        let side =
            Arc::new(Self { core: core.clone(), bell: monitor::Bell::default(), monitor: Mutex::default() });
        let watched = side.clone();
        let thread = std::thread::Builder::new().name("meta-datanodes".into());
        let thread = thread.spawn(move || monitor::run(&watched)).expect("a thread can be started");
        *side.monitor.lock() = Some(thread);
        side
    }

    /// Ends the monitor. Calls may still come, and are answered.
    pub fn stop(&self) {
        self.bell.stop();
        if let Some(monitor) = self.monitor.lock().take() {
            let _ = monitor.join();
        }
    }

    /// Answers one call.
    pub fn call(self: &Arc<Self>, call: Call, reply: Replier) {
        match call.method {
            "versionRequest" => self.version_request(reply),
            "registerDatanode" => self.register(call, reply),
            "sendHeartbeat" => self.heartbeat(&call, reply),
            "sendLifeline" => self.lifeline(&call, reply),
            "blockReport" => self.block_report(&call, reply),
            "blockReceivedAndDeleted" => self.incremental_report(&call, reply),
            "cacheReport" => self.cache_report(&call, reply),
            "reportBadBlocks" => self.report_bad_blocks(&call, reply),
            "commitBlockSynchronization" => recovery::commit_block_synchronization(&self.core, call, reply),
            "errorReport" => self.error_report(&call, reply),
            method => {
                reply.fs_error(&FsError::Unsupported(format!("{method} is not offered by this server.")))
            }
        }
    }

    /// Tells or asks the block map of the partition that is served here, for messages that name no pool.
    fn change<T>(&self, change: impl FnOnce(&mut BlockMap, Moment) -> T) -> T {
        self.change_of(&self.core.partition, change)
    }

    /// Tells or asks a partition's block map something, and passes on what others have waited for.
    fn change_of<T>(&self, partition: &Partition, change: impl FnOnce(&mut BlockMap, Moment) -> T) -> T {
        let mut map = partition.blocks.lock();
        let result = change(&mut map, self.core.moment());
        let events = map.has_events().then(|| map.take_events());
        // A thread that waits for the lock gets it before the next slice of a report.
        MutexGuard::unlock_fair(map);
        if let Some(events) = events {
            self.pass_on(&events);
        }
        result
    }

    fn pass_on(&self, events: &Events) {
        if !events.newly_safe.is_empty() {
            completes::wake(&self.core, &events.newly_safe);
        }
        for server in &events.joined {
            tracing::info!(server, "data server joined");
        }
        for server in &events.passed {
            tracing::info!(server, "data server has shown that it stores blocks: it is no newcomer any more");
        }
        for server in &events.doubted {
            tracing::warn!(
                server,
                "data server has not sent any of several blocks that it claims to have: its replicas count for \
                 nothing. Look at its log, and restart it when it is well; if nobody knows it, keep it out with \
                 data_servers_file"
            );
        }
        for contest in &events.contested {
            tracing::error!(
                address = contest.address,
                uuids = contest.uuids.join(", "),
                "data servers with different uuids speak from one address and port, and replace each other with every heartbeat. \
                 Give each an address of its own, or stop all but one. This is told once; clover admin report shows it as long \
                 as it goes on"
            );
        }
        for (server, state) in &events.left_service {
            tracing::info!(
                server,
                ?state,
                "no block needs this data server any more: it may be switched off"
            );
        }
        for server in &events.died {
            tracing::warn!(
                server,
                "data server is dead: nothing was heard of it for too long, or it gave up"
            );
        }
        for HeldBack { server, unknown, replicas } in &events.held_back {
            tracing::warn!(
                server,
                unknown,
                replicas,
                "more of what this data server holds is unknown than may be deleted: its unknown replicas stay. Find out \
                 whether this metadata is older than the data, and see clover admin blocks allow-deletions"
            );
        }
        if events.left_safe_mode {
            tracing::info!("safe mode is off");
        }
        if !events.died.is_empty() || events.left_safe_mode {
            self.wake_monitor();
        }
    }

    fn wake_monitor(&self) {
        self.bell.ring();
    }
}

/// A refused message, in the words and classes that Hadoop's data servers know.
fn refusal(about: &str, error: &ServerError) -> FsError {
    match error {
        ServerError::AnotherHolds { .. } => FsError::Unregistered(error.to_string()),
        ServerError::NotRegistered(_) => FsError::Io(format!("{about}{error}")),
        ServerError::TooManyStorages { .. } | ServerError::ReportGone | ServerError::Overtaken => {
            FsError::Io(error.to_string())
        }
    }
}
