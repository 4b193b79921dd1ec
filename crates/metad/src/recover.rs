//! The way from the files on the disk to a member that can take part: image, journal, block map.

mod leader;
mod waiting;

pub use waiting::Waiting;

use crate::{
    cluster::{
        Cluster,
        text::{self, TextError},
    },
    commit::CommitWatch,
    config::MetaConfig,
    coordinator::open_coordinator,
    core::{self, AnswerCall, Core},
    fatal::Fatal,
    format::{self, ClusterError, Layout},
    image_reading,
    loading::LoadingPages,
    member::{GroupMember, Parts},
    partition::{self, Partition, queue::Queue},
    peers::Secret,
    repair::{self, Means, Outcome},
    settle::Unsettled,
    start::{ImageRead, Progress, Stage, Start},
    watch::Threads,
    watchers,
};
use ::blocks::BlockMap;
use base::{EntryKind, GroupId, GroupView, MemberLife, MemberStore};
use coord::{Coordinator, MemberRecord};
use env::Env;
use group::{Restored, StateDigest};
use journal::{Checkpoint, MemberState, Recovery};
use namespace::Namespace;
use parking_lot::Mutex;
use serving::{RecentEvents, settle};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool, mpsc::sync_channel},
    time::Duration,
};
use thiserror::Error;

/// Why a server could not come up from its directory.
#[derive(Debug, Error)]
pub enum RecoverError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the metadata store could not be opened")]
    Open(#[from] journal::OpenError),
    /// This member takes part as soon as another one leads, or a person has decided.
    #[error("{0}")]
    Waits(Box<Waiting>),
    #[error("the metadata store could not be read back")]
    Store(#[from] journal::RecoverError),
    #[error("the store in {directory} belongs to cluster {found}, the directory to {expected}")]
    AnotherCluster { directory: String, found: String, expected: String },
    #[error(
        "the store in {directory} is that of member {found}, this server is configured as member {expected}"
    )]
    AnotherMember { directory: String, found: base::MemberId, expected: base::MemberId },
    #[error("the store in {directory} is of group {found}, the directory of group {expected}")]
    AnotherGroup { directory: String, found: GroupId, expected: GroupId },
    #[error(
        "{directory} belongs to cluster {found}, and the coordinator to {expected}: check name_dir and the path in \
         coordinator"
    )]
    AnotherCoordinator { directory: PathBuf, found: String, expected: String },
    #[error("the coordinator keeps a cluster that cannot be read: {0}")]
    ClusterText(#[from] TextError),
    #[error("the coordinator could not be opened")]
    Coordinator(#[from] coord::OpenError),
    #[error(transparent)]
    Read(#[from] coord::ReadError),
    #[error(
        "the coordinator knows nothing of group {0}. Is `coordinator` that of this cluster? One that was made for a single server \
             gets a ZooKeeper with `clover meta make-group`; what was lost at the coordinator is restored from a copy"
    )]
    NoView(base::GroupId),
    #[error("the group has {members} members, and this one names no address where the others reach it")]
    NoPeerAddress { members: usize },
    #[error("the timing of the group: {0}")]
    Timing(String),
    #[error("{path}: {what}")]
    Secret { path: PathBuf, what: String },
    #[error("the damaged store could not be repaired")]
    Repair(#[from] repair::Error),
    #[error(
        "the cluster keeps no secret, since it was made with secret_file or by an early version: name a file with one, the \
         same on all members"
    )]
    NoSecret,
}

/// The server's state before the member takes part.
pub struct Recovered {
    pub core: Arc<Core>,
    pub life: MemberLife,
    /// Members of the group.
    pub member_count: usize,
    /// The members' records.
    pub records: Vec<MemberRecord>,
}

/// Blocks while the image and the journal are read, and while a damaged store is repaired: that takes as long as others need to
/// be there. `stop` ends it.
/// `answer` is the server's answer to a call of a client. `progress` is told how far it is. `pages` have the HTTP port meanwhile.
pub fn recover(
    env: Env,
    mut config: MetaConfig,
    answer: AnswerCall,
    stop: &AtomicBool,
    progress: &Progress,
    pages: Option<&LoadingPages>,
) -> Result<Recovered, RecoverError> {
    let began = progress.began;
    config.group.timing.check().map_err(RecoverError::Timing)?;
    let cluster = format::read_cluster(&env, &config.name_directory)?;
    let secret = secret_of(&env, &config, &cluster)?;
    if let Some(exposure) = format::exposure(&config.group) {
        tracing::warn!("{exposure}");
    }
    let group = cluster.group;
    let layout = Layout::of(&config.name_directory, group);
    let coordinator = open_coordinator(&env, &config.group.coordinator, &layout.coordinator)?;
    progress.at(Stage::Coordinator);
    // Before anything is written there: a wrong path must not touch another cluster.
    let text = patiently("the cluster", || coord::wait(|done| coordinator.read_cluster(done)))?;
    check_cluster(text.as_deref(), &cluster, &config.name_directory)?;
    let view = patiently("the group's view", || coord::wait(|done| coordinator.read(group, done)))?
        .ok_or(RecoverError::NoView(group))?
        .view;
    if view.in_sync_min == 1 && view.members.len() > 1 {
        tracing::warn!("{}", format::ONE_COPY);
    }
    if view.members.len() > 1 && config.group.peer_address.is_none() {
        return Err(RecoverError::NoPeerAddress { members: view.members.len() });
    }
    let records =
        patiently("the members' records", || coord::wait(|done| coordinator.read_members(group, done)))?;

    progress.at(Stage::Opening);
    let mut recovery = open_store(&env, &layout.store, &cluster, &config, &view, &records, &coordinator)?;
    let member = recovery.state().identity.member;
    let seed = env.random.next_u64();
    let mut is_repaired = false;
    let (namespace, journal, recovered, digests, mut start, events) = loop {
        let damage = match read_back(recovery, seed, &env, progress, &config, &cluster, &layout.store) {
            Err(damage @ journal::RecoverError::Damaged { .. }) => damage,
            read => break read?,
        };
        let Some(secret) = secret.as_ref().filter(|_| view.members.len() > 1) else {
            return Err(damage.into());
        };
        progress.at(Stage::Repair);
        let (env, config, cluster, store) = (&env, &config, &cluster, layout.store.as_path());
        let outcome = repair::run(
            &Means { env, config, cluster, secret, coordinator: &coordinator, store, stop, pages },
            &damage,
        )?;
        if outcome == Outcome::Sound && std::mem::replace(&mut is_repaired, true) {
            // Nothing is missing, and it cannot be read back all the same.
            return Err(damage.into());
        }
        progress.at(Stage::Opening);
        recovery = open_or_wait(env, store, cluster, config, &coordinator)?;
    };

    if namespace.group() != group {
        let directory = layout.store.display().to_string();
        return Err(RecoverError::AnotherGroup { directory, found: namespace.group(), expected: group });
    }
    let me = MemberStore { member, generation: journal.state().generation };
    let boot = journal.state().boot;
    progress.at(Stage::Blocks);
    let blocks = load_blocks(&env, &config, &namespace);
    let has_differed = has_differed(&env, &layout.store)
        .map_err(|source| journal::OpenError::Io { file: layout.store.clone(), source })?;
    let unsettled = Arc::new(Unsettled::new(blocks.clone()));
    let commit = Arc::new(CommitWatch::new(recovered.base.id.sn));
    let tail = recovered.tail.len();
    start.loaded = env.clock.moment();
    progress.at(Stage::Joining);
    let fatal = Fatal::open(&env, &config.name_directory, me.member);
    let threads = Arc::new(Threads::new(&env, &config.group.timing, config.group.last_resort.clone()));
    let queue = Arc::new(Queue::default());
    let member = GroupMember::new(Parts {
        env: env.clone(),
        group,
        me,
        settings: config.group.timing,
        trusts_refused_connections: config.group.trusts_refused_connections,
        restored: Restored {
            promised: journal.state().promised,
            base: recovered.base,
            tail: recovered.tail,
            boot,
            is_suspect: recovered.is_suspect,
            digests,
            has_differed,
            level: namespace.group_level().level,
        },
        journal,
        coordinator,
        commit: commit.clone(),
        unsettled: unsettled.clone(),
        writer: queue.clone(),
        fatal: fatal.clone(),
        threads: threads.clone(),
    });
    if events.is_some() {
        member.go_on_watched();
    }
    tracing::info!(
        member = %me.member,
        replayed = recovered.replayed,
        tail,
        files = namespace.counts().files,
        took_ms = env.clock.moment().ms_since(began),
        "namespace recovered"
    );
    let member_count = view.members.len();
    config.limits.created = base::Timestamp::from_ms(cluster.created_ms);
    let (config, cluster) = (Arc::new(config), Arc::new(cluster));
    let parts = partition::Parts {
        env: env.clone(),
        config: config.clone(),
        cluster: cluster.clone(),
        namespace,
        blocks,
        unsettled,
        commit,
        queue,
        member,
        start,
        events,
    };
    let partition = Arc::new(Partition::new(parts, secret.as_ref()));
    let core = core::Parts { env, config, cluster, secret, partition, fatal, threads, answer };
    let core = Arc::new(Core::new(core));
    Ok(Recovered { core, life: MemberLife { store: me, boot }, member_count, records })
}

/// A namespace that was read back, its journal, what was found there, the digests in it, how it went, and the events, if a client watches.
type ReadBack =
    (Namespace, journal::Journal, journal::Recovered, Vec<StateDigest>, Start, Option<RecentEvents>);

/// The namespace as the store has it: image first, then the journal behind it.
fn read_back(
    mut recovery: Recovery,
    seed: u64,
    env: &Env,
    progress: &Progress,
    config: &MetaConfig,
    cluster: &Cluster,
    store: &Path,
) -> Result<ReadBack, journal::RecoverError> {
    let image_began = env.clock.moment();
    progress.image_begins(image_began);
    let mut image_bytes = 0;
    let image = recovery.load_image(|reader| {
        image_bytes = reader.file_bytes();
        progress.image_has(image_bytes);
        image_reading::read(seed, reader, image_bytes, |bytes| progress.image_was_read(bytes))
    })?;
    let image_read = image.as_ref().map(|(at, namespace)| {
        let counts = namespace.counts();
        let checkpoints = &recovery.state().checkpoints;
        let its_name = checkpoints.iter().find(|checkpoint| checkpoint.at == *at).map(Checkpoint::file_name);
        let file = store.join(journal::store::IMAGES).join(its_name.unwrap_or_default());
        ImageRead { file, bytes: image_bytes, inodes: counts.files + counts.directories }
    });
    let mut namespace = match image {
        Some((at, namespace)) => {
            tracing::info!(%at, files = namespace.counts().files, "image read");
            namespace
        }
        None => {
            let access = &config.limits.access;
            // The root has the time of the cluster, so that every member starts from the same tree.
            let created = base::Timestamp::from_ms(cluster.created_ms);
            Namespace::new(seed, &access.superuser, &access.supergroup, created)
                .of_group(cluster.group)
                .beginning_at(cluster.first_level)
        }
    };
    let journal_began = env.clock.moment();
    progress.journal_begins(journal_began, recovery.entries_expected());
    let mut digests = Vec::new();
    // A long walk of a thread that is watched is a sign of its life.
    namespace.tell_visits(env::pulse::step);
    let is_watched = watchers::were_there(&*env.disk, &config.name_directory);
    let mut events = is_watched.then(|| RecentEvents::after(namespace.applied().sn));
    let (journal, recovered) = recovery.replay(|entry| {
        serving::apply_entry_telling(&mut namespace, &entry, &mut events)?;
        if entry.kind == EntryKind::Checkpoint {
            digests.push(serving::digest_of(&namespace));
        }
        progress.entry_was_applied();
        Ok(())
    })?;
    for finding in &recovered.findings {
        tracing::warn!(file = %finding.file.display(), offset = finding.offset, "{}", finding.what);
    }
    let start = Start {
        began: progress.began,
        image_began,
        image: image_read,
        journal_began,
        journal: store.join(journal::store::LOG),
        images: store.join(journal::store::IMAGES),
        replayed: recovered.replayed,
        loaded: env.clock.moment(),
    };
    Ok((namespace, journal, recovered, digests, start, events))
}

/// Whether a store that was put aside because its state differed is still kept.
fn has_differed(env: &Env, store: &Path) -> io::Result<bool> {
    let reasons = journal::aside::reasons(&*env.disk, store)?;
    Ok(reasons.iter().any(|reason| StateDigest::is_difference(reason)))
}

/// Asks again for a while: a coordinator may be starting as well.
fn patiently<T>(
    what: &str,
    mut ask: impl FnMut() -> Result<T, coord::ReadError>,
) -> Result<T, coord::ReadError> {
    const TRIES: u32 = 60;
    let mut tries = 0;
    loop {
        match ask() {
            Err(error) if tries < TRIES => {
                tries += 1;
                tracing::warn!(%error, "{what} cannot be read yet");
                std::thread::sleep(Duration::from_millis(500));
            }
            answer => return answer,
        }
    }
}

fn secret_of(env: &Env, config: &MetaConfig, cluster: &Cluster) -> Result<Option<Secret>, RecoverError> {
    let secret = format::secret(env, config.group.secret.as_deref(), cluster)
        .map_err(|(path, what)| RecoverError::Secret { path, what })?;
    match (&secret, config.group.peer_address) {
        (None, Some(_)) => Err(RecoverError::NoSecret),
        _ => Ok(secret),
    }
}

/// Opens the store. A store whose disk has failed is taken back first, if another member leads. A store of which the
/// coordinator knows a later life is a restored copy: it no longer counts as complete, and keeps all that it holds,
/// for the stores of all members may have been restored together.
fn open_store(
    env: &Env,
    directory: &Path,
    cluster: &Cluster,
    config: &MetaConfig,
    view: &GroupView,
    records: &[MemberRecord],
    coordinator: &Arc<dyn Coordinator>,
) -> Result<Recovery, RecoverError> {
    let settings = config.group.journal;
    let recovery = match journal::open(env, directory, settings) {
        Err(journal::OpenError::Untrusted { .. }) if view.members.len() > 1 => {
            take_back(env, directory, cluster, config, coordinator)?;
            open_or_wait(env, directory, cluster, config, coordinator)?
        }
        Err(journal::OpenError::NoRoomAside { .. } | journal::OpenError::AsideExists { .. }) => {
            open_or_wait(env, directory, cluster, config, coordinator)?
        }
        opened => opened?,
    };
    let state = recovery.state();
    // Nothing is held against a store that is merely another one than was meant.
    check_identity(state, cluster, config, directory)?;
    let Some(record) = records.iter().find(|record| record.life.store.member == state.identity.member) else {
        return Ok(recovery);
    };
    let known = record.life;
    if (known.store.generation, known.boot) <= (state.generation, state.boot) {
        return Ok(recovery);
    }
    let reason = format!(
        "the coordinator has seen start {} of generation {} of this store, which itself knows of start {} of \
         generation {} only: it is a copy that was restored",
        known.boot, known.store.generation, state.boot, state.generation
    );
    drop(recovery);
    journal::outlive(env, directory, known.store.generation, &reason)?;
    Ok(journal::open(env, directory, settings)?)
}

/// Opens the store. A store that was given up is put aside first; if that needs a person's help, the member waits.
fn open_or_wait(
    env: &Env,
    directory: &Path,
    cluster: &Cluster,
    config: &MetaConfig,
    coordinator: &Arc<dyn Coordinator>,
) -> Result<Recovery, RecoverError> {
    match journal::open(env, directory, config.group.journal) {
        Err(error @ (journal::OpenError::NoRoomAside { .. } | journal::OpenError::AsideExists { .. })) => {
            let waiting = Waiting::for_room_aside(env, config, cluster, coordinator, &error)?;
            Err(RecoverError::Waits(Box::new(waiting)))
        }
        opened => Ok(opened?),
    }
}

/// The disk of this store has failed. As long as no other member leads nothing is decided: the disks of all may have
/// failed together, and then this log may be the one with the most. Under another that leads the store is read back
/// from the medium and goes on. If the medium does not hold all of it any more, the store is put aside, once a member
/// serves that has the missing entries.
fn take_back(
    env: &Env,
    directory: &Path,
    cluster: &Cluster,
    config: &MetaConfig,
    coordinator: &Arc<dyn Coordinator>,
) -> Result<(), RecoverError> {
    let Some(failed) = journal::FailedStore::open(env, directory)? else { return Ok(()) };
    // Nothing is asked in the name of a store that is merely another one than was meant.
    check_identity(failed.state(), cluster, config, directory)?;
    let me = config.group.member;
    let leader = match leader::find(
        &**coordinator,
        cluster.group,
        me,
        failed.promised(),
        &config.limits.access.superuser,
    ) {
        Ok(leader) => leader,
        Err(why) => {
            let waiting = Waiting::for_failed_disk(env, config, cluster, coordinator, &failed, &why)?;
            return Err(RecoverError::Waits(Box::new(waiting)));
        }
    };
    let durable = failed.durable();
    let error = match failed.take_back(journal::Word::Member) {
        Ok(taken) => {
            tracing::warn!(
                note = taken.note, end = %taken.end.id, leader = %leader.member,
                "the disk of this store had failed; what it holds was read back from the medium and written anew"
            );
            return Ok(());
        }
        Err(error @ journal::RecoverError::Damaged { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    if leader.has(durable) {
        journal::distrust(env, directory, &error.to_string())?;
        return Ok(());
    }
    let Some(failed) = journal::FailedStore::open(env, directory)? else { return Ok(()) };
    let why =
        format!("member {} leads, and is not known to have everything that was durable here", leader.member);
    let waiting = Waiting::for_failed_disk(env, config, cluster, coordinator, &failed, &why)?;
    Err(RecoverError::Waits(Box::new(waiting.lacking(durable))))
}

/// A coordinator of before groups names no cluster.
fn check_cluster(text: Option<&[u8]>, cluster: &Cluster, directory: &Path) -> Result<(), RecoverError> {
    let Some(text) = text else { return Ok(()) };
    let kept = text::parse(&String::from_utf8_lossy(text))?;
    if kept.cluster_id == cluster.cluster_id {
        return Ok(());
    }
    Err(RecoverError::AnotherCoordinator {
        directory: directory.to_owned(),
        found: cluster.cluster_id.clone(),
        expected: kept.cluster_id,
    })
}

fn check_identity(
    state: &MemberState,
    cluster: &Cluster,
    config: &MetaConfig,
    directory: &Path,
) -> Result<(), RecoverError> {
    let directory = directory.display().to_string();
    if state.identity.cluster_id != cluster.cluster_id {
        return Err(RecoverError::AnotherCluster {
            directory,
            found: state.identity.cluster_id.clone(),
            expected: cluster.cluster_id.clone(),
        });
    }
    let (found, expected) = (state.identity.group, cluster.group);
    if found != expected {
        return Err(RecoverError::AnotherGroup { directory, found, expected });
    }
    let (found, expected) = (state.identity.member, config.group.member);
    if found != expected {
        return Err(RecoverError::AnotherMember { directory, found, expected });
    }
    Ok(())
}

/// Blocks that go from the tree to the block map at once at a start, and how many such batches wait at most.
const BATCH_BLOCKS: usize = 4_096;
const BATCHES_AHEAD: usize = 16;

/// The block map, told of every block; where they are the data servers will say. It commands nobody before this
/// member serves.
fn load_blocks(env: &Env, config: &MetaConfig, namespace: &Namespace) -> Arc<Mutex<BlockMap>> {
    let now = env.clock.moment();
    let mut settings = config.blocks.clone();
    settings.racks.extend(config.racks.iter().cloned());
    if config.group.peer_address.is_none() {
        // Nobody else can have commanded, and nobody was late because of a switch.
        settings.takeover_grace_ms = 0;
    }
    let mut blocks = BlockMap::new(settings, env.random.next_u64(), now);
    settle::begin(&mut blocks, namespace, now);
    // One thread walks the tree, the other fills the map.
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        scope.spawn(move || {
            let mut batch = Vec::new();
            namespace.for_each_block(&mut |block, inode, replication, committed| {
                batch.push((block, inode, replication, committed));
                if batch.len() == BATCH_BLOCKS {
                    // If the receiver is gone, its thread has panicked.
                    let _ = sender.send(std::mem::take(&mut batch));
                }
            });
            let _ = sender.send(batch);
        });
        for (block, inode, replication, committed) in receiver.into_iter().flatten() {
            settle::tell_existing(&mut blocks, block, inode, replication, committed, now);
        }
    });
    blocks.activate(now);
    Arc::new(Mutex::new(blocks))
}
