//! A member as its process runs it: whenever it asks for that it is started again, and waits for a person where it must.

use super::until;
use env::Env;
use metad::{GroupMember, MetaConfig, RunError};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{sync::oneshot, task::JoinHandle};

pub struct Process {
    seen: Arc<Mutex<Seen>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RunError>>,
}

/// Its server at the moment.
#[derive(Default)]
struct Seen {
    starts: u32,
    replica: Option<GroupMember>,
    rpc_address: Option<SocketAddr>,
}

impl Process {
    pub fn begin(env: Env, config: MetaConfig) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let noted = seen.clone();
        let stopped = async move { drop(stopped.await) };
        let task = tokio::spawn(metad::run(env, config, stopped, move |server| {
            let mut seen = noted.lock().unwrap();
            seen.starts += 1;
            seen.replica = Some(server.replica().clone());
            seen.rpc_address = Some(server.rpc_address());
            // A test that holds on to the member would keep the member's store from being opened again.
            let (mut ended, noted) = (server.replica().ended(), noted.clone());
            tokio::spawn(async move {
                let _ = ended.wait_for(Option::is_some).await;
                noted.lock().unwrap().replica = None;
            });
        }));
        Self { seen, stop, task }
    }

    /// How often its server has been started.
    pub fn starts(&self) -> u32 {
        self.seen.lock().unwrap().starts
    }

    pub async fn wait_for_start(&self, count: u32) {
        until(&format!("start {count} of its server"), async || {
            assert!(self.starts() >= count || !self.is_finished(), "its process has ended");
            self.starts() >= count
        })
        .await;
    }

    /// `None` before its server has started, and while it is started again.
    pub fn replica(&self) -> Option<GroupMember> {
        self.seen.lock().unwrap().replica.clone()
    }

    pub fn rpc_address(&self) -> SocketAddr {
        self.seen.lock().unwrap().rpc_address.expect("it has been started")
    }

    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops the process in an orderly way, as an operator does.
    pub async fn stop(self) {
        *self.seen.lock().unwrap() = Seen::default();
        self.stop.send(()).expect("it runs");
        self.task.await.unwrap().unwrap();
    }
}
