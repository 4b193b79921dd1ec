//! Keeps the client's lease while it has files open for writing.
//!
//! A lease belongs to the client's name, not to a file: one call renews it for all files, and nothing is sent
//! while none is open.

use crate::namenodes::Namenodes;
use parking_lot::Mutex;
use proto::hdfs;
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// Half of the 60 s after which others may take a file over: one lost renewal is forgiven.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(30);

pub(crate) struct Leases {
    namenodes: Arc<Namenodes>,
    client_name: Arc<str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files_open: usize,
    /// Runs exactly while `files_open` is above 0.
    renewal: Option<JoinHandle<()>>,
}

/// One file open for writing; dropping it says that the file no longer needs the lease.
pub(crate) struct LeaseGuard {
    leases: Arc<Leases>,
}

impl Leases {
    pub fn new(namenodes: Arc<Namenodes>, client_name: Arc<str>) -> Arc<Self> {
        Arc::new(Self { namenodes, client_name, state: Mutex::default() })
    }

    pub fn open(self: &Arc<Self>) -> LeaseGuard {
        let mut state = self.state.lock();
        state.files_open += 1;
        if state.renewal.is_none() {
            state.renewal = Some(tokio::spawn(renew(self.namenodes.clone(), self.client_name.clone())));
        }
        LeaseGuard { leases: self.clone() }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut state = self.leases.state.lock();
        state.files_open -= 1;
        if state.files_open == 0
            && let Some(renewal) = state.renewal.take()
        {
            renewal.abort();
        }
    }
}

async fn renew(namenodes: Arc<Namenodes>, client_name: Arc<str>) {
    let request = hdfs::RenewLeaseRequestProto { client_name: client_name.to_string(), namespaces: vec![] };
    loop {
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        let answer: crate::Result<hdfs::RenewLeaseResponseProto> =
            namenodes.call("renewLease", &request).await;
        if let Err(error) = answer {
            tracing::warn!("the lease of {client_name} was not renewed: {error}");
        }
    }
}
