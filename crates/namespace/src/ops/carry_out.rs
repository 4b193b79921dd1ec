//! Carries out a message of another group, about files that this group has exported to others: see [`crate::outbox`].

use crate::{
    BlockChange, Context, Namespace, Reply,
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::{DecodeError, Field, Reader, Writer},
    edit::Edit,
    footprint::Marks,
    operation::{Applying, Operation},
    outbox::{self, Message, Order},
};
use base::{GroupId, InodeId, directory_log::Dix};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub struct CarryOutEdit {
    /// The group that has sent the message.
    pub of: GroupId,
    pub number: u64,
    pub orders: Vec<Order>,
}

impl Field for CarryOutEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.of.0.into());
        out.number(self.number);
        self.orders.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let of = GroupId(input.number()?.try_into().unwrap_or(0));
        let edit = Self { of, number: input.number()?, orders: Field::decode(input)? };
        match of.is_possible() && edit.number > 0 {
            true => Ok(edit),
            false => Err(input.malformed("a message that no group sends")),
        }
    }
}

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Edit {
        edit: Edit<CarryOutEdit>,
        /// The files of orders that are left out: this group knows of no export of them to the group that sent the message.
        unknown: Vec<InodeId>,
        /// This group has carried out messages before this one of which its tree knows nothing: it has lost them.
        is_gap: bool,
    },
    /// It was carried out before. That counts once it has committed.
    Already,
    /// This tree must follow the directory log up to here first.
    Behind(Dix),
    /// It does not follow the message that stands before it in the question.
    OutOfOrder { before: u64 },
}

/// Plans to carry out a message. `before`: the number of the message in front of it in the question; `None` if it is the first one there.
///
/// The sender puts into a question all messages of which this group has not told it that they are carried out. So this group has carried out every message before the first one of a
/// question. If the tree knows nothing of some, an unclean election or a restore has put the tree back to an earlier state.
///
/// An order is left out if this group has no export of its file to the sender; the orders behind it are carried out. That happens only after one of the two groups has lost changes. Then
/// a block may stay that no file has, but no block goes that a file has.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, of: GroupId, message: &Message, before: Option<u64>) -> Plan {
    if let Some(before) = before
        && before.checked_add(1) != Some(message.number)
    {
        return Plan::OutOfOrder { before };
    }
    let last = ns.carried_out_of(of);
    if message.number <= last {
        return Plan::Already;
    }
    if message.dix > ns.directory_log().dix {
        return Plan::Behind(message.dix);
    }
    let mut unknown = Vec::new();
    let orders = fitting(ns, of, &message.orders, &mut unknown);
    let is_gap = !outbox::follows(last, message.number);
    let edit = CarryOutEdit { of, number: message.number, orders };
    Plan::Edit { edit: Edit::of_service(ns, ctx, edit), unknown, is_gap }
}

/// The orders that can be carried out, and the files of those that cannot.
fn fitting(ns: &Namespace, of: GroupId, orders: &[Order], unknown: &mut Vec<InodeId>) -> Vec<Order> {
    let mut ended = BTreeSet::new();
    let mut fitting = Vec::new();
    for order in orders {
        if let Order::Join(join) = order {
            // It stands alone.
            let join = ns.fitting_join(of, join, unknown);
            fitting.extend(join.map(Order::Join));
            continue;
        }
        let file = order.file();
        if ns.exported_to(file) != Some(of) || ended.contains(&file) {
            unknown.push(file);
            continue;
        }
        if matches!(order, Order::Free { .. }) || ns.would_end(order) {
            ended.insert(file);
        }
        fitting.push(order.clone());
    }
    fitting
}

impl Operation for CarryOutEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    /// Exports have no place in the tree: nobody sees them.
    fn mark(&self, marks: &mut Marks<'_>) {
        for order in &self.orders {
            marks.inode(order.file());
            if let Order::Join(join) = order {
                join.sources.iter().for_each(|source| marks.inode(*source));
            }
        }
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {}

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        for order in &self.orders {
            match order {
                Order::Free { file } => ns.end_export(*file, applying.changes),
                Order::FreeBlocks { file, blocks } => ns.free_blocks(*file, blocks, applying.changes),
                Order::SetReplication { file, replication } => {
                    set_replication(ns, *file, *replication, applying.changes);
                }
                Order::Join(join) => ns.join_exports(join, self.of, applying.changes),
            }
        }
        ns.tree.post.carried_out.insert(self.of, self.number);
        Reply::Unit
    }
}

fn set_replication(ns: &mut Namespace, file: InodeId, replication: u16, changes: &mut Vec<BlockChange>) {
    let export = ns.expect(file);
    let from = ns.block_replication(export);
    ns.set_attributes(export, AttributeChange { replication: Some(replication), ..Default::default() });
    let to = ns.block_replication(export);
    let blocks = ns.tree.blocks_of(export).map(|stored| stored.block.id);
    changes.extend(blocks.map(|block| BlockChange::ReplicationChanged { block, from, to }));
}
