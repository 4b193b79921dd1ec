//! Making a new cluster: its ids, its empty journal, its first view.

use base::{Chain, Epoch, GroupId, GroupView, LogPoint, MemberId, MemberStore, Sn, TxId, UnknownLevel};
use data_encoding::HEXLOWER;
use env::{Env, OpenMode, disk::Lock};
use namespace::{Namespace, NotShared};
use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

use crate::{
    cluster::{
        Cluster,
        text::{self, TextError, text_of},
    },
    config::{CoordinatorConfig, GroupConfig},
    coordinator::open_coordinator,
    peers::Secret,
};

/// The warning about a minimum of 1 in a group of several members.
pub const ONE_COPY: &str = "a change is acknowledged as soon as one member has it (in_sync_min = 1): if that member's disk is lost, or \
                            another one goes on without it, acknowledged changes are lost. Two is what keeps them";

const SECRET_BYTES: usize = 32;
const CLUSTER_FILE: &str = "CLUSTER";
/// The file that is locked while a directory is being made. With it and without [`CLUSTER_FILE`] the directory is
/// half made.
const MAKING_FILE: &str = "MAKING";
/// The number of the group follows.
const STORE_DIRECTORY: &str = "group-";
const COORDINATOR_DIRECTORY: &str = "coordinator";

/// The paths of the parts of a name directory.
pub struct Layout {
    pub store: PathBuf,
    pub coordinator: PathBuf,
    cluster: PathBuf,
    making: PathBuf,
    root: PathBuf,
}

impl Layout {
    pub fn of(name_directory: &Path, group: GroupId) -> Self {
        Self {
            store: name_directory.join(format!("{STORE_DIRECTORY}{group}")),
            coordinator: name_directory.join(COORDINATOR_DIRECTORY),
            cluster: name_directory.join(CLUSTER_FILE),
            making: name_directory.join(MAKING_FILE),
            root: name_directory.to_owned(),
        }
    }
}

#[derive(Debug, Error)]
pub enum FormatError {
    #[error(
        "{directory} is not empty (it holds {found}): formatting would lose what is there. \
         Name an empty directory, or remove this one yourself"
    )]
    NotEmpty { directory: PathBuf, found: String },
    #[error(
        "{0} is half made: the order that made it was interrupted, or is under way. If it is not, empty the directory, and give the \
         order again"
    )]
    HalfMade(PathBuf),
    #[error("{path} cannot be read or written")]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Journal(#[from] journal::FormatError),
    #[error("the coordinator could not be opened")]
    OpenCoordinator(#[from] coord::OpenError),
    #[error("the coordinator has not taken the new cluster: {0}; is there one already?")]
    Coordinator(#[from] coord::ChangeError),
    #[error("the coordinator could not be read")]
    ReadCoordinator(#[from] coord::ReadError),
    #[error("the new store could not be prepared")]
    Store(#[from] journal::OpenError),
    #[error("the coordinator knows of no cluster; make it with `clover meta format` on the first member")]
    NoCluster,
    #[error("what the coordinator says of the cluster cannot be understood: {0}")]
    ClusterText(#[from] TextError),
    #[error("the cluster has no group {0} yet; its first member makes it")]
    NoGroup(GroupId),
    #[error("{what}, so group {group} of it cannot be made")]
    NoFurtherGroup { group: GroupId, what: &'static str },
    #[error(
        "member {member} belongs to group {group}: every server of a cluster has a number of its own. Nothing was changed"
    )]
    MemberTaken { member: MemberId, group: GroupId },
    #[error(transparent)]
    NotShared(#[from] NotShared),
    #[error("the first image of the group cannot be written")]
    Image(#[from] journal::ImageError),
    #[error("member {member} is not in the list of the group's members")]
    NotAMember { member: MemberId },
    #[error("a group of {members} members needs a coordinator that all of them reach; name one")]
    NeedsCoordinator { members: usize },
}

/// Why a name directory could not be read.
#[derive(Debug, Error)]
pub enum ClusterError {
    #[error(
        "{0} holds no cluster; make one with `clover meta format`, or with `--join` this server's part of one"
    )]
    Missing(PathBuf),
    #[error(
        "{0} is half made: `clover meta format` or `restore` was interrupted. Empty the directory, and give that order again"
    )]
    HalfMade(PathBuf),
    #[error("{path}: {what}; restore the file from a backup of this directory")]
    Malformed { path: PathBuf, what: String },
    #[error(
        "{path} has layout {found}, and up to 3 is known: use the release that wrote it, or a newer one. Nothing was changed"
    )]
    Version { path: PathBuf, found: String },
    #[error("{path} says that {unknown}. Nothing was changed")]
    Level { path: PathBuf, unknown: UnknownLevel },
    #[error("{path} cannot be read or written")]
    Io { path: PathBuf, source: io::Error },
}

/// Makes a cluster in a directory that is empty or does not exist. `address` becomes part of the block
/// pool's name, as in HDFS. This member is the only one in sync; the others [`join`].
///
/// # Errors
/// [`FormatError::NotEmpty`] or [`FormatError::HalfMade`] if the directory is not empty, [`FormatError::NotAMember`] if
/// this member is not of the group, [`FormatError::NeedsCoordinator`] if the group needs another coordinator,
/// [`FormatError::OpenCoordinator`] if that cannot be reached, [`FormatError::Coordinator`] if it has a cluster already
/// or does not answer. [`FormatError::Io`] or [`FormatError::Journal`] if a file cannot be written.
pub fn format(
    env: &Env,
    name_directory: &Path,
    cluster_id: Option<String>,
    address: IpAddr,
    group: &GroupConfig,
) -> Result<Cluster, FormatError> {
    check_format(env, name_directory, group)?;
    make(env, name_directory, GroupId::ROOT, |layout| {
        let coordinator = open_coordinator(env, &group.coordinator, &layout.coordinator)?;
        let begun = begun(&*coordinator, cluster_id.as_deref())?;
        let cluster = begun.unwrap_or_else(|| draw_cluster(env, cluster_id, address, group));
        journal::format(env, &layout.store, &identity(&cluster, group.member))?;
        let first = MemberStore { member: group.member, generation: 0 };
        let level = group.first_level;
        let view =
            GroupView { members: members(group), level, ..GroupView::new(&[first], in_sync_min(group)) };
        publish(env, layout, &*coordinator, &cluster, view)?;
        Ok(cluster)
    })
}

/// The cluster that an earlier order has told the coordinator of, and then came no further: there is no view, so no
/// member has ever been in it. `None`: there is no such cluster, or one that is whole, which is not made again.
fn begun(
    coordinator: &dyn coord::Coordinator,
    cluster_id: Option<&str>,
) -> Result<Option<Cluster>, FormatError> {
    let Some(text) = coord::wait(|done| coordinator.read_cluster(done))? else { return Ok(None) };
    if coord::wait(|done| coordinator.read(GroupId::ROOT, done))?.is_some() {
        return Ok(None);
    }
    let cluster = text::parse(&String::from_utf8_lossy(&text))?;
    Ok(Some(cluster).filter(|cluster| cluster_id.is_none_or(|wanted| wanted == cluster.cluster_id)))
}

/// Has an empty directory filled. If that fails, for want of room say, the directory is empty again; if even that
/// fails, or the machine stops, it says of itself that it is half made, and no server starts on it.
pub(crate) fn make<T, E: From<FormatError>>(
    env: &Env,
    name_directory: &Path,
    group: GroupId,
    fill: impl FnOnce(&Layout) -> Result<T, E>,
) -> Result<T, E> {
    let layout = Layout::of(name_directory, group);
    let _held = begin(env, &layout)?;
    let made = fill(&layout);
    let tidied = match &made {
        // The directory is whole: what stays of the mark means nothing any more.
        Ok(_) => env.disk.remove_file(&layout.making),
        Err(_) => empty(env, &layout),
    };
    if let Err(error) = tidied {
        tracing::warn!(directory = %layout.root.display(), %error, "a file that is not needed could not be removed");
    }
    made
}

/// Begins to make the directory. From here on it is this order's alone, and everything in it was made by it.
fn begin(env: &Env, layout: &Layout) -> Result<Box<dyn Lock>, FormatError> {
    let io = |source| FormatError::Io { path: layout.making.clone(), source };
    refuse_if_not_empty(env, &layout.root)?;
    let held = match env.disk.lock(&layout.making) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(FormatError::HalfMade(layout.root.clone()));
        }
        held => held.map_err(io)?,
    };
    // Another order may have come to its end since the first look.
    let others = env.disk.list(&layout.root).map_err(io)?.into_iter().filter(|name| name != MAKING_FILE);
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        env.disk.remove_file(&layout.making).map_err(io)?;
        return Err(not_empty(&layout.root, &others));
    }
    env.disk.sync_directory(&layout.root).map_err(io)?;
    Ok(held)
}

/// Removes all that is there, and last what says that it is half made.
fn empty(env: &Env, layout: &Layout) -> io::Result<()> {
    let disk = &*env.disk;
    for name in disk.list(&layout.root)?.into_iter().filter(|name| name != MAKING_FILE) {
        let path = layout.root.join(name);
        if disk.is_directory(&path)? { disk.remove_directory(&path)? } else { disk.remove_file(&path)? }
    }
    disk.sync_directory(&layout.root)?;
    disk.remove_file(&layout.making)
}

/// Whether the first server of a cluster can be made there at all.
///
/// # Errors
/// Those of [`refuse_if_not_empty`]; [`FormatError::NotAMember`] if this member is not of the group,
/// [`FormatError::NeedsCoordinator`] if the coordinator is the embedded one and the group has several members.
pub(crate) fn check_format(env: &Env, name_directory: &Path, group: &GroupConfig) -> Result<(), FormatError> {
    refuse_if_not_empty(env, name_directory)?;
    if !group.members.contains(&group.member) {
        return Err(FormatError::NotAMember { member: group.member });
    }
    if matches!(group.coordinator, CoordinatorConfig::Embedded) && group.members.len() > 1 {
        return Err(FormatError::NeedsCoordinator { members: group.members.len() });
    }
    Ok(())
}

/// The names of a new cluster, and its secret.
pub(crate) fn draw_cluster(
    env: &Env,
    cluster_id: Option<String>,
    address: IpAddr,
    group: &GroupConfig,
) -> Cluster {
    let now = env.clock.timestamp().ms;
    let mut secret = [0; SECRET_BYTES];
    env.random.fill(&mut secret);
    Cluster {
        cluster_id: cluster_id.unwrap_or_else(|| format!("CID-{}", random_uuid(env))),
        // Hadoop keeps it in a signed 32-bit number and takes 0 for "not formatted".
        namespace_id: (env.random.next_u64() as u32 & 0x7fff_ffff).max(1),
        group: GroupId::ROOT,
        block_pool: format!("BP-{}-{address}-{now}", env.random.next_u64() as u32 & 0x7fff_ffff).into(),
        created_ms: now,
        // An operator who brings a secret wants no other one written down.
        secret: if group.secret.is_some() { None } else { Secret::new(HEXLOWER.encode(&secret).as_bytes()) },
        restored_at: None,
        first_level: group.first_level,
    }
}

/// The members of a new group, sorted.
pub(crate) fn members(group: &GroupConfig) -> Vec<MemberId> {
    let mut members = group.members.clone();
    members.sort();
    members.dedup();
    members
}

pub(crate) fn in_sync_min(group: &GroupConfig) -> u32 {
    group.in_sync_min.unwrap_or(members(group).len().min(2) as u32)
}

/// Tells the coordinator of a group whose first store has been made, and makes the directory whole. With the root group it is told of the cluster.
///
/// # Errors
/// [`FormatError::Io`] if a file cannot be written; [`FormatError::Coordinator`] if the coordinator has such a cluster or group
/// already, refuses, or does not answer: then it may have taken the group all the same.
pub(crate) fn publish(
    env: &Env,
    layout: &Layout,
    coordinator: &dyn coord::Coordinator,
    cluster: &Cluster,
    view: GroupView,
) -> Result<(), FormatError> {
    let io = |source| FormatError::Io { path: layout.root.clone(), source };
    // While nobody knows of the cluster: behind this, no room is needed here any more.
    prepare_cluster(env, layout, cluster).map_err(io)?;
    if cluster.group == GroupId::ROOT {
        create_text(coordinator, cluster)?;
    }
    create_view(coordinator, cluster.group, &view)?;
    // Last: a directory with this file is whole.
    name_cluster(env, layout).map_err(io)
}

/// The text of the cluster is written before the first view, so that a member which finds the view finds the text too.
fn create_text(coordinator: &dyn coord::Coordinator, cluster: &Cluster) -> Result<(), FormatError> {
    let text = text_of(cluster).into_bytes();
    if coord::wait(|done| coordinator.read_cluster(done))?.is_none_or(|there| there != text) {
        make_surely(
            || coord::wait(|done| coordinator.create_cluster(text.clone(), done)),
            || Ok(coord::wait(|done| coordinator.read_cluster(done))?.is_some_and(|there| there == text)),
        )?;
    }
    Ok(())
}

fn create_view(
    coordinator: &dyn coord::Coordinator,
    group: GroupId,
    view: &GroupView,
) -> Result<(), FormatError> {
    make_surely(
        || coord::wait(|done| coordinator.create(group, view.clone(), done)).map(drop),
        || Ok(coord::wait(|done| coordinator.read(group, done))?.is_some_and(|there| there.view == *view)),
    )
}

/// How often something is made anew in the coordinator whose answer is unknown, and the pause before.
const TRIES_MAX: u32 = 10;
const TRY_PERIOD: Duration = Duration::from_millis(300);

/// Makes something in the coordinator that is not there yet. Where the answer of a try is unknown it is made again, and
/// `is_there` tells whether that try has made it. Without such a try it is somebody else's, however much alike.
fn make_surely(
    make: impl Fn() -> Result<(), coord::ChangeError>,
    is_there: impl Fn() -> Result<bool, coord::ReadError>,
) -> Result<(), FormatError> {
    let mut tries = 0;
    loop {
        let error = match make() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !matches!(error, coord::ChangeError::Unknown { .. }) {
            let is_ours = tries > 0 && is_there()?;
            return if is_ours { Ok(()) } else { Err(error.into()) };
        }
        tries += 1;
        if tries == TRIES_MAX {
            return Err(error.into());
        }
        std::thread::sleep(TRY_PERIOD);
    }
}

/// Makes the empty store of a further member of its group in a directory that is empty or does not exist. The cluster's
/// names are read from the coordinator. The member starts as a junior and is renewed by the others.
///
/// # Errors
/// [`FormatError::NotEmpty`] or [`FormatError::HalfMade`] if the directory is not empty,
/// [`FormatError::NeedsCoordinator`] if the coordinator is the embedded one, [`FormatError::OpenCoordinator`] or
/// [`FormatError::ReadCoordinator`] if it cannot be reached, [`FormatError::NoCluster`] or [`FormatError::ClusterText`]
/// if it has no cluster that can be read, [`FormatError::NoGroup`] if that has no such group,
/// [`FormatError::MemberTaken`] if another group has a member of this number. [`FormatError::Io`],
/// [`FormatError::Journal`] or [`FormatError::Store`] if a file cannot be written.
pub fn join(env: &Env, name_directory: &Path, group: &GroupConfig) -> Result<Cluster, FormatError> {
    refuse_if_not_empty(env, name_directory)?;
    if matches!(group.coordinator, CoordinatorConfig::Embedded) {
        return Err(FormatError::NeedsCoordinator { members: 2 });
    }
    make(env, name_directory, group.id, |layout| {
        let coordinator = open_coordinator(env, &group.coordinator, &layout.coordinator)?;
        let root = cluster_of_root(&*coordinator)?;
        let view = coord::wait(|done| coordinator.read(group.id, done))?;
        let view = view.ok_or(FormatError::NoGroup(group.id))?.view;
        let cluster = cluster_of(&root, group.id)?;
        check_numbers(&*coordinator, group.id, &[group.member])?;
        let records = coord::wait(|done| coordinator.read_members(group.id, done))?;
        // A store that is lost leaves its number behind: what the view says of it must not hold for this one.
        let stores = view.in_sync.iter().chain(&view.exiles).copied();
        let known = stores.chain(records.iter().map(|record| record.life.store));
        let before = known.filter(|store| store.member == group.member).map(|store| store.generation).max();

        journal::format(env, &layout.store, &identity(&cluster, group.member))?;
        if let Some(before) = before {
            let reason = "the store that this member had before is lost";
            while journal::distrust(env, &layout.store, reason)? <= before {}
        }
        prepare_cluster(env, layout, &cluster)
            .and_then(|()| name_cluster(env, layout))
            .map_err(|source| FormatError::Io { path: name_directory.to_owned(), source })?;
        Ok(cluster)
    })
}

/// Makes a further group of a cluster, and the store of its first member in a directory that is empty or does not exist.
/// This member is the only one in sync; the others [`join`]. The group begins with the directories of `root`, the root group's tree as
/// it was at some time after that group has taken the order to add this one. It holds no files: no directory has its home there yet.
///
/// # Errors
/// Those of [`join`], but for [`FormatError::NoGroup`]; [`FormatError::NoFurtherGroup`] if the group is the root group, cannot
/// be, is there already, holds files already, or was not added to the namespace before. [`FormatError::NotShared`] if several groups cannot share this tree.
/// [`FormatError::NotAMember`] if this member is not of the group.
pub fn found_group(
    env: &Env,
    name_directory: &Path,
    group: &GroupConfig,
    root: &Namespace,
) -> Result<Cluster, FormatError> {
    let refuse = |what| Err(FormatError::NoFurtherGroup { group: group.id, what });
    if group.id == GroupId::ROOT || !group.id.is_possible() {
        return refuse("a cluster is made with group 1, and others are 2 to 128");
    }
    refuse_if_not_empty(env, name_directory)?;
    if matches!(group.coordinator, CoordinatorConfig::Embedded) {
        return Err(FormatError::NeedsCoordinator { members: 2 });
    }
    if !group.members.contains(&group.member) {
        return Err(FormatError::NotAMember { member: group.member });
    }
    make(env, name_directory, group.id, |layout| {
        let coordinator = open_coordinator(env, &group.coordinator, &layout.coordinator)?;
        let root_cluster = cluster_of_root(&*coordinator)?;
        if coord::wait(|done| coordinator.read(group.id, done))?.is_some() {
            return refuse("the cluster has this group already");
        }
        if !root.further_groups().any(|known| known == group.id) {
            return refuse("the root group has not added it to the namespace");
        }
        if root.slots().iter().any(|(_, of)| *of == group.id) {
            return refuse(
                "directories have their files in this group already (`clover meta restore` puts it back from its backup)",
            );
        }
        let mut namespace = root.for_joining(env.random.next_u64(), group.id)?;
        let level = namespace.group_level().level;
        let cluster = Cluster { first_level: level, ..cluster_of(&root_cluster, group.id)? };
        check_numbers(&*coordinator, group.id, &group.members)?;
        // The log begins behind the image, so that members which join later fetch it.
        let at = LogPoint { id: TxId { epoch: Epoch(1), sn: Sn(1) }, chain: Chain::default() };
        namespace.skip_to(at.id);
        let frozen = namespace.freeze();
        journal::format_with_image(env, &layout.store, &identity(&cluster, group.member), at, |writer| {
            frozen.write(&mut |bytes: &[u8]| writer.write(bytes))
        })?;
        let first = MemberStore { member: group.member, generation: 0 };
        let view = GroupView {
            members: members(group),
            epoch: at.id.epoch,
            commit_hint: at.id,
            level,
            ..GroupView::new(&[first], in_sync_min(group))
        };
        publish(env, layout, &*coordinator, &cluster, view)?;
        Ok(cluster)
    })
}

/// The cluster as the coordinator names it: with the names of the root group.
///
/// # Errors
/// [`FormatError::ReadCoordinator`] if the coordinator does not answer; [`FormatError::NoCluster`] or [`FormatError::ClusterText`] if it has no
/// cluster that can be read.
pub fn cluster_of_root(coordinator: &dyn coord::Coordinator) -> Result<Cluster, FormatError> {
    let text = coord::wait(|done| coordinator.read_cluster(done))?.ok_or(FormatError::NoCluster)?;
    Ok(text::parse(&String::from_utf8_lossy(&text))?)
}

/// The cluster with the names of one of its groups. Every group begins at the level at which the cluster began: members that join
/// later come to the same first tree, however far the group has been raised since.
pub(crate) fn cluster_of(root: &Cluster, group: GroupId) -> Result<Cluster, FormatError> {
    if group == GroupId::ROOT {
        return Ok(root.clone());
    }
    let what = "the cluster's block pool has a name that tells no others";
    root.of_group(group).ok_or(FormatError::NoFurtherGroup { group, what })
}

/// Whether no other group has a member with one of these numbers: a member is known by its number alone where it asks for
/// something or proves an order.
pub(crate) fn check_numbers(
    coordinator: &dyn coord::Coordinator,
    group: GroupId,
    wanted: &[MemberId],
) -> Result<(), FormatError> {
    for other in coord::wait(|done| coordinator.groups(done))?.into_iter().filter(|other| *other != group) {
        let Some(versioned) = coord::wait(|done| coordinator.read(other, done))? else { continue };
        if let Some(member) = wanted.iter().find(|member| versioned.view.members.contains(member)) {
            return Err(FormatError::MemberTaken { member: *member, group: other });
        }
    }
    Ok(())
}

pub(crate) fn identity(cluster: &Cluster, member: MemberId) -> journal::Identity {
    journal::Identity { cluster_id: cluster.cluster_id.clone(), group: cluster.group, member }
}

/// A server's directory is never made over what is there.
///
/// # Errors
/// [`FormatError::NotEmpty`] if there are files in the directory, [`FormatError::HalfMade`] if making it was
/// interrupted; [`FormatError::Io`] if it cannot be created or listed.
pub fn refuse_if_not_empty(env: &Env, name_directory: &Path) -> Result<(), FormatError> {
    let io = |source| FormatError::Io { path: name_directory.to_owned(), source };
    env.disk.create_directory(name_directory).map_err(io)?;
    let found = env.disk.list(name_directory).map_err(io)?;
    if found.is_empty() {
        return Ok(());
    }
    let is_half_made =
        found.iter().any(|name| name == MAKING_FILE) && !found.iter().any(|name| name == CLUSTER_FILE);
    Err(match is_half_made {
        true => FormatError::HalfMade(name_directory.to_owned()),
        false => not_empty(name_directory, &found),
    })
}

fn not_empty(name_directory: &Path, found: &[String]) -> FormatError {
    let found = found.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    FormatError::NotEmpty { directory: name_directory.to_owned(), found }
}

/// The secret that members prove to each other: the file's content, or else the one that was drawn when the cluster
/// was made. An error names the file and what is wrong with it.
///
/// # Errors
/// The file and the reason: it cannot be read, or holds fewer than [`Secret::BYTES_MIN`] bytes.
pub fn secret(
    env: &Env,
    file: Option<&Path>,
    cluster: &Cluster,
) -> Result<Option<Secret>, (PathBuf, String)> {
    let Some(path) = file else { return Ok(cluster.secret.clone()) };
    let fail = |what: String| Err((path.to_owned(), what));
    let bytes = match read_small(env, path) {
        Ok(bytes) => bytes,
        Err(error) => return fail(format!("the members' secret cannot be read: {error}")),
    };
    match Secret::new(bytes.trim_ascii()) {
        Some(secret) => Ok(Some(secret)),
        None => fail(format!("the members' secret has less than {} bytes", Secret::BYTES_MIN)),
    }
}

/// A sentence for the operator about the harm that strangers who reach the coordinator can do; `None` if they can do
/// none.
pub fn exposure(group: &GroupConfig) -> Option<&'static str> {
    let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator else { return None };
    match (&zookeeper.auth, &group.secret) {
        (Some(_), _) => None,
        (None, None) => Some(
            "everybody who reaches the ZooKeeper servers can read the secret by which the members know each other, and change \
             who leads: set coordinator_auth_file before the cluster is made, or let nobody else reach them",
        ),
        (None, Some(_)) => Some(
            "everybody who reaches the ZooKeeper servers can change who leads: set coordinator_auth_file before the cluster \
             is made, or let nobody else reach them",
        ),
    }
}

fn random_uuid(env: &Env) -> uuid::Uuid {
    let mut bytes = [0; 16];
    env.random.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

fn prepare_cluster(env: &Env, layout: &Layout, cluster: &Cluster) -> io::Result<()> {
    let file = env.disk.open(&layout.cluster.with_extension("tmp"), OpenMode::CreateOrTruncate)?;
    file.write_at(text_of(cluster).as_bytes(), 0)?;
    file.sync_data()
}

/// Gives the prepared cluster file its name.
fn name_cluster(env: &Env, layout: &Layout) -> io::Result<()> {
    env.disk.rename(&layout.cluster.with_extension("tmp"), &layout.cluster)?;
    env.disk.sync_directory(&layout.root)
}

/// Reads what [`format`] wrote.
///
/// # Errors
/// [`ClusterError::Missing`] if there is no such file, [`ClusterError::HalfMade`] if making the directory was
/// interrupted; [`ClusterError::Io`] if the file cannot be read, [`ClusterError::Malformed`] if it is malformed,
/// [`ClusterError::Version`] if its layout is a later release's, [`ClusterError::Level`] if it names a later level.
pub fn read_cluster(env: &Env, name_directory: &Path) -> Result<Cluster, ClusterError> {
    let path = name_directory.join(CLUSTER_FILE);
    let io = |source| ClusterError::Io { path: path.clone(), source };
    if !env.disk.exists(&path).map_err(io)? {
        if env.disk.exists(&name_directory.join(MAKING_FILE)).map_err(io)? {
            return Err(ClusterError::HalfMade(name_directory.to_owned()));
        }
        return Err(ClusterError::Missing(name_directory.to_owned()));
    }
    // No cluster file is larger; what is longer is cut and then refused.
    let bytes = read_small(env, &path).map_err(io)?;
    text::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| match error {
        TextError::Malformed(what) => ClusterError::Malformed { path, what },
        TextError::Layout(found) => ClusterError::Version { path, found },
        TextError::Level(unknown) => ClusterError::Level { path, unknown },
    })
}

/// The directory of the journal and the images of the server whose name directory this is.
///
/// # Errors
/// Those of [`read_cluster`], which says whose server it is.
pub fn store_of(env: &Env, name_directory: &Path) -> Result<PathBuf, ClusterError> {
    let cluster = read_cluster(env, name_directory)?;
    Ok(Layout::of(name_directory, cluster.group).store)
}

/// Reads a file of which only a little is of interest.
fn read_small(env: &Env, path: &Path) -> io::Result<Vec<u8>> {
    const BYTES_MAX: u64 = 4096;
    let file = env.disk.open(path, env::OpenMode::Read)?;
    let mut bytes = vec![0; file.length()?.min(BYTES_MAX) as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_made_once_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let (env, address) = (Env::production(), "127.0.0.1".parse().unwrap());
        let missing = read_cluster(&env, directory.path());
        assert!(matches!(missing, Err(ClusterError::Missing(_))), "{missing:?}");

        let made = format(&env, directory.path(), None, address, &GroupConfig::default()).unwrap();
        let read = read_cluster(&env, directory.path()).unwrap();
        assert_eq!((&made.cluster_id, &made.block_pool), (&read.cluster_id, &read.block_pool));
        assert!(made.cluster_id.starts_with("CID-") && made.block_pool.starts_with("BP-"));

        let again = format(&env, directory.path(), None, address, &GroupConfig::default()).unwrap_err();
        assert!(again.to_string().contains("is not empty"), "{again}");
    }

    #[test]
    fn a_directory_that_could_not_be_made_is_empty_again_and_one_that_is_half_made_is_told_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let (env, address, path) = (Env::production(), "127.0.0.1".parse().unwrap(), directory.path());
        let names = || env.disk.list(path).unwrap();
        // No coordinator holds a cluster that could be joined.
        let nobody: std::sync::Arc<dyn coord::Coordinator> =
            std::sync::Arc::new(coord::Embedded::open(&env, &path.join("elsewhere")).unwrap());
        let other = path.join("other");
        let group = group(CoordinatorConfig::Shared(nobody), None);
        assert!(matches!(join(&env, &other, &group), Err(FormatError::NoCluster)));
        assert_eq!(env.disk.list(&other).unwrap(), [""; 0]);
        env.disk.remove_directory(&other).unwrap();
        env.disk.remove_directory(&path.join("elsewhere")).unwrap();

        let failed = make(&env, path, GroupId::ROOT, |layout| {
            env.disk.create_directory(&layout.store.join("log")).unwrap();
            let held = refuse_if_not_empty(&env, path).unwrap_err();
            assert!(held.to_string().contains("half made"), "another order at the same time: {held}");
            let file = env.disk.open(&path.join("a"), OpenMode::CreateNew).unwrap();
            file.write_at(b"a", 0).map_err(|source| FormatError::Io { path: path.into(), source })?;
            Err::<(), _>(FormatError::NoCluster)
        });
        assert!(matches!(failed, Err(FormatError::NoCluster)), "{failed:?}");
        assert_eq!(names(), [""; 0]);

        // The machine stops meanwhile.
        env.disk.open(&path.join(MAKING_FILE), OpenMode::CreateNew).unwrap();
        let store = Layout::of(path, GroupId::ROOT).store;
        env.disk.create_directory(&store).unwrap();
        let start = read_cluster(&env, path).unwrap_err().to_string();
        assert!(start.contains("is half made") && start.contains("Empty the directory"), "{start}");
        let again = format(&env, path, None, address, &GroupConfig::default()).unwrap_err().to_string();
        assert!(again.contains("is half made"), "{again}");
        assert_eq!(names(), [MAKING_FILE, "group-1"], "nothing is removed that an order did not make itself");
    }

    fn group(coordinator: CoordinatorConfig, secret: Option<PathBuf>) -> GroupConfig {
        let members = vec![MemberId(1), MemberId(2)];
        GroupConfig { member: MemberId(1), members, coordinator, secret, ..GroupConfig::default() }
    }

    #[test]
    fn a_secret_of_the_operators_own_is_kept_nowhere_and_no_other_is_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let (env, address) = (Env::production(), "127.0.0.1".parse().unwrap());
        let file = directory.path().join("secret");
        let written = env.disk.open(&file, OpenMode::CreateNew).unwrap();
        written.write_at(b"of thirty-two letters, or of more", 0).unwrap();
        for (name, secret) in [("own", Some(file.clone())), ("drawn", None)] {
            let kept = coord::Embedded::open(&env, &directory.path().join(name)).unwrap();
            let kept: std::sync::Arc<dyn coord::Coordinator> = std::sync::Arc::new(kept);
            let group = group(CoordinatorConfig::Shared(kept.clone()), secret.clone());
            let path = directory.path().join(format!("{name}-1"));
            let made = format(&env, &path, None, address, &group).unwrap();
            let text = coord::wait(|done| kept.read_cluster(done)).unwrap().unwrap();
            let text = String::from_utf8(text).unwrap()
                + &String::from_utf8(read_small(&env, &path.join("CLUSTER")).unwrap()).unwrap();
            assert_eq!(text.contains("memberSecret"), secret.is_none(), "{text}");
            assert!(!text.contains("thirty-two"), "{text}");
            // A member that joins knows the secret by the file as well, or not at all.
            let second = GroupConfig { member: MemberId(2), ..group };
            let joined = join(&env, &directory.path().join(format!("{name}-2")), &second).unwrap();
            let known = |cluster, file| super::secret(&env, file, cluster).unwrap();
            assert_eq!(known(&joined, None).is_some(), secret.is_none());
            let text = |secret: Option<Secret>| secret.unwrap().as_text().map(str::to_owned);
            assert_eq!(text(known(&joined, secret.as_deref())), text(known(&made, secret.as_deref())));
        }
    }

    #[test]
    fn what_strangers_can_do_at_the_coordinator_is_said() {
        let zookeeper = |auth: Option<(String, String)>| {
            CoordinatorConfig::ZooKeeper(coord::ZooKeeperConfig {
                servers: "zk:2181".into(),
                root: "/clover/x".into(),
                session_ms: 5_000,
                auth,
            })
        };
        let user = || Some(("clover".to_owned(), "password".to_owned()));
        let own = || Some(PathBuf::from("/secret"));
        let said = |coordinator, secret| exposure(&group(coordinator, secret));
        assert!(said(zookeeper(None), None).unwrap().contains("can read the secret"));
        let other = said(zookeeper(None), own()).unwrap();
        assert!(other.contains("can change who leads") && !other.contains("secret"));
        assert_eq!(said(zookeeper(user()), None), None);
        assert_eq!(said(CoordinatorConfig::Embedded, None), None);
    }

    /// Its advice is another than that for a damaged file, which is to be restored from a backup.
    #[test]
    fn a_cluster_file_of_a_later_level_names_the_release_that_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let (env, address, path) = (Env::production(), "127.0.0.1".parse().unwrap(), directory.path());
        format(&env, path, None, address, &GroupConfig::default()).unwrap();
        let file = path.join(CLUSTER_FILE);
        let kept = env.disk.open(&file, OpenMode::Read).unwrap();
        let mut bytes = vec![0; kept.length().unwrap() as usize];
        env::disk::read_exact_at(&*kept, &mut bytes, 0).unwrap();
        let written = String::from_utf8(bytes).unwrap();
        let newest = base::Level::NEWEST;
        let ours = format!("firstLevel={newest}\nrelease={}\n", newest.release().unwrap());
        let later = written.replace(&ours, "firstLevel=9\nrelease=7.1.0\n");
        assert_ne!(later, written);
        let changed = env.disk.open(&file, OpenMode::CreateOrTruncate).unwrap();
        changed.write_at(later.as_bytes(), 0).unwrap();
        let text = read_cluster(&env, path).unwrap_err().to_string();
        assert!(text.contains("level 9") && text.contains("Start release 7.1.0"), "{text}");
        assert!(!text.contains("backup"), "{text}");
    }
}
