//! Snapshots over a takeover: what was acknowledged of them has happened, exactly once.

mod cluster;

use base::ClientId;
use cluster::{
    Cluster,
    files::{client_at, files, numbered, repeated},
    refused,
};
use prost::{Message, Name};
use proto::{exception, hdfs as p};
use rpc::{CallError, CallIdentity};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

fn create(root: &str, name: Option<&str>) -> p::CreateSnapshotRequestProto {
    p::CreateSnapshotRequestProto { snapshot_root: root.into(), snapshot_name: name.map(str::to_owned) }
}

fn rename(root: &str, old: &str, new: &str) -> p::RenameSnapshotRequestProto {
    p::RenameSnapshotRequestProto {
        snapshot_root: root.into(),
        snapshot_old_name: old.into(),
        snapshot_new_name: new.into(),
    }
}

fn delete(root: &str, name: &str) -> p::DeleteSnapshotRequestProto {
    p::DeleteSnapshotRequestProto { snapshot_root: root.into(), snapshot_name: name.into() }
}

async fn snapshots(cluster: &Cluster, member: u32, root: &str) -> BTreeSet<String> {
    let names = cluster.names(member, &format!("{root}/.snapshot")).await;
    let count = names.len();
    let names: BTreeSet<String> = names.into_iter().collect();
    assert_eq!(names.len(), count, "each is there once");
    names
}

/// The answers are lost with the active; the calls are repeated at the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repeated_call_about_a_snapshot_is_answered_as_the_first_one_was() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    cluster.mkdirs(active, "/d/below").await;
    let client = files(&cluster, active);
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/d".into() };
    let _: p::AllowSnapshotResponseProto =
        client.call_as(numbered(1), "allowSnapshot", &allow).await.unwrap();
    for (call, name) in [(2, "old"), (3, "doomed")] {
        let named = create("/d", Some(name));
        let _: p::CreateSnapshotResponseProto =
            client.call_as(numbered(call), "createSnapshot", &named).await.unwrap();
    }
    // The server makes up the name from its clock, so a second making would have another.
    let unnamed = create("/d", None);
    let made: p::CreateSnapshotResponseProto =
        client.call_as(numbered(5), "createSnapshot", &unnamed).await.unwrap();
    let (renaming, deleting) = (rename("/d", "old", "new"), delete("/d", "doomed"));
    let _: p::RenameSnapshotResponseProto =
        client.call_as(numbered(6), "renameSnapshot", &renaming).await.unwrap();
    let _: p::DeleteSnapshotResponseProto =
        client.call_as(numbered(7), "deleteSnapshot", &deleting).await.unwrap();

    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let client = files(&cluster, next);
    let again: p::CreateSnapshotResponseProto =
        client.call_as(repeated(5), "createSnapshot", &unnamed).await.unwrap();
    assert_eq!(again.snapshot_path, made.snapshot_path);
    let _: p::RenameSnapshotResponseProto =
        client.call_as(repeated(6), "renameSnapshot", &renaming).await.unwrap();
    let _: p::DeleteSnapshotResponseProto =
        client.call_as(repeated(7), "deleteSnapshot", &deleting).await.unwrap();
    let made = made.snapshot_path.strip_prefix("/d/.snapshot/").unwrap().to_owned();
    assert_eq!(snapshots(&cluster, next, "/d").await, BTreeSet::from([made, "new".into()]));

    // Asked anew they find what was done.
    let anew: Result<p::RenameSnapshotResponseProto, CallError> =
        client.call_as(numbered(60), "renameSnapshot", &renaming).await;
    assert_eq!(refused(anew, exception::SNAPSHOT), "The snapshot old does not exist for directory /d");
    let anew: Result<p::DeleteSnapshotResponseProto, CallError> =
        client.call_as(numbered(61), "deleteSnapshot", &deleting).await;
    assert_eq!(
        refused(anew, exception::SNAPSHOT),
        "Cannot delete snapshot doomed from path /d: the snapshot does not exist."
    );
    cluster.wait_until_equal().await;
    cluster.end().await;
}

/// A client that repeats each call, at one member after the other, until it is answered.
struct Worker {
    id: ClientId,
    root: String,
    call: i32,
    at: usize,
    addresses: Arc<Mutex<BTreeMap<u32, SocketAddr>>>,
    is_over: Arc<AtomicBool>,
}

impl Worker {
    async fn insist<Q: Message, A: Message + Default + Name>(&mut self, method: &str, request: &Q) -> A {
        self.call += 1;
        for retry_count in 0.. {
            let addresses: Vec<SocketAddr> = self.addresses.lock().unwrap().values().copied().collect();
            let client = client_at(addresses[self.at % addresses.len()], self.id);
            let identity = CallIdentity { retry_count, ..numbered(self.call) };
            let call = client.call_as::<Q, A>(identity, method, request);
            match tokio::time::timeout(Duration::from_millis(1_500), call).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(CallError::Remote { class, message }))
                    if ![exception::STANDBY, exception::RETRIABLE].contains(&&*class) =>
                {
                    panic!("{method}, try {retry_count}: {class}: {message}");
                }
                _ => self.at += 1,
            }
            assert!(retry_count < 1_000, "{method} is never answered");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        unreachable!()
    }

    /// Makes snapshots, gives every third another name, and deletes the oldest, until told to stop. Those that must be
    /// there then, and how many calls there were.
    async fn work(mut self) -> (BTreeSet<String>, i32) {
        const LIVING_MAX: usize = 40;
        let (root, mut living) = (self.root.clone(), Vec::new());
        let mut number = 0;
        while !self.is_over.load(Ordering::Acquire) {
            number += 1;
            let mut name = format!("s{number:05}");
            let made: p::CreateSnapshotResponseProto =
                self.insist("createSnapshot", &create(&root, Some(&name))).await;
            assert_eq!(made.snapshot_path, format!("{root}/.snapshot/{name}"));
            if number % 3 == 0 {
                let renamed = format!("r{number:05}");
                let _: p::RenameSnapshotResponseProto =
                    self.insist("renameSnapshot", &rename(&root, &name, &renamed)).await;
                name = renamed;
            }
            living.push(name);
            if living.len() > LIVING_MAX {
                let oldest = living.remove(0);
                let _: p::DeleteSnapshotResponseProto =
                    self.insist("deleteSnapshot", &delete(&root, &oldest)).await;
            }
        }
        (living.into_iter().collect(), self.call)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn snapshots_made_while_actives_die_are_there_exactly_once() {
    let (mut cluster, mut active) = Cluster::in_sync(3).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for number in 1..=2u8 {
        let root = format!("/d{number}");
        cluster.mkdirs(active, &format!("{root}/below")).await;
        let allow = p::AllowSnapshotRequestProto { snapshot_root: root.clone() };
        let _: p::AllowSnapshotResponseProto =
            cluster.client(active).call("allowSnapshot", &allow).await.unwrap();
        let worker = Worker {
            id: ClientId([number; 16]),
            root,
            call: 0,
            at: usize::from(number),
            addresses: cluster.addresses(),
            is_over: is_over.clone(),
        };
        workers.push((worker.root.clone(), tokio::spawn(worker.work())));
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        cluster.kill(active).await;
        let next = cluster.wait_for_active(&[active]).await;
        cluster.restart(active).await;
        cluster.wait_in_sync(next, 3).await;
        active = next;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    is_over.store(true, Ordering::Release);
    for (root, worker) in workers {
        let (expected, calls) = worker.await.unwrap();
        println!("{root}: {calls} calls");
        assert!(expected.len() > 5, "it got somewhere");
        assert_eq!(snapshots(&cluster, active, &root).await, expected, "after {calls} calls");
    }
    cluster.wait_until_equal().await;
    cluster.end().await;
}
