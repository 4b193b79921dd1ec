//! The requests of clients.

use crate::dice::Dice;
use base::{Block, CallOrigin, Caller, FsResult, InodeId, Moment, Timestamp};
use namespace::{
    BlockFacts, Context, Limits, Namespace, Plannable, Read, Readable, Reply, Request as Change, Step,
    fingerprint,
    ops::{self, add_block, complete},
    reads::{get_file_info, get_listing},
};

/// Few names, so that clients meet.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// All clients write under one name.
const HOLDER: &str = "DFSClient_sim_1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Change(Change),
    Read(Read),
    AddBlock { path: String, inode: InodeId, previous: Option<Block> },
    Complete { path: String, inode: InodeId, last: Block },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Reply(Reply),
    /// All that a look has found, as a text.
    Seen(String),
    Refused(String),
    /// A new block, and the data servers to which it shall be written.
    Placed {
        block: Block,
        targets: Vec<usize>,
    },
}

/// The result of planning a request: an answer, or an edit.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum Outcome {
    Read(Answer),
    Change(FsResult<Step>),
    NewBlock(FsResult<add_block::Plan>),
    Closing(FsResult<complete::Plan>),
}

impl From<FsResult<Reply>> for Answer {
    fn from(answer: FsResult<Reply>) -> Self {
        match answer {
            Ok(reply) => Self::Reply(reply),
            Err(refused) => Self::Refused(refused.to_string()),
        }
    }
}

fn random_path(dice: &mut Dice) -> String {
    random_path_of(dice, 3)
}

fn random_path_of(dice: &mut Dice, depth_max: u64) -> String {
    let depth = 1 + dice.below(depth_max);
    (0..depth).map(|_| format!("/{}", NAMES[dice.below(5) as usize])).collect()
}

/// Mostly the status of a path: what a listing tells rests on more, and has to wait more often.
fn some_read(drawn: u64, path: String) -> Read {
    match drawn % 4 {
        0 => get_listing::Request { path, start_after: Default::default(), need_location: false }.into(),
        _ => get_file_info::Request { path }.into(),
    }
}

impl Request {
    pub fn random_read(dice: &mut Dice) -> Self {
        Request::Read(get_file_info::Request { path: random_path(dice) }.into())
    }

    pub fn random(dice: &mut Dice) -> Self {
        let (one, other) = (random_path(dice), random_path(dice));
        match dice.below(100) {
            drawn @ 72.. => Request::Read(some_read(drawn, one)),
            0..20 => Request::change(ops::mkdirs::Request {
                path: one,
                permission: 0o755,
                unmasked: None,
                create_parent: true,
            }),
            20..50 => Request::change(ops::create::Request {
                path: one,
                permission: 0o644,
                unmasked: None,
                holder: HOLDER.into(),
                client_machine: "127.0.0.1".into(),
                flags: 3,
                create_parent: true,
                replication: 3,
                block_size: 1 << 20,
                storage_policy: None,
                erasure_coding: None,
            }),
            50..62 => Request::change(ops::rename::Request { source: one, destination: other }),
            _ => Request::change(ops::delete::Request { path: one, recursive: true }),
        }
    }

    /// Of clients that write files with blocks.
    pub fn random_of_files(dice: &mut Dice) -> Self {
        // Few paths, so that most name a file.
        let (one, other) = (random_path_of(dice, 2), random_path_of(dice, 2));
        match dice.below(100) {
            drawn @ 85.. => Request::Read(some_read(drawn, one)),
            0..35 => Request::change(ops::create::Request {
                path: one,
                permission: 0o644,
                unmasked: None,
                holder: HOLDER.into(),
                client_machine: "127.0.0.1".into(),
                flags: 3,
                create_parent: true,
                replication: 1 + dice.below(3) as u32,
                block_size: 1 << 20,
                storage_policy: None,
                erasure_coding: None,
            }),
            35..40 => Request::change(ops::rename::Request { source: one, destination: other }),
            40..52 => Request::change(ops::delete::Request { path: one, recursive: true }),
            _ => Request::change(ops::set_replication::Request {
                path: one,
                replication: 1 + dice.below(4) as u32,
            }),
        }
    }

    fn change(change: impl Into<Change>) -> Self {
        Self::Change(change.into())
    }

    pub fn fingerprint(&self) -> u64 {
        fingerprint("sim", format!("{self:?}").as_bytes())
    }

    pub fn plan(
        &self,
        ns: &Namespace,
        origin: CallOrigin,
        now: Timestamp,
        moment: Moment,
        facts: &dyn BlockFacts,
    ) -> Outcome {
        self.with_context(origin, now, moment, |ctx| match self {
            Request::Change(change) => Outcome::Change(change.plan(ns, ctx, facts)),
            Request::AddBlock { path, inode, previous } => {
                let request = add_block::Request {
                    path: path.clone(),
                    holder: HOLDER.into(),
                    previous: *previous,
                    inode: *inode,
                };
                Outcome::NewBlock(add_block::plan(ns, ctx, &request, facts))
            }
            Request::Complete { path, inode, last } => {
                let request = complete::Request {
                    path: path.clone(),
                    holder: HOLDER.into(),
                    last: Some(*last),
                    inode: *inode,
                };
                Outcome::Closing(complete::plan(ns, ctx, &request, facts))
            }
            Request::Read(read) => Outcome::Read(match read.look(ns, ctx) {
                Ok(seen) => Answer::Seen(format!("{seen:?}")),
                Err(refused) => Answer::Refused(refused.to_string()),
            }),
        })
    }

    /// Plans something for this request's call.
    pub fn with_context<T>(
        &self,
        origin: CallOrigin,
        now: Timestamp,
        moment: Moment,
        plan: impl FnOnce(&Context<'_>) -> T,
    ) -> T {
        let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
        plan(&Context {
            caller: &caller,
            origin: Some(origin),
            fingerprint: self.fingerprint(),
            now,
            moment,
            limits: &limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        })
    }
}

/// The context of the service's own work.
pub fn service_context<T>(now: Timestamp, moment: Moment, plan: impl FnOnce(&Context<'_>) -> T) -> T {
    let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
    plan(&Context {
        caller: &caller,
        origin: None,
        fingerprint: 0,
        now,
        moment,
        limits: &limits,
        renewals: None,
        looks: None,
        told: None,
        room: None,
    })
}
