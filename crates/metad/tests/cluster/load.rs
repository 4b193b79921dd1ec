//! Clients that go on writing while a story happens.

use super::{Cluster, SUPERUSER, try_mkdirs};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

impl Cluster {
    /// Where the members take calls, also after they were started again.
    pub fn addresses(&self) -> Arc<Mutex<BTreeMap<u32, SocketAddr>>> {
        self.addresses.clone()
    }

    /// Tells all writers to stop.
    pub fn say_stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// A client that makes directories one after the other, at whichever member takes them, until it is told
    /// to stop. Those that were acknowledged.
    pub fn write_until_told(&self, writer: u32) -> tokio::task::JoinHandle<Vec<String>> {
        let (addresses, is_over) = (self.addresses.clone(), self.is_over.clone());
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            let (mut at, mut number) = (writer, 0);
            while !is_over.load(Ordering::Acquire) {
                let all: Vec<_> = addresses.lock().unwrap().values().copied().collect();
                let options = rpc::ClientOptions::default();
                let address = all[at as usize % all.len()];
                let client =
                    rpc::Client::connect(address, proto::protocol::CLIENT_NAMENODE, SUPERUSER, options);
                while !is_over.load(Ordering::Acquire) {
                    let path = format!("/{writer}/{number:06}");
                    let call = tokio::time::timeout(Duration::from_millis(1_500), try_mkdirs(&client, &path));
                    match call.await {
                        Ok(Ok(true)) => acknowledged.push(path),
                        _ => break,
                    }
                    number += 1;
                }
                // It may have happened or not; the next one has a name of its own.
                number += 1;
                at += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            acknowledged
        })
    }
}
