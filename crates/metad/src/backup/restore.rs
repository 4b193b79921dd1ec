//! A metadata directory from a backup: the first member of a group, or a lone server.
//!
//! It is made like a new cluster's, with the backup's names in it. It does not know what the old group did after the
//! restored entry, and the data servers may still hold blocks from that time. So the new view begins in an epoch that
//! lies above every one that the old group can have had, and counts as begun by an unclean election: the first entry
//! of the first active raises all id counters, remembers the ids that are skipped, and holds deletions back until an
//! operator allows them.

use super::{Found, Rebuilt};
use crate::{
    cluster::Cluster,
    config::GroupConfig,
    coordinator::open_coordinator,
    format::{self, FormatError},
};
use base::{Epoch, GroupId, GroupView, LogPoint, MemberStore};
use env::Env;
use journal::archive::{Manifest, Whose};
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
}

#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(
        "the backup is of group {0}: a backup of the root group makes a cluster, and one of another group cannot be put back yet"
    )]
    NotOfTheRootGroup(GroupId),
    #[error(
        "the backup is of a namespace that group {0} holds a part of: files of that group are not in it, and a restored root group would be older than \
         what that group knows. One group of several cannot be put back yet"
    )]
    HasFurtherGroups(GroupId),
    #[error("the restored image cannot be written")]
    Image(#[from] journal::ImageError),
}

/// Makes the directory, or leaves it empty. Nothing of the backup is changed.
///
/// # Errors
/// [`RestoreError::Format`] if the directory is not empty, this member is not of the group, or the coordinator cannot
/// be reached or has a cluster already: see [`FormatError`]. [`RestoreError::NotOfTheRootGroup`] if the backup is of
/// another group, [`RestoreError::HasFurtherGroups`] if it is of one of several. [`RestoreError::Image`] if the image cannot be written.
pub fn restore(
    env: &Env,
    manifest: &Manifest,
    rebuilt: Rebuilt,
    wish: &Wish<'_>,
) -> Result<Restored, RestoreError> {
    let Rebuilt { namespace, at, found } = rebuilt;
    if manifest.whose.group != GroupId::ROOT {
        return Err(RestoreError::NotOfTheRootGroup(manifest.whose.group));
    }
    if let Some(further) = namespace.further_groups().next() {
        return Err(RestoreError::HasFurtherGroups(further));
    }
    format::check_format(env, wish.name_directory, wish.group)?;
    format::make(env, wish.name_directory, GroupId::ROOT, |layout| {
        let level = namespace.group_level().level;
        let cluster = Cluster { first_level: level, ..cluster_of(env, &manifest.whose, wish) };
        let identity = format::identity(&cluster, wish.group.member);
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
        let coordinator =
            open_coordinator(env, &wish.group.coordinator, &layout.coordinator).map_err(FormatError::from)?;
        format::publish(env, layout, &*coordinator, &cluster, view)?;
        Ok(Restored { cluster, at, found, epoch })
    })
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
