//! Carries out a message of another group, about files that this group has exported to others: see [`crate::outbox`].

use crate::{
    BlockChange, Context, Namespace, Reply,
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::{DecodeError, Field, Reader, Writer},
    edit::Edit,
    footprint::Marks,
    operation::{Applying, Operation},
    outbox::{Message, Order},
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
    Edit(Edit<CarryOutEdit>),
    /// It was carried out before. That counts once it has committed.
    Already,
    /// This tree must follow the directory log up to here first.
    Behind(Dix),
    /// Messages before it have not come.
    Early {
        last: u64,
    },
    /// The groups do not agree about this file: this group does not know that it lives elsewhere. An operator must look.
    NoExport(InodeId),
}

pub fn plan(ns: &Namespace, ctx: &Context<'_>, of: GroupId, message: &Message) -> Plan {
    let last = ns.carried_out_of(of);
    if message.number <= last {
        return Plan::Already;
    }
    if message.number != last + 1 {
        return Plan::Early { last };
    }
    if message.dix > ns.directory_log().dix {
        return Plan::Behind(message.dix);
    }
    let mut ended = BTreeSet::new();
    for order in &message.orders {
        let file = order.file();
        if let Order::Join(join) = order {
            // It stands alone.
            if let Some(file) = ns.does_not_fit(join) {
                return Plan::NoExport(file);
            }
            continue;
        }
        if ns.exported_to(file).is_none() || ended.contains(&file) {
            return Plan::NoExport(file);
        }
        if matches!(order, Order::Free { .. }) || ns.would_end(order) {
            ended.insert(file);
        }
    }
    let edit = CarryOutEdit { of, number: message.number, orders: message.orders.clone() };
    Plan::Edit(Edit::of_service(ns, ctx, edit))
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
