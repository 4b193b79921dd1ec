//! What a further group begins with: the root group's tree, fetched from its members as an operator's program does.

use super::{Cluster, PATIENCE};
use base::{GroupId, MemberId};
use env::Env;
use metad::backup::{self, Event, Operator, Options, Place};
use namespace::Namespace;
use proto::clover::admin as a;
use std::{net::SocketAddr, path::Path, time::Instant};
use tokio::runtime::Handle;

/// An operator's program that knows where the members are, and is never stopped.
struct Places(Vec<(u32, SocketAddr)>);

impl Operator for Places {
    fn find(&mut self) -> Option<Vec<Place>> {
        let place = |(member, address): &(u32, SocketAddr)| Place {
            member: MemberId(*member),
            rpc_address: address.to_string(),
        };
        Some(self.0.iter().map(place).collect())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn tell(&mut self, _: Event) {}
}

impl Cluster {
    /// The root group's tree, which knows this group.
    pub async fn tree_with(&self, group: GroupId) -> Namespace {
        let active = self.wait_for_active(&[]).await;
        let request = a::AddGroupRequestProto { group: group.0 };
        let began = Instant::now();
        while let Err(error) = self.order::<_, a::AddGroupResponseProto>(active, "addGroup", &request).await {
            assert!(began.elapsed() < PATIENCE, "{error}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        self.fetched_tree().await
    }

    /// The tree of this group as an operator's program gets it.
    pub async fn fetched_tree(&self) -> Namespace {
        self.beside_members(|env, path, group, runtime, places| {
            backup::tree_of_now(env, path, group, runtime, places).unwrap()
        })
        .await
    }

    /// Backs this group up, as far as it is now.
    pub async fn back_up(&self, directory: &Path) {
        let directory = directory.to_owned();
        self.beside_members(move |env, _, group, runtime, places| {
            backup::run(env, &directory, group, runtime, Options::default(), places).unwrap();
        })
        .await;
    }

    /// Has an operator's program run on a thread of its own, with a directory and the ways to the members.
    async fn beside_members<T: Send + 'static>(
        &self,
        program: impl FnOnce(&Env, &Path, backup::Group, &Handle, &mut Places) -> T + Send + 'static,
    ) -> T {
        let directory = tempfile::tempdir().unwrap();
        let known = metad::read_cluster(&Env::production(), &self.name_directory(self.first)).unwrap();
        let group = backup::Group {
            cluster_id: known.cluster_id,
            group: known.group,
            secret: known.secret.unwrap(),
            user: "bob".into(),
        };
        let addresses = self.addresses().lock().unwrap().iter().map(|(at, of)| (*at, *of)).collect();
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let path = directory.path().join("root");
            program(&Env::production(), &path, group, &runtime, &mut Places(addresses))
        })
        .await
        .unwrap()
    }
}
