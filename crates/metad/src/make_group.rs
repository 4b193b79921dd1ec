//! A cluster that was made for one metadata server gets a coordinator that several can reach.
//!
//! The content of the directory beside the store is written to ZooKeeper as it is: the cluster's name, and the view
//! with its epoch. Then the directory is renamed, so that the server cannot start from it any more. If this is cut
//! off in between, ZooKeeper holds an equal view, and the order is carried out again.

use crate::{
    cluster::{
        Cluster,
        text::{self, text_of},
    },
    config::{CoordinatorConfig, GroupConfig},
    coordinator::open_coordinator,
    format::{ClusterError, FormatError, Layout, read_cluster},
};
use base::{GroupId, GroupView, MemberId};
use coord::Coordinator;
use env::Env;
use std::{
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// The new name of the directory in which the server kept its own coordinator. Nothing reads it from then on.
pub const BEFORE: &str = "coordinator-before-the-group";

#[derive(Debug, Error)]
pub enum MakeGroupError {
    #[error(
        "coordinator = embedded: name the ZooKeeper that the group is to have, as coordinator = \"zookeeper://zk-1:2181/clover/my-cluster\""
    )]
    NoZooKeeper,
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(
        "{0} keeps no coordinator of its own: this cluster was made with a ZooKeeper, or is a group already. Further members are \
         taken in with `clover admin group add`"
    )]
    NotAlone(PathBuf),
    #[error("the server runs: stop it first")]
    Runs(#[source] journal::OpenError),
    #[error("the store cannot be kept from servers that start meanwhile")]
    Store(#[source] journal::OpenError),
    #[error("this server is member {found}, and is configured as member {expected}")]
    AnotherMember { found: MemberId, expected: MemberId },
    #[error(
        "there is another cluster ({0}) below this path of ZooKeeper: name a path of its own in `coordinator`. Nothing was changed"
    )]
    Taken(String),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("{path} cannot be renamed; ZooKeeper holds the cluster already, so give the order again")]
    Rename { path: PathBuf, source: io::Error },
}

impl From<coord::OpenError> for MakeGroupError {
    fn from(error: coord::OpenError) -> Self {
        Self::Format(error.into())
    }
}

impl From<coord::ChangeError> for MakeGroupError {
    fn from(error: coord::ChangeError) -> Self {
        Self::Format(error.into())
    }
}

impl From<coord::ReadError> for MakeGroupError {
    fn from(error: coord::ReadError) -> Self {
        Self::Format(error.into())
    }
}

/// Moves the view of a lone server, which is stopped, to the ZooKeeper of `group`.
///
/// # Errors
/// [`MakeGroupError::NoZooKeeper`] if `group` has no ZooKeeper, [`MakeGroupError::Cluster`] if the directory holds no
/// cluster, [`MakeGroupError::NotAlone`] if it is none of a lone server, [`MakeGroupError::AnotherMember`] if it is
/// another member's, [`MakeGroupError::Runs`] if the server runs, [`MakeGroupError::Store`] if its lock cannot be
/// made, [`MakeGroupError::Taken`] if the ZooKeeper has another cluster, [`MakeGroupError::Format`] if a coordinator cannot be reached or does not
/// answer, [`MakeGroupError::Rename`] if the directory of the old one cannot be renamed.
pub fn make_group(env: &Env, name_directory: &Path, group: &GroupConfig) -> Result<Cluster, MakeGroupError> {
    if matches!(group.coordinator, CoordinatorConfig::Embedded) {
        return Err(MakeGroupError::NoZooKeeper);
    }
    let layout = Layout::of(name_directory, GroupId::ROOT);
    let cluster = read_cluster(env, name_directory)?;
    let is_there = |path: &Path| env.disk.is_directory(path);
    let io = |source| FormatError::Io { path: layout.coordinator.clone(), source };
    if !is_there(&layout.coordinator).map_err(io)? {
        return Err(MakeGroupError::NotAlone(name_directory.to_owned()));
    }
    let _held = journal::hold(env, &layout.store).map_err(|error| match error {
        journal::OpenError::InUse { .. } => MakeGroupError::Runs(error),
        _ => MakeGroupError::Store(error),
    })?;
    let own = open_coordinator(env, &CoordinatorConfig::Embedded, &layout.coordinator)?;
    let known = coord::wait(|done| own.read(GroupId::ROOT, done))?;
    let view = known.ok_or_else(|| MakeGroupError::NotAlone(name_directory.to_owned()))?.view;
    if !view.members.contains(&group.member) {
        let found = view.members.first().copied().unwrap_or(MemberId(0));
        return Err(MakeGroupError::AnotherMember { found, expected: group.member });
    }
    let next = open_coordinator(env, &group.coordinator, &layout.coordinator)?;
    give(&*next, &cluster, group, view)?;
    drop(own);
    let before = name_directory.join(BEFORE);
    env.disk
        .rename(&layout.coordinator, &before)
        .and_then(|()| env.disk.sync_directory(name_directory))
        .map_err(|source| MakeGroupError::Rename { path: layout.coordinator.clone(), source })?;
    Ok(cluster)
}

/// Writes both, or finds that they have been written already.
fn give(
    next: &dyn Coordinator,
    cluster: &Cluster,
    group: &GroupConfig,
    view: GroupView,
) -> Result<(), MakeGroupError> {
    // An operator who configures a secret keeps it out of ZooKeeper: then none is written there.
    let secret = if group.secret.is_some() { None } else { cluster.secret.clone() };
    let told = Cluster { secret, ..cluster.clone() };
    match coord::wait(|done| next.read_cluster(done))? {
        None => coord::wait(|done| next.create_cluster(text_of(&told).into_bytes(), done))?,
        Some(text) => {
            let found = text::parse(&String::from_utf8_lossy(&text)).map_err(FormatError::ClusterText)?;
            if found.cluster_id != cluster.cluster_id {
                return Err(MakeGroupError::Taken(found.cluster_id));
            }
        }
    }
    // A view that is there already is that of an order which was cut off. The server may have run alone again since then.
    match coord::wait(|done| next.read(GroupId::ROOT, done))? {
        None => {
            coord::wait(|done| next.create(GroupId::ROOT, view, done))?;
        }
        Some(there) if there.view == view => {}
        Some(there) if there.view.members == view.members && there.view.epoch <= view.epoch => {
            coord::wait(|done| next.change(GroupId::ROOT, there.basis(), view, &[], done))?;
        }
        Some(_) => return Err(MakeGroupError::Taken(cluster.cluster_id.clone())),
    }
    Ok(())
}
