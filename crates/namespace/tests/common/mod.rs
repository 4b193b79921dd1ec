//! A namespace with a journal in memory.

// Each test program uses a part of it.
#![allow(dead_code)]

pub mod both;
pub mod cluster;
pub mod random_calls;
pub mod reads;
pub mod then;

use base::{
    Block, BlockId, CallId, CallOrigin, Caller, ClientId, Epoch, FsResult, GroupId, InodeId, Moment, Sn,
    StorageType, Timestamp, TxId,
    directory_log::{Dix, Entry},
};
use namespace::{
    Applied, Context, Edit, FileBlock, FrozenTree, ImageError, Limits, Namespace, Quota, Renewals, Reply,
    Step, Watches,
    given_facts::GivenFacts,
    ops,
    reads::{
        get_block_locations, get_file_info,
        get_quota_usage::{self, Usage},
    },
};

pub const HOLDER: &str = "DFSClient_test_1";

/// Random numbers from a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// All replicas are there, as their writers said.
pub const ALL_FINISHED: GivenFacts = GivenFacts::all_finished();

pub struct World {
    pub ns: Namespace,
    pub limits: Limits,
    pub caller: Caller,
    pub now: Timestamp,
    pub moment: Moment,
    pub renewals: Option<Renewals>,
    pub holder: String,
    /// Files are created with the directories above them that are missing.
    pub creates_parents: bool,
    /// Random calls set quotas.
    pub sets_quotas: bool,
    /// The encoded edits so far.
    pub journal: Vec<Vec<u8>>,
    pub calls: i32,
    /// Blocks that data servers were told to delete.
    pub removed: std::collections::BTreeSet<BlockId>,
    pub watches: Watches,
    /// What an entry of the directory log says about the ones before it, when the namespace has further groups: up to where these are visible,
    /// and up to where all groups have carried them out.
    pub visible: Dix,
    pub carried_out: Dix,
}

pub fn bytes_of(edit: &Edit) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    bytes
}

pub fn read_image(bytes: &[u8]) -> Result<Namespace, ImageError> {
    Namespace::read_image(7, &mut &bytes[..], bytes.len() as u64)
}

pub fn image_of(frozen: &FrozenTree) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = frozen.write(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    assert!(written.is_ok());
    bytes
}

fn fresh(seed: u64, group: GroupId) -> Namespace {
    Namespace::new(seed, "hdfs", "supergroup", Timestamp::from_ms(1)).of_group(group)
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::of_group(seed, GroupId::ROOT)
    }

    pub fn of_group(seed: u64, group: GroupId) -> Self {
        Self {
            ns: fresh(seed, group),
            limits: Limits { block_size_min: 512, ..Limits::default() },
            caller: Caller::simple("hdfs", &[]),
            now: Timestamp::from_ms(1_000_000),
            moment: Moment::default(),
            renewals: None,
            holder: HOLDER.into(),
            creates_parents: true,
            sets_quotas: true,
            journal: Vec::new(),
            calls: 0,
            removed: Default::default(),
            watches: Watches::default(),
            visible: Dix(0),
            carried_out: Dix(0),
        }
    }

    pub fn origin(&self) -> CallOrigin {
        CallOrigin {
            client_id: ClientId(*b"a client of ours"),
            call_id: CallId(self.calls),
            retry_count: 0,
            repeats: 0,
            address: None,
        }
    }

    pub fn context(&self, origin: Option<CallOrigin>) -> Context<'_> {
        Context {
            caller: &self.caller,
            origin,
            fingerprint: 42,
            now: self.now,
            moment: self.moment,
            limits: &self.limits,
            renewals: self.renewals.as_ref(),
            looks: None,
            told: None,
            room: None,
        }
    }

    /// The edit as an entry of the directory log, if it has to be one.
    fn ordered(&self, edit: Edit) -> Edit {
        let Some((marks, payload)) = self.ns.as_entry(&edit) else { return edit };
        let entry = Entry::after(self.ns.directory_log(), Epoch(1), None, marks.into(), payload);
        Namespace::ordered(edit, entry, self.visible, self.carried_out)
    }

    /// Applies an edit as it comes back from its bytes.
    pub fn apply(&mut self, edit: impl Into<Edit>) -> Applied {
        let edit = self.ordered(edit.into());
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        let decoded = Edit::decode(&bytes);
        assert_eq!(decoded, Ok(edit.clone()));
        self.journal.push(bytes);
        let at = TxId { epoch: Epoch(1), sn: Sn(self.journal.len() as u64) };
        self.now.ms = self.now.ms.saturating_add(1);
        self.watches.tell(&self.ns, &edit);
        let applied = self.ns.apply(at, &edit);
        for change in &applied.block_changes {
            if let namespace::BlockChange::Removed(block) = change {
                assert!(self.removed.insert(block.id), "{block} is removed twice");
            }
        }
        applied
    }

    pub fn plan<T>(&mut self, plan: impl FnOnce(&Namespace, &Context<'_>) -> FsResult<T>) -> FsResult<T> {
        self.calls += 1;
        plan(&self.ns, &self.context(Some(self.origin())))
    }

    pub fn run<P>(&mut self, plan: impl FnOnce(&Namespace, &Context<'_>) -> FsResult<P>) -> FsResult<Reply>
    where
        Step: From<P>,
    {
        Ok(match self.plan(plan)?.into() {
            Step::Edit(edit) => self.apply(edit).reply,
            Step::NoChange(reply) => reply,
            other => panic!("more than an edit: {other:?}"),
        })
    }

    fn answer<P>(&mut self, plan: impl FnOnce(&Namespace, &Context<'_>) -> FsResult<P>) -> FsResult<bool>
    where
        Step: From<P>,
    {
        self.run(plan).map(|reply| reply == Reply::Bool(true))
    }

    /// All edits on an empty tree make this tree, whatever the seed.
    pub fn check_replay(&self) {
        assert_eq!(self.ns.check_consistency(), Ok(()));
        let again = self.replayed();
        assert_eq!(again.digest(), self.ns.digest());
        assert_eq!(again.counts(), self.ns.counts());
        assert_eq!(image_of(&again.freeze()), image_of(&self.ns.freeze()));
    }

    /// The same tree out of the journal, as after a restart.
    pub fn replayed(&self) -> Namespace {
        let mut again = fresh(12_345, self.ns.group());
        for (at, bytes) in self.journal.iter().enumerate() {
            let edit = Edit::decode(bytes).unwrap_or_else(|error| panic!("{error}"));
            again.apply(TxId { epoch: Epoch(1), sn: Sn(at as u64 + 1) }, &edit);
        }
        again
    }

    /// Goes on with what an image brings back.
    pub fn restart_from_image(&mut self) {
        let bytes = image_of(&self.ns.freeze());
        let back = Namespace::read_image(self.ns.digest(), &mut &bytes[..], bytes.len() as u64);
        let back = back.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(back.check_consistency(), Ok(()));
        assert_eq!(back.digest(), self.ns.digest());
        assert_eq!(back.counts(), self.ns.counts());
        assert!(back.leases().eq(self.ns.leases()));
        assert_eq!(image_of(&back.freeze()), bytes);
        self.ns = back;
    }

    pub fn mkdirs(&mut self, path: &str, create_parent: bool) -> FsResult<bool> {
        let request =
            ops::mkdirs::Request { path: path.into(), permission: 0o755, unmasked: None, create_parent };
        self.answer(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request))
    }

    pub fn create_request<'a>(&self, path: &'a str, holder: &'a str) -> ops::create::Request {
        ops::create::Request {
            path: path.into(),
            permission: 0o644,
            unmasked: None,
            holder: holder.into(),
            client_machine: "127.0.0.1".into(),
            flags: ops::create::flag::CREATE,
            create_parent: self.creates_parents,
            replication: 3,
            block_size: 1 << 20,
            storage_policy: None,
            erasure_coding: None,
        }
    }

    pub fn create(&mut self, path: &str, overwrite: bool) -> FsResult<InodeId> {
        let holder = self.holder.clone();
        let mut request = self.create_request(path, &holder);
        if overwrite {
            request.flags |= ops::create::flag::OVERWRITE;
        }
        match self.run(|ns, ctx| ops::create::plan(ns, ctx, &request))? {
            Reply::Created(inode) => Ok(inode),
            other => panic!("create answers {other:?}"),
        }
    }

    pub fn add_block(&mut self, path: &str, inode: InodeId, previous: Option<Block>) -> Block {
        let holder = self.holder.clone();
        let request = ops::add_block::Request { path: path.into(), holder, previous, inode };
        let plan = self.plan(|ns, ctx| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED));
        match plan {
            Ok(ops::add_block::Plan::New { edit, .. }) => match self.apply(edit).reply {
                Reply::Block { block, .. } => block,
                other => panic!("addBlock answers {other:?}"),
            },
            other => panic!("addBlock of {path}: {other:?}"),
        }
    }

    pub fn try_add_block(&mut self, path: &str, previous: Option<Block>) -> FsResult<Block> {
        let holder = self.holder.clone();
        let request = ops::add_block::Request { path: path.into(), holder, previous, inode: InodeId(0) };
        match self.plan(|ns, ctx| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED))? {
            ops::add_block::Plan::New { edit, .. } => match self.apply(edit).reply {
                Reply::Block { block, .. } => Ok(block),
                other => panic!("addBlock answers {other:?}"),
            },
            ops::add_block::Plan::Refused { error, .. } => Err(error),
            other => panic!("addBlock of {path}: {other:?}"),
        }
    }

    pub fn set_quota(&mut self, path: &str, inodes: i64, bytes: i64) -> FsResult<Reply> {
        let request = ops::set_quota::Request { path: path.into(), inodes, bytes, storage_type: None };
        self.run(|ns, ctx| ops::set_quota::plan(ns, ctx, &request))
    }

    pub fn set_type_quota(&mut self, path: &str, kind: StorageType, bytes: i64) -> FsResult<Reply> {
        let keep = ops::set_quota::KEEP;
        let request =
            ops::set_quota::Request { path: path.into(), inodes: keep, bytes, storage_type: Some(kind) };
        self.run(|ns, ctx| ops::set_quota::plan(ns, ctx, &request))
    }

    pub fn set_storage_policy(&mut self, path: &str, policy: Option<&str>) -> FsResult<Reply> {
        let request = ops::set_storage_policy::Request { path: path.into(), policy: policy.map(Into::into) };
        self.run(|ns, ctx| ops::set_storage_policy::plan(ns, ctx, &request))
    }

    pub fn satisfy_storage_policy(&mut self, path: &str) -> FsResult<Reply> {
        let request = ops::satisfy_storage_policy::Request { path: path.into() };
        self.run(|ns, ctx| ops::satisfy_storage_policy::plan(ns, ctx, &request))
    }

    /// The quota and usage that a directory keeps; `None` if it has no quota.
    pub fn quota(&self, path: &str) -> Option<Quota> {
        match get_quota_usage::get(&self.ns, &self.context(None), path).ok()? {
            Usage::Known(quota) => Some(quota),
            Usage::Counted(_) => None,
        }
    }

    pub fn add_block_as(&mut self, holder: &str, path: &str) -> Block {
        let ours = std::mem::replace(&mut self.holder, holder.into());
        let block = self.add_block(path, InodeId(0), None);
        self.holder = ours;
        block
    }

    pub fn complete(&mut self, path: &str, inode: InodeId, last: Option<Block>) {
        let holder = self.holder.clone();
        let request = ops::complete::Request { path: path.into(), holder, last, inode };
        let plan = self.plan(|ns, ctx| ops::complete::plan(ns, ctx, &request, &ALL_FINISHED));
        match plan {
            Ok(ops::complete::Plan::Close(edit)) => assert_eq!(self.apply(edit).reply, Reply::Bool(true)),
            other => panic!("complete of {path}: {other:?}"),
        }
    }

    pub fn append(&mut self, path: &str, new_block: bool) -> FsResult<InodeId> {
        let holder = self.holder.clone();
        let request = ops::append::Request {
            path: path.into(),
            holder: holder.clone(),
            client_machine: "127.0.0.1".into(),
            new_block,
        };
        match self.run(|ns, ctx| ops::append::plan(ns, ctx, &request, &ALL_FINISHED))? {
            Reply::Appended(inode) => Ok(inode),
            other => panic!("append answers {other:?}"),
        }
    }

    pub fn truncate(&mut self, path: &str, length: i64) -> FsResult<bool> {
        let holder = self.holder.clone();
        let request = ops::truncate::Request {
            path: path.into(),
            length,
            holder: holder.clone(),
            client_machine: "127.0.0.1".into(),
        };
        match self.plan(|ns, ctx| ops::truncate::plan(ns, ctx, &request))? {
            ops::truncate::Plan::AtOnce(edit) => assert_eq!(self.apply(edit).reply, Reply::Bool(true)),
            ops::truncate::Plan::Copy(edit, _) => {
                assert_eq!(self.apply(edit).reply, Reply::Bool(false));
                return Ok(false);
            }
            ops::truncate::Plan::Cut(edit, _) => {
                assert_eq!(self.apply(edit).reply, Reply::Bool(false));
                return Ok(false);
            }
            ops::truncate::Plan::NoChange(reply) => return Ok(reply == Reply::Bool(true)),
        }
        Ok(true)
    }

    /// The report that the last block of this file was cut as was ordered.
    pub fn cut_to(&self, path: &str) -> ops::commit_block_synchronization::Request {
        let status = get_file_info::get(&self.ns, &self.context(None), path).unwrap().unwrap();
        self.cut_of(status.id)
    }

    fn cut_of(&self, inode: InodeId) -> ops::commit_block_synchronization::Request {
        let (block, stamp, length) = self.ns.truncation_of(inode).expect("the file is being truncated");
        ops::commit_block_synchronization::Request {
            block: block.id,
            stamp,
            length,
            close_file: true,
            delete_block: false,
        }
    }

    /// The data servers have cut the last block of a file.
    pub fn finish_truncation(&mut self, inode: InodeId, length: u64) {
        let request = self.cut_of(inode);
        assert_eq!(request.length, length);
        let done = self.run(|ns, ctx| ops::commit_block_synchronization::plan(ns, ctx, &request));
        assert_eq!(done, Ok(Reply::Unit));
    }

    pub fn concat(&mut self, target: &str, sources: &[String]) -> FsResult<Reply> {
        let request = ops::concat::Request { target: target.into(), sources: sources.into() };
        self.run(|ns, ctx| ops::concat::plan(ns, ctx, &request))
    }

    pub fn delete(&mut self, path: &str, recursive: bool) -> FsResult<bool> {
        let request = ops::delete::Request { path: path.into(), recursive };
        self.answer(|ns, ctx| ops::delete::plan(ns, ctx, &request))
    }

    pub fn rename(&mut self, source: &str, destination: &str) -> FsResult<bool> {
        let request = ops::rename::Request { source: source.into(), destination: destination.into() };
        self.answer(|ns, ctx| ops::rename::plan(ns, ctx, &request))
    }

    pub fn rename2(&mut self, source: &str, destination: &str, overwrite: bool) -> FsResult<Reply> {
        let request = ops::rename2::Request {
            source: source.into(),
            destination: destination.into(),
            overwrite,
            to_trash: false,
        };
        self.run(|ns, ctx| ops::rename2::plan(ns, ctx, &request))
    }

    pub fn set_permission(&mut self, path: &str, permission: u16) -> FsResult<Reply> {
        let request = ops::set_permission::Request { path: path.into(), permission };
        self.run(|ns, ctx| ops::set_permission::plan(ns, ctx, &request))
    }

    pub fn set_owner(&mut self, path: &str, owner: Option<&str>, group: Option<&str>) -> FsResult<Reply> {
        let request = ops::set_owner::Request {
            path: path.into(),
            owner: owner.map(Into::into),
            group: group.map(Into::into),
        };
        self.run(|ns, ctx| ops::set_owner::plan(ns, ctx, &request))
    }

    pub fn set_times(&mut self, path: &str, modified: i64, accessed: i64) -> FsResult<Reply> {
        let request = ops::set_times::Request { path: path.into(), modified, accessed };
        self.run(|ns, ctx| ops::set_times::plan(ns, ctx, &request))
    }

    pub fn set_replication(&mut self, path: &str, replication: u32) -> FsResult<bool> {
        let request = ops::set_replication::Request { path: path.into(), replication };
        self.answer(|ns, ctx| ops::set_replication::plan(ns, ctx, &request))
    }

    /// The lengths of a file's blocks.
    pub fn block_lengths(&self, path: &str) -> Vec<u64> {
        let context = self.context(None);
        let found = get_block_locations::get(&self.ns, &context, path, 0, i64::MAX as u64).unwrap();
        found.blocks.iter().map(|block| block.block.length).collect()
    }

    pub fn last_block(&self, path: &str) -> Option<Block> {
        self.last_file_block(path).map(|last| last.block)
    }

    pub fn last_file_block(&self, path: &str) -> Option<FileBlock> {
        let status = get_file_info::get(&self.ns, &self.context(None), path).ok().flatten()?;
        namespace::reads::get_block_locations::by_id(&self.ns, status.id)?.last
    }

    pub fn block(id: u64) -> Block {
        Block { id: BlockId(id), ..Block::default() }
    }
}

impl World {
    pub fn allow_snapshot(&mut self, path: &str) -> FsResult<Reply> {
        self.run(|ns, ctx| {
            ops::allow_snapshot::plan(ns, ctx, &ops::allow_snapshot::Request { path: path.into() })
        })
    }

    pub fn disallow_snapshot(&mut self, path: &str) -> FsResult<Reply> {
        self.run(|ns, ctx| {
            ops::allow_snapshot::plan_disallow(
                ns,
                ctx,
                &ops::allow_snapshot::Disallowing { path: path.into() },
            )
        })
    }

    pub fn create_snapshot(&mut self, path: &str, name: &str) -> FsResult<Reply> {
        self.run(|ns, ctx| {
            ops::create_snapshot::plan(
                ns,
                ctx,
                &ops::create_snapshot::Request { path: path.into(), name: name.into() },
            )
        })
    }

    pub fn rename_snapshot(&mut self, path: &str, old: &str, new: &str) -> FsResult<Reply> {
        self.run(|ns, ctx| {
            ops::rename_snapshot::plan(
                ns,
                ctx,
                &ops::rename_snapshot::Request { path: path.into(), old: old.into(), new: new.into() },
            )
        })
    }

    pub fn delete_snapshot(&mut self, path: &str, name: &str) -> FsResult<Reply> {
        self.run(|ns, ctx| {
            ops::delete_snapshot::plan(
                ns,
                ctx,
                &ops::delete_snapshot::Request { path: path.into(), name: name.into() },
            )
        })
    }

    /// Deletes all snapshots that the random calls have made.
    pub fn delete_snapshots(&mut self) {
        for path in random_calls::paths() {
            for name in random_calls::SNAPSHOTS {
                drop(self.delete_snapshot(&path, name));
            }
        }
        assert_eq!(self.ns.counts().snapshots, 0);
    }

    /// Takes apart and sweeps until nothing is left to do; answers the number of edits.
    pub fn tidy_up(&mut self) -> usize {
        let mut steps = 0;
        while let Some(edit) = ops::cleanup::plan(&self.ns, &self.context(None)) {
            self.apply(edit);
            steps += 1;
            assert!(steps < 100_000, "the work behind the scenes never ends");
        }
        assert!(!self.ns.has_background_work());
        steps
    }

    /// All that can be seen below a path, a line an inode: the path in it, and everything that a status says.
    pub fn dump(&self, path: &str) -> Vec<String> {
        let ctx = self.context(None);
        let mut lines = Vec::new();
        let mut stack = vec![String::new()];
        while let Some(below) = stack.pop() {
            let full =
                if below.is_empty() { path.into() } else { format!("{}{below}", path.trim_end_matches('/')) };
            let status = get_file_info::get(&self.ns, &ctx, &full);
            let Ok(Some(status)) = status else { panic!("{full}: {status:?}") };
            let blocks = (!status.is_directory()).then(|| {
                namespace::reads::get_block_locations::get(&self.ns, &ctx, &full, 0, i64::MAX as u64)
            });
            let blocks: Vec<Block> = match blocks {
                Some(Ok(blocks)) => {
                    assert!(blocks.under_construction || blocks.length == status.length, "{full}");
                    blocks.blocks.iter().map(|block| block.block).collect()
                }
                Some(Err(error)) => panic!("{full}: {error}"),
                None => Vec::new(),
            };
            // A block that is written on gets another stamp and length; its id says which it is.
            let blocks: Vec<BlockId> =
                blocks.iter().filter(|block| block.length > 0).map(|block| block.id).collect();
            let mut status = status;
            (status.under_construction, status.snapshottable) = (false, false);
            lines.push(format!("{below} {status:?} {blocks:?}"));
            if !status.is_directory() {
                continue;
            }
            let mut names: Vec<String> = Vec::new();
            loop {
                let after = names.last().cloned().unwrap_or_default();
                let page = namespace::reads::get_listing::get(&self.ns, &ctx, &full, after.as_bytes(), false);
                let Ok(Some(page)) = page else { panic!("{full}: {page:?}") };
                for entry in &page.entries {
                    let name = String::from_utf8_lossy(entry.name).into_owned();
                    let by_path =
                        get_file_info::get(&self.ns, &ctx, &format!("{}/{name}", full.trim_end_matches('/')));
                    let Ok(Some(by_path)) = by_path else { panic!("{full}/{name}: {by_path:?}") };
                    let by_path = namespace::FileStatus { name: entry.name, ..by_path };
                    assert_eq!(*entry, by_path, "{full}/{name}");
                    names.push(name);
                }
                if page.remaining == 0 {
                    break;
                }
            }
            assert_eq!(names.len(), status.children_count as usize, "{full}");
            stack.extend(names.into_iter().rev().map(|name| format!("{below}/{name}")));
        }
        lines
    }
}
