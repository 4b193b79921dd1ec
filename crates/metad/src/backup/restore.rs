//! A metadata directory from a backup: the first member of a group, or a lone server.
//!
//! It is made like a new cluster's, with the backup's names in it. It does not know what the old group did after the
//! restored entry, and the data servers may still hold blocks from that time. So the new view begins in an epoch that
//! lies above every one that the old group can have had, and counts as begun by an unclean election: the first entry
//! of the first active raises all id counters, remembers the ids that are skipped, and holds deletions back until an
//! operator allows them.
//!
//! Where several groups hold the namespace, all are restored at one place in the directory log ([`super::places`]), the root group first. Its
//! place stands in the coordinator's text of the cluster, and no other group is restored at another one. There each group finds the new secret as well.

use super::{Found, Rebuilt};
use crate::{
    cluster::Cluster,
    config::{CoordinatorConfig, GroupConfig},
    coordinator::open_coordinator,
    format::{self, FormatError, Layout},
};
use base::{
    Epoch, GroupId, GroupView, LogPoint, MemberStore,
    directory_log::{Dix, Point},
};
use env::Env;
use journal::archive::{Manifest, Whose};
use namespace::Namespace;
use std::{net::IpAddr, path::Path};
use thiserror::Error;

/// Epochs that the old group may have begun since it was last heard of.
const EPOCHS_MIN: u64 = 1_000;
/// Each epoch that is skipped raises the counters of inodes and blocks by 2^20: with one for each ten minutes since the restored entry,
/// two restores from one backup give out different ids, unless 1,747 were given out in every second in between.
const MS_PER_EPOCH: u64 = 600_000;

/// The metadata directory that is to be made.
pub struct Wish<'a> {
    pub name_directory: &'a Path,
    /// The group's number here does not count: the restored group has the number of the backup's group.
    pub group: &'a GroupConfig,
    /// A part of the block pool's name, where a new cluster is made.
    pub address: IpAddr,
    /// The id of another cluster, which gets the same names and none of the blocks.
    pub new_cluster_id: Option<String>,
}

/// The metadata directory that was made.
#[derive(Clone, Debug)]
pub struct Restored {
    pub cluster: Cluster,
    pub at: LogPoint,
    pub found: Found,
    /// The first active's epoch follows this one.
    pub epoch: Epoch,
    /// The groups that hold the namespace together with this one, as of then.
    pub others: Vec<GroupId>,
}

#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(
        "the backup is of a namespace that several groups hold (group {further} and others), and this state is at no place in the directory log. All groups are \
         restored at one place: name it with --dix. `clover meta backup list DIR1 DIR2 …`, with the backups of all groups, says which one is the newest that all have"
    )]
    AtNoPlace { further: GroupId },
    #[error(
        "several groups hold this namespace, and their servers find each other by a ZooKeeper: name one in `coordinator`, with a path of its own for the restored \
         cluster. `clover meta backup look` shows the names without a server"
    )]
    NeedsCoordinator,
    #[error(
        "the coordinator knows of no cluster: restore the root group first, with the same path in `coordinator`. The other groups follow, each at the same place in the \
         directory log"
    )]
    NoRootGroup,
    #[error(
        "the root group of the cluster that the coordinator knows was not restored from a backup of several groups, and would not fit to what this backup holds: \
         restore the root group first, with a new path in `coordinator`, and name that path here"
    )]
    RootNotRestored,
    #[error(
        "the root group was restored at the place {root} in the directory log, and this is the state of group {group} at {found}: all groups are restored at the same place. \
         Leave --dix out, or say --dix {root}; if this backup does not go there, restore the root group again at a place that all backups have"
    )]
    OtherPlace { group: GroupId, root: Dix, found: Dix },
    #[error(
        "the directory log of this backup is another one at the place {at} than that of the root group's backup: one of the two is from before changes were lost, in an \
         unclean election or a restore. Restore all groups from backups of one time"
    )]
    OtherHistory { at: Dix },
    #[error(
        "the coordinator has the cluster {found}, and this is to be a group of {expected}: name the path of its root group in `coordinator`{hint}"
    )]
    OtherCluster { found: String, expected: String, hint: &'static str },
    #[error(
        "the group's block pool was {expected}, and the root group that the coordinator knows makes it {found}: the two backups are not of one cluster"
    )]
    OtherPool { found: String, expected: String },
    #[error(
        "the coordinator keeps no secret of this cluster: name the one of the root group's servers in secret_file"
    )]
    NoSecret,
    #[error(
        "secret_file holds another secret than the one that was drawn when the root group was restored, and servers with different ones are strangers: leave secret_file out \
         for all groups, or restore the root group with it as well"
    )]
    OtherSecret,
    #[error("{0}")]
    SecretFile(String),
    #[error("the restored image cannot be written")]
    Image(#[from] journal::ImageError),
}

/// Makes the directory, or leaves it empty. Nothing of the backup is changed.
///
/// # Errors
/// [`RestoreError::Format`] if the directory is not empty, this member is not of the group, or the coordinator cannot
/// be reached or has a cluster, or this group of it, already: see [`FormatError`]. [`RestoreError::AtNoPlace`] or [`RestoreError::NeedsCoordinator`] if several groups
/// hold the namespace, and the state is at no place in the directory log, or there is no coordinator. For a further group, those of [`place_of_root`], and the others that say
/// that it does not fit to the root group which the coordinator knows. [`RestoreError::Image`] if the image cannot be written.
pub fn restore(
    env: &Env,
    manifest: &Manifest,
    rebuilt: Rebuilt,
    wish: &Wish<'_>,
) -> Result<Restored, RestoreError> {
    let group = &GroupConfig { id: manifest.whose.group, ..wish.group.clone() };
    let wish = &Wish { group, new_cluster_id: wish.new_cluster_id.clone(), ..*wish };
    if let Some(further) = rebuilt.namespace.further_groups().next() {
        if rebuilt.found.place != Some(rebuilt.namespace.directory_log()) {
            return Err(RestoreError::AtNoPlace { further });
        }
        if matches!(group.coordinator, CoordinatorConfig::Embedded) {
            return Err(RestoreError::NeedsCoordinator);
        }
    }
    format::check_format(env, wish.name_directory, group)?;
    format::make(env, wish.name_directory, group.id, |layout| {
        let coordinator =
            open_coordinator(env, &group.coordinator, &layout.coordinator).map_err(FormatError::from)?;
        let place = rebuilt.namespace.directory_log();
        let cluster = match group.id {
            GroupId::ROOT => {
                let restored_at = rebuilt.namespace.is_shared().then_some(place);
                Cluster { restored_at, ..cluster_of(env, &manifest.whose, wish) }
            }
            _ => beside_root(env, &*coordinator, &manifest.whose, place, wish)?,
        };
        fill(env, layout, manifest, rebuilt, wish, cluster, &*coordinator)
    })
}

/// Writes the store, and tells the coordinator of the group.
fn fill(
    env: &Env,
    layout: &Layout,
    manifest: &Manifest,
    rebuilt: Rebuilt,
    wish: &Wish<'_>,
    cluster: Cluster,
    coordinator: &dyn coord::Coordinator,
) -> Result<Restored, RestoreError> {
    let Rebuilt { namespace, at, found } = rebuilt;
    let level = namespace.group_level().level;
    // All groups name the level at which the cluster begins, as their members that join do.
    let cluster = match cluster.group {
        GroupId::ROOT => Cluster { first_level: level, ..cluster },
        _ => cluster,
    };
    let identity = format::identity(&cluster, wish.group.member);
    let others = others_of(&namespace);
    let frozen = namespace.freeze();
    journal::format_with_image(env, &layout.store, &identity, at, |writer| {
        frozen.write(&mut |bytes: &[u8]| writer.write(bytes))
    })?;
    let epoch = epoch_of(manifest, &found, env.clock.timestamp().ms);
    let first = MemberStore { member: wish.group.member, generation: 0 };
    let in_sync_min = format::in_sync_min(wish.group);
    let view = GroupView {
        members: format::members(wish.group),
        epoch,
        unclean_epoch: epoch,
        commit_hint: at.id,
        level,
        ..GroupView::new(&[first], in_sync_min)
    };
    format::publish(env, layout, coordinator, &cluster, view)?;
    Ok(Restored { cluster, at, found, epoch, others })
}

fn others_of(namespace: &Namespace) -> Vec<GroupId> {
    let all = std::iter::once(GroupId::ROOT).chain(namespace.further_groups());
    all.filter(|group| *group != namespace.group() && namespace.is_shared()).collect()
}

/// The place in the directory log at which the root group was restored. Every other group is restored at the same place.
///
/// # Errors
/// [`RestoreError::Format`] if the coordinator does not answer; [`RestoreError::NoRootGroup`] if it knows of no cluster,
/// [`RestoreError::RootNotRestored`] if that was not restored from a backup of several groups.
pub fn place_of_root(coordinator: &dyn coord::Coordinator) -> Result<Point, RestoreError> {
    root_and_place(coordinator).map(|(_, point)| point)
}

fn root_and_place(coordinator: &dyn coord::Coordinator) -> Result<(Cluster, Point), RestoreError> {
    let is_there = coord::wait(|done| coordinator.read(GroupId::ROOT, done)).map_err(FormatError::from)?;
    if is_there.is_none() {
        return Err(RestoreError::NoRootGroup);
    }
    let root = format::cluster_of_root(coordinator)?;
    let point = root.restored_at.ok_or(RestoreError::RootNotRestored)?;
    Ok((root, point))
}

/// The names of the further group of the backup in the cluster whose root group was restored before.
fn beside_root(
    env: &Env,
    coordinator: &dyn coord::Coordinator,
    whose: &Whose,
    place: Point,
    wish: &Wish<'_>,
) -> Result<Cluster, RestoreError> {
    let (root, restored_at) = root_and_place(coordinator)?;
    let expected = wish.new_cluster_id.as_ref().unwrap_or(&whose.cluster_id);
    if root.cluster_id != *expected {
        let is_copy = wish.new_cluster_id.is_none();
        let hint = if is_copy {
            ", or if the root group was restored as another cluster, say --cluster-id as there"
        } else {
            ""
        };
        return Err(RestoreError::OtherCluster { found: root.cluster_id, expected: expected.clone(), hint });
    }
    if restored_at.dix != place.dix {
        let (root, found) = (restored_at.dix, place.dix);
        return Err(RestoreError::OtherPlace { group: whose.group, root, found });
    }
    if restored_at != place {
        return Err(RestoreError::OtherHistory { at: place.dix });
    }
    let cluster = format::cluster_of(&root, whose.group)?;
    if wish.new_cluster_id.is_none() && *cluster.block_pool != *whose.block_pool {
        let (found, expected) = (cluster.block_pool.to_string(), whose.block_pool.clone());
        return Err(RestoreError::OtherPool { found, expected });
    }
    let secret = format::secret(env, wish.group.secret.as_deref(), &root);
    let secret = secret
        .map_err(|(path, what)| RestoreError::SecretFile(format!("{}: {what}", path.display())))?
        .ok_or(RestoreError::NoSecret)?;
    if root.secret.as_ref().is_some_and(|drawn| drawn.as_bytes() != secret.as_bytes()) {
        return Err(RestoreError::OtherSecret);
    }
    if coord::wait(|done| coordinator.read(whose.group, done)).map_err(FormatError::from)?.is_some() {
        let what = "the cluster has this group already";
        return Err(FormatError::NoFurtherGroup { group: whose.group, what }.into());
    }
    format::check_numbers(coordinator, whose.group, &wish.group.members)?;
    Ok(cluster)
}

/// The cluster keeps its names, so that its data servers know it; the secret is a new one, so that members of before do not.
fn cluster_of(env: &Env, whose: &Whose, wish: &Wish<'_>) -> Cluster {
    let drawn = format::draw_cluster(env, wish.new_cluster_id.clone(), wish.address, wish.group);
    match wish.new_cluster_id {
        // The root was made when the cluster was.
        Some(_) => Cluster { created_ms: whose.created_ms, ..drawn },
        None => Cluster {
            cluster_id: whose.cluster_id.clone(),
            namespace_id: whose.namespace_id,
            block_pool: whose.block_pool.as_str().into(),
            created_ms: whose.created_ms,
            ..drawn
        },
    }
}

fn epoch_of(manifest: &Manifest, found: &Found, now_ms: u64) -> Epoch {
    let archived = manifest.spans.iter().map(|span| span.end.id.epoch).max().unwrap_or_default();
    let known = manifest.epoch.max(archived);
    let since_ms = now_ms.saturating_sub(found.last_ms.unwrap_or(manifest.whose.created_ms));
    Epoch(known.0 + EPOCHS_MIN + since_ms / MS_PER_EPOCH)
}
