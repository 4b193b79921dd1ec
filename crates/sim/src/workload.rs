//! Random operations on a small tree, so that they often meet.

use crate::dice::Dice;
use base::{CallOrigin, Caller, InodeId, Moment, Timestamp};
use namespace::{
    Context, Edit, Limits, Namespace, Plannable, Request, Step,
    acl::{AclEntry, Kind, Scope},
    fingerprint,
    given_facts::GivenFacts,
    ops::{self, set_acl::Change},
    xattr::{Space, XattrName},
};

const HOLDER: &str = "DFSClient_sim_1";
const NAMES: [&str; 6] = ["a", "b", "c", "d e", "é", "long-name-of-a-file-0123456789"];

pub struct Workload {
    dice: Dice,
    caller: Caller,
    limits: Limits,
}

/// An operation that was planned.
pub struct PlannedCall {
    pub name: &'static str,
    pub fingerprint: u64,
    pub edit: Edit,
}

impl Workload {
    pub fn new(dice: Dice) -> Self {
        Self { dice, caller: Caller::simple("hdfs", &["supergroup"]), limits: Limits::default() }
    }

    /// Plans a random operation; `None` when it was refused or changes nothing.
    pub fn plan(
        &mut self,
        ns: &Namespace,
        origin: CallOrigin,
        now: Timestamp,
        moment: Moment,
    ) -> Option<PlannedCall> {
        let (path, other) = (self.path(), self.path());
        let choice = self.dice.below(100);
        let fingerprint = fingerprint("sim", format!("{choice} {path} {other}").as_bytes());
        let ctx = Context {
            caller: &self.caller,
            origin: Some(origin),
            fingerprint,
            now,
            moment,
            limits: &self.limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        };
        let facts = GivenFacts::all_finished();
        let (name, request): (_, Request) = match choice {
            0..25 => ("mkdirs", mkdirs(path).into()),
            25..50 => ("create", create(path).into()),
            50..65 => ("addBlock", add_block(path).into()),
            65..75 => ("complete", complete(path).into()),
            75..85 => ("rename", ops::rename::Request { source: path, destination: other }.into()),
            85..93 => rights(path, choice, self.dice.below(512) as u16),
            _ => ("delete", ops::delete::Request { path, recursive: true }.into()),
        };
        match request.plan(ns, &ctx, &facts).ok()? {
            Step::Edit(edit) | Step::Allocate(edit, _) => Some(PlannedCall { name, fingerprint, edit }),
            _ => None,
        }
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.dice.below(3);
        let mut path: String = (0..depth).map(|_| format!("/{}", self.dice.pick(&NAMES))).collect();
        // Records of several sectors.
        for _ in 0..if self.dice.chance(10) { self.dice.below(8) } else { 0 } {
            path.push_str(&format!("/{}", "n".repeat(200)));
        }
        path
    }
}

fn mkdirs(path: String) -> ops::mkdirs::Request {
    ops::mkdirs::Request { path, permission: 0o755, unmasked: None, create_parent: true }
}

fn create(path: String) -> ops::create::Request {
    ops::create::Request {
        path,
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
    }
}

fn add_block(path: String) -> ops::add_block::Request {
    ops::add_block::Request { path, holder: HOLDER.into(), previous: None, inode: InodeId(0) }
}

fn complete(path: String) -> ops::complete::Request {
    ops::complete::Request { path, holder: HOLDER.into(), last: None, inode: InodeId(0) }
}

/// Permissions, ACLs and extended attributes.
fn rights(path: String, choice: u64, bits: u16) -> (&'static str, Request) {
    match choice {
        ..87 => ("setPermission", ops::set_permission::Request { path, permission: bits }.into()),
        87..90 => {
            let entry = |scope| AclEntry {
                scope,
                kind: Kind::User,
                name: Some("ann".into()),
                permission: bits as u8 & 7,
            };
            let change = match bits % 4 {
                0 => Change::RemoveAll,
                1 => Change::Merge(vec![entry(Scope::Access), entry(Scope::Default)]),
                _ => Change::Merge(vec![entry(Scope::Access)]),
            };
            ("setAcl", ops::set_acl::Request { path, change }.into())
        }
        _ => {
            let name = XattrName { space: Space::User, name: format!("n{}", bits % 3).into() };
            let request = if bits.is_multiple_of(5) {
                ops::set_xattrs::Removal { path, name }.into()
            } else {
                let value = Some(bits.to_le_bytes().to_vec());
                ops::set_xattrs::Request { path, name, value, flags: 3 }.into()
            };
            ("setXAttr", request)
        }
    }
}
