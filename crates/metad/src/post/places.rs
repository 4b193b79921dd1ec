//! What an answer lacks that other groups know, asked of them before it goes out: the places of foreign blocks, and the times and numbers of children
//! of listed directories that have another home.
//!
//! An answer is written while the tree is locked, and what it needs of other groups is only noted then. They are asked when the answer may go out.

use super::ways::{Question, Ways};
use crate::{
    client_protocol::{Answer, Encoded},
    core::Core,
    partition::Partition,
    standby_reads,
};
use base::{BlockId, FsError, FsResult, GroupId, InodeId};
use namespace::{Namespace, SnapshotId};
use prost::Message;
use proto::{
    clover::forward::{DirectoryFactsProto, PostResponseProto},
    hdfs as p,
};
use rpc::{Call, Replier};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Handle, task::JoinSet, time::Instant};

/// For so long other groups are asked again for the places of blocks, while they have no active.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for the times of directories, which are told without an answer as well.
const PATIENCE_FOR_TIMES: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// The foreign blocks, and the directories of other homes, in an answer that is being written.
#[derive(Default)]
pub struct Foreign {
    blocks: RefCell<BTreeMap<GroupId, BTreeSet<BlockId>>>,
    directories: RefCell<Directories>,
    /// This member lacks something about a block of its group that the active may know.
    is_lacking: Cell<bool>,
}

/// Directories of other homes, as they are, or as a snapshot has them.
type Directories = BTreeMap<(GroupId, Option<SnapshotId>), BTreeSet<InodeId>>;

impl Foreign {
    /// The pool of a block, which is noted, if it is another group's. `None`: the block is of this group.
    pub fn pool_of(&self, partition: &Partition, block: BlockId) -> Option<Arc<str>> {
        let group = partition.other_group_of(block)?;
        let pool = partition.cluster.pool_of(group)?;
        self.blocks.borrow_mut().entry(group).or_default().insert(block);
        Some(pool)
    }

    /// Notes that this member knows no sound place of a block of its group, or has not heard that the block is complete.
    pub fn note_lack(&self) {
        self.is_lacking.set(true);
    }

    /// Notes a listed directory if another group has its files. `at`: the snapshot in which it is listed.
    pub fn note_directory(&self, namespace: &Namespace, directory: InodeId, at: Option<SnapshotId>) {
        if !namespace.has_homes() {
            return;
        }
        let home = namespace.home_of(directory);
        if home != namespace.group() {
            self.directories.borrow_mut().entry((home, at)).or_default().insert(directory);
        }
    }
}

/// An answer of this call that may lack what other groups know.
pub struct Located {
    answer: Encoded,
    lacks: Option<Box<Lacks>>,
}

struct Lacks {
    method: &'static str,
    blocks: BTreeMap<GroupId, BTreeSet<BlockId>>,
    directories: Directories,
    /// In which snapshot each of the answer's listings is. Empty: in none.
    listings: Vec<Option<SnapshotId>>,
    host: String,
    ways: Arc<Ways>,
    runtime: Handle,
}

impl Located {
    /// `host`: of the caller.
    ///
    /// # Errors
    /// This member does not lead, and lacks something about a block that the active may know.
    pub fn new(core: &Core, call: &Call, host: &str, foreign: Foreign, answer: Encoded) -> FsResult<Self> {
        if call.read_point.is_some() && foreign.is_lacking.get() {
            return Err(standby_reads::only_the_active());
        }
        let method = call.method;
        let (blocks, directories) = (foreign.blocks.into_inner(), foreign.directories.into_inner());
        let is_whole = blocks.is_empty() && directories.is_empty();
        let lacks = core.ways.as_ref().zip(core.partition.forwarder.runtime()).filter(|_| !is_whole);
        let lacks = lacks.map(|(ways, runtime)| {
            let (host, ways, runtime) = (host.to_owned(), ways.clone(), runtime.clone());
            Box::new(Lacks { method, blocks, directories, listings: Vec::new(), host, ways, runtime })
        });
        Ok(Self { answer, lacks })
    }

    /// Says in which snapshot each of the answer's listings is.
    pub fn of_listings(mut self, snapshots: impl IntoIterator<Item = Option<SnapshotId>>) -> Self {
        if let Some(lacks) = &mut self.lacks {
            lacks.listings = snapshots.into_iter().collect();
        }
        self
    }
}

impl Answer for Located {
    fn bytes(&self) -> usize {
        self.answer.bytes()
    }

    fn send(self, reply: Replier) {
        let Some(lacks) = self.lacks else { return self.answer.send(reply) };
        let runtime = lacks.runtime.clone();
        drop(runtime.spawn(async move {
            match lacks.complete(self.answer.into_bytes()).await {
                Ok(answer) => reply.ok_encoded(answer.len(), |out| out.extend_from_slice(&answer)),
                Err(error) => reply.fs_error(&error),
            }
        }));
    }
}

/// What other groups have told.
#[derive(Default)]
struct Told {
    /// Blocks with their places, by id.
    places: BTreeMap<u64, p::LocatedBlockProto>,
    facts: Facts,
}

/// By the snapshot, and the directory's id.
type Facts = BTreeMap<(Option<SnapshotId>, u64), DirectoryFactsProto>;

impl Lacks {
    async fn complete(&self, answer: Vec<u8>) -> Result<Vec<u8>, FsError> {
        let mut all = Told { facts: self.ask_about_directories().await, ..Told::default() };
        for (group, blocks) in &self.blocks {
            let ids: Vec<u64> = blocks.iter().map(|block| block.0).collect();
            let told = self.ask(*group, &ids).await?;
            for (id, located) in ids.iter().zip(told.located) {
                let located = p::LocatedBlockProto::decode(located).map_err(|error| {
                    FsError::Io(format!("Group {group} has told places that make no sense: {error}"))
                })?;
                all.places.insert(*id, located);
            }
        }
        fill(self.method, &answer, &all, &self.listings)
            .map_err(|error| FsError::Io(format!("An answer cannot be read: {error}")))
    }

    /// Asks all homes at the same time. Of a group that does not answer the directories are told as this group knows them.
    async fn ask_about_directories(&self) -> Facts {
        let mut asked = JoinSet::new();
        for ((group, at), directories) in &self.directories {
            let (group, at, ways) = (*group, *at, self.ways.clone());
            let ids: Vec<u64> = directories.iter().map(|directory| directory.0).collect();
            asked.spawn(async move {
                let snapshot = at.map(|at| u64::from(at.0));
                let question = Question { directories: ids.clone(), snapshot, ..Question::default() };
                let told = ask_patiently(&ways, group, question, PATIENCE_FOR_TIMES).await;
                let keys = ids.into_iter().map(move |id| (at, id));
                told.map(|told| keys.zip(told.directories)).map_err(|reason| (group, reason))
            });
        }
        let mut facts = BTreeMap::new();
        while let Some(told) = asked.join_next().await {
            match told {
                Ok(Ok(told)) => facts.extend(told),
                Ok(Err((group, reason))) => {
                    tracing::debug!(%group, reason, "times of listed directories are told as they are known here");
                }
                Err(error) => tracing::error!(%error, "a question to another group was dropped"),
            }
        }
        facts
    }

    async fn ask(&self, group: GroupId, blocks: &[u64]) -> Result<PostResponseProto, FsError> {
        let question =
            Question { blocks: blocks.to_vec(), host: Some(self.host.clone()), ..Question::default() };
        ask_patiently(&self.ways, group, question, PATIENCE).await.map_err(|reason| {
            tracing::warn!(%group, reason, "where blocks of another group are could not be learnt");
            FsError::Retry(format!(
                "Group {group} of metadata servers, which knows where some of the blocks are, does not answer; try again in a moment."
            ))
        })
    }
}

/// Asks again while the other group has no active, or none is known yet.
async fn ask_patiently(
    ways: &Ways,
    group: GroupId,
    question: Question,
    patience: Duration,
) -> Result<PostResponseProto, String> {
    let began = Instant::now();
    loop {
        match ways.ask(group, question.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(reason) if began.elapsed() > patience => return Err(reason),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The answer with what was told.
fn fill(
    method: &str,
    answer: &[u8],
    told: &Told,
    listings: &[Option<SnapshotId>],
) -> Result<Vec<u8>, prost::DecodeError> {
    let snapshot = |listing: usize| listings.get(listing).copied().flatten();
    Ok(match method {
        "getBlockLocations" => {
            let mut answer = p::GetBlockLocationsResponseProto::decode(answer)?;
            answer.locations.iter_mut().for_each(|blocks| fill_blocks(blocks, told));
            answer.encode_to_vec()
        }
        "getLocatedFileInfo" => {
            let mut answer = p::GetLocatedFileInfoResponseProto::decode(answer)?;
            answer.fs.iter_mut().for_each(|status| fill_status(status, told, None));
            answer.encode_to_vec()
        }
        "getListing" => {
            let mut answer = p::GetListingResponseProto::decode(answer)?;
            let entries = answer.dir_list.iter_mut().flat_map(|listing| &mut listing.partial_listing);
            entries.for_each(|status| fill_status(status, told, snapshot(0)));
            answer.encode_to_vec()
        }
        "getBatchedListing" => {
            let mut answer = p::GetBatchedListingResponseProto::decode(answer)?;
            for (at, listing) in answer.listings.iter_mut().enumerate() {
                let entries = listing.partial_listing.iter_mut();
                entries.for_each(|status| fill_status(status, told, snapshot(at)));
            }
            answer.encode_to_vec()
        }
        "getSnapshottableDirListing" => {
            let mut answer = p::GetSnapshottableDirListingResponseProto::decode(answer)?;
            let directories = answer.snapshottable_dir_list.iter_mut();
            let directories = directories.flat_map(|list| &mut list.snapshottable_dir_listing);
            directories.for_each(|directory| fill_status(&mut directory.dir_status, told, None));
            answer.encode_to_vec()
        }
        other => unreachable!("{other} tells no places"),
    })
}

fn fill_status(status: &mut p::HdfsFileStatusProto, told: &Told, at: Option<SnapshotId>) {
    status.locations.iter_mut().for_each(|blocks| fill_blocks(blocks, told));
    let Some(facts) = status.file_id.and_then(|id| told.facts.get(&(at, id))) else { return };
    if let (Some(modified_ms), Some(children)) = (facts.modified_ms, facts.children) {
        status.modification_time = modified_ms;
        status.children_num = Some(children as i32);
    }
}

fn fill_blocks(blocks: &mut p::LocatedBlocksProto, told: &Told) {
    for block in blocks.blocks.iter_mut().chain(&mut blocks.last_block) {
        if let Some(told) = told.places.get(&block.b.block_id) {
            block.locs.clone_from(&told.locs);
            block.corrupt = told.corrupt;
            block.is_cached.clone_from(&told.is_cached);
            block.storage_types.clone_from(&told.storage_types);
            block.storage_i_ds.clone_from(&told.storage_i_ds);
        }
    }
}
