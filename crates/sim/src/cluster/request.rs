//! The requests of clients.

use crate::dice::Dice;
use base::{CallOrigin, Caller, FsResult, Moment, Timestamp};
use namespace::{
    Context, Limits, Namespace, Plannable, Reply, Request as Change, Step, fingerprint,
    given_facts::GivenFacts, ops, reads,
};

/// Few names, so that clients meet.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Change(Change),
    /// Asks which file or directory is at this path.
    Read(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Reply(Reply),
    /// The inode at the path, if there is one.
    Found(Option<u64>),
    Refused(String),
}

/// The result of planning a request: an answer, or an edit.
pub enum Outcome {
    Read(Answer),
    Change(FsResult<Step>),
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
    let depth = 1 + dice.below(3);
    (0..depth).map(|_| format!("/{}", NAMES[dice.below(5) as usize])).collect()
}

impl Request {
    pub fn random_read(dice: &mut Dice) -> Self {
        Request::Read(random_path(dice))
    }

    pub fn random(dice: &mut Dice) -> Self {
        let (one, other) = (random_path(dice), random_path(dice));
        match dice.below(100) {
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
                holder: "DFSClient_sim_1".into(),
                client_machine: "127.0.0.1".into(),
                flags: 3,
                create_parent: true,
                replication: 3,
                block_size: 1 << 20,
                storage_policy: None,
                erasure_coding: None,
            }),
            50..62 => Request::change(ops::rename::Request { source: one, destination: other }),
            62..72 => Request::change(ops::delete::Request { path: one, recursive: true }),
            _ => Request::Read(one),
        }
    }

    fn change(change: impl Into<Change>) -> Self {
        Self::Change(change.into())
    }

    pub fn fingerprint(&self) -> u64 {
        fingerprint("sim", format!("{self:?}").as_bytes())
    }

    pub fn plan(&self, ns: &Namespace, origin: CallOrigin, now: Timestamp, moment: Moment) -> Outcome {
        let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
        let ctx = Context {
            caller: &caller,
            origin: Some(origin),
            fingerprint: self.fingerprint(),
            now,
            moment,
            limits: &limits,
            renewals: None,
        };
        match self {
            Request::Change(change) => Outcome::Change(change.plan(ns, &ctx, &GivenFacts::all_finished())),
            Request::Read(path) => Outcome::Read(match reads::get_file_info::get(ns, &ctx, path) {
                Ok(found) => Answer::Found(found.map(|status| status.id.0)),
                Err(refused) => Answer::Refused(refused.to_string()),
            }),
        }
    }
}
