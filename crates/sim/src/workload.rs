//! Random operations on a small tree, so that they often meet.

use crate::dice::Dice;
use base::{CallOrigin, Caller, InodeId, Moment, Timestamp};
use namespace::{
    Context, Edit, Limits, Namespace, Planned,
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
        let request = format!("{choice} {path} {other}");
        let fingerprint = fingerprint("sim", request.as_bytes());
        let ctx = Context {
            caller: &self.caller,
            origin: Some(origin),
            fingerprint,
            now,
            moment,
            limits: &self.limits,
            renewals: None,
        };
        let (name, edit) = match choice {
            0..25 => {
                let request = ops::mkdirs::Request {
                    path: &path,
                    permission: 0o755,
                    unmasked: None,
                    create_parent: true,
                };
                ("mkdirs", edit_of(ops::mkdirs::plan(ns, &ctx, &request).ok()?))
            }
            25..50 => {
                let request = ops::create::Request {
                    path: &path,
                    permission: 0o644,
                    unmasked: None,
                    holder: HOLDER,
                    client_machine: "127.0.0.1",
                    flags: 3,
                    create_parent: true,
                    replication: 3,
                    block_size: 1 << 20,
                    storage_policy: None,
                    erasure_coding: None,
                };
                ("create", edit_of(ops::create::plan(ns, &ctx, &request).ok()?))
            }
            50..65 => {
                let request = ops::add_block::Request {
                    path: &path,
                    holder: HOLDER,
                    previous: None,
                    inode: InodeId(0),
                };
                let edit = match ops::add_block::plan(ns, &ctx, &request, &GivenFacts::all_finished()).ok()? {
                    ops::add_block::Plan::New { edit, .. } => Some(edit),
                    ops::add_block::Plan::Again { .. } => None,
                };
                ("addBlock", edit)
            }
            65..75 => {
                let request =
                    ops::complete::Request { path: &path, holder: HOLDER, last: None, inode: InodeId(0) };
                let edit = match ops::complete::plan(ns, &ctx, &request, &GivenFacts::all_finished()).ok()? {
                    ops::complete::Plan::Close(edit) => Some(edit),
                    ops::complete::Plan::Already | ops::complete::Plan::Waiting(_) => None,
                };
                ("complete", edit)
            }
            75..85 => {
                let request = ops::rename::Request { source: &path, destination: &other };
                ("rename", edit_of(ops::rename::plan(ns, &ctx, &request).ok()?))
            }
            85..93 => {
                let bits = self.dice.below(512) as u16;
                rights(ns, &ctx, &path, choice, bits)?
            }
            _ => {
                let request = ops::delete::Request { path: &path, recursive: true };
                ("delete", edit_of(ops::delete::plan(ns, &ctx, &request).ok()?))
            }
        };
        edit.map(|edit| PlannedCall { name, fingerprint, edit })
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

/// Permissions, ACLs and extended attributes.
fn rights(
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &str,
    choice: u64,
    bits: u16,
) -> Option<(&'static str, Option<Edit>)> {
    Some(match choice {
        ..87 => {
            let request = ops::set_permission::Request { path: path.into(), permission: bits };
            ("setPermission", edit_of(ops::set_permission::plan(ns, ctx, &request).ok()?))
        }
        87..90 => {
            let entry = |scope| AclEntry {
                scope,
                kind: Kind::User,
                name: Some("ann".into()),
                permission: bits as u8 & 7,
            };
            let entries = [entry(Scope::Access), entry(Scope::Default)];
            let change = match bits % 4 {
                0 => Change::RemoveAll,
                1 => Change::Merge(&entries),
                _ => Change::Merge(&entries[..1]),
            };
            let request = ops::set_acl::Request { path, change };
            ("setAcl", edit_of(ops::set_acl::plan(ns, ctx, &request).ok()?))
        }
        _ => {
            let name = XattrName { space: Space::User, name: format!("n{}", bits % 3).into() };
            let planned = if bits.is_multiple_of(5) {
                ops::set_xattrs::plan_removal(ns, ctx, path, &name)
            } else {
                let value = bits.to_le_bytes();
                let request = ops::set_xattrs::Request { path, name: &name, value: Some(&value), flags: 3 };
                ops::set_xattrs::plan(ns, ctx, &request)
            };
            ("setXAttr", edit_of(planned.ok()?))
        }
    })
}

fn edit_of(planned: Planned) -> Option<Edit> {
    match planned {
        Planned::Edit(edit) => Some(edit),
        Planned::NoChange(_) => None,
    }
}
