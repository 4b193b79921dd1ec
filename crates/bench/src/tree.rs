//! A namespace filled through the plans and edits of a cluster: unique names of 24 bytes, a thousand files a
//! directory.

use base::{Block, CallId, CallOrigin, Caller, ClientId, Epoch, InodeId, Moment, Sn, Timestamp, TxId};
use namespace::{Context, Edit, Limits, Namespace, Planned, Reply, given_facts::GivenFacts, ops};

const FILES_A_DIRECTORY: u64 = 1_000;
/// Wanted of each block.
pub const LOCATIONS: usize = 3;

/// A namespace and the client that fills it.
pub struct Tree {
    pub namespace: Namespace,
    limits: Limits,
    caller: Caller,
    edits: u64,
    caching: Caching,
}

/// Whether the calls are remembered, as a client's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    Calls,
    Nothing,
}

impl Tree {
    pub fn new(caching: Caching) -> Self {
        Self {
            namespace: Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)),
            limits: Limits::default(),
            caller: Caller::simple("hdfs", &["supergroup"]),
            edits: 0,
            caching,
        }
    }

    pub fn context(&self) -> Context<'_> {
        let call_id = CallId((self.edits & 0x7fff_ffff) as i32);
        Context {
            caller: &self.caller,
            origin: (self.caching == Caching::Calls).then_some(CallOrigin {
                client_id: ClientId(*b"bench of memory."),
                call_id,
                retry_count: 0,
                repeats: 0,
                address: None,
            }),
            fingerprint: self.edits,
            now: Timestamp::from_ms(1_700_000_000_000 + self.edits / 100),
            moment: Moment::default(),
            limits: &self.limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        }
    }

    fn apply(&mut self, edit: impl Into<Edit>) -> Reply {
        self.apply_edit(&edit.into())
    }

    pub fn apply_edit(&mut self, edit: &Edit) -> Reply {
        self.edits += 1;
        self.namespace.apply(TxId { epoch: Epoch(1), sn: Sn(self.edits) }, edit).reply
    }

    /// Applies what was planned.
    pub fn carry_out<E>(&mut self, planned: Planned<E>) -> anyhow::Result<()>
    where
        Edit: From<Edit<E>>,
    {
        let Planned::Edit(edit) = planned else { anyhow::bail!("it was done already") };
        self.apply(edit);
        Ok(())
    }

    /// One more file, with none or one block.
    pub fn make_file(&mut self, number: u64, blocks: u64) -> anyhow::Result<()> {
        let path = format!("/bench/{:06}/file-{number:019}", number / FILES_A_DIRECTORY);
        let request = ops::create::Request {
            path: path.clone(),
            permission: 0o644,
            unmasked: None,
            holder: "bench".into(),
            client_machine: "127.0.0.1".into(),
            flags: ops::create::flag::CREATE,
            create_parent: true,
            replication: LOCATIONS as u32,
            block_size: 128 << 20,
            storage_policy: None,
            erasure_coding: None,
        };
        let Planned::Edit(edit) = ops::create::plan(&self.namespace, &self.context(), &request)? else {
            anyhow::bail!("{path} was there already");
        };
        let Reply::Created(inode) = self.apply(edit) else {
            anyhow::bail!("{path} was not created");
        };
        let last = match blocks {
            0 => None,
            _ => Some(Block { length: 1_000 + number % 1_000, ..self.add_block(&path, inode)? }),
        };
        let request = ops::complete::Request { path, holder: "bench".into(), last, inode };
        match ops::complete::plan(&self.namespace, &self.context(), &request, &GivenFacts::all_finished())? {
            ops::complete::Plan::Close(edit) => self.apply(edit),
            other => anyhow::bail!("{} was not closed: {other:?}", request.path),
        };
        Ok(())
    }

    fn add_block(&mut self, path: &str, inode: InodeId) -> anyhow::Result<Block> {
        let request =
            ops::add_block::Request { path: path.into(), holder: "bench".into(), previous: None, inode };
        match ops::add_block::plan(&self.namespace, &self.context(), &request, &GivenFacts::all_finished())? {
            ops::add_block::Plan::New { edit, .. } => match self.apply(edit) {
                Reply::Block { block, .. } => Ok(block),
                other => anyhow::bail!("{path} got no block: {other:?}"),
            },
            other => anyhow::bail!("{path} got no block: {other:?}"),
        }
    }
}
